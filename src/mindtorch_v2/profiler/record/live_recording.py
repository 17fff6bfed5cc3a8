"""A Recorder in, its RawRecording out: the tables of the live process (ops, descriptions of inputs, functions) as plain data, for `seal`."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import replace
from typing import Any

from mindtorch_prof import trace as columns
from mindtorch_prof.sealing.logs import Logs
from mindtorch_prof.sealing.raw import RANGES, KeyEntry, RawRecording, RecordingCost
from mindtorch_prof.settings import FrozenDict, Settings
from mindtorch_prof.trace import Health

from ... import _dispatch
from ..._graph import storage_of
from ...nn.parameter import is_lazy
from .. import process_flags
from . import core
from .functions import Functions, prefixes, shortened
from .recorder import OwnThread, Recorder

_numbered_events = 0  # in all recordings of the process, whose events are numbered consecutively


def number_events(count: int) -> int:
    """Give the events of a recording their numbers; how many were given before."""
    global _numbered_events
    before, _numbered_events = _numbered_events, _numbered_events + count
    return before


def live_recording(recorder: Recorder, logs: Logs, window_ns: tuple[int, int]) -> RawRecording:
    """What was recorded, in these logs, from the first to the second time."""
    functions, register = recorder.functions, recorder.register
    return replace(
        rows_recording(recorder, logs),
        functions=functions,
        tensor_tables=None if register is None else register.tables(),
        window_ns=window_ns,
        health=health_of(recorder),
        cost=cost_of(recorder),
        of_modules=() if functions is None else memory_of_modules(functions),
        thread_names=thread_names(),
    )


def rows_recording(recorder: Recorder, logs: Logs) -> RawRecording:
    """Only the events in these logs, with their inputs."""
    recorder.live_inputs.add(recorder.descriptions)
    return RawRecording(
        columns=recorder.wanted.columns,
        logs=logs,
        main_thread=recorder.thread,
        n_ops=len(_dispatch.BY_UID),
        key_entry=lambda key: key_entry(recorder, key),
        inputs=recorder.live_inputs.inputs,
        input_rules=recorder.live_inputs if recorder.config.record_shapes else None,
        flops=recorder.flops,
        functions=None,
        tensor_tables=None,
        settings=settings_of(recorder),
        origin_ns=recorder.origin_ns,
        window_ns=(0, 0),
    )


def key_entry(recorder: Recorder, key: int) -> KeyEntry:
    """The op or the range with this key."""
    if key < RANGES:
        op = _dispatch.BY_UID[key]
        return KeyEntry(op.qualified_name, op.overload, columns.OP, 0, 0, op.sequenced)
    text, scope, forward_thread = recorder.ranges[key - RANGES]
    return KeyEntry(text, "", _range_kind(text, scope), scope, forward_thread, True)


def _range_kind(text: str, scope: int) -> int:
    if scope == columns.USER_SCOPE:
        return columns.ANNOTATION
    if text.startswith("autograd::engine::"):
        return columns.ENGINE
    return columns.NODE if scope == columns.BACKWARD_SCOPE else columns.OP


_MODULE_OF_MODULES = __name__.partition(".")[0] + ".nn.modules.module"


def _module_call() -> tuple[str, int, str] | None:
    """File, line and name of `Module.__call__`; None if `nn` is not imported."""
    module = sys.modules.get(_MODULE_OF_MODULES)
    if module is None:
        return None
    code = module.Module.__call__.__code__
    return shortened(code.co_filename, prefixes()), code.co_firstlineno, code.co_name


def memory_of_modules(functions: Functions) -> tuple[tuple[int, int, bool], ...]:
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


def cost_of(recorder: Recorder) -> RecordingCost | None:
    """What recording adds to the program; None: not known."""
    cost = recorder.cost_in_program()
    return None if cost is None else RecordingCost(cost.op_ns, cost.range_ns, cost.call_ns, recorder.setup_ns)


def health_of(recorder: Recorder) -> Health:
    """What is known to be missing from a recording."""
    notes: tuple[str, ...] = ()
    if recorder.suspended_ns:
        notes = (f"{recorder.suspended_ns / 1e6:.3f}ms in which another profiler recorded",)
    if recorder.drop_reason:
        notes = (*notes, f"the last {recorder.dropped:,} events were dropped: {recorder.drop_reason}")
    return Health(recorder.dropped, recorder.unfinished, notes=notes, remarks=_hold_ups(recorder))


_SHORTEST_HOLD_UP_NS = 1_000_000  # in all; less is within what recording costs anyway


def _hold_ups(recorder: Recorder) -> tuple[str, ...]:
    """That threads gave way to the one that writes the recording, if it took long enough to matter."""
    n_waits, waited_ns = recorder.waits()
    if waited_ns < _SHORTEST_HOLD_UP_NS:
        return ()
    times = "once" if n_waits == 1 else f"{n_waits:,} times"
    return (
        f"the program was held up {times}, for {waited_ns / 1e6:.0f} ms in all, so that its recording could be written",
    )


def settings_of(recorder: Recorder) -> Settings:
    """How it was recorded; the threads, the cost and the number of events before it are not known yet."""
    config = recorder.config
    recorder.trace_id = recorder.trace_id or os.urandom(16).hex().upper()
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
        trace_id=recorder.trace_id,
        pid=os.getpid(),
        thread=recorder.thread,
        allocated_before=recorder.allocated_before,
        num_threads=recorder.num_threads,
        default_dtype=recorder.default_dtype,
        module_call=None if recorder.functions is None else _module_call(),
        added_metadata=recorder.added_metadata,
        distributed=FrozenDict(_distributed_info() or {}),
    )


def thread_names() -> dict[int, tuple[int, str]]:
    """By identity: the native id and the name of each thread that runs; not the profiler's own."""
    return {
        t.ident: (t.native_id, t.name)
        for t in threading.enumerate()
        if t.ident and t.native_id and not isinstance(t, OwnThread)
    }


def _distributed_info() -> dict[str, Any] | None:
    """The job's rank, size and groups; None where the program has not imported torch.distributed or formed a group."""
    module = sys.modules.get("mindtorch_v2.distributed.distributed_c10d")
    return None if module is None else module.distributed_info()
