"""`apply_`, `map_` and `map2_`: a Python function is called for every element, which is slow."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._dispatch import function
from .._graph import storage_of


def _check(name: str, self: Any, others: dict[str, Any]) -> list[np.ndarray]:
    for tensor in (self, *others.values()):
        if tensor._rg:
            raise RuntimeError(
                f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead."
            )
    arrays = []
    for argument, tensor in others.items():
        if tensor.dtype is not self.dtype:
            raise TypeError(f"{name}: expected {self.type()} for '{argument}' (got {tensor.type()})")
        arrays.append(tensor.expand(self.shape)._array if tensor.shape != self.shape else tensor._array)
    return arrays


def _write(self: Any, made: Any) -> Any:
    array = self._array
    flat = np.empty(array.size, array.dtype)
    for place, value in enumerate(made):
        flat[place] = value
    np.copyto(array, flat.reshape(array.shape))
    storage_of(self)._version += 1
    return self


def _elements(array: np.ndarray) -> Any:
    return array.astype(np.float32).ravel().tolist() if array.dtype.kind == "V" else array.ravel().tolist()


@function(expose="method")
def apply_(self: Any, callable: Any, /) -> Any:
    """Replace each element by `callable(element)`."""
    _check("apply_", self, {})
    if not hasattr(callable, "__call__"):  # noqa: B004  (the parameter is called `callable`)
        raise TypeError(f"'{type(callable).__name__}' object is not callable")
    return _write(self, map(callable, _elements(self._array)))


@function(expose="method")
def map_(self: Any, tensor: Any, callable: Any) -> Any:
    """Replace each element by `callable(element, other)`."""
    (other,) = _check("map_", self, {"other": tensor})
    return _write(self, map(callable, _elements(self._array), _elements(other)))


@function(expose="method")
def map2_(self: Any, x: Any, y: Any, callable: Any) -> Any:
    """Replace each element by `callable(element, x, y)`."""
    first, second = _check("map2_", self, {"x": x, "y": y})
    return _write(self, map(callable, _elements(self._array), _elements(first), _elements(second)))
