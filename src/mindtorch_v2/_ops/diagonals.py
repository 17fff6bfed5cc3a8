"""Diagonals and triangles (diag, tril, trace ...), and copies with a part replaced (the *_scatter ops)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dtype
from .._dispatch import composite, function, op
from . import _dims, _layout
from ._children import Child, child, clone, copy_, dense_strides, dtype_number, tensor_of, view_of
from ._namespace import functions as F
from ._where import where
from .shape import as_own, as_strided, reach, size_text
from .slicing import diagonal, select, slice_

# ----------------------------------------------------------------------------------------------- diag


@op("aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", on="tensors")
def diag_embed(self: Any, offset: int, dim1: int, dim2: int) -> Any:
    shape, a, b = _embedded_shape(tuple(self.shape), offset, dim1, dim2)
    embedded = F.zeros(shape, dtype=self.dtype)
    diagonal(embedded, offset, a, b).copy_(self)
    return embedded


def _embedded_shape(shape: tuple, offset: int, dim1: int, dim2: int) -> tuple[tuple, int, int]:
    ndim = len(shape) + 1
    a, b = _dims.one(dim1, ndim), _dims.one(dim2, ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    if not shape:
        raise RuntimeError("diag_embed: input must have at least one dimension")
    embedded = list(shape[:-1])
    n = shape[-1] + abs(offset)
    for d in sorted((a, b)):
        embedded.insert(d, n)
    return tuple(embedded), a, b


diag_embed.derivative(self=lambda g, offset, dim1, dim2: diagonal(g, offset, dim1, dim2))


@composite("aten::diag(Tensor self, int diagonal=0) -> Tensor", out=True)
def diag(self: Any, diagonal: int = 0) -> Any:
    if self.ndim == 1:
        return diag_embed(self, diagonal)
    if self.ndim == 2:
        return F.diagonal_copy(self, diagonal)
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {self.ndim}D")


@composite("aten::diagflat(Tensor self, int offset=0) -> Tensor")
def diagflat(self: Any, offset: int = 0) -> Any:
    return diag(F.view(F.contiguous(self), (-1,)), offset)


@composite(
    "aten::fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)", expose="method"
)
def fill_diagonal_(self: Any, fill_value: Any, wrap: bool = False) -> Any:
    shape, strides, offset = tuple(self.shape), self.stride(), self.storage_offset()
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) != 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    size, step = min(shape), sum(strides)
    as_strided(self, (size,), (step,), offset).fill_(fill_value)
    if wrap and len(shape) == 2 and shape[0] > shape[1] + 1:
        more = (self.numel() + shape[1]) // (shape[1] + 1) - size
        as_strided(self, (more,), (step,), offset + strides[0] * (shape[1] + 1)).fill_(fill_value)
    return self


# ------------------------------------------------------------------------------------------ triangles


def _triangle(aten_name: str, inplace: str, keep_lower: bool) -> Any:
    name = aten_name.removeprefix("aten::")

    def kernel(self: np.ndarray, diagonal: int, out: Any = None) -> np.ndarray:
        if self.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        rows, columns = self.shape[-2:]
        mask = np.tri(rows, columns, diagonal if keep_lower else diagonal - 1, dtype=bool)
        if not keep_lower:
            np.logical_not(mask, out=mask)
        if out is None and mask.size == self.size and self.flags.c_contiguous:
            return where(mask.reshape(self.shape), self, np.zeros((), self.dtype))
        if out is None:
            out = np.zeros(self.shape, self.dtype)
            np.copyto(out, self, where=mask)
        else:
            np.copyto(out, np.zeros((), self.dtype), where=~mask)
        return out

    entry = op(f"{aten_name}(Tensor self, SymInt diagonal=0) -> Tensor", inplace=inplace, out=True)(kernel)
    entry.derivative(self=lambda g, diagonal: entry(g, diagonal))
    return entry


tril = _triangle("aten::tril", "aten::tril_", True)
triu = _triangle("aten::triu", "aten::triu_", False)


def _triangle_places(lower: bool, row: int, col: int, offset: int, dtype: Any) -> np.ndarray:
    for name, n in (("row", row), ("col", col)):
        if n < 0:
            raise RuntimeError(f"{name} must be non-negative, got{n}")
    mask = np.tri(row, col, offset if lower else offset - 1, dtype=bool)
    return np.stack((mask if lower else ~mask).nonzero()).astype(
        _dtype.int64._np if dtype is None else dtype._np, copy=False
    )


_PLACES = (
    "(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None)"
)


@op(f"aten::tril_indices{_PLACES} -> Tensor", expose="no", nondifferentiable=True)
def _tril_indices(
    row: int, col: int, offset: int, dtype: Any, layout: Any, device: Any, pin_memory: Any
) -> np.ndarray:
    return _triangle_places(True, row, col, offset, dtype)


@op(f"aten::triu_indices{_PLACES} -> Tensor", expose="no", nondifferentiable=True)
def _triu_indices(
    row: int, col: int, offset: int, dtype: Any, layout: Any, device: Any, pin_memory: Any
) -> np.ndarray:
    return _triangle_places(False, row, col, offset, dtype)


def _indices_front(name: str, entry: Any) -> None:
    def front(
        row: int, col: int, offset: int = 0, *, dtype: Any = _dtype.int64, layout: Any = None, device: Any = None,
        pin_memory: bool = False, requires_grad: bool = False,
    ) -> Any:  # fmt: skip
        return entry(row, col, offset, dtype=dtype, device=device)

    front.__name__ = front.__qualname__ = name
    front.__doc__ = "Row and column of each element of a triangle."
    function(name, expose="function")(front)


_indices_front("tril_indices", _tril_indices)
_indices_front("triu_indices", _triu_indices)


@op("aten::trace(Tensor self) -> Tensor")
def trace(self: np.ndarray) -> np.ndarray:
    if self.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self.ndim}")
    if self.dtype.kind == "b":
        raise NotImplementedError("\"trace\" not implemented for 'Bool'")
    line = self.diagonal()
    if self.dtype.kind in "iu":
        return line.sum(dtype=np.int64)
    if self.dtype in _dtype.LOW_FLOATS:
        return line.sum(dtype=np.float32).astype(self.dtype)
    return line.sum(dtype=self.dtype)


@composite("aten::trace_backward(Tensor grad, SymInt[] sizes) -> Tensor", expose="no")
def trace_backward(grad: Any, sizes: tuple) -> Any:
    if len(sizes) != 2:
        raise RuntimeError("expected matrix input")
    flat = F.zeros((sizes[0] * sizes[1],), dtype=grad.dtype)
    places = F.arange(0, sizes[0] * sizes[1], sizes[1] + 1)
    if sizes[0] > sizes[1]:
        places = F.slice(places, 0, 0, min(sizes))
    return F.view(flat.index_fill_(0, places, grad), sizes)


trace.derivative(self=lambda g, self_shape: trace_backward(g, self_shape))


# ------------------------------------------------------------------------ copies with a part replaced


def _copy_with_strides(array: np.ndarray) -> np.ndarray:
    """A copy with the strides of `array`, gaps included; contiguous if `array` overlaps itself."""
    if array.flags.c_contiguous or array.size == 0 or 0 in array.strides:
        return array.copy()
    steps = [step // array.itemsize for step in array.strides]
    memory = np.zeros(reach(array.shape, steps), array.dtype)
    out = _layout.strided(memory, array.shape, array.strides)
    out[...] = array
    return out


def _copies_with_strides(self: Any) -> list[Child]:
    """Children: the same by the ops that torch calls."""
    if 0 in self.strides and 0 not in self.shape:
        return [clone(self)]
    memory = tensor_of((reach(self.shape, self.strides),), dtype_number(self))
    return [
        child("aten::as_strided", self, memory.shape, memory.strides),
        clone(memory),
        child("aten::as_strided", memory, self.shape, self.strides),
    ]


def _clone_with_strides(self: Any) -> Any:
    """A copy with the strides of `self`, gaps included; dense if `self` overlaps itself."""
    array = self._array
    if 0 in array.strides and array.size:
        return F.clone(self)
    strides = self.stride()
    memory = as_strided(self, (reach(array.shape, strides),), (1,), self.storage_offset())
    return as_own(as_strided(F.clone(memory), array.shape, strides, 0))


def _same_size(src: Any, part: Any) -> None:
    if src.shape != part.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {size_text(src.shape)}, "
            f"slice size = {size_text(part.shape)}"
        )


def _replacing(text: str, view: Any) -> Any:
    """Declare `<view>_scatter`: a copy of self with the part that `view` shows replaced by src."""

    def kernel(self: np.ndarray, src: np.ndarray, *where: Any) -> np.ndarray:
        out = _copy_with_strides(self)
        part = view.op.kernel(out, *where)
        _same_size(src, part)
        part[...] = src
        return out

    name = f"aten::{view.op.full_name}"

    def children(self: Any, src: Any, *where: Any) -> list[Child]:
        whole = self._replace(strides=dense_strides(self, None)) if 0 in self.strides else self
        part = view_of(whole, lambda array: view.op.kernel(array, *where))
        return [*_copies_with_strides(self), child(name, whole, *where), copy_(part, src)]

    entry = op(text)(kernel)
    entry.children(children)
    return entry


select_scatter = _replacing(
    "aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor", select
)
select_scatter.derivative(
    self=lambda g, src_shape, dim, index: F.select_scatter(g, F.zeros(src_shape, dtype=g.dtype), dim, index),
    src=lambda g, dim, index: select(g, dim, index),
)
slice_scatter = _replacing(
    "aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt "
    "step=1) -> Tensor",
    slice_,
)
slice_scatter.derivative(
    self=lambda g, src_shape, dim, start, end, step: F.slice_scatter(
        g, F.zeros(src_shape, dtype=g.dtype), dim, start, end, step
    ),
    src=lambda g, dim, start, end, step: slice_(g, dim, start, end, step),
)
diagonal_scatter = _replacing(
    "aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    diagonal,
)
diagonal_scatter.derivative(
    self=lambda g, src_shape, offset, dim1, dim2: F.diagonal_scatter(
        g, F.zeros(src_shape, dtype=g.dtype), offset, dim1, dim2
    ),
    src=lambda g, offset, dim1, dim2: diagonal(g, offset, dim1, dim2),
)


@op(
    "aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? "
    "storage_offset=None) -> Tensor",
    on="tensors",
)
def as_strided_scatter(self: Any, src: Any, size: tuple, stride: tuple, storage_offset: Any) -> Any:
    out = _clone_with_strides(self)
    part = as_strided(out, size, stride, storage_offset)
    _same_size(src._array, part._array)
    F.copy_(part, src)
    return out


as_strided_scatter.derivative(
    self=lambda g, src_shape, size, stride, storage_offset: F.as_strided_scatter(
        F.contiguous(g), g.new_zeros(src_shape), size, stride, storage_offset
    ),
    src=lambda g, size, stride, storage_offset: as_strided(F.contiguous(g), size, stride, storage_offset),
)
