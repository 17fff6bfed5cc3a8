"""Figures of a whole recording: a recording in; its numbers of events, spans, busy times and peaks of memory out, each computed here only.

`summary`, `doctor`, `query`, `advise` and the report all show these figures, under these names:

- *events*: what the host did, as tables count it: neither synthetic events nor Python calls; an only child of its parent's name is its parent
- *device events*: kernels, copies and memsets; neither annotations on a device nor waiting
- *span*: from the first start to the last end of these events; marks of the recording's window, such as "Record Window End", are not part of it
- *device busy*: the union of a device's events, as a share of the device's own span (see `device_breakdown`)
- *without an op*: device time that no op of the trace launched, as a share of all device time
- *peak memory*: the highest running total of one device; totals of different devices are never added
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import BoolArray, IntArray, rows_by
from ..steps import steps_of
from ..trace import PYTHON, Trace
from .device_breakdown import device_breakdown, work_without_op
from .intervals import union
from .recording import Recording, as_results, recorded_results
from .sheet import Sheet
from .steps_table import working

if TYPE_CHECKING:
    from ..torch_api.results import Results

CPU = -1  # the number of the CPU among devices


@dataclass(frozen=True)
class DeviceFigures:
    """One device; times in microseconds, shares from 0 to 1."""

    device: int
    label: str  # GPU 0
    events: int
    span_us: float  # from the start of its first event to the end of its last
    busy_us: float  # in which at least one event ran
    busy_share: float  # of the span
    idle_us: float  # the rest of the span
    computation_us: float  # in which at least one kernel computed
    exposed_communication_us: float  # communication ran, and no computation
    exposed_copy_us: float  # copies ran, and neither of them
    work_us: float  # the sum of all durations
    launched_before_events: (
        int  # launched before the recording: `events` and the times but `work_us` leave them out
    )


@dataclass(frozen=True)
class MemoryFigures:
    """The memory of one device, or of the CPU."""

    device: int  # -1: the CPU
    label: str
    peak_bytes: int
    peak_at_us: float  # since the start of the recording
    end_bytes: int  # still allocated at the end
    allocations: int
    allocated_bytes: int  # by all allocations together


@dataclass(frozen=True)
class Figures:
    """The figures of a recording; times in microseconds, shares from 0 to 1."""

    events: int
    synthetic_events: int  # that no other figure counts
    python_calls: int
    device_events: int
    memory_events: int
    threads: int
    steps: int
    start_ns: int  # of the span, on the trace's clock
    span_us: float
    cpu_busy_us: float  # in which at least one op ran on the host
    cpu_busy_share: float
    self_cpu_us: float  # the sum of self times
    device_count: int
    device_events_launched_before: int  # before the recording: busy time and span leave them out
    device_span_us: float  # sums over devices
    device_busy_us: float
    device_busy_share: float
    device_work_us: float  # the sum of the durations of device events
    device_events_without_op: int
    device_without_op_us: float
    device_without_op_share: float  # of `device_work_us`
    devices: tuple[DeviceFigures, ...]
    memory: tuple[MemoryFigures, ...]  # the CPU first

    @property
    def peak(self) -> MemoryFigures | None:
        """The memory of the device with the highest peak; None: memory was not recorded."""
        return max(self.memory, key=lambda memory: memory.peak_bytes, default=None)


def figures(source: Recording) -> Figures:
    """The figures of a recording, without its synthetic events."""
    synthetic = as_results(source).trace.n_synthetic
    results = recorded_results(source)
    trace = results.trace
    start, end = span(trace)
    work = working(results)
    busy = _length(trace, work)
    device = trace.device
    works = device.works
    duration = device.end_ns - device.start_ns
    work_ns = int(duration[works].sum())
    without_op = work_without_op(trace)
    without_op_ns = int(duration[without_op].sum())
    devices = _devices(trace)
    device_span, device_busy = (sum(getattr(d, name) for d in devices) for name in ("span_us", "busy_us"))
    return Figures(
        events=int(events_shown(results).sum()),
        synthetic_events=synthetic,
        python_calls=len(trace.frames),
        device_events=int(works.sum()),
        memory_events=len(trace.memory),
        threads=len(np.unique(trace.thread)),
        steps=len(steps_of(trace)[0]),
        start_ns=start,
        span_us=(end - start) / 1000,
        cpu_busy_us=busy / 1000,
        cpu_busy_share=_share(busy, end - start),
        self_cpu_us=int(results.shown_self_ns[events_shown(results)].sum()) / 1000,
        device_count=len(devices),
        device_events_launched_before=sum(each.launched_before_events for each in devices),
        device_span_us=device_span,
        device_busy_us=device_busy,
        device_busy_share=_share(device_busy, device_span),
        device_work_us=work_ns / 1000,
        device_events_without_op=int(without_op.sum()),
        device_without_op_us=without_op_ns / 1000,
        device_without_op_share=_share(without_op_ns, work_ns),
        devices=devices,
        memory=memory_figures(trace),
    )


def figures_table(source: Recording) -> Sheet:
    """The figures as rows: name, device (empty: of the whole recording), value and unit."""
    known = figures(source)
    rows: list[tuple[str, str, float, str]] = [
        (name, "", float(value), _unit(name))
        for name, value in vars(known).items()
        if isinstance(value, (int, float)) and name != "start_ns"
    ]
    parts: list[DeviceFigures | MemoryFigures] = [*known.devices, *known.memory]
    for part in parts:
        rows += [
            (name, part.label, float(value), _unit(name))
            for name, value in vars(part).items()
            if isinstance(value, (int, float)) and name != "device"
        ]
    names, labels, values, units = zip(*rows)
    return Sheet(
        {"figure": names, "device": labels, "value": np.array(values), "unit": units},
        len(rows),
    )


def span(trace: Trace) -> tuple[int, int]:
    """The start of the first event and the end of the last, on the host or on a device, in nanoseconds; Python calls, annotations on
    devices and waiting do not count."""
    host, works = trace.kind != PYTHON, trace.device.works
    starts = [trace.start_ns[host], trace.device.start_ns[works]]
    ends = [trace.end_ns[host], trace.device.end_ns[works]]
    if not any(map(len, starts)):
        return trace.window_ns[0], trace.window_ns[0]
    return (
        min(int(part.min()) for part in starts if len(part)),
        max(int(part.max()) for part in ends if len(part)),
    )


def events_shown(results: Results) -> BoolArray:
    """Mask of the events that `Figures.events` counts."""
    mask: BoolArray = results.shown & (results.trace.kind != PYTHON)
    return mask


def device_label(trace: Trace, number: int) -> str:
    """A device's name for people: CPU, GPU 0, NPU 3; device 0 where the trace does not say what it is."""
    if number < 0:
        return "CPU"
    if not trace.settings.device:
        return f"device {number}"
    kind = str(trace.settings.device).upper()
    return f"{'GPU' if kind in {'CUDA', 'HIP'} else kind} {number}"


def _devices(trace: Trace) -> tuple[DeviceFigures, ...]:
    return tuple(
        DeviceFigures(
            times.device,
            device_label(trace, times.device),
            times.events,
            times.span_us,
            times.busy_us,
            times.busy_share,
            times.idle_us,
            times.computation_us,
            times.exposed_communication_us,
            times.exposed_copy_us,
            times.work_ns / 1000,
            times.launched_before_events,
        )
        for times in device_breakdown(trace)
    )


def memory_figures(trace: Trace) -> tuple[MemoryFigures, ...]:
    """The memory of each device, from the running totals of the recording."""
    figures = []
    for device, label, rows in _memory_rows(trace):
        total, nbytes = trace.memory.total[rows], trace.memory.nbytes[rows]
        peak = int(np.argmax(total))
        figures.append(
            MemoryFigures(
                device,
                label,
                int(total[peak]),
                (int(trace.memory.time_ns[rows[peak]]) - trace.window_ns[0]) / 1000,
                int(total[-1]),
                int((nbytes > 0).sum()),
                int(nbytes[nbytes > 0].sum()),
            )
        )
    return tuple(figures)


def memory_totals(trace: Trace) -> list[tuple[int, str, IntArray, IntArray]]:
    """The running totals of each device: its number, its label, times in nanoseconds and bytes."""
    memory = trace.memory
    return [
        (device, label, memory.time_ns[rows], memory.total[rows])
        for device, label, rows in _memory_rows(trace)
    ]


def _memory_rows(trace: Trace) -> list[tuple[int, str, IntArray]]:
    """The rows of the memory of each device, the CPU first."""
    memory = trace.memory
    where = memory.device if memory.device is not None else np.full(len(memory), CPU)
    return [(device, device_label(trace, device), rows) for device, rows in rows_by(where)]


def _length(trace: Trace, rows: BoolArray) -> int:
    start, end = union(trace.start_ns[rows], trace.end_ns[rows])
    return int((end - start).sum())


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _unit(name: str) -> str:
    for ending, unit in (("_us", "us"), ("_share", "share"), ("_bytes", "bytes")):
        if name.endswith(ending):
            return unit
    return "count"
