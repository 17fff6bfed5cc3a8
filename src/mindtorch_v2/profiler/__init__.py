"""The profiler: dispatched ops in, tables and traces out. Knows tensors only through the recorder's hook in the dispatcher."""

# Programs also use names that are not in torch's __all__.
# ruff: noqa: F401

from __future__ import annotations

from . import itt, profiler
from .annotation import record_function
from .config import _ExperimentalConfig
from .devices import DeviceType, ProfilerActivity, RecordScope
from .export.handler import tensorboard_trace_handler
from .observer import ExecutionTraceObserver
from .schedule import ProfilerAction, schedule
from .session import _KinetoProfile, kineto_available, profile, supported_activities
from .steps import KinetoStepTracker

__all__ = [
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "DeviceType",
    "record_function",
    "ExecutionTraceObserver",
]
