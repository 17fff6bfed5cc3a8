"""torch.autograd.profiler: the older interface of the profiler."""

# Programs also use names that are not in torch's __all__.
# ruff: noqa: F401

from __future__ import annotations

from typing import Any

from mindtorch_prof.torch_api.enums import DeviceType, ProfilerActivity, ProfilerState
from mindtorch_prof.torch_api.event_list import EventList
from mindtorch_prof.torch_api.function_events import (
    MEMORY_EVENT_NAME,
    OUT_OF_MEMORY_EVENT_NAME,
    FunctionEvent,
    MemRecordsAcc,
)

from ..profiler.experimental_config import ProfilerConfig, _ExperimentalConfig
from ..profiler.record_function import record_function
from ..profiler.recording import _ProfilerStats, profile, recording_now
from ..profiler.session import kineto_available
from ..profiler.step_tracker import KinetoStepTracker

__all__ = [
    "profile",
    "record_function",
    "emit_itt",
    "emit_nvtx",
    "load_nvprof",
    "EnforceUnique",
    "parse_nvprof_trace",
    "KinetoStepTracker",
    "EventList",
    "FunctionEvent",
    "MemRecordsAcc",
]


def __getattr__(name: str) -> Any:
    if name == "_is_profiler_enabled":
        from mindtorch_prof.torch_api.enums import ActiveProfilerType

        from ..profiler.c_api import _profiler_type

        return recording_now() and _profiler_type() is not ActiveProfilerType.LEGACY
    if name in _C_FUNCTIONS:
        from .. import autograd

        return getattr(autograd, name)
    raise AttributeError(f"module 'torch.autograd.profiler' has no attribute '{name}'")


# the profiler's C functions, which torch.autograd has too
_C_FUNCTIONS = frozenset(
    "_ProfilerResult _disable_profiler _enable_profiler _kineto_step _prepare_profiler _supported_activities "
    "_toggle_collection_dynamic".split()
)


class _Emitter:
    """Context manager that would emit ops to another tool. There is no such tool, so it has no effect."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.entered = False
        self.record_shapes = record_shapes

    def __enter__(self) -> Any:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError(f"{self._tool} annotation context manager is not reentrant")
        self.entered = True
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> bool | None:
        return False if self.enabled else None

    _tool = ""


class emit_itt(_Emitter):
    """Emit ops to Intel's ITT: has no effect here."""

    _tool = "ITT"


class emit_nvtx(_Emitter):
    """Emit ops to NVIDIA's NVTX: has no effect here."""

    _tool = "NVTX"


class EnforceUnique:
    """Raises if a key is seen more than once."""

    def __init__(self) -> None:
        self.seen: set[tuple[object, ...]] = set()

    def see(self, *key: Any) -> None:
        """Record a key; raise if it was recorded before."""
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


def load_nvprof(path: str) -> EventList[FunctionEvent]:
    """Raises: nvprof's databases hold CUDA runs."""
    return EventList(parse_nvprof_trace(path))


def parse_nvprof_trace(path: str) -> list[FunctionEvent]:
    """Raises: nvprof's databases hold CUDA runs."""
    raise NotImplementedError(
        f"{path}: nvprof databases are not read; export the run as a Chrome trace instead"
    )
