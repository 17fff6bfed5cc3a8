"""One recording: `torch.autograd.profiler.profile`. Settings in; a Recorder while it runs, Results when it is finished."""

from __future__ import annotations

import os
import tempfile
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from mindtorch_prof.export import chrome
from mindtorch_prof.load.spill import FINISHED
from mindtorch_prof.python_rows import with_calls
from mindtorch_prof.sealing.logs import Logs
from mindtorch_prof.sealing.newest import since
from mindtorch_prof.sealing.raw import RANGES
from mindtorch_prof.sealing.seal import seal
from mindtorch_prof.sealing.unfinished import end_open
from mindtorch_prof.torch_api.enums import ProfilerActivity, ProfilerState
from mindtorch_prof.torch_api.event_list import EventList
from mindtorch_prof.torch_api.event_tree import _ProfilerResult
from mindtorch_prof.torch_api.facade import EventAnswers
from mindtorch_prof.torch_api.function_events import FunctionEvent
from mindtorch_prof.torch_api.results import Results
from mindtorch_prof.trace import Trace

from .. import _common_ops
from .. import _recording_hooks as hooks
from .experimental_config import ProfilerConfig, _ExperimentalConfig
from .record.keeping import Keep
from .record.live_recording import health_of, live_recording, number_events
from .record.own_cost import own_cost
from .record.recorder import Config, Recorder
from .record.spill_keeper import SpillKeeper, spilled
from .torch_view import torch_view

_DEVICES = ("cuda", "xpu", "hpu", "mtia")
_sealing = threading.RLock()  # two threads may ask for the same results at once


@dataclass
class _ProfilerStats:
    """How long the profiler itself took, and how much it recorded."""

    profiling_window_duration_sec: float = 0
    number_of_events: int = 0
    profiler_prepare_call_duration_us: int = 0
    profiler_enable_call_duration_us: int = 0
    profiler_disable_call_duration_us: int = 0
    parse_kineto_call_duration_us: int = 0
    function_events_build_tree_call_duration_us: int = 0


class profile(EventAnswers):
    """Record what happens inside the `with` block."""

    _unfinished = "<unfinished torch.autograd.profile>"

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: _ExperimentalConfig | None = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: dict[ProfilerActivity, set[str]] | None = None,
    ) -> None:
        self.enabled = enabled
        self._sealed: Results | None = None
        self._unsealed: Callable[[], Trace] | None = None  # seals the recording when it is asked for
        self._recorded: Trace | None = None  # sealed; the torch view of it is not built yet
        if not enabled:
            return
        self.use_cuda = use_cuda
        if use_cuda:
            warnings.warn(
                "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` instead.",
                FutureWarning,
                stacklevel=2,
            )
            use_device = "cuda"
        self.use_device = None if use_device is None else _device(use_device, use_kineto)
        self.use_cuda = False
        self.entered = False
        _check_switch("record_shapes", record_shapes)
        _check_switch("with_flops", with_flops)
        _check_switch("profile_memory", profile_memory, or_none=True)
        _check_switch("with_stack", with_stack, or_none=True)
        _check_switch("with_modules", with_modules, or_none=True)
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")
        self.record_shapes = record_shapes or with_flops
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.use_cpu = use_cpu
        self.acc_events = acc_events
        self.experimental_config = checked_config(experimental_config)
        self._listed: tuple[Results, Results] | None = (
            None  # `_results`, and those with Python calls as events
        )
        self.profiling_start_time_ns = 0
        self.profiling_end_time_ns = 0
        self._stats = _ProfilerStats()
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.activity_filters = activity_filters or {}
        self.trace_id = ""
        self._shapes = bool(record_shapes)
        self._recorder: Recorder | None = None
        self.keep = Keep()  # what is kept of the recording, and where; a session may want something else
        self.ended_by = FINISHED  # why the recording ends; for its spill folder
        if not use_cpu and not use_kineto:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        self.kineto_activities = {ProfilerActivity.CPU} if use_cpu else set()
        self.profiler_kind = ProfilerState.KINETO
        if not self.kineto_activities:
            raise AssertionError("No activities specified for the profiler")

    # ------------------------------------------------------------------------------------------------ life

    def default_trace_id(self) -> str:
        """A new random identity of a trace."""
        return uuid.uuid4().hex.upper()

    def create_trace_id(self) -> str:
        """The identity of a trace: the callback's, or a new one."""
        return self.custom_trace_id_callback() if self.custom_trace_id_callback else self.default_trace_id()

    def config(self, create_trace_id: bool = False) -> ProfilerConfig:
        """The settings as torch's C++ side would get them."""
        if create_trace_id:
            self.trace_id = self.create_trace_id()
        return ProfilerConfig(
            self.profiler_kind,
            self.record_shapes,
            self.profile_memory,
            self.with_stack,
            self.with_flops,
            self.with_modules,
            self.experimental_config,
            self.trace_id,
        )

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._prepare_trace()
        self._start_trace()
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> Literal[False]:
        if self.enabled:
            self._stop_trace()
        return False

    def _prepare_trace(self) -> None:
        self.entered = True
        began = time.perf_counter_ns()
        self.trace_id = self.create_trace_id()
        if self._recorder is None or not self.acc_events:
            self._recorder = Recorder(
                Config(
                    self._shapes,
                    bool(self.profile_memory),
                    bool(self.with_stack),
                    bool(self.with_flops),
                    bool(self.with_modules),
                    all_threads=bool(self.experimental_config.profile_all_threads),
                    overloads=bool(self.experimental_config.capture_overload_names),
                    verbose=bool(self.experimental_config.verbose),
                    python_gc=bool(self.experimental_config.record_python_gc_info),
                    event_metadata=bool(self.experimental_config.expose_kineto_event_metadata),
                )
            )
            self._recorder.keeper = self.keep.keeper(self._recorder)
            _common_ops.prepare()  # so that the recording does not measure how ops are compiled
            self._recorder.own_cost = own_cost(self._recorder)
        self._recorder.trace_id = self.trace_id
        self._stats.profiler_prepare_call_duration_us = (time.perf_counter_ns() - began) // 1000

    def _start_trace(self) -> None:
        if self._recorder is None:
            self._prepare_trace()
        assert self._recorder is not None
        self.entered = True
        began = time.perf_counter_ns()
        self._recorder.start()
        self._stats.profiler_enable_call_duration_us = (time.perf_counter_ns() - began) // 1000
        self.profiling_start_time_ns = time.time_ns()

    def _stop_trace(self) -> None:
        """End; harmless if nothing records."""
        recorder = self._recorder
        if recorder is None or not recorder.running:
            return
        began = time.perf_counter_ns()
        try:
            stop_keeping(recorder, self.ended_by, goes_on=self.acc_events)
        finally:
            if not recorder.running:  # also if Ctrl-C ended the wait for a slow disk
                self._stopped(recorder, began)

    def _stopped(self, recorder: Recorder, began: int) -> None:
        self._recorded, self._unsealed = None, stopped(recorder, goes_on=self.acc_events)
        if self.acc_events:  # the recorder will go on with the same rows
            self._seal_now()
        _warn_of_strangers(recorder)
        self._stats.profiler_disable_call_duration_us = (time.perf_counter_ns() - began) // 1000
        if not self.acc_events:
            self._recorder = None
        self.profiling_end_time_ns = time.time_ns()
        spent = self.profiling_end_time_ns - self.profiling_start_time_ns
        self._stats.profiling_window_duration_sec = spent / 1e9

    def _seal_now(self) -> None:
        try:
            self._recorded_trace()
        except MemoryError as error:
            warnings.warn(str(error), stacklevel=6)

    @property
    def _results(self) -> Results | None:
        """What was recorded; None before the end."""
        if self._unsealed is not None or self._recorded is not None:
            with _sealing:
                recorded = self._recorded_trace()
                if recorded is not None:
                    self._show(_torch_view(recorded))
        return self._sealed

    @_results.setter
    def _results(self, results: Results | None) -> None:
        self._unsealed, self._recorded, self._sealed = None, None, results

    def _recorded_trace(self) -> Trace | None:
        """The sealed recording until its torch view is built; None before the end and after that."""
        with _sealing:
            if self._unsealed is not None:
                self._recorded = self._unsealed()
                self._unsealed = None
            return self._recorded

    def _recorded_results(self) -> Results:
        try:
            return super()._recorded_results()
        except MemoryError:
            if self._recorded is None:
                raise
            return Results(_numbered(self._recorded))  # no torch view, which takes more

    def _show(self, trace: Trace) -> None:
        """Answer from this trace from now on."""
        self._results = results = Results(trace)
        self._kineto_results = _ProfilerResult(results)

    @property
    def kineto_results(self) -> Any:
        """torch's object for what was recorded; None before the end."""
        return None if self._results is None else self._kineto_results

    def snapshot(self, seconds: float | None = None) -> Trace:
        """What was recorded until now, or in the last seconds; recording goes on."""
        if self._recorder is None or not self._recorder.running:
            raise RuntimeError(
                "snapshot() needs a recording that is under way: call it between start() and stop()"
            )
        # what it calls is none of the program's
        return self._recorder.core.call_untraced(snapshot, self._recorder, seconds)

    def toggle_collection_dynamic(self, enabled: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Pause or resume recording."""
        wanted = set(activities)
        for each in wanted:
            if not isinstance(each, ProfilerActivity):
                raise TypeError(f"activities must be of ProfilerActivity, got {each!r}")
        if self._recorder is None or ProfilerActivity.CPU not in wanted:
            return
        if enabled:
            self._recorder.resume()
        else:
            self._recorder.pause()

    # ------------------------------------------------------------------------------------------------ results

    @property
    def function_events(self) -> EventList[FunctionEvent]:
        """All events; none before the end."""
        if self._results is None:
            return EventList()
        if self.experimental_config.trace_only:
            raise RuntimeError(
                "events() is not available when trace_only=True in ExperimentalConfig. Use export_chrome_trace() instead."
            )
        listed = self._listed_results()
        assert listed is not None
        if self._stats.number_of_events:
            return listed.events
        began = time.perf_counter_ns()
        events = listed.events
        spent = (time.perf_counter_ns() - began) // 1000
        self._stats.function_events_build_tree_call_duration_us = max(spent, 1)
        self._stats.number_of_events = len(events)
        return events

    def _event_list(self) -> EventList[FunctionEvent]:
        return self.function_events

    def _listed_results(self) -> Results | None:
        """The Results of lists and tables: with stacks, Python calls are among the events."""
        results = self._results
        if results is None or not results.trace.settings.with_stack:
            return results
        if self._listed is None or self._listed[0] is not results:
            self._listed = (results, Results(with_calls(results.trace)))
        return self._listed[1]

    def _finished(self, purpose: str = "getting results") -> Results:
        if self._results is None:
            raise RuntimeError(
                "Nothing was recorded that could be exported: start the profiler and stop it first"
            )
        return self._results

    def export_chrome_trace(
        self, path: str, metadata: dict[str, Any] | None = None, use_python_export: bool = False
    ) -> None:
        """Write the recording as a trace file; there is one way to do so, in Python."""
        chrome.export_chrome_trace(self._finished().trace, path, metadata or {})


def checked_config(config: object) -> _ExperimentalConfig:
    """The experimental settings, None: torch's defaults. Raises what torch raises for anything else."""
    if config is None:
        return _ExperimentalConfig()
    if not isinstance(config, _ExperimentalConfig):
        raise AttributeError(
            f"{type(config).__name__!r} object has no attribute 'trace_only': experimental_config must be an _ExperimentalConfig"
        )
    return config


def _check_switch(name: str, value: object, or_none: bool = False) -> None:
    """Raise for a switch that is neither a truth value nor a number. or_none: also None, which means off, and floats, as in torch."""
    if isinstance(value, (int, np.bool_)) or (or_none and (value is None or isinstance(value, float))):
        return
    raise TypeError(f"{name} must be True or False, got {value!r}")


def _warn_of_strangers(recorder: Recorder) -> None:
    """Say why nothing was recorded, where all ops ran on threads that are not."""
    if recorder.foreign_threads and not isinstance(recorder.keeper, SpillKeeper) and not _has_ops(recorder):
        names = ", ".join(sorted(f"'{name}'" for name in set(recorder.foreign_threads.values())))
        warnings.warn(
            f"no op was recorded: the profiler records the thread that started it, and ops ran only on {names}. "
            "experimental_config=_ExperimentalConfig(profile_all_threads=True) records every thread",
            stacklevel=5,
        )


def _has_ops(recorder: Recorder) -> bool:
    width = len(recorder.wanted.columns)
    blocks = (block for (kind, _), block in recorder.logs if kind == "rows")
    return recorder.dropped > 0 or any(
        bool((block.reshape(-1, width)[:, 0] < RANGES).any()) for block in blocks
    )


def finished(recorder: Recorder) -> Results:
    """Stop a recorder, and give what it recorded, with the ops that torch shows inside others."""
    recorder.stop()
    return Results(_torch_view(stopped(recorder)()))


def stop_keeping(recorder: Recorder, ended_by: str, goes_on: bool) -> None:
    """Stop a recorder; if it is spilled, wait until all of it is written. What interrupts the wait is raised, and the recorder is stopped."""
    try:
        recorder.stop()
    finally:
        if isinstance(recorder.keeper, SpillKeeper) and not recorder.running:
            recorder.keeper.finish_stopped(ended_by, recorder.ended_ns, goes_on)


def stopped(recorder: Recorder, goes_on: bool = False) -> Callable[[], Trace]:
    """A function that seals what a recorder recorded, which was stopped. goes_on: it may start again."""
    keeper, window_ns = recorder.keeper, (recorder.begun_ns, recorder.ended_ns)
    if isinstance(keeper, SpillKeeper):
        logs_of = keeper.logs
    else:
        recorder.logs.add(recorder.hand_over())
        logs_of = (lambda: recorder.logs) if keeper is None else keeper.logs
    recording = live_recording(recorder, recorder.logs, window_ns)
    if not goes_on:
        recorder.release()

    place = ""

    def sealed() -> Trace:
        nonlocal place
        try:
            logs = logs_of()  # may drop events, and change what is known of them
            settings = replace(recording.settings, allocated_before=recorder.allocated_before)
            whole = replace(recording, logs=logs, settings=settings, health=health_of(recorder))
            return seal(whole, keep_logs=goes_on or keeper is not None)
        except MemoryError as error:
            if isinstance(keeper, SpillKeeper):
                place = keeper.folder.path
            else:  # the rows are still there: they are written as they are, once
                try:
                    place = place or rescue(recorder)
                except (MemoryError, OSError) as failure:
                    raise MemoryError(
                        f"not enough memory to build the profile, and it cannot be written either ({failure}); it is kept: "
                        "ask for its results again when there is more memory"
                    ) from error
            raise MemoryError(
                f"not enough memory to build the profile; it was written to {place} and can be opened with mindtorch_prof.load, "
                "also in another process"
            ) from error

    return sealed


def _torch_view(recorded: Trace) -> Trace:
    try:
        return _numbered(torch_view(recorded))
    except MemoryError as error:
        raise MemoryError(
            "not enough memory for the ops that torch shows inside others; what ran is there: as_recorded() of the profile has its "
            "tables and files, e.g. prof.as_recorded().save(path)"
        ) from error


def _numbered(trace: Trace) -> Trace:
    return replace(trace, settings=replace(trace.settings, numbered_after=number_events(len(trace))))


def snapshot(recorder: Recorder, seconds: float | None = None) -> Trace:
    """What a recorder has recorded until now, or in the last seconds."""
    now = time.perf_counter_ns()
    keeper, width = recorder.keeper, len(recorder.wanted.columns)

    def logs_until_now() -> tuple[Logs, dict[int, np.ndarray]]:
        if keeper is None:
            recorder.logs.add(recorder.hand_over())
            logs = recorder.logs
        else:
            keeper.take()
            logs = keeper.logs()
        copy = Logs(logs.blocks.items(), logs.natives)
        copy.dropped, copy.kept_calls = dict(logs.dropped), dict(logs.kept_calls)
        return copy, recorder.core.open_ranges(now)

    logs, open_ranges = logs_until_now() if keeper is None else keeper.locked(logs_until_now)
    n_open = end_open(logs, open_ranges, width, now)
    n_before = 0
    if seconds is not None:
        logs, n_before = since(logs, width, now - int(seconds * 1e9))
    recording = live_recording(recorder, logs, (recorder.begun_ns, now))
    health = replace(recording.health, unfinished=recording.health.unfinished + n_open)
    if n_before:
        health = replace(
            health,
            notes=(*health.notes, f"only the last {seconds:g} s: {n_before:,} events before are left out"),
        )
    return torch_view(seal(replace(recording, health=health)))


def rescue(recorder: Recorder) -> str:
    """Write a stopped recording to a spill folder, from the memory in which it is; its path."""
    return spilled(recorder, recorder.logs, os.path.join(tempfile.gettempdir(), "mindtorch_profiles"))


def recording_now() -> bool:
    """Whether any recorder is at work."""
    return hooks.active_recording() is not None


def _device(name: str, use_kineto: bool) -> str | None:
    """No device but the CPU can be recorded: torch's answer where it is missing."""
    if name not in _DEVICES:
        warnings.warn(f"The {name} is not a valid device option.", stacklevel=3)
        return None
    if name == "mtia" and not use_kineto:
        raise AssertionError(
            "Legacy MTIA profiling is not supported. Requires use_kineto=True on MTIA devices."
        )
    shown = name.upper()
    warnings.warn(f"{shown} is not available, disabling {shown} profiling", stacklevel=3)
    return None
