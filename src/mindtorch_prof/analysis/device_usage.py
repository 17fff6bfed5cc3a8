"""Device usage: a Trace in; busy and idle time of each stream and device out. Overlapping work counts once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import BoolArray, IntArray
from ..trace import DEVICE_COPY, DEVICE_KERNEL, DEVICE_SET, Device, Trace
from .intervals import covered, union

ALL_STREAMS = -1


@dataclass(frozen=True)
class Usage:
    """A stream of a device, or all streams of it together (`stream` is -1). Times are in microseconds."""

    device: int
    stream: int
    events: int  # kernels, copies and memsets
    span_us: float  # from the start of the device's first event to the end of its last, the same for all its streams
    busy_us: float  # in which at least one of the events ran
    idle_us: float  # the rest of the span
    kernel_us: float  # in which at least one kernel ran
    copy_us: float  # in which at least one copy or memset ran
    longest_idle_us: float

    @property
    def utilisation(self) -> float:
        """Busy time as a share of the span, from 0 to 1."""
        return self.busy_us / self.span_us if self.span_us else 0.0


def device_usage(trace: Trace) -> list[Usage]:
    """One row per device for all its streams together, followed by one row per stream."""
    device = trace.device
    works = device.works
    rows = []
    for index in np.unique(device.device[works]).tolist():
        here = works & (device.device == index)
        span = int(device.start_ns[here].min()), int(device.end_ns[here].max())
        rows.append(_usage(device, here, index, ALL_STREAMS, span))
        rows += [
            _usage(device, here & (device.stream == stream), index, stream, span)
            for stream in np.unique(device.stream[here]).tolist()
        ]
    return rows


def _usage(device: Device, which: BoolArray, index: int, stream: int, span: tuple[int, int]) -> Usage:
    start, end = union(device.start_ns[which], device.end_ns[which])
    busy = int((end - start).sum())
    gaps = np.append(start, span[1]) - np.insert(end, 0, span[0])
    copies = (device.kind == DEVICE_COPY) | (device.kind == DEVICE_SET)
    return Usage(
        index,
        stream,
        int(which.sum()),
        (span[1] - span[0]) / 1000,
        busy / 1000,
        (span[1] - span[0] - busy) / 1000,
        _busy_ns(device, which & (device.kind == DEVICE_KERNEL)) / 1000,
        _busy_ns(device, which & copies) / 1000,
        int(gaps.max(initial=0)) / 1000,
    )


def _busy_ns(device: Device, which: BoolArray) -> int:
    start, end = union(device.start_ns[which], device.end_ns[which])
    return int((end - start).sum())


def covered_within(begin: IntArray, end: IntArray, work_start: IntArray, work_end: IntArray) -> IntArray:
    """How much of each time from `begin` to `end` is covered by work."""
    return covered(union(work_start, work_end), begin, end)
