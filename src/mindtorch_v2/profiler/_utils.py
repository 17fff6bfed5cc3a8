"""torch.profiler._utils: the engine's evaluation of event trees under torch's import path."""

from __future__ import annotations

from mindtorch_prof.torch_api.basic_evaluation import (
    BasicEvaluation,
    ContextStackEntry,
    EventKey,
    EventMetrics,
    Interval,
    TimelineEvent,
    _traverse,
    argmax,
    index_of_first_match,
    map_recorded_events_to_aten_ops_with_stack_trace,
    source_code_location,
    traverse_bfs,
    traverse_dfs,
)
from mindtorch_prof.torch_api.enums import DeviceType

from .recording import profile

__all__ = [
    "BasicEvaluation",
    "ContextStackEntry",
    "DeviceType",
    "EventKey",
    "EventMetrics",
    "Interval",
    "TimelineEvent",
    "_init_for_cuda_graphs",
    "_traverse",
    "argmax",
    "index_of_first_match",
    "map_recorded_events_to_aten_ops_with_stack_trace",
    "profile",
    "source_code_location",
    "traverse_bfs",
    "traverse_dfs",
]


def _init_for_cuda_graphs() -> None:
    """Run a profiler once. Programs do so before they capture CUDA graphs, since a profiler must not be initialised inside a capture."""
    with profile():
        pass
