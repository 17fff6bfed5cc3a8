"""Bags of embeddings: a table, indices and the start of each bag in; one sum, mean or maximum per bag out, with derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch
from .._dispatch import composite, op
from .._dtype import BY_NUM
from . import _dims
from ._children import (
    Child,
    child,
    contiguous,
    copy_,
    dtype_number,
    empty,
    empty_like,
    fill_,
    narrow,
    tensor,
    zero_,
    zeros,
)
from ._double_backward import through
from ._half_precision import in_float32, widened
from ._namespace import functions as F
from .embedding import embedding_backward, sum_rows

SUM, MEAN, MAX = 0, 1, 2


@in_float32
def _bags(
    weight: np.ndarray,
    indices: np.ndarray,
    offsets: np.ndarray,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Any,
    include_last_offset: bool,
    padding_idx: int,
) -> Any:
    """Values of the bags, the bag of each index (empty for plain sums), sizes of the bags (zeros for sums), and the places of maxima."""
    common = (
        indices.dtype if indices.dtype is offsets.dtype else np.promote_types(indices.dtype, offsets.dtype)
    )
    if common.num not in (np.dtype(np.int64).num, np.dtype(np.int32).num):
        culprit = indices if indices.dtype.kind == "f" else offsets
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{BY_NUM[culprit.dtype.num]._abbr}Tensor instead (while checking arguments for embedding_bag)"
        )
    if offsets.size and offsets[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
            f"However, got {offsets[0]}\n[ torch.LongTensor{{}} ]"
        )
    if offsets.size and offsets[-1] > indices.size:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {indices.size} but got offsets[-1] of {offsets[-1]}"
        )
    if not _dims.inside(indices, 0, weight.shape[0]):
        raise RuntimeError(
            f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {int(indices[(indices < 0) | (indices >= weight.shape[0])][0])}"
        )
    bags = offsets.size - 1 if include_last_offset else offsets.size
    bounds = np.concatenate(
        [offsets[:bags], [offsets[-1] if include_last_offset and bags else indices.size]]
    ).astype(np.int64)
    lengths = np.diff(bounds)
    if (lengths < 0).any():
        raise RuntimeError(
            "Expected i < index_size to be true, but got false.  "
            "(Could this error message be improved?  If so, please report an enhancement request to PyTorch.)"
        )
    owner = np.repeat(np.arange(bags), lengths)
    if owner.size < indices.size:
        owner = np.concatenate([owner, np.full(indices.size - owner.size, max(bags - 1, 0))])
    kept = indices != padding_idx if padding_idx >= 0 else np.ones(indices.shape, bool)
    rows = weight[indices[kept]]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[kept][:, None]
    sizes = np.bincount(owner[kept], minlength=bags).astype(np.int64)
    places = np.zeros((bags, weight.shape[1]) if mode == MAX else (0,), np.int64)
    if mode == MAX:
        bag_values = np.zeros((bags, weight.shape[1]), weight.dtype)
        for bag in np.flatnonzero(sizes):
            members = np.flatnonzero((owner == bag) & kept)
            values = weight[indices[members]]
            best = values.argmax(0)
            bag_values[bag] = np.take_along_axis(values, best[None], 0)[0]
            places[bag] = indices[members][best]
    else:
        bag_values = sum_rows(rows, owner[kept], bags)
        if mode == MEAN:
            bag_values = bag_values / np.maximum(sizes, 1)[:, None].astype(bag_values.dtype)
    if mode == SUM:
        sizes[:] = 0
        owner = owner[:0] if padding_idx < 0 else owner
    return (
        bag_values,
        owner.astype(common),
        sizes.astype(common),
        (places if mode == MAX else sizes).astype(common),
    )


_ARGUMENTS = (
    "(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, "
    "Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)"
)

_embedding_bag = op(
    f"aten::_embedding_bag{_ARGUMENTS}", expose="function", node="EmbeddingBagBackward0", outputs=1
)(_bags)
_embedding_bag_forward_only = op(
    f"aten::_embedding_bag_forward_only{_ARGUMENTS}", expose="function", nondifferentiable=True
)(_bags)


def _bag_children(forward_only: bool) -> Any:
    def rule(
        weight: Any,
        indices: Any,
        offsets: Any,
        scale_grad_by_freq: bool,
        mode: int,
        sparse: bool,
        per_sample_weights: Any,
        include_last_offset: bool,
        padding_idx: int,
    ) -> Any:
        bags = offsets.shape[0] - include_last_offset
        dtype = dtype_number(indices)
        starts, values = tensor((bags,), offsets), tensor((bags, weight.shape[1]), weight)
        inside = [empty(values.shape, dtype_number(weight)), empty((0,), dtype, allocates=False)]
        if not bags:
            return inside
        if mode != SUM or padding_idx >= 0:
            inside += [narrow(offsets, 0, 0, bags)] if include_last_offset else []
            inside += _owner_children(starts, indices.shape[0], dtype)
        inside.append(empty(offsets.shape, dtype, allocates=False))
        if mode != SUM or not forward_only:
            inside += _size_children(offsets, starts, indices.shape[0])
        inside.append(empty((bags,), dtype, allocates=False))
        if mode == MEAN:
            inside += _mean_children(starts, values)
        return inside if mode == MAX else [*inside, copy_(starts, starts)]

    return rule


def _owner_children(starts: Any, count: int, dtype: int) -> list[Child]:
    """The bag of each index, from the starts of bags."""
    counts = tensor((count + 1,), starts)
    return [
        child("aten::ones_like", starts, None, None, None, None, 0),
        child("aten::index_add_", counts, 0, starts, starts),
        child("aten::select.int", counts, 0, 0),
        child("aten::sub_.Scalar", tensor((), starts), 1),
        child("aten::cumsum", counts, 0, dtype),
    ]


def _size_children(offsets: Any, starts: Any, count: int) -> list[Child]:
    """How many indices each bag has."""
    bags = starts.shape[0]
    one, lengths = tensor((), starts), tensor((bags - 1,), starts)
    differences = [
        child("aten::slice.Tensor", offsets, 0, 1, bags),
        child("aten::slice.Tensor", offsets, 0, 0, bags - 1),
        child("aten::sub.Tensor", lengths, lengths),
        child("aten::slice.Tensor", starts, 0, 0, bags - 1),
        copy_(lengths, lengths),
    ]
    return [
        *(differences if bags != 1 else ()),
        child("aten::select.int", offsets, 0, bags - 1),
        empty_like(one, allocates=False),
        fill_(one, count),
        child("aten::sub_.Tensor", one, one),
        child("aten::select.int", starts, 0, bags - 1),
        copy_(one, one),
    ]


def _mean_children(sizes: Any, values: Any) -> list[Child]:
    """Sums divided by the sizes of their bags."""
    dtype, column = dtype_number(values), tensor((*sizes.shape, 1), values)
    options = (dtype, 0, None, None, False)
    cast = child("aten::_to_copy", sizes, *options, None)
    return [
        child("aten::ones_like", sizes, None, None, None, None, 0),
        child("aten::max.other", sizes, sizes, children=[child("aten::maximum", sizes, sizes)]),
        child("aten::to.dtype_layout", sizes, *options, False, None, children=[cast]),
        child("aten::unsqueeze", tensor(sizes.shape, values), 1),
        child("aten::expand_as", column, values, children=[child("aten::expand", column, values.shape)]),
        child("aten::div_.Tensor", values, values),
    ]


_embedding_bag.children(_bag_children(False))
_embedding_bag_forward_only.children(_bag_children(True))


@_embedding_bag.backward("weight", "per_sample_weights")
def _(
    grads: Any,
    weight: Any,
    indices: Any,
    offsets: Any,
    per_sample_weights: Any,
    mode: int,
    sparse: bool,
    scale_grad_by_freq: bool,
    padding_idx: int,
    result1: Any,
    result2: Any,
    result3: Any,
    weight_shape: Any,
    needs: Any,
) -> Any:
    to_weight = to_samples = None
    if needs[1]:
        to_samples = _samples_backward(grads[0], weight, indices, offsets, result1, mode, padding_idx)
    if needs[0]:
        to_weight = (_backward_to_sparse if sparse else _backward)(
            grads[0], indices, offsets, result1, result2, result3, weight_shape[0], scale_grad_by_freq, mode, sparse,
            per_sample_weights, padding_idx)  # fmt: skip
    return to_weight, to_samples


def _known_owners(offset2bag: Any, offsets: Any, count: int) -> Any:
    """The bag of each index, computed if the forward pass did not need it."""
    if offset2bag._array.size or not count:
        return offset2bag
    counts = np.zeros(count + 1, np.int64)
    np.add.at(counts, offsets._array, 1)
    return _dispatch.wrap((np.cumsum(counts) - 1)[:count])


def _known_owner_children(grad: Any, indices: Any, offsets: Any, offset2bag: Any, *_: Any) -> Any:
    if offset2bag.shape[0] or not indices.shape[0]:
        return ()
    count, dtype = indices.shape[0], dtype_number(offsets)
    counts = tensor((count + 1,), offsets)
    blank = child("aten::new_empty", offsets, counts.shape, dtype, 0, children=[empty(counts.shape, dtype)])
    return [
        child("aten::new_zeros", offsets, counts.shape, dtype, 0, children=[blank, zero_(counts)]),
        *_owner_children(offsets, count, dtype),
        child("aten::resize_", counts, (count,)),
    ]


@op(
    "aten::_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, "
    "Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, "
    "int padding_idx=-1) -> Tensor",
    expose="no",
    on="tensors",
)
def _backward(
    grad: Any,
    indices: Any,
    offsets: Any,
    offset2bag: Any,
    bag_size: Any,
    maximum_indices: Any,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Any,
    padding_idx: int,
) -> Any:
    owners = _known_owners(offset2bag, offsets, indices.shape[0])
    return _dense_backward(
        grad, indices, owners, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, per_sample_weights, padding_idx)  # fmt: skip


_backward.children(_known_owner_children)


@_backward.backward("grad", "per_sample_weights")
def _(
    g: Any,
    grad: Any,
    indices: Any,
    offsets: Any,
    offset2bag: Any,
    bag_size: Any,
    maximum_indices: Any,
    mode: int,
    scale_grad_by_freq: bool,
    num_weights: int,
    per_sample_weights: Any,
    padding_idx: int,
    needs: Any,
) -> Any:
    owners = _known_owners(offset2bag, offsets, indices.shape[0])

    def expression(grad: Any, *weights: Any) -> Any:
        if mode == MAX:
            is_empty = (bag_size == 0).unsqueeze(-1)
            spread = F.zeros((num_weights, grad.shape[1]), dtype=grad.dtype)
            return F.scatter_add(spread, 0, maximum_indices, F.masked_fill(grad, is_empty, 0))
        if mode == MEAN:
            grad = grad / F.clamp(bag_size, min=1).unsqueeze(-1)
        rows = F.index_select(grad, 0, owners)
        if weights:
            rows = rows * weights[0].unsqueeze(-1)
        return embedding_backward(rows, indices, num_weights, padding_idx, scale_grad_by_freq, False)

    if per_sample_weights is None:
        return (*through(g, expression, grad), None)
    return through(g, expression, grad, per_sample_weights)


@op(
    "aten::_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, "
    "Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, "
    "int padding_idx=-1) -> Tensor",
    expose="no",
    nondifferentiable=True,
)
@in_float32
def _dense_backward(
    grad: np.ndarray,
    indices: np.ndarray,
    offset2bag: np.ndarray,
    bag_size: np.ndarray,
    maximum_indices: np.ndarray,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: Any,
    padding_idx: int,
) -> np.ndarray:
    if mode == MAX:
        gradient = np.zeros((num_weights, grad.shape[1]), grad.dtype)
        full = bag_size > 0
        columns = np.broadcast_to(np.arange(grad.shape[1]), grad[full].shape)
        np.add.at(gradient, (maximum_indices[full], columns), grad[full])
        return gradient
    if mode == MEAN:
        grad = grad / np.maximum(bag_size, 1)[:, None].astype(grad.dtype)
    rows = grad[offset2bag]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    if scale_grad_by_freq:
        rows = rows / np.bincount(indices, minlength=num_weights)[indices][:, None].astype(rows.dtype)
    gradient = sum_rows(rows, indices, num_weights)
    if padding_idx >= 0:
        gradient[padding_idx] = 0
    return gradient


@_dense_backward.children
def _(
    grad: Any,
    indices: Any,
    offset2bag: Any,
    bag_size: Any,
    maximum_indices: Any,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: Any,
    padding_idx: int,
) -> Any:
    """The rows are sorted by their places. How maxima are added, column by column, depends on values and is not shown."""
    inside = [*contiguous(grad), zeros((num_weights, grad.shape[1]), dtype_number(grad))]
    if mode == MAX:
        return inside
    gathered = [offset2bag] if per_sample_weights is None else [offset2bag, per_sample_weights]
    order = [child("aten::index_select", source, 0, indices) for source in gathered]
    return [*inside, child("aten::sort", indices), *order]


@composite(
    "aten::_embedding_bag_sparse_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, "
    "SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
    expose="no",
)
def _sparse_backward(
    grad: Any,
    indices: Any,
    offsets: Any,
    offset2bag: Any,
    bag_size: Any,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: Any,
    padding_idx: int,
) -> Any:
    rows = F.index_select(grad, 0, offset2bag)
    if mode == MEAN:
        sizes = _dispatch.OPS["to.dtype_layout"].entry(bag_size, dtype=grad.dtype)
        parts = F.div_(F.fill_(_dispatch.OPS["empty_like"].entry(sizes), 1), sizes)
        rows = F.mul_(rows, F.index_select(F.unsqueeze(parts, 1), 0, offset2bag))
    if per_sample_weights is not None:
        rows = F.mul_(rows, F.unsqueeze(per_sample_weights, 1))
    return F.embedding_sparse_backward(rows, indices, num_weights, padding_idx, scale_grad_by_freq)


@composite(
    "aten::_embedding_bag_backward.sparse(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, "
    "Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, "
    "int padding_idx=-1) -> Tensor",
    expose="no",
)
def _backward_to_sparse(
    grad: Any,
    indices: Any,
    offsets: Any,
    offset2bag: Any,
    bag_size: Any,
    maximum_indices: Any,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Any,
    padding_idx: int,
) -> Any:
    owners = _known_owners(offset2bag, offsets, indices.shape[0])
    return _sparse_backward(
        grad, indices, offsets, owners, bag_size, num_weights, scale_grad_by_freq, mode, per_sample_weights, padding_idx)  # fmt: skip


_backward_to_sparse.children(_known_owner_children)


@op(
    "aten::_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, "
    "Tensor offset2bag, int mode, int padding_idx=-1) -> Tensor",
    expose="no",
    on="tensors",
)
def _samples_backward(
    grad: Any, weight: Any, indices: Any, offsets: Any, offset2bag: Any, mode: int, padding_idx: int
) -> Any:
    count = indices.shape[0]
    gradient = F.zeros((count,), dtype=grad.dtype)
    owners = _known_owners(offset2bag, offsets, count)._array
    rows, samples = widened(grad._array)[owners], widened(weight._array)[indices._array]
    gradient._array[...] = np.einsum("ij,ij->i", rows, samples)
    if padding_idx >= 0:
        gradient._array[indices._array == padding_idx] = 0
    return gradient


@_samples_backward.children
def _(grad: Any, weight: Any, indices: Any, offsets: Any, offset2bag: Any, *_: Any) -> Any:
    if offset2bag.shape[0] or not indices.shape[0]:
        return ()
    count, dtype = indices.shape[0], dtype_number(offset2bag)
    return [zeros((count + 1,), dtype, allocates=False), *_owner_children(offsets, count, dtype)]


@_samples_backward.backward("grad", "weight")
def _(
    g: Any,
    grad: Any,
    weight: Any,
    indices: Any,
    offsets: Any,
    offset2bag: Any,
    padding_idx: int,
) -> Any:
    owners = _known_owners(offset2bag, offsets, indices.shape[0])

    def expression(grad: Any, weight: Any) -> Any:
        made = (F.index_select(grad, 0, owners) * F.index_select(weight, 0, indices)).sum(-1)
        return made if padding_idx < 0 else F.masked_fill(made, indices == padding_idx, 0)

    return through(g, expression, grad, weight)


@composite(
    "aten::embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool sparse, "
    "Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)",
    expose="no",
)
def embedding_bag_op(
    weight: Any,
    indices: Any,
    offsets: Any,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Any,
    include_last_offset: bool,
    padding_idx: Any,
) -> Any:
    if padding_idx is not None:
        count = weight.shape[0]
        if not -count <= padding_idx < count:
            raise RuntimeError(
                f"padding_idx must be within the number of embeddings, -{count} through {count - 1}, but got {padding_idx}"
            )
        padding_idx %= count
    learned = weight._rg or (per_sample_weights is not None and per_sample_weights._rg)
    return (_embedding_bag if learned else _embedding_bag_forward_only)(
        weight,
        indices,
        offsets,
        scale_grad_by_freq,
        mode,
        sparse,
        per_sample_weights,
        include_last_offset,
        -1 if padding_idx is None else padding_idx,
    )


@_dispatch.function(expose="function")
def embedding_bag(
    weight: Any,
    indices: Any,
    offsets: Any,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: Any = None,
) -> Any:
    """Sums, means or maxima of bags of embeddings, with the places they came from."""
    return embedding_bag_op(
        weight,
        indices,
        offsets,
        scale_grad_by_freq,
        mode,
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )
