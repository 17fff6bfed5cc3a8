"""torch.autograd.profiler_util's names: events, averages and their list."""

from __future__ import annotations

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

__all__ = ["EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval", "Kernel", "MemRecordsAcc", "StringTable"]
