"""Work of an op: its recorded inputs in; floating-point operations, bytes and the kind of unit that does them out. Shared by the models.

Every tensor is counted as moved once between memory and the device, however a kernel reads it: the least traffic that the op needs.
A dimension of stride 0 (`expand`) holds one element in memory and counts as one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

from ...inputs import ELEMENT_TYPES, ElementType, Inputs, Number, TensorInput, TensorList, Value

# what limits an op besides memory: matrix units (tensor cores), vector units, or a link to the host or to other ranks
MATRIX, VECTOR, LINK = "matrix", "vector", "link"

_OLD_NAMES = {"long": "long int", "short": "short int"}  # of files whose names of types are shorter
_BY_NUMBER = {element.number: element for element in ELEMENT_TYPES.values()}

FLOAT32, BOOL, INT64 = ELEMENT_TYPES["float"], ELEMENT_TYPES["bool"], ELEMENT_TYPES["long int"]


class NotModelled(Exception):
    """The inputs do not tell how much work an op is; the message says what is missing."""


class Work(NamedTuple):
    """The work of one call."""

    flop: int
    nbytes: int
    category: str
    unit: str  # MATRIX, VECTOR or LINK
    dtype: str  # torch's name of the type that is computed with


class Tensor(NamedTuple):
    """A tensor among the inputs of an op, or its result."""

    shape: tuple[int, ...]
    element: ElementType
    strides: tuple[int, ...] | None = None

    @property
    def numel(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes in memory that belong to it, each once."""
        if self.strides is not None and len(self.strides) == len(self.shape):
            elements = prod(size for size, step in zip(self.shape, self.strides) if step or not size)
        else:
            elements = self.numel
        return elements * self.element.nbytes


class Call:
    """The inputs of one call, by position in the op's schema."""

    def __init__(self, name: str, inputs: Inputs) -> None:
        self.name = name
        self._arguments, self._types = inputs.arguments, inputs.types

    def __len__(self) -> int:
        return len(self._arguments)

    def optional(self, place: int) -> Tensor | None:
        """The tensor at a place; None: no tensor was passed."""
        argument = self._arguments[place] if -len(self) <= place < len(self) else None
        return self._tensor(argument)

    def _tensor(self, argument: object) -> Tensor | None:
        if not isinstance(argument, TensorInput):
            return None
        element = ELEMENT_TYPES.get(_OLD_NAMES.get(argument.type, argument.type))
        if element is None:
            if argument.shape:
                raise NotModelled(f"the size of elements of type {argument.type!r} is not known")
            return None  # files of 2021 name numbers Int, Bool ...
        if argument.is_sparse and argument.strides:
            raise NotModelled("sparse tensors have no model")
        return Tensor(argument.shape, element, argument.strides)

    def tensor(self, place: int) -> Tensor:
        """The tensor at a place, which must be there."""
        tensor = self.optional(place)
        if tensor is None:
            raise NotModelled(f"input {place} was not recorded as a tensor")
        return tensor

    def tensors(self) -> list[Tensor]:
        """All tensors, in order, lists left out."""
        return [tensor for tensor in map(self._tensor, self._arguments) if tensor is not None]

    def tensor_list(self, place: int) -> list[Tensor]:
        """The tensors of a list; files do not tell the types of their elements."""
        argument = self._arguments[place] if place < len(self) else None
        if not isinstance(argument, TensorList) or not argument:
            raise NotModelled("the tensors of a list were not recorded")
        tensors = [self._tensor(each) if each.type else None for each in argument]
        if any(tensor is None for tensor in tensors):
            raise NotModelled("the file does not tell the element types of a list of tensors")
        return [tensor for tensor in tensors if tensor is not None]

    def is_list(self, place: int) -> bool:
        """Whether a list of tensors was passed at a place."""
        return place < len(self) and self._types[place] in ("TensorList", "GenericList")

    def value(self, place: int) -> Value:
        """The number, list of numbers or text at a place; None: nothing, or a tensor."""
        argument = self._arguments[place] if place < len(self) else None
        return None if isinstance(argument, (TensorInput, TensorList)) else argument

    def is_absent(self, place: int) -> bool:
        """Whether nothing (None) was passed at a place; not the same as a value that the file does not show."""
        return place >= len(self) or self._types[place] == ""

    def flag(self, place: int) -> bool:
        """The truth value at a place."""
        value = self.value(place)
        if not isinstance(value, (bool, int)):
            raise NotModelled(f"the value of input {place} was not recorded")
        return bool(value)

    def first_flag(self, after: int = 0, skipped: int = 0) -> bool:
        """The first truth value from a place on, or a later one: so many are skipped."""
        values = [self.value(place) for place in range(after, len(self))]
        flags = [value for value in values if isinstance(value, bool)]
        if len(flags) > skipped:
            return flags[skipped]
        raise NotModelled("whether attention is causal was not recorded")

    def number(self, place: int) -> int:
        """The whole number at a place."""
        value = self.value(place)
        if not isinstance(value, int):
            raise NotModelled(f"the value of input {place} was not recorded")
        return int(value)

    def numbers(self, place: int, count: int | None = None, default: int | None = None) -> tuple[int, ...]:
        """The whole numbers at a place; one number stands for all `count`. default: for an empty list, or nothing."""
        value = self.value(place)
        if isinstance(value, int) and not isinstance(value, bool):
            value = (value,)
        if not value and default is not None and (isinstance(value, tuple) or self.is_absent(place)):
            value = (default,)
        if not isinstance(value, tuple):
            raise NotModelled(f"the value of input {place} was not recorded")
        whole = tuple(int(each) for each in value if isinstance(each, (int, bool)))
        if len(whole) != len(value):
            raise NotModelled(f"the value of input {place} is no list of whole numbers")
        if count is None or len(whole) == count:
            return whole
        if len(whole) == 1:
            return whole * count
        raise NotModelled(f"input {place} has {len(whole)} values where {count} are expected")

    def scalars(self) -> list[Number]:
        """All numbers, in order."""
        return [a for a in self._arguments if isinstance(a, (bool, int, float, complex))]


Model = Callable[[Call], Work]


def element_of_number(number: int) -> ElementType | None:
    """The element type that a dtype among the arguments stands for."""
    return _BY_NUMBER.get(number)


def contiguous(shape: Sequence[int], element: ElementType) -> Tensor:
    """A new tensor, such as a result."""
    return Tensor(tuple(shape), element)


def moved(*tensors: Tensor | None) -> int:
    """Bytes of tensors that are read or written once each."""
    return sum(tensor.nbytes for tensor in tensors if tensor is not None)


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape to which shapes are broadcast."""
    length = max(map(len, shapes), default=0)
    result = [1] * length
    for shape in shapes:
        for place, size in enumerate(reversed(shape), start=1):
            if size != 1:
                if result[-place] not in (1, size):
                    raise NotModelled("the shapes of the inputs do not fit together")
                result[-place] = size
    return tuple(result)


def is_float(element: ElementType) -> bool:
    """Whether elements are floating-point or complex numbers."""
    return element.dtype.startswith(("float", "bfloat", "complex"))


def _rank(element: ElementType) -> tuple[int, int]:
    """The order of types: bool, whole numbers, floating-point, complex; then the larger."""
    name = element.dtype
    kind = 0 if name == "bool" else 3 if name.startswith("complex") else 2 if is_float(element) else 1
    return kind, element.nbytes


def promoted(tensors: Sequence[Tensor]) -> ElementType:
    """The element type of a result: torch's promotion. Tensors without dimensions decide only if they are of a higher kind."""
    if not tensors:
        raise NotModelled("no tensor was recorded among the inputs")
    winner: ElementType | None = None
    for group in ([t for t in tensors if t.shape], [t for t in tensors if not t.shape]):
        for tensor in group:
            element = tensor.element
            if winner is None:
                winner = element
            elif tensor.shape or _rank(element)[0] > _rank(winner)[0] or not any(t.shape for t in tensors):
                winner = _higher(winner, element)
    assert winner is not None
    return winner


def _higher(a: ElementType, b: ElementType) -> ElementType:
    if {a.dtype, b.dtype} == {"float16", "bfloat16"}:
        return FLOAT32
    return max(a, b, key=_rank)
