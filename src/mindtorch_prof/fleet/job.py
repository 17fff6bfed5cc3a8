"""The job: a Sketch in; its ranks in order out, each with all its files joined, on one time axis.

Times are nanoseconds since the job's first event, by each rank's own clock: `clocks` says how far these are apart.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import IntArray
from .histograms import OTHERS
from .phases import Cell
from .sketch import Missing, RankSketch, Sketch

_MOST_CELLS = 100


@dataclass(frozen=True)
class JobRank:
    """One rank: its files, in the order of time."""

    place: int  # among the ranks of the job
    rank: int | None
    sketches: tuple[RankSketch, ...]
    origin_ns: int  # time 0 of the job, since the epoch

    @property
    def label(self) -> str:
        return f"rank {self.rank}" if self.rank is not None else os.path.basename(self.file)

    @property
    def file(self) -> str:
        return self.sketches[0].file

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(sketch.file for sketch in self.sketches)

    @property
    def host(self) -> str:
        return self.sketches[0].host

    @property
    def has_device(self) -> bool:
        return any(sketch.device is not None for sketch in self.sketches)

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """Numbers of steps, in the order of time."""
        return tuple(number for s in self.sketches if s.phases is not None for number in s.phases.steps)

    @cached_property
    def step_start_ns(self) -> IntArray:
        return self._by_step("start_ns")

    @cached_property
    def step_end_ns(self) -> IntArray:
        return self._by_step("end_ns")

    @cached_property
    def waiting_ns(self) -> IntArray:
        parts = [sketch.phases.waiting_ns for sketch in self.sketches if sketch.phases is not None]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def _by_step(self, name: str) -> IntArray:
        parts = [
            getattr(sketch.phases, name) + sketch.base_ns - self.origin_ns
            for sketch in self.sketches
            if sketch.phases is not None
        ]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def device_column(self, name: str) -> IntArray:
        """A column of DeviceSteps by step; 0 where a file has no device."""
        parts = [
            getattr(sketch.device, name)
            if sketch.device is not None
            else np.zeros(len(sketch.phases.steps), np.int64)
            for sketch in self.sketches
            if sketch.phases is not None
        ]
        return np.concatenate([np.empty(0, np.int64), *parts])

    @cached_property
    def step_ns(self) -> IntArray:
        """How long each step took: on the host, or from the first to the last work on the device where that is longer."""
        longest: IntArray = np.maximum(self.step_end_ns - self.step_start_ns, self.device_column("span_ns"))
        return longest


@dataclass(frozen=True)
class Job:
    """The ranks in the order of their numbers, and what is missing."""

    ranks: tuple[JobRank, ...]
    missing: tuple[Missing, ...]
    notes: tuple[str, ...]
    origin_ns: int

    def __len__(self) -> int:
        return len(self.ranks)

    @property
    def has_device(self) -> bool:
        return any(rank.has_device for rank in self.ranks)

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The numbers of the steps that all ranks have; (-1,): there are no steps, whole traces are compared; (): none in common."""
        known = [set(rank.steps) for rank in self.ranks if rank.steps]
        return tuple(sorted(set.intersection(*known))) if known else ()

    @cached_property
    def with_steps(self) -> tuple[JobRank, ...]:
        """The ranks that have steps at all."""
        return tuple(rank for rank in self.ranks if rank.steps)

    def by_step(self, values: Sequence[IntArray]) -> IntArray:
        """rank x step: of columns by step, one per rank of `with_steps`, the values of the common steps."""
        return np.array([column[self._places(rank)] for rank, column in zip(self.with_steps, values)])

    def _places(self, rank: JobRank) -> list[int]:
        place = {number: place for place, number in reversed(list(enumerate(rank.steps)))}
        return [place[number] for number in self.steps]

    @cached_property
    def step_ns(self) -> IntArray:
        """rank x step: the length of each step."""
        return self.by_step([rank.step_ns for rank in self.with_steps])

    def cells(self, *, on_device: bool) -> tuple[tuple[Cell, ...], IntArray]:
        """Cells (ops, or kernels of the device) and rank x step x cell: own time. Small cells are added up by phase, as OTHERS."""
        tables = [
            [_cells(sketch, on_device) for sketch in rank.sketches if sketch.phases is not None]
            for rank in self.with_steps
        ]
        largest: dict[Cell, int] = {}  # the most time that a rank spends there
        for parts in tables:
            own: dict[Cell, int] = {}
            for cells, table in parts:
                for cell, time in zip(cells, table.sum(axis=0).tolist()):
                    own[cell] = own.get(cell, 0) + time
            for cell, time in own.items():
                largest[cell] = max(largest.get(cell, 0), time)
        kept = set(sorted(largest, key=lambda cell: (-largest[cell], cell))[:_MOST_CELLS])
        names = {cell: cell if cell in kept else Cell(cell.phase, "", OTHERS) for cell in largest}
        distinct = sorted(set(names.values()))
        place = {cell: distinct.index(name) for cell, name in names.items()}
        values = np.zeros((len(tables), len(self.steps), len(distinct)), np.int64)
        for number, (rank, parts) in enumerate(zip(self.with_steps, tables)):
            whole = np.zeros((len(rank.steps), len(distinct)), np.int64)
            first = 0
            for cells, table in parts:
                columns = np.array([place[cell] for cell in cells], np.int64)
                np.add.at(whole[first : first + len(table)].T, columns, table.T)
                first += len(table)
            values[number] = whole[self._places(rank)]
        return tuple(distinct), values


def _cells(sketch: RankSketch, on_device: bool) -> tuple[Sequence[Cell], IntArray]:
    assert sketch.phases is not None
    if not on_device:
        return sketch.phases.cells, sketch.phases.cell_ns
    if sketch.device is None:
        return (), np.zeros((len(sketch.phases.steps), 0), np.int64)
    return [Cell("", "", kernel) for kernel in sketch.device.kernels], sketch.device.kernel_ns


def job_of(sketch: Sketch) -> Job:
    """Sort the ranks of a sketch and join the files of each."""
    missing, notes = list(sketch.missing), []
    by_rank: dict[int | None, list[RankSketch]] = {}
    for each in sketch.ranks:
        missing += [
            Missing(copy, each.named_rank, f"the same content as {each.file}") for copy in each.files[1:]
        ]
        by_rank.setdefault(each.named_rank, []).append(each)
    groups: list[tuple[int | None, list[RankSketch]]] = []
    for rank, sketches in by_rank.items():
        if rank is None:
            groups += [(None, [each]) for each in sketches]
            continue
        kept, refused = _in_sequence(sketches)
        missing += [
            Missing(each.file, rank, f"a second recording of rank {rank} at the same time as {kept[0].file}")
            for each in refused
        ]
        groups.append((rank, kept))
    groups.sort(key=lambda group: (group[0] is None, group[0] or 0, group[1][0].file, group[1][0].part))
    if any(each.rank is None and each.named_rank is not None for each in sketch.ranks):
        notes.append("files that do not say which rank they are of: taken from their names")
    missing += _absent([rank for rank, _ in groups], sketch)
    origin = min((each.base_ns for each in sketch.ranks), default=0)
    ranks = tuple(JobRank(place, rank, tuple(parts), origin) for place, (rank, parts) in enumerate(groups))
    return Job(ranks, tuple(sorted(set(missing), key=lambda each: each.sort_key)), tuple(notes), origin)


def _in_sequence(sketches: list[RankSketch]) -> tuple[list[RankSketch], list[RankSketch]]:
    """The recordings of one rank one after the other; and those that overlap an earlier one."""
    kept: list[RankSketch] = []
    refused: list[RankSketch] = []
    for each in sorted(sketches, key=lambda each: (each.base_ns, each.file, each.part)):
        if kept and each.base_ns < kept[-1].base_ns + kept[-1].length_ns:
            refused.append(each)
        else:
            kept.append(each)
    return kept, refused


def _absent(ranks: list[int | None], sketch: Sketch) -> list[Missing]:
    """The ranks of the job that no file is of; not listed where most are absent, as someone chose a few."""
    sizes = [each.world_size for each in sketch.ranks if each.world_size]
    present = {rank for rank in ranks if rank is not None}
    if not sizes or not present:
        return []
    named = {each.rank for each in sketch.missing}  # with a better reason
    absent = sorted(set(range(max(sizes))) - present - named)
    if len(absent) > len(present):
        return [Missing(None, None, f"{len(present)} of {max(sizes)} ranks of the job are here")]
    return [Missing(None, rank, "no file of this rank") for rank in absent]
