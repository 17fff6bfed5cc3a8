"""Links between events: columns of a file in; callers, stacks, forward threads, and the ops that launched a device's work out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ..arrays import Array, BoolArray, IntArray, distinct, first_rows, rows_by
from ..call_paths import paths
from ..trace import DEVICE_ANNOTATION, RUNTIME, Frames, Trace
from ..tree import (
    depths,
    innermost,
    one_timeline,
    parents,
    slices_of_rows,
    thread_bounds,
    thread_slices,
)

_BLOCK = 1 << 16  # rows that are compared at a time: columns of temporary values stay short


def _nested(start: IntArray, end: IntArray) -> tuple[IntArray, BoolArray]:
    """Parents of one thread's events as if they nested, and which events end after their parent."""
    parent = parents(depths(start, end))
    ends_late = np.empty(len(parent), bool)
    for first in range(0, len(parent), _BLOCK):
        some = parent[first : first + _BLOCK]
        late = end[first : first + _BLOCK] > end[np.maximum(some, 0)]
        ends_late[first : first + _BLOCK] = (some >= 0) & late
    return parent, ends_late


def snapped(thread: IntArray, start: IntArray, end: IntArray, tolerance: int) -> tuple[IntArray, int]:
    """Ends after the end of the enclosing event by no more than `tolerance` are moved to it; and how many were moved."""
    moved, given = 0, end
    for first, last in _crossing_threads(thread, start, end):
        part = slice(first, last)
        starts, ends = start[part].tolist(), end[part].tolist()
        open_: list[int] = []
        for row, begun in enumerate(starts):
            while open_ and begun >= ends[open_[-1]]:
                open_.pop()
            while open_ and ends[row] > ends[open_[-1]]:
                if ends[row] - ends[open_[-1]] <= tolerance:
                    ends[row] = ends[open_[-1]]
                    moved += 1
                    break
                open_.pop()
            open_.append(row)
        if end is given:
            end = end.copy()
        end[part] = ends
    return end, moved


def overlapping(trace: Trace) -> int:
    """How many ops and annotations overlap others of their thread without lying inside them. Runtime calls are timed by another
    clock and do so in every file."""
    keep = trace.kind != RUNTIME
    if trace.synthetic is not None:
        keep &= trace.synthetic == 0
    thread, start, end = trace.thread, trace.start_ns, trace.end_ns
    if not keep.all():
        thread, start, end = thread[keep], start[keep], end[keep]
    bounds = thread_bounds(thread)
    timeline = one_timeline(bounds, start, end)
    if timeline is not None:
        return int(_nested(*timeline)[1].sum())
    return sum(int(_nested(start[a:b], end[a:b])[1].sum()) for a, b in pairwise(bounds.tolist()))


def _crossing_threads(thread: IntArray, start: IntArray, end: IntArray) -> list[tuple[int, int]]:
    """(first, last) rows of the threads in which an event ends after the one around it."""
    bounds = thread_bounds(thread)
    timeline = one_timeline(bounds, start, end)
    if timeline is not None:
        return slices_of_rows(bounds, np.flatnonzero(_nested(*timeline)[1]))
    return [(a, b) for a, b in pairwise(bounds.tolist()) if _nested(start[a:b], end[a:b])[1].any()]


# ---------------------------------------------------------------------------------------------------- Python calls


def callers(
    thread: IntArray, start: IntArray, end: IntArray, own: IntArray, parent: IntArray
) -> tuple[IntArray, int]:
    """Rows of callers from the numbers that calls have in the file, or from the times where they have none; and how many
    numbers occur more than once. Rows are in the order of (thread, start)."""
    numbered = own >= 0
    if numbered.all():
        caller_of: IntArray = np.full(len(start), -1, np.int64)
    else:
        caller_of = _callers_by_time(thread, start, end)
        caller_of[numbered] = -1
    rows, keys = _rows_by_number(own)
    if not len(keys):
        return caller_of, 0
    for first in range(0, len(own), _BLOCK):
        block = slice(first, first + _BLOCK)
        called = np.flatnonzero(numbered[block] & (parent[block] >= 0)) + first
        wanted = parent[called]
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        caller = place if rows is None else rows[place]
        # a caller begins before the calls it makes; this also keeps chains of callers from running in circles
        before = np.where(thread[caller] == thread[called], caller < called, start[caller] < start[called])
        known = (keys[place] == wanted) & before
        caller_of[called[known]] = caller[known]
    return caller_of, int((keys[1:] == keys[:-1]).sum())


def _callers_by_time(thread: IntArray, start: IntArray, end: IntArray) -> IntArray:
    """Rows of the calls around each call; -1: none, or it ends after them."""
    bounds = thread_bounds(thread)
    timeline = one_timeline(bounds, start, end)
    if timeline is not None:
        caller_of, ends_late = _nested(*timeline)
        caller_of[ends_late] = -1
        return caller_of
    caller_of = np.empty(len(start), np.int64)
    for first, last in pairwise(bounds.tolist()):
        part = slice(first, last)
        local, ends_late = _nested(start[part], end[part])
        local[ends_late] = -1
        caller_of[part] = np.where(local < 0, -1, local + first)
    return caller_of


def _rows_by_number(own: IntArray) -> tuple[IntArray | None, IntArray]:
    """The rows that have a number, in its order, and their numbers. None: all of them, as they are."""
    if bool((own[:1] >= 0).all() and (own[1:] >= own[:-1]).all()):
        return None, own
    rows = np.flatnonzero(own >= 0)
    rows = rows[np.argsort(own[rows], kind="stable")]
    return rows, own[rows]


def stacks_of(
    thread: IntArray,
    start: IntArray,
    written: IntArray,
    stacks: list[tuple[str, ...]],
    frames: Frames,
    wanted: BoolArray,
) -> tuple[IntArray, Sequence[tuple[str, ...]]]:
    """The stack of each event, and the table of stacks: those that the file has (`written`, into `stacks`), else the Python calls
    around the start of the events of `wanted`."""
    if stacks:
        return written, tuple(stacks)
    stack = np.full(len(start), -1, np.int32)
    if not len(frames) or not wanted.any():
        return stack, ()
    path, table = paths(frames)
    calls = {int(frames.thread[a]): (a, b) for a, b in thread_slices(frames.thread)}
    for first, last in thread_slices(thread):
        a, b = calls.get(int(thread[first]), (0, 0))
        if a == b:
            continue
        local = frames.parent[a:b] - a
        local = np.where(
            (local < 0) | (frames.thread[np.maximum(frames.parent[a:b], 0)] != thread[first]), -1, local
        )
        rows = np.flatnonzero(wanted[first:last]) + first
        call = innermost(frames.start_ns[a:b], frames.end_ns[a:b], local, start[rows])
        stack[rows] = np.where(call >= 0, path[np.maximum(call, 0) + a], -1)
    return stack, table


# ---------------------------------------------------------------------------------------------------- forward and backward


def forward_threads(thread: IntArray, sequence: IntArray, number: IntArray) -> IntArray:
    """The thread of the forward op of each event of a backward pass; 0: it is in none. `number`: threads as the file numbers them,
    which is in its own way. A number means the thread on which most ops of the same sequence numbers ran forward."""
    forward_thread = np.zeros(len(thread), np.int64)
    backward = np.flatnonzero((number > 0) & (sequence >= 0))
    if not len(backward):
        return forward_thread
    forward = np.flatnonzero((number <= 0) & (sequence >= 0))
    if not len(forward):
        threads, counts = np.unique(thread, return_counts=True)
        forward_thread[backward] = threads[np.argmax(counts)]
        return forward_thread
    forward = forward[np.argsort(sequence[forward], kind="stable")]
    keys = sequence[forward]
    place = np.searchsorted(keys, sequence[backward])
    np.minimum(place, len(forward) - 1, out=place)
    known = keys[place] == sequence[backward]
    del keys
    forward = forward[place[known]]
    del place
    numbers, group = distinct(number[backward])  # a file may have a number for each event
    thread_of = thread[backward[first_rows(group, len(numbers))]]
    del numbers
    bounds = thread_bounds(thread)
    # a number and a thread as one number
    pairs = group[known]
    pairs *= len(bounds)
    pairs += np.searchsorted(bounds, forward, side="right") - 1
    del forward, known
    groups, most = _most_frequent(pairs, len(bounds))
    thread_of[groups] = thread[bounds[most]]
    forward_thread[backward] = thread_of[group]
    return forward_thread


def _most_frequent(pairs: IntArray, width: int) -> tuple[IntArray, IntArray]:
    """Of pairs group * width + value: the groups that occur, and the value that occurs most often in each; of several such values the smallest.
    Sorts the pairs."""
    if not len(pairs):
        return pairs, pairs
    pairs.sort()
    first = _run_starts(pairs)
    count = np.diff(first, append=len(pairs))
    pairs = pairs[first]
    group = pairs // width
    first = _run_starts(group)
    most = np.repeat(np.maximum.reduceat(count, first), np.diff(first, append=len(group)))
    best = np.flatnonzero(count == most)
    best = best[_run_starts(group[best])]
    return group[best], pairs[best] % width


def _run_starts(values: IntArray) -> IntArray:
    """Places at which a value differs from the one before it."""
    return np.flatnonzero(np.append(True, values[1:] != values[:-1]))


# ---------------------------------------------------------------------------------------------------- devices


class Links:
    """Finds the runtime call and the op of what a device did."""

    def __init__(
        self,
        thread: IntArray,
        start: IntArray,
        end: IntArray,
        external: IntArray,
        correlation: IntArray,
        is_runtime: BoolArray,
        recorded: BoolArray,
    ) -> None:
        self._thread, self._start, self._end = thread, start, end
        self._external = external
        self._is_op = ~is_runtime & recorded  # synthetic events launch nothing
        self._launches = _Finder(correlation, start, is_runtime & (correlation > 0))
        self._ops = _Finder(external, start, self._is_op & (external > 0))

    @property
    def shared(self) -> int:
        """How many ops have the External id of another."""
        return self._ops.shared

    def of(
        self,
        correlation: IntArray,
        external: IntArray,
        start: IntArray,
        kind: IntArray,
        flows: tuple[IntArray, IntArray, IntArray],
    ) -> tuple[IntArray, IntArray]:
        """Rows of the runtime calls that launched what a device did, and of the ops that it is charged to; -1: none. `flows`: rows of what a
        device did, and the threads and times that flows to it come from, which decide where no id does."""
        launch = self._launches.last_before(correlation, start)
        op = self._ops.last_before(external, start)
        self._drop_chance_matches(op, launch, np.flatnonzero(external == correlation))
        launched = (op < 0) & (launch >= 0)
        if launched.any():
            calls = launch[launched]
            by_id = self._ops.last_before(self._external[calls], self._start[calls])
            self._drop_chance_matches(
                by_id, calls, np.flatnonzero(self._external[calls] == correlation[launched])
            )
            op[launched] = np.where(by_id >= 0, by_id, self.at(self._thread[calls], self._start[calls]))
        rows, threads, times = flows
        open_ = (op[rows] < 0) & (kind[rows] < DEVICE_ANNOTATION)
        if open_.all():
            op[rows] = self.at(threads, times)
        elif open_.any():
            op[rows[open_]] = self.at(threads[open_], times[open_])
        return launch, op

    def _drop_chance_matches(self, op: IntArray, call: IntArray, doubtful: IntArray) -> None:
        """Set ops to -1 that cannot have made the runtime calls they are to be charged with, by their threads and times.

        doubtful: the places to look at, where the External id is the correlation id. torch (of 2023, say) writes that of a call in no op
        that it knows of, and any other op may have the number.
        """
        doubtful = doubtful[(op[doubtful] >= 0) & (call[doubtful] >= 0)]
        ops, calls = op[doubtful], call[doubtful]
        at = self._start[calls]
        inside = (
            (self._start[ops] <= at) & (at <= self._end[ops]) & (self._thread[ops] == self._thread[calls])
        )
        op[doubtful[~inside]] = -1

    def at(self, threads: IntArray, times: IntArray) -> IntArray:
        """The innermost ops of threads at times."""
        op = np.full(len(times), -1, np.int64)
        ops = np.flatnonzero(self._is_op)
        asked = dict(rows_by(threads))
        for first, last in thread_slices(self._thread[ops]):
            part = ops[first:last]
            queries = asked.get(int(self._thread[part[0]]))
            if queries is None:
                continue
            rows = _slice_of(part)
            start, end = self._start[rows], self._end[rows]
            parent, ends_late = _nested(start, end)
            parent[ends_late] = -1
            inside = innermost(start, end, parent, times[queries])
            op_rows = part[inside]
            op_rows[inside < 0] = -1
            op[queries] = op_rows
        return op


def _slice_of(rows: IntArray) -> slice | IntArray:
    """Ascending rows as a slice where none is left out: columns are not copied then."""
    first, last = int(rows[0]), int(rows[-1]) + 1
    return slice(first, last) if last - first == len(rows) else rows


class _Finder:
    """Rows by an id; where several rows have it, the last one that began before a time."""

    def __init__(self, ids: IntArray, start: IntArray, which: BoolArray) -> None:
        rows = np.flatnonzero(which)
        order = rows[np.lexsort((start[rows], ids[rows]))]
        self._rows, self._ids, self._starts = order, ids[order], start[order]
        self.shared = int((self._ids[1:] == self._ids[:-1]).sum())

    def last_before(self, ids: IntArray, time: IntArray) -> IntArray:
        rows = np.full(len(ids), -1, np.int64)
        if len(self._rows):
            for first in range(0, len(ids), _BLOCK):
                block = slice(first, first + _BLOCK)
                rows[block] = self._rows_of(ids[block], time[block])
        return rows

    def _rows_of(self, ids: IntArray, time: IntArray) -> IntArray:
        first = np.searchsorted(self._ids, ids)
        place = np.minimum(first, len(self._ids) - 1)
        known = self._ids[place] == ids
        if self.shared:
            last = np.searchsorted(self._ids, ids, side="right")
            for query in np.flatnonzero(last - first > 1).tolist():
                a, b = int(first[query]), int(last[query])
                begun = int(np.searchsorted(self._starts[a:b], time[query], side="right"))
                place[query] = max(a, a + begun - 1)
        return np.where(known, self._rows[place], -1)


def flow_sources(
    flows: dict[str, Array],
    identity: IntArray,
    thread: IntArray,
    start: IntArray,
    correlation: IntArray,
) -> tuple[IntArray, IntArray, IntArray]:
    """Rows of what a device did to which flows lead, and the threads and times that the flows come from, for files that have flows and no
    correlation ids."""
    unlinked = np.flatnonzero(correlation < 0)
    if not len(unlinked) or not len(flows["start"]):
        return unlinked[:0], unlinked[:0], unlinked[:0]
    ends = np.flatnonzero(~flows["begins"])
    end = last_places(
        flows["thread"][ends], flows["start"][ends], thread[unlinked], start[unlinked], len(identity)
    )
    unlinked, ends = unlinked[end >= 0], ends[end[end >= 0]]
    begins = np.flatnonzero(flows["begins"])
    number = _pair_numbers(flows["category"], flows["flow"])
    source = np.full(len(number), -1, np.int64)
    source[number[begins]] = begins  # of several beginnings of a flow the last one stays
    source = source[number[ends]]
    unlinked, source = unlinked[source >= 0], source[source >= 0]
    return unlinked, identity[flows["thread"][source]], flows["start"][source]


def last_places(
    number: IntArray, time: IntArray, wanted_number: IntArray, wanted_time: IntArray, limit: int
) -> IntArray:
    """For each wanted (number, time) its last place among others; -1: it is not among them. Numbers, of threads or names, are below `limit`."""
    if not len(time):
        return np.full(len(wanted_time), -1, np.int64)
    times, keys = distinct(time)
    keys *= limit
    keys += number
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    places = np.empty(len(wanted_time), np.int64)
    for first in range(0, len(places), _BLOCK):
        block = slice(first, first + _BLOCK)
        place = np.minimum(np.searchsorted(times, wanted_time[block]), len(times) - 1)
        wanted = place * limit + wanted_number[block]
        last = np.searchsorted(keys, wanted, side="right") - 1
        known = (last >= 0) & (keys[np.maximum(last, 0)] == wanted) & (times[place] == wanted_time[block])
        places[block] = np.where(known, order[np.maximum(last, 0)], -1)
    return places


def _pair_numbers(one: IntArray, two: IntArray) -> IntArray:
    """Numbers of pairs of values, from 0 on: equal pairs have the same."""
    order = np.lexsort((two, one))
    changes = np.zeros(len(order), bool)
    for column in (one, two):
        ordered = column[order]
        changes[1:] |= ordered[1:] != ordered[:-1]
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(changes)
    return number
