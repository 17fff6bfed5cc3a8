"""The torch view: a Trace in; the Trace with the ops that torch shows inside those that ran as one kernel here, marked synthetic, out.

Which ops these are is declared beside each op (`_ops/_children.py`). A rule is evaluated once per distinct input.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mindtorch_prof.arrays import BoolArray
from mindtorch_prof.inputs import Inputs, TensorInput
from mindtorch_prof.load.flops import flops_of
from mindtorch_prof.synthetic_rows import SyntheticOp, event_keys, insert
from mindtorch_prof.trace import Trace
from mindtorch_prof.tree import thread_slices

from .. import _dispatch
from .._ops._children import UNKNOWN, Child, UnknownInputs

_DEEPEST = 16  # levels of children: more are rules that call each other in a circle


def torch_view(trace: Trace) -> Trace:
    """The trace with torch's inner ops. Nothing is inserted where a rule cannot tell: inputs that it has to look at were not recorded,
    or they are such that the op itself raised."""
    declaring = [_dispatch.WITH_CHILDREN.get(key) for key in zip(trace.names, trace.overloads)]
    if not any(declaring):
        return trace
    known = trace.settings.record_shapes or trace.settings.with_flops
    contents: dict[tuple[int, int], list[SyntheticOp]] = {}
    for name, index in event_keys(trace, np.array([op is not None for op in declaring])):
        op: Any = declaring[name]
        arguments = trace.input_table[index].arguments if known and index >= 0 else None
        try:
            contents[name, index] = synthetic_ops(op, arguments)
        except Exception:  # noqa: S112  (a rule must not stop the user's program)
            continue
    shown = insert(trace, contents, _closed(trace))
    if trace.settings.with_flops and shown.synthetic is not None:
        counted = flops_of(shown.name, list(shown.names), shown.inputs, shown.input_table)
        shown = replace(shown, flops=np.where(shown.synthetic == 0, shown.flops, counted))
    return shown


def synthetic_ops(op: Any, arguments: Sequence[Any] | None) -> list[SyntheticOp]:
    """The events inside an op with these arguments; None: they are not known. Raises what the op's rule raises."""
    return list(_rows(_children_of(op, arguments), 1, arguments is not None))


def _closed(trace: Trace) -> BoolArray:
    """By row, the ops that contain none of the ops they declare: those that a `__torch_dispatch__` handler answered, which contain the
    event of the handler and what it called, and `detach` where it is called below autograd: by a handler or a library's op."""
    closed = np.zeros(len(trace), bool)
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


_HANDLERS = ("PythonDispatchMode", "PythonSubclass")
_OF_TORCH = re.compile(
    r"(?!.*::)|aten::|autograd::|torch::"
)  # names of events that are not a library's own ops


def _children_of(op: Any, arguments: Sequence[Any] | None) -> Sequence[Child]:
    """The children that an op declares for its arguments; None: they are not known. Rules are about dense tensors."""
    if arguments is not None and any(isinstance(a, TensorInput) and a.is_sparse for a in arguments):
        return ()
    return op.children_rule(*([UNKNOWN] * op.n_arguments if arguments is None else arguments))


def _rows(children: Sequence[Child], depth: int, known: bool) -> Iterator[SyntheticOp]:
    """Children and all below them, parents first."""
    if depth > _DEEPEST:
        raise RecursionError("the children of an op contain the op itself")
    for child in children:
        name, _, overload = child.name.partition(".")
        op = _dispatch.OPS.get(child.name.partition("::")[2])
        arguments = _with_defaults(op, child.arguments) if known else None
        inside = child.children
        if inside is None:
            inside = _declared_inside(op, arguments)
        below = list(_rows(inside, depth + 1, known))
        allocates = child.allocates and not any(row.allocates for row in below)
        if not child.allocates:
            below = [row._replace(allocates=False) for row in below]
        if not child.sequenced:
            below = [row._replace(sequenced=False) for row in below]
        inputs = None if arguments is None else Inputs(arguments)
        yield SyntheticOp(name, overload, depth, inputs, allocates, child.sequenced)
        yield from below


def _declared_inside(op: Any, arguments: Sequence[Any] | None) -> Sequence[Child]:
    """The children of a child; none where its rule would have to look at inputs that are not known."""
    if op is None or op.children_rule is None:
        return ()
    try:
        return _children_of(op, arguments)
    except UnknownInputs:
        return ()


def _with_defaults(op: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a child, with the defaults of those that its rule leaves out."""
    if op is None:
        return arguments
    return arguments + tuple(
        [None if a.required else a.default for a in op.schema.arguments[len(arguments) :]]
    )
