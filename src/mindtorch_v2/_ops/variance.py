"""Variances and standard deviations, over all elements or along dimensions; with the mean too."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from .. import _dispatch
from .._dispatch import MISSING, function, op, unalias
from .._dtype import BY_NUM, INTEGRAL_NUMS, LOW_FLOATS
from . import _dims
from ._namespace import functions as F
from ._reduction import restore
from .pointwise import mul_scalar
from .sums import mean_grad


def _variance(
    name: str, array: np.ndarray, dims: Any, correction: float, keepdim: bool, root: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The variance, or its square root, and the mean."""
    if array.dtype.num in INTEGRAL_NUMS:
        text = "std and var only support" if name in ("std", "var") else f"{name} only support"
        raise RuntimeError(f"{text} floating point and complex dtypes")
    wide = array.astype(np.float32) if array.dtype in LOW_FLOATS else array
    count = math.prod([array.shape[d] for d in dims]) if array.ndim else 1
    left = count - correction
    if left <= 0:
        _warn_degrees(name)
    variance, center = _variance_of(wide, dims, count, left, keepdim)
    if left > 0 and variance.dtype.num == _FLOAT32_NUM and not _is_finite(variance):
        # squares of large numbers overflow
        double = np.float64 if wide.dtype.kind == "f" else np.complex128
        with np.errstate(over="ignore", invalid="ignore"):
            variance, center = _variance_of(wide.astype(double), dims, count, left, keepdim)
    if root:
        variance = np.sqrt(variance)
    kind = BY_NUM[array.dtype.num].to_real()._np if array.dtype.kind in "cW" else array.dtype
    return np.asarray(variance, kind, order="C"), np.asarray(center, array.dtype, order="C")


_FLOAT32_NUM = np.dtype(np.float32).num


def _is_finite(variance: Any) -> bool:
    """Whether all are finite; of one number without a ufunc, which takes 2 µs."""
    return math.isfinite(variance) if variance.ndim == 0 else bool(np.isfinite(variance).all())


def _variance_of(
    wide: np.ndarray, dims: Any, count: int, left: float, keepdim: bool
) -> tuple[np.ndarray, np.ndarray]:
    center = np.add.reduce(wide, axis=dims, keepdims=True) / wide.dtype.type(count)
    away = wide - center
    if wide.dtype.kind in "cW":
        square = np.add.reduce(away.real**2 + away.imag**2, axis=dims, keepdims=keepdim)
    else:
        square = np.add.reduce(
            np.multiply(away, away, away if away.__class__ is np.ndarray else None),
            axis=dims,
            keepdims=keepdim,
        )
    variance = np.divide(square, square.dtype.type(max(left, 0)))
    return variance, center if keepdim or not wide.ndim else np.squeeze(center, dims)


def _warn_degrees(name: str) -> None:
    warnings.warn(
        f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel divided by output numel).",
        UserWarning,
        stacklevel=5,
    )


_VARIANCE_SCHEMA = "(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "


def _correction(value: Any) -> Any:
    """The number subtracted from n (the old flag `unbiased` is one too); None stands for 1."""
    return 1 if value is None else value


@op("aten::var.correction" + _VARIANCE_SCHEMA + "Tensor", expose="no")
def var_op(self: np.ndarray, dim: Any, correction: Any, keepdim: bool) -> Any:
    return _variance("var", self, _dims.many(dim, self.ndim), _correction(correction), keepdim)[0]


@op("aten::std.correction" + _VARIANCE_SCHEMA + "Tensor", expose="no")
def std_op(self: np.ndarray, dim: Any, correction: Any, keepdim: bool) -> Any:
    return _variance("std", self, _dims.many(dim, self.ndim), _correction(correction), keepdim, True)[0]


@op("aten::var_mean.correction" + _VARIANCE_SCHEMA + "(Tensor, Tensor)", expose="no")
def var_mean_op(self: np.ndarray, dim: Any, correction: Any, keepdim: bool) -> Any:
    return _variance("var_mean", self, _dims.many(dim, self.ndim), _correction(correction), keepdim)


@op("aten::std_mean.correction" + _VARIANCE_SCHEMA + "(Tensor, Tensor)", expose="no")
def std_mean_op(self: np.ndarray, dim: Any, correction: Any, keepdim: bool) -> Any:
    return _variance("std_mean", self, _dims.many(dim, self.ndim), _correction(correction), keepdim, True)


def _var_grad(g: Any, self: Any, dim: Any, correction: Any, keepdim: bool, self_shape: Any) -> Any:
    dims = _dims.many(dim, len(self_shape))
    count = math.prod([self_shape[d] for d in dims])
    left = count - _correction(correction)
    scale = 2.0 / left if left > 0 else math.inf if left == 0 else math.nan
    if not self_shape:
        return F.full((), math.nan, dtype=g.dtype) if left <= 0 else F.zeros_like(g)
    if dim is None or (len(dims) == len(self_shape) and not keepdim):
        centred = self - self.mean()
        return mul_scalar(g, scale) * centred
    g = restore(g, dim, keepdim, self_shape)
    centred = self - self.mean(dims, True)
    return mul_scalar(g, scale) * centred


def _std_grad(g: Any, self: Any, out: Any, dim: Any, correction: Any, keepdim: bool, self_shape: Any) -> Any:
    slope = F.masked_fill_(g / mul_scalar(out, 2), out == 0, 0)
    return _var_grad(slope, self, dim, correction, keepdim, self_shape)


var_op.derivative(self=_var_grad)
std_op.derivative(self=_std_grad)


def _with_mean(gradient: Any, g: Any, dim: Any, keepdim: bool, self_shape: Any) -> Any:
    """A gradient with that of the mean added; either may be None."""
    if g is None:
        return gradient
    part = mean_grad(g, dim, keepdim, self_shape)
    return part if gradient is None else gradient + part


@var_mean_op.backward("self")
def _(grads: Any, self: Any, dim: Any, correction: Any, keepdim: bool, self_shape: Any) -> Any:
    gradient = None
    if grads[0] is not None:
        gradient = _var_grad(grads[0], self, dim, correction, keepdim, self_shape)
    return (_with_mean(gradient, grads[1], dim, keepdim, self_shape),)


@std_mean_op.backward("self")
def _(grads: Any, self: Any, result0: Any, dim: Any, correction: Any, keepdim: bool, self_shape: Any) -> Any:
    gradient = None
    if grads[0] is not None:
        gradient = _std_grad(grads[0], self, result0, dim, correction, keepdim, self_shape)
    return (_with_mean(gradient, grads[1], dim, keepdim, self_shape),)


def _variance_front(name: str, chosen: Any) -> None:
    def front(
        input: Any,
        dim: Any = None,
        unbiased: Any = None,
        keepdim: bool = False,
        *,
        correction: Any = MISSING,
        out: Any = None,
        **aliases: Any,
    ) -> Any:
        if aliases:
            return unalias(
                front,
                aliases,
                input=input,
                dim=dim,
                unbiased=unbiased,
                keepdim=keepdim,
                correction=correction,
                out=out,
            )
        if isinstance(dim, bool):  # x.std(False): the old order of arguments
            dim, unbiased = None, dim
        if unbiased is not None:
            correction = _dispatch._dtype.Flag(bool(unbiased))
        elif correction is MISSING:
            correction = None if dim is None else _dispatch._dtype.Flag(1)
        if out is not None:
            return _dispatch.made(chosen, out, input, dim, correction, keepdim)
        return chosen(input, dim, correction=correction, keepdim=keepdim)

    front.__name__ = name
    front.__doc__ = f"{name} of all elements, or along dimensions, divided by n - correction."
    function(name)(front) if name in ("var", "std") else function(name, expose="function")(front)


for _name, _op in (("var", var_op), ("std", std_op), ("var_mean", var_mean_op), ("std_mean", std_mean_op)):
    _variance_front(_name, _op)
