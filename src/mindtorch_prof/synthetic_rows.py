"""Synthetic events: a Trace in; the Trace with further events inside recorded ones, or without them, out.

A synthetic event is an op that torch shows inside another and that ran as part of one kernel here. It has no time of its own. The column
`Trace.synthetic` marks such events; who decides which there are is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .arrays import BoolArray, IntArray
from .inputs import Inputs
from .trace import FUNCTION_SCOPE, OP, TensorIds, Trace


class SyntheticOp(NamedTuple):
    """One event to insert."""

    name: str
    overload: str
    depth: int  # levels below the recorded event; 1: directly inside
    inputs: Inputs | None  # None: not known
    allocates: bool  # whether what the recorded event allocated is shown as this op's
    sequenced: bool  # whether it has the sequence number of the recorded event


def insert(
    trace: Trace,
    contents: Mapping[tuple[int, int], Sequence[SyntheticOp]],
    closed: BoolArray | None = None,
) -> Trace:
    """The trace with ops inserted after recorded events, in the given order (parents first).

    contents: by (name id, index of inputs) of the recorded events that contain any. closed: by row, the events that contain none all
    the same.
    """
    key_of_row, keys = _event_keys(trace, np.arange(len(trace)))
    by_key = [contents.get(key, ()) for key in keys]
    inserted = np.array([len(ops) for ops in by_key], np.int64)
    count = inserted[key_of_row] if len(trace) else np.zeros(0, np.int64)
    if closed is not None:
        count = np.where(closed, 0, count)
    if not count.any():
        return trace
    owner = np.repeat(np.arange(len(trace)), count + 1)
    first = np.cumsum(count + 1) - count - 1  # where each recorded event goes
    place = np.arange(len(owner)) - first[owner]  # 0: the recorded event; else 1 + a place in its contents
    new = place > 0
    # all contents one after the other, and which of them each new row is
    ops = [op for each in by_key for op in each]
    op = (np.cumsum(inserted) - inserted)[key_of_row][owner[new]] + place[new] - 1

    names = {key: number for number, key in enumerate(zip(trace.names, trace.overloads))}
    name = np.array([names.setdefault((each.name, each.overload), len(names)) for each in ops], np.int32)
    table = list(trace.input_table)
    numbers: dict[int, int] = {}  # by identity of the inputs: their index
    inputs = np.full(len(ops), -1, np.int32)
    for number, each in enumerate(ops):
        if each.inputs is not None:
            inputs[number] = numbers.setdefault(id(each.inputs), len(table))
            if inputs[number] == len(table):
                table.append(each.inputs)

    def column(recorded: IntArray, synthetic: IntArray | int) -> IntArray:
        values = recorded[owner]
        values[new] = synthetic
        return values

    depth = np.array([-each.depth if each.allocates else each.depth for each in ops], np.int8)
    sequenced = np.array([each.sequenced for each in ops], bool)
    sequence = np.where(sequenced[op], trace.sequence[owner[new]], -1)
    return replace(
        trace,
        names=tuple(text for text, _ in names),
        overloads=tuple(overload for _, overload in names),
        name=column(trace.name, name[op]),
        start_ns=trace.start_ns[owner],
        end_ns=column(trace.end_ns, trace.start_ns[owner[new]]),
        thread=trace.thread[owner],
        kind=column(trace.kind, OP),
        scope=column(trace.scope, FUNCTION_SCOPE),
        sequence=column(trace.sequence, sequence),
        forward_thread=column(trace.forward_thread, 0),
        inputs=column(trace.inputs, inputs[op]),
        flops=column(trace.flops, 0),
        stack=trace.stack[owner],
        input_table=tuple(table),
        tensor_ids=_with_first(trace.tensor_ids, lambda rows: column(rows, -1)),
        device=trace.device.moved(first),
        external=None if trace.external is None else column(trace.external, 0),
        extra=None if trace.extra is None else column(trace.extra, -1),
        execution_node=None if trace.execution_node is None else column(trace.execution_node, 0),
        synthetic=column(np.zeros(len(trace), np.int8), depth[op]),
    )


def as_recorded(trace: Trace) -> Trace:
    """The trace without its synthetic events. The others keep their numbers."""
    if not trace.n_synthetic:
        return trace
    assert trace.synthetic is not None
    rows = np.flatnonzero(trace.synthetic == 0)
    new_row = np.full(len(trace), -1, np.int64)
    new_row[rows] = np.arange(len(rows))
    external = trace.external
    if external is None:
        external = np.arange(1, len(trace) + 1) + trace.settings.numbered_after
    columns = (
        "name",
        "start_ns",
        "end_ns",
        "thread",
        "kind",
        "scope",
        "sequence",
        "forward_thread",
        "inputs",
    )
    return replace(
        trace,
        **{each: getattr(trace, each)[rows] for each in (*columns, "flops", "stack")},
        tensor_ids=_with_first(trace.tensor_ids, lambda first: first[rows]),
        device=trace.device.moved(new_row),
        external=external[rows],
        extra=None if trace.extra is None else trace.extra[rows],
        execution_node=None if trace.execution_node is None else trace.execution_node[rows],
        synthetic=None,
    )


def event_keys(trace: Trace, names: BoolArray) -> list[tuple[int, int]]:
    """The distinct (name id, index of inputs) of the events that have one of these names (a mask by name id)."""
    return _event_keys(trace, np.flatnonzero(names[trace.name]))[1] if len(trace) else []


def _event_keys(trace: Trace, rows: IntArray) -> tuple[IntArray, list[tuple[int, int]]]:
    """For each of these rows the number of its (name id, index of inputs), and the distinct ones."""
    span = len(trace.input_table) + 1
    distinct, number = np.unique(
        trace.name[rows].astype(np.int64) * span + trace.inputs[rows] + 1, return_inverse=True
    )
    return number.reshape(-1), [(key // span, key % span - 1) for key in distinct.tolist()]


def _with_first(ids: TensorIds, change: Callable[[IntArray], IntArray]) -> TensorIds:
    """Tensor ids whose column by event is changed."""
    return replace(ids, first=change(ids.first)) if len(ids.first) else ids
