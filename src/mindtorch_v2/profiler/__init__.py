"""The profiler: dispatched ops in, tables and traces out. Knows tensors only through the recorder's hook in the dispatcher."""

from __future__ import annotations

from .annotation import record_function
from .config import _ExperimentalConfig
from .devices import DeviceType, ProfilerActivity
from .export.handler import tensorboard_trace_handler
from .schedule import ProfilerAction, schedule
from .session import _KinetoProfile, profile, supported_activities

__all__ = [
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
    "ProfilerAction",
    "ProfilerActivity",
    "record_function",
    "DeviceType",
    "_ExperimentalConfig",
    "_KinetoProfile",
]
