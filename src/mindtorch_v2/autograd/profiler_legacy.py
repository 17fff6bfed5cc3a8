"""torch.autograd.profiler_legacy: the profiler before Kineto, on top of the same recorder."""

# Programs also use names that are not in torch's __all__.
# ruff: noqa: F401

from __future__ import annotations

from typing import Any, Literal

from mindtorch_prof.torch_api.enums import DeviceType, ProfilerState
from mindtorch_prof.torch_api.event_list import EventList
from mindtorch_prof.torch_api.facade import EventAnswers
from mindtorch_prof.torch_api.function_events import MEMORY_EVENT_NAME, FunctionEvent, FunctionEventAvg
from mindtorch_prof.torch_api.results import Results

from ..profiler.c_api import _disable_profiler_legacy, _enable_profiler_legacy, _stop_legacy
from ..profiler.experimental_config import ProfilerConfig, _ExperimentalConfig

__all__ = ["profile"]


class profile(EventAnswers):
    """Record the ops inside the `with` block."""

    _unfinished = "<unfinished profile.profiler_legacy.profile>"

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
    ) -> None:
        self.enabled = enabled
        if not enabled:
            return
        if use_cuda:
            import warnings

            warnings.warn("CUDA is not available, disabling CUDA profiling", stacklevel=2)
        self.use_cuda = False
        self.function_events: EventList[FunctionEvent] | None = None
        self._results = None
        self.entered = False
        self.record_shapes = record_shapes or with_flops
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.profiler_kind = ProfilerState.CPU

    def config(self) -> ProfilerConfig:
        """The settings in the form of torch's C++ class."""
        return ProfilerConfig(
            self.profiler_kind,
            self.record_shapes,
            self.profile_memory,
            self.with_stack,
            self.with_flops,
            self.with_modules,
            _ExperimentalConfig(),
        )

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self._start_trace()
        return self

    def _start_trace(self) -> None:
        _enable_profiler_legacy(self.config())

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> Literal[False] | None:
        if not self.enabled:
            return None
        self._results = _stop_legacy()
        self.function_events = self._results.events
        return False

    def _check_finish(self) -> None:
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")

    def _event_list(self) -> EventList[FunctionEvent]:
        return self._finished().events

    def _listed_results(self) -> Results:
        return self._finished()

    def _finished(self) -> Results:
        self._check_finish()
        assert self._results is not None
        return self._results

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as a trace file."""
        self._event_list().export_chrome_trace(path)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0
    ) -> EventList[FunctionEventAvg]:
        """Averages over events of one name, optionally also of one input shape or stack."""
        return super().key_averages(group_by_input_shape, group_by_stack_n)
