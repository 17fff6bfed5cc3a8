"""The profiler: dispatched ops in, tables and traces out. Knows tensors only through the recorder's hook in the dispatcher.

Names are imported when they are first used, so that reading a trace file loads neither recorder nor tensors.
"""

from __future__ import annotations

import importlib as _importlib
import sys as _sys
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    # Programs also use names that are not in torch's __all__.
    from . import itt, profiler  # noqa: F401
    from .annotation import record_function
    from .config import _ExperimentalConfig  # noqa: F401
    from .devices import DeviceType, ProfilerActivity, RecordScope  # noqa: F401
    from .export.handler import tensorboard_trace_handler
    from .load import load  # noqa: F401
    from .observer import ExecutionTraceObserver
    from .schedule import ProfilerAction, schedule
    from .session import _KinetoProfile, kineto_available, profile, supported_activities  # noqa: F401
    from .steps import KinetoStepTracker  # noqa: F401

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

# Where a name comes from. A name that is also a module's (`schedule`, `load`) means what stands here, not the module.
_HOMES = {
    "profile": "session",
    "_KinetoProfile": "session",
    "kineto_available": "session",
    "supported_activities": "session",
    "record_function": "annotation",
    "_ExperimentalConfig": "config",
    "DeviceType": "devices",
    "ProfilerActivity": "devices",
    "RecordScope": "devices",
    "tensorboard_trace_handler": "export.handler",
    "ExecutionTraceObserver": "observer",
    "ProfilerAction": "schedule",
    "schedule": "schedule",
    "KinetoStepTracker": "steps",
    "load": "load",
}
_MODULES = ("itt", "profiler", "_utils", "_memory_profiler", "_pattern_matcher")


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _importlib.import_module(f".{name}", __name__)
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = getattr(_importlib.import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})


class _Package(_ModuleType):
    """Importing a sub-module sets it as an attribute of its package; a name of `_HOMES` stays what it is."""

    def __setattr__(self, name: str, value: _Any) -> None:
        if name not in _HOMES or not isinstance(value, _ModuleType):
            super().__setattr__(name, value)


_sys.modules[__name__].__class__ = _Package
