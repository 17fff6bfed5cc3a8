"""Sketches: one trace file in; a summary of some KB out, which adds up over the files of a job.

A Sketch is a set of RankSketches, one per rank and file, and of files that could not be read. `merge` unites two sets. So the order and
the grouping of merges do not matter, and a file that was read twice counts once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from ..analysis.device_breakdown import (
    ASCEND,
    breakdown_by,
    counted_work,
    steps_of_device_work,
    without_outer_copies,
    work_classes,
)
from ..arrays import IntArray
from ..json_types import JSONObject, JSONValue, whole_number
from ..steps import is_step
from ..trace import ANNOTATION, NODE, OP, Columns, Trace
from ..tree import Tree, tree
from .histograms import Durations
from .merged_files import ranks_in
from .packing import PackingError, packed, unpacked
from .phases import WHOLE_TRACE, Cell, RankPhases, rank_phases
from .rank_collectives import RankCollectives, rank_collectives

# of the bytes and of what they mean; a cache with another one is not read. 2: Ascend's steps without the copies around them
VERSION = 2
_MOST_NAMES = 1_000  # of ops, and of kernels
_MOST_KERNEL_VALUES, _MOST_KERNELS, _FEWEST_KERNELS = 20_000, 200, 20
_RANK_IN_NAME = re.compile(r"rank[_\-. ]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class DeviceSteps(Columns):
    """What the rank's device did with each step, in nanoseconds; one value per step of RankPhases."""

    start_ns: IntArray  # of the first work, on the rank's clock
    span_ns: IntArray
    computation_ns: IntArray
    exposed_communication_ns: IntArray
    exposed_copy_ns: IntArray
    communication_ns: IntArray
    kernels: tuple[str, ...]  # those that take most, in alphabetic order, without communication
    kernel_ns: IntArray  # step x kernel

    @property
    def idle_ns(self) -> IntArray:
        return self.span_ns - self.computation_ns - self.exposed_communication_ns - self.exposed_copy_ns


_Timed = TypeVar("_Timed", RankPhases, DeviceSteps, RankCollectives)


@dataclass(frozen=True)
class RankSketch:
    """One rank as one file recorded it. Times are nanoseconds since `base_ns` on the rank's own clock."""

    digest: str  # of the file's content
    part: int  # which rank of a merged file
    files: tuple[str, ...]  # where this content was found
    rank: int | None  # as the file says
    world_size: int | None
    host: str
    backend: str
    device_name: str
    base_ns: int  # since the epoch, on the rank's own clock
    length_ns: int
    events: int
    health: str  # what is missing from the file or was repaired; "": nothing
    phases: RankPhases | None  # None: the file has no events on the host
    device: DeviceSteps | None  # None: no work on a device
    collectives: RankCollectives
    ops: Durations
    kernels: Durations
    peak_memory: int  # bytes on the host that were allocated during the recording; -1: not recorded
    peak_device_memory: int

    @property
    def key(self) -> tuple[str, int]:
        return self.digest, self.part

    @property
    def file(self) -> str:
        return self.files[0]

    @property
    def named_rank(self) -> int | None:
        """The rank; where the file does not say, a number after "rank" in its name."""
        if self.rank is not None:
            return self.rank
        match = _RANK_IN_NAME.search(os.path.basename(self.file))
        return int(match[1]) if match else None


@dataclass(frozen=True)
class Missing:
    """A file or a rank that takes no part, and why."""

    file: str | None
    rank: int | None
    reason: str

    @property
    def sort_key(self) -> tuple[str, int, str]:
        return self.file or "", -1 if self.rank is None else self.rank, self.reason


@dataclass(frozen=True)
class Sketch:
    """Ranks and missing files, each once and in a fixed order. Equal sets are equal objects with equal bytes."""

    ranks: tuple[RankSketch, ...] = ()
    missing: tuple[Missing, ...] = field(default=())

    def to_bytes(self) -> bytes:
        """The sketch as bytes; the same sketch always gives the same."""
        values: list[JSONValue] = []
        arrays: dict[str, IntArray] = {}
        for number, rank in enumerate(self.ranks):
            value, parts = _rank_to_json(rank)
            values.append(value)
            arrays |= {f"{number}.{name}": array for name, array in parts.items()}
        missing: list[JSONValue] = [[each.file, each.rank, each.reason] for each in self.missing]
        return packed({"version": VERSION, "ranks": values, "missing": missing}, arrays)

    @staticmethod
    def from_bytes(data: bytes) -> Sketch:
        """Back from `to_bytes`; PackingError where the bytes are no sketch of this version."""
        values, arrays = unpacked(data)
        if values.get("version") != VERSION:
            raise PackingError(f"a sketch of version {values.get('version')}; expected {VERSION}")
        by_rank: dict[str, dict[str, IntArray]] = {}
        for name, array in arrays.items():
            number, _, rest = name.partition(".")
            by_rank.setdefault(number, {})[rest] = array
        try:
            ranks = values["ranks"]
            missing = values["missing"]
            if not isinstance(ranks, list) or not isinstance(missing, list):
                raise TypeError("ranks or missing files are no lists")
            return Sketch(
                tuple(_rank_from_json(rank, by_rank.get(str(n), {})) for n, rank in enumerate(ranks)),
                tuple(Missing(*each) for each in missing),  # type: ignore[misc]
            )
        except (KeyError, TypeError) as error:
            raise PackingError(f"not a whole sketch: {error!r}") from error


def merge(a: Sketch, b: Sketch) -> Sketch:
    """The ranks and the missing files of both. Associative, commutative and idempotent."""
    return merge_all((a, b))


def merge_all(sketches: Iterable[Sketch]) -> Sketch:
    """All of them together, in any order."""
    ranks: dict[tuple[str, int], RankSketch] = {}
    missing: set[Missing] = set()
    for sketch in sketches:
        missing.update(sketch.missing)
        for rank in sketch.ranks:
            known = ranks.get(rank.key)
            if known is not None and known.files != rank.files:
                rank = replace(rank, files=tuple(sorted({*known.files, *rank.files})))
            ranks[rank.key] = rank
    return Sketch(
        tuple(ranks[key] for key in sorted(ranks)),
        tuple(sorted(missing, key=lambda each: each.sort_key)),
    )


# ---------------------------------------------------------------------------------------------------- from a trace


def sketch_of(trace: Trace, digest: str, file: str) -> Sketch:
    """The sketch of a trace; `digest` and `file` say where it comes from."""
    parts = (_rank_sketch(part, digest, number, file) for number, part in enumerate(ranks_in(trace)))
    return merge_all(Sketch((part,)) for part in parts)


def _rank_sketch(trace: Trace, digest: str, part: int, file: str) -> RankSketch:
    nesting = tree(trace)
    base, end = _window(trace)
    collectives = rank_collectives(trace, nesting)
    phases = rank_phases(trace, nesting, collectives)
    settings = trace.settings
    device = _device_steps(trace, phases)
    return RankSketch(
        digest=digest,
        part=part,
        files=(file,),
        rank=whole_number(settings.rank),
        world_size=whole_number(settings.world_size),
        host=settings.host_name,
        backend=str(settings.distributed.get("backend") or ""),
        device_name=_device_name(trace),
        base_ns=trace.origin_ns + base,
        length_ns=end - base,
        events=len(trace) + len(trace.device),
        health=trace.health.line(),
        phases=None if phases is None else _since(phases, ("start_ns", "end_ns"), base),
        device=None if device is None else _since(device, ("start_ns",), base),
        collectives=_since(collectives, ("arrival_ns", "start_ns", "end_ns"), base),
        ops=_ops(trace, nesting),
        kernels=_kernels(trace),
        peak_memory=_peak(trace, on_device=False),
        peak_device_memory=_peak(trace, on_device=True),
    )


def _since(table: _Timed, names: tuple[str, ...], base: int) -> _Timed:
    """The table with times since `base`."""
    return replace(table, **{name: getattr(table, name) - base for name in names})


def _window(trace: Trace) -> tuple[int, int]:
    """From the first to the last event."""
    starts = [each.start_ns.min() for each in (trace, trace.device) if len(each)]
    ends = [each.end_ns.max() for each in (trace, trace.device) if len(each)]
    return (int(min(starts)), int(max(ends))) if starts else (0, 0)


def _device_name(trace: Trace) -> str:
    properties = [each for each in trace.settings.device_properties if isinstance(each, dict)]
    return str(properties[0].get("name") or "") if properties else ""


def _ops(trace: Trace, nesting: Tree) -> Durations:
    rows = np.flatnonzero(np.isin(trace.kind, (OP, NODE, ANNOTATION)) & ~is_step(trace) & trace.is_recorded)
    duration = trace.end_ns[rows] - trace.start_ns[rows]
    return Durations.of(trace.names, trace.name[rows], duration, nesting.self_ns[rows]).shortened(_MOST_NAMES)


def _kernels(trace: Trace) -> Durations:
    device = trace.device
    rows = counted_work(device)
    duration = device.end_ns[rows] - device.start_ns[rows]
    return Durations.of(device.names, device.name[rows], duration).shortened(_MOST_NAMES)


def _peak(trace: Trace, *, on_device: bool) -> int:
    """The most bytes that were allocated at a time, of those that were allocated in the recording; -1: memory was not recorded."""
    memory = trace.memory
    rows = np.flatnonzero(memory.on_device == on_device)
    if not len(rows):
        return -1
    running = np.cumsum(memory.nbytes[rows])
    return int((running - np.minimum.accumulate(np.minimum(running, 0))).max())


def _device_steps(trace: Trace, phases: RankPhases | None) -> DeviceSteps | None:
    """The breakdown of the rank's device by the steps of `phases`; work of several devices counts as one device's."""
    device = trace.device
    rows = counted_work(device)
    if not len(rows):
        return None
    steps = phases.steps if phases is not None else (WHOLE_TRACE,)
    numbers, step = steps_of_device_work(trace)
    if steps == (WHOLE_TRACE,):
        step = np.zeros(len(device), np.int64)
    else:
        place = np.array([steps.index(number) if number in steps else -1 for number in numbers], np.int64)
        step = np.where(step >= 0, place[step], -1)
    rows = rows[step[rows] >= 0]
    classes = work_classes(device)[rows]
    start, end = device.start_ns[rows], device.end_ns[rows]
    if trace.settings.device == ASCEND:
        start, end = without_outer_copies(step[rows], start, end, classes, len(steps))
    columns = breakdown_by(step[rows], start, end, classes, len(steps))
    computes = rows[classes == 0]
    kernels, table = _kernel_times(
        device.names,
        device.name[computes],
        step[computes],
        device.end_ns[computes] - device.start_ns[computes],
        len(steps),
    )
    return DeviceSteps(
        columns.start_ns,
        columns.span_ns,
        columns.computation_ns,
        columns.exposed_communication_ns,
        columns.exposed_copy_ns,
        columns.communication_ns,
        kernels,
        table,
    )


def _kernel_times(
    names: tuple[str, ...], name: IntArray, step: IntArray, duration: IntArray, n_steps: int
) -> tuple[tuple[str, ...], IntArray]:
    """step x kernel: how long kernels of this name ran; those that take most."""
    present, which = np.unique(name, return_inverse=True)
    table = np.zeros((n_steps, len(present)), np.int64)
    np.add.at(table, (step, which.reshape(-1)), duration)
    most = max(_FEWEST_KERNELS, min(_MOST_KERNELS, _MOST_KERNEL_VALUES // max(n_steps, 1)))
    largest = np.lexsort((np.arange(len(present)), -table.sum(axis=0)))[:most].tolist()
    order = sorted(largest, key=lambda place: names[present[place]])
    return tuple(names[present[place]] for place in order), table[:, order]


# ---------------------------------------------------------------------------------------------------- bytes

_PLAIN = (
    "digest", "part", "rank", "world_size", "host", "backend", "device_name", "base_ns", "length_ns", "events", "health",
    "peak_memory", "peak_device_memory",
)  # fmt: skip
_PHASE_ARRAYS = ("start_ns", "end_ns", "own_ns", "device_ns", "waiting_ns", "cell_ns")
_DEVICE_ARRAYS = (
    "start_ns", "span_ns", "computation_ns", "exposed_communication_ns", "exposed_copy_ns", "communication_ns", "kernel_ns",
)  # fmt: skip


def _rank_to_json(rank: RankSketch) -> tuple[JSONObject, dict[str, IntArray]]:
    values: JSONObject = {name: getattr(rank, name) for name in _PLAIN}
    values["files"] = list(rank.files)
    arrays: dict[str, IntArray] = {}
    for name, table in (("collectives", rank.collectives), ("ops", rank.ops), ("kernels", rank.kernels)):
        values[name], columns = table.to_json()
        arrays |= {f"{name}.{key}": column for key, column in columns.items()}
    if (phases := rank.phases) is not None:
        values["phases"] = {
            "steps": list(phases.steps),
            "phases": list(phases.phases),
            "cells": [list(cell) for cell in phases.cells],
        }
        arrays |= {f"phases.{name}": getattr(phases, name) for name in _PHASE_ARRAYS}
    if (device := rank.device) is not None:
        values["device"] = {"kernels": list(device.kernels)}
        arrays |= {f"device.{name}": getattr(device, name) for name in _DEVICE_ARRAYS}
    return values, arrays


def _rank_from_json(value: JSONValue, arrays: dict[str, IntArray]) -> RankSketch:
    if not isinstance(value, dict):
        raise TypeError("a rank is no object")

    def of(table: str) -> dict[str, IntArray]:
        return {
            name.partition(".")[2]: array for name, array in arrays.items() if name.partition(".")[0] == table
        }

    phases = device = None
    if isinstance(texts := value.get("phases"), dict):
        phases = RankPhases(
            steps=tuple(texts["steps"]),  # type: ignore[arg-type]
            phases=tuple(texts["phases"]),  # type: ignore[arg-type]
            cells=tuple(Cell(*cell) for cell in texts["cells"]),  # type: ignore[misc, union-attr]
            **of("phases"),
        )
    if isinstance(texts := value.get("device"), dict):
        device = DeviceSteps(kernels=tuple(texts["kernels"]), **of("device"))  # type: ignore[arg-type]
    return RankSketch(
        files=tuple(value["files"]),  # type: ignore[arg-type]
        phases=phases,
        device=device,
        collectives=RankCollectives.from_json(value["collectives"], of("collectives")),
        ops=Durations.from_json(value["ops"], of("ops")),
        kernels=Durations.from_json(value["kernels"], of("kernels")),
        **{name: value[name] for name in _PLAIN},  # type: ignore[arg-type]
    )
