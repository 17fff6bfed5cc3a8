"""torch.autograd.profiler_legacy: the profiler before Kineto, on top of the same recorder."""

# Programs also use names that are not in torch's __all__.
# ruff: noqa: F401

from __future__ import annotations

from typing import Any, Literal

from mindtorch_prof.torch_api.enums import DeviceType, ProfilerState
from mindtorch_prof.torch_api.event_list import EventList
from mindtorch_prof.torch_api.events import FunctionEvent

from ..profiler.c_api import _disable_profiler_legacy, _enable_profiler_legacy, _stop_legacy
from ..profiler.experimental_config import ProfilerConfig, _ExperimentalConfig

__all__ = ["profile"]

MEMORY_EVENT_NAME = "[memory]"
_UNFINISHED = "<unfinished profile.profiler_legacy.profile>"


class profile:
    """Record the ops inside the `with` block."""

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
        self.function_events: EventList | None = None
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

    def __repr__(self) -> str:
        return _UNFINISHED if self.function_events is None else repr(self.function_events)

    def __str__(self) -> str:
        return _UNFINISHED if self.function_events is None else str(self.function_events)

    def _check_finish(self) -> EventList:
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """All events as text."""
        return self._check_finish().table(
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            top_level_events_only=top_level_events_only,
        )

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as a trace file."""
        self._check_finish().export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write folded stacks with a metric, for flame graphs."""
        self._check_finish()
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self._results.export_stacks(path, metric)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """Averages over events of one name, optionally also of one input shape or stack."""
        self._check_finish()
        return self._results.key_averages(group_by_input_shape, group_by_stack_n, False)

    def total_average(self) -> Any:
        """The sum of all events, as a row `Total`."""
        return self._check_finish().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of self CPU time, in microseconds."""
        return self._check_finish().self_cpu_time_total
