"""Order: sorting, the largest few, ranks, unique values, searching in sorted ones, counting, quantiles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _dispatch, _op_errors, return_types
from .._dispatch import composite, function, op, unalias
from .._dtype import INTEGRAL_NUMS, NP_BFLOAT16, NP_BOOL
from . import _core, _dims
from ._children import UNKNOWN, Child, child, dtype_number, empty, is_contiguous, tensor
from ._namespace import functions as F
from .extremes import share_evenly


def _selected(g: Any, dim: int, indices: Any, shape: Any) -> Any:
    """The gradient of selected values, scattered back to their indices."""
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
    if self.dtype.kind in "cW":
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    if not self.ndim:
        return self.copy(), np.zeros((), np.int64)
    order = _order(self, dim, descending)
    return _laid_out(_in_order(self, order, dim), self), _laid_out(order, self)


def _in_order(array: np.ndarray, order: np.ndarray, dim: int) -> np.ndarray:
    """`np.take_along_axis`; along the last dimension in half its time."""
    if dim != array.ndim - 1 or not array.size:
        return np.take_along_axis(array, order, dim)
    rows = _dims.rows(array)
    return rows[np.arange(len(rows))[:, None], order.reshape(rows.shape)].reshape(array.shape)


def _laid_out(array: np.ndarray, like: np.ndarray) -> np.ndarray:
    """`array` in the order of `like` in memory, as torch's sort leaves it."""
    if like.flags.c_contiguous:
        return _dims.dense(array)
    if 0 in like.strides:  # expanded: no order of its own
        return _dims.dense(array)
    copy = np.empty_like(like, dtype=array.dtype)
    np.copyto(copy, array)
    return copy


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
    """Sorted values along a dimension and their indices in the input."""
    if aliases:
        return unalias(
            sort,
            {("dim" if k == "axis" else k): v for k, v in aliases.items()},
            input=input,
            descending=descending,
            stable=stable,
        )
    pair = (
        sort_op(input, stable=stable, dim=dim, descending=descending)
        if stable
        else sort_plain(input, dim, descending)
    )
    return _dispatch.into_out(pair, out)


@function()
def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """The indices that sort the tensor along a dimension."""
    if stable:
        return argsort_stable(input, stable=True, dim=dim, descending=descending)
    return argsort_op(input, dim, descending)


@composite("aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", expose="no")
def argsort_op(self: Any, dim: int, descending: bool) -> Any:
    return sort_plain(self, dim, descending)[1]


@composite(
    "aten::argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
    expose="no",
)
def argsort_stable(self: Any, stable: bool, dim: int, descending: bool) -> Any:
    return sort_op(self, stable=stable, dim=dim, descending=descending)[1]


@composite("aten::msort(Tensor self) -> Tensor", expose="no")
def _msort(self: Any) -> Any:
    return sort_plain(self, 0, False)[0]


@function(expose="both")
def msort(input: Any, *, out: Any = None) -> Any:
    """Sorted along the first dimension."""
    ordered = _msort(input)
    return _dispatch.into_out(ordered, out)


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
    if self.dtype.kind in "cW":
        raise RuntimeError(" topk does not support complex dtypes on CPU")
    if self.dtype is NP_BOOL:
        raise RuntimeError("topk does not support bool dtypes on CPU")
    if not self.ndim:
        return self.copy(), np.zeros((), np.int64)
    fused = _core.topk(self, k, largest) if dim == self.ndim - 1 else None
    if fused is not None:
        return fused
    keys = self.astype(np.float32) if self.dtype is NP_BFLOAT16 else self
    if n > 64 and 0 < k * 8 < n and not (keys.dtype.kind == "f" and np.isnan(keys).any()):
        chosen = _chosen(keys, k, dim, largest)
        order = _order(np.take_along_axis(keys, chosen, dim), dim, largest)
        places = np.take_along_axis(chosen, order, dim)
    else:
        places = np.take(_order(keys, dim, largest), range(k), axis=dim)
    return np.take_along_axis(self, places, dim), _dims.dense(places)


def _chosen(keys: np.ndarray, k: int, dim: int, largest: bool) -> np.ndarray:
    """The places of the k largest or smallest numbers along a dimension, in the order of places; of equal ones the first."""
    rows = np.moveaxis(keys, dim, -1)
    at = rows.shape[-1] - k if largest else k - 1
    limit = np.partition(rows, at, -1)[..., at : at + 1]
    taken = rows >= limit if largest else rows <= limit
    if np.count_nonzero(taken) != k * (rows.size // rows.shape[-1]):
        equal = rows == limit
        beyond = k - (taken & ~equal).sum(-1, keepdims=True)
        taken &= ~equal | (equal.cumsum(-1) <= beyond)
    places = np.nonzero(taken)[-1].reshape(*rows.shape[:-1], k)
    return np.moveaxis(places, -1, dim)


topk.derivative(self=lambda g, dim, indices, self_shape: _selected(g, dim, indices, self_shape))


_LEAST_PARTITIONED = 64  # elements of a row: fewer are sorted as fast


def _kth_places(self: np.ndarray, k: int, dim: int) -> np.ndarray:
    """The places of the k-th smallest numbers, which are those in the sorted order also where several numbers are equal."""
    if self.dtype.char in "fd" and self.shape[dim] >= _LEAST_PARTITIONED:
        hits = self == np.take(np.partition(self, k - 1, axis=dim), [k - 1], axis=dim)
        if np.all(np.count_nonzero(hits, axis=dim) == 1):
            return np.argmax(hits, axis=dim, keepdims=True)
    return np.take(_order(self, dim, False), [k - 1], axis=dim)


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
        raise _op_errors.not_implemented("kthvalue_cpu", self)
    if not self.ndim:
        return self.copy(), np.zeros((), np.int64)
    places = _kth_places(self, k, dim)
    values = np.take_along_axis(self, places, dim)
    return (values, places) if keepdim else (np.squeeze(values, dim), np.squeeze(places, dim))


kthvalue.derivative(
    self=lambda g, dim, indices, self_shape, keepdim: F.value_selecting_reduction_backward(
        g, dim, indices, self_shape, keepdim
    )
)


# ---------------------------------------------------------------------------------------------------- median and mode


def _median_places(self: np.ndarray, dim: int, skip_nan: bool) -> np.ndarray:
    n = self.shape[dim]
    if self.dtype.num in INTEGRAL_NUMS or not np.isnan(self).any():
        return _kth_places(self, (n - 1) // 2 + 1, dim)
    order = _order(self, dim, False)
    nans = np.isnan(self).sum(dim, keepdims=True)
    if skip_nan:
        middle = np.maximum(n - nans - 1, 0) // 2
    else:
        # torch returns the first NaN if there is one
        first_nan = np.argmax(np.isnan(self), axis=dim)
        middle = np.full(nans.shape, (n - 1) // 2)
        places = np.take_along_axis(order, middle, dim)
        return np.where(nans > 0, np.expand_dims(first_nan, dim), places)
    return np.take_along_axis(order, middle, dim)


def _declare_median(aten_name: str, skip_nan: bool) -> None:
    name = aten_name.removeprefix("aten::")

    @op(f"{aten_name}(Tensor self) -> Tensor", expose="no")
    def whole(self: np.ndarray) -> Any:
        if self.dtype.kind in "bc":
            raise _op_errors.not_implemented("median_cpu", self)
        if not self.size:
            if self.dtype.num in INTEGRAL_NUMS:
                return np.array(np.iinfo(self.dtype).min, self.dtype)
            return np.array(np.nan, self.dtype)
        flat = self.reshape(-1)
        return flat[_median_places(flat, 0, skip_nan)[0]]

    whole.derivative(self=share_evenly)

    @op(
        f"{aten_name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        expose="no",
        returns=getattr(return_types, name),
        node=f"{name.capitalize()}Backward1",
    )
    def along(self: np.ndarray, dim: int, keepdim: bool) -> Any:
        dim = _dims.one(dim, self.ndim)
        if self.dtype.kind in "bc":
            raise _op_errors.not_implemented("median_out", self)
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
        pair = along(input, dim, keepdim)
        return _dispatch.into_out(pair, out)

    front.__name__ = name
    front.__doc__ = "The lower median of all elements, or along a dimension with its places."
    function(name)(front)


_declare_median("aten::median", False)
_declare_median("aten::nanmedian", True)


def _mode_places(flat: np.ndarray) -> np.ndarray:
    """The last place of the most frequent number of each row; of several the smallest. NaN are all equal."""
    if flat.dtype.kind in "fV" and np.isnan(flat).any():
        places = np.empty(len(flat), np.int64)
        for i, row in enumerate(flat):
            values, counts = np.unique(row, return_counts=True)
            value = values[counts.argmax()]
            places[i] = np.flatnonzero(row == value if value == value else np.isnan(row))[-1]
        return places
    n = flat.shape[1]
    ordered = np.sort(flat, 1)
    numbers = np.arange(n)
    starts = np.zeros(flat.shape, np.int64)
    np.copyto(starts[:, 1:], numbers[1:], where=ordered[:, 1:] != ordered[:, :-1])
    run = numbers - np.maximum.accumulate(starts, 1)  # how many equal numbers come before each
    value = np.take_along_axis(ordered, run.argmax(1)[:, None], 1)
    return n - 1 - (flat == value)[:, ::-1].argmax(1)


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
    if self.dtype.kind in "cW":
        raise _op_errors.not_implemented("mode_cpu", self)
    rows = np.moveaxis(self, dim, -1)
    places: Any = _mode_places(_dims.rows(rows)).reshape(rows.shape[:-1])
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
    rows = np.ascontiguousarray(np.moveaxis(values, dim, 0))
    return np.moveaxis(rows, 0, dim), inverse.reshape(-1).astype(np.int64), counts.astype(np.int64)


@_unique2.children
def _(self: Any, sorted: Any, return_inverse: Any, return_counts: Any) -> list[Child]:
    flat, inside = self, [child("aten::view", self, UNKNOWN)]
    if self is not UNKNOWN:
        flat = tensor((math.prod(self.shape),), self)
        view = "aten::view" if is_contiguous(self) else "aten::reshape"
        inside = [child(view, self, flat.shape)] if len(self.shape) != 1 else []
    rows = [child("aten::flatten.using_ints", self, children=inside), child("aten::sort", flat)]
    if return_inverse is UNKNOWN:
        return rows
    outputs = [tensor((0,), self), *[tensor((0,), self, "long int")] * 3]
    # how many values there are depends on them
    sized = [outputs[0], *outputs[1:2] * bool(return_inverse), *outputs[2:] * bool(return_counts)]
    return [
        *[empty(x.shape, dtype_number(x), allocates=False) for x in outputs],
        *rows,
        *[child("aten::resize_", x, None, None) for x in sized],
    ]


def _pick_outputs(outputs: tuple, return_inverse: bool, return_counts: bool) -> Any:
    if not return_inverse and not return_counts:
        return outputs[0]
    return (outputs[0], *([outputs[1]] if return_inverse else []), *([outputs[2]] if return_counts else []))


@function(expose="function")
def unique(
    input: Any,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: Any = None,
) -> Any:
    """The distinct values, sorted; on request with the index of each element among them, and their counts."""
    if dim is None:
        outputs = _unique2(input, sorted, return_inverse, return_counts)
    else:
        outputs = unique_dim(input, dim, sorted, return_inverse, return_counts)
    return _pick_outputs(outputs, return_inverse, return_counts)


@function("unique", expose="method")
def unique_method(
    self: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """The distinct values."""
    return unique(self, sorted, return_inverse, return_counts, dim)


@op(
    "aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)",
    expose="no",
    nondifferentiable=True,
)
def unique_consecutive_op(self: np.ndarray, return_inverse: bool, return_counts: bool, dim: Any) -> Any:
    if dim is None:
        flat = self.reshape(-1)
        rows = flat[:, None]
    else:
        dim = _dims.one(dim, self.ndim)
        rows = _dims.flat_from(np.moveaxis(self, dim, 0), 1)
        flat = None
    new = np.ones(len(rows), bool)
    if len(rows) > 1:
        new[1:] = (rows[1:] != rows[:-1]).any(1)
    starts = np.flatnonzero(new)
    values = flat[starts] if flat is not None else _dims.dense(np.take(self, starts, axis=dim))
    if dim is None and not (return_inverse or return_counts):
        return values, np.empty(0, np.int64), np.empty(0, np.int64)
    inverse = np.cumsum(new) - 1
    counts = np.diff(np.append(starts, len(rows)))
    if dim is None:
        inverse = inverse.reshape(self.shape) if return_inverse else np.empty(0, np.int64)
        counts = counts if return_counts else np.empty(0, np.int64)
    return values, inverse.astype(np.int64), counts.astype(np.int64)


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
    flat, values = _dims.rows(boundaries), _dims.rows(self)
    positions = np.empty(values.shape, kind)
    for i in range(len(flat)):
        positions[i] = np.searchsorted(flat[i], values[i], where)
    return positions.reshape(self.shape)


@op(
    "aten::searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? side=None, "
    "Tensor? sorter=None) -> Tensor",
    expose="no",
    nondifferentiable=True,
)
def searchsorted_number(
    sorted_sequence: np.ndarray, self: Any, out_int32: bool, right: bool, side: Any, sorter: Any
) -> Any:
    value = np.array(self, sorted_sequence.dtype)
    return searchsorted_op.op.kernel(sorted_sequence, value, out_int32, right, side, sorter)


@op(
    "aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    expose="no",
    nondifferentiable=True,
)
def _bucketize(self: np.ndarray, boundaries: np.ndarray, out_int32: bool, right: bool) -> Any:
    return searchsorted_op.op.kernel(boundaries, self, out_int32, right, None, None)


@op(
    "aten::bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    expose="no",
    nondifferentiable=True,
)
def _bucketize_number(self: Any, boundaries: np.ndarray, out_int32: bool, right: bool) -> Any:
    return searchsorted_number.op.kernel(boundaries, self, out_int32, right, None, None)


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
    find = searchsorted_op if isinstance(input, _dispatch.Tensor) else searchsorted_number
    positions = find(sorted_sequence, input, out_int32=out_int32, right=right, side=side, sorter=sorter)
    return _dispatch.into_out(positions, out)


@function(expose="function")
def bucketize(
    input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False, out: Any = None
) -> Any:
    """Which bucket each value falls into."""
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    find = _bucketize if isinstance(input, _dispatch.Tensor) else _bucketize_number
    buckets = find(input, boundaries, out_int32=out_int32, right=right)
    return _dispatch.into_out(buckets, out)
