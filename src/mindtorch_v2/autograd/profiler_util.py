"""torch.autograd.profiler_util: events, averages and their list."""

# Programs also use names that are not in torch's __all__.
# ruff: noqa: F401

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindtorch_prof.frames import is_hidden_by_torch
from mindtorch_prof.number_formats import format_memory as _format_memory
from mindtorch_prof.number_formats import format_share as _format_time_share
from mindtorch_prof.number_formats import format_time as _format_time
from mindtorch_prof.steps import ALL_STEPS, STEP_PREFIX
from mindtorch_prof.torch_api.enums import DeviceType
from mindtorch_prof.torch_api.event_list import EventList
from mindtorch_prof.torch_api.event_metadata import EventMetadata
from mindtorch_prof.torch_api.function_events import (
    MEMORY_EVENT_NAME,
    OUT_OF_MEMORY_EVENT_NAME,
    FormattedTimesMixin,
    FunctionEvent,
    FunctionEventAvg,
    Interval,
    Kernel,
    MemRecordsAcc,
    StringTable,
)
from mindtorch_prof.torch_api.table import table
from mindtorch_prof.trace import HIDDEN_EVENTS

_HIDDEN = HIDDEN_EVENTS | {MEMORY_EVENT_NAME, OUT_OF_MEMORY_EVENT_NAME}


def _filter_name(name: str) -> bool:
    """Whether events of this name are left out of lists."""
    return name in _HIDDEN


def _filter_stack_entry(entry: str) -> bool:
    """Whether a frame of a stack is shown: those of autograd itself are not."""
    return not is_hidden_by_torch(entry)


def _rewrite_name(name: str, with_wildcard: bool = False) -> str:
    """The name as displayed; `with_wildcard`: without the number of the step."""
    return ALL_STEPS if with_wildcard and name.startswith(STEP_PREFIX) else StringTable()[name]


def _attr_formatter(name: str) -> Any:
    """A property that formats another property, a time, as text."""
    return property(lambda self: _format_time(getattr(self, name)))


def _build_table(
    events: Sequence[Any],
    sort_by: str | None = None,
    header: str | None = None,
    row_limit: int = 100,
    max_src_column_width: int = 75,
    max_name_column_width: int = 55,
    max_shapes_column_width: int = 80,
    with_flops: bool = False,
    profile_memory: bool = False,
    top_level_events_only: bool = False,
    time_unit: str | None = None,
) -> str:
    """Events or averages as text."""
    return table(
        events,
        sort_by=sort_by,
        header=header,
        row_limit=row_limit,
        max_src_column_width=max_src_column_width,
        max_name_column_width=max_name_column_width,
        max_shapes_column_width=max_shapes_column_width,
        with_flops=with_flops,
        profile_memory=profile_memory,
        top_level_events_only=top_level_events_only,
        time_unit=time_unit,
    )


__all__ = [
    "EventList",
    "EventMetadata",
    "FormattedTimesMixin",
    "Interval",
    "Kernel",
    "FunctionEvent",
    "FunctionEventAvg",
    "StringTable",
    "MemRecordsAcc",
]
