"""Nesting: a Trace in; parents, depths, self times and self memory out, by a few passes over columns."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from .arrays import BoolArray, IntArray, rows_by, stable_order
from .core import compiled
from .trace import Trace

MODULE = "mindtorch_prof._tree"


@dataclass(frozen=True)
class Nesting:
    """Columns beside a Trace's: which event contains which."""

    parent: IntArray  # int64, row of the parent; -1: none
    depth: IntArray  # int64
    claimed_ns: IntArray  # int64, subtracted from the parent: duration less what earlier siblings overlap


@dataclass(frozen=True)
class Tree(Nesting):
    """The nesting, and the time and memory that are an event's own."""

    self_ns: IntArray  # int64, duration less what the children claim
    memory: IntArray  # int64, bytes allocated less bytes freed inside the event
    self_memory: IntArray  # int64, the same less the children's
    loose: IntArray  # int64, rows of Trace.memory that no event contains
    device_memory: IntArray  # int64, as `memory`, on devices other than the CPU
    self_device_memory: IntArray  # int64


def depths(start: IntArray, end: IntArray) -> IntArray:
    """Depth of each event of one thread, sorted by start (longest first): how many earlier events have not ended."""
    # a stable sort takes a tenth of the time: ends are almost in order
    ended = np.searchsorted(np.sort(end, kind="stable"), start, side="right")
    # events of length 0 have ended by their own start: an event and those after it must not count as ended before it
    empty = np.flatnonzero(start == end)
    place = np.arange(len(start))
    if len(empty):
        empty_starts = start[empty]
        first = np.maximum(np.searchsorted(empty_starts, start, side="left"), np.searchsorted(empty, place))
        ended -= np.searchsorted(empty_starts, start, side="right") - first
    place -= ended
    return place


def parents(depth: IntArray) -> IntArray:
    """The parent of each event from depths in preorder: the last earlier event one level up."""
    count = len(depth)
    module = compiled(MODULE)
    if module is not None:
        parent = np.empty(count, np.int64)
        if module.parents(np.ascontiguousarray(depth, np.int64), parent):
            return parent
    order = stable_order(depth)
    # rows by (depth, place) as single numbers: the parent of a row is the last one before (its depth - 1, its place)
    keys = depth[order].astype(np.int64, copy=False)
    keys *= count
    keys += order
    parent = np.empty(count, np.int64)
    for first in range(0, count, _BLOCK):  # some rows at a time: columns of temporary values stay short
        some = keys[first : first + _BLOCK]
        # numbers in ascending order are found faster
        place_of_parent = np.searchsorted(keys, some - count) - 1
        above = order[np.maximum(place_of_parent, 0)]
        parent[order[first : first + _BLOCK]] = np.where(some >= count, above, -1)
    return parent


_BLOCK = 1 << 16


def last_reaching(start: IntArray, end: IntArray) -> tuple[IntArray, bool]:
    """For each event of one thread, sorted by start (longest first), the last earlier one that ends with it or later: of nested events the
    parent; of others the one that runs on. -1: none. And whether events overlap without lying inside each other."""
    module = compiled(MODULE)
    if module is not None:
        above = np.empty(len(end), np.int64)
        columns = (np.ascontiguousarray(column, np.int64) for column in (start, end))
        return above, module.last_reaching(*columns, above)
    above = np.arange(-1, len(end) - 1)
    rows = np.flatnonzero(end[:-1] < end[1:]) + 1
    crosses = False
    while len(rows):
        # what lies between an event and the one that it points to ends earlier than it does, and so does what that points to
        crosses = crosses or bool((end[above[rows]] > start[rows]).any())
        further = above[above[rows]]
        above[rows] = further
        rows = rows[(further >= 0) & (end[further] < end[rows])]
    return above, crosses


def depths_below(parent: IntArray) -> IntArray:
    """Depth of each row from the rows of parents (-1: none). Each round doubles the distance looked at."""
    depth, ancestor = (parent >= 0).astype(np.int64), parent.copy()
    while len(rows := np.flatnonzero(ancestor >= 0)):
        depth[rows] += depth[ancestor[rows]]
        ancestor[rows] = ancestor[ancestor[rows]]
    return depth


def levels(depth: IntArray) -> list[IntArray]:
    """The rows of each depth, from 0 on; one sort, however deep."""
    order = stable_order(depth)
    bounds = np.searchsorted(depth[order], np.arange(int(depth.max(initial=-1)) + 2))
    return [order[first:last] for first, last in itertools.pairwise(bounds.tolist())]


def nearest(parent: IntArray, stop: BoolArray) -> IntArray:
    """For each row itself or the nearest row above it at which `stop` holds; -1: none. Each round doubles the distance looked at."""
    module = compiled(MODULE)
    if module is not None:
        ancestor = np.empty(len(parent), np.int64)
        if module.nearest(np.ascontiguousarray(parent, np.int64), np.ascontiguousarray(stop, bool), ancestor):
            return ancestor
    ancestor = np.where(stop, np.arange(len(parent)), parent)
    rows = np.flatnonzero((ancestor >= 0) & ~stop[ancestor]) if len(parent) else ancestor
    while len(rows):
        further = ancestor[ancestor[rows]]
        ancestor[rows] = further
        rows = rows[(further >= 0) & ~stop[further]]
    return ancestor


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


def trace_nesting(trace: Trace) -> Nesting:
    """Compute the nesting of a trace, thread by thread. Synthetic events take no part in it: they stand inside recorded ones."""
    if trace.synthetic is None:
        return Nesting(*nesting(trace.thread, trace.start_ns, trace.end_ns))
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
    return Nesting(parent, depth, claimed)


def tree(trace: Trace, nested: Nesting | None = None) -> Tree:
    """Times and memory of the events themselves. nested: of the trace, where it is known already."""
    nested = trace_nesting(trace) if nested is None else nested
    parent, depth, claimed = nested.parent, nested.depth, nested.claimed_ns
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
    bounds = thread_bounds(thread)
    timeline = one_timeline(bounds, start_ns, end_ns)
    if timeline is not None:
        start, end = timeline
        depth = depths(start, end)
        parent = parents(depth)
        claimed = end_ns - start_ns
        crossing = np.flatnonzero((parent >= 0) & (end > end[np.maximum(parent, 0)]))
        for first, last in slices_of_rows(bounds, crossing):
            part = slice(first, last)
            local, depth[part], claimed[part] = contained(start_ns[part], end_ns[part])
            parent[part] = np.where(local < 0, -1, local + first)
        return parent, depth, claimed
    parent, depth = np.full(len(thread), -1, np.int64), np.zeros(len(thread), np.int64)
    claimed = end_ns - start_ns
    for first, last in itertools.pairwise(bounds.tolist()):
        part = slice(first, last)
        start, end = start_ns[part], end_ns[part]
        depth[part] = depths(start, end)
        local = parents(depth[part])  # counted from `first`
        if (end > end[np.where(local < 0, np.arange(len(end)), local)]).any():
            local, depth[part], claimed[part] = contained(start, end)
        parent[part] = np.where(local < 0, -1, local + first)
    return parent, depth, claimed


def one_timeline(bounds: IntArray, start_ns: IntArray, end_ns: IntArray) -> tuple[IntArray, IntArray] | None:
    """Starts and ends of all threads one thread after the other, as if they were one thread; None where threads are few, so that a loop over
    them is as quick, or the times do not fit. bounds: see `thread_bounds`."""
    thread_count = len(bounds) - 1
    if thread_count < _MANY_THREADS:
        return None
    base = int(start_ns.min())
    span = int(end_ns.max()) - base + 1
    if span * thread_count >= 2**62 or (end_ns < start_ns).any():
        return None
    shift = np.repeat(np.arange(thread_count) * span - base, np.diff(bounds))
    return start_ns + shift, end_ns + shift


_MANY_THREADS = 64


def slices_of_rows(bounds: IntArray, rows: IntArray) -> list[tuple[int, int]]:
    """(first, last) rows of the threads that hold some rows. bounds: see `thread_bounds`."""
    threads = np.unique(np.searchsorted(bounds[:-1], rows, side="right") - 1)
    return list(zip(bounds[threads].tolist(), bounds[threads + 1].tolist()))


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


def thread_bounds(thread: IntArray) -> IntArray:
    """The first row of each thread in a column that is sorted by thread, and the number of all rows."""
    cuts = np.flatnonzero(thread[1:] != thread[:-1]) + 1
    return np.concatenate(([0] if len(thread) else [], cuts, [len(thread)])).astype(np.int64)


def thread_slices(thread: IntArray) -> list[tuple[int, int]]:
    """(first, last) rows of each thread in a column that is sorted by thread."""
    return list(itertools.pairwise(thread_bounds(thread).tolist()))


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
        np.add.at(total, parent[rows], total[rows])
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
    asked = dict(rows_by(threads))
    for first, last in thread_slices(trace.thread[recorded]):
        rows = recorded[first:last]
        here = asked.get(int(trace.thread[rows[0]]))
        if here is None:
            continue
        place[rows] = np.arange(len(rows))
        above = place[parent[rows]]  # a recorded event stands in a recorded one
        inside = innermost(trace.start_ns[rows], trace.end_ns[rows], above, times[here])
        event[here] = np.where(inside >= 0, rows[np.maximum(inside, 0)], -1)
    return event


_CLIMBS = 64  # levels that are climbed for all times at once; beyond, one sweep over the events is faster


def innermost(start: IntArray, end: IntArray, parent: IntArray, times: IntArray) -> IntArray:
    """The deepest event that contains each time: from the last one begun, up through parents until one is still open."""
    owner: IntArray = np.searchsorted(start, times, side="right")
    owner -= 1
    too_deep: list[IntArray] = []
    for first in range(0, len(owner), _BLOCK):  # columns of temporary values stay short
        block = slice(first, first + _BLOCK)
        too_deep.append(_climb(owner[block], end, parent, times[block]) + first)
    rest = np.concatenate(too_deep) if too_deep else owner[:0]
    if len(rest):
        owner[rest] = _innermost_by_sweep(start, end, parent, times[rest])
    return owner


def _climb(owner: IntArray, end: IntArray, parent: IntArray, times: IntArray) -> IntArray:
    """Replace events that have ended by those around them, in place, some levels up; the places of those that would need more."""
    for _ in range(_CLIMBS):
        ended = np.flatnonzero((owner >= 0) & (end[np.maximum(owner, 0)] < times))
        if not len(ended):
            break
        owner[ended] = np.maximum(parent[owner[ended]], -1)
    return ended


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
