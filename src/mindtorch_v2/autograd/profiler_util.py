"""torch.autograd.profiler_util's names: events, averages and their list."""

# Programs also use names that are not in torch's __all__.
# ruff: noqa: F401

from __future__ import annotations

from ..profiler.devices import DeviceType
from ..profiler.event_list import EventList
from ..profiler.events import (
    FormattedTimesMixin,
    FunctionEvent,
    FunctionEventAvg,
    Interval,
    Kernel,
    MemRecordsAcc,
    StringTable,
)
from ..profiler.metadata import EventMetadata
from ..profiler.text import format_memory as _format_memory
from ..profiler.text import format_share as _format_time_share
from ..profiler.text import format_time as _format_time

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
