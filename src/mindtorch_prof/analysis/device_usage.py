"""How busy devices were: a Trace in; busy and idle time of each stream and device out. Overlapping work counts once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import BoolArray, IntArray
from ..trace import DEVICE_COPY, DEVICE_KERNEL, DEVICE_SET, Trace

ALL_STREAMS = -1


@dataclass(frozen=True)
class Usage:
    """A stream of a device, or all streams of it together (`stream` is -1). Times are in microseconds."""

    device: int
    stream: int
    events: int  # kernels, copies and fills
    span_us: float  # from the beginning of the device's first event to the end of its last, the same for all its streams
    busy_us: float  # in which at least one of the events ran
    idle_us: float  # the rest of the span
    kernel_us: float  # in which at least one kernel ran
    copy_us: float  # in which at least one copy or fill ran
    longest_idle_us: float

    @property
    def utilisation(self) -> float:
        """Busy time as a share of the span, from 0 to 1."""
        return self.busy_us / self.span_us if self.span_us else 0.0


def device_usage(trace: Trace) -> list[Usage]:
    """One row per device for all its streams together, followed by one row per stream."""
    device, made = trace.device, []
    works = device.works
    for index in np.unique(device.device[works]).tolist():
        here = works & (device.device == index)
        span = int(device.start_ns[here].min()), int(device.end_ns[here].max())
        made.append(_usage(trace, here, index, ALL_STREAMS, span))
        made += [
            _usage(trace, here & (device.stream == stream), index, stream, span)
            for stream in np.unique(device.stream[here]).tolist()
        ]
    return made


def _usage(trace: Trace, which: BoolArray, index: int, stream: int, span: tuple[int, int]) -> Usage:
    device = trace.device
    start, end = merged_spans(device.start_ns[which], device.end_ns[which])
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
        covered(device.start_ns, device.end_ns, which & (device.kind == DEVICE_KERNEL)) / 1000,
        covered(device.start_ns, device.end_ns, which & copies) / 1000,
        int(gaps.max(initial=0)) / 1000,
    )


def covered(start: IntArray, end: IntArray, which: BoolArray) -> int:
    """Nanoseconds that at least one of the chosen spans covers."""
    first, last = merged_spans(start[which], end[which])
    return int((last - first).sum())


def merged_spans(start: IntArray, end: IntArray) -> tuple[IntArray, IntArray]:
    """Spans as ones that do not overlap, in the order of time."""
    if not len(start):
        return start, end
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    first = np.flatnonzero(np.append(True, start[1:] > reach[:-1]))
    return start[first], reach[np.append(first[1:] - 1, len(start) - 1)]


def covered_within(starts: IntArray, ends: IntArray, start: IntArray, end: IntArray) -> IntArray:
    """For each span (starts, ends) how much of it is covered by spans (start, end)."""
    first, last = merged_spans(start, end)
    if not len(first):
        return np.zeros(len(starts), np.int64)
    before = np.concatenate([[0], np.cumsum(last - first)])

    def until(times: IntArray) -> IntArray:
        place = np.searchsorted(first, times, side="right")
        open_ = np.maximum(place - 1, 0)
        return before[place] - np.where(place > 0, np.maximum(last[open_] - times, 0), 0)

    return until(ends) - until(starts)
