"""Nesting: a Trace in; parents, depths, self times and self memory out, by a few passes over columns."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from .arrays import BoolArray, IntArray
from .trace import Trace


@dataclass(frozen=True)
class Tree:
    """Columns beside a Trace's: which event contains which, and the time and memory that are an event's own."""

    parent: IntArray  # int64, row of the parent; -1: none
    depth: IntArray  # int64
    claimed_ns: IntArray  # int64, subtracted from the parent: duration less what earlier siblings overlap
    self_ns: IntArray  # int64, duration less what the children claim
    memory: IntArray  # int64, bytes allocated less bytes freed inside the event
    self_memory: IntArray  # int64, the same less the children's
    loose: IntArray  # int64, rows of Trace.memory that no event contains
    device_memory: IntArray  # int64, as `memory`, on devices other than the CPU
    self_device_memory: IntArray  # int64


def depths(start: IntArray, end: IntArray) -> IntArray:
    """Depth of each event of one thread, sorted by start (longest first): how many earlier events have not ended."""
    place = np.arange(len(start))
    # a stable sort takes a tenth of the time: ends are almost in order
    ended = np.searchsorted(np.sort(end, kind="stable"), start, side="right")
    # events of length 0 have ended by their own start: an event and those after it must not count as ended before it
    empty = np.flatnonzero(start == end)
    if len(empty):
        empty_starts = start[empty]
        first = np.maximum(np.searchsorted(empty_starts, start, side="left"), np.searchsorted(empty, place))
        ended -= np.searchsorted(empty_starts, start, side="right") - first
    return place - ended


def parents(depth: IntArray) -> IntArray:
    """The parent of each event from depths in preorder: the last earlier event one level up."""
    count = len(depth)
    place = np.arange(count)
    # rows by (depth, place) as single numbers: the parent of a row is the last one before (its depth - 1, its place)
    keys = depth * count + place
    order = _by_depth(depth)
    place_of_parent = np.searchsorted(keys[order], keys - count) - 1
    return np.where(depth > 0, order[np.maximum(place_of_parent, 0)], -1)


def _by_depth(depth: IntArray) -> IntArray:
    """The order of rows by depth; of one depth as they are. Numbers of 16 bits are sorted by their digits: about four times as fast."""
    is_shallow = int(depth.max(initial=0)) < 2**15 and int(depth.min(initial=0)) >= 0
    return np.argsort(depth.astype(np.int16) if is_shallow else depth, kind="stable")


def depths_below(parent: IntArray) -> IntArray:
    """Depth of each row from the rows of parents (-1: none). Each round doubles the distance looked at."""
    depth, ancestor = (parent >= 0).astype(np.int64), parent.copy()
    while len(rows := np.flatnonzero(ancestor >= 0)):
        depth[rows] += depth[ancestor[rows]]
        ancestor[rows] = ancestor[ancestor[rows]]
    return depth


def levels(depth: IntArray) -> list[IntArray]:
    """The rows of each depth, from 0 on; one sort, however deep."""
    order = _by_depth(depth)
    bounds = np.searchsorted(depth[order], np.arange(int(depth.max(initial=-1)) + 2))
    return [order[first:last] for first, last in itertools.pairwise(bounds.tolist())]


def nearest(parent: IntArray, stop: BoolArray) -> IntArray:
    """For each row itself or the nearest row above it at which `stop` holds; -1: none. Each round doubles the distance looked at."""
    ancestor = np.where(stop, np.arange(len(parent)), parent)
    while True:
        rows = np.flatnonzero((ancestor >= 0) & ~stop[np.maximum(ancestor, 0)])
        if not len(rows):
            return ancestor
        ancestor[rows] = ancestor[ancestor[rows]]


def contained(start: IntArray, end: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Parents, depths and claimed times of one thread whose events may overlap (asynchronous code): only an event that lies wholly
    inside another is its child."""
    count = len(start)
    parent, depth = np.full(count, -1, np.int64), np.zeros(count, np.int64)
    claimed = np.zeros(count, np.int64)
    starts, ends = start.tolist(), end.tolist()
    covered: dict[int, int] = {}  # by parent: until when its children cover it
    open_: list[int] = []
    for row in range(count):
        while open_ and (ends[row] > ends[open_[-1]] or starts[row] >= ends[open_[-1]]):
            open_.pop()
        above = open_[-1] if open_ else -1
        parent[row], depth[row] = above, len(open_)
        claimed[row] = max(0, ends[row] - max(starts[row], covered.get(above, starts[row])))
        covered[above] = max(ends[row], covered.get(above, ends[row]))
        open_.append(row)
    return parent, depth, claimed


def tree(trace: Trace) -> Tree:
    """Compute the nesting of a trace, thread by thread. Synthetic events take no part in it: they stand inside recorded ones."""
    if trace.synthetic is None:
        parent, depth, claimed = nesting(trace.thread, trace.start_ns, trace.end_ns)
    else:
        recorded = np.flatnonzero(trace.synthetic == 0)
        parent, depth, claimed = (
            synthetic_parents(trace.synthetic),
            np.abs(trace.synthetic).astype(np.int64),
            0 * trace.start_ns,
        )
        inner, depth[recorded], claimed[recorded] = nesting(
            trace.thread[recorded], trace.start_ns[recorded], trace.end_ns[recorded]
        )
        parent[recorded] = np.where(inner < 0, -1, recorded[inner])
        added = np.flatnonzero(trace.synthetic)
        depth[added] += depth[recorded_owners(trace.synthetic)[added]]
    count = len(trace)
    has_parent = parent >= 0
    self_ns = trace.end_ns - trace.start_ns - sum_by(parent[has_parent], claimed[has_parent], count)
    self_memory, self_device_memory, loose = own_memory(trace, parent)
    memory = total_up(self_memory, parent, depth)
    device_memory = total_up(self_device_memory, parent, depth)
    return Tree(
        parent, depth, claimed, self_ns, memory, self_memory, loose, device_memory, self_device_memory
    )


def nesting(thread: IntArray, start_ns: IntArray, end_ns: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Parents, depths and claimed times of events that are sorted by (thread, start, longest first)."""
    parent, depth = np.full(len(thread), -1, np.int64), np.zeros(len(thread), np.int64)
    claimed = end_ns - start_ns
    for first, last in thread_slices(thread):
        part = slice(first, last)
        start, end = start_ns[part], end_ns[part]
        depth[part] = depths(start, end)
        local = parents(depth[part])  # counted from `first`
        if (end > end[np.where(local < 0, np.arange(len(end)), local)]).any():
            local, depth[part], claimed[part] = contained(start, end)
        parent[part] = np.where(local < 0, -1, local + first)
    return parent, depth, claimed


def recorded_owners(synthetic: IntArray) -> IntArray:
    """For each row of the column `Trace.synthetic` the recorded event that it stands in; for recorded events themselves."""
    owner: IntArray = np.maximum.accumulate(np.where(synthetic == 0, np.arange(len(synthetic)), 0))
    return owner


def behind_owners(order: IntArray, owner: IntArray) -> IntArray:
    """An order of rows, changed so that each synthetic event directly follows its recorded one. owner: by row, see `recorded_owners`."""
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return np.argsort(rank[owner], kind="stable")


def synthetic_parents(synthetic: IntArray) -> IntArray:
    """The parents of synthetic events, from the column `Trace.synthetic`; -1 for recorded ones."""
    return parents(np.abs(synthetic.astype(np.int64)))


def memory_heirs(synthetic: IntArray) -> tuple[IntArray, IntArray]:
    """(recorded event, the synthetic event inside it whose allocations its own are shown as) of all that have one."""
    heirs = np.flatnonzero(synthetic < 0)
    owners, first = np.unique(recorded_owners(synthetic)[heirs], return_index=True)
    return owners, heirs[first]


def thread_slices(thread: IntArray) -> list[tuple[int, int]]:
    """(first, last) rows of each thread in a column that is sorted by thread."""
    if not len(thread):
        return []
    cuts = np.flatnonzero(np.diff(thread)) + 1
    bounds = [0, *cuts.tolist(), len(thread)]
    return list(itertools.pairwise(bounds))


def sum_by(rows: IntArray, values: IntArray, count: int) -> IntArray:
    """Integer sums by row."""
    largest = max(int(values.max(initial=0)), -int(values.min(initial=0)))
    if largest * len(values) < _EXACT:
        return np.bincount(rows, weights=values, minlength=count).astype(np.int64)
    sums = np.zeros(count, np.int64)  # damaged files have sizes that only integers hold
    np.add.at(sums, rows, values)
    return sums


_EXACT = 2**53  # float64, in which bincount adds, holds all integers below
_DEEP = 1_000  # levels: in deeper trees a loop over levels costs more than a loop over rows


def total_up(own: IntArray, parent: IntArray, depth: IntArray) -> IntArray:
    """Own values plus those of all descendants, from the deepest level up."""
    total = own.copy()
    if not total.any():
        return total
    if int(depth.max(initial=0)) > _DEEP:
        values, above = total.tolist(), parent.tolist()
        for row in range(len(values) - 1, -1, -1):  # a parent stands before its children
            if above[row] >= 0:
                values[above[row]] += values[row]
        return np.array(values, total.dtype)
    for rows in reversed(levels(depth)[1:]):
        total += sum_by(parent[rows], total[rows], len(total))
    return total


def own_memory(trace: Trace, parent: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Bytes that each event allocated itself (not in a child), on the CPU and on devices, and the memory rows outside every event."""
    memory, count = trace.memory, len(trace)
    if not len(memory):
        nothing = np.zeros(count, np.int64)
        return nothing, nothing, np.empty(0, np.int64)
    event = memory_events(trace, parent, memory.time_ns, memory.thread)
    own, own_on_device = (
        sum_by(event[rows], memory.nbytes[rows], count)
        for on_device in (False, True)
        for rows in [np.flatnonzero((event >= 0) & (memory.on_device == on_device))]
    )
    return own, own_on_device, np.flatnonzero(event < 0)


def memory_events(trace: Trace, parent: IntArray, times: IntArray, threads: IntArray) -> IntArray:
    """The event that an allocation or a free at each time of each thread is shown in; -1: none."""
    event = events_at(trace, parent, times, threads)
    if trace.synthetic is not None:
        heir = np.arange(-1, len(trace))  # the first one for -1: none
        owners, heirs = memory_heirs(trace.synthetic)
        heir[owners + 1] = heirs
        event = heir[event + 1]
    return event


def events_at(trace: Trace, parent: IntArray, times: IntArray, threads: IntArray) -> IntArray:
    """The innermost recorded event at each time of each thread; -1: none."""
    event = np.full(len(times), -1, np.int64)
    recorded = np.arange(len(trace)) if trace.synthetic is None else np.flatnonzero(trace.synthetic == 0)
    place = np.full(len(trace) + 1, -1, np.int64)  # the last one for row -1
    for first, last in thread_slices(trace.thread[recorded]):
        rows = recorded[first:last]
        here = np.flatnonzero(threads == trace.thread[rows[0]])
        if not len(here):
            continue
        place[rows] = np.arange(len(rows))
        above = place[parent[rows]]  # a recorded event stands in a recorded one
        inside = innermost(trace.start_ns[rows], trace.end_ns[rows], above, times[here])
        event[here] = np.where(inside >= 0, rows[np.maximum(inside, 0)], -1)
    return event


_CLIMBS = 64  # levels that are climbed for all times at once; beyond, one sweep over the events is faster


def innermost(start: IntArray, end: IntArray, parent: IntArray, times: IntArray) -> IntArray:
    """The deepest event that contains each time: from the last one begun, up through parents until one is still open."""
    owner = np.searchsorted(start, times, side="right") - 1
    for _ in range(_CLIMBS):
        ended = np.flatnonzero((owner >= 0) & (end[np.maximum(owner, 0)] < times))
        if not len(ended):
            return owner
        owner[ended] = np.maximum(parent[owner[ended]], -1)
    owner[ended] = _innermost_by_sweep(start, end, parent, times[ended])
    return owner


def _innermost_by_sweep(start: IntArray, end: IntArray, parent: IntArray, times: IntArray) -> IntArray:
    """The same for very deep trees: one walk through events and times together."""
    innermost_event = np.full(len(times), -1, np.int64)
    starts, ends, above = start.tolist(), end.tolist(), parent.tolist()
    open_: list[int] = []
    row = 0
    for query in np.argsort(times, kind="stable").tolist():
        time = times[query]
        while row < len(starts) and starts[row] <= time:
            while open_ and open_[-1] != above[row]:
                open_.pop()
            open_.append(row)
            row += 1
        while open_ and ends[open_[-1]] < time:
            open_.pop()
        innermost_event[query] = open_[-1] if open_ else -1
    return innermost_event
