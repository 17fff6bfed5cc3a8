"""torch.profiler.profiler's names: sessions and schedules under torch's import path."""

# Programs also use names that are not in torch's __all__.
# ruff: noqa: F401

from __future__ import annotations

from .config import _ExperimentalConfig
from .devices import ProfilerActivity
from .export.handler import tensorboard_trace_handler
from .observer import ExecutionTraceObserver, _ITraceObserver
from .schedule import ProfilerAction, schedule
from .session import (
    PROFILER_STEP_NAME,
    _KinetoProfile,
    kineto_available,
    profile,
    supported_activities,
)

__all__ = [
    "supported_activities",
    "ProfilerAction",
    "schedule",
    "tensorboard_trace_handler",
    "profile",
    "ExecutionTraceObserver",
]
