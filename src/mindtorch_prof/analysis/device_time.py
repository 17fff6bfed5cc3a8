"""The time of one device: a trace in; when the device computes, communicates, copies or is idle, and why, out as intervals.

The parts are those of the breakdown (`device_breakdown`) and of the idle causes (`idle_causes`): they cover the device's span, and no two overlap.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..arrays import IntArray
from ..trace import Trace
from .device_breakdown import COMMUNICATION, COMPUTATION, COPY, DeviceWork, device_work
from .idle_causes import (
    COLLECTIVE_WAIT,
    HOST_LATE,
    KERNEL_SWITCH,
    LAUNCH_DELAY,
    STREAM_WAIT,
    SYNCHRONISATION,
    UNKNOWN,
    DeviceIdle,
    idle_causes,
)
from .intervals import Intervals, common, union, union_lengths, without

# in which order the causes of a gap follow each other in it
_ORDER = (
    SYNCHRONISATION,
    HOST_LATE,
    LAUNCH_DELAY,
    COLLECTIVE_WAIT,
    STREAM_WAIT,
    KERNEL_SWITCH,
    UNKNOWN,
)


class DeviceTime:
    """One device of a trace. Rows are those of `Trace.device`."""

    def __init__(self, trace: Trace, work: DeviceWork, place: int) -> None:
        self._trace = trace
        here = work.place == place
        self.number = int(work.numbers[place])
        self.rows: IntArray = work.rows[here]
        self._start, self._end = work.start_ns[here], work.end_ns[here]
        self._class = work.work_class[here]

    @cached_property
    def idle(self) -> DeviceIdle:
        return idle_causes(self._trace, only=self.number)[0]

    def rows_of(self, work_class: int) -> IntArray:
        """The work that is COMPUTATION, COMMUNICATION or COPY."""
        rows: IntArray = self.rows[self._class == work_class]
        return rows

    def times(self, rows: IntArray) -> Intervals:
        """When at least one of some pieces of work runs."""
        place = np.searchsorted(self.rows, rows)
        return union(self._start[place], self._end[place])

    @cached_property
    def computation(self) -> Intervals:
        return self.times(self.rows_of(COMPUTATION))

    @cached_property
    def exposed_communication(self) -> Intervals:
        return without(self.times(self.rows_of(COMMUNICATION)), self.computation)

    @cached_property
    def exposed_copies(self) -> Intervals:
        others = self.times(self.rows[self._class != COPY])
        return without(self.times(self.rows_of(COPY)), others)

    @cached_property
    def busy_ns(self) -> int:
        """How long at least one piece of work runs; at least 1."""
        start, end = union(self._start, self._end)
        return max(1, int((end - start).sum()))

    def caused_by(self, cause: int) -> Intervals:
        """By gap, the part of it that is charged to a cause; parts may be empty."""
        charges = self.idle.gaps.charges
        before = list(_ORDER[: _ORDER.index(cause)])
        begin = self.idle.gaps.start_ns + charges[:, before].sum(axis=1)
        return begin, begin + charges[:, cause]

    def idle_during(self, times: Intervals) -> Intervals:
        """The parts of times in which the device is idle."""
        gaps = self.idle.gaps
        return common(times, union(gaps.start_ns, gaps.end_ns))


def busiest_device(trace: Trace) -> DeviceTime | None:
    """The device that is busy longest; None: there is no device work."""
    work = device_work(trace)
    if not len(work.rows):
        return None
    busy = union_lengths(work.place, work.start_ns, work.end_ns, len(work.numbers))
    return DeviceTime(trace, work, int(np.argmax(busy)))
