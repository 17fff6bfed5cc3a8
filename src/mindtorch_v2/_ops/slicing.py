"""Views of a part of a tensor (select, slice, split ...), and dimensions of length one (squeeze, unsqueeze)."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .. import _dispatch, _op_errors
from .._dispatch import composite, function, ints, op, view
from .._tensor import Tensor, _alias_for
from . import _dims, _layout
from ._children import Child, child, copy_, dtype_number, strided, tensor, tensor_of, view_of, zeros
from ._namespace import functions as F
from .shape import restrided, shape_of, size_text, strided_view

_ALL = slice(None)


# -------------------------------------------------------------------------------------- select, slice


@strided_view("aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)")
def select(self: np.ndarray, dim: int, index: int) -> np.ndarray:
    try:
        if dim == 0:
            return self[index] if self.ndim > 1 else self[index, ...]
        return self[(_ALL,) * (dim if dim > 0 else _dims.one(dim, self.ndim)) + (index, ...)]
    except IndexError:
        if self.ndim == 0:
            raise IndexError("select() cannot be applied to a 0-dim tensor.") from None
        d = _dims.one(dim, self.ndim)
        n = self.shape[d]
        if not -n <= index < n:
            raise IndexError(
                f"select(): index {index} out of range for tensor of size {size_text(self.shape)} at "
                f"dimension {d}"
            ) from None
        raise


select.derivative(self=lambda g, self_shape, dim, index: F.select_backward(g, self_shape, dim, index))


@op(
    "aten::select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor",
    node="SelectBackwardBackward0",
    expose="no",
)
def select_backward(grad_output: np.ndarray, input_sizes: tuple, dim: int, index: int) -> np.ndarray:
    whole = np.zeros(input_sizes, grad_output.dtype)
    whole[(_ALL,) * _dims.one(dim, len(input_sizes)) + (index,)] = grad_output
    return whole


select_backward.derivative(grad_output=lambda g, dim, index: F.select(g, dim, index))


def _written_part(name: str, kernel: Any) -> Any:
    """A rule for the gradient of a view: zeros of the whole, in which the view is written; kernel: that of the view."""

    def rule(grad_output: Any, input_sizes: Any, *where: Any) -> list[Child]:
        whole = tensor_of(input_sizes, dtype_number(grad_output))
        return [
            zeros(input_sizes, dtype_number(grad_output)),
            child(name, whole, *where),
            copy_(view_of(whole, lambda array: kernel(array, *where)), grad_output),
        ]

    return rule


select_backward.children(_written_part("aten::select.int", select.op.kernel))


def bounds(start: Any, end: Any, length: int) -> tuple[int, int]:
    """First place of a slice and the place after its last, limited to the dimension's size."""
    begin = 0 if start is None else start + length if start < 0 else start
    stop = length if end is None else end + length if end < 0 else end
    begin = 0 if begin < 0 else min(begin, length)
    stop = begin if stop < begin else min(stop, length)
    return begin, stop


@strided_view(
    "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> "
    "Tensor(a)",
    expose="no",
)
def slice_(self: np.ndarray, dim: int, start: Any, end: Any, step: int) -> np.ndarray:
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    if dim == 0 and self.ndim:
        return self[start:end:step]
    if self.ndim == 0:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    return self[(_ALL,) * _dims.one(dim, self.ndim) + (slice(start, end, step),)]


slice_.derivative(
    self=lambda g, self_shape, dim, start, end, step: F.slice_backward(g, self_shape, dim, start, end, step),
)


@op(
    "aten::slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, "
    "SymInt step) -> Tensor",
    node="SliceBackwardBackward0",
    expose="no",
)
def slice_backward(
    grad_output: np.ndarray, input_sizes: tuple, dim: int, start: Any, end: Any, step: int
) -> np.ndarray:
    whole = np.zeros(input_sizes, grad_output.dtype)
    whole[(_ALL,) * _dims.one(dim, len(input_sizes)) + (slice(start, end, step),)] = grad_output
    return whole


slice_backward.derivative(grad_output=lambda g, dim, start, end, step: slice_(g, dim, start, end, step))
slice_backward.children(_written_part("aten::slice.Tensor", slice_.op.kernel))


@function()
def narrow(input: Any, dim: int, start: Any, length: int) -> Any:
    """A part of one dimension, as a view."""
    if start.__class__ is not int:
        if isinstance(start, _dispatch.Tensor) and (start.dim() or start.dtype._rank != 1):
            raise RuntimeError("start must be an 0-dim integral Tensor.")
        start = int(start)
    return _narrow(input, dim, start, length)


@composite("aten::narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)", expose="no")
def _narrow(self: Any, dim: int, start: int, length: int) -> Any:
    shape = shape_of(self)
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    n = shape[_dims.one(dim, len(shape))]
    if not -n <= start <= n:
        raise IndexError(f"start out of range (expected to be in range of [{-n}, {n}], but got {start})")
    begin = start + n if start < 0 else start
    if begin + length > n:
        raise RuntimeError(f"start ({begin}) + length ({length}) exceeds dimension size ({n}).")
    return slice_(self, dim, begin, begin + length, 1)


# --------------------------------------------------------------------------- dimensions of length one


@strided_view("aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)")
def unsqueeze(self: np.ndarray, dim: int) -> np.ndarray:
    ndim = self.ndim
    d = dim if 0 <= dim <= ndim else _dims.one(dim, ndim + 1)
    if (
        self.flags.c_contiguous and 1 not in self.shape
    ):  # reshape gives the new dimension the stride torch gives it; newaxis gives it none
        shape = self.shape
        return self.reshape((*shape[:d], 1, *shape[d:]))
    return self[(_ALL,) * d + (None,)]


unsqueeze.derivative(self=lambda g, dim: _squeeze_dim(g, dim))


def _unsqueeze_to(g: Any, shape: tuple) -> Any:
    """Insert dimensions of length one again, one by one."""
    for d, n in enumerate(shape):
        if n == 1:
            g = unsqueeze(g, d)
    return g


@strided_view("aten::squeeze(Tensor(a) self) -> Tensor(a)", expose="no")
def _squeeze(self: np.ndarray) -> np.ndarray:
    return self.squeeze()


_squeeze.derivative(self=lambda g, self_shape: _unsqueeze_to(g, self_shape))


@strided_view("aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", node="SqueezeBackward1", expose="no")
def _squeeze_dim(self: np.ndarray, dim: int) -> np.ndarray:
    d = _dims.one(dim, self.ndim)
    if self.ndim and self.shape[d] == 1:
        return self.squeeze(d)
    return self.view()


_squeeze_dim.derivative(
    self=lambda g, self_shape, dim: (
        unsqueeze(g, dim % len(self_shape)) if self_shape and self_shape[dim] == 1 else g
    ),
)


@strided_view(
    "aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", node="SqueezeBackward2", expose="no"
)
def _squeeze_dims(self: np.ndarray, dim: tuple) -> np.ndarray:
    dims = _dims.many(dim, self.ndim) if dim else ()
    return self.squeeze(tuple([d for d in dims if self.shape[d] == 1])) if self.ndim else self.view()


def _unsqueeze_dims(g: Any, shape: tuple, dims: tuple) -> Any:
    for d in sorted([d % len(shape) for d in dims]) if shape else ():
        if shape[d] == 1:
            g = unsqueeze(g, d)
    return g


_squeeze_dims.derivative(self=lambda g, self_shape, dim: _unsqueeze_dims(g, self_shape, dim))


@function()
def squeeze(input: Any, dim: Any = None) -> Any:
    """Drop dimensions of length one: all of them, one, or some."""
    if dim is None:
        return _squeeze(input)
    if dim.__class__ is int:
        return _squeeze_dim(input, dim)
    if isinstance(dim, (tuple, list)):
        return _squeeze_dims(input, ints(dim))
    return _squeeze_dim(input, operator.index(dim))


# ----------------------------------------------------------------------------------- diagonal, unfold


@strided_view("aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)")
def diagonal(self: np.ndarray, offset: int, dim1: int, dim2: int) -> np.ndarray:
    a, b = _dims.one(dim1, self.ndim), _dims.one(dim2, self.ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = self.shape[a], self.shape[b]
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    others = [d for d in range(self.ndim) if d not in (a, b)]
    shape = [self.shape[d] for d in others] + [length]
    strides = [self.strides[d] for d in others] + [self.strides[a] + self.strides[b]]
    if length == 0:
        return _layout.strided(self, shape, strides)
    start: list[Any] = [_ALL] * self.ndim
    start[b if offset >= 0 else a] = slice(abs(offset), None)
    return _layout.strided(self[tuple(start)], shape, strides)


diagonal.derivative(
    self=lambda g, self_shape, offset, dim1, dim2: F.diagonal_backward(g, self_shape, offset, dim1, dim2),
)


@op(
    "aten::diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) "
    "-> Tensor",
    node="DiagonalBackwardBackward0",
    expose="no",
)
def diagonal_backward(
    grad_output: np.ndarray, input_sizes: tuple, offset: int, dim1: int, dim2: int
) -> np.ndarray:
    whole = np.zeros(input_sizes, grad_output.dtype)
    diagonal.op.kernel(whole, offset, dim1, dim2)[...] = grad_output
    return whole


diagonal_backward.derivative(grad_output=lambda g, offset, dim1, dim2: F.diagonal(g, offset, dim1, dim2))
diagonal_backward.children(_written_part("aten::diagonal", diagonal.op.kernel))


@strided_view("aten::unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", expose="method")
def unfold(self: np.ndarray, dimension: int, size: int, step: int) -> np.ndarray:
    d = _dims.one(dimension, self.ndim)
    longest = self.shape[d] if self.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > longest:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {longest} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    stride = self.strides[d] if self.ndim else self.itemsize
    shape, strides = list(self.shape), list(self.strides)
    if self.ndim:
        shape[d] = (longest - size) // step + 1
        strides[d] = stride * step
    return restrided(self, [*shape, size], [*strides, stride])


unfold.derivative(
    self=lambda g, self_shape, dimension, size, step: F.unfold_backward(g, self_shape, dimension, size, step)
)


@op(
    "aten::unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor",
    node="UnfoldBackwardBackward0",
    expose="no",
)
def unfold_backward(grad_in: np.ndarray, input_sizes: tuple, dim: int, size: int, step: int) -> np.ndarray:
    whole = np.zeros(input_sizes, grad_in.dtype)
    if not input_sizes:
        return grad_in.sum(dtype=grad_in.dtype, axis=-1).reshape(())
    d = _dims.one(dim, len(input_sizes))
    target, source = np.moveaxis(whole, d, -1), np.moveaxis(grad_in, d, -2)
    count = source.shape[-2]
    if step >= size:
        for k in range(size):
            target[..., k : k + (count - 1) * step + 1 : step] += source[..., k]
    else:
        for k in range(count) if count < size else ():
            target[..., k * step : k * step + size] += source[..., k, :]
        for k in range(size) if count >= size else ():
            target[..., k : k + (count - 1) * step + 1 : step] += source[..., k]
    return whole


unfold_backward.derivative(grad_in=lambda g, dim, size, step: F.unfold(g, dim, size, step))


@unfold_backward.children
def _(grad_in: Any, input_sizes: Any, dim: int, size: int, step: int) -> Any:
    """Windows that do not overlap are copied into views of the gradient."""
    inside = [zeros(input_sizes, dtype_number(grad_in))]
    if step >= size:
        inside += [
            child("aten::unfold", tensor(input_sizes, grad_in), dim, size, step),
            copy_(grad_in, grad_in),
        ]
    return inside


# ------------------------------------------------------------------------------ several views at once


def _zeros_for(grads: tuple, shapes: list) -> list:
    """Gradients of several outputs with zeros where none arrived."""
    dtype = next(x for x in grads if x is not None).dtype
    return [F.zeros(shape, dtype=dtype) if x is None else x for x, shape in zip(grads, shapes)]


@view("aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", returns=tuple, expose="method")
def unbind(self: np.ndarray, dim: int) -> list:
    if self.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    d = _dims.one(dim, self.ndim)
    if d:
        self = np.moveaxis(self, d, 0)
    return [self[i, ...] for i in range(self.shape[0])]


unbind.children(
    lambda self, dim: [
        child("aten::select.int", self, dim % len(self.shape), i) for i in range(self.shape[dim])
    ]
)


def _unbind_back(grads: tuple, shape: tuple, dim: int) -> Any:
    d = dim % len(shape)
    dtype = next(x for x in grads if x is not None).dtype
    part = shape[:d] + shape[d + 1 :]
    return F.stack([F.expand(F.zeros((), dtype=dtype), part) if x is None else x for x in grads], d)


unbind.derivative(self=lambda grads, self_shape, dim: _unbind_back(grads, self_shape, dim))


@function("unbind", expose="function")
def _unbind(input: Any, dim: int = 0) -> Any:
    # a function of its own: handlers that call torch.unbind for Tensor.unbind would call themselves (monai's MetaTensor)
    return unbind(input, dim)


_unbind.__name__ = _unbind.__qualname__ = "unbind"


def _split_sizes(n: int, split_size: int) -> list[int]:
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    if split_size == 0:
        if n:
            raise RuntimeError(
                f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}"
            )
        return [0]
    count = max((n + split_size - 1) // split_size, 1)
    return [split_size] * (count - 1) + [n - split_size * (count - 1)]


def _cut(array: np.ndarray, sizes: Any, d: int) -> list[np.ndarray]:
    lead, begin, found = (_ALL,) * d, 0, []
    for n in sizes:
        found.append(array[lead + (slice(begin, begin + n),)])
        begin += n
    return found


def _join_back(grads: tuple, shape: tuple, sizes: Any, d: int) -> Any:
    return F.cat(_zeros_for(grads, [(*shape[:d], n, *shape[d + 1 :]) for n in sizes]), d)


@view(
    "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
    returns=tuple,
    expose="no",
)
def _split(self: np.ndarray, split_size: int, dim: int) -> list:
    if self.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    d = _dims.one(dim, self.ndim)
    return _cut(self, _split_sizes(self.shape[d], split_size), d)


def _narrows(self: Any, split_size: Any, dim: Any) -> list[Child]:
    """Children: a part after the other, each by `narrow`."""
    parts, begin = [], 0
    for n in _split_sizes(self.shape[dim], split_size):
        inside = [child("aten::slice.Tensor", self, dim, begin, begin + n, 1)]
        parts.append(child("aten::narrow", self, dim, begin, n, children=inside))
        begin += n
    return parts


_split.children(_narrows)
_split.derivative(
    self=lambda grads, self_shape, split_size, dim: _join_back(
        grads, self_shape, _split_sizes(self_shape[dim], split_size), dim % len(self_shape)
    )
)


def _check_sizes(shape: tuple, sizes: tuple, dim: int) -> int:
    if not shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    d = _dims.one(dim, len(shape))
    if sizes and min(sizes) < 0:
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={size_text(sizes)}"
        )
    if sum(sizes) != shape[d]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {shape[d]} (input tensor's size at "
            f"dimension {d}), but got "
            f"split_sizes={size_text(sizes)}"
        )
    return d


@view(
    "aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
    returns=tuple,
)
def split_with_sizes(self: np.ndarray, split_sizes: tuple, dim: int) -> list:
    return _cut(self, split_sizes, _check_sizes(self.shape, split_sizes, dim))


@split_with_sizes.children
def _pieces(self: Any, split_sizes: Any, dim: Any) -> list[Child]:
    def part(number: int) -> Child:
        return strided(self, lambda array: split_with_sizes.op.kernel(array, split_sizes, dim)[number])

    return [part(number) for number in range(len(split_sizes))]


split_with_sizes.derivative(
    self=lambda grads, self_shape, split_sizes, dim: _join_back(
        grads, self_shape, split_sizes, dim % len(self_shape)
    ),
)


def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    """Views of consecutive parts: of one length, or of the given lengths."""
    if split_size_or_sections.__class__ is int:
        return _split(tensor, split_size_or_sections, dim)
    if isinstance(split_size_or_sections, (tuple, list)):
        return split_with_sizes(tensor, ints(split_size_or_sections), dim)
    if not hasattr(split_size_or_sections, "__index__"):
        raise TypeError(
            "split_with_sizes(): argument 'split_sizes' (position 2) must be tuple of ints, not "
            f"{type(split_size_or_sections).__name__}"
        )
    return _split(tensor, operator.index(split_size_or_sections), dim)


def _split_method(self: Any, split_size: Any, dim: int = 0) -> Any:
    """Views of consecutive parts: of one length, or of the given lengths."""
    return split(self, split_size, dim)


_split_method.__name__ = _split_method.__qualname__ = "split"
_dispatch.FUNCTIONS["split"], _dispatch.METHODS["split"] = split, _split_method


@composite("aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]")
def chunk(self: Any, chunks: int, dim: int) -> Any:
    shape = shape_of(self)
    if not shape:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    n = shape[_dims.one(dim, len(shape))]
    size = (n + chunks - 1) // chunks
    if size == 0:
        return split_with_sizes(self, (0,) * chunks, dim)
    return _split(self, size, dim)


def _pieces_at(self: Any, edges: Any, dim: int) -> tuple:
    begin, found = 0, []
    for edge in edges:
        found.append(slice_(self, dim, begin, edge, 1))
        begin = edge
    found.append(slice_(self, dim, begin, self.size(dim), 1))
    return tuple(found)


@composite(
    "aten::tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]", expose="no"
)
def _tensor_split_sections(self: Any, sections: int, dim: int) -> tuple:
    if not self.ndim:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    d = _dims.one(dim, self.ndim)
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    small, longer = divmod(self.size(d), sections)
    begin, views = 0, []
    for i in range(sections):
        end = begin + small + (i < longer)
        views.append(slice_(self, d, begin, end, 1))
        begin = end
    return tuple(views)


@composite(
    "aten::tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]", expose="no"
)
def _tensor_split_indices(self: Any, indices: tuple, dim: int) -> tuple:
    if not self.ndim:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    return _pieces_at(self, indices, _dims.one(dim, self.ndim))


@function()
def tensor_split(
    input: Any, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None, sections: Any = None
) -> Any:
    """Views of consecutive parts: a number of nearly equal length, or split at the given places."""
    where = next(x for x in (indices_or_sections, indices, sections) if x is not None)
    if isinstance(where, Tensor):
        if where.ndim > 1 or where._array.dtype != np.int64:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
                "one-dimensional tensor, but got a tensor with "
                f"{where.ndim} dims"
                if where.ndim > 1
                else "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                f"{where.dtype._abbr}"
            )
        where = where._array.tolist()
    if isinstance(where, (tuple, list)):
        return _tensor_split_indices(input, ints(where), dim)
    return _tensor_split_sections(input, operator.index(where), dim)


def _axis_split(aten_name: str, least: int, axis: int) -> Any:
    name = aten_name.removeprefix("aten::")

    @composite(f"{aten_name}.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", expose="no")
    def by_sections(self: Any, sections: int) -> Any:
        d = 0 if name == "hsplit" and self.ndim == 1 else axis
        if sections == 0 or self.size(d) % sections:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {d}, but the size of the dimension "
                f"{self.size(d)} is not divisible by the "
                f"split_size {sections}!"
            )
        return _tensor_split_sections(self, sections, d)

    @composite(f"{aten_name}.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", expose="no")
    def by_indices(self: Any, indices: tuple) -> Any:
        return _tensor_split_indices(self, indices, 0 if name == "hsplit" and self.ndim == 1 else axis)

    def front(
        input: Any, indices_or_sections: Any = None, *, indices: Any = None, sections: Any = None
    ) -> Any:
        if input.ndim < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with "
                f"{input.ndim} dimensions!"
            )
        where = next(x for x in (indices_or_sections, indices, sections) if x is not None)
        if not isinstance(where, (tuple, list)) and not hasattr(where, "__index__"):
            raise _op_errors.no_overload(name, input, where)
        if isinstance(where, (tuple, list)):
            return by_indices(input, ints(where))
        return by_sections(input, operator.index(where))

    front.__name__ = front.__qualname__ = name
    front.__doc__ = f"Views of pieces along dimension {axis}."
    return function(name)(front)


hsplit = _axis_split("aten::hsplit", 1, 1)
vsplit = _axis_split("aten::vsplit", 2, 0)
dsplit = _axis_split("aten::dsplit", 3, 2)


# torch's unsafe_ splits are views of the memory that autograd treats as independent tensors


def _independent(self: Any, arrays: list) -> list:
    found = []
    for array in arrays:
        piece = _dispatch.wrap(array)
        piece._storage = _alias_for(piece, self)  # writes to one piece do not count for the others
        found.append(piece)
    return found


@op(
    "aten::unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
    on="tensors",
    returns=tuple,
)
def unsafe_split(self: Any, split_size: int, dim: int) -> list:
    return _independent(self, _split.op.kernel(self._array, split_size, dim))


unsafe_split.children(_narrows)
unsafe_split.derivative(
    self=lambda grads, self_shape, split_size, dim: _join_back(
        grads, self_shape, _split_sizes(self_shape[dim], split_size), dim % len(self_shape)
    )
)


@op(
    "aten::unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
    on="tensors",
    returns=tuple,
)
def unsafe_split_with_sizes(self: Any, split_sizes: tuple, dim: int) -> list:
    return _independent(self, split_with_sizes.op.kernel(self._array, split_sizes, dim))


unsafe_split_with_sizes.children(_pieces)
unsafe_split_with_sizes.derivative(
    self=lambda grads, self_shape, split_sizes, dim: _join_back(
        grads, self_shape, split_sizes, dim % len(self_shape)
    ),
)


@composite("aten::unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]")
def unsafe_chunk(self: Any, chunks: int, dim: int) -> Any:
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    n = self.size(dim)
    size = (n + chunks - 1) // chunks
    if size == 0:
        return unsafe_split_with_sizes(self, (0,) * chunks, dim)
    return unsafe_split(self, size, dim)
