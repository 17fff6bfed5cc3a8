"""Inputs by caller: columns of events and the recorder's descriptions in, the inputs that torch shows for calls by its own code out.

torch shows other inputs for an op that the user calls than for one that its own ops or derivatives call. In `x * 2` the 2 is shown as
a tensor, in a derivative that doubles as a number; a factory that the user calls has no dtype, the `empty` inside it may have one. The
enclosing event tells who called, so this is decided after the stop. Ops are known by name only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from mindtorch_prof.trace import NODE, OP
from mindtorch_prof.tree import thread_slices

from ... import _dtype
from ..._codegen import described
from .op_inputs import as_torch_passes, as_torch_shows, number_of

_OPTIONS = ("dtype", "layout", "device", "pin_memory")
_TORCH_NODES = re.compile(r"torch::autograd::\w+$|\w+Backward\d+$")

# callers that pass a number on as the tensor that was made of it
_PASSING_TENSORS = frozenset(
    "MulBackward0 DivBackward0 divide divide_ true_divide true_divide_ multiply multiply_ subtract subtract_".split()
)
# factories that pass their options on to `_ALLOCATING` ops as they got them
_PASSING_OPTIONS = frozenset(("zeros", "new_zeros", "new_ones", "new_full"))
# the same, but with the dtype filled in
_FILLING_DTYPE = frozenset(
    "ones full hann_window hamming_window blackman_window bartlett_window kaiser_window".split()
)
_ALLOCATING = ("empty", "empty_like", "new_empty", "empty_strided")
# ops that take the options of a tensor and pass them on
_OPTIONS_OF_TENSOR = frozenset(("new_empty", "new_empty_strided"))


def inputs_by_caller(
    names: tuple[str, ...],
    name: np.ndarray,
    kind: np.ndarray,
    thread: np.ndarray,
    end_ns: np.ndarray,
    inputs: np.ndarray,
    shown: Sequence[tuple[Any, tuple]],
    descriptions: Sequence[tuple],
) -> tuple[np.ndarray, list[tuple[Any, tuple]]]:
    """By event its inputs, as an index of the table, and the table, with what torch shows for calls by its own ops and nodes.

    `names` to `inputs` are columns of a trace. By index of `inputs`: `shown`, (op, arguments as torch shows them for calls by users), and
    `descriptions`, those of the recorder.
    """
    table = list(shown)
    depends = [_depends_on_caller(op, description) for (op, _), description in zip(table, descriptions)]
    depends_on_caller = np.array([*depends, False])
    if not depends_on_caller.any():
        return inputs, table
    rows = np.flatnonzero(depends_on_caller[inputs])
    is_torch_node = np.array([_TORCH_NODES.match(text) is not None for text in names])
    can_call = (kind == OP) | ((kind == NODE) & is_torch_node[name])
    rows, callers = _callers(thread, end_ns, rows, can_call)
    if not len(rows):
        return inputs, table
    inputs = inputs.copy()
    new_inputs: dict[tuple[int, int, int], int] = {}  # (inputs, the caller's inputs + 1, the caller's name)
    recorded, caller_name, count = inputs[rows].astype(np.int64), name[callers], len(names)
    for _ in range(4):  # the inputs of a caller may depend on its own caller
        above = inputs[callers]
        span = len(table) + 1
        keys, key_of_row = np.unique((recorded * span + above + 1) * count + caller_name, return_inverse=True)
        by_key = np.empty(len(keys), np.int32)
        for number, key in enumerate(keys.tolist()):
            key, called_from = divmod(key, count)
            index, outer = divmod(key, span)
            new_index = new_inputs.get((index, outer, called_from))
            if new_index is None:
                op = table[index][0]
                caller = names[called_from].removeprefix("aten::")
                values = _passed_by(
                    op, described(op, descriptions[index]), caller, table[outer - 1] if outer else None
                )
                new_index = index
                if values != table[index][1]:
                    new_index = len(table)
                    table.append((op, values))
                new_inputs[index, outer, called_from] = new_index
            by_key[number] = new_index
        by_row = by_key[key_of_row.reshape(-1)]
        if (by_row == inputs[rows]).all():
            break
        inputs[rows] = by_row
    return inputs, table


def _depends_on_caller(op: Any, description: tuple) -> bool:
    """Whether the shown inputs depend on the caller."""
    if op is None:
        return False
    if any(a.name == "pin_memory" for a in op.schema.arguments):
        return True
    return op.numbers and any(
        value.__class__ is tuple and value[:1] in _NUMBER_CLASSES for value in description[2:3]
    )


_NUMBER_CLASSES = ((int,), (float,), (bool,), (complex,))


def _callers(
    thread: np.ndarray, end: np.ndarray, rows: np.ndarray, can_call: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Those of `rows` whose parent is a row of `can_call`, and their parents."""
    inside = np.zeros(len(rows), bool)
    for first, last in thread_slices(thread):
        until = np.maximum.accumulate(np.where(can_call[first:last], end[first:last], 0))
        low, high = np.searchsorted(rows, (first + 1, last))
        inside[low:high] = until[rows[low:high] - 1 - first] >= end[rows[low:high]]
    rows = rows[inside]
    parent = rows - 1
    while len(too_short := np.flatnonzero(end[parent] < end[rows])):
        parent[too_short] -= 1
    called = can_call[parent]
    return rows[called], parent[called]


def _passed_by(op: Any, description: tuple, caller: str, outer: Any) -> tuple:
    """The arguments that `caller` passes to an op. `outer`: (op, arguments) of the caller, if it is an op."""
    if op.numbers:
        return (as_torch_shows if caller in _PASSING_TENSORS else as_torch_passes)(op, description)
    values = list(as_torch_passes(op, description))
    places = {
        argument.name: place for place, argument in enumerate(op.schema.arguments) if place < len(values)
    }
    above = {} if outer is None or outer[0] is None else _by_name(*outer)
    if "pin_memory" in places:
        _fill_options(op, values, places, caller, above)
    return tuple(values)


def _by_name(op: Any, description: tuple) -> dict[str, Any]:
    return {argument.name: value for argument, value in zip(op.schema.arguments, description)}


def _dtype_number(dtype: Any) -> int:
    return number_of(str(dtype))


def _fill_options(op: Any, values: list, places: dict[str, int], caller: str, above: dict[str, Any]) -> None:
    """Fill in the dtype, layout, device and pinning of an op that creates a tensor. `above`: the caller's arguments."""
    own = {name: values[places[name]] for name in _OPTIONS if name in places}
    like = values[0] if "self" in places else None
    dtype = own.get("dtype")
    if (
        dtype is None
        and op.name == "arange"
        and all(value.__class__ is int for value in values[: places["dtype"]])
    ):
        dtype = _dtype_number(_dtype.int64)
    elif dtype is None:
        dtype = _dtype_number(_dtype.BY_NUM[like[2]] if like.__class__ is tuple else _dtype.Default.dtype)
    layout: Any = 0
    pinned = None
    if (
        op.name in _ALLOCATING
        and "pin_memory" in above
        and (caller in _PASSING_OPTIONS or caller in _FILLING_DTYPE)
    ):
        layout, pinned = above.get("layout"), above.get("pin_memory")
        if caller in _PASSING_OPTIONS:
            dtype = above.get("dtype")
        _pass_format(values, places, above)
    elif caller in _OPTIONS_OF_TENSOR:
        pinned = above.get("pin_memory")
        _pass_format(values, places, above)
    elif caller == "to":
        dtype, layout = above.get("dtype"), above.get("layout")
    elif op.name.endswith("_like") or (caller, op.name) in _WITHOUT_OPTIONS:
        dtype, layout = own.get("dtype"), None
    elif caller == "cosine_similarity":  # a dtype and no layout
        layout = None
    for name, value in zip(_OPTIONS, (dtype, layout, None, pinned)):
        if name in places:
            values[places[name]] = value


# (caller, op): called without any option
_WITHOUT_OPTIONS = frozenset(
    (
        ("gather_backward", "new_zeros"),
        ("torch::autograd::CopySlices", "new_empty_strided"),
        ("feature_dropout", "new_empty"),
        ("feature_alpha_dropout", "new_empty"),
    )
)


def _pass_format(values: list, places: dict[str, int], above: dict[str, Any]) -> None:
    """Fill in the caller's memory format."""
    if (
        "memory_format" in places
        and above.get("memory_format") is not None
        and values[places["memory_format"]] is None
    ):
        values[places["memory_format"]] = above["memory_format"]
