"""Device breakdown: a recording in; what each device did with its time out: per device, per step and per stream, in parts that add up.

    span = computation + exposed communication + exposed copies + idle

- The span of a device goes from the start of its first work to the end of its last. Neither the end of the recording nor host events count.
- Computation is the time in which at least one kernel ran that is no communication; memory fills (memset) are computation too.
- Communication is decided by the kernel's name (`mindtorch_prof.communication`); it is exposed while no computation runs.
- Copies are exposed while neither computation nor communication runs.
- Idle is the rest. All times are unions over the streams of a device: work that overlaps counts once.

Annotations and synchronisation on a device are no work. Work that has no launch in the recording and began before the first work that has one
was launched before the recording (by steps of warm-up): it is left out and counted apart.

On Ascend devices the span goes from the first to the last computation or communication, as in torch_npu's step_trace_time.csv: copies before
and after it are left out. Its "Free" is idle plus exposed copies.

A step's figures are those of the work launched in it, whenever that ran; its span goes from the start of the first to the end of the
last of it. Where steps do not overlap on the device, the spans, the gaps before them and the work outside of steps make up the device's span.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .. import communication
from ..arrays import BoolArray, IntArray, distinct, rows_by
from ..steps import step_numbers, step_rows, steps_of
from ..trace import DEVICE_COPY, KERNEL, NODE, OP, Device, Trace
from .intervals import union, union_lengths
from .recording import Recording, as_results

# classes of device work
COMPUTATION, COMMUNICATION, COPY = range(3)

ASCEND = "npu"  # `Settings.device` of Ascend recordings


@dataclass(frozen=True)
class Breakdown:
    """A span of device time in parts that add up to it; integer nanoseconds, and the same in microseconds."""

    span_ns: int
    computation_ns: int  # at least one computing kernel ran
    exposed_communication_ns: int  # communication ran, and no computation
    exposed_copy_ns: int  # copies ran, and neither computation nor communication
    communication_ns: int  # all communication, exposed or not
    copy_ns: int  # all copies, exposed or not

    @property
    def busy_ns(self) -> int:
        return self.computation_ns + self.exposed_communication_ns + self.exposed_copy_ns

    @property
    def idle_ns(self) -> int:
        return self.span_ns - self.busy_ns

    @property
    def overlap(self) -> float:
        """The share of communication during which computation ran, from 0 to 1; 0 without communication."""
        hidden = self.communication_ns - self.exposed_communication_ns
        return hidden / self.communication_ns if self.communication_ns else 0.0

    @property
    def busy_share(self) -> float:
        """Busy time as a share of the span, from 0 to 1."""
        return self.busy_ns / self.span_ns if self.span_ns else 0.0

    @property
    def span_us(self) -> float:
        return self.span_ns / 1000

    @property
    def busy_us(self) -> float:
        return self.busy_ns / 1000

    @property
    def computation_us(self) -> float:
        return self.computation_ns / 1000

    @property
    def exposed_communication_us(self) -> float:
        return self.exposed_communication_ns / 1000

    @property
    def exposed_copy_us(self) -> float:
        return self.exposed_copy_ns / 1000

    @property
    def idle_us(self) -> float:
        return self.idle_ns / 1000

    @property
    def communication_us(self) -> float:
        return self.communication_ns / 1000

    @property
    def copy_us(self) -> float:
        return self.copy_ns / 1000

    def figures(self) -> dict[str, float]:
        """The figures in microseconds, as plain data."""
        return {
            "span_us": self.span_us,
            "computation_us": self.computation_us,
            "exposed_communication_us": self.exposed_communication_us,
            "exposed_copy_us": self.exposed_copy_us,
            "idle_us": self.idle_us,
            "busy_us": self.busy_us,
            "communication_us": self.communication_us,
            "copy_us": self.copy_us,
            "overlap": self.overlap,
        }


@dataclass(frozen=True)
class StepBreakdown(Breakdown):
    """The work of one device that was launched in one step."""

    step: int  # its number
    start_ns: int  # of the first work
    events: int
    gap_before_ns: int  # from the end of all work of earlier steps to the start of this; 0: they overlap, or there is no earlier step

    @property
    def end_ns(self) -> int:
        return self.start_ns + self.span_ns

    def to_dict(self) -> dict[str, int | float]:
        """The figures as plain data."""
        return {
            "step": self.step,
            "events": self.events,
            "gap_before_us": self.gap_before_ns / 1000,
            **self.figures(),
        }


@dataclass(frozen=True)
class StreamBreakdown(Breakdown):
    """One stream within the span of its device."""

    stream: int
    events: int
    longest_idle_ns: int

    def to_dict(self) -> dict[str, int | float]:
        """The figures as plain data."""
        return {
            "stream": self.stream,
            "events": self.events,
            "longest_idle_us": self.longest_idle_ns / 1000,
            **self.figures(),
        }


@dataclass(frozen=True)
class DeviceBreakdown(Breakdown):
    """One device: all its streams together, each stream, and each step."""

    device: int  # its number
    start_ns: int  # of the first work
    events: int  # kernels, copies and memory fills
    work_ns: int  # the durations of all its work together, also of what was launched before the recording
    without_op_ns: int  # of that, the work that no op launched
    launched_before_events: int  # left out: launched before the recording began
    launched_before_ns: int  # the time in which at least one of those ran
    outer_copies_ns: int  # left out on Ascend: copies before the first and after the last other work, their durations added up
    outside_steps_ns: int  # busy time of the work that was launched in no step
    longest_idle_ns: int
    streams: tuple[StreamBreakdown, ...]
    steps: tuple[StepBreakdown, ...]

    @property
    def end_ns(self) -> int:
        return self.start_ns + self.span_ns

    @property
    def without_op_share(self) -> float:
        """The share of the work that no op launched, from 0 to 1."""
        return self.without_op_ns / self.work_ns if self.work_ns else 0.0

    def to_dict(self) -> dict[str, object]:
        """The figures as plain data."""
        return {
            "device": self.device,
            **self.figures(),
            "events": self.events,
            "longest_idle_us": self.longest_idle_ns / 1000,
            "work_us": self.work_ns / 1000,
            "without_op_us": self.without_op_ns / 1000,
            "without_op_share": self.without_op_share,
            "launched_before_events": self.launched_before_events,
            "launched_before_us": self.launched_before_ns / 1000,
            "outer_copies_us": self.outer_copies_ns / 1000,
            "outside_steps_us": self.outside_steps_ns / 1000,
            "steps": [step.to_dict() for step in self.steps],
            "streams": [stream.to_dict() for stream in self.streams],
        }


# ---------------------------------------------------------------------------------------------------- on plain columns


@dataclass(frozen=True)
class BreakdownColumns:
    """The figures of a Breakdown for many groups of work, one value per group, in nanoseconds."""

    start_ns: IntArray
    span_ns: IntArray
    computation_ns: IntArray
    exposed_communication_ns: IntArray
    exposed_copy_ns: IntArray
    communication_ns: IntArray
    copy_ns: IntArray
    events: IntArray

    def figures(self, group: int) -> tuple[int, int, int, int, int, int]:
        """The fields of a group's Breakdown."""
        return (
            int(self.span_ns[group]),
            int(self.computation_ns[group]),
            int(self.exposed_communication_ns[group]),
            int(self.exposed_copy_ns[group]),
            int(self.communication_ns[group]),
            int(self.copy_ns[group]),
        )


def breakdown(start_ns: IntArray, end_ns: IntArray, work_class: IntArray) -> Breakdown:
    """The breakdown of one span of work, from its first start to its last end. work_class: COMPUTATION, COMMUNICATION or COPY."""
    columns = breakdown_by(np.zeros(len(start_ns), np.int64), start_ns, end_ns, work_class, 1)
    return Breakdown(*columns.figures(0))


def breakdown_by(
    group: IntArray, start_ns: IntArray, end_ns: IntArray, work_class: IntArray, n_groups: int
) -> BreakdownColumns:
    """The breakdown of many groups of work at once (devices, streams, steps, ranks); group: of each piece of work, from 0."""

    def busy(which: BoolArray) -> IntArray:
        return union_lengths(group[which], start_ns[which], end_ns[which], n_groups)

    is_computation, is_copy = work_class == COMPUTATION, work_class == COPY
    computation, without_copies = busy(is_computation), busy(~is_copy)
    everything = union_lengths(group, start_ns, end_ns, n_groups)
    events = np.bincount(group, minlength=n_groups)
    first = np.full(n_groups, np.iinfo(np.int64).max)
    last = np.full(n_groups, np.iinfo(np.int64).min)
    np.minimum.at(first, group, start_ns)
    np.maximum.at(last, group, end_ns)
    first[events == 0] = last[events == 0] = 0
    return BreakdownColumns(
        first,
        last - first,
        computation,
        without_copies - computation,
        everything - without_copies,
        busy(work_class == COMMUNICATION),
        busy(is_copy),
        events,
    )


def without_outer_copies(
    group: IntArray, start_ns: IntArray, end_ns: IntArray, work_class: IntArray, n_groups: int
) -> tuple[IntArray, IntArray]:
    """Starts and ends, with copies cut to the time from the first to the last other work of their group; those outside become empty."""
    is_copy = work_class == COPY
    others = np.flatnonzero(~is_copy)
    first = np.full(n_groups, np.iinfo(np.int64).max)
    last = np.full(n_groups, np.iinfo(np.int64).min)
    np.minimum.at(first, group[others], start_ns[others])
    np.maximum.at(last, group[others], end_ns[others])
    cut = is_copy & (first <= last)[group]  # a group of copies alone stays as it is
    begin = np.where(cut, np.clip(start_ns, first[group], np.maximum(last, first)[group]), start_ns)
    end = np.where(cut, np.clip(end_ns, first[group], np.maximum(last, first)[group]), end_ns)
    return begin, end


def work_classes(device: Device) -> IntArray:
    """By row of a Device: whether it is computation, communication or a copy. A copy that is part of a collective is communication."""
    by_name = communication.on_device(device.names)
    is_communication = by_name[device.name] if len(device) else np.zeros(0, bool)
    classes = np.where(device.kind == DEVICE_COPY, COPY, COMPUTATION)
    return np.where(is_communication, COMMUNICATION, classes)


def launched_before_recording(device: Device) -> BoolArray:
    """Mask of the work that has no launch in the recording and began before the first work of its device that has one."""
    linked = (device.launch >= 0) | (device.op >= 0)
    works = device.works
    _, place = distinct(device.device)
    first = np.full(int(place.max(initial=-1)) + 1, np.iinfo(np.int64).min)  # nothing began before it
    known = works & linked
    first[place[known]] = np.iinfo(np.int64).max
    np.minimum.at(first, place[known], device.start_ns[known])
    before: BoolArray = works & ~linked & (device.start_ns < first[place])
    return before


def work_by_device(device: Device, numbers: IntArray, which: BoolArray) -> IntArray:
    """Nanoseconds of some events of each device, added up. numbers: of the devices, in ascending order; others do not count."""
    rows = np.flatnonzero(which & np.isin(device.device, numbers))
    place = np.searchsorted(numbers, device.device[rows])
    total = np.zeros(len(numbers), np.int64)
    np.add.at(total, place, device.end_ns[rows] - device.start_ns[rows])
    return total


def counted_work(device: Device) -> IntArray:
    """The rows that a breakdown counts: the work of the devices, less what was launched before the recording began."""
    return np.flatnonzero(device.works & ~launched_before_recording(device))


class DeviceWork(NamedTuple):
    """The work that a breakdown counts, as columns with one value per piece of work."""

    rows: IntArray  # of `Trace.device`
    numbers: IntArray  # of the devices
    place: IntArray  # of the device, in `numbers`
    start_ns: IntArray
    end_ns: IntArray
    work_class: IntArray  # COMPUTATION, COMMUNICATION or COPY
    duration_ns: IntArray  # also of copies that are cut


def device_work(trace: Trace) -> DeviceWork:
    """The work of the devices, less what was launched before the recording began; on Ascend, without outer copies."""
    device = trace.device
    rows = counted_work(device)
    numbers, place = distinct(device.device[rows])
    start, end, classes = device.start_ns[rows], device.end_ns[rows], work_classes(device)[rows]
    if trace.settings.device == ASCEND:
        start, end = without_outer_copies(place, start, end, classes, len(numbers))
    return DeviceWork(rows, numbers, place, start, end, classes, (device.end_ns - device.start_ns)[rows])


def has_an_op(trace: Trace) -> BoolArray:
    """Mask of the rows of `trace.device` that an op accounts for. An annotation, a Python call or a launch alone is no op; the annotation
    around a collective is."""
    device = trace.device
    if not len(device) or not len(trace):
        return np.zeros(len(device), bool)
    is_collective = communication.on_host(trace.names)[trace.name]
    is_op = (np.isin(trace.kind, (OP, NODE, KERNEL)) | is_collective) & (
        step_numbers(trace.names, trace.name) < 0
    )
    return (device.op >= 0) & is_op[np.maximum(device.op, 0)]


def work_without_op(trace: Trace) -> BoolArray:
    """Mask of the work that no op of the recording launched, also of what was launched before the recording."""
    return trace.device.works & ~has_an_op(trace)


# ---------------------------------------------------------------------------------------------------- steps


def steps_of_device_work(trace: Trace) -> tuple[tuple[int, ...], IntArray]:
    """The numbers of steps; and by row of `trace.device`, the index of the step in which it was launched, -1: in none.

    Work belongs to the step during which its launch began on the host; without a launch, the op that it is charged to decides, and where
    the recording knows neither (and has steps of one process only), its own start.
    """
    numbers, step_of_event, _ = steps_of(trace)
    device = trace.device
    step = np.full(len(device), -1, np.int64)
    if not numbers:
        return numbers, step
    cause = np.where(device.launch >= 0, device.launch, device.op)
    known = cause >= 0
    step[known] = step_of_event[cause[known]]
    if not known.all():
        unknown = np.flatnonzero(~known)
        step[unknown] = _steps_at(trace, device.start_ns[unknown])
    return numbers, step


def _steps_at(trace: Trace, time: IntArray) -> IntArray:
    """The index of the step that runs on the host at each time; -1: none, or steps of several processes run."""
    rows = step_rows(trace)
    begin, end = trace.start_ns[rows], trace.end_ns[rows]
    if len(rows) > 1 and (begin[1:] < end[:-1]).any():
        return np.full(len(time), -1, np.int64)
    _, index = np.unique(step_numbers(trace.names, trace.name)[rows], return_inverse=True)
    place = np.searchsorted(begin, time, side="right") - 1
    inside = (place >= 0) & (time <= end[np.maximum(place, 0)])
    return np.where(inside, index.reshape(-1)[np.maximum(place, 0)], -1)


# ---------------------------------------------------------------------------------------------------- a recording


def device_breakdown(recording: Recording) -> list[DeviceBreakdown]:
    """What each device did with its time, in the order of the devices' numbers; empty without device work."""
    trace = recording if isinstance(recording, Trace) else as_results(recording).trace
    device = trace.device
    rows, numbers, place, start, end, classes, duration_ns = device_work(trace)
    if not len(rows):
        return []
    before = launched_before_recording(device)
    cut_ns = duration_ns - (end - start)
    whole = breakdown_by(place, start, end, classes, len(numbers))
    work_ns = work_by_device(device, numbers, device.works)
    without_op_ns = work_by_device(device, numbers, work_without_op(trace))
    earlier_of = dict(rows_by(device.device[before]))
    earlier_start, earlier_end = device.start_ns[before], device.end_ns[before]
    none = np.empty(0, np.int64)
    numbers_of_steps, step_of_row = steps_of_device_work(trace)
    step = step_of_row[rows]
    outside = step < 0
    without_step = union_lengths(place[outside], start[outside], end[outside], len(numbers))
    steps = _steps(place, start, end, classes, step, numbers_of_steps, trace.settings.device == ASCEND)
    streams = _streams(place, start, end, classes, device.stream[rows], whole)
    breakdowns = []
    for index, own in rows_by(place):
        number = int(numbers[index])
        earlier = earlier_of.get(number, none)
        breakdowns.append(
            DeviceBreakdown(
                *whole.figures(index),
                device=number,
                start_ns=int(whole.start_ns[index]),
                events=int(whole.events[index]),
                work_ns=int(work_ns[index]),
                without_op_ns=int(without_op_ns[index]),
                launched_before_events=len(earlier),
                launched_before_ns=_length(earlier_start[earlier], earlier_end[earlier]),
                outer_copies_ns=int(cut_ns[own].sum()),
                outside_steps_ns=int(without_step[index]) if numbers_of_steps else 0,
                longest_idle_ns=_longest_gap(start[own], end[own]),
                streams=tuple(streams[index]),
                steps=tuple(steps[index]),
            )
        )
    return breakdowns


def _steps(
    place: IntArray,
    start: IntArray,
    end: IntArray,
    classes: IntArray,
    step: IntArray,
    numbers: tuple[int, ...],
    only_inner_copies: bool,
) -> list[list[StepBreakdown]]:
    """By device, its steps in the order in which they began on it."""
    by_device: list[list[StepBreakdown]] = [[] for _ in range(int(place.max()) + 1)]
    inside = np.flatnonzero(step >= 0)
    if not len(inside):
        return by_device
    keys, group = distinct(place[inside] * len(numbers) + step[inside])
    start, end, classes = start[inside], end[inside], classes[inside]
    if only_inner_copies:
        start, end = without_outer_copies(group, start, end, classes, len(keys))
    columns = breakdown_by(group, start, end, classes, len(keys))
    of_device = keys // len(numbers)
    latest_end: dict[int, int] = {}
    for position in np.lexsort((columns.start_ns, of_device)).tolist():
        device, begin = int(of_device[position]), int(columns.start_ns[position])
        gap = max(begin - latest_end.get(device, begin), 0)
        latest_end[device] = max(latest_end.get(device, begin), begin + int(columns.span_ns[position]))
        by_device[device].append(
            StepBreakdown(
                *columns.figures(position),
                step=numbers[int(keys[position]) % len(numbers)],
                start_ns=begin,
                events=int(columns.events[position]),
                gap_before_ns=gap,
            )
        )
    return by_device


def _streams(
    place: IntArray,
    start: IntArray,
    end: IntArray,
    classes: IntArray,
    stream: IntArray,
    whole: BreakdownColumns,
) -> list[list[StreamBreakdown]]:
    """By device, its streams in the order of their numbers; a stream's span is that of its device."""
    by_device: list[list[StreamBreakdown]] = [[] for _ in range(len(whole.span_ns))]
    streams, of_stream = distinct(stream)
    keys, group = distinct(place * len(streams) + of_stream)
    columns = breakdown_by(group, start, end, classes, len(keys))
    for position, here in rows_by(group):
        device, number = int(keys[position]) // len(streams), int(streams[keys[position] % len(streams)])
        span = int(whole.start_ns[device]), int(whole.start_ns[device] + whole.span_ns[device])
        by_device[device].append(
            StreamBreakdown(
                span[1] - span[0],
                *columns.figures(position)[1:],
                stream=number,
                events=int(columns.events[position]),
                longest_idle_ns=_longest_gap(start[here], end[here], span),
            )
        )
    return by_device


def _length(start: IntArray, end: IntArray) -> int:
    begin, until = union(start, end)
    return int((until - begin).sum())


def _longest_gap(start: IntArray, end: IntArray, span: tuple[int, int] | None = None) -> int:
    """The longest time without work, within a span or else between the first and the last work."""
    begin, until = union(start, end)
    if span is not None:
        begin, until = np.append(begin, span[1]), np.append(span[0], until)
        return int((begin - until).max(initial=0))
    return int((begin[1:] - until[:-1]).max(initial=0))
