"""Inputs of events: the arguments of an op, as torch shows them. Plain data.

Recordings and files give the same objects; code that reads them cannot tell which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias, TypeGuard

import orjson


class ElementType(NamedTuple):
    """The type of a tensor's elements."""

    dtype: str  # torch's name
    nbytes: int
    number: int  # torch's number, which a trace shows where a dtype is an argument


# by the name that a trace shows, which is C++'s
ELEMENT_TYPES = {
    "float": ElementType("float32", 4, 6),
    "double": ElementType("float64", 8, 7),
    "c10::Half": ElementType("float16", 2, 5),
    "c10::BFloat16": ElementType("bfloat16", 2, 15),
    "long int": ElementType("int64", 8, 4),
    "int": ElementType("int32", 4, 3),
    "short int": ElementType("int16", 2, 2),
    "signed char": ElementType("int8", 1, 1),
    "unsigned char": ElementType("uint8", 1, 0),
    "bool": ElementType("bool", 1, 11),
    "c10::complex<float>": ElementType("complex64", 8, 9),
    "c10::complex<double>": ElementType("complex128", 16, 10),
    "c10::complex<c10::Half>": ElementType("complex32", 4, 8),
    "short unsigned int": ElementType("uint16", 2, 27),
    "unsigned int": ElementType("uint32", 4, 28),
    "long unsigned int": ElementType("uint64", 8, 29),
    "c10::Float8_e4m3fn": ElementType("float8_e4m3fn", 1, 24),
    "c10::Float8_e5m2": ElementType("float8_e5m2", 1, 23),
    "c10::Float8_e4m3fnuz": ElementType("float8_e4m3fnuz", 1, 26),
    "c10::Float8_e5m2fnuz": ElementType("float8_e5m2fnuz", 1, 25),
    "c10::Float8_e8m0fnu": ElementType("float8_e8m0fnu", 1, 44),
}

_NO_TENSOR = frozenset({"", "Scalar", "ScalarList", "TensorList", "GenericList"})
_LONGEST_LIST = 30  # elements: torch leaves longer lists out of trace files


class TensorInput(NamedTuple):
    """A tensor among the inputs of an event."""

    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # in elements; fewer than dimensions: sparse; None: not recorded
    type: str  # of its elements, a key of ELEMENT_TYPES; or another name, or "", that a file gives

    @property
    def is_sparse(self) -> bool:
        """Whether it has dimensions and no strides."""
        return self.strides is not None and len(self.strides) != len(self.shape)

    def reach(self) -> int:
        """The bytes of memory it spans, by its longest dimension; 0: not known, or no memory of its own."""
        element = ELEMENT_TYPES.get(self.type)
        if element is None or self.strides is None or self.is_sparse:
            return 0
        return element.nbytes * max((size * step for size, step in zip(self.shape, self.strides)), default=1)


class TensorList(tuple[TensorInput, ...]):
    """A list of tensors among the inputs of an event."""

    __slots__ = ()


class IndexList(TensorList):
    """A list of indices (Tensor?[] in schemas), which torch's event tree leaves out."""

    __slots__ = ()


Number: TypeAlias = "bool | int | float | complex"
Value: TypeAlias = "Number | str | tuple[Value, ...] | None"  # of an argument that is no tensor
Argument: TypeAlias = "TensorInput | TensorList | Value"
# of a tensor; for a list of tensors one list for each of them
Sizes: TypeAlias = "list[int] | list[list[int]]"


class Inputs:
    """The inputs of an event. Each list has one entry per argument."""

    def __init__(
        self,
        arguments: Iterable[Argument],
        tensor_slots: Sequence[int] | None = None,
        keywords: Mapping[str, object] | None = None,
    ) -> None:
        """`tensor_slots`: how many tensor ids are recorded for each argument; None: one for each tensor.
        `keywords`: values that were passed by name."""
        self._arguments = tuple(arguments)
        self.keywords: Mapping[str, object] = keywords or {}
        if tensor_slots is not None:
            self.tensor_slots = tuple(tensor_slots)

    @staticmethod
    def from_json(text: bytes) -> Inputs:
        """From JSON of a file's [concrete inputs, types, strides, dims], null for what the file lacks; parsed at the first access."""
        return _JsonInputs(text)

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """All arguments, in the order of the op's schema."""
        return self._arguments

    @cached_property
    def tensor_slots(self) -> tuple[int, ...]:
        """How many tensor ids are recorded for each argument."""
        return tuple(
            1 if isinstance(a, TensorInput) else len(a) if isinstance(a, TensorList) else 0
            for a in self.arguments
        )

    @cached_property
    def concrete(self) -> list[str]:
        """Numbers and lists of numbers as torch's C++ prints them; "" for everything else."""
        return [printed_value(argument) for argument in self.arguments]

    @cached_property
    def types(self) -> list[str]:
        """Element types of tensors; TensorList, Scalar, ScalarList or "" for everything else."""
        return [_type(argument) for argument in self.arguments]

    @cached_property
    def strides(self) -> list[Sizes]:
        """In elements; a list of lists for a list of tensors, [] for everything else."""
        return [
            list(a.strides or ())
            if isinstance(a, TensorInput)
            else [list(tensor.strides or ()) for tensor in a]
            if isinstance(a, TensorList)
            else []
            for a in self.arguments
        ]

    @cached_property
    def dims(self) -> list[Sizes]:
        """Shapes; a list of lists for a list of tensors, [] for everything else."""
        return [
            list(a.shape)
            if isinstance(a, TensorInput)
            else [list(tensor.shape) for tensor in a]
            if isinstance(a, TensorList)
            else []
            for a in self.arguments
        ]

    @cached_property
    def values(self) -> list[Number | list[Value] | None]:
        """Numbers and lists of numbers as such; None for everything else."""
        return [
            None
            if isinstance(a, (TensorInput, str)) or (isinstance(a, TensorList) and a)
            else list(a)
            if isinstance(a, tuple)
            else a
            for a in self.arguments
        ]

    @cached_property
    def shapes(self) -> list[list[int]]:
        """`input_shapes`: the shapes of tensors, [] for everything else."""
        return [sizes if _is_flat(sizes) else [] for sizes in self.dims]

    @property
    def tensors(self) -> list[bool]:
        """Which arguments are tensors; files of 2021 name the types of tensors only."""
        return [kind not in _NO_TENSOR for kind in self.types]

    def document(self) -> dict[str, list[str] | list[Sizes]]:
        """The lists under their names in a trace file."""
        return {
            "Concrete Inputs": self.concrete,
            "Input type": self.types,
            "Input Strides": [_short(entry) for entry in self.strides],
            "Input Dims": [_short(entry) for entry in self.dims],
        }


class _JsonInputs(Inputs):
    """Inputs as a file words them. Texts are kept as they are: they need not be those that torch prints today."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self.keywords = {}

    @cached_property
    def _lists(self) -> tuple[list[str], list[str], list[Sizes], list[Sizes]]:
        lists = [value if isinstance(value, list) else [] for value in orjson.loads(self._text)]
        concrete, types, strides, dims = lists
        count = max(map(len, lists))
        empty: list[Sizes] = [[]] * count
        return (
            [v if isinstance(v, str) else "" for v in concrete] + [""] * (count - len(concrete)),
            [v if isinstance(v, str) else "" for v in types] + [""] * (count - len(types)),
            [v if isinstance(v, list) else [] for v in strides] + empty[len(strides) :],
            [v if isinstance(v, list) else [] for v in dims] + empty[len(dims) :],
        )

    @cached_property
    def concrete(self) -> list[str]:
        return self._lists[0]

    @cached_property
    def types(self) -> list[str]:
        return self._lists[1]

    @cached_property
    def strides(self) -> list[Sizes]:
        return self._lists[2]

    @cached_property
    def dims(self) -> list[Sizes]:
        return self._lists[3]

    @cached_property
    def values(self) -> list[Number | list[Value] | None]:
        return [
            _parsed(text) if kind in ("Scalar", "ScalarList", "") else None
            for text, kind in zip(self.concrete, self.types)
        ]

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        with_strides = isinstance(orjson.loads(self._text)[2], list)
        columns = zip(self.dims, self.strides, self.types, self.tensors, self.values)
        return tuple([_argument(*each, with_strides) for each in columns])


def _argument(
    shape: Sizes,
    strides: Sizes,
    kind: str,
    is_tensor: bool,
    value: Number | list[Value] | None,
    with_strides: bool,
) -> Argument:
    if is_tensor:
        return TensorInput(_sizes_of_tensor(shape), _sizes_of_tensor(strides) if with_strides else None, kind)
    if kind == "TensorList":
        steps = _sizes_of_tensors(strides) if len(strides) == len(shape) else [None] * len(shape)
        return TensorList(TensorInput(*each, "") for each in zip(_sizes_of_tensors(shape), steps))
    return tuple(value) if isinstance(value, list) else value


def _is_flat(sizes: Sizes) -> TypeGuard[list[int]]:
    """Whether sizes are those of one tensor, not of a list of tensors."""
    return not any(isinstance(size, list) for size in sizes)


def _sizes_of_tensor(sizes: Sizes) -> tuple[int, ...]:
    return tuple(sizes) if _is_flat(sizes) else ()


def _sizes_of_tensors(sizes: Sizes) -> list[tuple[int, ...]]:
    return [tuple(each) if isinstance(each, list) else () for each in sizes]


def _short(entry: Sizes) -> Sizes:
    return [] if len(entry) > _LONGEST_LIST else entry


def _type(argument: Argument) -> str:
    if isinstance(argument, TensorInput):
        return argument.type
    if isinstance(argument, TensorList) and argument:
        return "TensorList"
    if isinstance(argument, (bool, int, float, complex)):
        return "Scalar"
    return "ScalarList" if isinstance(argument, tuple) else ""


def printed_value(value: Argument) -> str:
    """A value as torch prints it in trace files; "" for what it does not print."""
    if isinstance(value, (bool, int)):
        return str(value)
    if isinstance(value, float):
        return _printed_float(value)
    if isinstance(value, complex):
        return f"{_printed_float(value.real)}{'' if value.imag < 0 else '+'}{_printed_float(value.imag)}j"
    if value.__class__ is tuple or isinstance(value, TensorList):
        items: tuple[Argument, ...] = value
        if len(items) <= _LONGEST_LIST and all(isinstance(item, (bool, int, float)) for item in items):
            return "[" + ", ".join(map(printed_value, items)) + "]"
    return ""


def _printed_float(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    if value == int(value) and abs(value) < 1e10:
        return "-0." if str(value)[0] == "-" and not value else f"{int(value)}."
    return f"{value:.17g}"


_BOOLS = {"True": True, "False": False}


def _parsed(text: str) -> Number | list[Value] | None:
    """The value of a printed number or list of numbers; None: it is neither."""
    if not (text.startswith("[") and text.endswith("]")):
        return _number(text)
    items = [_number(part.strip()) for part in text[1:-1].split(",") if part.strip()]
    return None if None in items else [*items]


def _number(text: str) -> Number | None:
    if text in _BOOLS:
        return _BOOLS[text]
    for kind in (int, float, complex):
        try:
            return kind(text)
        except ValueError:
            continue
    return None
