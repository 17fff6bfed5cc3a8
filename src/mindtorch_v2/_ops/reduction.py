"""Reductions: sums, means, products, extremes, norms, tests; over all elements or along dimensions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _dispatch, _op_errors, return_types
from .._dispatch import MISSING, composite, function, op, unalias
from .._dtype import BY_NUM, INTEGRAL_NUMS, LOW_FLOATS, Default
from . import _core, _dims, _lanes
from ._children import UNKNOWN, Child, child, dtype_number, tensor, tensor_of
from ._namespace import functions as F
from .pointwise import conj, div_scalar, mul_scalar


def _accumulate_type(array: np.ndarray) -> Any:
    """The dtype in which a sum is taken: integers as int64, half and bfloat16 in float32."""
    if array.dtype.num in INTEGRAL_NUMS:
        return np.int64
    return np.float32 if array.dtype in LOW_FLOATS else array.dtype


def _sum_result(array: np.ndarray, dtype: Any) -> Any:
    if dtype is not None:
        return dtype._np
    return np.dtype(np.int64) if array.dtype.num in INTEGRAL_NUMS else array.dtype


def _reduce(ufunc: Any, array: np.ndarray, dims: Any, keepdim: bool, dtype: Any = None) -> Any:
    """A reduction whose result is contiguous, as torch's are; NumPy's keep the memory order of their input."""
    reduced = ufunc.reduce(array, axis=dims, dtype=dtype, keepdims=keepdim)
    return reduced if reduced.ndim < 2 or reduced.flags.c_contiguous else _dims.dense(reduced)


def _total(array: np.ndarray, dims: Any, keepdim: bool, dtype: Any) -> np.ndarray:
    if dtype is not None and dtype._np is not array.dtype:
        array = array.astype(dtype._np)
    result_dtype = _sum_result(array, dtype)
    total = _lanes.sums(array, dims, keepdim)
    if total is None:
        total = _reduce(np.add, array, dims, keepdim, _accumulate_type(array))
    return total if total.dtype is result_dtype else total.astype(result_dtype)


def restore(g: Any, dims: Any, keepdim: bool, shape: Any) -> Any:
    """A reduced gradient with its dimensions back, each of length 1."""
    if keepdim or not shape:
        return g
    dims = _dims.many(dims, len(shape))
    if len(dims) == 1:
        return g.unsqueeze(dims[0])
    for d in sorted(dims):
        g = g.unsqueeze(d)
    return g


# ---------------------------------------------------------------------------------------------------- sum, mean, prod


@op("aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", expose="no")
def sum_all(self: np.ndarray, dtype: Any) -> Any:
    return _total(self, None, False, dtype)


sum_all.derivative(self=lambda g, self_shape: g.expand(self_shape))


@op(
    "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    expose="no",
    node="SumBackward1",
)
def sum_dim(self: np.ndarray, dim: Any, keepdim: bool, dtype: Any) -> Any:
    dims = _dims.many(dim, self.ndim)
    if dtype is None and dims == (0,):
        fused = _core.sum_columns(self, keepdim)
        if fused is not None:
            return fused
    return _total(self, dims, keepdim, dtype)


sum_dim.derivative(self=lambda g, dim, keepdim, self_shape: _spread(g, dim or (), keepdim, self_shape))


@function("sum")
def sum_(
    input: Any,
    dim: Any = MISSING,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
    **aliases: Any,
) -> Any:
    """The sum of all elements, or along dimensions."""
    if aliases:
        return unalias(sum_, aliases, input=input, dim=dim, keepdim=keepdim, dtype=dtype, out=out)
    if out is not None:
        kind = _into(out, dtype)
        places = None if dim is MISSING else dim
        return _dispatch.made(sum_dim, out, input, places, keepdim, None if kind is input.dtype else kind)
    if dim is MISSING and not keepdim:
        return sum_all(input, dtype=dtype)
    return sum_dim(input, None if dim is MISSING else dim, keepdim, dtype=dtype)


def _into(out: Any, dtype: Any) -> Any:
    """The dtype of a reduction into `out`: its own, unless one is given."""
    return dtype if out is None or dtype is not None else out.dtype


@op(
    "aten::nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    out=True,
)
def nansum(self: np.ndarray, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if self.dtype.kind in "cW":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if dtype is not None and dtype.is_complex and self.dtype.num not in INTEGRAL_NUMS:
        raise _op_errors.not_implemented("nansum_cpu", np.empty(0, dtype._np))
    if self.dtype.num not in INTEGRAL_NUMS:
        self = np.where(np.isnan(self), np.zeros((), self.dtype), self)
    return _total(self, _dims.many(dim, self.ndim), keepdim, dtype)


nansum.derivative(
    self=lambda g, self, dim, keepdim, self_shape, self_dtype: (
        _spread(g.to(self_dtype), dim, keepdim, self_shape) * F.logical_not(F.isnan(self))
    )
)


def _spread(g: Any, dim: Any, keepdim: bool, shape: Any) -> Any:
    """The gradient of a sum for each of its terms."""
    if dim is not None and len(dim) == 1 and not keepdim and shape:
        return g.unsqueeze(dim[0]).expand(shape)
    return (g if dim is None and not keepdim else restore(g, dim, keepdim, shape)).expand(shape)


def _check_mean(array: np.ndarray, dtype: Any, name: str = "mean") -> None:
    kind = dtype if dtype is not None else BY_NUM[array.dtype.num]
    if kind._rank < 2:
        which = "Input" if dtype is None else "Optional"
        raise RuntimeError(
            f"{name}(): could not infer output dtype. {which} dtype must be either a floating point or complex dtype. Got: {kind._abbr}"
        )


_NAN = (math.nan, complex(math.nan, math.nan))


def _mean(array: np.ndarray, dims: Any, keepdim: bool, dtype: Any) -> np.ndarray:
    if dtype is not None:
        array = array.astype(dtype._np)
    average = _lanes.sums(array, dims, keepdim)
    if average is None:
        average = _reduce(np.add, array, dims, keepdim, _accumulate_type(array))
    count = array.size if dims is None else math.prod([array.shape[d] for d in dims])
    average = (
        np.true_divide(average, count)
        if count
        else np.full(
            np.shape(average), _NAN[np.asarray(average).dtype.kind == "c"], np.asarray(average).dtype
        )
    )
    return average if average.dtype is array.dtype else average.astype(array.dtype)


@op("aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", expose="no")
def mean_all(self: np.ndarray, dtype: Any) -> Any:
    _check_mean(self, dtype)
    return _mean(self, None, False, dtype)


@op(
    "aten::sum.IntList_out(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor out) -> Tensor(a!)",
    expose="no",
    on="tensors",
    nondifferentiable=True,
)
def sum_into(self: Any, dim: Any, keepdim: bool, dtype: Any, out: Any) -> Any:
    out._array[...] = _total(self._array, _dims.many(dim, self.ndim), keepdim, dtype)
    return out


def reduced(self: Any, dim: Any, keepdim: Any) -> Any:
    """A described tensor, reduced along dimensions."""
    if self is UNKNOWN:
        return UNKNOWN
    dims = _dims.many(dim, len(self.shape))
    return tensor([1 if d in dims else n for d, n in enumerate(self.shape) if keepdim or d not in dims], self)


def _mean_children(self: Any, dim: Any, keepdim: Any, dtype: Any) -> list[Child]:
    """A sum into the output, and a division in place."""
    output = reduced(self, dim, keepdim)
    dims = () if self is UNKNOWN else _dims.many(dim, len(self.shape))
    if self is not UNKNOWN:
        dtype = dtype_number(self) if dtype is None else dtype
        output = tensor_of(output.shape, dtype)
    return [
        child("aten::sum.IntList_out", self, () if dim is None else dim, keepdim, dtype, output),
        child("aten::div_.Tensor", output, math.prod([self.shape[d] for d in dims])),
    ]


@op(
    "aten::mean.out(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor out) -> Tensor(a!)",
    expose="no",
    on="tensors",
    nondifferentiable=True,
)
def mean_into(self: Any, dim: Any, keepdim: bool, dtype: Any, out: Any) -> Any:
    out._array[...] = _mean(self._array, _dims.many(dim, self.ndim) if dim else None, keepdim, dtype)
    return out


mean_all.derivative(self=lambda g, self_shape: _mean_grad(g, None, False, self_shape))
mean_all.children(lambda self, dtype: _mean_children(self, None, False, dtype))


@op(
    "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    expose="no",
    node="MeanBackward1",
)
def mean_dim(self: np.ndarray, dim: Any, keepdim: bool, dtype: Any) -> Any:
    _check_mean(self, dtype)
    return _mean(self, _dims.many(dim, self.ndim), keepdim, dtype)


def _mean_grad(g: Any, dim: Any, keepdim: bool, self_shape: Any) -> Any:
    if dim is None and not keepdim:
        return div_scalar(g.expand(self_shape), max(math.prod(self_shape), 1))
    count = math.prod([self_shape[d] for d in _dims.many(dim, len(self_shape))])
    return div_scalar(restore(g, dim, keepdim, self_shape).expand(self_shape), count)


mean_dim.derivative(self=_mean_grad)
mean_dim.children(_mean_children)


@function()
def mean(
    input: Any,
    dim: Any = MISSING,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
    **aliases: Any,
) -> Any:
    """The mean of all elements, or along dimensions."""
    if aliases:
        return unalias(mean, aliases, input=input, dim=dim, keepdim=keepdim, dtype=dtype, out=out)
    if out is not None:
        kind = _into(out, dtype)
        places = None if dim is MISSING else dim
        return _dispatch.made(mean_dim, out, input, places, keepdim, None if kind is input.dtype else kind)
    if dim is MISSING and not keepdim:
        return mean_all(input, dtype=dtype)
    return mean_dim(input, None if dim is MISSING else dim, keepdim, dtype=dtype)


@function()
def nanmean(
    input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None, **aliases: Any
) -> Any:
    """The mean of the elements that are numbers."""
    if aliases:
        return unalias(nanmean, aliases, input=input, dim=dim, keepdim=keepdim, dtype=dtype, out=out)
    average = _nanmean(input, dim, keepdim, dtype=dtype)
    return _dispatch.into_out(average, out)


@composite(
    "aten::nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    expose="no",
)
def _nanmean(self: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if self.dtype._rank < 2:
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {self.dtype._abbr}"
        )
    _check_mean(self._array, dtype, "nanmean")
    plain = self.detach()
    numbers = _dispatch.OPS["logical_not_"].entry(F.ne(plain, plain))
    count = sum_dim(numbers, dim, keepdim)
    return F.div(nansum(self, dim, keepdim, dtype=dtype), count)


@op("aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", expose="no")
def prod_all(self: np.ndarray, dtype: Any) -> Any:
    return _product(self, None, False, dtype)


def _product(array: np.ndarray, dims: Any, keepdim: bool, dtype: Any) -> np.ndarray:
    if dtype is not None:
        array = array.astype(dtype._np)
    product = _lanes.products(array, dims, keepdim)
    if product is None:
        product = _reduce(np.multiply, array, dims, keepdim, _accumulate_type(array))
    result_dtype = _sum_result(array, dtype)
    return product if product.dtype is result_dtype else np.asarray(product).astype(result_dtype)


@op(
    "aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    expose="no",
    node="ProdBackward1",
)
def prod_dim(self: np.ndarray, dim: int, keepdim: bool, dtype: Any) -> Any:
    return _product(self, _dims.many((dim,), self.ndim), keepdim, dtype)


def _prod_all_grad(g: Any, self: Any, out: Any) -> Any:
    if self.ndim == 0:
        return g.clone()
    self = self.to(g.dtype)
    if not F.nonzero(self == 0).shape[0]:
        return g * conj(out / self)
    return g * conj(_others_product(self.reshape(-1), 0).reshape(self.shape))


def _prod_dim_grad(g: Any, self: Any, dim: int, keepdim: bool, out: Any, self_shape: Any) -> Any:
    if not self_shape:
        return g.clone()
    self = self.to(g.dtype)
    if not keepdim:
        g, out = g.unsqueeze(dim), out.unsqueeze(dim)
    zeros = (self == 0).sum(dim, True)
    if zeros.sum().item() == 0:
        return g * conj(out / self)
    return g * conj(_others_product(self, dim))


def _others_product(self: Any, dim: int) -> Any:
    """For each element, the product of all others along `dim`: exact where there are zeros, differentiable twice."""
    dim = _dims.one(dim, self.ndim)
    n = self.shape[dim]
    if n == 0:
        return F.zeros_like(self)
    shape = list(self.shape)
    shape[dim] = 1
    ones = F.ones(shape, dtype=self.dtype)
    before = F.cumprod(F.cat([ones, self.narrow(dim, 0, n - 1)], dim), dim)
    after = F.cumprod(F.cat([ones, self.narrow(dim, 1, n - 1).flip(dim)], dim), dim).flip(dim)
    return before * after


prod_all.derivative(self=_prod_all_grad)
prod_dim.derivative(self=_prod_dim_grad)


@function()
def prod(
    input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None, **aliases: Any
) -> Any:
    """The product of all elements, or along a dimension."""
    if aliases:
        return unalias(prod, aliases, input=input, dim=dim, keepdim=keepdim, dtype=dtype, out=out)
    dtype = _into(out, dtype)
    if out is not None and dim is not None:
        return _dispatch.made(prod_dim, out, input, dim, keepdim, None if dtype is input.dtype else dtype)
    product = prod_all(input, dtype=dtype) if dim is None else prod_dim(input, dim, keepdim, dtype=dtype)
    return _dispatch.into_out(product, out)


# ---------------------------------------------------------------------------------------------------- variance


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
    import warnings

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


@var_mean_op.backward("self")
def _(grads: Any, self: Any, dim: Any, correction: Any, keepdim: bool, self_shape: Any) -> Any:
    gradient = None
    if grads[0] is not None:
        gradient = _var_grad(grads[0], self, dim, correction, keepdim, self_shape)
    if grads[1] is not None:
        part = _mean_grad(grads[1], dim, keepdim, self_shape)
        gradient = part if gradient is None else gradient + part
    return (gradient,)


@std_mean_op.backward("self")
def _(grads: Any, self: Any, result0: Any, dim: Any, correction: Any, keepdim: bool, self_shape: Any) -> Any:
    gradient = None
    if grads[0] is not None:
        gradient = _std_grad(grads[0], self, result0, dim, correction, keepdim, self_shape)
    if grads[1] is not None:
        part = _mean_grad(grads[1], dim, keepdim, self_shape)
        gradient = part if gradient is None else gradient + part
    return (gradient,)


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


# ---------------------------------------------------------------------------------------------------- extremes


def _check_nonempty(array: np.ndarray, name: str) -> None:
    if array.size == 0:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."
        )


def _check_nonempty_dim(array: np.ndarray, dim: int, name: str) -> None:
    if array.ndim and array.shape[dim] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")


def _check_ordered(array: np.ndarray, name: str) -> None:
    if array.dtype.kind in "cW":
        raise RuntimeError(f"{name}(): does not support complex input")


def _full_extreme(aten_name: str, ufunc: Any) -> Any:
    name = aten_name.removeprefix("aten::")

    @op(f"{aten_name}(Tensor self) -> Tensor", expose="no", node=f"{name.capitalize()}Backward1")
    def extreme(self: np.ndarray) -> Any:
        _check_nonempty(self, name)
        if self.dtype.kind in "cW":
            raise _op_errors.not_implemented(f"{name}_all", self)
        found = _lanes.extremes(ufunc, self, None, False)
        return ufunc.reduce(self, axis=None) if found is None else found

    extreme.derivative(self=share_evenly)
    return extreme


def share_evenly(g: Any, self: Any, out: Any) -> Any:
    """The gradient of a full max or min, shared evenly by all elements equal to it."""
    mask = F.isnan(self) if F.isnan(out).item() else self == out
    return g.new_zeros(self.shape).masked_fill_(mask, g / mask.sum())


max_all = _full_extreme("aten::max", np.maximum)
min_all = _full_extreme("aten::min", np.minimum)


def _take(array: np.ndarray, places: np.ndarray, dim: int, keepdim: bool) -> tuple[np.ndarray, np.ndarray]:
    if not array.ndim:
        return array.copy(), np.zeros((), np.int64)
    spread = np.expand_dims(places, dim)
    values = np.take_along_axis(array, spread, dim)
    return (values, spread) if keepdim else (np.squeeze(values, dim), places)


def _dim_extreme(aten_name: str, chooser: Any) -> Any:
    name = aten_name.removeprefix("aten::").removesuffix(".dim")

    @op(
        f"{aten_name}(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        expose="no",
        returns=getattr(return_types, name),
        node=f"{name.capitalize()}Backward0",
    )
    def extreme(self: np.ndarray, dim: int, keepdim: bool) -> Any:
        dim = _dims.one(dim, self.ndim)
        _check_nonempty_dim(self, dim, name)
        _check_ordered(self, name)
        return _take(self, chooser(self, dim) if self.ndim else None, dim, keepdim)

    extreme.derivative(
        self=lambda g, dim, indices, self_shape, keepdim: F.value_selecting_reduction_backward(
            g, dim, indices, self_shape, keepdim
        )
    )
    return extreme


def _argmax(array: np.ndarray, dim: Any) -> np.ndarray:
    return np.argmax(array, dim) if array.dtype.kind != "V" else np.argmax(array.astype(np.float32), dim)


def _argmin(array: np.ndarray, dim: Any) -> np.ndarray:
    return np.argmin(array, dim) if array.dtype.kind != "V" else np.argmin(array.astype(np.float32), dim)


max_dim = _dim_extreme("aten::max.dim", _argmax)
min_dim = _dim_extreme("aten::min.dim", _argmin)


@composite(
    "aten::value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, SymInt[] sizes, bool keepdim) -> Tensor",
    expose="no",
)
def value_selecting_reduction_backward(grad: Any, dim: int, indices: Any, sizes: Any, keepdim: bool) -> Any:
    if not keepdim and sizes:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return F.scatter_(F.zeros(sizes, dtype=grad.dtype), dim, indices, grad)


def _extreme_front(aten_name: str, whole: Any, along: Any, pairwise: str) -> None:
    name = aten_name.removeprefix("aten::").removesuffix(".other")

    @composite(f"{aten_name}(Tensor self, Tensor other) -> Tensor", expose="no")
    def of_two(self: Any, other: Any) -> Any:
        return getattr(F, pairwise)(self, other)

    def front(
        input: Any,
        dim: Any = None,
        keepdim: bool = False,
        *,
        out: Any = None,
        other: Any = None,
        **aliases: Any,
    ) -> Any:
        if aliases:
            return unalias(front, aliases, input=input, dim=dim, keepdim=keepdim, out=out)
        if dim is None and other is None:
            extreme = whole(input)
        elif other is not None or isinstance(dim, _dispatch.Tensor):
            chosen = of_two if out is None else getattr(F, pairwise)
            second = dim if other is None else other
            return chosen(input, second) if out is None else chosen(input, second, out=out)
        else:
            return (
                along(input, dim, keepdim) if out is None else _dispatch.made(along, out, input, dim, keepdim)
            )
        return _dispatch.into_out(extreme, out)

    front.__name__ = name
    front.__doc__ = f"The {name}imum of all elements, along a dimension (with its places), or of two tensors."
    function(name)(front)


_extreme_front("aten::max.other", max_all, max_dim, "maximum")
_extreme_front("aten::min.other", min_all, min_dim, "minimum")


def _amax_like(aten_name: str, ufunc: Any) -> Any:
    name = aten_name.removeprefix("aten::")

    @op(f"{aten_name}(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", out=True)
    def extreme(self: np.ndarray, dim: Any, keepdim: bool) -> Any:
        dims = _dims.many(dim, self.ndim)
        if self.size == 0:
            if not dim:
                _check_nonempty(self, name)
            for requested, d in zip(dim, dims):
                if self.shape[d] == 0:
                    raise IndexError(f"{name}(): Expected reduction dim {requested} to have non-zero size.")
        if self.dtype.kind in "cW":
            raise _op_errors.not_implemented(f"{name[1:]}_values_cpu", self)
        found = _lanes.extremes(ufunc, self, dims, keepdim)
        return _reduce(ufunc, self, dims, keepdim) if found is None else found

    extreme.derivative(
        self=lambda g, self, out, dim, keepdim, self_shape: _shared_extreme(
            g, self, out, dim, keepdim, self_shape
        )
    )
    return extreme


def _shared_extreme(
    g: Any, self: Any, out: Any, dim: Any, keepdim: bool, self_shape: Any, swapped: bool = False
) -> Any:
    dims = _dims.many(dim, len(self_shape))
    if not keepdim and self_shape:
        shape = [1 if d in dims else n for d, n in enumerate(self_shape)]
        g, out = g.reshape(shape), out.reshape(shape)
    mask = self == out if swapped else out == self
    return (g / mask.sum(dims, True)) * mask


amax = _amax_like("aten::amax", np.maximum)
amin = _amax_like("aten::amin", np.minimum)


@op(
    "aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    returns=return_types.aminmax,
    out=True,
)
def aminmax(self: np.ndarray, dim: Any, keepdim: bool) -> Any:
    axis = None if dim is None else _dims.one(dim, self.ndim)
    if not self.ndim:
        axis = None
    if self.size == 0:
        if dim is None:
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
            )
        if self.shape[axis] == 0:
            raise IndexError(f"aminmax: Expected reduction dim {axis} to have non-zero size.")
    if self.dtype.kind in "cW":
        raise _op_errors.not_implemented("aminmax_cpu", self)
    return _reduce(np.minimum, self, axis, keepdim), _reduce(np.maximum, self, axis, keepdim)


@aminmax.backward("self")
def _(grads: Any, self: Any, result0: Any, result1: Any, dim: Any, keepdim: bool, self_shape: Any) -> Any:
    dims = () if dim is None else (dim,)
    gradient = None
    for g, out in zip(grads, (result0, result1)):
        if g is not None:
            part = _shared_extreme(g, self, out, dims, keepdim, self_shape, True)
            gradient = part if gradient is None else gradient + part
    return (gradient,)


def _arg_extreme(aten_name: str, chooser: Any) -> Any:
    name = aten_name.removeprefix("aten::")

    @op(
        f"{aten_name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        nondifferentiable=True,
        out=True,
    )
    def places(self: np.ndarray, dim: Any, keepdim: bool) -> Any:
        _check_ordered(self, name)
        if self.dtype.kind == "b":
            raise RuntimeError(f"{name}(): does not support bool input")
        if dim is None:
            if self.size == 0:
                raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
            index = chooser(self, None)
            return np.full((1,) * self.ndim, index, np.int64) if keepdim else np.int64(index)
        dim = _dims.one(dim, self.ndim)
        if not self.ndim:
            return np.zeros((), np.int64)
        _check_nonempty_dim(self, dim, name)
        index = chooser(self, dim)
        return np.expand_dims(index, dim) if keepdim else index

    return places


argmax = _arg_extreme("aten::argmax", _argmax)
argmin = _arg_extreme("aten::argmin", _argmin)


# ---------------------------------------------------------------------------------------------------- tests and counts


def _quantifier(aten_name: str, ufunc: Any) -> None:
    name = aten_name.removeprefix("aten::")

    def result(self: np.ndarray, dims: Any, keepdim: bool) -> Any:
        truths = _reduce(ufunc, self.astype(bool, copy=False), dims, keepdim)
        return truths if self.dtype != np.uint8 else np.asarray(truths).astype(np.uint8)

    @op(f"{aten_name}(Tensor self) -> Tensor", expose="no", nondifferentiable=True)
    def whole(self: np.ndarray) -> Any:
        return result(self, None, False)

    @op(
        f"{aten_name}.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
        expose="no",
        nondifferentiable=True,
    )
    def along(self: np.ndarray, dim: int, keepdim: bool) -> Any:
        return result(self, _dims.many((dim,), self.ndim), keepdim)

    @op(
        f"{aten_name}.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
        expose="no",
        nondifferentiable=True,
    )
    def along_many(self: np.ndarray, dim: Any, keepdim: bool) -> Any:
        if dim == ():  # an empty tuple reduces no dimension; None reduces all
            return result(self, (), keepdim)
        return result(self, _dims.many(dim, self.ndim), keepdim)

    def front(input: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None, **aliases: Any) -> Any:
        if aliases:
            return unalias(front, aliases, input=input, dim=dim, keepdim=keepdim, out=out)
        if dim is None and not keepdim:
            return whole(input) if out is None else _dispatch.made(whole, out, input)
        chosen = along if isinstance(dim, int) else along_many
        return (
            chosen(input, dim, keepdim) if out is None else _dispatch.made(chosen, out, input, dim, keepdim)
        )

    front.__name__ = name
    front.__doc__ = f"Whether {name} elements are true, of all or along dimensions."
    function(name)(front)


_quantifier("aten::all", np.logical_and)
_quantifier("aten::any", np.logical_or)


@op("aten::_is_all_true(Tensor self) -> Tensor", expose="function", on="tensors", nondifferentiable=True)
def _is_all_true(self: Any) -> Any:
    return F.all(self)


@op(
    "aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
    expose="no",
    on="tensors",
    nondifferentiable=True,
)
def count_nonzero_op(self: Any, dim: Any) -> Any:
    if dim:
        return F.sum(F.ne(self, 0), dim)
    return _dispatch.wrap(np.asarray(np.count_nonzero(self._array)))


@function()
def count_nonzero(input: Any, dim: Any = None, **aliases: Any) -> Any:
    """How many elements are not zero."""
    if aliases:
        return unalias(count_nonzero, aliases, input=input, dim=dim)
    return count_nonzero_op(input, () if dim is None else dim)


# ---------------------------------------------------------------------------------------------------- logsumexp


# A sum into an output that has no elements yet: the result is new memory.
@op(
    "aten::sum.IntList_out(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor out) -> Tensor",
    expose="no",
    listed=False,
    nondifferentiable=True,
)
def _sum_to_empty(self: np.ndarray, dim: Any, keepdim: bool, dtype: Any, out: np.ndarray) -> np.ndarray:
    return _total(self, _dims.many(dim, self.ndim), keepdim, dtype)


@op(
    "aten::logsumexp.out(Tensor self, int[1] dim, bool keepdim=False, *, Tensor out) -> Tensor",
    expose="no",
    listed=False,
    nondifferentiable=True,
    on="tensors",
)
def _logsumexp_to_empty(self: Any, dim: Any, keepdim: bool, out: Any) -> Any:
    top = F.amax(F.real(self), dim, True)
    shift = top if keepdim else F.squeeze(top, dim)
    F.masked_fill_(shift, F.eq(F.abs(shift), math.inf), 0)
    total = _sum_to_empty(F.exp_(F.sub(self, top)), dim, keepdim, out=out)
    return F.add_(F.log_(total), shift)


@op("aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", out=True, on="tensors")
def logsumexp(self: Any, dim: Any, keepdim: bool) -> Any:
    if self.dtype._rank < 2:
        self = self.to(Default.dtype)
    if not self.numel():
        return F.log(F.sum(F.exp(self), dim, keepdim))
    return _logsumexp_to_empty(self, dim, keepdim, out=_dispatch.wrap(np.empty(0, self._array.dtype)))


logsumexp.derivative(
    self=lambda g, self, out, dim, keepdim, self_shape: (
        restore(g, dim, keepdim, self_shape) * conj(F.exp(self - restore(out, dim, keepdim, self_shape)))
    )
)
