"""`torch.profiler`: records what runs in this process; what the recordings show comes from the trace engine, `mindtorch_prof`."""

from __future__ import annotations

from mindtorch_prof.load import load
from mindtorch_prof.torch_api.enums import DeviceType, ProfilerActivity, RecordScope

from . import _memory_profiler, _pattern_matcher, _utils, itt, profiler
from .execution_trace_observer import ExecutionTraceObserver
from .experimental_config import _ExperimentalConfig
from .record_function import record_function
from .schedule import ProfilerAction, schedule
from .session import _KinetoProfile, kineto_available, profile, supported_activities
from .step_tracker import KinetoStepTracker
from .trace_handler import tensorboard_trace_handler

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
