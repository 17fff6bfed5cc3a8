"""A recorded program: Results in; what the rules of `advise` ask about it out: events by name, places in the code, and the device's time.

Rules return findings. A finding says in which times of the recording it saw something; `advice.py` charges each nanosecond to one finding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray, distinct, distinct_values, first_rows
from ..averages import group_names
from ..frames import is_user_code
from ..steps import is_step, step_number
from ..torch_api.tensor_ids import Tensors
from ..trace import ANNOTATION
from ..tree import nearest
from .critical_path import CriticalPath, critical_path
from .device_time import DeviceTime, busiest_device
from .figures import device_label, span
from .intervals import Intervals, covered, union, without
from .roofline import Roofline, roofline

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
    at_stake_us: float  # the most time that the change can save; no two findings count the same time
    share: float  # the same as a share of the recording
    evidence: list[Evidence] = field(default_factory=list)  # the largest first
    step_us: float | None = None  # the length of the step whose critical path was asked; None: it was not
    step_without_us: float | None = None  # how long that step would take after the change

    def to_dict(self) -> dict[str, object]:
        """As plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Finding:
    """What a rule has seen."""

    code: str
    message: str
    advice: str
    count: int
    times: tuple[Intervals, ...]  # in which times of the recording, in nanoseconds; they may overlap
    evidence: list[Evidence]
    work: IntArray | None = (
        None  # rows of Device that the change would shorten: the critical path says what that would save
    )
    kept: FloatArray | None = (
        None  # by such row the share of its time that is left after the change; None: nothing is
    )
    calls: IntArray | None = (
        None  # rows of the Trace that the change would make unnecessary, with all they contain
    )


class ChargedTime:
    """The times of a recording that findings have been charged with."""

    def __init__(self) -> None:
        self._taken: Intervals = (np.empty(0, np.int64), np.empty(0, np.int64))

    def charge(self, times: Intervals) -> Intervals:
        """Charge with what is left of some times, which are a union; returns that."""
        own = without(times, self._taken)
        if not len(self._taken[0]):
            self._taken = own
            return own
        self._taken = union(*(np.concatenate(pair) for pair in zip(self._taken, own)))
        return own

    def left(self, begin: IntArray, end: IntArray) -> IntArray:
        """How much of each time is not charged yet."""
        left: IntArray = np.maximum(end - begin, 0) - covered(self._taken, begin, np.maximum(end, begin))
        return left


class RecordedProgram:
    """A recording, and the questions that several rules ask about it."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.trace = results.trace
        self.parent: IntArray = results.nesting.parent
        self.duration: IntArray = self.trace.end_ns - self.trace.start_ns
        self.charged = ChargedTime()

    @cached_property
    def span(self) -> tuple[int, int]:
        """The start of the first event and the end of the last."""
        return span(self.trace)

    @cached_property
    def length_ns(self) -> int:
        """The span of the recording, at least 1."""
        begin, end = self.span
        return max(1, end - begin)

    @cached_property
    def tensors(self) -> Tensors:
        return Tensors(self.trace)

    # ------------------------------------------------------------------------------------------------ events

    def named(self, is_wanted: Callable[[str], bool]) -> BoolArray:
        """Mask of the events whose name fulfils a condition."""
        by_name = np.array([is_wanted(text) for text in self.trace.names] or [False])
        return by_name[self.trace.name] if by_name.any() else np.zeros(len(self.trace), bool)

    def enclosing(self, chosen: BoolArray) -> IntArray:
        """For each event the row of its nearest chosen ancestor; -1: none."""
        if not chosen.any():
            return np.full(len(chosen), -1, np.int64)
        return np.where(self.parent < 0, -1, nearest(self.parent, chosen)[self.parent])

    def outermost(self, chosen: BoolArray) -> IntArray:
        """Rows of the chosen events that no other chosen event contains."""
        if not chosen.any():
            return np.empty(0, np.int64)
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
    def device(self) -> DeviceTime | None:
        """The device that is busy longest; None: the recording has no device work."""
        return busiest_device(self.trace)

    @cached_property
    def path(self) -> CriticalPath | None:
        """The critical path of the typical step; None: the recording has no device work."""
        return None if self.device is None else critical_path(self.results, what_if=0)

    @cached_property
    def roofline(self) -> Roofline:
        return roofline(self.results)

    @cached_property
    def of_device(self) -> str:
        """Which device a sentence is about, in brackets after the word; empty if there is only one."""
        device = self.trace.device
        if self.device is None or len(distinct_values(device.device[device.works])) < 2:
            return ""
        return f" ({device_label(self.trace, self.device.number)})"

    def work_named(self, is_wanted: Callable[[str], bool]) -> IntArray:
        """Rows of the device's work whose name fulfils a condition."""
        if self.device is None:
            return np.empty(0, np.int64)
        by_name = np.array([is_wanted(text) for text in self.trace.device.names], bool)
        rows: IntArray = self.device.rows[by_name[self.trace.device.name[self.device.rows]]]
        return rows

    def launched_by(self, rows: IntArray) -> IntArray:
        """Rows of the device's work that events, or what they contain, launched."""
        if self.device is None:
            return np.empty(0, np.int64)
        chosen = np.zeros(len(self.trace), bool)
        chosen[rows] = True
        inside = np.append(nearest(self.parent, chosen) >= 0, False)
        launched: IntArray = self.device.rows[inside[self.trace.device.op[self.device.rows]]]
        return launched

    def cost(self, rows: IntArray) -> tuple[Intervals, ...]:
        """The times that events cost: those in which they run; in a recording with a device those of them in which the device is idle, and
        the times of the work that they launched."""
        run = union(self.trace.start_ns[rows], self.trace.end_ns[rows])
        if self.device is None:
            return (run,)
        return self.device.idle_during(run), self.device.times(self.launched_by(rows))

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
        # one number per key: columns of three sort many times as slowly
        key = (group_of[trace.name[rows]] * (len(trace.stacks) + 1) + trace.stack[rows] + 1) * (
            len(texts) + 1
        )
        used, group = distinct(key + around + 1)
        first = first_rows(group, len(used))
        keys = [(texts[group_of[trace.name[row]]], self.location(row)) for row in rows[first].tolist()]
        return ranked_evidence(keys, group, times_ns)

    def device_evidence(self, rows: IntArray, times_ns: IntArray | None = None) -> list[Evidence]:
        """Events of devices grouped by name and by the op that launched them, the longest first, with the time that is not charged yet;
        `times_ns`: other times. Those without time are left out."""
        trace, device = self.trace, self.trace.device
        times_ns = (
            self.charged.left(device.start_ns[rows], device.end_ns[rows]) if times_ns is None else times_ns
        )
        rows, times_ns = rows[times_ns > 0], times_ns[times_ns > 0]
        if not len(rows):
            return []
        group_of, texts = group_names(trace)
        op = device.op[rows]
        launcher = np.where(op >= 0, np.append(group_of, -1)[np.append(trace.name, -1)[op]], -1)
        key = device.name[rows].astype(np.int64) * (len(texts) + 1) + launcher + 1
        used, group = distinct(key)
        names, numbers = np.divmod(used, len(texts) + 1)
        keys = [
            (device.names[name], f"launched by {texts[number]}" if number >= 0 else "")
            for name, number in zip(names.tolist(), (numbers - 1).tolist())
        ]
        return ranked_evidence(keys, group.reshape(-1), times_ns)


def ranked_evidence(keys: list[tuple[str, str]], group: IntArray, times_ns: IntArray) -> list[Evidence]:
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
