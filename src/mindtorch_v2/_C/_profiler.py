"""torch._C._profiler: the event tree's classes, settings, scopes, flags and tracebacks, re-exported from the
profiler.
"""

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

from ..profiler import process_flags
from ..profiler.execution_trace_observer import (
    _add_execution_trace_observer,
    _disable_execution_trace_observer,
    _enable_execution_trace_observer,
    _remove_execution_trace_observer,
)
from ..profiler.experimental_config import ProfilerConfig, _ExperimentalConfig
from ..profiler.record.unix_time import unix_origin_ns
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
    """A snapshot of a Python stack, created by `gather_traceback` and read by `symbolize_tracebacks`. Keeps
    no frame alive.
    """

    __slots__ = ("_calls",)
    _calls: list[tuple[CodeType, int]]  # innermost first: code object, line number

    def __new__(cls, *args: Any, **kwargs: Any) -> CapturedTraceback:
        raise TypeError("cannot create 'torch._C._profiler.CapturedTraceback' instances")


def gather_traceback(python: bool = True, script: bool = True, cpp: bool = True) -> CapturedTraceback:
    """The stack of the caller. There are no frames of TorchScript or C++ here; without `python` it is empty."""
    traceback = object.__new__(CapturedTraceback)
    traceback._calls = []
    frame = sys._getframe(1) if python else None
    while frame is not None:
        traceback._calls.append((frame.f_code, frame.f_lineno or frame.f_code.co_firstlineno))
        frame = frame.f_back
    return traceback


def symbolize_tracebacks(tracebacks: list[CapturedTraceback]) -> list[list[dict[str, Any]]]:
    """Function names, files and lines of tracebacks, innermost first."""
    return [
        [
            {"name": code.co_name, "filename": code.co_filename, "line": line}
            for code, line in traceback._calls
        ]
        for traceback in tracebacks
    ]


def symbolize_addresses(addresses: Sequence[int], mode: str) -> list[tuple[str, int, str]]:
    """File, line and function at machine-code addresses: unknown, because there is no compiled code of ours."""
    return [("??", 0, "??") for _ in addresses]


def _get_approximate_time() -> int:
    """The current time on the clock of recorded events."""
    return time.perf_counter_ns()


class _ApproximateClockToUnixTimeConverter:
    """Converts times of recorded events to nanoseconds since the epoch."""

    def __init__(self) -> None:
        self._origin = unix_origin_ns()

    def to_unix_ns(self, at: int) -> int:
        """The time `at` in nanoseconds since the epoch."""
        return at + self._origin


def _set_fwd_bwd_enabled_val(enabled: bool) -> None:
    """Set whether trace files link backward nodes to their forward ops."""
    process_flags.forward_backward_links = bool(enabled)


def _set_record_concrete_inputs_enabled_val(enabled: bool) -> None:
    """Set whether events show the values of list arguments."""
    process_flags.concrete_inputs = bool(enabled)


def _set_cuda_sync_enabled_val(enabled: bool) -> None:
    """Set whether CUDA synchronisation is recorded. The setting is stored; there is no CUDA."""
    process_flags.cuda_sync = bool(enabled)
