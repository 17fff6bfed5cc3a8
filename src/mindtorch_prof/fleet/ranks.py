"""Ranks: trace files of the ranks of one job in (or one merged file), one row per rank out: how long its steps take, how much of that is
communication, and which rank the others wait for.

In a job that synchronises every step all ranks take equally long; the slow one is the one that waits least in collectives. So ranks are
compared by their work: the step less its exposed communication (communication without computation at the same time).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .. import communication as communication_names
from ..analysis.noise import compare, exceeds
from ..arrays import BoolArray, FloatArray, IntArray
from ..json_types import JSONScalar
from ..rewrite.raw_events import (
    DEVICE_ANNOTATIONS,
    DEVICE_CATEGORIES,
    NONE,
    EventColumns,
    Progress,
    read_columns,
)
from ..rewrite.slice import ranks_of
from ..steps import step_numbers
from .same_job import JobFacts, job_facts, unrelated

_WAITING = frozenset(("cuda_sync", "collective_task"))  # and what is inside a collective's own row


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
    slow: bool  # whether its work exceeds that of the others by more than chance and more than the threshold


@dataclass(frozen=True)
class RankReport:
    """All ranks, in the order of their numbers."""

    rows: tuple[RankRow, ...]
    steps: tuple[int, ...]  # the steps that all ranks have; empty: whole traces are compared
    skew_us: float  # how far apart the ranks begin a step (median over steps)
    notes: tuple[str, ...]
    refused: str = ""  # why the files cannot be of one job: then no rank is called slow

    @property
    def slow(self) -> tuple[RankRow, ...]:
        """The stragglers: the ranks that the others wait for."""
        return tuple(row for row in self.rows if row.slow)

    def to_dicts(self) -> list[dict[str, int | float | str | bool | None]]:
        """The rows as plain dicts."""
        return [dict(vars(row)) for row in self.rows]


class _Step(NamedTuple):
    """A step of a rank, in nanoseconds."""

    length: int
    communication: int
    exposed: int  # communication
    device: int


class _Figures(NamedTuple):
    """The times of a RankRow, of a step or as medians, in microseconds."""

    step: float
    work: float
    communication: float
    exposed: float
    device: float


@dataclass(frozen=True)
class _Rank:
    """One rank's steps, by number."""

    rank: int | None
    label: str
    start_ns: dict[int, int]
    steps: dict[int, _Step]


def rank_report(
    paths: Sequence[str | os.PathLike[str]],
    *,
    threshold: float = 0.05,
    strict: bool = False,
    as_recorded: bool = False,
    progress: Progress | None = None,
) -> RankReport:
    """Compare the ranks in trace files: one file per rank, or one merged file. as_recorded: without synthetic events."""
    ranks: list[_Rank] = []
    facts: list[JobFacts] = []
    for path in paths:
        columns = read_columns(path, strict=strict, as_recorded=as_recorded, progress=progress)
        facts.append(job_facts(columns, path))
        ranks += _ranks_of_file(columns, os.fspath(path))
    if not ranks:
        raise ValueError("no ranks to compare; expected one trace file per rank")
    ranks.sort(key=lambda rank: (rank.rank is None, rank.rank or 0))
    report = _report(ranks, threshold)
    reason = unrelated(facts)
    if not reason:
        return report
    rows = tuple(replace(row, slow=False, behind=0.0, slowest=0) for row in report.rows)
    return replace(report, rows=rows, refused=f"the files are not ranks of one job: {reason}")


def _report(ranks: list[_Rank], threshold: float) -> RankReport:
    steps = tuple(sorted(set.intersection(*(set(rank.steps) for rank in ranks))))
    figures = (
        np.array([[_figures(rank.steps[step]) for step in steps] for rank in ranks], float) if steps else None
    )
    work = (
        figures[:, :, 1] if figures is not None else np.array([[_own_medians(rank).work] for rank in ranks])
    )
    medians = [
        _Figures(*np.median(figures[place], axis=0).tolist()) if figures is not None else _own_medians(rank)
        for place, rank in enumerate(ranks)
    ]
    rows = [
        _row(rank, medians[place], work, place, threshold, bool(steps)) for place, rank in enumerate(ranks)
    ]
    starts = [[rank.start_ns[step] for rank in ranks] for step in steps]
    skew = 0.0
    if starts and len(ranks) > 1:
        skew = float(np.median([max(row) - min(row) for row in starts])) / 1000
    return RankReport(tuple(rows), () if steps == (-1,) else steps, skew, _notes(ranks, steps))


def _notes(ranks: list[_Rank], steps: tuple[int, ...]) -> tuple[str, ...]:
    notes: list[str] = []
    if not steps:
        notes.append("the ranks have no steps in common: the values of each rank are over its own steps")
    elif steps == (-1,):
        notes.append("no steps (ProfilerStep#N): whole traces are compared")
    if not any(step.communication for rank in ranks for step in rank.steps.values()):
        notes.append("no collectives in the traces: ranks are compared by step time")
    return tuple(notes)


def _row(
    rank: _Rank, medians: _Figures, work: FloatArray, place: int, threshold: float, has_steps: bool
) -> RankRow:
    """The row of rank number `place`; `work`: one row per rank, one column per step."""
    own_work = work[place]
    middle = np.median(work, axis=0)
    others = np.delete(work, place, axis=0)
    # the same steps on both sides: the median of the ratios tells a steady lag from a bad step
    behind = float(np.median(own_work / np.maximum(middle, 1e-9)) - 1)
    slowest, slow = 0, False
    if len(others):
        test = compare(np.median(others, axis=0), own_work)
        slow = test.delta > 0 and exceeds(test.a, test.b, threshold) and test.significant()
        slowest = int((own_work > others.max(axis=0)).sum()) if has_steps else 0
    return RankRow(
        rank=rank.rank,
        label=rank.label,
        steps=len(rank.steps),
        step_us=medians.step,
        work_us=medians.work,
        communication_us=medians.communication,
        exposed_us=medians.exposed,
        device_us=medians.device,
        behind=behind,
        slowest=slowest,
        slow=slow,
    )


def _figures(step: _Step) -> _Figures:
    return _Figures(
        step.length / 1e3,
        max(step.length - step.exposed, 0) / 1e3,
        step.communication / 1e3,
        step.exposed / 1e3,
        step.device / 1e3,
    )


def _own_medians(rank: _Rank) -> _Figures:
    """Medians over all steps of a rank."""
    figures = np.array([_figures(step) for step in rank.steps.values()], float)
    return _Figures(*np.median(figures, axis=0).tolist())


# ---------------------------------------------------------------------------------------------------- one file


def _ranks_of_file(columns: EventColumns, path: str) -> list[_Rank]:
    """The ranks of a file: one, or those of a merged file."""
    parts = [
        _rank(columns, columns.by_thread([pid in pids for pid, _ in columns.threads]), rank, label)
        for rank, label, pids in _merged_parts(columns)
    ]
    if not parts:
        rank = columns.head.rank
        label = f"rank {rank}" if rank is not None else os.path.basename(path)
        parts = [_rank(columns, np.ones(len(columns), bool), rank, label)]
    return [part for part in parts if part is not None]


def _merged_parts(columns: EventColumns) -> list[tuple[int | None, str, frozenset[JSONScalar]]]:
    """Rank, label and processes of each file in a merged file; where it has no list of them, by processes named after ranks."""
    merged = columns.head.top.get("merged")
    if isinstance(merged, list):
        return [
            (
                rank if isinstance(rank := entry.get("rank"), int) else None,
                str(entry.get("label", "")),
                frozenset(pid if isinstance(pid, (int, str)) else str(pid) for pid in pids),
            )
            for entry in merged
            if isinstance(entry, dict) and isinstance(pids := entry.get("pids"), list)
        ]
    ranks = ranks_of(columns)
    known = sorted({rank for rank in ranks.values() if rank is not None})
    if len(known) < 2:
        return []
    return [(r, f"rank {r}", frozenset(pid for pid, rank in ranks.items() if rank == r)) for r in known]


def _rank(columns: EventColumns, mine: BoolArray, rank: int | None, label: str) -> _Rank | None:
    """The steps of the rank whose events are in the mask `mine`; None: it has no slices."""
    slices = (
        mine & (columns.phase == ord("X")) & (columns.start_ns != NONE) & ~columns.is_category(("Trace",))
    )
    if not slices.any():
        return None
    on_device = columns.is_category(DEVICE_CATEGORIES) & slices
    host = slices & ~on_device
    work = on_device & ~columns.is_category(DEVICE_ANNOTATIONS | _WAITING)
    if work.any():
        communication = work & columns.by_name(communication_names.on_device(columns.names).tolist())
    else:
        communication = host & columns.by_name(communication_names.on_host(columns.names).tolist())
    numbers, low, high = _steps(columns, host)
    launched = _launch_times(columns, host, work)
    start, end = columns.start_ns, columns.end_ns
    steps: dict[int, _Step] = {}
    starts: dict[int, int] = {}
    last_begun = np.searchsorted(low, launched, side="right") - 1
    in_step = (last_begun >= 0) & (launched <= high[np.maximum(last_begun, 0)])
    step_of = np.where(in_step, last_begun, -1)
    for place, number in enumerate(numbers):
        here = step_of == place
        step_work, step_communication = here & work, here & communication
        communicating = _covered(start[step_communication], end[step_communication])
        busy = _covered(start[step_work], end[step_work])
        computing = _covered(start[step_work & ~communication], end[step_work & ~communication])
        exposed = busy - computing if work.any() else communicating
        length = int(high[place] - low[place])
        if step_work.any():  # the CPU may be done with a step long before the device is
            length = max(length, int(end[step_work].max() - start[step_work].min()))
        steps[number] = _Step(length, communicating, exposed, busy)
        starts[number] = columns.head.base_ns + int(low[place])
    return _Rank(rank, label, starts, steps)


def _steps(columns: EventColumns, host: BoolArray) -> tuple[list[int], IntArray, IntArray]:
    """Numbers, starts and ends of the steps; one step with number -1 where there are none."""
    number = step_numbers(columns.names, columns.name)
    rows = np.flatnonzero(host & (number >= 0))
    if not len(rows):
        rows = np.flatnonzero(host) if host.any() else np.flatnonzero(columns.start_ns != NONE)
        return [-1], columns.start_ns[rows].min(keepdims=True), columns.end_ns[rows].max(keepdims=True)
    rows = rows[np.argsort(columns.start_ns[rows], kind="stable")]
    _, first = np.unique(number[rows], return_index=True)
    rows = rows[np.sort(first)]
    return number[rows].tolist(), columns.start_ns[rows], columns.end_ns[rows]


def _launch_times(columns: EventColumns, host: BoolArray, work: BoolArray) -> IntArray:
    """The starts of events; of device work when it was launched from the CPU, where the file says so."""
    times = columns.start_ns.copy()
    calls = np.flatnonzero(host & (columns.correlation != NONE) & (columns.correlation > 0))
    if not len(calls):
        return times
    order = calls[np.argsort(columns.correlation[calls], kind="stable")]
    ids = columns.correlation[order]
    rows = np.flatnonzero(work & (columns.correlation != NONE))
    place = np.minimum(np.searchsorted(ids, columns.correlation[rows]), len(ids) - 1)
    known = ids[place] == columns.correlation[rows]
    times[rows[known]] = columns.start_ns[order[place[known]]]
    return times


def _covered(start: IntArray, end: IntArray) -> int:
    """The length of the union of intervals."""
    if not len(start):
        return 0
    order = np.argsort(start, kind="stable")
    start, furthest = start[order], np.maximum.accumulate(end[order])
    before = np.concatenate([start[:1], furthest[:-1]])
    return int(np.maximum(furthest - np.maximum(start, before), 0).sum())
