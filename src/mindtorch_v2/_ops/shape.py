"""Views: other shapes and strides on the same memory. Arrays in, views of them out; copies are in `copies`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch, _dtype
from .._dispatch import as_view, composite, function, ints, op, view, wrap
from .._graph import note_holder, storage_of
from .._meta import is_meta, meta_tensor
from .._tensor import _strided
from . import _dims, _layout
from ._children import UNKNOWN, Child, child, strided
from ._namespace import functions as F
from ._warn import warn_once


def strided_view(text: str, **options: Any) -> Any:
    """Declare a view that torch creates by aten::as_strided, which a profile shows inside."""

    def declare(kernel: Any) -> Any:
        entry = view(text, **options)(kernel)
        entry.children(lambda self, *arguments: [strided(self, lambda array: kernel(array, *arguments))])
        return entry

    return declare


def as_own(tensor: Any) -> Any:
    """A view of a tensor that nobody else has, as a tensor of its own."""
    tensor._base = None
    tensor._rg = tensor._rg is True
    return tensor


def size_text(size: Any) -> str:
    return str(list(size))


# ----------------------------------------------------------------------------------------- as_strided


@op(
    "aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
    "Tensor(a)",
    on="tensors",
    view=True,
)
def as_strided(self: Any, size: tuple, stride: tuple, storage_offset: int | None) -> Any:
    array = self._array
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if stride and min(stride) < 0:
        raise RuntimeError(
            f"as_strided: Negative strides are not supported at the moment, got strides: {size_text(stride)}"
        )
    if size and min(size) < 0:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={size_text(size)} and "
            f"strides={size_text(stride)}"
        )
    storage = storage_of(self)
    if storage_offset is None:
        storage_offset = self.storage_offset()
    elif storage_offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {storage_offset}")
    view = _strided(storage, array.dtype, storage_offset, size, stride)
    if 0 in stride and any([s == 0 and n > 1 for s, n in zip(stride, size)]):
        view.setflags(write=False)
    return as_view(self, view)


def _meta_strided(self: Any, size: tuple, stride: tuple, storage_offset: int | None) -> Any:
    item = self._array_description.dtype.itemsize
    return meta_tensor(size, self._array_description.dtype, tuple([s * item for s in stride]))


as_strided.op.meta = _meta_strided


def _overlaps(size: tuple, stride: tuple) -> bool:
    """Whether two elements of a strided view may share memory."""
    reach = 1
    for step, length in sorted((s, n) for s, n in zip(stride, size) if n != 1):
        if step < reach:
            return True
        reach = step * (length - 1) + reach
    return False


def reach(size: Any, stride: Any) -> int:
    """How many elements of memory a strided view spans."""
    return 0 if 0 in size else sum([(n - 1) * s for n, s in zip(size, stride)]) + 1


def _without_ones(g: Any, size: tuple, stride: tuple) -> tuple[Any, tuple, tuple]:
    """The same without dimensions of length one."""
    for d in range(len(size) - 1, -1, -1):
        if size[d] == 1:
            g = F.squeeze(g, d)
    kept = [(n, s) for n, s in zip(size, stride) if n != 1]
    return g, tuple([n for n, _ in kept]), tuple([s for _, s in kept])


def as_strided_backward(
    g: Any, size: tuple, stride: tuple, offset: int, in_shape: tuple, in_stride: tuple, in_offset: int
) -> Any:
    """Write the gradient to a buffer with the strides of the view, then read that buffer with the strides of the input."""
    if 0 in in_shape or 0 in size:
        return g.new_zeros(in_shape)
    repeated = [d for d, (n, s) in enumerate(zip(size, stride)) if s == 0 and n != 1]
    if repeated:
        g = g.sum(repeated, True)
        size = tuple([1 if d in repeated else n for d, n in enumerate(size)])
    g, size, stride = _without_ones(g, size, stride)
    spread = [d for d, (n, s) in enumerate(zip(in_shape, in_stride)) if s == 0 and n != 1]
    read_shape = tuple([1 if d in spread else n for d, n in enumerate(in_shape)])
    start = min(offset, in_offset)
    extent = max(offset + reach(size, stride), in_offset + reach(read_shape, in_stride)) - start
    memory = g.new_zeros((extent,))
    if _overlaps(size, stride) or _overlaps(read_shape, in_stride):
        places = F.arange(0, extent).as_strided(size, stride, offset - start)
        rows = g.reshape(-1)
        memory = memory.index_add_(0, places.reshape(-1), rows)
    else:
        memory.as_strided(size, stride, offset - start).copy_(g)
    if _overlaps(read_shape, in_stride):
        read_places = F.arange(extent).as_strided(read_shape, in_stride, in_offset - start).reshape(-1)
        count = memory.new_zeros((extent,)).index_add(0, read_places, memory.new_ones((read_places.numel(),)))
        memory = memory / count
    result = memory.as_strided(read_shape, in_stride, in_offset - start)
    if spread:
        for d in spread:
            result = result / in_shape[d]
        result = result.expand(in_shape)
    return result


as_strided.derivative(
    self=lambda g, size, stride, storage_offset, self_shape, self_strides, self_offset: as_strided_backward(
        g,
        size,
        stride,
        self_offset if storage_offset is None else storage_offset,
        self_shape,
        self_strides,
        self_offset,
    )
)


# -------------------------------------------------------------------------------------- view, reshape


def _bad_view(array: np.ndarray, size: tuple) -> RuntimeError:
    """torch's error for sizes that do not fit."""
    if sum([n == -1 for n in size]) > 1:
        return RuntimeError("only one dimension can be inferred")
    for place, n in enumerate(size):
        if n < -1:
            return RuntimeError(f"invalid shape dimension {n} at index {place} of shape {size_text(size)}")
    if -1 in size and 0 in size and array.size == 0:
        return RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {size_text(size)} because the unspecified "
            "dimension size -1 can be any "
            "value and is ambiguous"
        )
    return RuntimeError(f"shape '{size_text(size)}' is invalid for input of size {array.size}")


_NOT_VIEWABLE = (
    "view size is not compatible with input tensor's size and stride (at least one dimension spans across "
    "two contiguous subspaces). "
    "Use .reshape(...) instead."
)


def _viewed(array: np.ndarray, size: tuple) -> np.ndarray | None:
    """`array` in another shape without copying; None if that needs a copy."""
    try:
        view = array.reshape(size) if array.flags.c_contiguous else array.reshape(size, copy=False)
    except ValueError:
        sizes = [n for n in size if n != -1]
        total = 1
        for n in sizes:
            total *= n
        if len(size) - len(sizes) > 1 or min(size, default=0) < -1 or total == 0 or array.size % total:
            raise _bad_view(array, size) from None
        if len(size) == len(sizes) and total != array.size:
            raise _bad_view(array, size) from None
        return None
    if view.shape != size and min(size) < -1:
        raise _bad_view(array, size)
    return view


@view("aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)", expose="no")
def _view(self: np.ndarray, size: tuple) -> np.ndarray:
    viewed = _viewed(self, size)
    if viewed is None:
        raise RuntimeError(_NOT_VIEWABLE)
    return viewed


_view.derivative(self=lambda g, self_shape: F.reshape(g, self_shape))


@view("aten::_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)", expose="no")
def _reshape_alias(self: np.ndarray, size: tuple, stride: tuple) -> np.ndarray:
    return self.reshape(size)


_reshape_alias.derivative(self=lambda g, self_shape: F.reshape(g, self_shape))


@op(
    "aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
    on="tensors",
    expose="no",
    nondifferentiable=True,
)
def _view_dtype(self: Any, dtype: Any) -> Any:
    view = wrap(as_dtype(self._array, dtype))
    view._storage = storage_of(self)
    note_holder(self, view)
    return view


def as_dtype(self: np.ndarray, dtype: Any) -> np.ndarray:
    """The same bytes as elements of another dtype."""
    wanted, item = dtype._np, dtype.itemsize
    if item == self.itemsize:
        return self.view(wanted)
    words = f"to view {_dtype.BY_NUM[self.dtype.num]._abbr} as {dtype._abbr} (different element sizes)"
    if self.ndim == 0:
        raise RuntimeError(f"self.dim() cannot be 0 {words}")
    last = self.strides[-1] // self.itemsize
    if last != 1 and not self.flags.c_contiguous:
        raise RuntimeError(f"self.stride(-1) must be 1 {words}, but got {last}")
    if item > self.itemsize:
        times = item // self.itemsize
        if self.shape[-1] % times:
            raise RuntimeError(
                f"self.size(-1) must be divisible by {times} {words}, but got {self.shape[-1]}"
            )
        for d in range(self.ndim - 1):
            step = self.strides[d] // self.itemsize
            if step % times and self.shape[d] > 1:
                raise RuntimeError(f"self.stride({d}) must be divisible by {times} {words}, but got {step}")
    return self.view(wanted)


@function("view", expose="method")
def view_(self: Any, *size: Any, **named: Any) -> Any:
    """The same elements in another shape, or the same bytes as another dtype."""
    if named:
        wanted = _dispatch.only_named("view", size, named, "dtype", "size")
        size = (wanted if "dtype" in named else ints(wanted),)
    if len(size) == 1:
        first = size[0]
        if first.__class__ is tuple:
            return _view(self, first)
        if isinstance(first, _dtype.dtype):
            return _view_dtype(self, first)
        if first.__class__ is not int and not hasattr(first, "__index__"):
            try:
                size = ints(first)
            except (TypeError, ValueError):
                raise _bad_view_arguments(size) from None
    elif not size:
        raise _bad_view_arguments(size)
    return _view(self, size)


view_.__name__ = view_.__qualname__ = "view"


def _bad_view_arguments(arguments: tuple) -> TypeError:
    names = ", ".join(type(g).__name__ for g in arguments)
    why = (
        f"      didn't match because some of the arguments have invalid types: (!{names}!)\n"
        if arguments
        else ""
    )
    return TypeError(
        f"view() received an invalid combination of arguments - got ({names}), but expected one of:\n * "
        f"(torch.dtype dtype)\n{why}"
        f" * (tuple of ints size)\n{why}"
    )


@op(
    "aten::_unsafe_view(Tensor self, SymInt[] size) -> Tensor",
    on="tensors",
    node="UnsafeViewBackward0",
    expose="no",
)
def _unsafe_view(self: Any, size: tuple) -> Any:
    array = _viewed(self._array, size)
    if array is None:
        raise RuntimeError(_NOT_VIEWABLE)
    view = wrap(array)
    view._storage = storage_of(self)
    return view


_unsafe_view.derivative(self=lambda g, self_shape: F.reshape(g, self_shape))


def full_size(array: np.ndarray, size: tuple) -> tuple:
    """`size` with -1 replaced by the length it stands for."""
    if -1 not in size:
        return size
    product = 1
    for n in size:
        if n != -1:
            product *= n
    return tuple([array.size // product if n == -1 else n for n in size])


@composite("aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", expose="no")
def _reshape(self: Any, shape: Any) -> Any:
    return reshaped(self, shape)


def reshaped(self: Any, shape: Any) -> Any:
    """A view where one is possible, else a view of a copy."""
    if shape.__class__ is not tuple:
        shape = ints(shape)
    if self._array_missing and is_meta(self):
        return _view(self, shape)
    array = self._array
    if array.flags.c_contiguous:
        return _view(self, shape)
    view = _viewed(array, shape)
    if view is not None:
        item = view.itemsize
        return _reshape_alias(self, view.shape, tuple([s // item for s in view.strides]))
    return _unsafe_view(F.clone(self, memory_format=_dtype.contiguous_format), full_size(array, shape))


@function()
def reshape(input: Any, *shape: Any, **named: Any) -> Any:
    """The same elements in another shape, copied only if necessary."""
    if named:
        return _reshape(input, ints(_dispatch.only_named("reshape", shape, named, "shape", "size")))
    if len(shape) == 1 and not hasattr(shape[0], "__index__"):
        return _reshape(input, shape[0])
    if not shape:
        raise TypeError('reshape() missing 1 required positional arguments: "shape"')
    return _reshape(input, shape)


@composite("aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a)", expose="method")
def view_as(self: Any, other: Any) -> Any:
    return _view(self, tuple(other.shape))


@composite("aten::reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", expose="method")
def reshape_as(self: Any, other: Any) -> Any:
    return _reshape(self, tuple(other.shape))


def shape_of(tensor: Any) -> tuple:
    """The shape as a plain tuple, without the cost of a Size."""
    return tensor._array_description.shape if tensor._array_missing else tensor._array.shape


@composite("aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)")
def flatten(self: Any, start_dim: int, end_dim: int) -> Any:
    shape = shape_of(self)
    ndim = len(shape)
    start, end = _dims.one(start_dim, ndim), _dims.one(end_dim, ndim)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if ndim == 0:
        return reshaped(self, (1,))
    if start == end:
        return self
    total = 1
    for n in shape[start : end + 1]:
        total *= n
    return reshaped(self, (*shape[:start], total, *shape[end + 1 :]))


@function("unflatten", expose="method")
def _unflatten_method(self: Any, dim: int, sizes: Any) -> Any:
    """Split a dimension into several."""
    return unflatten(self, dim, sizes)


@composite("aten::unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)", expose="function")
def unflatten(self: Any, dim: int, sizes: Any) -> Any:
    if not hasattr(dim, "__index__"):
        raise TypeError(f"unflatten(): argument 'dim' (position 1) must be int, not {type(dim).__name__}")
    sizes = ints(sizes)
    shape = shape_of(self)
    d = _dims.one(dim, len(shape))
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    length, product = shape[d] if shape else 1, 1
    for n in sizes:
        if n != -1:
            product *= n
    fits = product == length if -1 not in sizes else product != 0 and length % product == 0
    if not fits or sizes.count(-1) > 1:
        if sizes.count(-1) > 1:
            raise RuntimeError("only one dimension can be inferred")
        raise RuntimeError(
            f"unflatten: Provided sizes {size_text(sizes)} don't multiply up to the size of dim {d} "
            f"({length}) in the input tensor"
        )
    sizes = tuple([length // product if n == -1 else n for n in sizes])
    return _view(self, (*shape[:d], *sizes, *shape[d + 1 :]))


@composite("aten::ravel(Tensor(a) self) -> Tensor(a)")
def ravel(self: Any) -> Any:
    return _view(F.contiguous(self), (-1,))


# -------------------------------------------------------------------------------- order of dimensions


@view("aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)")
def transpose(self: np.ndarray, dim0: int, dim1: int) -> np.ndarray:
    try:
        return self.swapaxes(dim0, dim1)
    except ValueError:
        ndim = self.ndim
        _dims.one(dim0, ndim)
        _dims.one(dim1, ndim)
        return self[()] if self.ndim else self.view()


transpose.derivative(self=lambda g, dim0, dim1: g.transpose(dim0, dim1))


@transpose.children
def _(self: Any, dim0: int, dim1: int) -> list[Child]:
    if self is not UNKNOWN and (not self.shape or (dim0 - dim1) % len(self.shape) == 0):
        return [child("aten::alias", self)]
    return [strided(self, lambda array: transpose.op.kernel(array, dim0, dim1))]


@view("aten::t(Tensor(a) self) -> Tensor(a)")
def t(self: np.ndarray) -> np.ndarray:
    if self.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
    return self.T


t.derivative(self=lambda g: g.t())
t.children(
    lambda self: [
        child("aten::transpose.int", self, 0, 0 if self is not UNKNOWN and len(self.shape) < 2 else 1)
    ]
)


@strided_view("aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)", expose="no")
def _permute(self: np.ndarray, dims: tuple) -> np.ndarray:
    try:
        return self.transpose(dims)
    except ValueError:
        ndim = self.ndim
        if len(dims) != ndim:
            raise RuntimeError(
                "permute(sparse_coo): number of dimensions in the tensor input does not match the length of "
                "the desired ordering of "
                f"dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(dims)}"
            ) from None
        if len({_dims.one(d, ndim) for d in dims}) != ndim:
            raise RuntimeError("permute(): duplicate dims are not allowed.") from None
        raise


def _permute_back(g: Any, dims: tuple) -> Any:
    ndim = len(dims)
    back = [0] * ndim
    for place, d in enumerate(dims):
        back[d % ndim] = place
    return _permute(g, tuple(back))


_permute.derivative(self=lambda g, dims: _permute_back(g, dims))


@function()
def permute(input: Any, *dims: Any, **named: Any) -> Any:
    """The dimensions in another order."""
    if named:
        return _permute(input, ints(_dispatch.only_named("permute", dims, named, "dims")))
    if len(dims) == 1 and dims[0].__class__ is not int:
        dims = dims[0]
    elif not dims:
        raise TypeError('permute() missing 1 required positional arguments: "dims"')
    return _permute(input, dims)


@composite("aten::swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)")
def swapaxes(self: Any, axis0: int, axis1: int) -> Any:
    return transpose(self, axis0, axis1)


@composite("aten::swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)")
def swapdims(self: Any, dim0: int, dim1: int) -> Any:
    return transpose(self, dim0, dim1)


def _movedim_body(self: Any, source: Any, destination: Any, name: str = "movedim") -> Any:
    ndim = self.ndim
    source, destination = ints(source), ints(destination)
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({size_text(source)} dims) should contain "
            "the same number of dims as "
            f"destination ({size_text(destination)} dims)"
        )
    moved, places = [_dims.one(d, ndim) for d in source], [_dims.one(d, ndim) for d in destination]
    if len(set(moved)) != len(moved):
        raise RuntimeError(f"movedim: repeated dim in `source` ({size_text(source)})")
    if len(set(places)) != len(places):
        raise RuntimeError(f"movedim: repeated dim in `destination` ({size_text(destination)})")
    if ndim == 0:
        return F.alias(self)
    order: list[int | None] = [None] * ndim
    for d, place in zip(moved, places):
        order[place] = d
    rest = iter([d for d in range(ndim) if d not in moved])
    return _permute(self, tuple([next(rest) if d is None else d for d in order]))


@composite("aten::movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)")
def movedim(self: Any, source: Any, destination: Any) -> Any:
    return _movedim_body(self, source, destination)


@composite("aten::moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)")
def moveaxis(self: Any, source: Any, destination: Any) -> Any:
    return F.movedim(self, source, destination)


@composite("aten::numpy_T(Tensor(a) self) -> Tensor(a)", expose="no")
def _numpy_t(self: Any) -> Any:
    if self.ndim not in (2, 0):
        warn_once(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and "
            "it will throw an error in a "
            "future release. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to "
            "reverse the dimensions of a tensor.",
            stacklevel=4,
        )  # fmt: skip
    return _permute(self, tuple(range(self.ndim - 1, -1, -1)))


def _needs_matrix(self: Any, name: str) -> None:
    if self.ndim < 2:
        raise RuntimeError(
            f"tensor.{name} is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor."
        )


@composite("aten::mT(Tensor(a) self) -> Tensor(a)", expose="no")
def _m_t(self: Any) -> Any:
    if not self.ndim:
        warn_once("Tensor.mT is deprecated on 0-D tensors. This function is the identity in these cases.")
        return F.alias(self)
    _needs_matrix(self, "mT")
    return transpose(self, -2, -1)


@composite("aten::mH(Tensor(a) self) -> Tensor(a)", expose="no")
def _m_h(self: Any) -> Any:
    if not self.ndim:
        warn_once("Tensor.mH is deprecated on 0-D tensors. Consider using x.conj().")
        return F.conj(self)
    _needs_matrix(self, "mH")
    transposed = transpose(self, -2, -1)
    return F.conj(transposed) if transposed._array.dtype.kind in "cW" else transposed


@composite("aten::matrix_H(Tensor(a) self) -> Tensor(a)", expose="no")
def _matrix_h(self: Any) -> Any:
    if self.ndim not in (2, 0):
        more = ". For batches of matrices, consider using tensor.mH" if self.ndim > 2 else "."
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor{more}"
        )
    if self.ndim == 0:
        return F.conj(self) if self._array.dtype.kind in "cW" else F.alias(self)
    transposed = transpose(self, 0, 1)
    return F.conj(transposed) if transposed._array.dtype.kind in "cW" else transposed


@composite("aten::adjoint(Tensor(a) self) -> Tensor(a)")
def adjoint(self: Any) -> Any:
    if not self.ndim:
        warn_once("adjoint() is deprecated on 0-D tensors. Consider using x.conj().")
        return F.conj(self)
    _needs_matrix(self, "adjoint()")
    transposed = transpose(self, -2, -1)
    return F.conj(transposed) if transposed._array.dtype.kind in "cW" else transposed


_dispatch.METHODS["T"] = property(_numpy_t, doc="The dimensions in reverse order.")
_dispatch.METHODS["mT"] = property(_m_t, doc="The last two dimensions swapped.")
_dispatch.METHODS["mH"] = property(_m_h, doc="The last two dimensions swapped, conjugated.")
_dispatch.METHODS["H"] = property(_matrix_h, doc="The conjugate transpose of a matrix.")


# --------------------------------------------------------------------------------------------- expand


def _bad_expand(array: np.ndarray, size: tuple, shape: tuple) -> RuntimeError:
    lead = len(size) - len(shape)
    if lead < 0:
        kind = _dtype.BY_NUM[array.dtype.num]._abbr
        return RuntimeError(
            f"expand(torch.{kind}Tensor{{{size_text(shape)}}}, size={size_text(size)}): the number of sizes "
            f"provided ({len(size)}) must be "
            f"greater or equal to the number of dimensions in the tensor ({len(shape)})"
        )
    for d in range(len(size) - 1, -1, -1):
        have = shape[d - lead] if d >= lead else 1
        if size[d] == -1 and d < lead:
            return RuntimeError(
                f"The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {d}"
            )
        if size[d] != -1 and have != size[d] and (have != 1 or size[d] < 0):
            return RuntimeError(
                f"The expanded size of the tensor ({size[d]}) must match the existing size ({have}) at "
                f"non-singleton dimension {d}.  "
                f"Target sizes: {size_text(size)}.  Tensor sizes: {size_text(shape)}"
            )
    return RuntimeError("expand: sizes do not fit")


@strided_view("aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)", expose="no")
def _expand(self: np.ndarray, size: tuple, implicit: bool) -> np.ndarray:
    shape, steps = self.shape, self.strides
    if shape == size:
        return self.view()
    lead = len(size) - len(shape)
    if lead < 0:
        raise _bad_expand(self, size, shape)
    if shape == size[lead:] and (not lead or min(size) >= 0):
        return _repeating(self, restrided(self, size, (0,) * lead + steps))
    strides = [0] * len(size)
    wanted = list(size)
    for d in range(len(size)):
        n = wanted[d]
        if d < lead:
            if n < 0:
                raise _bad_expand(self, size, shape)
            continue
        have = shape[d - lead]
        if n in (-1, have):
            wanted[d] = have
            strides[d] = steps[d - lead]
        elif have != 1 or n < 0:
            raise _bad_expand(self, size, shape)
    return _repeating(self, restrided(self, wanted, strides))


def _repeating(whole: np.ndarray, array: np.ndarray) -> np.ndarray:
    """Mark a view in which elements repeat as read-only, so that NumPy raises where torch does."""
    if array.size > whole.size or not whole.flags.writeable:
        array.setflags(write=False)
    return array


def restrided(array: np.ndarray, shape: Any, strides: Any) -> np.ndarray:
    """A view of `array` from its first element, with other lengths and strides (in bytes) inside it."""
    if array.flags.c_contiguous and array.dtype.num < 24 and array.size:
        return np.ndarray(shape, array.dtype, array, 0, strides)
    return _layout.strided(array, shape, strides)


_expand.derivative(self=lambda g, self_shape: sum_to(g, self_shape))


def sum_to(g: Any, shape: tuple) -> Any:
    """Sum a gradient down to the shape it was broadcast from."""
    have = g._array.shape
    if have == shape:
        return g
    if not shape:
        return g.sum()
    lead = len(have) - len(shape)
    dims = list(range(lead)) + [d for d in range(lead, len(have)) if shape[d - lead] == 1 and have[d] != 1]
    if dims:
        g = g.sum(dims, True)
    return _view(g, shape) if lead else g


@function(expose="method")
def expand(self: Any, *size: Any, implicit: bool = False, **named: Any) -> Any:
    """The tensor with dimensions of length 1 repeated without copying."""
    if named:
        size = (ints(_dispatch.only_named("expand", size, named, "size")),)
    if len(size) == 1 and size[0].__class__ is not int and not hasattr(size[0], "__index__"):
        return _expand(self, size[0], implicit=implicit)
    if not size:
        raise TypeError('expand() missing 1 required positional arguments: "size"')
    return _expand(self, size, implicit=implicit)


@composite("aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", expose="method")
def expand_as(self: Any, other: Any) -> Any:
    return _expand(self, other.shape)


@function()
def broadcast_to(input: Any, size: Any) -> Any:
    """The tensor repeated along dimensions of length 1 to a shape."""
    return _broadcast_to(input, size)


@composite("aten::broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)", expose="no")
def _broadcast_to(self: Any, size: Any) -> Any:
    return _expand(self, size)


@composite("aten::sum_to_size(Tensor self, SymInt[] size) -> Tensor", expose="no")
def _sum_to_size(self: Any, size: tuple) -> Any:
    have = tuple(self.shape)
    lead = len(have) - len(size)
    if lead < 0 or any(m not in (n, 1) for n, m in zip(have[lead:], size)):
        raise RuntimeError(f"size {{{size_text(size)}}} is not expandable to size {{{size_text(have)}}}.")
    return sum_to(self, size) if size else F.sum(self)


@function(expose="method")
def sum_to_size(self: Any, *size: Any) -> Any:
    """The sum down to a shape that broadcasts to this tensor's."""
    return _sum_to_size(
        self, ints(size[0]) if len(size) == 1 and not hasattr(size[0], "__index__") else ints(size)
    )
