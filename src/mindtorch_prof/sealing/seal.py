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
from .row_columns import GatheredRows, joined
from .tensor_columns import tensor_columns
from .thread_lives import ThreadLives

_SEALING_BYTES = 128  # that sealing takes per event, at most, besides the logs


def seal(recording: RawRecording, *, keep_logs: bool = True) -> Trace:
    """The Trace of a recording. keep_logs: False where its rows are not needed any more: blocks are freed as they are read, so that the
    recording takes little more memory meanwhile than before or after. Where memory does not suffice, the rows stay in `Logs.gathered`."""
    logs = recording.logs
    if not keep_logs and not logs.threads("calls") and not logs.threads("memory"):
        n_events = logs.count("rows", len(recording.columns))
        np.empty(n_events * _SEALING_BYTES, np.uint8)  # raises MemoryError; nothing is written to it
    else:
        keep_logs = True  # what calls and memory will take is not known
    trace = _sealed(recording, _rows(recording, keep_logs))
    logs.gathered = None
    return trace


def _sealed(recording: RawRecording, rows: Rows) -> Trace:
    column, thread = dict(rows.column), rows.thread  # `rows` stay as they are until the trace is complete
    start, end = column["start"], column["end"]
    events = _events(recording, column.pop("key"))
    none = np.full(len(start), -1, np.int32)
    described_inputs = column.pop("inputs", none)
    inputs, input_table = _inputs(recording, events, end, thread, described_inputs)
    frames, stacks, stack, n_calls = _python_calls(recording, column, thread, events)
    memory = _memory(recording)
    lives = ThreadLives(recording.logs.joined("takeovers"))
    sequence = column.pop("sequence")
    sequence[~events.sequenced] = -1
    return Trace(
        names=events.names,
        overloads=events.overloads,
        name=events.name,
        start_ns=start,
        end_ns=end,
        thread=lives.numbers(thread, start),
        kind=events.kind,
        scope=events.scope,
        sequence=sequence,
        # by the time of the backward event: when the forward op ran is not recorded with it
        forward_thread=lives.numbers(events.forward_thread, start),
        inputs=inputs,
        flops=_flops(recording, described_inputs),
        stack=none if stack is None else stack,
        stacks=stacks,
        input_table=input_table,
        memory=replace(memory, thread=lives.numbers(memory.thread, memory.time_ns)),
        frames=replace(frames, thread=lives.numbers(frames.thread, frames.start_ns)),
        tensor_ids=_tensor_ids(recording, column, rows.tensors, memory.address, frames),
        health=recording.health,
        origin_ns=recording.origin_ns,
        window_ns=recording.window_ns,
        settings=replace(
            recording.settings,
            threads=_threads(recording, lives.native_ids(rows.native_ids)),
            event_cost_ns=_event_cost_ns(recording, len(start), events.n_ranges, n_calls),
        ),
    )


def note_callers(recording: RawRecording) -> None:
    """Let the rules for inputs see which ops called which, without building a Trace."""
    rows = _rows(recording, keep_logs=True)
    column = rows.column
    _inputs(recording, _events(recording, column["key"]), column["end"], rows.thread, column["inputs"])


class Rows(NamedTuple):
    """The rows of all threads by (thread, start), parents first, as columns."""

    column: dict[str, IntArray]
    thread: IntArray
    native_ids: dict[int, int]
    tensors: IntArray  # the log of tensors that the rows refer to


def _rows(recording: RawRecording, keep_logs: bool) -> Rows:
    logs, columns = recording.logs, recording.columns
    first = {recording.main_thread: 0}
    native_ids = dict(sorted(logs.natives.items(), key=lambda item: first.get(item[0], 1)))
    native_ids = native_ids or {recording.main_thread: 0}
    # one log of tensors for all threads, or one for each
    is_shared = logs.threads("tensors") == [OF_ALL]
    tensors, n_tensors = [logs.joined("tensors", OF_ALL)], 0
    gathered = logs.gathered or GatheredRows(columns, recording.n_ops)
    if not keep_logs:
        logs.gathered = gathered
    for thread in native_ids:
        part = gathered.read(thread, logs.blocks.get(("rows", thread), []), keep_logs)
        log = OF_ALL if is_shared else thread
        places = part.recorded.get("tensors")
        if places is not None and (not is_shared or logs.dropped):
            place = logs.tensor_places(log, places)
            places = np.where(place >= 0, place + n_tensors, -1)
        if "calls" in part.recorded and ("calls", thread) in logs.dropped:  # only where logs are kept
            part.recorded["calls"] = logs.call_places(thread, part.recorded["calls"])
        gathered.sort(part, places, n_tensors)
        if not is_shared:
            tensors.append(logs.joined("tensors", thread))
            n_tensors += len(tensors[-1])
    column, thread_of = gathered.join()
    return Rows(column, thread_of, native_ids, joined(tensors))


class EventColumns(NamedTuple):
    """The columns that depend only on an event's key, and their string table."""

    names: tuple[str, ...]
    overloads: tuple[str, ...]
    name: IntArray
    kind: IntArray
    scope: IntArray
    forward_thread: IntArray
    sequenced: np.ndarray  # whether a sequence number is shown
    n_ranges: int


def _events(recording: RawRecording, small_key: IntArray) -> EventColumns:
    """small_key: ops first, so that they can be counted instead of sorted."""
    ops = recording.n_ops
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
        ids.astype(np.int32)[small_key],
        kinds.astype(np.int8)[small_key],
        scopes.astype(np.int8)[small_key],
        forwards[small_key],
        sequenced[small_key],
        int(counts[ops:].sum()),
    )


# ---------------------------------------------------------------------------------------------------- inputs


def _inputs(
    recording: RawRecording, events: EventColumns, end: IntArray, thread: IntArray, inputs: IntArray
) -> tuple[IntArray, tuple[Inputs, ...]]:
    """By event its inputs, as an index of the table, and the table."""
    rules = recording.input_rules
    if rules is None:
        return inputs, tuple(recording.inputs)
    inputs = inputs_by_caller(events.names, events.name, events.kind, thread, end, inputs, rules)
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
    thread: IntArray,
    events: EventColumns,
) -> tuple[Frames, tuple[tuple[str, ...], ...], IntArray | None, int]:
    """The Python calls; the distinct stacks; by event its stack, None: stacks were not recorded; and how many calls were traced."""
    if recording.functions is None:
        return Frames.none(), (), None, 0
    logs = recording.logs
    calls = Calls(recording.functions, {each: logs.joined("calls", each) for each in logs.threads("calls")})
    frames = calls.frames(EventSpans(events.kind, thread, column["start"], column["end"]))
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


def _event_cost_ns(recording: RawRecording, n_events: int, n_ranges: int, n_calls: int) -> float | None:
    """What recording an event added to the program, on average; None: not known. n_calls: how many Python calls were traced."""
    cost = recording.cost
    if cost is None or not n_events:
        return None
    added = (n_events - n_ranges) * cost.op_ns + n_ranges * cost.range_ns + n_calls * cost.call_ns
    return float(added + cost.setup_ns) / n_events


def _threads(recording: RawRecording, native_ids: dict[int, int]) -> dict[int, tuple[int, str]]:
    """By number: the native id and the name of each thread that runs or was recorded. native_ids: of those that were, by number."""
    running = {native: (identity, name) for identity, (native, name) in recording.thread_names.items()}
    recorded = {
        thread: (native, running.pop(native)[1] if native in running else "")
        for thread, native in native_ids.items()
    }
    return recorded | {identity: (native, name) for native, (identity, name) in running.items()}
