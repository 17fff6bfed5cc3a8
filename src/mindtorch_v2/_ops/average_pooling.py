"""Average pooling over one to three dimensions, plain and adaptive. Averages are separable: sums along one dimension after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _op_errors
from .._dispatch import composite, op
from .._dtype import FLOAT_NUMS
from . import _core
from ._double_backward import zeros_of
from ._half_precision import in_float32
from ._namespace import functions as F
from ._pooling_windows import bins, check_sizes, check_window, one_int, per_dim, pooled_size, widened


def _divisors(n: int, o: int, k: int, s: int, p: int, include_pad: bool) -> np.ndarray:
    start = np.arange(o) * s - p
    end = np.minimum(start + k, n + p)
    return (end - start) if include_pad else (np.minimum(end, n) - np.maximum(start, 0))


def _divisor(
    spatial: tuple,
    out: tuple,
    kernel: tuple,
    stride: tuple,
    padding: tuple,
    include_pad: bool,
    override: Any,
    kind: Any,
) -> Any:
    if override is not None:
        if override == 0:
            raise RuntimeError("divisor must be not zero")
        return kind(override)
    parts = [_divisors(*args, include_pad) for args in zip(spatial, out, kernel, stride, padding)]
    counts = parts[0].astype(np.float64)
    for part in parts[1:]:
        counts = counts[..., None] * part
    return kind(counts.flat[0]) if counts.size and (counts == counts.flat[0]).all() else counts.astype(kind)


@in_float32
def avg_pool(
    x: np.ndarray,
    kernel: tuple,
    stride: tuple,
    padding: tuple,
    ceil_mode: bool,
    include_pad: bool,
    override: Any,
) -> np.ndarray:
    """Averages of windows: sums along one dimension after the other."""
    x = x if x.flags.c_contiguous else np.ascontiguousarray(x)
    fused = _core.avg_pool(x, kernel, stride, padding, ceil_mode, include_pad, override)
    if fused is not None:
        return fused
    dims = len(kernel)
    ones = (1,) * dims
    out = tuple(pooled_size(*args, ceil_mode) for args in zip(x.shape[-dims:], kernel, padding, stride, ones))
    check_sizes(x, kernel, stride, padding, out)
    total = widened(x, padding, kernel, stride, ones, out, 0)
    for d, (k, o, s) in enumerate(zip(kernel, out, stride)):
        total = _window_sums(total, x.ndim - dims + d, k, o, s)
    return np.divide(
        total, _divisor(x.shape[-dims:], out, kernel, stride, padding, include_pad, override, x.dtype.type)
    ).astype(x.dtype, copy=False)


def _along(axis: int, window: Any) -> tuple:
    return (*[slice(None)] * axis, window)


def _window_sums(x: np.ndarray, axis: int, kernel: int, out: int, stride: int) -> np.ndarray:
    """Sums of `out` windows along one axis, each added up from its first number. A sum of zeros is not negative."""
    windows = [x[_along(axis, slice(k, k + (out - 1) * stride + 1, stride))] for k in range(kernel)]
    total = np.add(windows[0], x.dtype.type(0), order="C")
    for values in windows[1:]:
        np.add(total, values, total)
    return total


@in_float32
def avg_pool_gradient(
    g: np.ndarray,
    shape: tuple,
    kernel: tuple,
    stride: tuple,
    padding: tuple,
    include_pad: bool,
    override: Any,
) -> np.ndarray:
    """The gradient of an average pool for an input of `shape`."""
    fused = _core.avg_pool_backward(g, shape, kernel, stride, padding, include_pad, override)
    if fused is not None:
        return fused
    dims = len(kernel)
    out, spatial = g.shape[-dims:], shape[-dims:]
    spread = g / _divisor(spatial, out, kernel, stride, padding, include_pad, override, g.dtype.type)
    for d, (n, o, k, s, p) in enumerate(zip(spatial, out, kernel, stride, padding)):
        axis = g.ndim - dims + d
        size = (*spread.shape[:axis], max((o - 1) * s + k, n + 2 * p), *spread.shape[axis + 1 :])
        gradient = np.zeros(size, g.dtype)
        for i in range(k):
            gradient[_along(axis, slice(i, i + (o - 1) * s + 1, s))] += spread
        spread = gradient[_along(axis, slice(p, p + n))]
    return np.ascontiguousarray(spread)


def _declare_avg(dims: int, aten_name: str, backward_name: str) -> Any:
    name = aten_name.removeprefix("aten::")

    @op(
        f"{aten_name}(Tensor self, int[{dims}] kernel_size, int[{dims}] stride=[], int[{dims}] padding=0, bool ceil_mode=False, "
        "bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        expose="no",
        node=f"AvgPool{dims}DBackward0",
        out=True,
    )
    def pool(
        self: np.ndarray,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: Any,
    ) -> np.ndarray:
        check_window(name, dims, kernel_size, stride, padding)
        kernel = per_dim(kernel_size, dims)
        if self.ndim not in (dims + 1, dims + 2):
            raise RuntimeError(f"non-empty {dims + 1}D or {dims + 2}D (batch mode) tensor expected for input")
        return avg_pool(
            self,
            kernel,
            per_dim(stride, dims) if stride else kernel,
            per_dim(padding, dims),
            ceil_mode,
            count_include_pad,
            divisor_override,
        )

    @op(
        f"{backward_name}(Tensor grad_output, Tensor self, int[{dims}] kernel_size, int[{dims}] stride, int[{dims}] padding, "
        "bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
        expose="no",
    )
    def backward(
        grad_output: np.ndarray,
        self: np.ndarray,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: Any,
    ) -> np.ndarray:
        kernel = per_dim(kernel_size, dims)
        steps = per_dim(stride, dims) if stride else kernel
        return avg_pool_gradient(
            grad_output,
            self.shape,
            kernel,
            steps,
            per_dim(padding, dims),
            count_include_pad,
            divisor_override,
        )

    pool.derivative(
        self=lambda g, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: (
            backward(g, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        )
    )
    backward.derivative(
        grad_output=lambda g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: (
            pool(g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        ),
        self=zeros_of,
    )
    return pool


avg_pool2d = _declare_avg(2, "aten::avg_pool2d", "aten::avg_pool2d_backward")
avg_pool3d = _declare_avg(3, "aten::avg_pool3d", "aten::avg_pool3d_backward")


@composite(
    "aten::avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, "
    "bool count_include_pad=True) -> Tensor",
    expose="function",
)
def avg_pool1d(
    self: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool
) -> Any:
    kernel = one_int("avg_pool1d", "kernel_size", kernel_size)
    steps = per_dim(stride, 1) if stride not in ((), [], None) else kernel
    averages = avg_pool2d(
        F.unsqueeze(self, -2),
        (1, *kernel),
        (1, *steps),
        (0, *per_dim(padding, 1)),
        ceil_mode,
        count_include_pad,
    )
    return F.squeeze(averages, -2)


# ---------------------------------------------------------------------------------------------------- adaptive


def _bin_sums(x: np.ndarray, axis: int, out: int) -> np.ndarray:
    """Sums of `out` bins along one axis, each added up from its first number."""
    n = x.shape[axis]
    if n % out == 0:
        return _window_sums(x, axis, n // out, out, n // out)
    starts, ends = (np.array(edge, np.int64) for edge in zip(*bins(n, out)))
    sizes = ends - starts
    shortest, longest = int(sizes.min()), int(sizes.max())
    total = np.add(x.take(starts, axis), x.dtype.type(0))
    for k in range(1, shortest):
        np.add(total, x.take(starts + k, axis), total)
    for k in range(max(shortest, 1), longest):
        inside = np.flatnonzero(sizes > k)
        total[_along(axis, inside)] += x.take(starts[inside] + k, axis)
    return total


def _bin_counts(spatial: tuple, out: tuple, kind: Any) -> np.ndarray:
    """How many numbers each bin has."""
    counts: Any = np.ones((), np.float64)
    for n, o in zip(spatial, out):
        counts = counts[..., None] * np.array([end - start for start, end in bins(n, o)], np.float64)
    return counts.astype(kind)


@in_float32
def adaptive_average(x: np.ndarray, size: tuple) -> np.ndarray:
    """Averages of bins: sums along one dimension after the other."""
    fused = _core.adaptive_avg_pool(x, size)
    if fused is not None:
        return fused
    dims = len(size)
    if 0 in size:
        return np.empty((*x.shape[:-dims], *size), x.dtype)
    total = x
    for d, out in enumerate(size):
        total = _bin_sums(total, x.ndim - dims + d, out)
    return np.ascontiguousarray(total / _bin_counts(x.shape[-dims:], size, x.dtype))


@in_float32
def adaptive_average_gradient(g: np.ndarray, shape: tuple, dims: int) -> np.ndarray:
    """The gradient of `adaptive_average` for an input of `shape`."""
    fused = _core.adaptive_avg_pool_backward(g, shape, dims)
    if fused is not None:
        return fused
    out, spatial = g.shape[-dims:], shape[-dims:]
    spread = g / _bin_counts(spatial, out, g.dtype)
    for d, (n, o) in enumerate(zip(spatial, out)):
        axis = g.ndim - dims + d
        gradient = np.zeros((*spread.shape[:axis], n, *spread.shape[axis + 1 :]), g.dtype)
        for i, (start, end) in reversed(list(enumerate(bins(n, o)))):
            gradient[_along(axis, slice(start, end))] += spread[_along(axis, slice(i, i + 1))]
        spread = gradient
    return spread


def _declare_adaptive_avg(dims: int, aten_name: str, inner_name: str, backward_name: str) -> Any:
    name = aten_name.removeprefix("aten::")

    @op(
        f"{inner_name}(Tensor self, SymInt[{dims}] output_size) -> Tensor",
        expose="no",
        node=f"AdaptiveAvgPool{dims}DBackward0",
    )
    def pool(self: np.ndarray, output_size: Any) -> np.ndarray:
        size = per_dim(output_size, dims)
        if self.dtype.num not in FLOAT_NUMS:
            if self.size:
                raise _op_errors.not_implemented(name, self)
            return np.empty((*self.shape[:-dims], *size), self.dtype)
        return adaptive_average(self, size)

    @op(f"{backward_name}(Tensor grad_output, Tensor self) -> Tensor", expose="no")
    def backward(grad_output: np.ndarray, self: np.ndarray) -> np.ndarray:
        return adaptive_average_gradient(grad_output, self.shape, dims)

    pool.derivative(self=lambda g, self: backward(g, self))
    backward.derivative(
        grad_output=lambda g, grad_output_shape: pool(g, grad_output_shape[-dims:]),
        self=zeros_of,
    )

    @composite(f"{aten_name}(Tensor self, SymInt[{dims}] output_size) -> Tensor", expose="no")
    def public(self: Any, output_size: Any) -> Any:
        if output_size.__class__ is not int and len(output_size) != dims:
            raise RuntimeError(f"{name}: output_size must be {dims}")
        size = per_dim(output_size, dims)
        if any(n < 0 for n in size):
            raise RuntimeError(
                f"{name}: elements of output_size must be greater than or equal to 0 but received {{{', '.join(map(str, size))}}}"
            )
        if all(n == 1 for n in size):
            return F.mean(self, tuple(range(-dims, 0)), True)
        return pool(self, size)

    return public


adaptive_avg_pool2d = _declare_adaptive_avg(
    2, "aten::adaptive_avg_pool2d", "aten::_adaptive_avg_pool2d", "aten::_adaptive_avg_pool2d_backward"
)
adaptive_avg_pool3d = _declare_adaptive_avg(
    3, "aten::adaptive_avg_pool3d", "aten::_adaptive_avg_pool3d", "aten::_adaptive_avg_pool3d_backward"
)


@composite("aten::adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor", expose="function")
def adaptive_avg_pool1d(self: Any, output_size: Any) -> Any:
    return F.squeeze(
        adaptive_avg_pool2d(
            F.unsqueeze(self, -2), (1, *one_int("adaptive_avg_pool1d", "output_size", output_size))
        ),
        -2,
    )
