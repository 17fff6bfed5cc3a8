"""Running totals along a dimension: cumulative sums, products, extremes, log-sums; differences and products over ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch, _op_errors, return_types
from .._dispatch import composite, function, op
from .._dtype import INTEGRAL_NUMS, LOW_FLOATS, finfo
from . import _core, _dims
from ._children import UNKNOWN, Child, child, tensor
from ._namespace import functions as F
from .pointwise import conj, mul_scalar


def _running(ufunc: Any, self: np.ndarray, dim: int, dtype: Any) -> np.ndarray:
    if dtype is not None:
        self = self.astype(dtype._np)
        if self.dtype.kind == "b":
            raise _op_errors.not_implemented(f"{'cumsum' if ufunc is np.add else 'cumprod'}_out_cpu", self)
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
    fused = _core.accumulated(self, dim, ufunc is np.multiply)
    if fused is not None:
        return fused
    if self.dtype.char == "f":  # as in torch, totals have double precision
        kind = np.dtype(np.float64)
    accumulated = _dims.dense(ufunc.accumulate(self, axis=dim, dtype=kind))
    return (
        accumulated.astype(self.dtype) if self.dtype in LOW_FLOATS or self.dtype.char == "f" else accumulated
    )


@op(
    "aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    inplace="aten::cumsum_",
    out=True,
)
def cumsum(self: np.ndarray, dim: int, dtype: Any) -> np.ndarray:
    return _running(np.add, self, dim, dtype)


def _reversed_sum(g: Any, dim: int) -> Any:
    return g if not g.ndim else g.flip(dim).cumsum(dim).flip(dim)


cumsum.derivative(self=lambda g, dim, self_dtype: _reversed_sum(g.to(self_dtype), dim))


@op(
    "aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    inplace="aten::cumprod_",
    out=True,
)
def cumprod(self: np.ndarray, dim: int, dtype: Any) -> np.ndarray:
    return _running(np.multiply, self, dim, dtype)


def _cumprod_grad(g: Any, self: Any, out: Any, dim: int) -> Any:
    """d out[k] / d self[i] is the product of all others up to k: exact also where there are zeros."""
    if not self.ndim:
        return g.clone()
    if self.shape[dim] == 1:
        return g
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


@op(
    "aten::cumprod_backward(Tensor grad, Tensor input, int dim, Tensor output) -> Tensor",
    on="tensors",
    expose="no",
)
def cumprod_backward(grad: Any, input: Any, dim: int, output: Any) -> Any:
    if not input.ndim:
        return grad.clone()
    product = grad * conj(output)
    if not F.item(F.any(input == 0)):
        return _reversed_sum(product, dim) / conj(input)
    return _cumprod_grad(grad, input, output, dim)


def _cumprod_rule(g: Any, self: Any, out: Any, dim: int, self_dtype: Any) -> Any:
    if _dispatch.grad_state.enabled or (self.ndim and self.shape[dim] == 1):
        return _cumprod_grad(g, self, out, dim)
    return cumprod_backward(g.to(self_dtype), self, dim, out)


cumprod.derivative(self=_cumprod_rule)


@op(
    "aten::cummaxmin_backward(Tensor grad, Tensor input, Tensor indices, int dim) -> Tensor",
    expose="no",
    on="tensors",
    nondifferentiable=True,
)
def cummaxmin_backward(grad: Any, input: Any, indices: Any, dim: int) -> Any:
    return F.scatter_add_(F.zeros(input.shape, dtype=input.dtype), dim, indices, grad)


def _running_extreme(aten_name: str, helper_name: str, ufunc: Any) -> None:
    name = aten_name.removeprefix("aten::")

    @op(
        f"{aten_name}(Tensor self, int dim) -> (Tensor values, Tensor indices)",
        returns=getattr(return_types, name),
        out=True,
    )
    def extreme(self: np.ndarray, dim: int) -> Any:
        if self.dtype.kind in "cW":
            raise _op_errors.not_implemented(f"{name}_cpu", self)
        if not self.ndim and dim not in (0, -1):
            raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
        dim = _dims.one(dim, self.ndim)
        self = _dims.dense(self)
        if not self.ndim:
            return self.copy(), np.zeros((), np.int64)
        fused = _core.running_extremes(self, dim, ufunc is np.maximum)
        if fused is not None:
            return fused
        values = ufunc.accumulate(self, axis=dim)
        index = np.arange(self.shape[dim]).reshape([-1 if d == dim else 1 for d in range(self.ndim)])
        hit = (self == values) | (self != self)
        return values, np.maximum.accumulate(np.where(hit, index, 0), axis=dim).astype(np.int64)

    def gradient(g: Any, self: Any, indices: Any, dim: int) -> Any:
        if not self.ndim:
            return g
        if _dispatch.grad_state.enabled:
            return F.scatter_add(F.zeros(self.shape, dtype=g.dtype), dim, indices, g)
        return cummaxmin_backward(g, self, indices, dim)

    extreme.derivative(self=gradient)

    def helper(self: Any, dim: Any) -> list[Child]:
        if self is not UNKNOWN and not self.shape:
            return []
        return [child(helper_name, self, self, tensor(self.shape, self, "long int"), dim)]

    extreme.children(helper)


_running_extreme("aten::cummax", "aten::_cummax_helper", np.maximum)
_running_extreme("aten::cummin", "aten::_cummin_helper", np.minimum)


@op("aten::logcumsumexp(Tensor self, int dim) -> Tensor", out=True)
def logcumsumexp(self: np.ndarray, dim: int) -> np.ndarray:
    dim = _dims.one(dim, self.ndim)
    if self.dtype.num in INTEGRAL_NUMS:
        raise _op_errors.not_implemented("logcumsumexp_out_cpu", self)
    if not self.ndim or not self.size:
        return self.copy()
    if self.dtype.kind in "cW":
        return _running_log_sum(self, dim)
    wide = self.astype(np.float32) if self.dtype in LOW_FLOATS else self
    return _dims.dense(np.logaddexp.accumulate(wide, axis=dim)).astype(self.dtype, copy=False)


# the output is allocated by an op of the same kernel below autograd
logcumsumexp.children(lambda self, dim: [child("aten::_logcumsumexp", self, dim, allocates=True)])


def _running_log_sum(self: np.ndarray, dim: int) -> np.ndarray:
    """Complex numbers one after another: the logarithm is that of the larger one, on its branch, plus a small one."""
    values = np.moveaxis(self, dim, 0)
    sums = np.empty(values.shape, self.dtype)
    sums[0] = total = values[0]
    for k in range(1, len(values)):
        value = values[k]
        is_larger = total.real >= value.real
        larger, smaller = np.where(is_larger, total, value), np.where(is_larger, value, total)
        with np.errstate(invalid="ignore"):
            joined = larger + np.log1p(np.exp(smaller - larger))
        sums[k] = total = np.where(np.isneginf(larger.real), larger, joined)
    return _dims.dense(np.moveaxis(sums, 0, dim))


def _logcumsumexp_grad(g: Any, self: Any, out: Any, dim: int) -> Any:
    if not self.ndim:
        return g
    if g.dtype.is_complex:
        turned = F.flip(_difference(F.log(g), conj(out)), (dim,))
        return F.exp(F.add(F.flip(logcumsumexp(turned, dim), (dim,)), conj(self)))
    # exp(self) * reversed sum of g * exp(-out), for positive and negative g apart, so that their logarithms exist
    low = F.scalar_tensor(finfo(g.dtype).min, dtype=g.dtype)
    sizes = F.log(F.abs(g))
    positive, negative = F.where(F.gt(g, 0), sizes, low), F.where(F.lt(g, 0), sizes, low)

    def back(logs: Any) -> Any:
        turned = F.flip(_difference(logs, out), (dim,))
        return F.exp(F.add(F.flip(logcumsumexp(turned, dim), (dim,)), self))

    return F.sub(back(positive), back(negative))


def _difference(logs: Any, out: Any) -> Any:
    """logs - out, but -inf where `out` is -inf."""
    if bool(np.isneginf(out._array.real).any()):
        nothing = F.full((), -float("inf"), dtype=out.dtype)
        return F.where(out == nothing, nothing, logs - out)
    return F.sub(logs, out)


logcumsumexp.derivative(self=_logcumsumexp_grad)


@function()
def diff(
    input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None, *, out: Any = None
) -> Any:
    """Differences of neighbours along a dimension, n times."""
    differences = _diff(input, n, dim, prepend, append)
    return _dispatch.into_out(differences, out)


@composite(
    "aten::diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
    expose="no",
)
def _diff(self: Any, n: int, dim: int, prepend: Any, append: Any) -> Any:
    if not self.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    along = _dims.one(dim, self.ndim)
    if n == 0:  # torch leaves out what was to be added
        return F.clone(self)
    for part in (prepend, append):
        for d in range(self.ndim) if part is not None else ():
            if d != along and part.shape[d] != self.shape[d]:
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input except along the differencing "
                    f"dimension; input.size({d}) = {self.shape[d]}, but got tensor.size({d}) = {part.shape[d]}"
                )
    parts = [p for p in (prepend, self, append) if p is not None]
    differences = F.cat(parts, dim) if len(parts) > 1 else self
    for _ in range(n):
        length = differences.shape[dim]
        if length <= 1:
            differences = differences.narrow(dim, 0, 0).clone()
            break
        b, a = differences.narrow(dim, 0, length - 1), differences.narrow(dim, 1, length - 1)
        differences = F.logical_xor(a, b) if differences.dtype._rank == 0 else F.sub(a, b)
    return differences


# ---------------------------------------------------------------------------------------------------- integrals


def _from(tensor: Any, dim: int, first: int, end: int) -> Any:
    return F.slice(tensor, dim, first, end)


def _neighbours(y: Any, dim: int) -> Any:
    """Sums of neighbours."""
    n = y.shape[dim]
    return F.add(_from(y, dim, 0, n - 1), _from(y, dim, 1, n))


def _steps(y: Any, x: Any, dim: int, name: str) -> Any:
    """Differences of the coordinates `x`, in a shape that broadcasts with `y`."""
    if x.ndim == 1:
        if x.shape[0] != y.shape[dim]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        shape = [1] * y.ndim
        shape[dim] = x.shape[0]
        x = F.view(x, shape)
    elif x.ndim < y.ndim:
        x = F.view(x, [1] * (y.ndim - x.ndim) + list(x.shape))
    n = x.shape[dim]
    return F.sub(_from(x, dim, 1, n), _from(x, dim, 0, n - 1))


def _declare_integral(aten_name: str, running: bool) -> Any:
    name = aten_name.removeprefix("aten::")

    @composite(f"{aten_name}.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", expose="no")
    def over(y: Any, x: Any, dim: int) -> Any:
        if not y.shape[dim]:
            return y.new_zeros(
                y.shape if running else [n for d, n in enumerate(y.shape) if d != dim % y.ndim]
            )
        where = _dims.one(dim, y.ndim)
        steps = _steps(y, x, where, "trapezoid" if name == "trapz" else name)
        areas = F.mul(_neighbours(y, where), steps)
        return F.div(F.cumsum(areas, where) if running else F.sum(areas, where), 2.0)

    @composite(f"{aten_name}.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", expose="no")
    def spaced(y: Any, dx: Any, dim: int) -> Any:
        where = _dims.one(dim, y.ndim)
        if running:
            return F.cumsum(mul_scalar(_neighbours(y, where), dx / 2), where)
        if not y.shape[where]:
            return y.new_zeros([n for d, n in enumerate(y.shape) if d != where])
        ends = mul_scalar(F.add(F.select(y, where, 0), F.select(y, where, -1)), 0.5)
        return mul_scalar(F.sub(F.sum(y, where), ends), dx)

    return over, spaced


_INTEGRALS = {
    "trapezoid": _declare_integral("aten::trapezoid", False),
    "trapz": _declare_integral("aten::trapz", False),
    "cumulative_trapezoid": _declare_integral("aten::cumulative_trapezoid", True),
}


def _integrate(name: str, y: Any, x: Any, dx: Any, dim: int) -> Any:
    over, spaced = _INTEGRALS[name]
    return spaced(y, dx=1 if dx is None else dx, dim=dim) if x is None else over(y, x, dim=dim)


@function(expose="function")
def trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The integral by the trapezoidal rule."""
    return _integrate("trapezoid", y, x, dx, dim)


@function(expose="function")
def trapz(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The integral by the trapezoidal rule."""
    return _integrate("trapz", y, x, dx, dim)


@function(expose="function")
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The running integral by the trapezoidal rule."""
    return _integrate("cumulative_trapezoid", y, x, dx, dim)
