"""Embeddings: rows of a table by index. Bags of them are in `embedding_bag`."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from .._dispatch import composite, op, storage_of
from .._dtype import BY_NUM
from . import _core, _dims
from ._accumulate import MANY, add_rows
from ._children import UNKNOWN, child, reshape, tensor
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
    if not _dims.inside(indices, 0, weight.shape[0]):
        raise IndexError("index out of range in self")
    return weight.take(indices, 0)


@embedding.children
def _(weight: Any, indices: Any, *_: Any) -> Any:
    if indices is UNKNOWN or len(indices.shape) == 1:
        return [child("aten::index_select", weight, 0, indices, allocates=True)]
    flat, width = tensor((prod(indices.shape),), indices), weight.shape[1]
    return [
        reshape(indices, (-1,)),
        child("aten::index_select", weight, 0, flat, allocates=True),
        child("aten::view", tensor((*flat.shape, width), weight), (*indices.shape, width)),
    ]


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
        return F.embedding_sparse_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)
    return embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)


def sum_rows(rows: np.ndarray, places: np.ndarray, count: int) -> np.ndarray:
    """A table of `count` rows with each of `rows` added at its place, one after the other as torch does."""
    fused = _core.sum_at_rows(rows, places, count)
    if fused is not None:
        return fused
    made = np.zeros((count, *rows.shape[1:]), rows.dtype)
    if rows.dtype.char in "fd" and rows.size < MANY:
        np.add.at(
            made, places, rows
        )  # `add_rows` is quicker, but sums few elements in another order than many
    else:
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
    gradient = sum_rows(rows, places, num_weights)
    if padding_idx != -1:
        gradient[padding_idx] = 0
    return gradient


def _dense_double(g: Any, indices: Any, padding_idx: int) -> Any:
    made = F.index_select(g, 0, indices.reshape(-1))
    if padding_idx != -1:
        made = F.masked_fill(made, (indices.reshape(-1) == padding_idx).unsqueeze(-1), 0)
    return made.view(*indices.shape, g.shape[-1])


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
    storage_of(self)._version += 1
    return self
