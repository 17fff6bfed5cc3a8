"""Ranges of numbers (arange, linspace, logspace) and the identity matrix."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _device, _dispatch, _dtype, _op_errors
from .._dispatch import function, op, wrap
from .._dtype import Default
from .._meta import meta_tensor
from .._sampling import fma64
from . import factories_out
from ._children import Child, child, dtype_or_default, empty, tensor_of, zero_
from .creation import _STRIDED, _np, check_out_dtype, finish


def _count_dtype(*numbers: Any) -> Any:
    if any(
        (isinstance(n, _dispatch.Tensor) and n.dtype._rank >= 2) or isinstance(n, (float, np.floating))
        for n in numbers
    ):
        return Default.dtype
    return _dtype.int64


@op(
    "aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor",
    expose="no",
    nondifferentiable=True,
)
def _arange(start: Any, end: Any, step: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    dtype = dtype or _count_dtype(start, end, step)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    for bound in (start, end):
        if not math.isfinite(bound):
            raise RuntimeError(f"unsupported range: {float(start):g} -> {float(end):g}")
    if (step > 0) != (end >= start) and start != end:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype._rank == 1 and all(isinstance(v, int) for v in (start, end, step)):
        return np.arange(start, end, step, dtype=dtype._np)
    if dtype is _dtype.int64:  # counted with whole numbers, where other integral dtypes count with fractions
        if not int(step):
            raise ValueError("step must be nonzero")
        return np.arange(int(start), int(end), int(step), dtype=dtype._np)
    count = max(0, math.ceil((float(end) - float(start)) / float(step)))
    if dtype._rank == 1:
        return (int(start) + int(step) * np.arange(count, dtype=np.int64)).astype(dtype._np)
    return (start + step * np.arange(count, dtype=np.float64)).astype(dtype._np)


@op(
    "aten::arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor",
    expose="no",
    nondifferentiable=True,
)
def _arange_start(start: Any, end: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return _arange.op.kernel(start, end, 1, dtype, layout, device, pin_memory)


@op(
    "aten::arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    expose="no",
    nondifferentiable=True,
)
def _arange_end(end: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return _arange.op.kernel(0, end, 1, dtype, layout, device, pin_memory)


@function(expose="function")
def arange(
    start: Any = 0,
    end: Any = None,
    step: Any = 1,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = _STRIDED,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """Numbers from start up to, not including, end."""
    if out is not None:
        check_out_dtype(dtype, out)
        if end is None and step == 1:
            factories_out.arange(start, result=out)
        else:
            factories_out.arange_step(*((0, start) if end is None else (start, end)), step, result=out)
        return finish(out, requires_grad, pin_memory)
    if end is None and step == 1:
        tensor = _arange_end(start, dtype=dtype)
    else:
        first, last = (0, start) if end is None else (start, end)
        if step == 1:
            tensor = _arange_start(first, last, dtype=dtype)
        else:
            tensor = _arange(first, last, step, dtype=dtype)
    if _device.resolve(device) is _device.META:
        tensor = meta_tensor(tensor.shape, tensor._array.dtype)
    return finish(tensor, requires_grad, pin_memory)


@function("range", expose="function")
def range_(
    start: Any = 0,
    end: Any = None,
    step: Any = 1,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = _STRIDED,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """Numbers from start up to and including end."""
    import warnings

    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's range "
        "builtin. Instead, use torch.arange, which produces values in [start, end).",
        UserWarning,
        stacklevel=2,
    )
    start, end = (0, start) if end is None else (start, end)
    count = math.floor((end - start) / step) + 1
    return finish(wrap((start + step * np.arange(count)).astype(_np(dtype))), requires_grad, False, out)


def _line(start: float, end: float, steps: int, dtype: Any) -> np.ndarray:
    """`steps` numbers from start to end, counted from both ends as torch does, so that both are exact. Float32 and float64
    have one rounding in each product and sum, the shorter floats one after every step."""
    if steps == 1:
        return np.full(1, start)
    half = steps // 2
    lower, upper = np.arange(half, dtype=np.float64), np.arange(steps - 1 - half, -1, -1, dtype=np.float64)
    if dtype._np in _dtype.LOW_FLOATS:
        kind = dtype._np.type
        first, last = kind(start), kind(end)
        step = kind((last - first) / kind(steps - 1))
        return np.concatenate(
            [
                first + (step * lower.astype(dtype._np)).astype(dtype._np),
                last - (step * upper.astype(dtype._np)).astype(dtype._np),
            ]
        )
    if dtype is _dtype.float32:
        first, last = np.float32(start), np.float32(end)
        step = float((last - first) / np.float32(steps - 1))
        line = np.empty(steps, np.float32)
        for part, count, end_point, by in (
            (line[:half], lower, first, step),
            (line[half:], upper, last, -step),
        ):
            np.multiply(count, by, count)
            np.add(count, float(end_point), part, casting="same_kind")
        return line
    if dtype.is_complex:
        parts = [(v.real, v.imag) if isinstance(v, complex) else (v, 0.0) for v in (start, end)]
        line = np.empty(steps, dtype._np)
        line.real, line.imag = (_line(first, last, steps, dtype.to_real()) for first, last in zip(*parts))
        return line
    if dtype._rank < 2:
        start, end = int(start), int(end)
    step = (end - start) / (steps - 1)
    return np.concatenate([fma64(lower, step, start), fma64(upper, -step, end)])


def _spaced(aten_name: str, schema: str, finish_line: Any) -> Any:
    text = (
        f"{aten_name}(Scalar start, Scalar end, int steps{schema}, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor"
    )
    return op(text, expose="no", nondifferentiable=True)(finish_line)


def _linspace_kernel(
    start: Any, end: Any, steps: int, dtype: Any, layout: Any, device: Any, pin_memory: Any
) -> Any:
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if dtype is None:
        dtype = Default.dtype.to_complex() if isinstance(start + end, complex) else Default.dtype
    return _line(start, end, steps, dtype).astype(dtype._np) if steps else np.empty(0, dtype._np)


def _logspace_kernel(
    start: Any, end: Any, steps: int, base: float, dtype: Any, layout: Any, device: Any, pin_memory: Any
) -> Any:
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    dtype = dtype or Default.dtype
    return (
        np.power(float(base), _line(start, end, steps, dtype)).astype(dtype._np)
        if steps
        else np.empty(0, dtype._np)
    )


_linspace = _spaced("aten::linspace", "", _linspace_kernel)


def _spaced_children(out: str, steps: Any, numbers: tuple, options: tuple, settings: Any) -> list[Child]:
    """An output, which the overload that writes into one fills."""
    dtype, layout, _, pin_memory = options
    dtype = dtype_or_default(dtype, settings)
    return [empty((steps,), dtype, layout, pin_memory), child(out, *numbers, tensor_of((steps,), dtype))]


_linspace.children(
    lambda start, end, steps, *options, settings: _spaced_children(
        "aten::linspace.out", steps, (start, end, steps), options, settings
    )
)
_logspace = _spaced("aten::logspace", ", float base=10.0", _logspace_kernel)


_logspace.children(
    lambda start, end, steps, base, *options, settings: _spaced_children(
        "aten::logspace.out", steps, (start, end, steps, base), options, settings
    )
)


def _check_spaced(name: str, start: Any, end: Any, steps: Any) -> int:
    """The number of steps. Ends that are tensors have no dimensions."""
    if isinstance(steps, float):
        raise _op_errors.no_overload(name, start, end, steps)
    dims = [end_.dim() if isinstance(end_, _dispatch.Tensor) else 0 for end_ in (start, end)]
    if any(dims):
        raise RuntimeError(
            f"{name} only supports 0-dimensional start and end tensors, but got start with {dims[0]} dimension(s) and end with "
            f"{dims[1]} dimension(s)."
        )
    return int(steps)


@function(expose="function")
def linspace(
    start: Any,
    end: Any,
    steps: Any,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = _STRIDED,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """Evenly spaced numbers, both ends included."""
    steps = _check_spaced("linspace", start, end, steps)
    if out is not None:
        check_out_dtype(dtype, out)
        factories_out.linspace(start, end, steps, result=out)
        return finish(out, requires_grad, pin_memory)
    tensor = _linspace(start, end, steps, dtype=dtype)
    if _device.resolve(device) is _device.META:
        tensor = meta_tensor(tensor.shape, tensor._array.dtype)
    return finish(tensor, requires_grad, pin_memory)


@function(expose="function")
def logspace(
    start: Any,
    end: Any,
    steps: Any,
    base: float = 10.0,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = _STRIDED,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """Powers of `base` with evenly spaced exponents."""
    steps = _check_spaced("logspace", start, end, steps)
    if out is not None:
        check_out_dtype(dtype, out)
        factories_out.logspace(start, end, steps, base, result=out)
        return finish(out, requires_grad, pin_memory)
    tensor = _logspace(start, end, steps, base, dtype=dtype)
    if _device.resolve(device) is _device.META:
        tensor = meta_tensor(tensor.shape, tensor._array.dtype)
    return finish(tensor, requires_grad, pin_memory)


@op(
    "aten::eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    expose="no",
    nondifferentiable=True,
)
def _eye(n: int, m: int, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    for name, size in (("n", n), ("m", m)):
        if size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    return np.eye(n, m, dtype=_np(dtype))


@op(
    "aten::eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    expose="no",
    nondifferentiable=True,
)
def _eye_square(n: int, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return _eye.op.kernel(n, n, dtype, layout, device, pin_memory)


@_eye.children
def _(n: Any, m: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, *, settings: Any) -> list[Child]:
    """An output that is made without a size, given its size, and cleared."""
    kind = dtype_or_default(dtype, settings)
    out = tensor_of((0,), kind)
    filled = [child("aten::resize_", out, (n, m), allocates=True), zero_(tensor_of((n, m), kind))]
    return [
        empty((0,), dtype, layout, pin_memory, allocates=False),
        child("aten::eye.m_out", n, m, out, children=filled, allocates=True),
    ]


_eye_square.children(lambda n, *options, settings: _eye.op.children_rule(n, n, *options, settings=settings))


@function(expose="function")
def eye(
    n: int,
    m: int | None = None,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = _STRIDED,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """Ones on the diagonal, zeros elsewhere."""
    if n < 0:
        raise RuntimeError(f"n must be greater or equal to 0, got {n}")
    if out is not None:
        check_out_dtype(dtype, out)
        factories_out.eye(n, result=out) if m is None else factories_out.eye_m(n, m, result=out)
        return finish(out, requires_grad, pin_memory)
    tensor = _eye_square(n, dtype=dtype) if m is None else _eye(n, m, dtype=dtype)
    if _device.resolve(device) is _device.META:
        tensor = meta_tensor(tensor.shape, tensor._array.dtype)
    return finish(tensor, requires_grad, pin_memory)
