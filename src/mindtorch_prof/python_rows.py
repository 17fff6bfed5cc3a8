"""Python calls as events: a Trace in, a Trace out whose rows are its events and its Python calls together, as torch's tables show them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .arrays import IntArray
from .call_paths import paths
from .frames import is_left_out
from .trace import BACKWARD_SCOPE, PYTHON, Trace
from .tree import behind_owners, nearest, recorded_owners, trace_nesting


def with_calls(trace: Trace) -> Trace:
    """The events and Python calls of a trace in one order of (thread, start, longest first)."""
    frames = trace.frames
    if not len(frames):
        return trace
    count, call_count = len(trace), len(frames)
    names: dict[tuple[str, str], int] = {}
    ids = np.array([names.setdefault(key, len(names)) for key in zip(trace.names, trace.overloads)], np.int32)
    call_ids = np.array([names.setdefault((text, ""), len(names)) for text in frames.names], np.int32)
    start = np.concatenate([trace.start_ns, frames.start_ns])
    end = np.concatenate([trace.end_ns, frames.end_ns])
    thread = np.concatenate([trace.thread, frames.thread])
    is_call = np.concatenate([np.zeros(count, bool), np.ones(call_count, bool)])
    order: IntArray = np.lexsort((~is_call, start - end, start, thread))
    if trace.synthetic is not None:
        order = behind_owners(
            order, np.concatenate([recorded_owners(trace.synthetic), np.arange(count, count + call_count)])
        )
    new_row = np.empty(count + call_count, np.int64)
    new_row[order] = np.arange(count + call_count)

    def merged(column: IntArray, of_calls: int) -> IntArray:
        return np.concatenate([column, np.full(call_count, of_calls, column.dtype)])[order]

    stack, stacks = merged(trace.stack, -1), trace.stacks
    if trace.settings.verbose:
        # the stack of a call is its callers'
        path, table = paths(frames)
        above = np.where(frames.parent >= 0, path[np.maximum(frames.parent, 0)], -1)
        above = np.where(above >= 0, above + len(stacks), -1).astype(np.int32)
        call_stacks = [tuple([call for call in calls if not is_left_out(call)]) for calls in table]
        stack, stacks = np.concatenate([trace.stack, above])[order], (*stacks, *call_stacks)
    return replace(
        trace,
        names=tuple(text for text, _ in names),
        overloads=tuple(overload for _, overload in names),
        name=np.concatenate([ids[trace.name] if count else ids[:0], call_ids[frames.name]])[order],
        start_ns=start[order],
        end_ns=end[order],
        thread=thread[order],
        kind=merged(trace.kind, PYTHON),
        scope=merged(trace.scope, 0),
        sequence=merged(trace.sequence, -1),
        forward_thread=merged(trace.forward_thread, 0),
        inputs=merged(trace.inputs, -1),
        flops=merged(trace.flops, 0),
        stack=stack,
        stacks=stacks,
        external=None if trace.external is None else merged(trace.external, 0),
        extra=None if trace.extra is None else merged(trace.extra, -1),
        execution_node=None if trace.execution_node is None else merged(trace.execution_node, 0),
        synthetic=None if trace.synthetic is None else merged(trace.synthetic, 0),
        device=trace.device.moved(new_row),
        settings=replace(trace.settings, python_functions=True),
    )


def with_forward_stacks(trace: Trace) -> Trace:
    """Events inside a node of the backward pass get the stack of the node's forward op, as in torch's events."""
    nodes = (trace.scope == BACKWARD_SCOPE) & (trace.kind != PYTHON)
    if not nodes.any() or not len(trace.stacks):
        return trace
    node = nearest(trace_nesting(trace).parent, nodes)
    inside = np.flatnonzero(node >= 0)
    forward = np.flatnonzero((node < 0) & (trace.sequence >= 0))
    forward = forward[np.argsort(trace.start_ns[forward], kind="stable")]
    first: dict[tuple[int, int], int] = {}  # by (sequence number, thread)
    for row, key in zip(
        forward.tolist(), zip(trace.sequence[forward].tolist(), trace.thread[forward].tolist())
    ):
        first.setdefault(key, row)
    enclosing = node[inside]
    forward_op = np.array(
        [
            first.get(key, -1)
            for key in zip(trace.sequence[enclosing].tolist(), trace.forward_thread[enclosing].tolist())
        ],
        np.int64,
    )
    stack = trace.stack.copy()
    stack[inside] = np.where(forward_op >= 0, trace.stack[np.maximum(forward_op, 0)], -1)
    return replace(trace, stack=stack)
