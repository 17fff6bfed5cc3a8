"""Meta tensors: shapes and dtypes without memory. An op on them runs its kernel on broadcast zeros; only the results' shapes are kept."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from . import _dispatch
from ._graph import grad_state

_CONTIGUOUS = SimpleNamespace(c_contiguous=True, f_contiguous=False)
_STRIDED = SimpleNamespace(c_contiguous=False, f_contiguous=False)


class MetaArray:
    """What a meta tensor has instead of an array: NumPy raises when it is computed with."""

    __slots__ = ("shape", "dtype", "strides", "flags")
    __array_ufunc__ = None

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("there is no memory to compute with")

    def __array_function__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__array__()

    def __init__(self, shape: Any, dtype: np.dtype, strides: tuple | None = None) -> None:
        self.shape = tuple(int(n) for n in shape)
        self.dtype = dtype
        plain, step = [], dtype.itemsize
        for n in reversed(self.shape):
            plain.append(step)
            step *= max(n, 1)
        contiguous = tuple(reversed(plain))
        self.strides = contiguous if strides is None else strides
        self.flags = _CONTIGUOUS if self.strides == contiguous else _STRIDED

    def reshape(self, shape: Any, copy: bool | None = None) -> MetaArray:
        """Another shape, as a view; a ValueError where that would take a copy."""
        stand_in = np.lib.stride_tricks.as_strided(
            np.empty(1, self.dtype), self.shape, self.strides
        )  # its memory is never read
        view = stand_in.reshape(shape, copy=False)
        return MetaArray(view.shape, self.dtype, view.strides)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def is_meta(tensor: Any) -> bool:
    """Whether a tensor is on the meta device: it has no memory, and its class names no other device."""
    return tensor._array_missing and tensor._shown_device is None


def meta_tensor(shape: Any, np_dtype: np.dtype, strides: tuple | None = None) -> Any:
    """A meta tensor of a shape and dtype."""
    tensor = _dispatch.new_tensor(_dispatch.Tensor)
    tensor._array_missing, tensor._array_description = True, MetaArray(shape, np_dtype, strides)
    return tensor


def to_meta(tensor: Any) -> Any:
    """A meta tensor that looks like `tensor`."""
    if tensor._array_missing:
        return tensor
    array = tensor._array
    strides = array.strides if 0 not in array.strides else None
    return meta_tensor(array.shape, array.dtype, strides)


def _stand_in(value: Any) -> Any:
    if isinstance(value, _dispatch.Tensor) and value._array_missing:
        stand_in = _dispatch.new_tensor(_dispatch.Tensor)
        stand_in._array = np.broadcast_to(
            np.zeros((), value._array_description.dtype), value._array_description.shape
        )
        return stand_in
    if isinstance(value, (list, tuple)) and any(isinstance(v, _dispatch.Tensor) for v in value):
        return type(value)(_stand_in(v) for v in value)
    return value


def run_meta(op: Any, arguments: tuple) -> Any:
    """Run `op` for the shapes of its results only."""
    tensors = list(_dispatch._tensors_in(arguments))
    if op.schema.arguments and op.schema.arguments[0].written:
        return arguments[0]
    if op.schema.returns and not op.schema.returns[0].startswith("Tensor"):
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")
    real = [t for t in tensors if not t._array_missing and t.ndim > 0]
    if real:
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, cpu and meta! ({op.qualified_name})"
        )
    if op.meta is not None:
        return op.meta(*arguments)
    needs = grad_state.enabled and not op.nondifferentiable and any(t._rg for t in tensors)
    state, enabled = grad_state, grad_state.enabled
    state.enabled = False
    try:
        result = op.run(*[_stand_in(a) for a in arguments])
    finally:
        state.enabled = enabled
    if isinstance(result, _dispatch.Tensor):
        return _as_result(result, needs)
    results = [_as_result(r, needs) for r in result]
    return (
        results
        if isinstance(result, list)
        else tuple(results)
        if type(result) is tuple
        else type(result)(results)
    )


def _as_result(tensor: Any, needs: bool) -> Any:
    meta = to_meta(tensor)
    if needs and meta.dtype._rank >= 2:
        meta._rg = True
    return meta
