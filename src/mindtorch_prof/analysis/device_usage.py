"""Device usage: a Trace in; how busy each device and each of its streams was, out. The figures are those of `device_breakdown`."""

from __future__ import annotations

from dataclasses import dataclass

from ..trace import Trace
from .device_breakdown import Breakdown, device_breakdown

ALL_STREAMS = -1


@dataclass(frozen=True)
class Usage:
    """A stream of a device, or all streams of it together (`stream` is -1). Times are in microseconds."""

    device: int
    stream: int
    events: int  # kernels, copies and memory fills
    span_us: float  # from the start of the device's first work to the end of its last, the same for all its streams
    busy_us: float  # in which at least one of the events ran
    idle_us: float  # the rest of the span
    kernel_us: float  # in which at least one kernel or memory fill ran
    copy_us: float  # in which at least one copy ran
    longest_idle_us: float

    @property
    def utilisation(self) -> float:
        """Busy time as a share of the span, from 0 to 1."""
        return self.busy_us / self.span_us if self.span_us else 0.0


def device_usage(trace: Trace) -> list[Usage]:
    """One row per device for all its streams together, followed by one row per stream."""
    rows = []
    for whole in device_breakdown(trace):
        rows.append(_usage(whole, whole.device, ALL_STREAMS, whole.events, whole.longest_idle_ns))
        rows += [
            _usage(stream, whole.device, stream.stream, stream.events, stream.longest_idle_ns)
            for stream in whole.streams
        ]
    return rows


def _usage(times: Breakdown, device: int, stream: int, events: int, longest_idle_ns: int) -> Usage:
    kernels_ns = times.computation_ns + times.exposed_communication_ns
    return Usage(
        device,
        stream,
        events,
        times.span_us,
        times.busy_us,
        times.idle_us,
        kernels_ns / 1000,
        times.copy_us,
        longest_idle_ns / 1000,
    )
