"""Ranks: trace files of the ranks of one job in (or one merged file), a row a rank out: how long its steps take, how much of that is
communication, and which rank the others wait for.

In a job that synchronises every step all ranks take equally long; the slow one is the one that waits least in collectives. So ranks are
compared by their work: the step less the communication that no computation hides. Knows nothing of text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..analysis.noise import compare, exceeds
from ..rewrite.raw_events import DEVICE_ANNOTATIONS, DEVICE_CATEGORIES, NONE, Columns, Progress, columns
from ..rewrite.slice import ranks_of
from ..steps import step_numbers

_DEVICE_COMMUNICATION = re.compile(
    r"nccl|rccl|hccl|oneccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|sendrecv|broadcastkernel",
    re.IGNORECASE,
)
_HOST_COMMUNICATION = re.compile(r"(gloo|mpi|ucc|nccl|xccl|hccl|ccl):|c10d::(?!record)", re.IGNORECASE)
_WAITING = frozenset(("cuda_sync",))


@dataclass(frozen=True)
class RankRow:
    """One rank; times are medians over its steps, in microseconds. A step lasts on the CPU or on the device, whichever is longer."""

    rank: int | None
    label: str
    steps: int
    step_us: float
    work_us: float  # the step less exposed communication
    communication_us: float  # time in which at least one collective ran
    exposed_us: float  # of that, time in which nothing else ran on the device
    device_us: float  # time in which the device was busy; 0 without a device
    behind: float  # work as a multiple of the median rank's, less 1
    slowest: int  # steps in which its work took longest of all ranks
    slow: bool  # whether that is more than chance and more than the threshold


@dataclass(frozen=True)
class RankReport:
    """All ranks, in the order of their numbers."""

    rows: tuple[RankRow, ...]
    steps: tuple[int, ...]  # the steps that all ranks have; empty: whole traces are compared
    skew_us: float  # how far apart the ranks begin a step (median over steps)
    notes: tuple[str, ...]

    @property
    def slow(self) -> tuple[RankRow, ...]:
        """The stragglers: the ranks that the others wait for."""
        return tuple(row for row in self.rows if row.slow)

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as plain dicts."""
        return [dict(vars(row)) for row in self.rows]


@dataclass(frozen=True)
class _Side:
    """One rank's steps: per step its start and length, communication, exposed communication, time on the device."""

    rank: int | None
    label: str
    start_ns: dict[int, int]
    values: dict[int, tuple[int, int, int, int]]


def rank_report(
    paths: Sequence[str | os.PathLike[str]],
    *,
    threshold: float = 0.05,
    strict: bool = False,
    progress: Progress | None = None,
) -> RankReport:
    """Compare the ranks in trace files: one file per rank, or one merged file."""
    sides: list[_Side] = []
    for path in paths:
        facts = columns(path, strict=strict, progress=progress)
        sides += _sides(facts, os.fspath(path))
    if not sides:
        raise ValueError("no ranks to compare; expected one trace file per rank")
    sides.sort(key=lambda side: (side.rank is None, side.rank or 0))
    return _report(sides, threshold)


def _report(sides: list[_Side], threshold: float) -> RankReport:
    notes = []
    shared = set(sides[0].values)
    for side in sides[1:]:
        shared &= set(side.values)
    steps = tuple(sorted(shared))
    if steps == (-1,) or not steps:
        if not steps:
            notes.append("the ranks have no steps in common: the values of each rank are over its own steps")
        else:
            notes.append("no steps (ProfilerStep#N): whole traces are compared")
    if not any(value[1] for side in sides for value in side.values.values()):
        notes.append("no collectives in the traces: ranks are compared by step time")
    table = np.array([[_figures(side, step) for step in steps] for side in sides], float) if steps else None
    rows = []
    work = table[:, :, 1] if table is not None else np.array([[_own(side)[1]] for side in sides])
    middle = np.median(work, axis=0)
    for place, side in enumerate(sides):
        figures = np.median(table[place], axis=0) if table is not None else _own(side)
        others = np.median(np.delete(work, place, axis=0), axis=0) if len(sides) > 1 else middle
        # the same steps on both sides: the median of the ratios tells a steady lag from a bad step
        behind = float(np.median(work[place] / np.maximum(middle, 1e-9)) - 1)
        most = np.delete(work, place, axis=0).max(axis=0) if len(sides) > 1 else work[place]
        slowest = int((work[place] > most).sum()) if steps else 0
        test = compare(others, work[place])
        slow = len(sides) > 1 and test.delta > 0 and exceeds(test.a, test.b, threshold) and test.significant()
        step, own, talk, exposed, device = (float(value) for value in figures)
        rows.append(
            RankRow(
                side.rank,
                side.label,
                len(side.values),
                step,
                own,
                talk,
                exposed,
                device,
                behind,
                slowest,
                slow,
            )
        )
    starts = [[side.start_ns[step] for side in sides] for step in steps]
    skew = (
        float(np.median([max(row) - min(row) for row in starts])) / 1000 if starts and len(sides) > 1 else 0.0
    )
    return RankReport(tuple(rows), () if steps == (-1,) else steps, skew, tuple(notes))


def _figures(side: _Side, step: int) -> tuple[float, float, float, float, float]:
    """step, work, communication, exposed, device; in microseconds."""
    length, communication, exposed, device = side.values[step]
    return length / 1e3, max(length - exposed, 0) / 1e3, communication / 1e3, exposed / 1e3, device / 1e3


def _own(side: _Side) -> np.ndarray:
    return np.median(np.array([_figures(side, step) for step in side.values], float), axis=0)


# ---------------------------------------------------------------------------------------------------- one file


def _sides(facts: Columns, path: str) -> list[_Side]:
    """The ranks of a file: one, or those of a merged file."""
    base = facts.head.base_ns
    rank = facts.head.rank
    label = f"rank {rank}" if rank is not None else os.path.basename(path)
    found: list[_Side | None] = []
    for entry_rank, entry_label, pids in _merged_parts(facts):
        of = np.array([pid in pids for pid, _ in facts.threads], bool)
        found.append(_side(facts, of[facts.thread], entry_rank, entry_label, base))
    if not found:
        found = [_side(facts, np.ones(len(facts), bool), rank, label, base)]
    return [side for side in found if side is not None]


def _merged_parts(facts: Columns) -> list[tuple[int | None, str, frozenset[Any]]]:
    """What a merged file says of the files in it: rank, label, processes. Where it says nothing, processes named after ranks."""
    merged = facts.head.top.get("merged")
    if isinstance(merged, list):
        return [
            (entry.get("rank"), str(entry.get("label", "")), frozenset(map(_plain_pid, entry["pids"])))
            for entry in merged
            if isinstance(entry, dict) and isinstance(entry.get("pids"), list)
        ]
    ranks = ranks_of(facts)
    known = sorted({rank for rank in ranks.values() if rank is not None})
    if len(known) < 2:
        return []
    return [(r, f"rank {r}", frozenset(pid for pid, rank in ranks.items() if rank == r)) for r in known]


def _plain_pid(pid: Any) -> Any:
    return pid if isinstance(pid, (int, str)) else str(pid)


def _side(facts: Columns, mine: np.ndarray, rank: int | None, label: str, base: int) -> _Side | None:
    slices = mine & (facts.phase == ord("X")) & (facts.start_ns != NONE) & ~facts.is_category(("Trace",))
    if not slices.any():
        return None
    device = facts.is_category(DEVICE_CATEGORIES) & slices
    work = device & ~facts.is_category(DEVICE_ANNOTATIONS | _WAITING)
    numbers, low, high = _steps(facts, slices & ~device)
    on_device = np.array([bool(_DEVICE_COMMUNICATION.search(n)) for n in facts.names] or [False])[facts.name]
    on_host = np.array([bool(_HOST_COMMUNICATION.match(n)) for n in facts.names] or [False])[facts.name]
    talk = work & on_device
    if not work.any():
        talk = slices & ~device & on_host
    launched = _launch_times(facts, slices & ~device, work)
    begin, until = facts.start_ns, facts.end_ns
    values: dict[int, tuple[int, int, int, int]] = {}
    starts: dict[int, int] = {}
    at = np.searchsorted(low, launched, side="right") - 1
    step = np.where((at >= 0) & (launched <= high[np.maximum(at, 0)]), at, -1) if len(low) else np.zeros(0)
    for place, number in enumerate(numbers):
        here = step == place
        spoken = _covered(begin[here & talk], until[here & talk])
        busy = _covered(begin[here & work], until[here & work])
        other = _covered(begin[here & work & ~talk], until[here & work & ~talk])
        exposed = busy - other if work.any() else spoken
        length = int(high[place] - low[place])
        if (here & work).any():  # the CPU may be done with a step long before the device is
            length = max(length, int(until[here & work].max() - begin[here & work].min()))
        values[number] = length, spoken, exposed, busy
        starts[number] = base + int(low[place])
    return _Side(rank, label, starts, values)


def _steps(facts: Columns, host: np.ndarray) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Numbers, starts and ends of the steps; one step with number -1 where there are none."""
    number = step_numbers(facts.names, facts.name)
    rows = np.flatnonzero(host & (number >= 0))
    if not len(rows):
        rows = np.flatnonzero(host) if host.any() else np.flatnonzero(facts.start_ns != NONE)
        return [-1], facts.start_ns[rows].min(keepdims=True), facts.end_ns[rows].max(keepdims=True)
    rows = rows[np.argsort(facts.start_ns[rows], kind="stable")]
    _, first = np.unique(number[rows], return_index=True)
    rows = rows[np.sort(first)]
    return number[rows].tolist(), facts.start_ns[rows], facts.end_ns[rows]


def _launch_times(facts: Columns, host: np.ndarray, work: np.ndarray) -> np.ndarray:
    """When each event was begun from the CPU: device work when it was launched, where the file says so."""
    times = facts.start_ns.copy()
    calls = np.flatnonzero(host & (facts.correlation != NONE) & (facts.correlation > 0))
    if not len(calls):
        return times
    order = calls[np.argsort(facts.correlation[calls], kind="stable")]
    ids = facts.correlation[order]
    rows = np.flatnonzero(work & (facts.correlation != NONE))
    at = np.minimum(np.searchsorted(ids, facts.correlation[rows]), len(ids) - 1)
    known = ids[at] == facts.correlation[rows]
    times[rows[known]] = facts.start_ns[order[at[known]]]
    return times


def _covered(start: np.ndarray, end: np.ndarray) -> int:
    """The time that spans cover together."""
    if not len(start):
        return 0
    order = np.argsort(start, kind="stable")
    start, furthest = start[order], np.maximum.accumulate(end[order])
    before = np.concatenate([start[:1], furthest[:-1]])
    return int(np.maximum(furthest - np.maximum(start, before), 0).sum())
