"""Factories that fill a tensor given as `out=`: arguments and the tensor in, nothing out."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._dispatch import OPS, composite, op, storage_of, wrap
from ._namespace import functions as F


def _sized(result: Any, size: tuple) -> Any:
    """`result.resize_(size)`, also for a tensor that requires gradients if its size does not change, as torch allows."""
    if result._rg and tuple(result.shape) == size:
        wrap(result._array).resize_(size)
        return result
    return result.resize_(size)


def _below(text: str) -> Any:
    """Decorator: declare an overload that runs below autograd."""
    return op(text, expose="no", on="tensors", nondifferentiable=True)


def write(result: Any, array: np.ndarray) -> None:
    """Write an array to a tensor, which is resized without an event of its own."""
    from .copies import _resize_to

    if result._array.shape != array.shape:
        _resize_to(result, array.shape)
    np.copyto(result._array, array, casting="unsafe")
    storage_of(result)._version += 1


@composite(
    "aten::empty.out(SymInt[] size, *, MemoryFormat? memory_format=None, Tensor result) -> ()", expose="no"
)
def empty(size: tuple, memory_format: Any, result: Any) -> None:
    _sized(result, size)


@_below("aten::zeros.out(SymInt[] size, *, Tensor result) -> ()")
def zeros(size: tuple, result: Any) -> None:
    F.zero_(_sized(result, size))


@_below("aten::ones.out(SymInt[] size, *, Tensor result) -> ()")
def ones(size: tuple, result: Any) -> None:
    F.fill_(_sized(result, size), 1.0)


@_below("aten::full.out(SymInt[] size, Scalar fill_value, *, Tensor result) -> ()")
def full(size: tuple, fill_value: Any, result: Any) -> None:
    F.fill_(_sized(result, size), fill_value)


@_below("aten::eye.out(SymInt n, *, Tensor result) -> ()")
def eye(n: int, result: Any) -> None:
    _eye(n, n, result)


@_below("aten::eye.m_out(SymInt n, SymInt m, *, Tensor result) -> ()")
def eye_m(n: int, m: int, result: Any) -> None:
    _eye(n, m, result)


def _eye(n: int, m: int, result: Any) -> None:
    F.zero_(_sized(result, (n, m)))
    write(result, np.eye(n, m))


def _counted(text: str) -> Any:
    """Declare an overload whose op's kernel takes the same arguments and then the options."""
    name = text.removeprefix("aten::").partition(".")[0]

    @_below(text)
    def form(*arguments: Any) -> None:
        *given, result = arguments
        write(result, _kernel(name, given, result.dtype))

    return form


def _kernel(name: str, given: list, dtype: Any) -> np.ndarray:
    if name == "arange":
        given = [0, given[0], 1] if len(given) == 1 else [*given, 1][:3]
        name = "arange.start_step"
    return OPS[name].kernel(*given, dtype, None, None, None)


arange = _counted("aten::arange.out(Scalar end, *, Tensor result) -> ()")
arange_step = _counted(
    "aten::arange.start_out(Scalar start, Scalar end, Scalar step, *, Tensor result) -> ()"
)
linspace = _counted("aten::linspace.out(Scalar start, Scalar end, int steps, *, Tensor result) -> ()")
logspace = _counted(
    "aten::logspace.out(Scalar start, Scalar end, int steps, float base, *, Tensor result) -> ()"
)


@_below("aten::rand.out(SymInt[] size, *, Tensor result) -> ()")
def rand(size: tuple, result: Any) -> None:
    F.uniform_(_sized(result, size), 0.0, 1.0)


@composite("aten::randn.out(SymInt[] size, *, Tensor result) -> ()", expose="no")
def randn(size: tuple, result: Any) -> None:
    F.normal_(_sized(result, size), 0.0, 1.0)


@_below("aten::randint.out(SymInt high, SymInt[] size, *, Tensor result) -> ()")
def randint(high: int, size: tuple, result: Any) -> None:
    F.random_(_sized(result, size), 0, high)


@_below("aten::randint.low_out(SymInt low, SymInt high, SymInt[] size, *, Tensor result) -> ()")
def randint_low(low: int, high: int, size: tuple, result: Any) -> None:
    F.random_(_sized(result, size), low, high)


@_below(
    "aten::normal.float_float_out(float mean, float std, SymInt[] size, *, Generator? generator=None, Tensor result) -> ()"
)
def normal(mean: float, std: float, size: tuple, generator: Any, result: Any) -> None:
    F.normal_(_sized(result, size), mean, std, generator=generator)
