"""Embeddings: rows of a table by index, alone or in bags."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch
from .._dispatch import composite, op
from .._dtype import BY_NUM
from ._accumulate import add_rows
from ._namespace import functions as F


def _check_indices(indices: np.ndarray) -> None:
    if indices.dtype.num not in (np.dtype(np.int64).num, np.dtype(np.int32).num):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{BY_NUM[indices.dtype.num]._abbr}Tensor instead (while checking arguments for embedding)"
        )


@op(
    "aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
    expose="function",
)
def embedding(
    weight: np.ndarray, indices: np.ndarray, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> np.ndarray:
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_indices(indices)
    if indices.size and (indices.min() < 0 or indices.max() >= weight.shape[0]):
        raise IndexError("index out of range in self")
    return weight.take(indices, 0)


@embedding.recorded
def _(weight: Any, indices: Any, padding_idx: int, scale_grad_by_freq: bool, sparse: bool) -> Any:
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_indices(indices._array)
    if indices.ndim == 1:
        return F.index_select(weight, 0, indices)
    made = F.index_select(weight, 0, F.reshape(indices, (-1,)))
    return F.view(made, (*indices.shape, weight.shape[1]))


def _embedding_grad(
    g: Any, indices: Any, weight_shape: Any, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> Any:
    return embedding_backward(g, indices, weight_shape[0], padding_idx, scale_grad_by_freq, sparse)


embedding.derivative(weight=_embedding_grad)


@composite(
    "aten::embedding_backward(Tensor grad, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq, bool sparse) "
    "-> Tensor",
    expose="no",
)
def embedding_backward(
    grad: Any, indices: Any, num_weights: int, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> Any:
    if sparse:
        return _sparse_gradient(grad, indices, num_weights, padding_idx, scale_grad_by_freq)
    return embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)


def _sparse_gradient(
    grad: Any, indices: Any, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    if scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    places = indices._array.reshape(-1)
    values = grad._array.reshape(places.size, -1)
    if padding_idx != -1:
        kept = places != padding_idx
        places, values = places[kept], values[kept]
    return F.sparse_coo_tensor(
        _dispatch.wrap(places[None].astype(np.int64)),
        _dispatch.wrap(np.array(values)),
        (num_weights, values.shape[1]),
    )


def sum_rows(rows: np.ndarray, places: np.ndarray, count: int) -> np.ndarray:
    """A table of `count` rows with each of `rows` added at its place."""
    made = np.zeros((count, *rows.shape[1:]), rows.dtype)
    add_rows(made, places, rows)
    return made


@op(
    "aten::embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq) -> Tensor",
    expose="no",
)
def embedding_dense_backward(
    grad_output: np.ndarray, indices: np.ndarray, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> np.ndarray:
    places = indices.reshape(-1)
    rows = grad_output.reshape(places.size, grad_output.shape[-1])
    if scale_grad_by_freq:
        counts = np.bincount(places, minlength=num_weights)
        rows = rows / counts[places][:, None].astype(rows.dtype)
    made = sum_rows(rows, places, num_weights)
    if padding_idx != -1:
        made[padding_idx] = 0
    return made


def _dense_double(g: Any, indices: Any, padding_idx: int) -> Any:
    made = F.index_select(g, 0, indices.reshape(-1))
    if padding_idx != -1:
        made = F.masked_fill(made, (indices.reshape(-1) == padding_idx).unsqueeze(-1), 0)
    return made.reshape(*indices.shape, g.shape[-1])


embedding_dense_backward.derivative(grad_output=_dense_double)


@op(
    "aten::embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)",
    expose="function",
    on="tensors",
    nondifferentiable=True,
)
def embedding_renorm_(self: Any, indices: Any, max_norm: float, norm_type: float) -> Any:
    places = np.unique(indices._array)
    rows = self._array[places]
    norms = np.linalg.norm(rows, ord=norm_type, axis=1)
    large = norms > max_norm
    scale = np.where(large, max_norm / (norms + 1e-7), 1.0).astype(rows.dtype)
    self._array[places] = rows * scale[:, None]
    from .._graph import storage_of

    storage_of(self)._version += 1
    return self


# ---------------------------------------------------------------------------------------------------- bags

SUM, MEAN, MAX = 0, 1, 2


@op(
    "aten::_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, "
    "Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
    expose="function",
    node="EmbeddingBagBackward0",
    outputs=1,
)
def _embedding_bag(
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
    if indices.size and (indices.min() < 0 or indices.max() >= weight.shape[0]):
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
        made = np.zeros((bags, weight.shape[1]), weight.dtype)
        for bag in np.flatnonzero(sizes):
            members = np.flatnonzero((owner == bag) & kept)
            values = weight[indices[members]]
            best = values.argmax(0)
            made[bag] = np.take_along_axis(values, best[None], 0)[0]
            places[bag] = indices[members][best]
    else:
        made = sum_rows(rows, owner[kept], bags)
        if mode == MEAN:
            made = made / np.maximum(sizes, 1)[:, None].astype(made.dtype)
    return made, owner, sizes, places


@_embedding_bag.backward("weight", "per_sample_weights")
def _(
    grads: Any,
    weight: Any,
    indices: Any,
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
    g = grads[0]
    owner = result1
    to_weight = to_samples = None
    if mode == MAX:
        spread = F.zeros(weight_shape, dtype=g.dtype)
        empty = (result2 == 0).unsqueeze(-1)
        return F.scatter_add(spread, 0, result3, F.masked_fill(g, empty, 0)), None
    if mode == MEAN:
        g = g / F.clamp(result2, min=1).unsqueeze(-1)
    rows = F.index_select(g, 0, owner)
    if needs[0]:
        scaled = rows if per_sample_weights is None else rows * per_sample_weights.unsqueeze(-1)
        to_weight = embedding_backward(
            scaled, indices, weight_shape[0], padding_idx, scale_grad_by_freq, sparse
        )
    if needs[1]:
        to_samples = (rows * F.index_select(weight, 0, indices)).sum(-1)
        if padding_idx >= 0:
            to_samples = F.masked_fill(to_samples, indices == padding_idx, 0)
    return to_weight, to_samples


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
    return _embedding_bag(
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
