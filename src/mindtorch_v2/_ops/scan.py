"""Running totals along a dimension: cumulative sums, products, extremes, log-sums; differences and products over ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch, return_types
from .._dispatch import function, op
from .._dtype import INTEGRAL_NUMS, LOW_FLOATS
from . import _dims, _shown
from ._namespace import functions as F
from .pointwise import conj, mul_scalar


def _running(ufunc: Any, self: np.ndarray, dim: int, dtype: Any) -> np.ndarray:
    if dtype is not None:
        self = self.astype(dtype._np)
    dim = _dims.one(dim, self.ndim)
    kind = (
        np.int64
        if self.dtype.num in INTEGRAL_NUMS and dtype is None
        else np.float32
        if self.dtype in LOW_FLOATS
        else self.dtype
    )
    if not self.ndim:
        return self.astype(kind if self.dtype.num in INTEGRAL_NUMS else self.dtype)
    made = _dims.dense(ufunc.accumulate(self, axis=dim, dtype=kind))
    return made.astype(self.dtype) if self.dtype in LOW_FLOATS else made


@op("aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", inplace=True, out=True)
def cumsum(self: np.ndarray, dim: int, dtype: Any) -> np.ndarray:
    return _running(np.add, self, dim, dtype)


def _reversed_sum(g: Any, dim: int) -> Any:
    return g if not g.ndim else g.flip(dim).cumsum(dim).flip(dim)


cumsum.derivative(self=lambda g, dim, self_dtype: _reversed_sum(_shown.cast(g, self_dtype), dim))


@op("aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", inplace=True, out=True)
def cumprod(self: np.ndarray, dim: int, dtype: Any) -> np.ndarray:
    return _running(np.multiply, self, dim, dtype)


def _cumprod_grad(g: Any, self: Any, out: Any, dim: int) -> Any:
    """d out[k] / d self[i] is the product of all others up to k: exact also where there are zeros."""
    if not self.ndim:
        return g.clone()
    if not (self._array == 0).any():
        return _reversed_sum(g * conj(out), dim) / conj(self)
    dim = _dims.one(dim, self.ndim)
    n = self.shape[dim]
    x = self.movedim(dim, -1)
    gg = g.movedim(dim, -1)
    columns = []
    for i in range(n):
        before = x.narrow(-1, 0, i).prod(-1, True) if i else F.ones((*x.shape[:-1], 1), dtype=x.dtype)
        tail = [before]
        if i + 1 < n:
            tail.append(before * x.narrow(-1, i + 1, n - i - 1).cumprod(-1))
        columns.append((gg.narrow(-1, i, n - i) * conj(F.cat(tail, -1))).sum(-1))
    return F.stack(columns, -1).movedim(-1, dim)


@op("aten::cumprod_backward(Tensor grad, Tensor input, int dim, Tensor output) -> Tensor", on="tensors", expose="no")
def cumprod_backward(grad: Any, input: Any, dim: int, output: Any) -> Any:
    if not input.ndim:
        return grad.clone()
    product = grad * conj(output)
    if not F.item(F.any(input == 0)):
        return _reversed_sum(product, dim) / conj(input)
    return _cumprod_grad(grad, input, output, dim)


def _cumprod_rule(g: Any, self: Any, out: Any, dim: int, self_dtype: Any) -> Any:
    if _dispatch.grad_state.enabled:
        return _cumprod_grad(g, self, out, dim)
    return cumprod_backward(_shown.cast(g, self_dtype), self, dim, out)


cumprod.derivative(self=_cumprod_rule)


def _running_extreme(name: str, better: Any) -> None:
    @op(
        f"aten::{name}(Tensor self, int dim) -> (Tensor values, Tensor indices)",
        returns=getattr(return_types, name),
        out=True,
    )
    def extreme(self: np.ndarray, dim: int) -> Any:
        if self.dtype.kind == "c":
            raise _dispatch.not_implemented(f"{name}_cpu", self)
        if not self.ndim and dim not in (0, -1):
            raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
        dim = _dims.one(dim, self.ndim)
        self = _dims.dense(self)
        if not self.ndim:
            return self.copy(), np.zeros((), np.int64)
        ufunc = np.maximum if name == "cummax" else np.minimum
        values = ufunc.accumulate(self, axis=dim)
        index = np.arange(self.shape[dim]).reshape([-1 if d == dim else 1 for d in range(self.ndim)])
        hit = (self == values) | (self != self)
        return values, np.maximum.accumulate(np.where(hit, index, 0), axis=dim).astype(np.int64)

    extreme.derivative(
        self=lambda g, indices, dim, self_shape: (
            F.scatter_add(F.zeros(self_shape, dtype=g.dtype), dim, indices, g) if self_shape else g
        )
    )


_running_extreme("cummax", np.greater_equal)
_running_extreme("cummin", np.less_equal)


@op("aten::logcumsumexp(Tensor self, int dim) -> Tensor", out=True)
def logcumsumexp(self: np.ndarray, dim: int) -> np.ndarray:
    dim = _dims.one(dim, self.ndim)
    if self.dtype.num in INTEGRAL_NUMS:
        raise _dispatch.not_implemented("logcumsumexp_out_cpu", self)
    if not self.ndim or not self.size:
        return self.copy()
    if self.dtype.kind == "c":
        return _running_log_sum(self, dim)
    wide = self.astype(np.float32) if self.dtype in LOW_FLOATS else self
    return _dims.dense(np.logaddexp.accumulate(wide, axis=dim)).astype(self.dtype, copy=False)


def _running_log_sum(self: np.ndarray, dim: int) -> np.ndarray:
    top = np.maximum.reduce(self.real, axis=dim, keepdims=True)  # phases are those of the plain sums
    return _dims.dense(np.log(np.add.accumulate(np.exp(self - top), axis=dim)) + top)


def _logcumsumexp_grad(g: Any, self: Any, out: Any, dim: int) -> Any:
    if not self.ndim:
        return g
    # exp(self) * reversed sum of g * exp(-out), with the signs of g kept apart so that logs exist
    low = F.full((), -float("inf"), dtype=self.dtype)
    positive = F.where(g > 0, F.log(F.abs(g)), low)
    negative = F.where(g < 0, F.log(F.abs(g)), low)

    def back(logs: Any) -> Any:
        # where nothing was added up yet there is no difference of logs
        difference = F.where(out == low, low, logs - out)
        return F.exp(F.logcumsumexp(difference.flip(dim), dim).flip(dim) + self)

    return back(positive) - back(negative)


logcumsumexp.derivative(self=_logcumsumexp_grad)


@function()
def diff(
    input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None, *, out: Any = None
) -> Any:
    """Differences of neighbours along a dimension, n times."""
    if not input.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    along = _dims.one(dim, input.ndim)
    for part in (prepend, append):
        for d in range(input.ndim) if part is not None else ():
            if d != along and part.shape[d] != input.shape[d]:
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input except along the differencing "
                    f"dimension; input.size({d}) = {input.shape[d]}, but got tensor.size({d}) = {part.shape[d]}"
                )
    parts = [p for p in (prepend, input, append) if p is not None]
    made = F.cat(parts, dim) if len(parts) > 1 else input
    for _ in range(n):
        length = made.shape[dim]
        if length <= 1:
            made = made.narrow(dim, 0, 0).clone()
            break
        a, b = made.narrow(dim, 1, length - 1), made.narrow(dim, 0, length - 1)
        made = F.logical_xor(a, b) if made.dtype._rank == 0 else a - b
    if out is not None:
        _dispatch.give_out(out, made._array)
        return out
    return made


def _spacing(y: Any, x: Any, dx: Any, dim: int) -> Any:
    if x is not None:
        return (
            F.diff(x, dim=-1 if x.ndim == 1 else dim)
            if x.ndim == y.ndim or x.ndim == 1
            else F.diff(x, dim=dim)
        )
    return 1 if dx is None else dx


def _trapezoid_pairs(y: Any, dim: int) -> Any:
    n = y.shape[dim]
    return y.narrow(dim, 1, n - 1) + y.narrow(dim, 0, n - 1)


def _weighted_pairs(y: Any, x: Any, dx: Any, dim: int) -> Any:
    dim = _dims.one(dim, y.ndim)
    steps = _spacing(y, x, dx, dim)
    if x is not None and x.ndim == 1 and y.ndim > 1:
        steps = steps.reshape([-1 if d == dim else 1 for d in range(y.ndim)])
    return _trapezoid_pairs(y, dim) * steps / 2.0


@function(expose="function")
def trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The integral by the trapezoidal rule."""
    if x is None:  # a constant step comes last, as in torch
        return mul_scalar(_trapezoid_pairs(y, _dims.one(dim, y.ndim)).sum(dim), (1 if dx is None else dx) / 2)
    return _weighted_pairs(y, x, dx, dim).sum(dim)


@function(expose="function")
def trapz(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The integral by the trapezoidal rule."""
    return trapezoid(y, x, dx=dx, dim=dim)


@function(expose="function")
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The running integral by the trapezoidal rule."""
    return _weighted_pairs(y, x, dx, dim).cumsum(dim)
