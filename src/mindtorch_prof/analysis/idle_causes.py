"""Idle causes: a recording in; why its devices were idle out: every gap charged to causes that add up to the idle time exactly.

A gap lies between the end of all work so far and the start of the next. The launch of that next work decides what the gap is charged to:

| cause | which part of the gap |
| --- | --- |
| synchronisation | the host came to the launch late because it had waited for the device: as much as that wait had lasted |
| host late | the rest of the time until the launch call began; `sources` says what the host did meanwhile |
| launch delay | from the begin of the launch call to the start of the work |
| waiting for a collective, for another stream | the work was launched in time, and started when communication or work of another stream had ended |
| kernel switch | the work was launched in time, on the stream that was busy last; the gap is short (`SWITCH_NS`) |
| unknown | the same with a longer gap; or the recording has no launch of the work |

Gaps of a device are those in which none of its streams works. Gaps of one stream are charged in the same way; there, the time in which the
work was launched and another stream worked is waiting for that one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..arrays import BoolArray, IntArray, distinct, distinct_values, rows_by
from ..steps import ALL_STEPS, step_number, step_rows
from ..trace import RUNTIME, Columns, Trace
from ..tree import last_reaching, nearest, thread_slices
from .device_breakdown import COMMUNICATION, DeviceWork, device_work
from .intervals import Intervals, covered, union
from .recording import Recording, as_results

CAUSES = (
    "host late",
    "synchronisation",
    "launch delay",
    "waiting for a collective",
    "waiting for another stream",
    "kernel switch",
    "unknown",
)
(
    HOST_LATE,
    SYNCHRONISATION,
    LAUNCH_DELAY,
    COLLECTIVE_WAIT,
    STREAM_WAIT,
    KERNEL_SWITCH,
    UNKNOWN,
) = range(len(CAUSES))

SWITCH_NS = 30_000  # a queued kernel that starts within this time needs no further explanation

# runtime calls in which the host waits for a device: cudaStreamSynchronize, hipMemcpy, aclrtSynchronizeDevice, urQueueFinish ...
_WAITING = re.compile(r"(?!.*(async|enqueue)).*(synchronize|memcpy|queuefinish|events?wait$)", re.IGNORECASE)


@dataclass(frozen=True)
class Gaps(Columns):
    """Gaps of a device, or of its streams, in the order of (stream, time)."""

    stream: IntArray  # -1: of the whole device
    start_ns: IntArray
    end_ns: IntArray
    before: IntArray  # row of `Trace.device`: the work whose end began the gap
    after: IntArray  # row of the work that ended it
    launch_ns: IntArray  # when the launch of that began; -1: not known
    wait: IntArray  # row of the Trace: the last call in which the launching thread waited for the device before that; -1: none
    charges: IntArray  # one column per cause, in nanoseconds; they add up to the gap's length

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def length_ns(self) -> IntArray:
        return self.end_ns - self.start_ns

    def by_cause(self) -> dict[str, int]:
        """Nanoseconds charged to each cause."""
        return dict(zip(CAUSES, self.charges.sum(0).tolist()))

    def counts(self) -> dict[str, int]:
        """How many gaps are charged to each cause, in part or in whole."""
        return dict(zip(CAUSES, (self.charges > 0).sum(0).tolist()))


@dataclass(frozen=True)
class HostLate(Columns):
    """The time for which the host was late, in parts in which it did one thing."""

    gap: IntArray  # of a device's `gaps`
    start_ns: IntArray
    end_ns: IntArray
    event: IntArray  # what ran: a row of the Trace, or the number of its rows plus a row of its frames; -1: nothing
    call: IntArray  # the runtime call inside it, a row of the Trace; -1: none

    def __len__(self) -> int:
        return len(self.gap)


@dataclass(frozen=True)
class IdleSource:
    """What idle time is charged to: an op, a Python call, a runtime call or a kernel."""

    cause: str
    source: str  # host late: what ran on the host; launch delay: what launched; waiting: what was waited for
    call: str  # the runtime call inside the op or Python call, such as cudaMalloc; empty: none
    time_ns: int
    gaps: int

    def to_dict(self) -> dict[str, str | int | float]:
        """The figures as plain data."""
        return {
            "cause": self.cause,
            "source": self.source,
            "call": self.call,
            "time_us": self.time_ns / 1000,
            "gaps": self.gaps,
        }


@dataclass(frozen=True)
class QueueLength(Columns):
    """How many pieces of work of one stream were launched and had not started, over time."""

    stream: int
    time_ns: IntArray
    length: IntArray  # from that time on

    @property
    def mean(self) -> float:
        """The mean over time."""
        lasted = np.diff(self.time_ns)
        whole = int(lasted.sum())
        return float((self.length[:-1] * lasted).sum() / whole) if whole else 0.0

    @property
    def empty_share(self) -> float:
        """The share of time in which nothing was queued, from 0 to 1."""
        lasted = np.diff(self.time_ns)
        whole = int(lasted.sum())
        return float(lasted[self.length[:-1] == 0].sum() / whole) if whole else 0.0

    def to_dict(self) -> dict[str, int | float]:
        """The figures as plain data."""
        return {
            "stream": self.stream,
            "launches": int(len(self.time_ns) // 2),
            "mean_queue_length": self.mean,
            "max_queue_length": int(self.length.max(initial=0)),
            "queue_empty_share": self.empty_share,
        }


@dataclass(frozen=True)
class ShortKernels:
    """Kernels of one name that run for less time than their launch call takes."""

    name: str
    count: int
    of: int  # how many kernels of that name there are
    run_ns: int  # of the short ones
    launch_ns: int

    def to_dict(self) -> dict[str, str | int | float]:
        """The figures as plain data."""
        return {
            "name": self.name,
            "count": self.count,
            "of": self.of,
            "run_us": self.run_ns / 1000,
            "launch_us": self.launch_ns / 1000,
        }


@dataclass(frozen=True)
class DeviceIdle:
    """Why one device was idle."""

    device: int
    idle_ns: int
    gaps: Gaps  # of the device: no stream works; they add up to `idle_ns`
    host_late: HostLate
    _launched: _LaunchedWork = field(repr=False, compare=False)
    _rows: IntArray = field(repr=False, compare=False)  # of the device, in the columns of its work

    @cached_property
    def stream_gaps(self) -> Gaps:
        return _stream_gaps(self._launched, self._rows)

    @cached_property
    def sources(self) -> tuple[IdleSource, ...]:
        """Of the device's gaps, the most time first; they add up to `idle_ns`."""
        return _sources(self._launched, self.gaps, self.host_late)

    @cached_property
    def queues(self) -> tuple[QueueLength, ...]:
        return tuple(_queues(self._launched, self._rows))

    @cached_property
    def short_kernels(self) -> tuple[ShortKernels, ...]:
        """The most launch time first."""
        return _short_kernels(self._launched, self._rows)

    def stream_causes(self) -> dict[int, dict[str, int]]:
        """By stream, nanoseconds charged to each cause."""
        gaps = self.stream_gaps
        return {
            stream: dict(zip(CAUSES, gaps.charges[rows].sum(0).tolist()))
            for stream, rows in rows_by(gaps.stream)
        }

    def to_dict(
        self, names: Sequence[str], name: IntArray, origin_ns: int, top: int = 10
    ) -> dict[str, object]:
        """The figures as plain data, with the `top` longest gaps and sources (0: all). names, name: of `Trace.device`."""
        some = slice(top or None)
        gaps, counts = self.gaps, self.gaps.counts()
        longest = np.argsort(-gaps.length_ns, kind="stable")[some]
        return {
            "device": self.device,
            "idle_us": self.idle_ns / 1000,
            "causes": [
                {
                    "cause": cause,
                    "time_us": time / 1000,
                    "share": time / self.idle_ns if self.idle_ns else 0.0,
                    "gaps": counts[cause],
                }
                for cause, time in sorted(gaps.by_cause().items(), key=lambda item: -item[1])
            ],
            "sources": [source.to_dict() for source in self.sources[some]],
            "longest_gaps": [
                {
                    "start_us": (int(gaps.start_ns[i]) - origin_ns) / 1000,
                    "length_us": int(gaps.length_ns[i]) / 1000,
                    "cause": CAUSES[int(np.argmax(gaps.charges[i]))],
                    "before": names[name[gaps.before[i]]],
                    "after": names[name[gaps.after[i]]],
                }
                for i in longest.tolist()
            ],
            "streams": [
                {
                    "stream": stream,
                    "idle_us": sum(causes.values()) / 1000,
                    **{f"{cause.replace(' ', '_')}_us": time / 1000 for cause, time in causes.items()},
                }
                for stream, causes in self.stream_causes().items()
            ],
            "queues": [queue.to_dict() for queue in self.queues],
            "short_kernels": [kernels.to_dict() for kernels in self.short_kernels[some]],
        }


def idle_causes(recording: Recording, only: int | None = None) -> list[DeviceIdle]:
    """Why each device was idle, in the order of the devices' numbers; empty without device work. only: the number of one device."""
    trace = recording if isinstance(recording, Trace) else as_results(recording).trace
    work = device_work(trace)
    launches, waits = _Launches.of(trace, work), _Waits(trace)
    charged = []
    for number, (_, here) in zip(work.numbers.tolist(), rows_by(work.place)):
        if only is not None and number != only:
            continue
        gaps, late = _charged(trace, work, launches, waits, _device_gaps(work, launches, here), None)
        charged.append((number, here, gaps, late))
    host = _HostActivity(
        trace, _asked_times(trace, work, launches, [(gaps, late) for _, _, gaps, late in charged])
    )
    launched = _LaunchedWork(trace, work, launches, waits, host)
    devices = []
    for number, here, gaps, late in charged:
        busy = union(work.start_ns[here], work.end_ns[here])
        idle = int(work.end_ns[here].max() - work.start_ns[here].min() - (busy[1] - busy[0]).sum())
        thread = _threads(trace, launches, _positions(work, gaps.after))
        devices.append(DeviceIdle(number, idle, gaps, host.during(thread, *late), launched, here))
    return devices


def _asked_times(
    trace: Trace, work: DeviceWork, launches: _Launches, charged: list[tuple[Gaps, Intervals]]
) -> Intervals:
    """The times for which it is asked what the host did, as a union: those in which it was late, and the begins of waits and launches."""
    begins: list[IntArray] = [np.empty(0, np.int64)]
    ends: list[IntArray] = [np.empty(0, np.int64)]
    for gaps, (late_begin, late_end) in charged:
        begins.append(late_begin[late_end > late_begin])
        ends.append(late_end[late_end > late_begin])
        waits = gaps.wait[(gaps.charges[:, SYNCHRONISATION] > 0) & (gaps.wait >= 0)]
        delayed = launches.row[_positions(work, gaps.after[gaps.charges[:, LAUNCH_DELAY] > 0])]
        for rows in (waits, delayed[delayed >= 0]):
            begins.append(trace.start_ns[rows])
            ends.append(trace.start_ns[rows] + 1)
    return union(np.concatenate(begins), np.concatenate(ends))


# ---------------------------------------------------------------------------------------------------- launches and waits


class _Launches(NamedTuple):
    """By piece of work, its launch on the host. Where only the op is known that launched it, the launch is somewhere in that op."""

    row: IntArray  # of the Trace; -1: not known
    start_ns: IntArray
    end_ns: IntArray
    is_call: BoolArray  # a runtime call, not an op

    @staticmethod
    def of(trace: Trace, work: DeviceWork) -> _Launches:
        device = trace.device
        launch, op = device.launch[work.rows], device.op[work.rows]
        row = np.where(launch >= 0, launch, op)
        if not len(trace):
            return _Launches(row, row, row, row >= 0)
        at = np.maximum(row, 0)
        known = row >= 0
        return _Launches(
            row,
            np.where(known, trace.start_ns[at], -1),
            np.where(known, trace.end_ns[at], -1),
            launch >= 0,
        )


class _LaunchedWork(NamedTuple):
    """The work of all devices with its launches, and what the host did."""

    trace: Trace
    work: DeviceWork
    launches: _Launches
    waits: _Waits
    host: _HostActivity


class _Waits:
    """The calls in which threads wait for a device."""

    def __init__(self, trace: Trace) -> None:
        by_name = np.array([_WAITING.match(text) is not None for text in trace.names] or [False], bool)
        rows = (
            np.flatnonzero(by_name[trace.name] & (trace.kind == RUNTIME))
            if len(trace)
            else np.zeros(0, np.int64)
        )
        self.of_thread: dict[int, tuple[IntArray, IntArray, IntArray, IntArray]] = {}
        for first, last in thread_slices(trace.thread[rows]):
            part = rows[first:last]
            start, latest = trace.start_ns[part], np.maximum.accumulate(trace.end_ns[part])
            # of calls inside others only what is beyond those counts
            length = np.maximum(latest - np.maximum(start, np.append(start[0], latest[:-1])), 0)
            before = np.concatenate(([0], np.cumsum(length)))
            self.of_thread[int(trace.thread[part[0]])] = (start, latest, before, part)

    def lasted(self, thread: IntArray, begin: IntArray, end: IntArray) -> tuple[IntArray, IntArray]:
        """How long the waits of a thread lasted that reach into the time from `begin` to `end`; and the row of the last of them, -1: none."""
        length, last_row = np.zeros(len(begin), np.int64), np.full(len(begin), -1, np.int64)
        for number, own in rows_by(thread):
            if number not in self.of_thread:
                continue
            starts, ends, before, rows = self.of_thread[number]
            mine = own[end[own] > begin[own]]
            first = np.searchsorted(ends, begin[mine], side="right")
            last = np.searchsorted(starts, end[mine], side="left")
            some = last > first
            mine, first, last = mine[some], first[some], last[some]
            length[mine] = before[last] - before[first]
            last_row[mine] = rows[last - 1]
        return length, last_row


# ---------------------------------------------------------------------------------------------------- gaps


class _Gap(NamedTuple):
    """Gaps before they are charged; `before` and `after` count in the columns of a DeviceWork."""

    stream: IntArray
    start_ns: IntArray
    end_ns: IntArray
    before: IntArray
    after: IntArray


def _gaps_between(work: DeviceWork, launches: _Launches, rows: IntArray, stream: int) -> _Gap:
    """The gaps in the union of some work. Of work that starts together, the one that was launched first ends the gap."""
    rows = rows[np.lexsort((launches.start_ns[rows], work.start_ns[rows]))]
    start, end = work.start_ns[rows], work.end_ns[rows]
    latest_end = np.maximum.accumulate(end)
    reaches_furthest = np.maximum.accumulate(np.where(end == latest_end, np.arange(len(rows)), 0))
    first = np.flatnonzero(start[1:] > latest_end[:-1]) + 1
    return _Gap(
        np.full(len(first), stream, np.int64),
        latest_end[first - 1],
        start[first],
        rows[reaches_furthest[first - 1]],
        rows[first],
    )


def _device_gaps(work: DeviceWork, launches: _Launches, rows: IntArray) -> _Gap:
    return _gaps_between(work, launches, rows, -1)


def _stream_gaps(launched: _LaunchedWork, rows: IntArray) -> Gaps:
    """The charged gaps of the streams of a device."""
    trace, work, launches, waits, _ = launched
    streams = trace.device.stream[work.rows[rows]]
    # in a gap of a stream its own work does not run, so that all work of the device is that of other streams
    communicates = rows[work.work_class[rows] == COMMUNICATION]
    collectives = union(work.start_ns[communicates], work.end_ns[communicates])
    busy = collectives, union(work.start_ns[rows], work.end_ns[rows])
    parts = []
    for stream, own in rows_by(streams):
        gaps = _gaps_between(work, launches, rows[own], stream)
        parts.append(_charged(trace, work, launches, waits, gaps, busy)[0])
    return Gaps(
        *(
            np.concatenate([getattr(part, field) for part in parts])
            for field in ("stream", "start_ns", "end_ns", "before", "after", "launch_ns", "wait", "charges")
        )
    )


def _charged(
    trace: Trace,
    work: DeviceWork,
    launches: _Launches,
    waits: _Waits,
    gaps: _Gap,
    busy: tuple[Intervals, Intervals] | None,
) -> tuple[Gaps, tuple[IntArray, IntArray]]:
    """Gaps with their charges; and the times in which the host was late. busy: for gaps of a stream, when
    other streams communicated and when they did anything."""
    begin, end, after = gaps.start_ns, gaps.end_ns, gaps.after
    charges = np.zeros((len(begin), len(CAUSES)), np.int64)
    known = launches.row[after] >= 0
    launch_start = np.where(known, np.clip(launches.start_ns[after], begin, end), end)
    launch_end = np.where(known, np.clip(launches.end_ns[after], launch_start, end), end)
    thread = _threads(trace, launches, after)
    host = np.where(known, launch_start - begin, 0)
    waited, wait = waits.lasted(thread, begin, begin + host)
    charges[:, SYNCHRONISATION] = np.minimum(waited, host)
    charges[:, HOST_LATE] = host - charges[:, SYNCHRONISATION]
    charges[:, UNKNOWN] = np.where(known, 0, end - begin)
    charges[:, LAUNCH_DELAY] = launch_end - launch_start
    # the rest of the gap: the work is launched and has not started
    queued = end - launch_end
    in_time = known & (launches.end_ns[after] <= begin)
    collective: IntArray = np.zeros(len(begin), np.int64)
    other: IntArray = collective
    if busy is not None:
        collective = covered(busy[0], launch_end, end)
        other = covered(busy[1], launch_end, end) - collective
    charges[:, COLLECTIVE_WAIT] += collective
    charges[:, STREAM_WAIT] += other
    rest = queued - collective - other
    stream = trace.device.stream
    elsewhere = stream[work.rows[gaps.before]] != stream[work.rows[after]]
    after_collective = np.where(
        collective + other > 0, collective >= other, work.work_class[gaps.before] == COMMUNICATION
    )
    waits_for_stream = in_time & (elsewhere | (collective + other > 0))
    switches = in_time & ~waits_for_stream & (rest < SWITCH_NS)
    charges[:, LAUNCH_DELAY] += np.where(in_time, 0, rest)
    charges[:, COLLECTIVE_WAIT] += np.where(waits_for_stream & after_collective, rest, 0)
    charges[:, STREAM_WAIT] += np.where(waits_for_stream & ~after_collective, rest, 0)
    charges[:, KERNEL_SWITCH] += np.where(switches, rest, 0)
    charges[:, UNKNOWN] += np.where(in_time & ~waits_for_stream & ~switches, rest, 0)
    late = begin + charges[:, SYNCHRONISATION], begin + host
    return (
        Gaps(
            gaps.stream,
            begin,
            end,
            work.rows[gaps.before],
            work.rows[after],
            np.where(known, launches.start_ns[after], -1),
            wait,
            charges,
        ),
        late,
    )


def _positions(work: DeviceWork, rows: IntArray) -> IntArray:
    """Where rows of `Trace.device` are in the columns of a DeviceWork, which has all of them."""
    return np.searchsorted(work.rows, rows)


def _threads(trace: Trace, launches: _Launches, work: IntArray) -> IntArray:
    """The threads that launched work; -1: not known."""
    if not len(trace):
        return np.full(len(work), -1, np.int64)
    row = launches.row[work]
    return np.where(row >= 0, trace.thread[np.maximum(row, 0)], -1)


# ---------------------------------------------------------------------------------------------------- what the host did


class _HostActivity:
    """What threads did at each time: for each thread, times from which on one event is the innermost that runs. Of events that overlap
    without lying inside each other (an annotation that begins in a call and outlives it) that is the one that began last.

    asked: a union of the times that will be asked about; events outside of them are left out."""

    def __init__(self, trace: Trace, asked: Intervals) -> None:
        frames = trace.frames
        names = [*trace.names, *frames.names]
        shown = [ALL_STEPS if step_number(text) >= 0 else text for text in names]
        self.names, number = np.unique(np.array([*shown, ""], object), return_inverse=True)
        self._number = number.reshape(-1)
        self._trace = trace
        self._rows = _rows_by_thread(trace.thread, trace.start_ns, trace.end_ns, asked, trace.is_recorded)
        self._frames = _rows_by_thread(frames.thread, frames.start_ns, frames.end_ns, asked)
        self._cache: dict[int, tuple[IntArray, IntArray, IntArray]] = {}
        self.main_thread = _main_thread(trace)

    def during(self, thread: IntArray, begin: IntArray, end: IntArray) -> HostLate:
        """What ran in times of threads. Where a thread does nothing, the main thread counts."""
        parts: list[tuple[IntArray, ...]] = []
        for number, own in rows_by(thread):
            mine = own[end[own] > begin[own]]
            part = self._parts(number, mine, begin[mine], end[mine])
            idle = part[3] < 0
            if number == self.main_thread or not idle.any():
                parts.append(part)
            else:
                parts.append(tuple(column[~idle] for column in part))
                parts.append(self._parts(self.main_thread, *(column[idle] for column in part[:3])))
        if len(parts) == 1:
            return HostLate(*parts[0])
        empty = np.empty(0, np.int64)
        return HostLate(*(np.concatenate([empty, *columns]) for columns in zip(*parts or [(empty,) * 5])))

    def names_of(self, event: IntArray) -> IntArray:
        """The names of events, as numbers into `names`; that of -1 is empty."""
        trace, count = self._trace, len(self._trace)
        number = np.full(len(event), len(self._number) - 1, np.int64)
        rows, frames = np.flatnonzero((event >= 0) & (event < count)), np.flatnonzero(event >= count)
        number[rows] = trace.name[event[rows]]
        number[frames] = trace.frames.name[event[frames] - count].astype(np.int64) + len(trace.names)
        return self._number[number]

    def name_at(self, thread: IntArray, time: IntArray) -> IntArray:
        """The name of the op or Python call that runs at each time, into `names`."""
        running = np.full(len(time), -1, np.int64)
        for number, mine in rows_by(thread):
            times, event, _ = self._segments(number)
            if len(times):
                place = np.searchsorted(times, time[mine], side="right") - 1
                running[mine] = np.where(place >= 0, event[np.maximum(place, 0)], -1)
        return self.names_of(running)

    def _parts(
        self, thread: int, index: IntArray, begin: IntArray, end: IntArray
    ) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
        """The columns of HostLate for times of one thread."""
        times, event, call = self._segments(thread)
        nothing = np.full(len(index), -1, np.int64)
        if not len(times):
            return index, begin, end, nothing, nothing
        first = np.searchsorted(times, begin, side="right") - 1
        last = np.searchsorted(times, end, side="left") - 1
        count = last - first + 1
        following = np.cumsum(count)
        segment = np.repeat(first - following + count, count) + np.arange(int(count.sum()))
        # inside a time one segment follows the other; the first begins and the last ends with it
        starts, ends = times[segment], np.append(times, 0)[segment + 1]
        starts[following - count], ends[following - 1] = begin, end
        # the last one for segment -1: before the first event
        return (
            np.repeat(index, count),
            starts,
            ends,
            np.append(event, -1)[segment],
            np.append(call, -1)[segment],
        )

    def _segments(self, thread: int) -> tuple[IntArray, IntArray, IntArray]:
        """Times, and the event and the runtime call that run from then on."""
        if thread not in self._cache:
            self._cache[thread] = self._computed_segments(thread)
        return self._cache[thread]

    def _computed_segments(self, thread: int) -> tuple[IntArray, IntArray, IntArray]:
        trace, frames, empty = self._trace, self._trace.frames, np.empty(0, np.int64)
        own, calls = self._rows.get(thread, empty), self._frames.get(thread, empty)
        if not len(own) + len(calls):
            return empty, empty, empty
        # Python calls stand around the ops that start and end with them
        rows = np.concatenate([calls + len(trace), own])
        start = np.concatenate([frames.start_ns[calls], trace.start_ns[own]])
        end = np.concatenate([frames.end_ns[calls], trace.end_ns[own]])
        order = np.argsort(start, kind="stable")
        if ((np.diff(start[order]) == 0) & (np.diff(end[order]) > 0)).any():
            order = np.lexsort((-end, start))
        rows, start, end = rows[order], start[order], end[order]
        is_call = np.append(trace.kind == RUNTIME, False)[np.minimum(rows, len(trace))]
        above, crosses = last_reaching(start, end)
        event_row = nearest(above, ~is_call)
        # ends and starts in one order: of those at one time the last is a start if there is one, else the end of the innermost event
        time = np.concatenate([end, start])
        order = np.argsort(time, kind="stable")
        time = time[order]
        is_last = np.flatnonzero(np.append(time[1:] != time[:-1], True))
        time, order = time[is_last], order[is_last]
        # after a start that event runs, after an end the one around it
        runs = np.where(order < len(end), np.append(above, 0 * above)[order], order - len(end))
        if (
            crosses
        ):  # it may be a later one that the event does not contain: the last one begun, or one around that
            runs = np.searchsorted(start, time, side="right") - 1
        ended = np.flatnonzero((runs >= 0) & (end[runs] <= time))
        while len(ended):
            further = above[runs[ended]]
            runs[ended] = further
            ended = ended[(further >= 0) & (end[further] <= time[ended])]
        # the last one for -1: nothing runs
        event = np.append(np.where(event_row >= 0, rows[event_row], -1), -1)[runs]
        call = np.append(np.where(is_call, rows, -1), -1)[runs]
        return time, event, call


def _rows_by_thread(
    thread: IntArray, start: IntArray, end: IntArray, asked: Intervals, counted: BoolArray | None = None
) -> dict[int, IntArray]:
    """The events of each thread that run in some times, a union; those without length do not. The columns are in the order of threads."""
    # the first of the times that ends after an event's start begins before the event's end
    following = np.searchsorted(asked[1], start, side="right")
    runs = np.append(asked[0], np.iinfo(np.int64).max)[following] < end
    runs &= end > start
    rows = np.flatnonzero(runs if counted is None else runs & counted)
    return {int(thread[rows[a]]): rows[a:b] for a, b in thread_slices(thread[rows])}


def _main_thread(trace: Trace) -> int:
    """The thread that marks the steps, else the one with the most ops and Python calls; -1: there are none."""
    steps = step_rows(trace)
    if len(steps):
        return int(trace.thread[steps[0]])
    threads, place = distinct(np.concatenate([trace.thread[trace.kind != RUNTIME], trace.frames.thread]))
    return int(threads[np.argmax(np.bincount(place))]) if len(threads) else -1


def _sources(launched: _LaunchedWork, gaps: Gaps, late: HostLate) -> tuple[IdleSource, ...]:
    """What the charges of a device's gaps come from, the most time first."""
    if not len(gaps):
        return ()
    trace, work, launches, _, host = launched
    device_names = np.array([*trace.device.names, ""], object)
    after = _positions(work, gaps.after)
    thread = _threads(trace, launches, after)
    found: list[IdleSource] = []
    if len(late):
        event, call = host.names_of(late.event), host.names_of(late.call)
        length = late.end_ns - late.start_ns
        found += _ranked(CAUSES[HOST_LATE], host.names, event, call, length, late.gap)

    def charge(cause: int, names: IntArray, event: IntArray, call: IntArray, some: IntArray) -> None:
        found.extend(_ranked(CAUSES[cause], names, event, call, gaps.charges[some, cause], some))

    some = np.flatnonzero((gaps.charges[:, SYNCHRONISATION] > 0) & (gaps.wait >= 0))
    wait = gaps.wait[some]
    event = host.name_at(thread[some], trace.start_ns[wait])
    charge(SYNCHRONISATION, host.names, event, host.names_of(wait), some)
    for cause, rows in (
        (COLLECTIVE_WAIT, gaps.before),
        (STREAM_WAIT, gaps.before),
        (UNKNOWN, gaps.after),
    ):
        some = np.flatnonzero(gaps.charges[:, cause] > 0)
        work_name = trace.device.name[rows[some]].astype(np.int64)
        charge(cause, device_names, work_name, np.full(len(some), len(trace.device.names)), some)
    some = np.flatnonzero(gaps.charges[:, LAUNCH_DELAY] > 0)
    row, op = np.maximum(launches.row[after[some]], 0), trace.device.op[gaps.after[some]]
    around = host.name_at(thread[some], trace.start_ns[row])
    event = np.where(op >= 0, host.names_of(op), around)
    charge(LAUNCH_DELAY, host.names, event, host.names_of(row), some)
    some = np.flatnonzero(gaps.charges[:, KERNEL_SWITCH] > 0)
    between = np.array(["between queued kernels", ""], object)
    nothing = np.zeros(len(some), np.int64)
    charge(KERNEL_SWITCH, between, nothing, nothing + 1, some)
    return tuple(sorted(found, key=lambda source: (-source.time_ns, source.cause, source.source)))


def _ranked(
    cause: str, names: IntArray, event: IntArray, call: IntArray, length: IntArray, gap: IntArray
) -> list[IdleSource]:
    """Charges by their source and call, which are numbers into `names`."""
    keys, group = distinct(event * len(names) + call)
    total = np.zeros(len(keys), np.int64)
    np.add.at(total, group, length)
    width = int(gap.max(initial=0)) + 1
    pairs = distinct_values(
        (group * width + gap)[length > 0]
    )  # one number per pair: rows of two sort ten times as slowly
    gaps = np.bincount(pairs // width, minlength=len(keys))
    return [
        IdleSource(cause, str(names[key // len(names)]), str(names[key % len(names)]), time, count)
        for key, time, count in zip(keys.tolist(), total.tolist(), gaps.tolist())
        if time
    ]


# ---------------------------------------------------------------------------------------------------- queues and short kernels


def _queues(launched_work: _LaunchedWork, rows: IntArray) -> Iterator[QueueLength]:
    trace, work, launches, _, _ = launched_work
    rows = rows[launches.row[rows] >= 0]
    for stream, of_stream in rows_by(trace.device.stream[work.rows[rows]]):
        own = rows[of_stream]
        launched = launches.start_ns[own]
        started = np.maximum(work.start_ns[own], launched)
        time = np.concatenate([launched, started])
        change = np.repeat([1, -1], len(own))
        order = np.lexsort((-change, time))
        yield QueueLength(stream, time[order], np.cumsum(change[order]))


def _short_kernels(launched: _LaunchedWork, rows: IntArray) -> tuple[ShortKernels, ...]:
    """Work that runs for less time than its launch call; not that of graphs, which launch many kernels with one call."""
    trace, work, launches, _, _ = launched
    device = trace.device
    with_call = np.bincount(launches.row + 1)[launches.row[rows] + 1]  # how much work has the same call
    rows = rows[launches.is_call[rows] & (with_call == 1)]
    numbers, name = distinct(device.name[work.rows[rows]])
    run = work.end_ns[rows] - work.start_ns[rows]
    call = launches.end_ns[rows] - launches.start_ns[rows]
    short = run < call
    size = len(numbers)
    counts, of = np.bincount(name[short], minlength=size), np.bincount(name, minlength=size)
    run_ns, launch_ns = np.zeros(size, np.int64), np.zeros(size, np.int64)
    np.add.at(run_ns, name[short], run[short])
    np.add.at(launch_ns, name[short], call[short])
    order = np.argsort(-launch_ns, kind="stable")
    return tuple(
        ShortKernels(device.names[numbers[i]], int(counts[i]), int(of[i]), int(run_ns[i]), int(launch_ns[i]))
        for i in order.tolist()
        if counts[i]
    )
