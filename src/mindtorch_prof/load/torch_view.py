"""The torch view: a Trace and the ops that torch shows inside its events in, the Trace with those ops, marked synthetic, out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..arrays import BoolArray
from ..synthetic_rows import SyntheticOp, insert
from ..trace import Trace
from ..tree import thread_slices
from .flops import flops_of

_HANDLERS = ("PythonDispatchMode", "PythonSubclass")
_OF_TORCH = re.compile(
    r"(?!.*::)|aten::|autograd::|torch::"
)  # names of events that are not a library's own ops


def with_children(trace: Trace, contents: Mapping[tuple[int, int], Sequence[SyntheticOp]]) -> Trace:
    """The trace with torch's inner ops. contents: by (name id, index of inputs) of the events that contain any."""
    shown = insert(trace, contents, _closed(trace))
    if trace.settings.with_flops and shown.synthetic is not None:
        counted = flops_of(shown.name, list(shown.names), shown.inputs, shown.input_table)
        shown = replace(shown, flops=np.where(shown.synthetic == 0, shown.flops, counted))
    return shown


def _closed(trace: Trace) -> BoolArray:
    """By row, the ops that contain none of the ops they declare: those that a `__torch_dispatch__` handler answered, which contain the
    event of the handler and what it called, and `detach` where it is called below autograd: by a handler or a library's op."""
    closed = np.zeros(len(trace), bool)
    if not len(trace):
        return closed
    is_handler = np.array([name in _HANDLERS for name in trace.names])
    is_caller = is_handler | np.array([not _OF_TORCH.match(name) for name in trace.names])
    if not is_caller[trace.name].any():
        return closed
    is_detach = np.array([name in ("detach", "aten::detach", "aten::detach_") for name in trace.names])
    rows = np.flatnonzero(is_handler[trace.name]) - 1
    closed[rows] = True
    closed[rows[is_detach[trace.name[rows]]] - 1] = True  # torch shows a second `detach` around the handler
    for first, last in thread_slices(trace.thread):
        ends = np.where(is_caller[trace.name[first:last]], trace.end_ns[first:last], 0)
        below = np.maximum.accumulate(ends)[:-1] >= trace.end_ns[first + 1 : last]
        closed[first + 1 : last] |= below & is_detach[trace.name[first + 1 : last]]
    return closed
