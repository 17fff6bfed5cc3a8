"""Collectives of a job: the collectives of each rank in; which of them are one collective out, with skew, transfer, waits and bandwidth.

Matched by (process group, sequence number) where files have it; else by order, within steps where there are steps. A check of the types
says where that cannot be right, as recordings began at different times.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from ..communication import POINT_TO_POINT, SYNCHRONISING
from ..trace import Columns
from .job import Job

BY_SEQUENCE, BY_STEP, BY_ORDER = "sequence number", "order within steps", "order"


@dataclass(frozen=True)
class Collectives(Columns):
    """Two tables: one row per collective, and one row per rank that takes part in it, in the order of (collective, rank).

    Times of ranks are nanoseconds since the job's start by their own clocks.
    """

    groups: tuple[str, ...]
    types: tuple[str, ...]
    # one row per collective, in the order of time
    group: IntArray  # into `groups`
    type: IntArray  # into `types`
    seq: IntArray  # as in the files, else its number within the group, from 0
    size: IntArray  # ranks in the group; 0: not known
    step: IntArray  # number; -1: none
    # one row per rank and collective
    collective: IntArray  # row above
    rank: IntArray  # its place in the job
    nbytes: IntArray  # -1: not known
    sent: IntArray
    received: IntArray
    arrival_ns: IntArray
    start_ns: IntArray
    end_ns: IntArray
    on_device: IntArray
    matched_by: tuple[str, ...] = ()
    unmatched: int = 0  # collectives of single ranks that have no counterpart
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.group)

    @cached_property
    def first(self) -> IntArray:
        """By collective its first row of ranks."""
        return np.searchsorted(self.collective, np.arange(len(self)))

    @cached_property
    def participants(self) -> IntArray:
        """By collective how many ranks are in the files."""
        return np.bincount(self.collective, minlength=len(self))

    @cached_property
    def synchronises(self) -> BoolArray:
        """By collective whether no rank leaves it before all have come."""
        return np.array([name in SYNCHRONISING for name in self.types] or [False])[self.type]

    @cached_property
    def message(self) -> IntArray:
        """By collective the largest message of a rank, in bytes; -1: not known."""
        return np.maximum.reduceat(self.nbytes, self.first) if len(self) else np.empty(0, np.int64)

    @cached_property
    def transfer_ns(self) -> IntArray:
        """By collective the shortest duration over its ranks: that of the last one to come, which does not wait."""
        return (
            np.minimum.reduceat(self.end_ns - self.start_ns, self.first)
            if len(self)
            else np.empty(0, np.int64)
        )


@dataclass(frozen=True)
class Waits:
    """Arrivals on one clock: what skew and waiting are made of."""

    arrival_ns: IntArray  # by row of ranks, corrected
    wait_ns: IntArray  # by row of ranks: until the last one came
    skew_ns: IntArray  # by collective
    last: IntArray  # by collective: place of the rank that came last


def waits(collectives: Collectives, correction_ns: IntArray) -> Waits:
    """Skew and waits; correction_ns: by row of ranks, how far its clock is ahead."""
    arrival = collectives.arrival_ns - correction_ns
    if not len(collectives):
        empty = np.empty(0, np.int64)
        return Waits(arrival, empty, empty, empty)
    latest = np.maximum.reduceat(arrival, collectives.first)
    earliest = np.minimum.reduceat(arrival, collectives.first)
    wait = latest[collectives.collective] - arrival
    # of ranks that come at the same time, the one with the lowest number
    order = np.lexsort((collectives.rank, wait, collectives.collective))
    return Waits(arrival, wait, latest - earliest, collectives.rank[order[collectives.first]])


def bus_factor(kind: str, size: IntArray) -> FloatArray:
    """Bus bandwidth as a multiple of algorithm bandwidth, for groups of so many ranks."""
    n: FloatArray = np.maximum(size, 1).astype(float)
    factors = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "all_to_all": 1.0}
    return np.asarray(factors[kind] * (n - 1) / n) if kind in factors else np.ones(len(n))


# ---------------------------------------------------------------------------------------------------- matching


def match(job: Job) -> Collectives:
    """Match the collectives of all ranks."""
    table = _all_rows(job)
    keep = np.array([name not in POINT_TO_POINT for name in table.types] or [False])[table.type]
    notes: list[str] = []
    a, b, modes = _keys(table, keep, notes)
    rows = np.flatnonzero(keep & (a > -2))
    messages, first, second = _point_to_point(table, job)
    group, rows, a, b = (
        np.concatenate([table.group[rows], messages]),
        np.concatenate([rows, first]),
        np.concatenate([a[rows], second]),
        np.concatenate([b[rows], np.full(len(first), -1)]),
    )
    return _assembled(table, rows, group, a, b, modes, notes)


@dataclass(frozen=True)
class _Rows:
    """The collectives of all ranks, one after the other."""

    groups: tuple[str, ...]
    types: tuple[str, ...]
    rank: IntArray
    group: IntArray
    type: IntArray
    columns: dict[str, IntArray]

    def __len__(self) -> int:
        return len(self.rank)


_NUMBERS = (
    "seq", "nbytes", "sent", "received", "size", "peer", "on_device", "step", "arrival_ns", "start_ns", "end_ns",
)  # fmt: skip


def _all_rows(job: Job) -> _Rows:
    groups: dict[tuple[str, str], int] = {}
    types: dict[str, int] = {}
    rank, group, kind = [], [], []
    columns: dict[str, list[IntArray]] = {name: [np.empty(0, np.int64)] for name in _NUMBERS}
    for each in job.ranks:
        for sketch in each.sketches:
            own = sketch.collectives
            group_place = [groups.setdefault(key, len(groups)) for key in zip(own.groups, own.members)]
            type_place = [types.setdefault(name, len(types)) for name in own.types]
            rank.append(np.full(len(own), each.place))
            group.append(np.array([*group_place, 0], np.int64)[own.group])
            kind.append(np.array([*type_place, 0], np.int64)[own.type])
            for name in _NUMBERS:
                shift = sketch.base_ns - job.origin_ns if name.endswith("_ns") else 0
                columns[name].append(getattr(own, name) + shift)
    empty = [np.empty(0, np.int64)]
    return _Rows(
        tuple(name for name, _ in groups),
        tuple(types),
        np.concatenate(empty + rank),
        np.concatenate(empty + group),
        np.concatenate(empty + kind),
        {name: np.concatenate(parts) for name, parts in columns.items()},
    )


def _keys(table: _Rows, keep: BoolArray, notes: list[str]) -> tuple[IntArray, IntArray, tuple[str, ...]]:
    """Two numbers by row, which are equal for the ranks of one collective (within a group); -2: it cannot be matched. And how."""
    a, b = np.full(len(table), -2, np.int64), np.zeros(len(table), np.int64)
    modes = []
    for group in range(len(table.groups)):
        rows = np.flatnonzero(keep & (table.group == group))
        if not len(rows):
            continue
        seq, step = table.columns["seq"][rows], table.columns["step"][rows]
        if (seq >= 0).all():
            a[rows], mode = seq, BY_SEQUENCE
        elif (step >= 0).mean() > 0.5:  # the rest lies between two steps
            a[rows], mode = np.where(step >= 0, step, -2), BY_STEP
            _leave_out_unequal_steps(table, rows, a, notes)
        else:
            mode = BY_ORDER
            a[rows] = 0
            _align(table, rows, b, notes)
        if mode != BY_ORDER:
            b[rows] = _count_within(table.rank[rows], a[rows])
        modes.append(mode)
    return a, b, tuple(dict.fromkeys(modes))


def _count_within(*keys: IntArray) -> IntArray:
    """By row how many earlier rows have the same keys."""
    order = np.lexsort(tuple(reversed(keys)))
    changes = np.zeros(len(order), bool)
    changes[:1] = True
    for key in keys:
        changes[1:] |= key[order][1:] != key[order][:-1]
    first = np.flatnonzero(changes)
    count = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    result = np.empty(len(order), np.int64)
    result[order] = count
    return result


def _leave_out_unequal_steps(table: _Rows, rows: IntArray, a: IntArray, notes: list[str]) -> None:
    """Steps in which ranks have different collectives cannot be matched by order: part of them was not recorded."""
    here = rows[a[rows] >= 0]
    ranks, rank = np.unique(table.rank[here], return_inverse=True)
    steps, step = np.unique(a[here], return_inverse=True)
    cell = step.reshape(-1) * len(ranks) + rank.reshape(-1)
    count = np.bincount(cell, minlength=len(steps) * len(ranks)).reshape(len(steps), len(ranks))
    # of equal numbers, the types must be equal too: a sum over (place, type) tells, but for accidents
    place = _count_within(cell)
    mix = (table.type[here] + 1) * (place * 2_654_435_761 % 1_000_003 + 1)
    checksum = np.zeros(len(steps) * len(ranks), np.int64)
    np.add.at(checksum, cell, mix)
    checksum = checksum.reshape(count.shape)
    present = count > 0
    largest = count.max(axis=1, keepdims=True)
    unequal = (present & (count != largest)).any(axis=1)
    low = np.where(present, checksum, np.iinfo(np.int64).max).min(axis=1)
    high = np.where(present, checksum, -1).max(axis=1)
    unequal |= low != high
    if unequal.any():
        bad = np.isin(a[here], steps[unequal])
        a[here[bad]] = -2
        notes.append(
            f"in {int(unequal.sum())} of {len(steps)} steps ranks recorded different collectives"
            f" (group {table.groups[int(table.group[rows[0]])]}): their windows differ; those steps are left out"
        )


def _align(table: _Rows, rows: IntArray, b: IntArray, notes: list[str]) -> None:
    """Number the collectives of a group without steps; where ranks recorded different numbers of them, shift for equal types."""
    group = table.groups[int(table.group[rows[0]])]
    by_rank = [rows[table.rank[rows] == rank] for rank in np.unique(table.rank[rows]).tolist()]
    for own in by_rank:
        b[own] = np.arange(len(own))
    signatures = [
        table.type[own] * (1 << 48) + np.maximum(table.columns["nbytes"][own], 0) for own in by_rank
    ]
    reference = max(range(len(by_rank)), key=lambda place: (len(by_rank[place]), -place))
    shifted = uncertain = 0
    for place, own in enumerate(by_rank):
        if len(own) == len(by_rank[reference]) and (signatures[place] == signatures[reference]).all():
            continue
        candidates = _shifts(signatures[reference], signatures[place])
        ends = table.columns["end_ns"]
        best = min(
            candidates,
            key=lambda shift: abs(int(ends[own[0]] - ends[by_rank[reference][max(shift, 0)]])),
        )
        b[own] += best
        shifted += 1
        uncertain += len(candidates) > 1
    if shifted:
        notes.append(
            f"{shifted} ranks recorded other collectives than the rest (group {group}): their windows differ; matched by the order of types"
            + (f", with the clock's help for {uncertain}" if uncertain else "")
        )


def _shifts(reference: IntArray, own: IntArray) -> list[int]:
    """By how much the second sequence starts after the first: the shifts with the largest share of equal places."""
    best, shifts = -1.0, [0]
    longest = max(len(reference), len(own))
    for shift in range(-longest + 1, longest):
        low, high = max(shift, 0), min(len(reference), shift + len(own))
        if high - low < max(1, min(len(reference), len(own)) // 2):
            continue
        share = float((reference[low:high] == own[low - shift : high - shift]).mean())
        if share > best + 1e-9:
            best, shifts = share, [shift]
        elif share > best - 1e-9:
            shifts.append(shift)
    return shifts


def _point_to_point(table: _Rows, job: Job) -> tuple[IntArray, IntArray, IntArray]:
    """Messages between two ranks: pseudo-groups, rows and numbers; the n-th send of a pair belongs to its n-th recv."""
    names = {name: number for number, name in enumerate(table.types)}
    numbers = np.array([-1 if each.rank is None else each.rank for each in job.ranks] or [0], np.int64)
    peer, own = table.columns["peer"], numbers[table.rank]
    is_send, is_recv = table.type == names.get("send", -1), table.type == names.get("recv", -1)
    rows = np.flatnonzero((is_send | is_recv) & (peer >= 0) & (own >= 0))
    if not len(rows):
        empty = np.empty(0, np.int64)
        return empty, empty, empty
    source = np.where(is_send[rows], own[rows], peer[rows])
    target = np.where(is_send[rows], peer[rows], own[rows])
    top = int(max(source.max(), target.max())) + 1
    pair = (table.group[rows] * top + source) * top + target
    # both sides count their messages on their own
    number = _count_within(pair, is_send[rows].astype(np.int64))
    return -1 - pair, rows, number


def _assembled(
    table: _Rows,
    rows: IntArray,
    group: IntArray,
    a: IntArray,
    b: IntArray,
    modes: tuple[str, ...],
    notes: list[str],
) -> Collectives:
    """The two tables, of collectives that at least two ranks have, in the order of time."""
    keys = np.stack([group, a, b], axis=1) if len(rows) else np.empty((0, 3), np.int64)
    _, which = np.unique(keys, axis=0, return_inverse=True)
    which = which.reshape(-1)
    count = np.bincount(which) if len(which) else np.empty(0, np.int64)
    enough = count[which] >= 2 if len(which) else np.empty(0, bool)
    unmatched = len(table) - int(enough.sum())
    rows, which, a = rows[enough], which[enough], a[enough]
    # ends are the best common time before clocks are known; a median is not moved by one bad clock
    present, which = np.unique(which, return_inverse=True)
    which = which.reshape(-1)
    order = np.lexsort((table.columns["end_ns"][rows], which))
    first = np.searchsorted(which[order], np.arange(len(present)))
    size = np.bincount(which, minlength=len(present))
    middle = (
        table.columns["end_ns"][rows][order][first + (size - 1) // 2]
        if len(present)
        else np.empty(0, np.int64)
    )
    place = np.empty(len(present), np.int64)
    place[np.lexsort((np.arange(len(present)), middle))] = np.arange(len(present))
    which = place[which]
    order = np.lexsort((table.rank[rows], which))
    rows, which, a = rows[order], which[order], a[order]
    first = np.searchsorted(which, np.arange(len(present)))
    seq = np.where(table.columns["seq"][rows[first]] >= 0, table.columns["seq"][rows[first]], -1)
    unnumbered = np.flatnonzero(seq < 0)
    seq[unnumbered] = _count_within(table.group[rows[first]][unnumbered])
    columns = {name: values[rows] for name, values in table.columns.items()}
    by_rank = ("nbytes", "sent", "received", "arrival_ns", "start_ns", "end_ns", "on_device")
    return Collectives(
        groups=table.groups,
        types=table.types,
        group=table.group[rows[first]],
        type=table.type[rows[first]],
        seq=seq,
        size=np.maximum.reduceat(columns["size"], first) if len(first) else np.empty(0, np.int64),
        step=np.maximum.reduceat(columns["step"], first) if len(first) else np.empty(0, np.int64),
        collective=which,
        rank=table.rank[rows],
        matched_by=modes,
        unmatched=unmatched,
        notes=tuple(notes),
        **{name: columns[name] for name in by_rank},
    )
