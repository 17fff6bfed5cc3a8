"""Children of ops as data: what torch shows inside an op that is one kernel here. The op's described inputs in, names and inputs out.

A rule stands beside an op's kernel and derivative:

    relu.children(lambda self: [child("aten::clamp_min", self, 0, allocates=True)])

Rules are evaluated after the stop, once per distinct input, never while something records. A rule gets the op's arguments as the trace
describes them: a tensor is a `TensorInput` (`shape`, `strides` in elements, `type`), any other argument its value, and dtypes, layouts and
memory formats are torch's numbers. Without `record_shapes` all arguments are `UNKNOWN`: a rule whose names do not depend on them still
works, one that has to look at them gives nothing. A rule that needs to know more of the process (the number of threads, the default dtype)
has a keyword parameter `settings`: the trace's, as they were recorded. Nothing else is read, so that a rule gives the same rows wherever and
whenever the profile is looked at.

Rules for what is only bookkeeping of torch's kernel (casting operands, allocating, clearing or viewing an output) stand together in
`_kernel_bookkeeping.py`, unless the op contains other ops too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mindtorch_prof.inputs import ELEMENT_TYPES, TensorInput

from .. import _dtype
from .._tensor_slots import strides_in_elements
from . import _dims
from ._layout import dense_order

if TYPE_CHECKING:
    from mindtorch_prof.settings import Settings

_BY_NAME = {dtype._name: dtype for dtype in _dtype.BY_NUM.values()}
# by the name of an element type in a trace: NumPy's dtype
_DTYPES = {name: _BY_NAME[e.dtype]._np for name, e in ELEMENT_TYPES.items() if e.dtype in _BY_NAME}


class Child(NamedTuple):
    """An op that torch shows inside another."""

    name: str  # with the overload: "aten::sum.dim_IntList"
    arguments: tuple[Any, ...]  # those that are left out at the end have the defaults of the op's schema
    children: Sequence[Child] | None  # None: those that the op itself declares
    allocates: bool
    sequenced: bool


def child(
    name: str,
    *arguments: Any,
    children: Sequence[Child] | None = None,
    allocates: bool = False,
    sequenced: bool = False,
) -> Child:
    """A child: an op with its overload, and its arguments in the order of its schema.

    children: the ops inside it, where they are not those that the op itself declares. allocates: the memory that the parent allocated is
    shown as this op's (or as that of its own allocating child). sequenced: it has the sequence number of its parent, as an op has that
    torch calls above autograd.
    """
    return Child(name, arguments, children, allocates, sequenced)


class UnknownInputs(Exception):
    """A rule has to look at inputs that were not recorded."""


class _Unknown:
    """An argument that was not recorded. Anything computed from it is unknown too; it cannot be tested, counted or iterated over."""

    def _unknown(self, *_: Any, **__: Any) -> _Unknown:
        return self

    def _refuse(self, *_: Any) -> Any:
        raise UnknownInputs

    __getattr__ = __getitem__ = __call__ = _unknown
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __neg__ = _unknown
    __mod__ = __rmod__ = __lt__ = __le__ = __gt__ = __ge__ = _unknown
    __eq__ = __ne__ = _unknown  # type: ignore[assignment]
    __bool__ = __iter__ = __len__ = __index__ = __int__ = __float__ = __contains__ = _refuse
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = _Unknown()


# ------------------------------------------------------------------------------------------------------ tensors that rules describe


def tensor(shape: Any, like: Any, type: str | None = None) -> Any:
    """A new contiguous tensor of this shape, with the element type of another."""
    if shape is UNKNOWN or like is UNKNOWN:
        return UNKNOWN
    shape = tuple(shape)
    return TensorInput(shape, contiguous_strides(shape), like.type if type is None else type)


def contiguous_strides(shape: Any) -> Any:
    """The strides of a contiguous tensor, in elements."""
    if shape is UNKNOWN:
        return UNKNOWN
    return tuple([prod([max(size, 1) for size in shape[d + 1 :]]) for d in range(len(shape))])


def is_contiguous(x: Any) -> bool:
    """Whether a described tensor is contiguous."""
    if x is UNKNOWN:
        raise UnknownInputs
    wanted = contiguous_strides(x.shape)
    return 0 in x.shape or all(
        size == 1 or step == expected for size, step, expected in zip(x.shape, x.strides, wanted)
    )


def array_of(x: Any) -> np.ndarray:
    """An array with the shape, strides and dtype of a described tensor, to give to the kernel of a view. It has no memory to read."""
    if x is UNKNOWN:
        raise UnknownInputs
    dtype = _DTYPES[x.type]
    return np.lib.stride_tricks.as_strided(
        np.empty(1, dtype), x.shape, tuple([step * dtype.itemsize for step in x.strides])
    )


def view_of(x: Any, view: Callable[[np.ndarray], np.ndarray]) -> Any:
    """The view that a kernel makes of a described tensor."""
    if x is UNKNOWN:
        return UNKNOWN
    source = array_of(x)
    array = view(source)
    return TensorInput(array.shape, view_strides(source, array), x.type)


def strided(x: Any, view: Callable[[np.ndarray], np.ndarray]) -> Child:
    """`as_strided` of a described tensor, with the shape and strides that a view of it has. The storage offset is not described."""
    result = view_of(x, view)
    return child("aten::as_strided", x, result.shape, result.strides)


def view_strides(source: np.ndarray, array: np.ndarray) -> tuple[int, ...]:
    """torch's strides of a view: those that NumPy sets to 0 for new dimensions are computed; expanded dimensions keep 0."""
    if 1 not in array.shape or not source.ndim:
        return tuple([step // array.itemsize for step in array.strides])
    steps = strides_in_elements(array, False)
    if array.ndim != source.ndim or 0 not in source.strides:
        return steps
    return tuple([0 if s == 0 and n > 1 else step for step, s, n in zip(steps, source.strides, source.shape)])


# ------------------------------------------------------------------------------------ ops that many others contain in torch

# Options as torch's own code passes them on: the layout and the dtype of the result written out, the rest left open. The result of an
# allocating op is the result of its parent unless `allocates` is False.


def dtype_number(x: Any) -> Any:
    """torch's number of a described tensor's dtype."""
    return UNKNOWN if x is UNKNOWN else ELEMENT_TYPES[x.type].number


def tensor_of(shape: Any, dtype: Any) -> Any:
    """A new contiguous tensor of this shape; dtype: torch's number."""
    if shape is UNKNOWN:
        return UNKNOWN
    return TensorInput(tuple(shape), contiguous_strides(shape), _TYPES[dtype])


_TYPES = {element.number: name for name, element in ELEMENT_TYPES.items()}  # names of element types
_NUMBERS = {element.dtype: element.number for element in ELEMENT_TYPES.values()}  # torch's numbers


def dtype_or_default(dtype: Any, settings: Settings, value: Any = 0.0) -> Any:
    """A dtype as torch's number; for None that of the dtype which a tensor of a number got by default when the trace was recorded."""
    if dtype is not None:
        return dtype
    if value is UNKNOWN:
        return UNKNOWN
    return _NUMBERS[_dtype.number_dtype(value, _BY_NAME[settings.default_dtype])._name]


def known(*arguments: Any) -> None:
    """Raise if one of the arguments was not recorded."""
    if any([argument is UNKNOWN for argument in arguments]):
        raise UnknownInputs


def element_dtype(x: Any) -> np.dtype:
    """NumPy's dtype of a described tensor."""
    known(x)
    return _DTYPES[x.type]


def boxed(x: Any) -> Any:
    """A described Python number as the 0-dim tensor that torch boxes it in; a tensor as it is."""
    if x is UNKNOWN or isinstance(x, TensorInput):
        return x
    return TensorInput((), (), _BOXES[type(x)])


# torch's numbers
BOOL, INT64, FLOAT32 = (ELEMENT_TYPES[name].number for name in ("bool", "long int", "float"))
_BOXES = {float: "double", int: "long int", bool: "bool", complex: "c10::complex<double>"}


def common_dtype(*operands: Any, settings: Settings, floating: bool = False) -> int:
    """torch's number of the dtype that element-wise ops compute in; floating: integers are divided as floating-point numbers.

    A 0-dim tensor of the type of a boxed number is taken for one: descriptions do not tell them apart.
    """
    known(*operands)
    default, pairs = _BY_NAME[settings.default_dtype], []
    for operand in map(boxed, operands):
        dtype = _BY_NAME[ELEMENT_TYPES[operand.type].dtype]
        is_number = not operand.shape and operand.type in _BOXES.values()
        if is_number and dtype.is_complex:
            dtype = default.to_complex()
        elif is_number and dtype.is_floating_point:
            dtype = default
        pairs.append((dtype, 2 if is_number else 0 if operand.shape else 1))
    result = _dtype.result_dtype(pairs)
    if all([kind == 2 for _, kind in pairs]):
        result = _BY_NAME[ELEMENT_TYPES[boxed(operands[0]).type].dtype]
    if floating and not (result.is_floating_point or result.is_complex):
        result = default
    return _NUMBERS[result._name]


def cast(x: Any, dtype: Any) -> Child:
    """`to` another dtype (torch's number): a copy unless the tensor has it."""
    inside = (
        () if dtype_number(x) == dtype else [child("aten::_to_copy", x, dtype, None, None, None, False, None)]
    )
    return child("aten::to.dtype", x, dtype, False, False, None, children=inside)


def casts(*operands: Any, settings: Settings, floating: bool = False) -> list[Child]:
    """The operands that have another dtype than the one that an element-wise op computes in, cast to it."""
    dtype = common_dtype(*operands, settings=settings, floating=floating)
    return [cast(x, dtype) for x in map(boxed, operands) if dtype_number(x) != dtype]


def dense_strides(x: Any, memory_format: Any) -> Any:
    """The strides of a new tensor like a described one in a memory format (torch's number; None: that of the tensor)."""
    if x is UNKNOWN or memory_format is UNKNOWN:
        return UNKNOWN
    if memory_format in (None, 1):
        if is_dense(x):
            return x.strides
        order = dense_order(x.shape, x.strides)
    elif memory_format == 0:
        return contiguous_strides(x.shape)
    else:  # channels last
        order = [0, *range(2, len(x.shape)), 1]
    steps = dict(zip(order, contiguous_strides([x.shape[d] for d in order])))
    return tuple([steps[d] for d in range(len(order))])


def is_dense(x: Any) -> bool:
    """Whether a described tensor fills its memory without gaps or repeats, in whatever order of dimensions."""
    if x is UNKNOWN:
        raise UnknownInputs
    expected = 1
    for step, size in sorted(zip(x.strides, x.shape)):
        if size != 1:
            if step != expected and 0 not in x.shape:
                return False
            expected *= size
    return True


def empty(
    shape: Any,
    dtype: Any,
    layout: Any = 0,
    pin_memory: Any = None,
    memory_format: Any = None,
    allocates: bool = True,
) -> Child:
    """An uninitialised tensor; dtype: torch's number."""
    return child(
        "aten::empty.memory_format",
        shape,
        dtype,
        layout,
        None,
        pin_memory,
        memory_format,
        allocates=allocates,
    )


def empty_like(x: Any, memory_format: Any = None, allocates: bool = True) -> Child:
    """An uninitialised tensor of the shape of another."""
    return child("aten::empty_like", x, None, None, None, None, memory_format, allocates=allocates)


def zeros(shape: Any, dtype: Any, allocates: bool = True) -> Child:
    """Zeros; dtype: torch's number."""
    return child("aten::zeros", shape, dtype, 0, None, None, allocates=allocates)


def zeros_like(x: Any, memory_format: Any = None, allocates: bool = True) -> Child:
    """Zeros of the shape of another."""
    return child("aten::zeros_like", x, None, None, None, None, memory_format, allocates=allocates)


def fill_(x: Any, value: Any) -> Child:
    """A tensor filled with a number."""
    return child("aten::fill_.Scalar", x, value)


def zero_(x: Any) -> Child:
    """A tensor filled with zeros."""
    return child("aten::zero_", x)


def copy_(x: Any, source: Any) -> Child:
    """A tensor filled with the elements of another."""
    return child("aten::copy_", x, source)


def clone(x: Any, memory_format: Any = None, allocates: bool = True) -> Child:
    """A copy."""
    return child("aten::clone", x, memory_format, allocates=allocates)


def narrow(x: Any, dim: int, start: int, length: int) -> Child:
    """A part of a tensor along a dimension."""
    inside = child("aten::slice.Tensor", x, dim, start, start + length)
    return child("aten::narrow", x, dim, start, length, children=[inside])


def reduced_output(self: Any, dim: Any, keepdim: bool, dtype: Any = None) -> tuple[Any, list[Child]]:
    """The output of a reduction as its kernel sees it, with all dimensions; and the op that gives it these.

    dtype: torch's number of the output's; None: that of the tensor."""
    known(self)
    dims = _dims.many(dim, len(self.shape))
    shape = tuple([1 if d in dims else n for d, n in enumerate(self.shape)])
    dtype = dtype_number(self) if dtype is None else dtype
    if keepdim:
        return tensor_of(shape, dtype), []
    result = tensor_of([n for d, n in enumerate(self.shape) if d not in dims], dtype)
    steps = iter(result.strides)
    strides = tuple([0 if d in dims else next(steps) for d in range(len(shape))])
    return TensorInput(shape, strides, result.type), [child("aten::as_strided", result, shape, strides)]


def contiguous(x: Any) -> Sequence[Child]:
    """A copy of a tensor that is not contiguous."""
    return () if is_contiguous(x) else [child("aten::contiguous", x, 0, children=[clone(x, 0)])]


def reshape(x: Any, shape: tuple[int, ...]) -> Child:
    """A tensor in another shape: a view where one is possible, else a view of a copy. One size may be -1."""
    if is_contiguous(x):
        return child("aten::reshape", x, shape, children=[child("aten::view", x, shape)])
    source = array_of(x)
    try:
        view = source.reshape(shape, copy=False)
        inside = [child("aten::_reshape_alias", x, view.shape, view_strides(source, view))]
    except ValueError:
        full_shape = tuple([-source.size // prod(shape) if size == -1 else size for size in shape])
        inside = [clone(x, 0), child("aten::_unsafe_view", tensor(x.shape, x), full_shape)]
    return child("aten::reshape", x, shape, children=inside)


def item(x: Any) -> Child:
    """`item`, which reads the number in a tensor."""
    return child("aten::item", x, children=[child("aten::_local_scalar_dense", x)])
