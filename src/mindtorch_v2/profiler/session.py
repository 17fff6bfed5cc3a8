"""Sessions: `profile` and `_KinetoProfile`. When to record, what to do with a finished recording; lifecycle, callbacks, metadata."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from .. import _dispatch
from .annotation import record_function
from .devices import ProfilerActivity
from .export import chrome
from .recorder import Config, Recorder
from .results import Results
from .schedule import ProfilerAction


def supported_activities() -> set[ProfilerActivity]:
    """What can be recorded here: the CPU."""
    return {ProfilerActivity.CPU}


class _KinetoProfile:
    """A recording from start to stop, and what it shows."""

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        self.activities = set(activities) if activities else supported_activities()
        self.record_shapes = record_shapes
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.experimental_config = experimental_config
        self.execution_trace_observer = execution_trace_observer
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.preset_metadata: dict[str, str] = {}
        self._recorder: Recorder | None = None
        self._results: Results | None = None
        self._metadata: dict[str, Any] = {}

    def _config(self) -> Config:
        every = bool(getattr(self.experimental_config, "profile_all_threads", False))
        return Config(
            self.record_shapes,
            self.profile_memory,
            self.with_stack,
            self.with_flops,
            self.with_modules,
            all_threads=every,
        )

    def start(self) -> None:
        """Begin to record."""
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        """End the recording."""
        self.stop_trace()

    def prepare_trace(self) -> None:
        """Get ready to record."""
        if self._recorder is None or not self.acc_events:
            self._recorder = Recorder(self._config())

    def start_trace(self) -> None:
        """Record from now on."""
        if self.execution_trace_observer:
            self.execution_trace_observer.start()
        if _dispatch.recorder is not None:
            raise RuntimeError("Can't start the profiler: another one is already recording; stop it first")
        if self._recorder is None:
            self.prepare_trace()
        assert self._recorder is not None
        self._recorder.start()
        for key, value in self.preset_metadata.items():
            self.add_metadata_json(key, value)

    def stop_trace(self) -> None:
        """Record no more; what was recorded can be asked for."""
        if self.execution_trace_observer:
            self.execution_trace_observer.stop()
        recorder, self._recorder = self._recorder, None
        if recorder is not None and getattr(_dispatch.ranges, "owner", None) is recorder:
            self._results = Results(recorder.stop())

    def _finished(self) -> Results:
        if self._results is None:
            raise AssertionError(
                "Profiler must be initialized before getting results: start it, run something and stop it"
            )
        return self._results

    def events(self) -> Any:
        """All events of the recording."""
        return self._finished().events

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> Any:
        """Averages over events of one name, optionally also of one input shape, stack or overload."""
        return self._finished().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str) -> None:
        """Write the recording as a trace file for Perfetto, TensorBoard and others; .gz compresses."""
        self._export_chrome_trace(path)

    def _export_chrome_trace(self, path: str, *, exclusive: bool = False) -> None:
        chrome.export_chrome_trace(self._finished().trace, path, self._metadata, exclusive=exclusive)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write folded stacks with a metric, for flame graphs."""
        self._finished().export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Put a string into the trace file."""
        self.add_metadata_json(key, '"' + value.replace('"', '\\"') + '"')

    def add_metadata_json(self, key: str, value: str) -> None:
        """Put a JSON value into the trace file."""
        self._metadata[key] = json.loads(value)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Put a JSON value into the trace file of every recording from now on."""
        self.preset_metadata[key] = value


class profile(_KinetoProfile):
    """Record what happens inside, by a schedule if one is given."""

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        chosen = set(activities) if activities else supported_activities()
        if use_cuda is not None:
            warnings.warn(
                "`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=2
            )
            if use_cuda:
                chosen.add(ProfilerActivity.CUDA)
            elif ProfilerActivity.CUDA in chosen:
                chosen.remove(ProfilerActivity.CUDA)
        if not chosen:
            raise AssertionError("No valid profiler activities found")
        super().__init__(
            activities=chosen,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer,
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
        )
        if schedule:
            self.schedule = schedule
            self.record_steps = True
        else:
            self.schedule = _always
            self.record_steps = False
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(self.step_num)
        self.step_rec_fn: record_function | None = None
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
        self.stop()

    def start(self) -> None:
        """Begin with step 0."""
        self._transit_action(ProfilerAction.NONE, self.current_action)
        if self.record_steps:
            self.step_rec_fn = record_function("ProfilerStep#" + str(self.step_num))
            self.step_rec_fn.__enter__()

    def stop(self) -> None:
        """End; a recording that is under way is finished and handed over."""
        if self.record_steps and self.step_rec_fn:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None
        self._transit_action(self.current_action, None)

    def step(self) -> None:
        """Say that the next step begins."""
        if self.record_steps and self.step_rec_fn:
            self.step_rec_fn.__exit__(None, None, None)
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._transit_action(before, self.current_action)
        if self.record_steps:
            self.step_rec_fn = record_function("ProfilerStep#" + str(self.step_num))
            self.step_rec_fn.__enter__()

    def _trace_ready(self) -> None:
        if self.on_trace_ready:
            self.on_trace_ready(self)

    def _transit_action(self, before: ProfilerAction, after: ProfilerAction | None) -> None:
        for action in self.action_map.get((before, after), ()):
            action()


def _always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def _warn_warmup_ended() -> None:
    warnings.warn("Incorrect schedule: WARMUP followed by NONE", stacklevel=4)


def _warn_record_ended() -> None:
    warnings.warn("Incorrect schedule: RECORD followed by NONE", stacklevel=4)
