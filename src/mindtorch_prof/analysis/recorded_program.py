"""A recorded program: Results in; what the rules of `advise` ask about it out: events by name, places in the code, and the device's gaps.

A *gap* is a time in which nothing runs on a device, between its first and its last event. The host is *late* for a gap if the call that
launched the next work began only after the gap had begun: the device had nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypedDict

import numpy as np

from ..arrays import BoolArray, IntArray
from ..averages import group_names
from ..frames import is_user_code
from ..steps import is_step, step_number
from ..torch_api.tensor_ids import Tensors
from ..trace import ANNOTATION
from ..tree import nearest
from .figures import span
from .intervals import Intervals, covered, union

if TYPE_CHECKING:
    from ..torch_api.results import Results

EVIDENCE_ROWS = 5
_LEVELS = 3  # of annotations that tell where an event is


class Evidence(TypedDict):
    """Events of one name at one place."""

    name: str
    where: str  # a line of the program, or the annotations around the events
    count: int
    total_us: float


@dataclass(frozen=True)
class Advice:
    """A suggested change of the program."""

    code: str  # stable, for programs
    message: str  # what was seen
    advice: str  # what to do about it
    count: int  # how often it was seen
    at_stake_us: float  # the most time that the change can save
    share: float  # the same as a share of the recording
    evidence: list[Evidence] = field(default_factory=list)  # the largest first

    def to_dict(self) -> dict[str, object]:
        """As plain values."""
        return asdict(self)


class Gaps(NamedTuple):
    """Times in which a device was idle, as columns in the order of time."""

    begin: IntArray  # ns
    end: IntArray  # ns
    work: IntArray  # the row of the device's event that ends the gap
    launch: IntArray  # the row of the call that launched it; -1: not known

    @property
    def length(self) -> IntArray:
        return self.end - self.begin

    def take(self, which: BoolArray) -> Gaps:
        """Some of the gaps."""
        return Gaps(*(column[which] for column in self))


class RecordedProgram:
    """A recording, and the questions that several rules ask about it."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.trace = results.trace
        self.parent: IntArray = results.tree.parent
        self.duration: IntArray = self.trace.end_ns - self.trace.start_ns

    @cached_property
    def length_ns(self) -> int:
        """The span of the recording, at least 1."""
        begin, end = span(self.trace)
        return max(1, end - begin)

    @cached_property
    def tensors(self) -> Tensors:
        return Tensors(self.trace)

    # ------------------------------------------------------------------------------------------------ events

    def named(self, is_wanted: Callable[[str], bool]) -> BoolArray:
        """Mask of the events whose name fulfils a condition."""
        by_name = np.array([is_wanted(text) for text in self.trace.names] or [False])
        return by_name[self.trace.name] if len(self.trace) else np.zeros(0, bool)

    def enclosing(self, chosen: BoolArray) -> IntArray:
        """For each event the row of its nearest chosen ancestor; -1: none."""
        return np.where(self.parent < 0, -1, nearest(self.parent, chosen)[self.parent])

    def outermost(self, chosen: BoolArray) -> IntArray:
        """Rows of the chosen events that no other chosen event contains."""
        return np.flatnonzero(chosen & (self.enclosing(chosen) < 0))

    @cached_property
    def outer_event(self) -> IntArray:
        """For each event the outermost one around it that is no annotation, or itself; of an annotation, the outermost one below a step."""
        plain = (self.trace.kind != ANNOTATION) & ~is_step(self.trace)
        above = np.maximum(self.parent, 0)
        alone = (self.parent < 0) | (plain & ~plain[above]) | is_step(self.trace)[above]
        return nearest(self.parent, alone)

    # ------------------------------------------------------------------------------------------------ the device

    @cached_property
    def devices(self) -> list[int]:
        """The devices that work."""
        device = self.trace.device
        numbers: list[int] = np.unique(device.device[device.works]).tolist()
        return numbers

    def on(self, number: int) -> BoolArray:
        """Mask of the work of a device."""
        mask: BoolArray = self.trace.device.works & (self.trace.device.device == number)
        return mask

    def gaps(self, number: int) -> Gaps:
        """The gaps of a device."""
        device = self.trace.device
        rows = np.flatnonzero(self.on(number))
        starts, ends = union(device.start_ns[rows], device.end_ns[rows])
        by_start = rows[np.argsort(device.start_ns[rows], kind="stable")]
        first = np.searchsorted(device.start_ns[by_start], starts[1:])
        return Gaps(ends[:-1], starts[1:], by_start[first], device.launch[by_start[first]])

    def late_gaps(self, number: int) -> Gaps:
        """The gaps of a device for which the host was late."""
        gaps = self.gaps(number)
        launched = np.append(self.trace.start_ns, -1)[gaps.launch]
        return gaps.take((gaps.launch >= 0) & (launched >= gaps.begin))

    def cost_ns(self, rows: IntArray) -> int:
        """What events that do not overlap cost: their time; in a recording with a device, the time in which the device is idle meanwhile,
        and the time of the work that they launched."""
        begin, end = self.trace.start_ns[rows], self.trace.end_ns[rows]
        if not self.devices:
            return int(self.duration[rows].sum())
        columns = self.results.device_columns
        launched = 0 if columns is None else int(columns.total_ns[rows].sum())
        return int(self.idle_in(begin, end).sum()) + launched

    def idle_in(self, begin: IntArray, end: IntArray) -> IntArray:
        """How much of each time all devices are idle, between their first and their last event."""
        device = self.trace.device
        busy = union(device.start_ns[device.works], device.end_ns[device.works])
        low, high = int(busy[0][0]), int(busy[1][-1])
        begin, end = np.clip(begin, low, high), np.clip(end, low, high)
        idle: IntArray = (end - begin) - covered(busy, begin, end)
        return idle

    def exposed(self, chosen: BoolArray, other: BoolArray) -> Intervals:
        """The times in which chosen device events run and none of the others; both are masks."""
        device = self.trace.device
        return without(
            union(device.start_ns[chosen], device.end_ns[chosen]),
            union(device.start_ns[other], device.end_ns[other]),
        )

    # ------------------------------------------------------------------------------------------------ evidence

    def location(self, row: int) -> str:
        """The line of the program from which an event was called; if there is none, the annotations around the event, but for steps."""
        number = int(self.trace.stack[row])
        stack = self.trace.stacks[number] if number >= 0 else ()
        for frame in stack:
            if is_user_code(frame):
                return frame
        above = int(self.parent[row])
        names: list[str] = []
        while above >= 0 and len(names) < _LEVELS:
            name = self.trace.names[self.trace.name[above]]
            if self.trace.kind[above] == ANNOTATION and step_number(name) < 0 and name not in names:
                names.append(name)
            above = int(self.parent[above])
        return " < ".join(names)

    @cached_property
    def _annotation(self) -> IntArray:
        """For each event the nearest annotation around it that marks no step; -1: none."""
        return self.enclosing((self.trace.kind == ANNOTATION) & ~is_step(self.trace))

    def evidence(self, rows: IntArray, times_ns: IntArray | None = None) -> list[Evidence]:
        """Events grouped by name and location, over all steps, the longest first; `times_ns`: other times than the events' durations."""
        times_ns = self.duration[rows] if times_ns is None else times_ns
        if not len(rows):
            return []
        trace = self.trace
        group_of, texts = group_names(trace)
        above = self._annotation[rows]
        around = np.where(above >= 0, group_of[trace.name[above]], -1)
        key = np.stack([group_of[trace.name[rows]], trace.stack[rows], around])
        _, first, group = np.unique(key, axis=1, return_index=True, return_inverse=True)
        keys = [(texts[group_of[trace.name[row]]], self.location(row)) for row in rows[first].tolist()]
        return _ranked(keys, group.reshape(-1), times_ns)

    def device_evidence(self, rows: IntArray, times_ns: IntArray | None = None) -> list[Evidence]:
        """Events of devices grouped by name and by the op that launched them, the longest first."""
        trace, device = self.trace, self.trace.device
        times_ns = (device.end_ns - device.start_ns)[rows] if times_ns is None else times_ns
        if not len(rows):
            return []
        group_of, texts = group_names(trace)
        op = device.op[rows]
        launcher = np.where(op >= 0, np.append(group_of, -1)[np.append(trace.name, -1)[op]], -1)
        key = np.stack([device.name[rows].astype(np.int64), launcher])
        distinct, group = np.unique(key, axis=1, return_inverse=True)
        keys = [
            (device.names[name], f"launched by {texts[number]}" if number >= 0 else "")
            for name, number in distinct.T.tolist()
        ]
        return _ranked(keys, group.reshape(-1), times_ns)

    def advice(
        self, code: str, message: str, advice: str, count: int, ns: float, evidence: list[Evidence]
    ) -> Advice:
        """A suggestion; `ns`: the time it can save."""
        return Advice(code, message, advice, count, float(ns) / 1000, float(ns) / self.length_ns, evidence)


def without(intervals: Intervals, removed: Intervals) -> Intervals:
    """The times of intervals that are in none of the removed ones; both are unions."""
    intervals, removed = ((start[end > start], end[end > start]) for start, end in (intervals, removed))
    (start, end), (removed_start, removed_end) = intervals, removed
    # what is left begins where an interval begins or a removed one ends, and ends at the next end or removed start
    begins = np.concatenate([start, removed_end])
    stops = np.concatenate([end, removed_start])
    begins = np.unique(begins[_inside(intervals, begins) & ~_inside(removed, begins)])
    stops = np.unique(stops[_up_to(intervals, stops) & ~_up_to(removed, stops)])
    return begins, stops


def _inside(intervals: Intervals, times: IntArray) -> BoolArray:
    """Whether each time is in an interval, whose start counts and whose end does not."""
    place = np.searchsorted(intervals[0], times, side="right") - 1
    return (place >= 0) & (times < np.append(intervals[1], 0)[place])


def _up_to(intervals: Intervals, times: IntArray) -> BoolArray:
    """Whether each time is in an interval, whose end counts and whose start does not."""
    place = np.searchsorted(intervals[0], times, side="left") - 1
    return (place >= 0) & (times <= np.append(intervals[1], 0)[place])


def _ranked(keys: list[tuple[str, str]], group: IntArray, times_ns: IntArray) -> list[Evidence]:
    """Sums by key (name and location) as evidence; `group`: for each time the number of its key."""
    counts = np.bincount(group, minlength=len(keys)).tolist()
    totals = np.bincount(group, weights=times_ns, minlength=len(keys)).tolist()
    sums: dict[tuple[str, str], tuple[int, float]] = {}
    for key, count, total in zip(keys, counts, totals):
        before = sums.get(key, (0, 0.0))
        sums[key] = before[0] + count, before[1] + total
    ranked = sorted(sums.items(), key=lambda item: -item[1][1])[:EVIDENCE_ROWS]
    return [
        {"name": name, "where": where, "count": count, "total_us": time / 1000}
        for (name, where), (count, time) in ranked
    ]
