"""Inputs by caller: columns of events in, by event the number of the inputs that torch shows out.

torch shows other inputs for an op that the user calls than for one that its own ops or derivatives call. The enclosing event tells who
called, so this is decided after the stop. Which inputs these are is not known here (see `raw.InputRules`).
"""

from __future__ import annotations

import re

import numpy as np

from ..arrays import IntArray
from ..trace import NODE, OP
from ..tree import thread_slices
from .raw import InputRules

_TORCH_NODES = re.compile(r"torch::autograd::\w+$|\w+Backward\d+$")


def inputs_by_caller(
    names: tuple[str, ...],
    name: IntArray,
    kind: IntArray,
    thread: IntArray,
    end_ns: IntArray,
    inputs: IntArray,
    rules: InputRules,
) -> IntArray:
    """By event the number of its inputs. `names` to `inputs` are columns of a trace."""
    depends_on_caller = np.array([*rules.depends_on_caller(), False])
    if not depends_on_caller.any():
        return inputs
    rows: IntArray = np.flatnonzero(depends_on_caller[inputs])
    is_torch_node = np.array([_TORCH_NODES.match(text) is not None for text in names])
    can_call = (kind == OP) | ((kind == NODE) & is_torch_node[name])
    rows, callers = _callers(thread, end_ns, rows, can_call)
    if not len(rows):
        return inputs
    inputs = inputs.copy()
    recorded, caller_name, count = inputs[rows].astype(np.int64), name[callers], len(names)
    for _ in range(4):  # the inputs of a caller may depend on its own caller
        above = inputs[callers].astype(np.int64)
        # both numbers of inputs made dense, so that a triple fits into one integer
        outer, place_of_outer = np.unique(above, return_inverse=True)
        keys, key_of_row = np.unique(
            (recorded * len(outer) + place_of_outer.reshape(-1)) * count + caller_name, return_inverse=True
        )
        by_key = np.empty(len(keys), np.int32)
        for number, key in enumerate(keys.tolist()):
            key, called_from = divmod(key, count)
            index, place = divmod(key, len(outer))
            by_key[number] = rules.shown_for(index, names[called_from], int(outer[place]))
        by_row = by_key[key_of_row.reshape(-1)]
        if (by_row == inputs[rows]).all():
            break
        inputs[rows] = by_row
    return inputs


def _callers(
    thread: IntArray, end: IntArray, rows: IntArray, can_call: np.ndarray
) -> tuple[IntArray, IntArray]:
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
