"""Joining tensors: cat, stack and the functions built on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mindtorch_prof.inputs import TensorList

from .. import _dtype
from .._dispatch import FUNCTIONS, composite, op
from . import _dims
from ._children import UNKNOWN, Child, child, dtype_number, tensor_of, view_of
from ._layout import is_channels_last
from ._namespace import functions as F
from .shape import reshaped, size_text
from .slicing import select, unsqueeze


def _check_cat(arrays: list[np.ndarray], dim: int) -> None:
    """Raise torch's error for arrays that cannot be joined."""
    for place, array in enumerate(arrays):
        if array.ndim == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {place}) cannot be concatenated")
    first = next((a for a in arrays if a.shape != (0,)), arrays[0])
    d = _dims.one(dim, first.ndim)
    for place, array in enumerate(arrays):
        if array.shape == (0,):
            continue
        if array.ndim != first.ndim:
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {first.ndim} and {array.ndim}"
            )
        for axis in range(first.ndim):
            if axis != d and array.shape[axis] != first.shape[axis]:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {d}. Expected size "
                    f"{first.shape[axis]} but got size "
                    f"{array.shape[axis]} for tensor number {place} in the list."
                )


def common_dtype(arrays: list[np.ndarray]) -> np.dtype:
    """The dtype that torch promotes these to."""
    return _dtype.result_dtype([(_dtype.BY_NUM[a.dtype.num], a.ndim == 0) for a in arrays])._np


_LEGACY_EMPTY = (0,)  # cat skips tensors of this shape, for backward compatibility


def _joined(arrays: list[np.ndarray], dim: int) -> np.ndarray:
    dtype, same, plain = arrays[0].dtype, True, True
    for array in arrays:
        if array.dtype is not dtype:
            same = False
        if array.shape == _LEGACY_EMPTY:
            same = False
        if not array.flags.c_contiguous:
            plain = False
    if not same:
        dtype = common_dtype(arrays)
        non_empty = [a for a in arrays if a.shape != _LEGACY_EMPTY] or arrays[:1]
        arrays = [a if a.dtype is dtype else a.astype(dtype) for a in non_empty]
    try:
        if plain or all([is_channels_last(a) for a in arrays]):
            return np.concatenate(arrays, dim)
        shape = list(arrays[0].shape)
        shape[dim] = sum([a.shape[dim] for a in arrays])
        return np.concatenate(arrays, dim, out=np.empty(shape, dtype))
    except (ValueError, IndexError):
        _check_cat(arrays, dim)
        raise


@op("aten::cat(Tensor[] tensors, int dim=0) -> Tensor", out=True)
def cat(tensors: list[np.ndarray], dim: int) -> np.ndarray:
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    return _joined(tensors, dim)


def _cat_back(g: Any, shapes: list, dim: int) -> list:
    d, begin, gradients = _dims.one(dim, g._array.ndim), 0, []
    for shape in shapes:
        if shape == (0,):
            gradients.append(F.zeros((0,), dtype=g.dtype))
            continue
        gradients.append(F.narrow(g, d, begin, shape[d]))
        begin += shape[d]
    return gradients


cat.derivative(tensors=lambda g, tensors_shapes, dim: _cat_back(g, tensors_shapes, dim))


@composite("aten::concat(Tensor[] tensors, int dim=0) -> Tensor", out=True)
def concat(tensors: Any, dim: int) -> Any:
    return cat(tensors, dim)


@composite("aten::concatenate(Tensor[] tensors, int dim=0) -> Tensor", out=True)
def concatenate(tensors: Any, dim: int) -> Any:
    return cat(tensors, dim)


def _check_stack(tensors: Any, name: str = "stack") -> None:
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    shape = tensors[0].shape
    for place, tensor in enumerate(tensors):
        if tensor.shape != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {size_text(shape)} at entry 0 and "
                f"{size_text(tensor.shape)} at entry "
                f"{place}"
            )


@op("aten::stack(Tensor[] tensors, int dim=0) -> Tensor", out=True)
def stack(tensors: list[np.ndarray], dim: int) -> np.ndarray:
    _check_stack(tensors)
    first = tensors[0]
    d = _dims.one(dim, first.ndim + 1)
    if first.ndim == d:
        return _joined([a[..., None] for a in tensors], d)
    shape = first.shape
    return _joined(tensors, d).reshape((*shape[:d], len(tensors), *shape[d:]))


@stack.children
def _(tensors: Any, dim: Any) -> list[Child]:
    if tensors is UNKNOWN:  # most are stacked along a dimension that is not the last
        return [child("aten::cat", tensors, dim, allocates=True), child("aten::view", UNKNOWN, UNKNOWN)]
    shape = tensors[0].shape
    d = _dims.one(dim, len(shape) + 1)
    if len(shape) == d:
        wider = TensorList([view_of(x, lambda array: unsqueeze.op.kernel(array, d)) for x in tensors])
        unsqueezed = [child("aten::unsqueeze", x, dim) for x in tensors]
        return [*unsqueezed, child("aten::cat", wider, dim, allocates=True)]
    joined = tensor_of((*shape[:d], len(tensors) * shape[d], *shape[d + 1 :]), dtype_number(tensors[0]))
    return [
        child("aten::cat", tensors, d, allocates=True),
        child("aten::view", joined, (*shape[:d], len(tensors), *shape[d:])),
    ]


stack.derivative(
    tensors=lambda g, dim, tensors_shapes: [select(g, dim, i) for i in range(len(tensors_shapes))]
)


@op("aten::_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor", expose="function", out=True)
def _chunk_cat(tensors: list[np.ndarray], dim: int, num_chunks: int) -> np.ndarray:
    """Each tensor in `num_chunks` rows, the last of them filled up with zeros; the rows of all tensors joined."""
    dim = _check_chunk_cat(tensors, dim, num_chunks)
    rows = []
    for array in tensors:
        size = -(-array.shape[dim] // num_chunks) * num_chunks
        filled = array
        if size != array.shape[dim]:
            filled = np.zeros((*array.shape[:dim], size, *array.shape[dim + 1 :]), array.dtype)
            filled[(*[slice(None)] * dim, slice(array.shape[dim]))] = array
        rows.append(filled.reshape(*array.shape[:dim], num_chunks, -1))
    return np.concatenate(rows, -1, dtype=common_dtype(tensors), casting="unsafe")


def _check_chunk_cat(tensors: list[np.ndarray], dim: int, num_chunks: int) -> int:
    if num_chunks < 1:
        raise RuntimeError("_chunk_cat expects positive num_chunks")
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    if any(array.size == 0 for array in tensors):
        raise RuntimeError("_chunk_cat expects non-empty tensor")
    first = tensors[0]
    if dim < 0:
        if any(array.ndim != first.ndim for array in tensors):
            raise RuntimeError("_chunk_cat expects non-negative dim when input tensors have different ndims")
        dim = _dims.one(dim, first.ndim)
    if any(dim >= array.ndim for array in tensors):
        raise RuntimeError("_chunk_cat expects dim < ndim for all input tensors")
    if any(array.shape[:dim] != first.shape[:dim] for array in tensors):
        raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors")
    return dim


# ------------------------------------------------------------------------------- stacks along an axis


def _atleast(aten_name: str, least: int, grow: Any) -> Any:
    name = aten_name.removeprefix("aten::")

    @composite(f"{aten_name}.Sequence(Tensor[] tensors) -> Tensor[]", expose="no")
    def many(tensors: Any) -> list:
        return [grow(x) for x in tensors]

    @composite(f"{aten_name}(Tensor self) -> Tensor", expose="no")
    def single(self: Any) -> Any:
        return grow(self)

    def front(*tensors: Any) -> Any:
        if len(tensors) == 1:
            if isinstance(tensors[0], (tuple, list)):
                return tuple(many(tensors[0]))
            return single(tensors[0])
        return tuple(many(tensors))

    front.__name__ = front.__qualname__ = name
    front.__doc__ = f"The tensors with at least {least} dimension{'s' if least > 1 else ''}."
    FUNCTIONS[name] = front
    return many


def _grow_2d(x: Any) -> Any:
    if x.ndim == 0:
        return reshaped(x, (1, 1))
    return unsqueeze(x, 0) if x.ndim == 1 else x


def _grow_3d(x: Any) -> Any:
    if x.ndim == 0:
        return reshaped(x, (1, 1, 1))
    if x.ndim == 1:
        return unsqueeze(unsqueeze(x, 0), -1)
    return unsqueeze(x, -1) if x.ndim == 2 else x


_atleast_1d = _atleast("aten::atleast_1d", 1, lambda x: reshaped(x, (1,)) if x.ndim == 0 else x)
_atleast_2d = _atleast("aten::atleast_2d", 2, _grow_2d)
_atleast_3d = _atleast("aten::atleast_3d", 3, _grow_3d)


def _check_not_empty(tensors: Any, name: str) -> None:
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not "
            f"{type(tensors).__name__}"
        )
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")


@composite("aten::hstack(Tensor[] tensors) -> Tensor", out=True)
def hstack(tensors: Any) -> Any:
    _check_not_empty(tensors, "hstack")
    grown = _atleast_1d(tensors)
    return cat(grown, 0 if grown[0].ndim == 1 else 1)


@composite("aten::vstack(Tensor[] tensors) -> Tensor", out=True)
def vstack(tensors: Any) -> Any:
    _check_not_empty(tensors, "vstack")
    return cat(_atleast_2d(tensors), 0)


@composite("aten::row_stack(Tensor[] tensors) -> Tensor", out=True)
def row_stack(tensors: Any) -> Any:
    return vstack(tensors)


@composite("aten::dstack(Tensor[] tensors) -> Tensor", out=True)
def dstack(tensors: Any) -> Any:
    _check_not_empty(tensors, "dstack")
    return cat(_atleast_3d(tensors), 2)


@composite("aten::column_stack(Tensor[] tensors) -> Tensor", out=True)
def column_stack(tensors: Any) -> Any:
    _check_not_empty(tensors, "column_stack")
    return hstack([F.reshape(x, (x.numel(), 1)) if x.ndim <= 1 else x for x in tensors])
