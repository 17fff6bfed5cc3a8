"""Sealing: a RawRecording in, a Trace out. What was interned while recording is looked up here, once."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..arrays import IntArray
from ..inputs import Inputs
from ..trace import Frames, Memory, TensorIds, Trace
from .garbage_collections import with_collections
from .inputs_by_caller import inputs_by_caller
from .logs import OF_ALL
from .python_calls import Calls, EventSpans
from .raw import RANGES, VARIANTS, RawRecording
from .tensor_columns import tensor_columns
from .thread_lives import ThreadLives


def seal(recording: RawRecording) -> Trace:
    """The Trace of a recording."""
    rows, thread, native_ids, tensors = _rows(recording)
    column = {name: rows[:, place] for place, name in enumerate(recording.columns)}
    events = _events(recording, rows[:, 0])
    none = np.full(len(rows), -1, np.int32)
    described_inputs = column["inputs"].astype(np.int32) if "inputs" in column else none
    inputs, input_table = _inputs(recording, events, rows, thread, described_inputs)
    frames, stacks, stack, n_calls = _python_calls(recording, column, rows, thread, events)
    memory = _memory(recording)
    lives = ThreadLives(recording.logs.joined("takeovers"))
    return Trace(
        names=events.names,
        overloads=events.overloads,
        name=events.name,
        start_ns=rows[:, 1],
        end_ns=rows[:, 2],
        thread=lives.numbers(thread, rows[:, 1]),
        kind=events.kind,
        scope=events.scope,
        sequence=np.where(events.sequenced, rows[:, 3], -1),
        # by the time of the backward event: when the forward op ran is not recorded with it
        forward_thread=lives.numbers(events.forward_thread, rows[:, 1]),
        inputs=inputs,
        flops=_flops(recording, described_inputs),
        stack=none if stack is None else stack,
        stacks=stacks,
        input_table=input_table,
        memory=replace(memory, thread=lives.numbers(memory.thread, memory.time_ns)),
        frames=replace(frames, thread=lives.numbers(frames.thread, frames.start_ns)),
        tensor_ids=_tensor_ids(recording, column, tensors, memory.address, frames),
        health=recording.health,
        origin_ns=recording.origin_ns,
        window_ns=recording.window_ns,
        settings=replace(
            recording.settings,
            threads=_threads(recording, lives.native_ids(native_ids)),
            event_cost_ns=_event_cost_ns(recording, rows[:, 0], n_calls),
        ),
    )


def _rows(recording: RawRecording) -> tuple[IntArray, IntArray, dict[int, int], IntArray]:
    """The rows of all threads by (thread, start), parents first; the thread of each; the native ids of threads; and the log of tensors
    that the rows refer to."""
    logs, columns = recording.logs, recording.columns
    first = {recording.main_thread: 0}
    native_ids = dict(sorted(logs.natives.items(), key=lambda item: first.get(item[0], 1)))
    # one log of tensors for all threads, or one for each
    is_shared = logs.threads("tensors") == [OF_ALL]
    tensors, n_tensors = [logs.joined("tensors", OF_ALL)], 0
    parts: list[tuple[int, IntArray]] = []
    for thread in native_ids:
        part = logs.joined("rows", thread, len(columns))
        log = OF_ALL if is_shared else thread
        if "tensors" in columns and len(part) and (not is_shared or logs.dropped):
            part = part.copy()
            place = logs.tensor_places(log, part[:, -1])
            part[:, -1] = np.where(place >= 0, place + n_tensors, -1)
        if "calls" in columns and ("calls", thread) in logs.dropped and len(part):
            part = part.copy()
            at = columns.index("calls")
            part[:, at] = logs.call_places(thread, part[:, at])
        if not is_shared:
            tensors.append(logs.joined("tensors", thread))
            n_tensors += len(tensors[-1])
        parts.append((thread, part))
    rows = np.concatenate([array for _, array in parts])
    thread_of = np.concatenate([np.full(len(array), identity, np.int64) for identity, array in parts])
    # the events of a thread are in the order of their ends: of two that start at the same time, the later one is the outer
    order = np.lexsort((-np.arange(len(rows)), rows[:, 1], thread_of))
    return rows[order], thread_of[order], native_ids, np.concatenate(tensors)


class EventColumns(NamedTuple):
    """The columns that depend only on an event's key, and their string table."""

    names: tuple[str, ...]
    overloads: tuple[str, ...]
    name: IntArray
    kind: IntArray
    scope: IntArray
    forward_thread: IntArray
    sequenced: np.ndarray  # whether a sequence number is shown


def _events(recording: RawRecording, keys: IntArray) -> EventColumns:
    # keys as small numbers, ops first: they can be counted instead of sorted
    ops = recording.n_ops
    small_key = np.where(keys < RANGES, keys, keys - (RANGES - ops))
    counts = np.bincount(small_key, minlength=ops)
    table: dict[tuple[str, str], int] = {}
    ids, kinds, scopes, forwards = (np.zeros(len(counts), np.int64) for _ in range(4))
    sequenced = np.ones(len(counts), bool)
    for number in np.flatnonzero(counts).tolist():
        entry = recording.key_entry(number if number < ops else number - ops + RANGES)
        kinds[number], scopes[number], forwards[number] = entry.kind, entry.scope, entry.forward_thread
        sequenced[number] = entry.sequenced
        ids[number] = table.setdefault((entry.name, entry.overload), len(table))
    return EventColumns(
        tuple([text for text, _ in table]),
        tuple([overload for _, overload in table]),
        ids[small_key].astype(np.int32),
        kinds[small_key].astype(np.int8),
        scopes[small_key].astype(np.int8),
        forwards[small_key],
        sequenced[small_key],
    )


# ---------------------------------------------------------------------------------------------------- inputs


def _inputs(
    recording: RawRecording, events: EventColumns, rows: IntArray, thread: IntArray, inputs: IntArray
) -> tuple[IntArray, tuple[Inputs, ...]]:
    """By event its inputs, as an index of the table, and the table."""
    rules = recording.input_rules
    if rules is None:
        return inputs, tuple(recording.inputs)
    inputs = inputs_by_caller(events.names, events.name, events.kind, thread, rows[:, 2], inputs, rules)
    base = len(recording.inputs)
    inputs = np.where(inputs >= VARIANTS, inputs - np.int32(VARIANTS - base), inputs)
    return inputs, (*recording.inputs, *rules.variants())


def _flops(recording: RawRecording, inputs: IntArray) -> IntArray:
    by_input = np.zeros(len(recording.inputs) + 1, np.int64)
    for index, value in recording.flops.items():
        by_input[index] = value
    return by_input[inputs]


# ---------------------------------------------------------------------------------------------------- Python calls


def _python_calls(
    recording: RawRecording,
    column: dict[str, IntArray],
    rows: IntArray,
    thread: IntArray,
    events: EventColumns,
) -> tuple[Frames, tuple[tuple[str, ...], ...], IntArray | None, int]:
    """The Python calls; the distinct stacks; by event its stack, None: stacks were not recorded; and how many calls were traced."""
    if recording.functions is None:
        return Frames.none(), (), None, 0
    logs = recording.logs
    calls = Calls(recording.functions, {each: logs.joined("calls", each) for each in logs.threads("calls")})
    frames = calls.frames(EventSpans(events.kind, thread, rows[:, 1], rows[:, 2]))
    frames = with_collections(frames, logs.joined("collections"))
    if not recording.settings.with_stack:
        return frames, (), None, len(calls.rows.start)
    stacks, stack = calls.stacks(thread, column["calls"])
    return frames, stacks, stack, len(calls.rows.start)


# ---------------------------------------------------------------------------------------------------- memory


def _memory(recording: RawRecording) -> Memory:
    rows = recording.logs.joined("memory")
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    return Memory(rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3], np.cumsum(rows[:, 1]), recording.of_modules)


def _tensor_ids(
    recording: RawRecording,
    column: dict[str, IntArray],
    tensors: IntArray,
    storage_ids: IntArray,
    frames: Frames,
) -> TensorIds:
    if recording.tensor_tables is None:
        return TensorIds.none()
    first = column.get("tensors", np.empty(0, np.int64))
    return tensor_columns(recording.tensor_tables, recording.logs, first, tensors, storage_ids, frames)


# ---------------------------------------------------------------------------------------------------- settings


def _event_cost_ns(recording: RawRecording, keys: IntArray, n_calls: int) -> float | None:
    """What recording an event added to the program, on average; None: not known. n_calls: how many Python calls were traced."""
    cost, n_ranges = recording.cost, int(np.count_nonzero(keys >= RANGES))
    if cost is None or not len(keys):
        return None
    added = (len(keys) - n_ranges) * cost.op_ns + n_ranges * cost.range_ns + n_calls * cost.call_ns
    return float(added + cost.setup_ns) / len(keys)


def _threads(recording: RawRecording, native_ids: dict[int, int]) -> dict[int, tuple[int, str]]:
    """By number: the native id and the name of each thread that runs or was recorded. native_ids: of those that were, by number."""
    running = {native: (identity, name) for identity, (native, name) in recording.thread_names.items()}
    recorded = {
        thread: (native, running.pop(native)[1] if native in running else "")
        for thread, native in native_ids.items()
    }
    return recorded | {identity: (native, name) for native, (identity, name) in running.items()}
