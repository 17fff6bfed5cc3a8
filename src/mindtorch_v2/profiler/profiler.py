"""torch.profiler.profiler's names: sessions and schedules under torch's import path."""

# Programs also use names that are not in torch's __all__.
# ruff: noqa: F401

from __future__ import annotations

from mindtorch_prof.torch_api.enums import ProfilerActivity

from .execution_trace_observer import ExecutionTraceObserver, _ITraceObserver
from .experimental_config import _ExperimentalConfig
from .schedule import ProfilerAction, _default_schedule_fn, schedule
from .session import (
    PROFILER_STEP_NAME,
    _KinetoProfile,
    kineto_available,
    profile,
    supported_activities,
)
from .trace_handler import tensorboard_trace_handler

__all__ = [
    "supported_activities",
    "ProfilerAction",
    "schedule",
    "tensorboard_trace_handler",
    "profile",
    "ExecutionTraceObserver",
]
