"""What torch's kernels do besides computing: rules for ops that are one kernel there as here. What a rule is says `_children.py`.

A kernel of torch casts its operands, allocates, clears and re-strides its outputs and makes its inputs contiguous by calling ops, which
its profiler shows. An op that contains other ops too has its rule beside its kernel; those of layers, pools and losses
are in `_layer_bookkeeping.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from mindtorch_prof.inputs import TensorInput

from .. import _dispatch
from . import _dims
from ._children import (
    BOOL,
    FLOAT32,
    INT64,
    Child,
    cast,
    casts,
    child,
    clone,
    common_dtype,
    contiguous,
    copy_,
    dtype_number,
    element_dtype,
    empty,
    empty_like,
    fill_,
    is_contiguous,
    item,
    known,
    narrow,
    reduced_output,
    reshape,
    tensor,
    tensor_of,
    view_of,
    zero_,
)
from ._convolution_buffers import is_channels_last

if TYPE_CHECKING:
    from mindtorch_prof.settings import Settings

Rule = Callable[..., Any]
# element types of which torch joins contiguous tensors in one loop, without views, along any dimension
_COPIED_IN_ONE_LOOP = frozenset({"float", "double", "c10::Half", "c10::BFloat16"})


def bookkeeping_of(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: the rule of these ops."""

    def declare(rule: Rule) -> Rule:
        for name in names:
            op = _dispatch.OPS[name]
            assert op.children_rule is None, f"{name} has a rule"
            op.children(rule)
        return rule

    return declare


def unsized(dtype: Any) -> Child:
    """An output that the kernel sizes later."""
    return empty((0,), dtype)


# ------------------------------------------------------------------------------------------------------------ operands of one dtype


@bookkeeping_of(
    "add.Tensor", "add_.Tensor", "sub.Tensor", "sub_.Tensor", "mul.Tensor", "mul_.Tensor",
    "mul.out", "eq.Tensor", "ne.Tensor", "lt.Tensor", "le.Tensor", "gt.Tensor", "ge.Tensor",
    "eq_.Tensor", "ne_.Tensor", "lt_.Tensor", "le_.Tensor", "gt_.Tensor", "ge_.Tensor",
    "remainder.Tensor", "remainder_.Tensor", "fmod.Tensor", "fmod_.Tensor", "maximum", "minimum",
    "bitwise_and.Tensor", "bitwise_or.Tensor", "bitwise_xor.Tensor", "add.Scalar", "sub.Scalar",
    "mul.Scalar", "remainder.Scalar", "remainder_.Scalar", "fmod.Scalar", "fmod_.Scalar",
    "pow.Tensor_Tensor",
)  # fmt: skip
def _(self: Any, other: Any, *_: Any, settings: Settings) -> list[Child]:
    return casts(self, other, settings=settings)


@bookkeeping_of(
    "div.Tensor",
    "div_.Tensor",
    "div.Scalar",
    "div_.Scalar",
    "atan2",
    "atan2_",
)
def _(self: Any, other: Any, *_: Any, settings: Settings) -> list[Child]:
    return casts(self, other, settings=settings, floating=True)


@bookkeeping_of("div.Tensor_mode", "div_.Tensor_mode")
def _(self: Any, other: Any, rounding_mode: Any, *, settings: Settings) -> list[Child]:
    return casts(self, other, settings=settings, floating=rounding_mode is None)


@bookkeeping_of("floor_divide")
def _(self: Any, other: Any, *, settings: Settings) -> list[Child]:
    return [
        *casts(self, other, settings=settings),
        empty(self.shape, common_dtype(self, other, settings=settings), None),
    ]


@bookkeeping_of("addcmul", "addcmul_", "addcdiv", "addcdiv_")
def _(self: Any, tensor1: Any, tensor2: Any, *_: Any, settings: Settings) -> list[Child]:
    return casts(self, tensor1, tensor2, settings=settings)


@bookkeeping_of("clamp", "clamp_")
def _(self: Any, min: Any, max: Any, *, settings: Settings) -> list[Child]:
    bounds = [bound for bound in (min, max) if bound is not None]
    return [cast(self, common_dtype(self, *bounds, settings=settings))]


@bookkeeping_of(
    "exp", "log", "sqrt", "rsqrt", "sigmoid", "sin", "cos", "tanh", "reciprocal",
    "log2", "log10", "log1p", "expm1", "erf", "tan", "atan", "asin", "acos",
)  # fmt: skip
def _(self: Any, *, settings: Settings) -> list[Child]:
    return casts(self, settings=settings, floating=True)


@bookkeeping_of("where.self")
def _(condition: Any, self: Any, other: Any, *, settings: Settings) -> list[Child]:
    return [
        *casts(self, other, settings=settings),
        unsized(common_dtype(self, other, settings=settings)),
    ]


@bookkeeping_of("where.ScalarOther")
def _(condition: Any, self: Any, other: Any, *, settings: Settings) -> list[Child]:
    return [cast(self, common_dtype(self, other, settings=settings))]


@bookkeeping_of("where.ScalarSelf")
def _(condition: Any, self: Any, other: Any, *, settings: Settings) -> list[Child]:
    return [cast(other, common_dtype(self, other, settings=settings))]


@bookkeeping_of("abs")
def _(self: Any) -> list[Child]:
    if element_dtype(self).kind == "c":
        return []
    return [unsized(dtype_number(self)), child("aten::abs.out", self, tensor((0,), self))]


def _into_bools(overload: str) -> Rule:
    """A comparison of truth values, which the overload that writes into an output does."""
    return lambda self, other, *, settings: [
        unsized(BOOL),
        child(overload, self, other, tensor_of((0,), BOOL), children=casts(self, other, settings=settings)),
    ]


bookkeeping_of("logical_and")(_into_bools("aten::logical_and.out"))
bookkeeping_of("logical_or")(_into_bools("aten::logical_or.out"))
bookkeeping_of("logical_xor")(_into_bools("aten::logical_xor.out"))


@bookkeeping_of("logical_not")
def _(self: Any) -> list[Child]:
    return [unsized(BOOL), child("aten::logical_not.out", self, tensor((0,), self, "bool"))]


# -------------------------------------------------------------------------------------------------------------- matrix products


def _columns_first(x: Any) -> bool:
    """Whether BLAS can read a matrix with its columns one after the other."""
    return x.strides[0] == 1 and x.strides[1] >= max(1, x.shape[0])


def _rows_first(x: Any) -> bool:
    return x.strides[1] == 1 and x.strides[0] >= max(1, x.shape[1])


def _factors(a: Any, b: Any) -> list[Child]:
    """What is done to the matrices of a product with a contiguous result: those that are not as BLAS wants them are copied."""
    n, m = a.shape[0], b.shape[1]
    result = tensor((n, m), a)
    order, direct, flipped = (b, a), _rows_first, _columns_first
    if m == 1:
        order, direct, flipped = (a, b), _columns_first, _rows_first
    rows = [child("aten::resolve_conj", result)]
    for x in order:
        if direct(x):
            rows.append(child("aten::resolve_conj", x))
        elif not flipped(x):
            rows.append(clone(x, 0, allocates=False))
    return rows


def _is_computed(a: Any, b: Any) -> bool:
    return 0 not in (*a.shape, *b.shape)


@bookkeeping_of("mm")
def _(self: Any, mat2: Any) -> list[Child]:
    known(self, mat2)
    return _factors(self, mat2) if _is_computed(self, mat2) else []


def _spread(self: Any, shape: tuple[int, ...], beta: Any) -> list[Child]:
    """The summand of a product, copied into the result."""
    rows = [] if self.shape == shape else [child("aten::expand", self, shape, False)]
    return [*rows, copy_(tensor(shape, self), tensor(shape, self))] if beta != 0 else rows


@bookkeeping_of("addmm")
def _(self: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> list[Child]:
    known(self, mat1, mat2)
    rows = _spread(self, (mat1.shape[0], mat2.shape[1]), beta)
    return [*rows, *_factors(mat1, mat2)] if _is_computed(mat1, mat2) else rows


@bookkeeping_of("bmm", "bmm.out")
def _(self: Any, mat2: Any, *_: Any) -> list[Child]:
    return [child("aten::resolve_conj", mat2), child("aten::resolve_conj", self)]


@bookkeeping_of("baddbmm")
def _(self: Any, batch1: Any, batch2: Any, beta: Any, alpha: Any) -> list[Child]:
    known(self, batch1, batch2)
    rows = _spread(self, (*batch1.shape[:2], batch2.shape[2]), beta)
    return [*rows, child("aten::resolve_conj", batch2), child("aten::resolve_conj", batch1)]


@bookkeeping_of("dot")
def _(self: Any, tensor: Any) -> list[Child]:
    return [empty((), dtype_number(self)), fill_(tensor_of((), dtype_number(self)), None)]


# ------------------------------------------------------------------------------------------------------------------ reductions


def _folded(self: Any, dim: Any, keepdim: bool, start: float, dtype: Any = None) -> list[Child]:
    """The children of a reduction that starts at a number; dtype: torch's number of the result's, None: that of the tensor."""
    output, viewed = reduced_output(self, dim, keepdim, dtype)
    dtype = dtype_number(self) if dtype is None else dtype
    if 0 in self.shape:
        return [*viewed, zero_(viewed[0].arguments[0] if viewed else output)]
    return [*viewed, *([] if dtype == dtype_number(self) else [cast(self, dtype)]), fill_(output, start)]


def _sum_dtype(self: Any, dtype: Any) -> Any:
    """Integers are added as int64."""
    if dtype is not None:
        return dtype
    return INT64 if element_dtype(self).kind in "biu" else dtype_number(self)


@bookkeeping_of("sum")
def _(self: Any, dtype: Any) -> list[Child]:
    return _folded(self, None, False, 0.0, _sum_dtype(self, dtype))


@bookkeeping_of("sum.dim_IntList")
def _(self: Any, dim: Any, keepdim: Any, dtype: Any) -> list[Child]:
    return _folded(self, dim, keepdim, 0.0, _sum_dtype(self, dtype))


@bookkeeping_of("sum.IntList_out")
def _(self: Any, dim: Any, keepdim: Any, dtype: Any, out: Any) -> list[Child]:
    return _folded(self, dim, keepdim, 0.0, _sum_dtype(self, dtype))


@bookkeeping_of("nansum")
def _(self: Any, dim: Any, keepdim: Any, dtype: Any) -> list[Child]:
    return [empty((), dtype_number(self)), *_folded(self, dim, keepdim, 0.0)]


@bookkeeping_of("prod")
def _(self: Any, dtype: Any) -> list[Child]:
    dtype = _sum_dtype(self, dtype)
    return [empty((), dtype), *_folded(self, None, False, 1.0, dtype)]


@bookkeeping_of("prod.dim_int")
def _(self: Any, dim: Any, keepdim: Any, dtype: Any) -> list[Child]:
    return _folded(self, dim, keepdim, 1.0, _sum_dtype(self, dtype))


def _tested(self: Any, dim: Any, keepdim: Any, start: float) -> list[Child]:
    known(self)
    dtype = dtype_number(self) if self.type == "unsigned char" else BOOL
    if 0 in self.shape and dim is None:
        return [fill_(tensor_of((), dtype), int(start))]
    if prod(self.shape) != 1:
        return _folded(self, dim, keepdim, start, dtype)
    number = tensor((), self)
    viewed = child("aten::view_as", self, number, children=[child("aten::view", self, ())])
    return [viewed, cast(number, dtype), copy_(tensor_of((), dtype), tensor_of((), dtype))]


@bookkeeping_of("any", "any.dim", "any.dims")
def _(self: Any, dim: Any = None, keepdim: Any = False) -> list[Child]:
    return _tested(self, dim, keepdim, 0.0)


@bookkeeping_of("all", "all.dim", "all.dims")
def _(self: Any, dim: Any = None, keepdim: Any = False) -> list[Child]:
    return _tested(self, dim, keepdim, 1.0)


def _limit(self: Any, sign: int) -> float:
    dtype = element_dtype(self)
    if dtype.kind in "iu":
        return int(np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min)
    return sign * inf


@bookkeeping_of("amax")
def _(self: Any, dim: Any, keepdim: Any) -> list[Child]:
    return _folded(self, dim, keepdim, _limit(self, -1))


@bookkeeping_of("amin")
def _(self: Any, dim: Any, keepdim: Any) -> list[Child]:
    return _folded(self, dim, keepdim, _limit(self, 1))


@bookkeeping_of("max", "min")
def _(self: Any) -> list[Child]:
    dtype = dtype_number(self)
    return [empty((), dtype), *contiguous(self), fill_(tensor_of((), dtype), None)]


@bookkeeping_of("max.dim", "min.dim")
def _(self: Any, dim: Any, keepdim: Any) -> list[Child]:
    return _extremes(self, dim, keepdim, "long int")


def _extremes(self: Any, dim: Any, keepdim: Any, second: str) -> list[Child]:
    """Two outputs, which have all dimensions while they are computed; second: the element type of the second."""
    known(self)
    if keepdim or not self.shape:
        return []
    dim = _dims.one(dim, len(self.shape))
    shape = [n for d, n in enumerate(self.shape) if d != dim]
    results = tensor(shape, self), tensor(shape, self, second)
    widened = [child("aten::unsqueeze_", x, dim) for x in results]
    return widened + [
        child("aten::squeeze_.dim", view_of(x, lambda array: np.expand_dims(array, dim)), dim)
        for x in results
    ]


@bookkeeping_of("argmax", "argmin")
def _(self: Any, dim: Any, keepdim: Any) -> list[Child]:
    known(self)
    if dim is not None:
        return reduced_output(self, dim, keepdim, INT64)[1]
    return [reshape(self, (-1,)), *reduced_output(tensor((prod(self.shape),), self), 0, keepdim, INT64)[1]]


@bookkeeping_of("std.correction", "var.correction")
def _(self: Any, *options: Any) -> list[Child]:
    # described with or without dimensions: the old flag `unbiased` may stand alone
    known(self)
    dim, keepdim = (options[0], options[-1]) if len(options) == 3 else (None, False)
    output, viewed = reduced_output(self, dim, keepdim)
    rows = [unsized(dtype_number(self)), *viewed]
    if prod(output.shape) != 1 or 0 in self.shape or element_dtype(self).kind == "c":
        return rows
    result = viewed[0].arguments[0] if viewed else output
    return [*rows, child("aten::mean", self), item(tensor((), self)), fill_(result, None)]


@bookkeeping_of("std_mean.correction", "var_mean.correction")
def _(self: Any, dim: Any, correction: Any, keepdim: Any) -> list[Child]:
    return [unsized(dtype_number(self))] * 2 + reduced_output(self, dim, keepdim)[1] * 2


# ------------------------------------------------------------------------------------------------- indices, parts and whole tensors


@bookkeeping_of(
    "gather",
    "scatter_.src",
    "scatter_.value",
    "scatter_add_",
    "scatter_.reduce",
    "scatter_.value_reduce",
)
def _(self: Any, dim: Any, index: Any, *_: Any) -> list[Child]:
    return [cast(index, INT64)]


@bookkeeping_of(
    "scatter.src",
    "scatter.value",
    "scatter_add",
    "scatter.reduce",
    "scatter.value_reduce",
)
def _(self: Any, dim: Any, index: Any, *_: Any) -> list[Child]:
    return [copy_(tensor(self.shape, self), self), cast(index, INT64)]


@bookkeeping_of("index_select")
def _(self: Any, dim: Any, index: Any) -> list[Child]:
    known(self, index)
    rows = [unsized(dtype_number(self))]
    if len(self.shape) < 2 or 0 in (*self.shape, *index.shape):
        return rows
    dim = _dims.one(dim, len(self.shape))
    if dim == 0 or (dim == len(self.shape) - 1 and len(self.shape) > 2):  # slice by slice
        result = tensor([prod(index.shape) if d == dim else n for d, n in enumerate(self.shape)], self)
        return [*rows, *contiguous(index), *[child("aten::select.int", x, dim, 0) for x in (self, result)]]
    return [*rows, *contiguous(index), *contiguous(self)]


@bookkeeping_of("cat")
def _(tensors: Any, dim: Any, *, settings: Settings) -> list[Child]:
    known(tensors)
    parts = [x for x in tensors if x.shape != (0,)]
    if not parts:
        return []
    first, alike = parts[0], len({(x.shape, x.strides, x.type) for x in parts}) == 1
    dim = _dims.one(dim, len(first.shape))
    length = sum([x.shape[dim] for x in parts])
    result = tensor((*first.shape[:dim], length, *first.shape[dim + 1 :]), first)
    of_one_layout = all([is_contiguous(x) for x in tensors]) or all([is_channels_last(x) for x in tensors])
    if of_one_layout and len(parts) == len(tensors) and len({x.type for x in tensors}) == 1:
        is_small = prod(result.shape) < 32768 or settings.num_threads == 1
        if is_small and (dim == 0 or first.type in _COPIED_IN_ONE_LOOP):
            return []
    if alike:
        return [narrow(result, dim, 0, first.shape[dim])]
    starts = [sum([x.shape[dim] for x in parts[:i]]) for i in range(len(parts))]
    return [narrow(result, dim, start, x.shape[dim]) for start, x in zip(starts, parts)]


@bookkeeping_of("scatter_reduce_.two")
def _(self: Any, dim: Any, index: Any, src: Any, reduce: Any, include_self: Any) -> list[Child]:
    known(index)
    if not include_self or reduce in ("mean", None):  # computed by other ops
        return []
    return [cast(index, INT64)]


@bookkeeping_of("scatter_reduce.two")
def _(self: Any, dim: Any, index: Any, src: Any, reduce: Any, include_self: Any) -> list[Child]:
    known(self, index)
    return [copy_(tensor(self.shape, self), self)] * 2 + [cast(index, INT64)]


@bookkeeping_of("isin.Tensor_Tensor")
def _(
    elements: Any, test_elements: Any, assume_unique: Any, invert: Any, *, settings: Settings
) -> list[Child]:
    known(elements, test_elements)
    dtype = common_dtype(elements, test_elements, settings=settings)
    # few elements are compared one by one, without sorting
    if prod(test_elements.shape) >= 10 * prod(elements.shape) ** 0.145:
        return []
    result = tensor_of(elements.shape, BOOL)
    flat = child("aten::view", test_elements, (-1,))
    return [fill_(result, invert), cast(elements, dtype), cast(test_elements, dtype), flat]


@bookkeeping_of("aminmax")
def _(self: Any, dim: Any, keepdim: Any) -> list[Child]:
    known(self)
    return [fill_(tensor((), self), None)] * 2 if dim is None else _extremes(self, dim, keepdim, self.type)


@bookkeeping_of("index_copy_", "index_fill_.int_Scalar")
def _(self: Any, dim: Any, index: Any, *_: Any) -> list[Child]:
    known(self, index)
    ndim = len(self.shape)
    if not ndim:
        return []
    dim = _dims.one(dim, ndim)
    n = prod(index.shape)
    places = tuple([n if d == dim else 1 for d in range(ndim)])
    shape = tuple([n if d == dim else size for d, size in enumerate(self.shape)])
    return [
        child("aten::as_strided", index, places, tuple([1 if d == dim else 0 for d in range(ndim)])),
        child(
            "aten::as_strided",
            self,
            shape,
            tuple([0 if d == dim else step for d, step in enumerate(self.strides)]),
        ),
    ]


@bookkeeping_of("index_add_")
def _(self: Any, dim: Any, index: Any, source: Any, alpha: Any) -> list[Child]:
    return _added(self, dim, index, source, alpha)


def _added(self: Any, dim: Any, index: Any, source: Any, alpha: Any) -> list[Child]:
    """Along the first and the last dimension torch's kernel is that of scatter_add_."""
    known(self, index)
    ndim = len(self.shape)
    if ndim < 2 or alpha != 1 or _dims.one(dim, ndim) not in (0, ndim - 1):
        return []
    spread = tuple([1 if d == _dims.one(dim, ndim) else 0 for d in range(ndim)])
    places = TensorInput(source.shape, spread, index.type)
    return [
        child("aten::as_strided", index, source.shape, spread),
        child("aten::scatter_add_", self, dim, places, source),
    ]


@bookkeeping_of("index_add")
def _(self: Any, dim: Any, index: Any, source: Any, alpha: Any) -> list[Child]:
    known(self)
    return [copy_(tensor(self.shape, self), self), *_added(self, dim, index, source, alpha)]


@bookkeeping_of("nonzero")
def _(self: Any) -> list[Child]:
    # how many there are depends on values
    return [unsized(INT64), child("aten::as_strided_", tensor_of((0, len(self.shape)), INT64), None, None)]


@bookkeeping_of("masked_select")
def _(self: Any, mask: Any) -> list[Child]:
    count = tensor_of((), INT64)
    counted = [child("aten::sum", mask, None), item(count)]
    return [
        unsized(dtype_number(self)),
        *counted,
        child("aten::as_strided", tensor((0,), self), mask.shape, (0,) * len(mask.shape)),
    ]


@bookkeeping_of("sort", "sort.stable")
def _(self: Any, *options: Any) -> list[Child]:
    known(self)
    if not self.shape:
        return []
    dim = _dims.one(options[-2], len(self.shape))
    places = tensor_of((self.shape[dim],), INT64)
    spread = tuple([n if d == dim else 1 for d, n in enumerate(self.shape)])
    view = TensorInput(spread, tuple([1 if d == dim else 0 for d in range(len(spread))]), places.type)
    return [
        copy_(tensor(self.shape, self), self),
        child("aten::arange.start", 0, self.shape[dim], INT64, 0),
        child("aten::as_strided", places, view.shape, view.strides),
        copy_(tensor(self.shape, self, "long int"), view),
    ]


@bookkeeping_of("cumsum", "cumprod")
def _(self: Any, dim: Any, dtype: Any) -> list[Child]:
    return [cast(self, _sum_dtype(self, dtype))]


@bookkeeping_of("flip")
def _(self: Any, dims: Any) -> list[Child]:
    known(self)
    allocated = empty_like(self, 1)
    flipped = {d for d in _dims.many(dims, len(self.shape)) if self.shape[d] > 1 and self.strides[d]}
    if not flipped:
        return [allocated, copy_(tensor(self.shape, self), self)]
    strides = tuple([0 if d in flipped else step for d, step in enumerate(self.strides)])
    return [allocated, child("aten::as_strided", self, self.shape, strides)]


@bookkeeping_of("embedding_dense_backward")
def _(
    grad_output: Any, indices: Any, num_weights: Any, padding_idx: Any, scale_grad_by_freq: Any
) -> list[Child]:
    known(grad_output)
    width = grad_output.shape[-1]
    return [
        child("aten::zeros", (num_weights, width), dtype_number(grad_output), 0),
        *contiguous(indices),
        *contiguous(grad_output),
        child("aten::view", tensor(grad_output.shape, grad_output), (prod(indices.shape), width)),
    ]


@bookkeeping_of("take")
def _(self: Any, index: Any) -> list[Child]:
    return [empty(index.shape, dtype_number(self))]


@bookkeeping_of("fill_.Tensor")
def _(self: Any, value: Any) -> list[Child]:
    return [copy_(self, value)]


@bookkeeping_of("masked_fill_.Tensor")
def _(self: Any, mask: Any, value: Any) -> list[Child]:
    return [item(value)]


@bookkeeping_of("arange")
def _(end: Any, *options: Any) -> list[Child]:
    return _range(0, end, 1, *options)


@bookkeeping_of("arange.start")
def _(start: Any, end: Any, *options: Any) -> list[Child]:
    return _range(start, end, 1, *options)


@bookkeeping_of("arange.start_step")
def _range(
    start: Any, end: Any, step: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any
) -> list[Child]:
    known(start, end)
    if dtype is None and not any([isinstance(x, float) for x in (start, end, step)]):
        dtype = INT64
    out = tensor_of((0,), FLOAT32 if dtype is None else dtype)
    length = max(0, int(np.ceil((end - start) / step)))
    resized = child("aten::resize_", out, (length,), None)
    return [
        empty((0,), dtype, layout, pin_memory),
        child("aten::arange.start_out", start, end, step, out, children=[resized]),
    ]


@bookkeeping_of("median")
def _(self: Any) -> list[Child]:
    return [clone(self, allocates=False), empty((), dtype_number(self))]


@bookkeeping_of("linalg_solve_triangular")
def _(self: Any, B: Any, upper: Any, left: Any, unitriangular: Any) -> list[Child]:
    """The solution is computed in place of the right side, column by column."""
    known(self, B)
    batch = np.broadcast_shapes(self.shape[:-2], B.shape[:-2])
    turned = tensor((*batch, B.shape[-1], B.shape[-2]), B)
    result = view_of(turned, lambda array: array.swapaxes(-1, -2))
    if self.shape[:-2] != B.shape[:-2]:
        return []
    again = [child("aten::transpose.int", result, -2, -1)] if B.shape[-1] > 1 else []
    rows = [
        unsized(dtype_number(B)),
        *[child("aten::transpose.int", x, -2, -1) for x in (self, B)],
        child("aten::resize_", tensor((0,), B), turned.shape, 0),
        child("aten::transpose_", turned, -2, -1),
        *again,
        copy_(result, B),
    ]
    return [*rows, child("aten::transpose.int", self, -2, -1)] if not is_contiguous(self) else rows


@bookkeeping_of("linalg_lu_factor_ex")
def _(A: Any, pivot: Any, check_errors: Any) -> list[Child]:
    return [copy_(tensor(A.shape, A), A)]


@bookkeeping_of("logsumexp")
def _(self: Any, dim: Any, keepdim: Any) -> list[Child]:
    return [unsized(dtype_number(self))]


@bookkeeping_of("linalg_cross")
def _(self: Any, other: Any, dim: Any) -> list[Child]:
    known(self, other)
    shape = np.broadcast_shapes(self.shape, other.shape)
    return [child("aten::expand", x, shape, False) for x in (self, other)]
