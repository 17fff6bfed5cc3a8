"""Inputs of events: the recorder's descriptions in, shapes, strides, types and values as torch shows them out."""

from __future__ import annotations

from typing import Any

from .. import _dtype

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


def is_tensor(value: Any) -> bool:
    """Whether a description is a tensor's: (shape, strides in bytes, NumPy type number)."""
    return (
        value.__class__ is tuple
        and len(value) == 3
        and value[0].__class__ is tuple
        and value[1].__class__ is tuple
        and value[2].__class__ is int
    )


def _is_tensor_list(value: Any) -> bool:
    return value.__class__ is tuple and bool(value) and all(is_tensor(item) for item in value)


def shapes(description: tuple) -> list[Any]:
    """`input_shapes`: one list a tensor, [] for everything else."""
    return [list(value[0]) if is_tensor(value) else [] for value in description]


def structured_shapes(description: tuple) -> list[Any]:
    """Shapes with those inside lists of tensors kept."""
    return [
        list(value[0])
        if is_tensor(value)
        else [list(item[0]) for item in value]
        if _is_tensor_list(value)
        else []
        for value in description
    ]


def strides(description: tuple) -> list[Any]:
    """Strides in elements."""

    def one(value: tuple) -> list[int]:
        size = _dtype.BY_NUM[value[2]].itemsize
        return [s // size for s in value[1]]

    return [
        one(v) if is_tensor(v) else [one(i) for i in v] if _is_tensor_list(v) else [] for v in description
    ]


def types(description: tuple) -> list[str]:
    """Element types of tensors, and what kind of value the others are."""
    return [_type(value) for value in description]


def _type(value: Any) -> str:
    if is_tensor(value):
        return _TYPE_NAMES.get(_dtype.BY_NUM[value[2]]._name, "")
    if _is_tensor_list(value):
        return "TensorList"
    if isinstance(value, (bool, int, float, complex)):
        return "Scalar"
    if value.__class__ is tuple:
        return "ScalarList"
    return ""


def concrete(description: tuple) -> list[Any]:
    """Values of what is no tensor, as text; empty for tensors and None."""
    return ["" if v is None or is_tensor(v) or _is_tensor_list(v) else _text(v) for v in description]


def _text(value: Any) -> str:
    return "[" + ", ".join(map(str, value)) + "]" if value.__class__ is tuple else str(value)


def values(description: tuple) -> list[Any]:
    """Values of numbers and lists of numbers as they are; None for everything else."""
    return [
        None
        if is_tensor(v) or _is_tensor_list(v) or isinstance(v, str)
        else list(v)
        if v.__class__ is tuple
        else v
        for v in description
    ]
