"""torch._C._profiler: the event tree's classes, settings, scopes, switches, tracebacks. Working parts of the profiler under torch's names."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import CodeType
from typing import Any

from mindtorch_prof.torch_api.enums import ActiveProfilerType, ProfilerActivity, ProfilerState, RecordScope
from mindtorch_prof.torch_api.event_tree import _ProfilerEvent
from mindtorch_prof.torch_api.event_tree_fields import (
    _EventType,
    _ExtraFields_Allocation,
    _ExtraFields_Backend,
    _ExtraFields_Kineto,
    _ExtraFields_OutOfMemory,
    _ExtraFields_PyCall,
    _ExtraFields_PyCCall,
    _ExtraFields_TorchOp,
    _ExtraFields_Vulkan,
    _NNModuleInfo,
    _OptimizerInfo,
    _PyFrameState,
    _TensorMetadata,
)

from ..profiler import process_flags as switches
from ..profiler.execution_trace_observer import (
    _add_execution_trace_observer,
    _disable_execution_trace_observer,
    _enable_execution_trace_observer,
    _remove_execution_trace_observer,
)
from ..profiler.experimental_config import ProfilerConfig, _ExperimentalConfig
from ..profiler.record_function import _RecordFunctionFast

__all__ = [
    "ActiveProfilerType",
    "CapturedTraceback",
    "ProfilerActivity",
    "ProfilerConfig",
    "ProfilerState",
    "RecordScope",
    "_ApproximateClockToUnixTimeConverter",
    "_EventType",
    "_ExperimentalConfig",
    "_ExtraFields_Allocation",
    "_ExtraFields_Backend",
    "_ExtraFields_Kineto",
    "_ExtraFields_OutOfMemory",
    "_ExtraFields_PyCCall",
    "_ExtraFields_PyCall",
    "_ExtraFields_TorchOp",
    "_ExtraFields_Vulkan",
    "_NNModuleInfo",
    "_OptimizerInfo",
    "_ProfilerEvent",
    "_PyFrameState",
    "_RecordFunctionFast",
    "_TensorMetadata",
    "_add_execution_trace_observer",
    "_disable_execution_trace_observer",
    "_enable_execution_trace_observer",
    "_remove_execution_trace_observer",
    "_get_approximate_time",
    "_set_cuda_sync_enabled_val",
    "_set_fwd_bwd_enabled_val",
    "_set_record_concrete_inputs_enabled_val",
    "gather_traceback",
    "symbolize_addresses",
    "symbolize_tracebacks",
]


class CapturedTraceback:
    """A Python stack as it was; `gather_traceback` makes one, `symbolize_tracebacks` reads it. No frame is kept alive."""

    __slots__ = ("_calls",)
    _calls: list[tuple[CodeType, int]]  # innermost first: code, the line it was at

    def __new__(cls, *args: Any, **kwargs: Any) -> CapturedTraceback:
        raise TypeError("cannot create 'torch._C._profiler.CapturedTraceback' instances")


def gather_traceback(python: bool = True, script: bool = True, cpp: bool = True) -> CapturedTraceback:
    """The stack of the caller. There are no frames of TorchScript or C++ here; without `python` it is empty."""
    made = object.__new__(CapturedTraceback)
    made._calls = []
    frame = sys._getframe(1) if python else None
    while frame is not None:
        made._calls.append((frame.f_code, frame.f_lineno or frame.f_code.co_firstlineno))
        frame = frame.f_back
    return made


def symbolize_tracebacks(tracebacks: list[CapturedTraceback]) -> list[list[dict[str, Any]]]:
    """Names, files and lines of stacks, innermost first."""
    return [
        [{"name": code.co_name, "filename": code.co_filename, "line": line} for code, line in traceback._calls]
        for traceback in tracebacks
    ]


def symbolize_addresses(addresses: Sequence[int], mode: str) -> list[tuple[str, int, str]]:
    """File, line and function at addresses of machine code: unknown, there is no machine code of ours."""
    return [("??", 0, "??") for _ in addresses]


def _get_approximate_time() -> int:
    """The clock that events are recorded with."""
    return time.perf_counter_ns()


class _ApproximateClockToUnixTimeConverter:
    """From the events' clock to nanoseconds since the epoch."""

    def __init__(self) -> None:
        self._origin = time.time_ns() - time.perf_counter_ns()

    def to_unix_ns(self, at: int) -> int:
        """When that was, since the epoch."""
        return at + self._origin


def _set_fwd_bwd_enabled_val(enabled: bool) -> None:
    """Whether trace files tie backward nodes to the forward ops they are of."""
    switches.forward_backward_links = bool(enabled)


def _set_record_concrete_inputs_enabled_val(enabled: bool) -> None:
    """Whether events show the values of lists that went in."""
    switches.concrete_inputs = bool(enabled)


def _set_cuda_sync_enabled_val(enabled: bool) -> None:
    """Whether waiting for a CUDA device is recorded: kept, there is none."""
    switches.cuda_sync = bool(enabled)
