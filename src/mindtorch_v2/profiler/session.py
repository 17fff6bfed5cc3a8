"""Sessions: `profile` and `_KinetoProfile`, which decide when to record, call back with finished recordings and add metadata to them."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mindtorch_prof.analysis.memory_summary import memory_summary
from mindtorch_prof.export import chrome
from mindtorch_prof.export.background import Export
from mindtorch_prof.live.program import ending
from mindtorch_prof.live.signals import call_on_signal
from mindtorch_prof.load.spill import FINISHED
from mindtorch_prof.steps import step_name
from mindtorch_prof.torch_api.enums import ProfilerActivity
from mindtorch_prof.torch_api.event_list import EventList
from mindtorch_prof.torch_api.facade import RecordingAnswers
from mindtorch_prof.torch_api.function_events import FunctionEvent
from mindtorch_prof.torch_api.results import Results

from . import recording
from .execution_trace_observer import ExecutionTraceObserver
from .experimental_config import _ExperimentalConfig
from .record.keeping import Keep
from .record_function import record_function
from .schedule import ProfilerAction
from .step_tracker import KinetoStepTracker
from .trace_handler import warn_not_written

if TYPE_CHECKING:
    from mindtorch_prof.load.open_trace import Loaded

PROFILER_STEP_NAME = "ProfilerStep"

# the device whose absence torch speaks of when several are asked for: the first of these
_DEVICES = {
    ProfilerActivity.CUDA: "cuda",
    ProfilerActivity.XPU: "xpu",
    ProfilerActivity.MTIA: "mtia",
    ProfilerActivity.HPU: "hpu",
    ProfilerActivity.PrivateUse1: "privateuseone",
}
_warned: set[str] = set()


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, stacklevel=6)


def supported_activities() -> set[ProfilerActivity]:
    """What can be recorded here: the CPU."""
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """Whether there is a profiler that writes traces: always."""
    return True


def _parse_activities(
    activities: Iterable[Any],
) -> tuple[set[ProfilerActivity], dict[ProfilerActivity, set[str]]]:
    """Activities, and by activity the kinds of events that are wanted (none on a CPU)."""
    chosen: set[ProfilerActivity] = set()
    filters: dict[ProfilerActivity, set[str]] = {}
    for item in activities:
        if isinstance(item, ProfilerActivity):
            chosen.add(item)
        elif isinstance(item, dict):
            chosen.update(item)
            filters.update({activity: set(kinds) for activity, kinds in item.items()})
        elif isinstance(item, str):
            continue
        else:
            raise TypeError(f"Expected ProfilerActivity or dict, got {type(item)}")
    return chosen, filters


class _KinetoProfile(RecordingAnswers):
    """A recording from start to stop, and what it shows."""

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity | dict[ProfilerActivity, list[str]]] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: _ExperimentalConfig | None = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        self._keep = Keep()  # everything, in memory
        self.activities, self.activity_filters = (
            (supported_activities(), {}) if activities is None else _parse_activities(activities)
        )
        self.record_shapes = record_shapes
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        recording.checked_config(experimental_config)
        self.experimental_config = experimental_config
        self.execution_trace_observer = execution_trace_observer
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.profiler: recording.profile | None = None
        self.mem_tl: Any = None
        self.use_device = next((name for kind, name in _DEVICES.items() if kind in self.activities), None)
        self.ended_by = FINISHED  # why the recording ends; for its spill folder
        self.preset_metadata: dict[str, str] = {}
        self._metadata = {}

    def start(self) -> None:
        """Begin to record."""
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        """End the recording."""
        self.stop_trace()

    def prepare_trace(self) -> None:
        """Get ready to record."""
        if self.profiler is not None and self.acc_events:
            return
        if self.profiler is not None:
            _warn_once(
                "Warning: Profiler clears events at the end of each cycle. Only events from the current cycle will be "
                "reported. To keep events across cycles, set acc_events=True."
            )
            self.profiler._stop_trace()
        for activity, kinds in self.activity_filters.items():
            for kind in kinds:
                if activity is ProfilerActivity.CPU:
                    raise RuntimeError(f"Unknown or non-member activity type name: '{kind}'")
        self.profiler = recording.profile(
            use_cpu=ProfilerActivity.CPU in self.activities,
            use_device=self.use_device,
            record_shapes=self.record_shapes,
            with_flops=self.with_flops,
            profile_memory=self.profile_memory,
            with_stack=self.with_stack,
            with_modules=self.with_modules,
            use_kineto=True,
            experimental_config=self.experimental_config,
            acc_events=self.acc_events,
            custom_trace_id_callback=self.custom_trace_id_callback,
            post_processing_timeout_s=self.post_processing_timeout_s,
            activity_filters=self.activity_filters,
        )
        self.profiler.keep = self._keep
        self.profiler._prepare_trace()

    def start_trace(self) -> None:
        """Record from now on."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before starting trace")
        if self.execution_trace_observer:
            self.execution_trace_observer.start()
        try:
            self.profiler._start_trace()
        except BaseException:
            if self.execution_trace_observer:
                self.execution_trace_observer.stop()
            raise
        for key, value in self.preset_metadata.items():
            self.add_metadata_json(key, value)

    def stop_trace(self) -> None:
        """Record no more; what was recorded can be asked for."""
        if self.execution_trace_observer:
            self.execution_trace_observer.stop()
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before stopping trace")
        self.profiler.ended_by = self.ended_by
        self.profiler._stop_trace()
        if (
            isinstance(self.execution_trace_observer, ExecutionTraceObserver)
            and self.profiler._results is not None
        ):
            self.profiler._show(self.execution_trace_observer._tied(self.profiler._results.trace))

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Pause or resume recording."""
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    def _stats(self) -> Any:
        """How long the profiler itself took, and how much it recorded; None before the first recording."""
        return None if self.profiler is None else self.profiler._stats

    def pause(self) -> None:
        """Record nothing until `resume`; the recording stays open."""
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(False, {ProfilerActivity.CPU})

    def resume(self) -> None:
        """Record again."""
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(True, {ProfilerActivity.CPU})

    def snapshot(self, seconds: float | None = None) -> Loaded:
        """What was recorded until now, or in the last seconds, as `mindtorch_prof.load` gives it; recording goes on. Ranges and Python
        calls that are under way end at this moment."""
        if self.profiler is None:
            raise RuntimeError(
                "snapshot() needs a recording that is under way: call it between start() and stop()"
            )
        from mindtorch_prof.load.open_trace import (
            Loaded,
        )  # all readers: only those who ask for a snapshot need them

        trace = self.profiler.snapshot(seconds)
        return Loaded(trace, python_functions=trace.settings.with_stack)

    def snapshot_on_signal(
        self, name: str, path: str | os.PathLike[str], seconds: float | None = None
    ) -> Callable[[], None]:
        """Write a snapshot to a file whenever the process receives a signal, such as USR2; the program's own handler is called after
        it. Returns a function that ends this. Only the main thread can call it."""

        def write() -> None:
            try:
                chrome.export_chrome_trace(
                    self.snapshot(seconds).trace, os.fspath(path), dict(self._metadata)
                )
            except OSError as error:
                warn_not_written(path, error)
            except RuntimeError as error:
                warnings.warn(f"{os.fspath(path)}: not written ({error})", stacklevel=3)

        return call_on_signal(name, write)

    def _finished(self, purpose: str = "getting results") -> Results:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {purpose}")
        if self.profiler._results is None:
            raise RuntimeError(f"The profiler must be stopped before {purpose}")
        return self.profiler._results

    def _recorded_results(self) -> Results:
        if self.profiler is None:
            return super()._recorded_results()  # raises
        return self.profiler._recorded_results()

    def events(self) -> EventList[FunctionEvent]:
        """All events of the recording."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before accessing events")
        return self.profiler.function_events

    def _listed_results(self) -> Results | None:
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before getting key averages")
        return self.profiler._listed_results()

    def export_in_background(self, path: str) -> Export:
        """Write the trace file on a thread of its own; the program goes on. `.result()` of what is returned waits for it, and raises
        what went wrong."""
        trace, metadata = self._finished("exporting chrome trace").trace, dict(self._metadata)
        return Export(lambda: chrome.export_chrome_trace(trace, path, metadata), path)

    def memory_summary(self) -> str:
        """The most memory that was alive at one time, when that was, and which ops had taken it (needs profile_memory)."""
        return memory_summary(self._finished("summarising memory").trace)

    def _memory_profile(self) -> Any:
        """What the recorded memory is for: torch's MemoryProfile."""
        from mindtorch_prof.torch_api.memory_profile import MemoryProfile

        needed = {name: getattr(self, name) for name in ("record_shapes", "profile_memory", "with_stack")}
        missing = ", ".join(f"{name}=True" for name, given in needed.items() if not given)
        if missing:
            raise ValueError(f"{missing} required for memory profiling.")
        self._finished("memory profiling")
        assert self.profiler is not None
        return MemoryProfile(self.profiler.kineto_results)

    def _repr_html_(self) -> str | None:
        """The averages as a small table to sort and filter, for notebooks."""
        if self.profiler is None or self.profiler._results is None:
            return None
        return super()._repr_html_()

    def add_metadata(self, key: str, value: str) -> None:
        """Put a string into the trace file."""
        if not (isinstance(key, str) and isinstance(value, str)):
            raise TypeError(f"metadata must be a str under a str, got {value!r} under {key!r}")
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Put a JSON value into the trace file."""
        if not (isinstance(key, str) and isinstance(value, str)):
            raise TypeError(f"metadata must be JSON text under a str, got {value!r} under {key!r}")
        try:
            self._metadata[key] = json.loads(value)
        except json.JSONDecodeError as error:
            raise ValueError(f"metadata {key!r} is no JSON: {error}") from error

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Put a JSON value into the trace file of every recording from now on."""
        self.preset_metadata[key] = value


class profile(_KinetoProfile):
    """Record what happens inside, by a schedule if one is given.

    torch has no such arguments: `spill_dir`, a folder to which the recording is written while it is under way, so that it survives the
    process; `max_events` and `max_memory` (bytes), beyond which the oldest events are dropped.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity | dict[ProfilerActivity, list[str]]] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: _ExperimentalConfig | None = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        spill_dir: str | os.PathLike[str] | None = None,
        max_events: int | None = None,
        max_memory: int | None = None,
    ) -> None:
        chosen: set[Any] = (
            supported_activities() if activities is None else set(_parse_activities(activities)[0])
        )
        if use_cuda is not None:
            warnings.warn(
                "`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=2
            )
            # torch adds CUDA only where it is supported
            chosen.discard(ProfilerActivity.CUDA)
        if not chosen:
            raise AssertionError("No valid profiler activities found")
        super().__init__(
            activities=chosen if activities is None or use_cuda is not None else activities,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer
            or ExecutionTraceObserver.build_execution_trace_obs_from_env(),
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
        )
        self._keep = Keep.checked(spill_dir, max_events, max_memory)
        if schedule:
            self.schedule = schedule
            self.record_steps = True
        else:
            self.schedule = _always
            self.record_steps = False
        KinetoStepTracker.init_step_count(PROFILER_STEP_NAME)
        self.on_trace_ready = on_trace_ready
        self._hands_over = False  # whether `on_trace_ready` runs
        self.step_num = 0
        self.current_action = self.schedule(self.step_num)
        self.step_rec_fn: record_function | None = None
        self._recorded = False  # whether any step was one to record
        NONE, WARMUP, RECORD, SAVE = (
            ProfilerAction.NONE,
            ProfilerAction.WARMUP,
            ProfilerAction.RECORD,
            ProfilerAction.RECORD_AND_SAVE,
        )
        ready = self._trace_ready
        self.action_map: dict[tuple[ProfilerAction, ProfilerAction | None], list[Any]] = {
            (NONE, NONE): [],
            (NONE, WARMUP): [self.prepare_trace],
            (NONE, RECORD): [self.prepare_trace, self.start_trace],
            (NONE, SAVE): [self.prepare_trace, self.start_trace],
            (WARMUP, NONE): [_warn_warmup_ended, self.start_trace, self.stop_trace],
            (WARMUP, WARMUP): [],
            (WARMUP, RECORD): [self.start_trace],
            (WARMUP, SAVE): [self.start_trace],
            (RECORD, NONE): [_warn_record_ended, self.stop_trace],
            (RECORD, WARMUP): [_warn_record_ended, self.stop_trace],
            (RECORD, RECORD): [],
            (RECORD, SAVE): [],
            (SAVE, NONE): [self.stop_trace, ready],
            (SAVE, WARMUP): [self.stop_trace, ready, self.prepare_trace],
            (SAVE, RECORD): [self.stop_trace, ready, self.prepare_trace, self.start_trace],
            (SAVE, SAVE): [self.stop_trace, ready, self.prepare_trace, self.start_trace],
            (WARMUP, None): [self.start_trace, self.stop_trace],
            (RECORD, None): [self.stop_trace, ready],
            (SAVE, None): [self.stop_trace, ready],
        }

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self._recorded = self._recorded or exc_type is not None  # a program that failed says so itself
        if exc_val is not None:
            self.ended_by = ending(exc_val)
        try:
            self.stop()
        except Exception as error:
            if exc_type is None:
                raise
            # the program's own exception is the one that its author needs to see
            warnings.warn(f"the profile was not handed over: {type(error).__name__}: {error}", stacklevel=2)
        finally:
            KinetoStepTracker.erase_step_count(PROFILER_STEP_NAME)
            if self.execution_trace_observer:
                self.execution_trace_observer.cleanup()

    def start(self) -> None:
        """Begin with step 0."""
        self._transit_action(ProfilerAction.NONE, self.current_action)
        if self.record_steps:
            self.step_rec_fn = record_function(step_name(self.step_num))
            self.step_rec_fn.__enter__()

    def stop(self) -> None:
        """End; a recording that is under way is finished and handed over."""
        if self.record_steps and self.step_rec_fn:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None
        self._transit_action(self.current_action, None)
        if self.record_steps and not self._recorded:
            self._warn_of_nothing()

    def step(self) -> None:
        """Begin the next step."""
        if self.record_steps and self.step_rec_fn:
            self.step_rec_fn.__exit__(None, None, None)
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._transit_action(before, self.current_action)
        if os.environ.get("KINETO_USE_DAEMON"):
            KinetoStepTracker.increment_step(PROFILER_STEP_NAME)
        if self.record_steps:
            self.step_rec_fn = record_function(step_name(self.step_num))
            self.step_rec_fn.__enter__()

    def set_custom_trace_id_callback(self, callback: Callable[[], str] | None) -> None:
        """Choose who names the next traces."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """The identity of the current trace; None before the first."""
        return None if self.profiler is None else self.profiler.trace_id

    def _trace_ready(self) -> None:
        if self.on_trace_ready:
            self._hands_over = True
            try:
                self.on_trace_ready(self)
            finally:
                self._hands_over = False

    @contextmanager
    def _writing(self, path: str | os.PathLike[str]) -> Iterator[None]:
        """A callback that cannot write its file (a full disk) does not end the training that it watches."""
        try:
            yield
        except OSError as error:
            if not self._hands_over:
                raise
            warn_not_written(path, error)

    def _warn_of_nothing(self) -> None:
        """Warn that nothing was recorded, and say how many steps the schedule needs for its first trace."""
        needed = next(
            (n + 1 for n in range(10_000) if self.schedule(n) is ProfilerAction.RECORD_AND_SAVE), None
        )
        wants = "never saves a trace" if needed is None else f"needs {needed} before the first trace"
        warnings.warn(
            f"profile ended after {self.step_num} step{'s' * (self.step_num != 1)}; the schedule {wants}; nothing was recorded",
            stacklevel=4,
        )

    def _transit_action(self, before: ProfilerAction, after: ProfilerAction | None) -> None:
        if after is ProfilerAction.RECORD or after is ProfilerAction.RECORD_AND_SAVE:
            self._recorded = True
        for action in self.action_map.get((before, after), ()):
            action()


def _always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def _warn_warmup_ended() -> None:
    warnings.warn("Incorrect schedule: WARMUP followed by NONE", stacklevel=4)


def _warn_record_ended() -> None:
    warnings.warn("Incorrect schedule: RECORD followed by NONE", stacklevel=4)
