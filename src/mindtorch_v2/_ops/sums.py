"""Sums, means and products, over all elements or along dimensions; the logarithm of a sum of exponentials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _dispatch, _op_errors
from .._dispatch import MISSING, composite, function, op, unalias
from .._dtype import BY_NUM, INTEGRAL_NUMS, LOW_FLOATS, Default
from . import _core, _dims, _lanes
from ._children import UNKNOWN, Child, child, dtype_number, tensor_of
from ._namespace import functions as F
from ._reduction import reduce_array, reduced, restore
from .pointwise import conj, div_scalar


def _accumulate_type(array: np.ndarray) -> Any:
    """The dtype in which a sum is taken: integers as int64, half and bfloat16 in float32."""
    if array.dtype.num in INTEGRAL_NUMS:
        return np.int64
    return np.float32 if array.dtype in LOW_FLOATS else array.dtype


def _sum_result(array: np.ndarray, dtype: Any) -> Any:
    if dtype is not None:
        return dtype._np
    return np.dtype(np.int64) if array.dtype.num in INTEGRAL_NUMS else array.dtype


def _total(array: np.ndarray, dims: Any, keepdim: bool, dtype: Any) -> np.ndarray:
    if dtype is not None and dtype._np is not array.dtype:
        array = array.astype(dtype._np)
    result_dtype = _sum_result(array, dtype)
    total = _lanes.sums(array, dims, keepdim)
    if total is None:
        total = reduce_array(np.add, array, dims, keepdim, _accumulate_type(array))
    return total if total.dtype is result_dtype else total.astype(result_dtype)


# ---------------------------------------------------------------------------------------------------- sum


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


@op(
    "aten::sum.IntList_out(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor out) -> Tensor(a!)",
    expose="no",
    on="tensors",
    nondifferentiable=True,
)
def sum_into(self: Any, dim: Any, keepdim: bool, dtype: Any, out: Any) -> Any:
    out._array[...] = _total(self._array, _dims.many(dim, self.ndim), keepdim, dtype)
    return out


# ---------------------------------------------------------------------------------------------------- mean


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
        average = reduce_array(np.add, array, dims, keepdim, _accumulate_type(array))
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


mean_all.derivative(self=lambda g, self_shape: mean_grad(g, None, False, self_shape))
mean_all.children(lambda self, dtype: _mean_children(self, None, False, dtype))


@op(
    "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    expose="no",
    node="MeanBackward1",
)
def mean_dim(self: np.ndarray, dim: Any, keepdim: bool, dtype: Any) -> Any:
    _check_mean(self, dtype)
    return _mean(self, _dims.many(dim, self.ndim), keepdim, dtype)


def mean_grad(g: Any, dim: Any, keepdim: bool, self_shape: Any) -> Any:
    if dim is None and not keepdim:
        return div_scalar(g.expand(self_shape), max(math.prod(self_shape), 1))
    count = math.prod([self_shape[d] for d in _dims.many(dim, len(self_shape))])
    return div_scalar(restore(g, dim, keepdim, self_shape).expand(self_shape), count)


mean_dim.derivative(self=mean_grad)
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


# ---------------------------------------------------------------------------------------------------- product


@op("aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", expose="no")
def prod_all(self: np.ndarray, dtype: Any) -> Any:
    return _product(self, None, False, dtype)


def _product(array: np.ndarray, dims: Any, keepdim: bool, dtype: Any) -> np.ndarray:
    if dtype is not None:
        array = array.astype(dtype._np)
    product = _lanes.products(array, dims, keepdim)
    if product is None:
        product = reduce_array(np.multiply, array, dims, keepdim, _accumulate_type(array))
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
