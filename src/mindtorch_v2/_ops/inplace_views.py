"""Views in place: squeeze_, unsqueeze_, t_, transpose_, swapaxes_, as_strided_ change the tensor itself into the view."""

from __future__ import annotations

from typing import Any

from .. import _dispatch
from .._dispatch import function, ints, view
from .._graph import attach, grad_state, storage_of
from . import shape, slicing
from ._children import UNKNOWN, child, strided


def _take_over(self: Any, seen: Any) -> Any:
    """Make `self` use the memory layout of the view `seen` from now on."""
    if seen._array_missing:
        self._array_description = seen._array_description
        return self
    self._array, self._form = seen._array, 0
    storage_of(self)._version += 1
    if seen._grad_fn is not None:
        attach(self, seen._grad_fn, seen._output_nr)
    return self


def _ready(self: Any) -> None:
    if self._rg and grad_state.enabled:
        _dispatch.check_inplace(self)  # type: ignore[attr-defined]


def _declare(text: str, plain: Any, node: str) -> Any:
    """Declare an in-place view: the view that `plain` makes, with a node name of its own."""
    kernel = plain.op.kernel
    entry = view(text, expose="no", node=node)(kernel)
    entry.derivative(**plain.op.rules)
    entry.children(
        lambda self, *arguments: [
            strided(self, lambda array: kernel(array, *arguments))._replace(name="aten::as_strided_")
        ]
    )
    return entry


_squeeze = _declare("aten::squeeze_(Tensor(a!) self) -> Tensor(a!)", slicing._squeeze, "SqueezeBackward3")
_squeeze_dim = _declare(
    "aten::squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)", slicing._squeeze_dim, "SqueezeBackward4"
)
_squeeze_dims = _declare(
    "aten::squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)", slicing._squeeze_dims, "SqueezeBackward5"
)
_unsqueeze = _declare(
    "aten::unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)", slicing.unsqueeze, "UnsqueezeBackward1"
)
_t = _declare("aten::t_(Tensor(a!) self) -> Tensor(a!)", shape.t, "TBackward1")
_transpose = _declare(
    "aten::transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)",
    shape.transpose,
    "TransposeBackward1",
)
_t.children(
    lambda self: [
        child("aten::transpose_", self, 0, 1)
        if self is UNKNOWN or len(self.shape) == 2
        else child("aten::transpose_", self, 0, 0, children=())
    ]
)
_as_strided = _dispatch.op(
    "aten::as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
    "Tensor(a!)",
    on="tensors", view=True, expose="no", node="AsStridedBackward1",
)(shape.as_strided.op.kernel)  # fmt: skip
_as_strided.derivative(**shape.as_strided.op.rules)


@function(expose="method")
def squeeze_(self: Any, dim: Any = None) -> Any:
    """Drop dimensions of length one, in place."""
    _ready(self)
    if dim is None:
        return _take_over(self, _squeeze(self))
    if isinstance(dim, (tuple, list)):
        return _take_over(self, _squeeze_dims(self, ints(dim)))
    return _take_over(self, _squeeze_dim(self, dim))


@function(expose="method")
def unsqueeze_(self: Any, dim: int) -> Any:
    """Insert a dimension of length one, in place."""
    _ready(self)
    return _take_over(self, _unsqueeze(self, dim))


@function(expose="method")
def t_(self: Any) -> Any:
    """Transpose a matrix, in place."""
    _ready(self)
    return _take_over(self, _t(self))


@function(expose="method")
def transpose_(self: Any, dim0: int, dim1: int) -> Any:
    """Swap two dimensions, in place."""
    _ready(self)
    return _take_over(self, _transpose(self, dim0, dim1))


@function(expose="method")
def swapaxes_(self: Any, axis0: int, axis1: int) -> Any:
    """Swap two dimensions, in place."""
    return transpose_(self, axis0, axis1)


@function(expose="method")
def swapdims_(self: Any, dim0: int, dim1: int) -> Any:
    """Swap two dimensions, in place."""
    return transpose_(self, dim0, dim1)


@function()
def as_strided_(input: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """Set other sizes and strides on the storage, in place."""
    _ready(input)
    return _take_over(input, _as_strided(input, ints(size), ints(stride), storage_offset))
