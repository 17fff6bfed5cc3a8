"""torch.autograd.profiler's names: the older face of the profiler."""

from __future__ import annotations

from ..profiler.annotation import record_function
from ..profiler.event_list import EventList
from ..profiler.events import FunctionEvent, MemRecordsAcc

__all__ = ["EventList", "FunctionEvent", "MemRecordsAcc", "record_function"]
