"""The profiler without `profile`: torch's C functions that prepare, enable and disable it, those of the legacy profiler too."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from mindtorch_prof.torch_api.enums import ActiveProfilerType, ProfilerActivity, ProfilerState
from mindtorch_prof.torch_api.event_tree import _ProfilerResult
from mindtorch_prof.torch_api.results import Results, RowEvent

from .. import _recording_hooks as hooks
from .experimental_config import ProfilerConfig
from .record.recorder import Config, Recorder
from .recording import finished

_NESTED = "Profiler is already enabled on this thread"


class _State:
    """The recorders that these functions started."""

    recorder: Recorder | None = None
    legacy: Recorder | None = None


def _settings(config: ProfilerConfig) -> Config:
    further = config.experimental_config
    return Config(
        config.report_input_shapes,
        config.profile_memory,
        config.with_stack,
        config.with_flops,
        config.with_modules,
        all_threads=bool(further.profile_all_threads),
        overloads=bool(further.capture_overload_names),
        verbose=bool(further.verbose),
    )


def _prepare_profiler(
    config: ProfilerConfig, activities: Iterable[ProfilerActivity], activity_filter: Any = None
) -> None:
    """Get ready to record; there is nothing to do here."""


def _enable_profiler(
    config: ProfilerConfig, activities: Iterable[ProfilerActivity], scopes: Iterable[Any] = frozenset()
) -> None:
    """Record from now on, until `_disable_profiler`."""
    if hooks.active_recording() is not None:
        raise RuntimeError(_NESTED + ".")
    _State.recorder = Recorder(_settings(config))
    _State.recorder.trace_id = config.trace_id
    _State.recorder.start()


def _disable_profiler() -> Any:
    """Stop the recording that `_enable_profiler` began, and give it."""
    recorder, _State.recorder = _State.recorder, None
    if recorder is None:
        warnings.warn(
            "disableProfiler called but no active profiling session found. This can happen if profiling was cancelled during warmup.",
            stacklevel=2,
        )
        recorder = Recorder(Config())
        recorder.start()
    return _ProfilerResult(finished(recorder))


def _toggle_collection_dynamic(enable: bool, activities: Iterable[ProfilerActivity], /) -> None:
    """Pause or resume a recording that is under way."""
    active = hooks.active_recording()
    if active is not None and ProfilerActivity.CPU in set(activities):
        active.resume() if enable else active.pause()


def _add_metadata_json(key: str, value: str, /) -> None:
    """Put a JSON value into the trace file of the current recording, if there is one."""
    active = hooks.active_recording()
    if active is not None:
        active.added_metadata[key] = json.loads(value)


def _supported_activities() -> set[ProfilerActivity]:
    """What can be recorded here: the CPU."""
    return {ProfilerActivity.CPU}


def _profiler_enabled() -> bool:
    """Whether a profiler is recording."""
    return hooks.active_recording() is not None


def _profiler_type() -> ActiveProfilerType:
    """Which kind of profiler is recording."""
    active = hooks.active_recording()
    if active is None:
        return ActiveProfilerType.NONE
    return ActiveProfilerType.LEGACY if active is _State.legacy else ActiveProfilerType.KINETO


def _enable_record_function(enable: bool, /) -> None:
    """Choose whether ops and annotations are recorded at all, by any profiler."""
    hooks.set_muted(not enable)


def _kineto_step() -> None:
    """Tell a profiling daemon that a step is over; there is no daemon here."""


def _is_kineto_stopped() -> bool:
    """Whether recording ended by itself, which it never does here."""
    return False


# ---------------------------------------------------------------------------------------------------- the legacy profiler


class ProfilerEvent:
    """A mark, the beginning (push) or the end (pop) of something, as the old profiler notes it. Fields are methods."""

    __slots__ = ("_kind", "_name", "_at_ns", "_thread", "_handle", "_event")

    def __init__(self, kind: str, name: str, at_ns: int, thread: int, handle: int, event: Any) -> None:
        self._kind, self._name, self._at_ns, self._thread, self._handle, self._event = (
            kind, name, at_ns, thread, handle, event,
        )  # fmt: skip

    def kind(self) -> str:
        """ "mark", "push" or "pop"."""
        return self._kind

    def name(self) -> str:
        """What begins; empty where something ends."""
        return self._name

    def handle(self) -> int:
        """A number that a beginning shares with its end."""
        return self._handle

    def thread_id(self) -> int:
        """The number of its thread."""
        return self._thread

    def start_us(self) -> float:
        """When, in microseconds."""
        return self._at_ns / 1000

    def cpu_elapsed_us(self, other: ProfilerEvent, /) -> float:
        """Microseconds until another one."""
        return (other._at_ns - self._at_ns) / 1000

    def cuda_elapsed_us(self, other: ProfilerEvent, /) -> float:
        """0: there is no CUDA here."""
        return 0.0

    def has_cuda(self) -> bool:
        """False: there is no CUDA here."""
        return False

    def device(self) -> int:
        """-1: the CPU."""
        return -1

    def node_id(self) -> int:
        """-1: there is one process."""
        return -1

    def is_remote(self) -> bool:
        """False: there is one process."""
        return False

    def is_async(self) -> bool:
        """Whether it ends on another thread."""
        return False

    def correlation_id(self) -> int:
        """0: no device works for it."""
        return 0

    def cuda_memory_usage(self) -> int:
        """0: there is no CUDA here."""
        return 0

    def cpu_memory_usage(self) -> int:
        """0: memory is noted beside the events."""
        return 0

    def shapes(self) -> list:
        """The shapes of what went in."""
        return [] if self._event is None else self._event.input_shapes

    def sequence_nr(self) -> int:
        """The sequence number, or -1."""
        return -1 if self._event is None else self._event.sequence_nr

    def fwd_thread_id(self) -> int:
        """The number of the thread of the forward pass, of a backward node."""
        return 0 if self._event is None else self._event.fwd_thread

    def scope(self) -> int:
        """torch's RecordScope."""
        return 0 if self._event is None else self._event.scope

    def stack(self) -> list[str]:
        """The Python stack, innermost first."""
        return [] if self._event is None else self._event.stack

    def flops(self) -> int:
        """Floating point operations, where there is a formula."""
        return 0 if self._event is None else self._event.flops


def _enable_profiler_legacy(config: ProfilerConfig, /) -> None:
    """Record from now on, until `_disable_profiler_legacy`."""
    if hooks.active_recording() is not None:
        raise RuntimeError(_NESTED)
    if config.state is not ProfilerState.CPU:
        raise RuntimeError(f"the old profiler can record ProfilerState.CPU here, not {config.state}")
    _State.legacy = Recorder(_settings(config))
    _State.legacy.start()


def _stop_legacy() -> Results:
    recorder, _State.legacy = _State.legacy, None
    if recorder is None or not recorder.running:
        raise RuntimeError("Can't disable profiler: it is not enabled")
    return finished(recorder)


def _disable_profiler_legacy(profiler_disable_options: Any = None) -> list[list[ProfilerEvent]]:
    """Stop, and give the events: one list per thread, of beginnings and ends in the order of time."""
    results = _stop_legacy()
    trace = results.trace
    by_thread = []
    for thread in dict.fromkeys(trace.thread.tolist()) or (0,):
        rows = np.flatnonzero(trace.thread == thread)
        number = results.thread_number(thread) if len(rows) else 1
        # at one moment ends come before beginnings; of two ends the inner one's, of two beginnings the outer one's first
        times = np.concatenate([trace.start_ns[rows], trace.end_ns[rows]])
        is_end = np.repeat([False, True], len(rows))
        order = np.lexsort((np.where(is_end, -np.tile(rows, 2), np.tile(rows, 2)), times))
        events = [ProfilerEvent("mark", "__start_profile", trace.window_ns[0], number, 0, None)]
        for place in order.tolist():
            row = int(rows[place % len(rows)])
            if is_end[place]:
                events.append(ProfilerEvent("pop", "", int(trace.end_ns[row]), number, row + 1, None))
            else:
                event = RowEvent(results, row, trace.names[trace.name[row]])
                events.append(
                    ProfilerEvent("push", event.name, int(trace.start_ns[row]), number, row + 1, event)
                )
        events.append(ProfilerEvent("mark", "__stop_profile", trace.window_ns[1], number, 0, None))
        by_thread.append(events)
    return by_thread
