"""Order: sorting, the largest few, ranks, unique values, searching in sorted ones, counting, quantiles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _dispatch, return_types
from .._dispatch import composite, function, op, unalias
from .._dtype import INTEGRAL_NUMS, NP_BFLOAT16, NP_BOOL, Default
from . import _dims
from ._namespace import functions as F


def _selected(g: Any, dim: int, indices: Any, shape: Any) -> Any:
    """A gradient of chosen values, back at their places."""
    return F.value_selecting_reduction_backward(g, dim, indices, shape, True)


def _order(array: np.ndarray, dim: int, descending: bool) -> np.ndarray:
    """A stable order along `dim`; NaN counts as the largest."""
    if array.dtype is NP_BFLOAT16:
        array = array.astype(np.float32)
    if not descending:
        return np.argsort(array, axis=dim, kind="stable")
    # a stable descending order: sort the reversed array and reverse the result
    back = np.flip(np.argsort(np.flip(array, dim), axis=dim, kind="stable"), dim)
    return array.shape[dim] - 1 - back


@op(
    "aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    expose="no",
    returns=return_types.sort,
    node="SortBackward1",
)
def sort_op(self: np.ndarray, stable: Any, dim: int, descending: bool) -> Any:
    dim = _dims.one(dim, self.ndim)
    if self.dtype.kind == "c":
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    if not self.ndim:
        return self.copy(), np.zeros((), np.int64)
    order = _order(self, dim, descending)
    return _laid_out(np.take_along_axis(self, order, dim), self), _laid_out(order, self)


def _laid_out(array: np.ndarray, like: np.ndarray) -> np.ndarray:
    """`array` in the order of `like` in memory, as torch's sort leaves it."""
    if like.flags.c_contiguous:
        return _dims.dense(array)
    if 0 in like.strides:  # expanded: no order of its own
        return _dims.dense(array)
    made = np.empty_like(like, dtype=array.dtype)
    np.copyto(made, array)
    return made


sort_op.derivative(self=lambda g, dim, indices, self_shape: _selected(g, dim, indices, self_shape))


@op(
    "aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    expose="no",
    returns=return_types.sort,
)
def sort_plain(self: np.ndarray, dim: int, descending: bool) -> Any:
    return sort_op.op.kernel(self, False, dim, descending)


sort_plain.derivative(self=lambda g, dim, indices, self_shape: _selected(g, dim, indices, self_shape))


@function()
def sort(
    input: Any,
    dim: int = -1,
    descending: bool = False,
    stable: Any = False,
    *,
    out: Any = None,
    **aliases: Any,
) -> Any:
    """Sorted values along a dimension and where they came from."""
    if aliases:
        return unalias(
            sort,
            {("dim" if k == "axis" else k): v for k, v in aliases.items()},
            input=input,
            descending=descending,
            stable=stable,
        )
    made = (
        sort_op(input, stable=stable, dim=dim, descending=descending)
        if stable
        else sort_plain(input, dim, descending)
    )
    return made if out is None else _give_pair(made, out)


def _give_pair(made: Any, out: Any) -> Any:
    for target, value in zip(out, made):
        _dispatch.give_out(target, value._array)
    return type(made)(tuple(out))


@function()
def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Where the sorted values come from."""
    return argsort_op(input, dim, descending)


@op(
    "aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
    expose="no",
    nondifferentiable=True,
)
def argsort_op(self: np.ndarray, dim: int, descending: bool) -> Any:
    dim = _dims.one(dim, self.ndim)
    return _laid_out(_order(self, dim, descending), self) if self.ndim else np.zeros((), np.int64)


argsort_op.recorded(
    lambda self, dim, descending: sort_op(self, stable=False, dim=dim, descending=descending)[1]
)


@function(expose="both")
def msort(input: Any, *, out: Any = None) -> Any:
    """Sorted along the first dimension."""
    made = sort_plain(input, 0, False)[0]
    if out is not None:
        _dispatch.give_out(out, made._array)
        return out
    return made


@op(
    "aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
    out=True,
    returns=return_types.topk,
)
def topk(self: np.ndarray, k: int, dim: int, largest: bool, sorted: bool) -> Any:
    dim = _dims.one(dim, self.ndim)
    n = self.shape[dim] if self.ndim else 1
    if not 0 <= k <= n:
        raise RuntimeError("selected index k out of range")
    if self.dtype.kind == "c":
        raise RuntimeError(" topk does not support complex dtypes on CPU")
    if self.dtype is NP_BOOL:
        raise RuntimeError("topk does not support bool dtypes on CPU")
    if not self.ndim:
        return self.copy(), np.zeros((), np.int64)
    keys = self.astype(np.float32) if self.dtype is NP_BFLOAT16 else self
    if n > 64 and k * 8 < n and not (keys.dtype.kind == "f" and np.isnan(keys).any()):
        part = (
            np.argpartition(keys, n - k if largest else k - 1, axis=dim) if k else np.argsort(keys, axis=dim)
        )
        chosen = np.take(part, range(n - k, n) if largest else range(k), axis=dim)
        chosen = np.sort(chosen, axis=dim)
        order = _order(np.take_along_axis(keys, chosen, dim), dim, largest)
        places = np.take_along_axis(chosen, order, dim)
    else:
        places = np.take(_order(keys, dim, largest), range(k), axis=dim)
    return np.take_along_axis(self, places, dim), _dims.dense(places)


topk.derivative(self=lambda g, dim, indices, self_shape: _selected(g, dim, indices, self_shape))


@op(
    "aten::kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    out=True,
    returns=return_types.kthvalue,
)
def kthvalue(self: np.ndarray, k: int, dim: int, keepdim: bool) -> Any:
    dim = _dims.one(dim, self.ndim)
    if self.ndim and not self.shape[dim]:
        raise IndexError(f"kthvalue(): Expected reduction dim {dim} to have non-zero size.")
    if not 1 <= k <= (self.shape[dim] if self.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    if self.dtype.kind in "bc":
        raise _dispatch.not_implemented("kthvalue_cpu", self)
    if not self.ndim:
        return self.copy(), np.zeros((), np.int64)
    places = np.take(_order(self, dim, False), [k - 1], axis=dim)
    values = np.take_along_axis(self, places, dim)
    return (values, places) if keepdim else (np.squeeze(values, dim), np.squeeze(places, dim))


kthvalue.derivative(
    self=lambda g, dim, indices, self_shape, keepdim: F.value_selecting_reduction_backward(
        g, dim, indices, self_shape, keepdim
    )
)


# ---------------------------------------------------------------------------------------------------- median and mode


def _median_places(self: np.ndarray, dim: int, skip_nan: bool) -> np.ndarray:
    order = _order(self, dim, False)
    n = self.shape[dim]
    if self.dtype.num in INTEGRAL_NUMS:
        return np.take(order, [(n - 1) // 2], axis=dim)
    nans = np.isnan(self).sum(dim, keepdims=True)
    if skip_nan:
        middle = np.maximum(n - nans - 1, 0) // 2
    else:
        # with a NaN anywhere torch answers the first of them
        first_nan = np.argmax(np.isnan(self), axis=dim)
        middle = np.full(nans.shape, (n - 1) // 2)
        places = np.take_along_axis(order, middle, dim)
        return np.where(nans > 0, np.expand_dims(first_nan, dim), places)
    return np.take_along_axis(order, middle, dim)


def _declare_median(name: str, skip_nan: bool) -> None:
    @op(f"aten::{name}(Tensor self) -> Tensor", expose="no")
    def whole(self: np.ndarray) -> Any:
        if self.dtype.kind in "bc":
            raise _dispatch.not_implemented("median_cpu", self)
        if not self.size:
            if self.dtype.num in INTEGRAL_NUMS:
                return np.array(np.iinfo(self.dtype).min, self.dtype)
            return np.array(np.nan, self.dtype)
        flat = self.reshape(-1)
        return flat[_median_places(flat, 0, skip_nan)[0]]

    def whole_grad(g: Any, self: Any, out: Any) -> Any:
        mask = (
            F.isnan(self)
            if self._array.dtype.num not in INTEGRAL_NUMS and math.isnan(out.item())
            else self == out
        )
        return (g / mask.sum()) * mask

    whole.derivative(self=whole_grad)

    @op(
        f"aten::{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        expose="no",
        returns=getattr(return_types, name),
        node=f"{name.capitalize()}Backward1",
    )
    def along(self: np.ndarray, dim: int, keepdim: bool) -> Any:
        dim = _dims.one(dim, self.ndim)
        if self.dtype.kind in "bc":
            raise _dispatch.not_implemented("median_out", self)
        if not self.ndim:
            return self.copy(), np.zeros((), np.int64)
        if not self.shape[dim]:
            raise IndexError(f"median(): Expected reduction dim {dim} to have non-zero size.")
        places = _median_places(self, dim, skip_nan)
        places = _dims.dense(places)
        values = _dims.dense(np.take_along_axis(self, places, dim))
        return (values, places) if keepdim else (np.squeeze(values, dim), np.squeeze(places, dim))

    along.derivative(
        self=lambda g, dim, indices, self_shape, keepdim: F.value_selecting_reduction_backward(
            g, dim, indices, self_shape, keepdim
        )
    )

    def front(input: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None, **aliases: Any) -> Any:
        if aliases:
            return unalias(front, aliases, input=input, dim=dim, keepdim=keepdim, out=out)
        if dim is None:
            return whole(input)
        made = along(input, dim, keepdim)
        return made if out is None else _give_pair(made, out)

    front.__name__ = name
    front.__doc__ = "The lower median of all elements, or along a dimension with its places."
    function(name)(front)


_declare_median("median", False)
_declare_median("nanmedian", True)


@op(
    "aten::mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    out=True,
    returns=return_types.mode,
)
def mode(self: np.ndarray, dim: int, keepdim: bool) -> Any:
    dim = _dims.one(dim, self.ndim)
    if not self.ndim:
        return self.copy(), np.zeros((), np.int64)
    if not self.shape[dim]:
        raise IndexError(f"mode(): Expected reduction dim {dim} to have non-zero size.")
    if self.dtype.kind == "c":
        raise _dispatch.not_implemented("mode_cpu", self)
    rows = np.moveaxis(self, dim, -1)
    flat = rows.reshape(-1, rows.shape[-1])
    places: Any = np.empty(len(flat), np.int64)
    for i, row in enumerate(flat):
        values, counts = np.unique(row, return_counts=True)
        places[i] = np.flatnonzero(row == values[counts.argmax()])[-1]
    places = places.reshape(rows.shape[:-1])
    spread = np.expand_dims(places, dim)
    values = np.take_along_axis(self, spread, dim)
    return (values, spread) if keepdim else (np.squeeze(values, dim), places)


mode.derivative(
    self=lambda g, dim, indices, self_shape, keepdim: F.value_selecting_reduction_backward(
        g, dim, indices, self_shape, keepdim
    )
)


# ---------------------------------------------------------------------------------------------------- unique


@op(
    "aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
    expose="no",
    nondifferentiable=True,
)
def _unique2(self: np.ndarray, sorted: bool, return_inverse: bool, return_counts: bool) -> Any:
    values, inverse, counts = np.unique(self, return_inverse=True, return_counts=True, equal_nan=False)
    none = np.empty(0, np.int64)
    return (
        values,
        (inverse.reshape(self.shape).astype(np.int64) if return_inverse else none),
        counts.astype(np.int64) if return_counts else none,
    )


@op(
    "aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
    expose="no",
    nondifferentiable=True,
)
def unique_dim(self: np.ndarray, dim: int, sorted: bool, return_inverse: bool, return_counts: bool) -> Any:
    dim = _dims.one(dim, self.ndim)
    values, inverse, counts = np.unique(
        self, return_inverse=True, return_counts=True, axis=dim, equal_nan=False
    )
    return _dims.dense(values), inverse.reshape(-1).astype(np.int64), counts.astype(np.int64)


def _pick_outputs(made: tuple, return_inverse: bool, return_counts: bool) -> Any:
    if not return_inverse and not return_counts:
        return made[0]
    return (made[0], *([made[1]] if return_inverse else []), *([made[2]] if return_counts else []))


@function(expose="function")
def unique(
    input: Any,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: Any = None,
) -> Any:
    """The different values, sorted; with where each element went and how often each occurs."""
    if dim is None:
        made = _unique2(input, sorted, return_inverse, return_counts)
    else:
        made = unique_dim(input, dim, sorted, return_inverse, return_counts)
    return _pick_outputs(made, return_inverse, return_counts)


@function("unique", expose="method")
def unique_method(
    self: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """The different values."""
    return unique(self, sorted, return_inverse, return_counts, dim)


@op(
    "aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)",
    expose="no",
    nondifferentiable=True,
)
def unique_consecutive_op(self: np.ndarray, return_inverse: bool, return_counts: bool, dim: Any) -> Any:
    if dim is None:
        rows, flat = self.reshape(-1, 1), self.reshape(-1)
    else:
        dim = _dims.one(dim, self.ndim)
        rows = np.moveaxis(self, dim, 0).reshape(self.shape[dim], -1)
        flat = None
    new = np.ones(len(rows), bool)
    if len(rows) > 1:
        new[1:] = (rows[1:] != rows[:-1]).any(1)
    starts = np.flatnonzero(new)
    values = flat[starts] if flat is not None else _dims.dense(np.take(self, starts, axis=dim))
    inverse = np.cumsum(new) - 1
    counts = np.diff(np.append(starts, len(rows)))
    return (
        values,
        (inverse.reshape(self.shape) if dim is None else inverse).astype(np.int64),
        counts.astype(np.int64),
    )


@function(expose="both")
def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """Values without their immediate repetitions."""
    return _pick_outputs(
        unique_consecutive_op(input, return_inverse, return_counts, dim), return_inverse, return_counts
    )


# ---------------------------------------------------------------------------------------------------- searching, counting


@op(
    "aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, "
    "Tensor? sorter=None) -> Tensor",
    expose="no",
    nondifferentiable=True,
)
def searchsorted_op(
    sorted_sequence: np.ndarray, self: np.ndarray, out_int32: bool, right: bool, side: Any, sorter: Any
) -> Any:
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    where = "right" if right or side == "right" else "left"
    boundaries = sorted_sequence if sorter is None else np.take_along_axis(sorted_sequence, sorter, -1)
    kind = np.int32 if out_int32 else np.int64
    if boundaries.ndim == 1:
        return np.searchsorted(boundaries, self, where).astype(kind)
    if boundaries.shape[:-1] != self.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor "
            f"must match, but we got boundaries tensor {list(boundaries.shape)} and input value tensor {list(self.shape)}"
        )
    flat, values = boundaries.reshape(-1, boundaries.shape[-1]), self.reshape(-1, self.shape[-1])
    made = np.empty(values.shape, kind)
    for i in range(len(flat)):
        made[i] = np.searchsorted(flat[i], values[i], where)
    return made.reshape(self.shape)


@function(expose="function")
def searchsorted(
    sorted_sequence: Any,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: Any = None,
    out: Any = None,
    sorter: Any = None,
) -> Any:
    """Where values would be inserted into sorted sequences."""
    values = input if isinstance(input, _dispatch.Tensor) else F.tensor(input, dtype=sorted_sequence.dtype)
    made = searchsorted_op(
        sorted_sequence, values, out_int32=out_int32, right=right, side=side, sorter=sorter
    )
    if out is not None:
        _dispatch.give_out(out, made._array)
        return out
    return made


@function(expose="function")
def bucketize(
    input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False, out: Any = None
) -> Any:
    """Which bucket each value falls into."""
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)


@op("aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor", nondifferentiable=True)
def bincount(self: np.ndarray, weights: Any, minlength: int) -> Any:
    if self.dtype.num not in INTEGRAL_NUMS or self.dtype is NP_BOOL:
        raise _dispatch.not_implemented("bincount_cpu", self)
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if self.ndim != 1 or (self.size and self.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights.shape != self.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    made = np.bincount(self, weights, minlength)
    if weights is None:
        return made.astype(np.int64)
    return made.astype(weights.dtype if weights.dtype == np.float32 else np.float64)


@op(
    "aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    nondifferentiable=True,
    out=True,
)
def histc(self: np.ndarray, bins: int, min: Any, max: Any) -> Any:
    low, high = min, max
    if self.dtype.kind != "f" and self.dtype is not NP_BFLOAT16:
        raise _dispatch.not_implemented("histogram_cpu", self)
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if low == high and self.size:
        low, high = self.min(), self.max()
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{_shown(low)}, {_shown(high)}] is not finite")
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    return np.histogram(self, bins, (float(low), float(high)))[0].astype(self.dtype)


def _shown(bound: Any) -> str:
    return "-nan" if math.isnan(bound) else f"{bound:g}"


@function(expose="both")
def histogram(
    input: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False, out: Any = None
) -> Any:
    """Counts per bin and the bins' edges."""
    edges = bins._array if isinstance(bins, _dispatch.Tensor) else bins
    values = input._array.reshape(-1)
    if (
        not isinstance(bins, _dispatch.Tensor)
        and range is None
        and values.size
        and values.min() == values.max()
    ):
        range = (values[0] - 0.5, values[0] + 0.5)
    hist, ends = np.histogram(
        values, edges, range, density, None if weight is None else weight._array.reshape(-1)
    )
    kind = input._array.dtype
    return return_types.histogram((_dispatch.wrap(hist.astype(kind)), _dispatch.wrap(ends.astype(kind))))


@function(expose="function")
def histogramdd(input: Any, bins: Any, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    """Counts per cell of a grid and the grid's edges."""
    points = input._array.reshape(-1, input.shape[-1])
    edges = (
        [b._array if isinstance(b, _dispatch.Tensor) else b for b in bins]
        if isinstance(bins, (list, tuple))
        else [bins] * points.shape[1]
    )
    limits = None if range is None else list(zip(range[::2], range[1::2]))
    hist, ends = np.histogramdd(
        points, edges, limits, density, None if weight is None else weight._array.reshape(-1)
    )
    kind = input._array.dtype
    return return_types.histogramdd(
        (_dispatch.wrap(hist.astype(kind)), tuple(_dispatch.wrap(e.astype(kind)) for e in ends))
    )


# ---------------------------------------------------------------------------------------------------- quantiles


def _quantile(
    input: Any, q: Any, dim: Any, keepdim: bool, interpolation: str, skip_nan: bool, name: str
) -> Any:
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if input._array.dtype not in (np.float32, np.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if not isinstance(q, _dispatch.Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        q = F.tensor(q, dtype=input.dtype)
    if q.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if q.dtype is not input.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if not bool(((q._array >= 0) & (q._array <= 1)).all()):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    if input.numel() == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    shape = list(input.shape)
    if dim is None:
        flat = input.reshape(-1)
        kept = [1] * input.ndim if keepdim else []
    else:
        where = _dims.one(dim, input.ndim)
        flat = input.movedim(where, -1) if input.ndim else input.reshape(1)
        kept = (
            [1 if d == where else n for d, n in enumerate(shape)]
            if keepdim
            else [n for d, n in enumerate(shape) if d != where]
        )
    ordered = sort_op(flat, stable=False, dim=-1, descending=False)[0]
    n = flat.shape[-1]
    nans = np.isnan(flat._array).sum(-1, keepdims=True)
    last = (n - nans - 1) if skip_nan else np.full(nans.shape, n - 1)
    ranks = q._array.reshape(-1) * np.maximum(last, 0).astype(q._array.dtype)
    if not skip_nan:
        ranks = np.where(nans > 0, n - 1, ranks).astype(q._array.dtype)
    if interpolation == "nearest":
        ranks = np.rint(ranks)
    low, high = np.floor(ranks).astype(np.int64), np.ceil(ranks).astype(np.int64)
    below, above = F.gather(ordered, -1, _dispatch.wrap(low)), F.gather(ordered, -1, _dispatch.wrap(high))
    if interpolation == "lower" or interpolation == "nearest":
        made = below
    elif interpolation == "higher":
        made = above
    else:
        part = np.full(ranks.shape, 0.5) if interpolation == "midpoint" else ranks - low
        made = F.lerp(below, above, _dispatch.wrap(part.astype(input._array.dtype)))
    made = made.movedim(-1, 0)
    if q.ndim:
        return F.clone(made.reshape([*q.shape, *kept]))
    return F.clone(made.squeeze(0).reshape(kept))


def _declare_quantile(name: str, skip_nan: bool) -> None:
    def front(
        input: Any,
        q: Any,
        dim: Any = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
        out: Any = None,
    ) -> Any:
        made = _quantile(input, q, dim, keepdim, interpolation, skip_nan, name)
        if out is not None:
            _dispatch.give_out(out, made._array)
            return out
        return made

    front.__name__ = name
    front.__doc__ = "Quantiles of all elements, or along a dimension."
    function(name)(front)


_declare_quantile("quantile", False)
_declare_quantile("nanquantile", True)


# ---------------------------------------------------------------------------------------------------- statistics


def _check_weights(name: str, weights: Any, count: int, integral: bool) -> None:
    if weights is None:
        return
    if weights.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.ndim} dimensions"
        )
    if (weights.dtype._rank == 1) is not integral:
        kind = "integral" if integral else "floating point"
        raise RuntimeError(
            f"cov(): expected {name} to have {kind} dtype but got {name} with {weights.dtype._abbr} dtype"
        )
    if weights.numel() != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got {weights.numel()} != {count}"
        )
    if count and weights._array.min() < 0:
        raise RuntimeError(f"cov(): {name} cannot be negative")


@composite(
    "aten::cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor"
)
def cov(self: Any, correction: int, fweights: Any, aweights: Any) -> Any:
    if self.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {self.ndim} dimensions"
        )
    x = self.reshape(1, -1) if self.ndim < 2 else self
    if x.dtype._rank < 2:
        x = x.to(Default.dtype)
    _check_weights("fweights", fweights, x.shape[1], integral=True)
    _check_weights("aweights", aweights, x.shape[1], integral=False)
    weights = None
    if fweights is not None:
        weights = fweights
    if aweights is not None:
        weights = aweights if weights is None else weights * aweights
    if weights is None:
        center = x - x.mean(1, True)
        norm = x.shape[1] - correction
        made = F.matmul(center, F.conj(center.t())) / max(norm, 0)
    else:
        total = weights.sum()
        center = x - (x * weights).sum(1, True) / total
        norm = (
            total - correction
            if aweights is None
            else total - correction * (weights * aweights).sum() / total
        )
        made = F.matmul(center * weights, F.conj(center.t())) / F.clamp(norm, min=0)
    return made.squeeze()


@composite("aten::corrcoef(Tensor self) -> Tensor")
def corrcoef(self: Any) -> Any:
    if self.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {self.ndim} dimensions"
        )
    made = cov(self)
    if made.ndim == 0:
        return made / made
    spread = F.sqrt(F.diagonal(F.real(made) if made.is_complex() else made))
    made = made / spread.unsqueeze(1) / spread.unsqueeze(0)
    if made.is_complex():
        return F.complex(F.clamp(F.real(made), -1, 1), F.clamp(F.imag(made), -1, 1))
    return F.clamp(made, -1, 1)
