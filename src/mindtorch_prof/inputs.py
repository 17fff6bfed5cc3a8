"""Inputs of events: the recorder's descriptions in, shapes, strides, types and values as torch shows them out."""

from __future__ import annotations

from typing import Any

import numpy as np

from mindtorch_v2 import _dtype
from mindtorch_v2._dtype import LEFT_OUT

from .file_inputs import FileInputs

_TYPE_NAMES = {
    "float32": "float",
    "float64": "double",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "int64": "long int",
    "int32": "int",
    "int16": "short int",
    "int8": "signed char",
    "uint8": "unsigned char",
    "bool": "bool",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long",
}


# torch's numbers of dtypes, layouts and memory formats, which a trace shows instead of their names
_NUMBERS = {
    **{
        f"torch.{name}": number
        for number, name in enumerate("uint8 int8 int16 int32 int64 float16 float32 float64".split())
    },
    "torch.complex64": 9,
    "torch.complex128": 10,
    "torch.bool": 11,
    "torch.bfloat16": 15,
    "torch.uint16": 27,
    "torch.uint32": 28,
    "torch.uint64": 29,
    "torch.strided": 0,
    "torch.sparse_coo": 1,
    "torch.sparse_csr": 2,
    "torch.contiguous_format": 0,
    "torch.preserve_format": 1,
    "torch.channels_last": 2,
}


def as_torch_shows(op: Any, description: tuple) -> tuple:
    """Arguments as torch's dispatcher sees them: a number in a tensor's place is a tensor without dimensions, an int in the
    place of a list is a list, dtypes and layouts are numbers."""
    seen = [_seen(op.name, a, value) for a, value in zip(op.schema.arguments, description)]
    if op.full_name == "to.dtype_layout" and is_tensor(seen[0]):  # asks for all it has
        if seen[1] is None:
            seen[1] = number_of(str(_dtype.BY_NUM[seen[0][2]]))
        seen[2], seen[4] = 0, None
    if op.overload == "correction" and seen[2].__class__ is bool:  # the old overloads, with `unbiased`
        return (seen[0], seen[2]) if seen[1] is None else tuple(seen)
    return tuple(seen)


def seen_inside(op: Any, description: tuple) -> tuple:
    """Arguments as torch's own code gives them to an op: numbers are numbers, and what is left out is left out."""
    return tuple([_meant(a, value) for a, value in zip(op.schema.arguments, description)])


# ops that torch calls with a number itself, where others get it as a tensor
WITH_NUMBER = frozenset(
    name + end
    for name in (
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "xlogy",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "bitwise_left_shift",
        "bitwise_right_shift",
    )
    for end in ("", "_")
)


def _seen(name: str, argument: Any, value: Any) -> Any:
    if value is None:
        return False if argument.name == "pin_memory" and name != "_to_copy" else None
    if value.__class__ in _WRAPPED and argument.kind == "Tensor" and name not in WITH_NUMBER:
        return ((), (), _WRAPPED[value.__class__])
    return _meant(argument, value)


def _meant(argument: Any, value: Any) -> Any:
    if value.__class__ is int and argument.type in ("float", "float?"):
        return float(value)
    if value.__class__ is int and argument.kind == "ints" and argument.name not in _ONE_DIM:
        return (value,) * max(argument.length, 1)
    if value.__class__ is str and not argument.type.startswith("str"):
        return None if value == LEFT_OUT else number_of(value)
    if argument.kind == "Tensor?[]" and value.__class__ is tuple and None in value:
        return None  # torch says nothing of such a list
    return value


# where one dimension has an overload of its own: movedim
_ONE_DIM = ("source", "destination")


def number_of(name: str) -> Any:
    """torch's number of a dtype, layout or memory format; what is none of these stays as it is."""
    return _NUMBERS.get(name, name)


_WRAPPED = {
    kind: np.dtype(name).num
    for kind, name in ((bool, "bool"), (int, "int64"), (float, "float64"), (complex, "complex128"))
}


def is_tensor(value: Any) -> bool:
    """Whether a description is a tensor's: (shape, strides in bytes, NumPy type number)."""
    return (
        value.__class__ is tuple
        and len(value) == 3
        and value[0].__class__ is tuple
        and value[1].__class__ is tuple
        and value[2].__class__ is int
    )


def is_tensor_list(value: Any) -> bool:
    """Whether a description is that of a list of tensors."""
    return value.__class__ is tuple and bool(value) and all(is_tensor(item) for item in value)


def shapes(description: tuple | FileInputs) -> list[Any]:
    """`input_shapes`: one list a tensor, [] for everything else."""
    if isinstance(description, FileInputs):
        return list(description.shapes)
    return [list(value[0]) if is_tensor(value) else [] for value in description]


def structured_shapes(description: tuple | FileInputs) -> list[Any]:
    """Shapes with those inside lists of tensors kept."""
    if isinstance(description, FileInputs):
        return list(description.dims)
    return [
        list(value[0])
        if is_tensor(value)
        else [list(item[0]) for item in value]
        if is_tensor_list(value)
        else []
        for value in description
    ]


def strides(description: tuple | FileInputs) -> list[Any]:
    """Strides in elements."""
    if isinstance(description, FileInputs):
        return list(description.strides)

    def one(value: tuple) -> list[int]:
        size = _dtype.BY_NUM[value[2]].itemsize
        made = [s // size for s in value[1]]
        if 0 in value[0]:
            step, made = 1, []
            for n in reversed(value[0]):
                made.insert(0, step)
                step *= max(n, 1)
        elif 1 in value[0] and 0 in made:  # NumPy gives a new dimension no stride
            step = 1
            for d in range(len(made) - 1, -1, -1):
                if value[0][d] == 1 and made[d] == 0:
                    made[d] = step
                step = max(value[0][d], 1) * made[d]
        return made

    return [one(v) if is_tensor(v) else [one(i) for i in v] if is_tensor_list(v) else [] for v in description]


def types(description: tuple | FileInputs) -> list[str]:
    """Element types of tensors, and what kind of value the others are."""
    if isinstance(description, FileInputs):
        return list(description.types)
    return [_type(value) for value in description]


def _type(value: Any) -> str:
    if is_tensor(value):
        return _TYPE_NAMES.get(_dtype.BY_NUM[value[2]]._name, "")
    if is_tensor_list(value):
        return "TensorList"
    if isinstance(value, (bool, int, float, complex)):
        return "Scalar"
    if value.__class__ is tuple:
        return "ScalarList"
    return ""


def concrete(description: tuple | FileInputs) -> list[Any]:
    """Values of what is no tensor, as text; empty for tensors and None."""
    if isinstance(description, FileInputs):
        return list(description.concrete)
    return ["" if v is None or is_tensor(v) or is_tensor_list(v) else _text(v) for v in description]


def _text(value: Any) -> str:
    return "[" + ", ".join(map(str, value)) + "]" if value.__class__ is tuple else str(value)


def values(description: tuple | FileInputs) -> list[Any]:
    """Values of numbers and lists of numbers as they are; None for everything else."""
    if isinstance(description, FileInputs):
        return list(description.values)
    return [
        None
        if is_tensor(v) or is_tensor_list(v) or isinstance(v, str)
        else list(v)
        if v.__class__ is tuple
        else v
        for v in description
    ]
