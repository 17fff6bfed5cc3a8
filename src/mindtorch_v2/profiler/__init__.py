"""`torch.profiler`: records what runs in this process; what the recordings show comes from the trace engine, `mindtorch_prof`."""

from __future__ import annotations

from importlib import import_module as _import_module
from types import ModuleType as _ModuleType

from mindtorch_prof.load import load
from mindtorch_prof.torch_api import op_schemas as _op_schemas
from mindtorch_prof.torch_api import torch_types as _torch_types
from mindtorch_prof.torch_api.enums import DeviceType, ProfilerActivity, RecordScope

from .. import _device, _dtype
from . import itt, profiler
from .execution_trace_observer import ExecutionTraceObserver
from .experimental_config import _ExperimentalConfig
from .record_function import record_function
from .schedule import ProfilerAction, schedule
from .schema_source import OpSchemas as _OpSchemas
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

# The engine has no tensors: event trees of recordings and of files show this library's types and schemas.
_torch_types.register(
    _torch_types.TorchTypes(
        dtype={dtype._name: dtype for dtype in (*_dtype.ALL, *_dtype.FLOAT8)}.get,
        layout=lambda name: getattr(_dtype, name),
        device=_device.device,
    )
)
_op_schemas.register(_OpSchemas())

_SUBMODULES = ("_memory_profiler", "_pattern_matcher", "_utils")  # imported when they are asked for


def __getattr__(name: str) -> _ModuleType:
    if name in _SUBMODULES:
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES})
