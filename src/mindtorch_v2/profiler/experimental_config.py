"""torch's `_ExperimentalConfig`: further settings of a recording. Those that apply to a CPU are used, the others are only stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mindtorch_prof.torch_api.enums import ProfilerState


class _ExperimentalConfig:
    """Further settings of a recording. `profile_all_threads`: record every thread, not only the one that starts it."""

    def __init__(
        self,
        profiler_metrics: list[str] | None = None,
        profiler_measure_per_kernel: bool = False,
        verbose: bool = False,
        performance_events: list[str] | None = None,
        enable_cuda_sync_events: bool = False,
        adjust_profiler_step: bool = False,
        disable_external_correlation: bool = False,
        profile_all_threads: bool = False,
        capture_overload_names: bool = False,
        record_python_gc_info: bool = False,
        expose_kineto_event_metadata: bool = False,
        custom_profiler_config: str = "",
        adjust_timestamps: bool = False,
        trace_only: bool = False,
    ) -> None:
        self.profiler_metrics = list(profiler_metrics or [])
        self.profiler_measure_per_kernel = profiler_measure_per_kernel
        self.verbose = verbose
        self.performance_events = list(performance_events or [])
        self.enable_cuda_sync_events = enable_cuda_sync_events
        self.adjust_profiler_step = adjust_profiler_step
        self.disable_external_correlation = disable_external_correlation
        self.profile_all_threads = profile_all_threads
        self.capture_overload_names = capture_overload_names
        self.record_python_gc_info = record_python_gc_info
        self.expose_kineto_event_metadata = expose_kineto_event_metadata
        self.custom_profiler_config = custom_profiler_config
        self.adjust_timestamps = adjust_timestamps
        self.trace_only = trace_only
        for name, value in vars(self).items():
            expected = {
                "profiler_metrics": list,
                "performance_events": list,
                "custom_profiler_config": str,
            }.get(name)
            # as in torch, a switch is anything that has a truth value of its own, such as 0 or None; a str or a list has none
            if not (hasattr(value, "__bool__") if expected is None else isinstance(value, expected)):
                kind = "True or False" if expected is None else f"a {expected.__name__}"
                raise TypeError(f"{name} of _ExperimentalConfig must be {kind}, got {value!r}")

    def __repr__(self) -> str:
        return f"_ExperimentalConfig({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class ProfilerConfig:
    """The settings of one recording, in torch's order."""

    state: ProfilerState
    report_input_shapes: bool
    profile_memory: bool
    with_stack: bool
    with_flops: bool
    with_modules: bool
    experimental_config: _ExperimentalConfig
    trace_id: str = ""
