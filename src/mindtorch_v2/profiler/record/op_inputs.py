"""Inputs of recorded ops: the recorder's descriptions in, the engine's `Inputs` out, with the shapes, types and values that torch shows.

A description is a tuple of plain values, one per argument; a tensor is (shape, strides in bytes, NumPy's type number).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mindtorch_prof.inputs import ELEMENT_TYPES, Argument, IndexList, Inputs, TensorInput, TensorList
from mindtorch_prof.torch_api.op_schemas import WITH_NUMBER

from ... import _dtype
from ..._dtype import LEFT_OUT

# by NumPy's type number: the name that a trace shows
_ELEMENT_NAMES = {element.dtype: name for name, element in ELEMENT_TYPES.items()}
ELEMENT_NAMES = {number: _ELEMENT_NAMES[dtype._name] for number, dtype in _dtype.BY_NUM.items()}


# torch's numbers of dtypes, layouts and memory formats, which a trace shows instead of their names
_NUMBERS = {
    **{f"torch.{element.dtype}": element.number for element in ELEMENT_TYPES.values()},
    "torch.strided": 0,
    "torch.sparse_coo": 1,
    "torch.sparse_csr": 2,
    "torch.contiguous_format": 0,
    "torch.preserve_format": 1,
    "torch.channels_last": 2,
    "torch.channels_last_3d": 3,
}


def as_torch_shows(op: Any, description: tuple) -> tuple:
    """Arguments of a call by the user, as torch's dispatcher gets them: a number for a tensor argument becomes a tensor without
    dimensions, an int for a list argument becomes a list, dtypes and layouts are numbers."""
    values = [_from_user(op.name, a, value) for a, value in zip(op.schema.arguments, description)]
    if op.full_name == "to.dtype_layout" and is_tensor(values[0]):  # torch fills in the tensor's own dtype
        if values[1] is None:
            values[1] = number_of(str(_dtype.BY_NUM[values[0][2]]))
        values[2], values[4] = 0, None
    if op.overload == "correction" and values[2].__class__ is bool:  # the old overloads, with `unbiased`
        return (values[0], values[2]) if values[1] is None else tuple(values)
    return tuple(values)


def as_torch_passes(op: Any, description: tuple) -> tuple:
    """Arguments of a call by torch's own code: numbers stay numbers, and defaults are not filled in."""
    return tuple([_normalised(a, value) for a, value in zip(op.schema.arguments, description)])


def _from_user(name: str, argument: Any, value: Any) -> Any:
    if value is None:
        return False if argument.name == "pin_memory" and name != "_to_copy" else None
    if value.__class__ in _NUMBER_TYPES and argument.kind == "Tensor" and name not in WITH_NUMBER:
        return ((), (), _NUMBER_TYPES[value.__class__])
    return _normalised(argument, value)


def _normalised(argument: Any, value: Any) -> Any:
    if value.__class__ is int and argument.type in ("float", "float?"):
        return float(value)
    if value.__class__ is int and argument.kind == "ints" and argument.name not in _ONE_DIM:
        return (value,) * max(argument.length, 1)
    if value.__class__ is str and not argument.type.startswith("str"):
        return None if value == LEFT_OUT else number_of(value)
    if argument.kind == "Tensor?[]" and value.__class__ is tuple and None in value:
        return None  # torch does not show such a list
    return value


# arguments of `movedim`, which has an overload of its own for one dimension
_ONE_DIM = ("source", "destination")


def number_of(name: str) -> Any:
    """torch's number of a dtype, layout or memory format; any other name is returned unchanged."""
    return _NUMBERS.get(name, name)


# NumPy's type number of the tensor that torch makes of a Python number
_NUMBER_TYPES = {
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


# ---------------------------------------------------------------------------------------------------- as the trace stores them


def op_inputs(op: Any, description: tuple) -> Inputs:
    """The inputs of an op."""
    arguments: list[Argument] = []
    slots: list[int] = []
    for declared, value in zip(op.schema.arguments, description):
        kind = declared.kind
        if kind in _TENSOR_LISTS and value.__class__ is tuple:
            list_type = TensorList if kind == "Tensor[]" else IndexList
            all_tensors = not value or is_tensor_list(value)
            arguments.append(list_type(map(tensor_input, value)) if all_tensors else _without_tensors(value))
            slots.append(len(value))
        else:
            arguments.append(_argument(value))
            slots.append(1 if kind in _TENSORS else 0)
    return Inputs(arguments, slots)


def range_inputs(description: tuple, keywords: dict[str, Any] | None) -> Inputs:
    """The inputs of a range: the arguments of an annotation or of a node."""
    slots = [
        1 if is_tensor(value) else sum(map(is_tensor, value)) if value.__class__ is tuple else 0
        for value in description
    ]
    return Inputs(map(_argument, description), slots, keywords)


_TENSORS = frozenset(("Tensor", "Tensor?"))
_TENSOR_LISTS = frozenset(("Tensor[]", "Tensor?[]"))


def _argument(value: Any) -> Argument:
    if is_tensor(value):
        return tensor_input(value)
    if is_tensor_list(value):
        return TensorList(map(tensor_input, value))
    return _without_tensors(value) if value.__class__ is tuple else value


def _without_tensors(values: tuple) -> tuple:
    """A list of mixed types: torch does not show the tensors in it."""
    return tuple([None if is_tensor(value) else value for value in values])


def tensor_input(description: tuple) -> TensorInput:
    """A tensor from (shape, strides in bytes, NumPy's type number)."""
    shape, strides, number = description
    if len(strides) == len(shape):
        strides = _element_strides(shape, strides, _dtype.BY_NUM[number].itemsize)
    return TensorInput(shape, strides, ELEMENT_NAMES[number])


def _element_strides(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides in elements. Those of empty tensors and of new dimensions, where NumPy's differ, are torch's."""
    steps = [stride // itemsize for stride in strides]
    step = 1
    if 0 in shape:
        for d in range(len(shape) - 1, -1, -1):
            steps[d] = step
            step *= max(shape[d], 1)
    elif 1 in shape and 0 in steps:  # a new dimension has the stride 0 in NumPy
        for d in range(len(steps) - 1, -1, -1):
            if shape[d] == 1 and steps[d] == 0:
                steps[d] = step
            step = max(shape[d], 1) * steps[d]
    return tuple(steps)
