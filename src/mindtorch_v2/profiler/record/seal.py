"""Sealing: a stopped Recorder in, a Trace out. What was interned while recording is looked up here, once.

The Trace holds plain data: names instead of ops, `Inputs` instead of the recorder's descriptions.
"""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import orjson

from mindtorch_prof import trace as columns
from mindtorch_prof.inputs import Inputs
from mindtorch_prof.settings import Settings
from mindtorch_prof.trace import Frames, Health, Memory, TensorIds, Trace

from ... import _dispatch
from ..._codegen import described
from ..._graph import storage_of
from ...nn.parameter import is_lazy
from .. import process_flags
from ..record_function import KeywordValues
from . import core
from .caller_inputs import inputs_by_caller
from .functions import Functions, prefixes, shortened
from .op_inputs import as_torch_shows, op_inputs, range_inputs
from .python_calls import Calls, EventSpans
from .recorder import RANGES, Recorder
from .thread_lives import ThreadLives

_sealed_events = 0  # in all recordings of the process, whose events are numbered consecutively


def number_more_events(count: int) -> None:
    """Leave out this many numbers before the events of the next recording."""
    global _sealed_events
    _sealed_events += count


def seal(recorder: Recorder) -> Trace:
    """The Trace of a recording."""
    global _sealed_events
    rows, thread, native_ids = _rows(recorder)
    column = {name: rows[:, place] for place, name in enumerate(recorder.wanted.columns)}
    events = _events(recorder, rows[:, 0])
    none = np.full(len(rows), -1, np.int32)
    described_inputs = column["inputs"].astype(np.int32) if "inputs" in column else none
    inputs, input_table = _inputs(recorder, events, rows, thread, described_inputs)
    frames, stacks, stack, n_calls = _python_calls(recorder, column, rows, thread, events)
    memory = _memory(recorder)
    lives = ThreadLives(recorder.core.takeovers())
    numbered_after, _sealed_events = _sealed_events, _sealed_events + len(rows)
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
        flops=_flops(recorder, described_inputs),
        stack=none if stack is None else stack,
        stacks=stacks,
        input_table=input_table,
        memory=replace(memory, thread=lives.numbers(memory.thread, memory.time_ns)),
        frames=replace(frames, thread=lives.numbers(frames.thread, frames.start_ns)),
        tensor_ids=_tensor_ids(recorder, column, memory.address, frames),
        health=_health(recorder),
        origin_ns=recorder.origin_ns,
        window_ns=(recorder.begun_ns, recorder.ended_ns),
        settings=_settings(
            recorder,
            numbered_after,
            _event_cost_ns(recorder, rows[:, 0], n_calls),
            lives.native_ids(native_ids),
        ),
    )


def _rows(recorder: Recorder) -> tuple[np.ndarray, np.ndarray, dict[int, int]]:
    """The rows of all threads by (thread, start), parents first; the thread of each; and the native ids of threads."""
    parts = recorder.core.rows()
    rows = np.concatenate([array for _, _, array in parts])
    thread = np.concatenate([np.full(len(array), identity, np.int64) for identity, _, array in parts])
    # the events of a thread are in the order of their ends: of two that start at the same time, the later one is the outer
    order = np.lexsort((-np.arange(len(rows)), rows[:, 1], thread))
    return rows[order], thread[order], {identity: native for identity, native, _ in parts}


class EventColumns(NamedTuple):
    """The columns that depend only on an event's key, and their string table."""

    names: tuple[str, ...]
    overloads: tuple[str, ...]
    name: np.ndarray
    kind: np.ndarray
    scope: np.ndarray
    forward_thread: np.ndarray
    sequenced: np.ndarray  # whether a sequence number is shown


def _events(recorder: Recorder, keys: np.ndarray) -> EventColumns:
    # keys as small numbers, ops first: they can be counted instead of sorted
    ops = len(_dispatch.BY_UID)
    small_key = np.where(keys < RANGES, keys, keys - (RANGES - ops))
    counts = np.bincount(small_key, minlength=ops)
    table: dict[tuple[str, str], int] = {}
    ids, kinds, scopes, forwards = (np.zeros(len(counts), np.int64) for _ in range(4))
    sequenced = np.ones(len(counts), bool)
    for number in np.flatnonzero(counts).tolist():
        if number < ops:
            op = _dispatch.BY_UID[number]
            name, kinds[number] = (op.qualified_name, op.overload), columns.OP
            sequenced[number] = op.sequenced
        else:
            text, scopes[number], forwards[number] = recorder.ranges[number - ops]
            name, kinds[number] = (text, ""), _range_kind(text, int(scopes[number]))
        ids[number] = table.setdefault(name, len(table))
    return EventColumns(
        tuple([text for text, _ in table]),
        tuple([overload for _, overload in table]),
        ids[small_key].astype(np.int32),
        kinds[small_key].astype(np.int8),
        scopes[small_key].astype(np.int8),
        forwards[small_key],
        sequenced[small_key],
    )


def _range_kind(text: str, scope: int) -> int:
    if scope == columns.USER_SCOPE:
        return columns.ANNOTATION
    if text.startswith("autograd::engine::"):
        return columns.ENGINE
    return columns.NODE if scope == columns.BACKWARD_SCOPE else columns.OP


# ---------------------------------------------------------------------------------------------------- inputs


def _inputs(
    recorder: Recorder, events: EventColumns, rows: np.ndarray, thread: np.ndarray, inputs: np.ndarray
) -> tuple[np.ndarray, tuple[Inputs, ...]]:
    """By event its inputs, as an index of the table, and the table."""
    descriptions = recorder.descriptions.copy()
    shown: list[tuple[Any, tuple]] = []
    for flat in descriptions:
        op = None if flat[0] < 0 else _dispatch.BY_UID[flat[0]]
        shown.append((None, flat[1:]) if op is None else (op, as_torch_shows(op, described(op, flat))))
    if recorder.config.record_shapes:
        inputs, shown = inputs_by_caller(
            events.names, events.name, events.kind, thread, rows[:, 2], inputs, shown, descriptions
        )
    table = [_range_inputs(values) if op is None else op_inputs(op, values) for op, values in shown]
    return inputs, tuple(table)


def _range_inputs(values: tuple) -> Inputs:
    """The inputs of a range. Its keyword values, if any, are the last of the recorded values."""
    if values and values[-1].__class__ is KeywordValues:
        return range_inputs(values[:-1], orjson.loads(values[-1].encode()))
    return range_inputs(values, None)


def _flops(recorder: Recorder, inputs: np.ndarray) -> np.ndarray:
    by_input = np.zeros(len(recorder.descriptions) + 1, np.int64)
    for index, value in recorder.flops.items():
        by_input[index] = value
    return by_input[inputs]


# ---------------------------------------------------------------------------------------------------- Python calls


def _python_calls(
    recorder: Recorder,
    column: dict[str, np.ndarray],
    rows: np.ndarray,
    thread: np.ndarray,
    events: EventColumns,
) -> tuple[Frames, tuple[tuple[str, ...], ...], np.ndarray | None, int]:
    """The Python calls; the distinct stacks; by event its stack, None: stacks were not recorded; and how many calls were traced."""
    if recorder.functions is None:
        return Frames.none(), (), None, 0
    calls = Calls(recorder.functions, recorder.core.call_logs())
    frames = calls.frames(EventSpans(events.kind, thread, rows[:, 1], rows[:, 2]))
    if recorder.collections is not None:
        frames = recorder.collections.merged_with(frames)
    if not recorder.config.with_stack:
        return frames, (), None, len(calls.rows.start)
    stacks, stack = calls.stacks(thread, column["calls"])
    return frames, stacks, stack, len(calls.rows.start)


_MODULE_OF_MODULES = __name__.partition(".")[0] + ".nn.modules.module"


def _module_call() -> tuple[str, int, str] | None:
    """File, line and name of `Module.__call__`; None if `nn` is not imported."""
    module = sys.modules.get(_MODULE_OF_MODULES)
    if module is None:
        return None
    code = module.Module.__call__.__code__
    return shortened(code.co_filename, prefixes()), code.co_firstlineno, code.co_name


# ---------------------------------------------------------------------------------------------------- memory


def _memory(recorder: Recorder) -> Memory:
    rows = recorder.core.memory_rows()
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    of_modules = () if recorder.functions is None else _memory_of_modules(recorder.functions)
    return Memory(rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3], np.cumsum(rows[:, 1]), of_modules)


def _memory_of_modules(functions: Functions) -> tuple[tuple[int, int, bool], ...]:
    """(address, bytes, whether it is a gradient) of the parameters and their gradients, of all modules that were called."""
    by_address: dict[int, tuple[int, int, bool]] = {}
    for module in functions.called_modules():
        for parameter in module.parameters():
            if is_lazy(parameter):
                continue
            for tensor, is_gradient in ((parameter, False), (parameter._grad, True)):
                if tensor is not None and getattr(tensor, "_array", None) is not None:
                    storage = storage_of(tensor)
                    address = core.allocation_id(storage._root) or id(storage)
                    by_address.setdefault(address, (address, tensor._array.nbytes, is_gradient))
    return tuple(by_address.values())


def _tensor_ids(
    recorder: Recorder, column: dict[str, np.ndarray], storage_ids: np.ndarray, frames: Frames
) -> TensorIds:
    if recorder.register is None:
        return TensorIds.none()
    first = column.get("tensors", np.empty(0, np.int64))
    return recorder.register.columns(first, recorder.core.tensor_ids(), storage_ids, frames)


# ---------------------------------------------------------------------------------------------------- health and settings


def _health(recorder: Recorder) -> Health:
    notes: tuple[str, ...] = ()
    if recorder.suspended_ns:
        notes = (f"{recorder.suspended_ns / 1e6:.3f}ms in which another profiler recorded",)
    return Health(unfinished=recorder.unfinished, notes=notes)


def _event_cost_ns(recorder: Recorder, keys: np.ndarray, n_calls: int) -> float | None:
    """What recording an event added to the program, on average; None: not known. n_calls: how many Python calls were traced."""
    cost, n_ranges = recorder.own_cost_in_program, int(np.count_nonzero(keys >= RANGES))
    if cost is None or not len(keys):
        return None
    added = (len(keys) - n_ranges) * cost.op_ns + n_ranges * cost.range_ns + n_calls * cost.call_ns
    return float(added + recorder.setup_ns) / len(keys)


def _settings(
    recorder: Recorder, numbered_after: int, event_cost_ns: float | None, native_ids: dict[int, int]
) -> Settings:
    config = recorder.config
    return Settings(
        record_shapes=config.record_shapes,
        profile_memory=config.profile_memory,
        with_stack=config.with_stack,
        with_flops=config.with_flops,
        with_modules=config.with_modules,
        all_threads=config.all_threads,
        verbose=config.verbose,
        concrete_inputs=process_flags.concrete_inputs,
        forward_backward_links=process_flags.forward_backward_links,
        event_metadata=config.event_metadata,
        overload_names=config.overloads,
        trace_id=recorder.trace_id or os.urandom(16).hex().upper(),
        pid=os.getpid(),
        thread=recorder.thread,
        threads=_threads(native_ids),
        allocated_before=recorder.allocated_before,
        numbered_after=numbered_after,
        module_call=None if recorder.functions is None else _module_call(),
        event_cost_ns=event_cost_ns,
        added_metadata=recorder.added_metadata,
    )


def _threads(native_ids: dict[int, int]) -> dict[int, tuple[int, str]]:
    """By number: the native id and the name of each thread that runs or was recorded. native_ids: of those that were, by number."""
    running = {t.native_id: t for t in threading.enumerate() if t.ident and t.native_id}
    recorded = {
        thread: (native, running.pop(native).name if native in running else "")
        for thread, native in native_ids.items()
    }
    return recorded | {t.ident: (native, t.name) for native, t in running.items() if t.ident is not None}
