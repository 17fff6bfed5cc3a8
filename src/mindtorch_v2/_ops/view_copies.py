"""The `*_copy` ops: a view as a contiguous copy. One table declares them all."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dtype
from .._dispatch import call_out, function, ints, op, record
from . import complex_views, copies, shape, slicing
from ._children import child, clone
from ._namespace import functions as F

_CONTIGUOUS = _dtype.contiguous_format


def _copying(text: str, plain: Any, node: str | None, listed: bool = False, expose: str = "no") -> Any:
    """Declare the copying variant of the view op `plain`."""

    def copied_views(self: Any, *arguments: Any) -> Any:
        view = record(plain.op, self, *arguments)
        if listed:
            return [F.clone(part, memory_format=_CONTIGUOUS) for part in view]
        return F.clone(view, memory_format=_CONTIGUOUS)

    options: dict[str, Any] = {"out": not listed, "expose": expose}
    if node is not None:
        options["node"] = node + "_copy"
    if listed:
        options["returns"] = tuple
    entry = op(text, on="tensors", **options)(copied_views)
    entry.derivative(**plain.op.rules)
    return entry


_SLICE_COPY = "aten::slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor"
_TABLE = (
    ("aten::alias_copy(Tensor self) -> Tensor", copies.alias, "AliasBackward0"),
    ("aten::as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor",
     shape.as_strided,
     "AsStridedBackward0"),
    ("aten::diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
     slicing.diagonal, "DiagonalBackward0"),
    ("aten::expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor",
     shape._expand, "ExpandBackward0"),
    ("aten::permute_copy(Tensor self, int[] dims) -> Tensor", shape._permute, "PermuteBackward0"),
    ("aten::select_copy.int(Tensor self, int dim, SymInt index) -> Tensor", slicing.select, "SelectBackward0"),
    (_SLICE_COPY, slicing.slice_,
     "SliceBackward0"),
    ("aten::t_copy(Tensor self) -> Tensor", shape.t, "TBackward0"),
    ("aten::transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor", shape.transpose, "TransposeBackward0"),
    ("aten::unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor",
     slicing.unfold, "UnfoldBackward0"),
    ("aten::unsqueeze_copy(Tensor self, int dim) -> Tensor", slicing.unsqueeze, "UnsqueezeBackward0"),
    ("aten::view_as_complex_copy(Tensor self) -> Tensor", complex_views.view_as_complex, "ViewAsComplexBackward0"),
    ("aten::view_as_real_copy(Tensor self) -> Tensor", complex_views.view_as_real, "ViewAsRealBackward0"),
)  # fmt: skip
for _text, _plain, _node in _TABLE:
    _copying(_text, _plain, _node, expose="function")

_LISTED = (
    ("aten::split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
     slicing._split, "SplitBackward0"),
    ("aten::split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
     slicing.split_with_sizes, "SplitWithSizesBackward0"),
    ("aten::unbind_copy.int(Tensor self, int dim=0) -> Tensor[]", slicing.unbind, "UnbindBackward0"),
)  # fmt: skip
for _text, _plain, _node in _LISTED:
    _copying(_text, _plain, _node, listed=True, expose="function")

_squeeze_copy = _copying("aten::squeeze_copy(Tensor self) -> Tensor", slicing._squeeze, "SqueezeBackward0")
_squeeze_copy_dim = _copying(
    "aten::squeeze_copy.dim(Tensor self, int dim) -> Tensor", slicing._squeeze_dim, "SqueezeBackward1"
)
_squeeze_copy_dims = _copying(
    "aten::squeeze_copy.dims(Tensor self, int[] dim) -> Tensor", slicing._squeeze_dims, "SqueezeBackward2"
)
_view_copy = _copying("aten::view_copy(Tensor self, SymInt[] size) -> Tensor", shape._view, "ViewBackward0")


@op("aten::view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor", expose="no", nondifferentiable=True)
def _view_copy_dtype(self: np.ndarray, dtype: Any) -> np.ndarray:
    return shape.as_dtype(self, dtype).copy()


def _no_gradient(g: Any) -> Any:
    raise RuntimeError("derivative for aten::detach_copy is not implemented")


@op("aten::detach_copy(Tensor self) -> Tensor", expose="function", node="NotImplemented", out=True)
def detach_copy(self: np.ndarray) -> np.ndarray:
    return self.copy()


detach_copy.derivative(self=_no_gradient)
detach_copy.children(lambda self: [child("aten::detach", self, children=()), clone(self, 0)])


@function(expose="function")
def squeeze_copy(input: Any, dim: Any = None, *, out: Any = None) -> Any:
    """A copy without dimensions of length one."""
    arguments: tuple
    if dim is None:
        chosen, arguments = _squeeze_copy, (input,)
    elif isinstance(dim, (tuple, list)):
        chosen, arguments = _squeeze_copy_dims, (input, ints(dim))
    else:
        chosen, arguments = _squeeze_copy_dim, (input, dim)
    return call_out(chosen.op, out, arguments) if out is not None else chosen(*arguments)


@function(expose="function")
def view_copy(input: Any, size: Any = None, *, dtype: Any = None, out: Any = None) -> Any:
    """A copy in another shape, or of the same bytes as another dtype."""
    if isinstance(size, _dtype.dtype) or dtype is not None:
        return _view_copy_dtype(input, dtype or size)
    return (
        call_out(_view_copy.op, out, (input, ints(size)))
        if out is not None
        else _view_copy(input, ints(size))
    )


@op("aten::narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor", out=True)
def narrow_copy(self: np.ndarray, dim: int, start: int, length: int) -> np.ndarray:
    if self.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if dim >= self.ndim:
        raise RuntimeError(
            "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false."
        )
    d = shape._dims.one(dim, self.ndim)
    n = self.shape[d]
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -n <= start <= n:
        raise IndexError(f"start out of range (expected to be in range of [{-n}, {n}], but got {start})")
    begin = start + n if start < 0 else start
    if begin < 0 or begin + length > n:
        raise RuntimeError(f"start ({begin}) + length ({length}) exceeds dimension size ({n}).")
    return self[(slice(None),) * d + (slice(begin, begin + length),)].copy()


narrow_copy.derivative(
    self=lambda g, self_shape, dim, start, length: F.slice_backward(
        g, self_shape, dim, start % max(self_shape[dim], 1), start % max(self_shape[dim], 1) + length, 1
    )
)
