"""torch._C._profiler's names that programs use: settings, scopes, activities, states."""

from __future__ import annotations

from ..profiler.annotation import record_function as _RecordFunctionFast
from ..profiler.config import ProfilerConfig, _ExperimentalConfig
from ..profiler.devices import ActiveProfilerType, ProfilerActivity, ProfilerState, RecordScope

__all__ = [
    "ActiveProfilerType",
    "ProfilerActivity",
    "ProfilerConfig",
    "ProfilerState",
    "RecordScope",
    "_ExperimentalConfig",
    "_RecordFunctionFast",
]
