"""Who belongs to whom: columns of a file in; callers, stacks, forward threads, and the ops that launched a device's work out."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..call_paths import paths
from ..frames import is_left_out
from ..trace import DEVICE_ANNOTATION, RUNTIME, Frames, Trace
from ..tree import depths, innermost, parents, thread_slices


def _nested(start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Parents of one thread's events if they nest, and which of them stick out of their parent."""
    found = parents(depths(start, end))
    return found, (found >= 0) & (end > end[np.maximum(found, 0)])


def snapped(thread: np.ndarray, start: np.ndarray, end: np.ndarray, tolerance: int) -> tuple[np.ndarray, int]:
    """Ends that lie beyond the end of the event around them by no more than `tolerance` are moved to it; and how many were."""
    end, moved = end.copy(), 0
    for first, last in thread_slices(thread):
        part = slice(first, last)
        if not _nested(start[part], end[part])[1].any():
            continue
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
        end[part] = ends
    return end, moved


def overlapping(trace: Trace) -> int:
    """How many ops and annotations overlap others of their thread without lying inside them. Runtime calls are timed by another
    clock and do so in every file."""
    keep = trace.kind != RUNTIME
    thread, start, end = trace.thread[keep], trace.start_ns[keep], trace.end_ns[keep]
    return sum(int(_nested(start[a:b], end[a:b])[1].sum()) for a, b in thread_slices(thread))


# ---------------------------------------------------------------------------------------------------- Python calls


def callers(
    thread: np.ndarray, start: np.ndarray, end: np.ndarray, own: np.ndarray, parent: np.ndarray
) -> tuple[np.ndarray, int]:
    """Rows of callers from the numbers that calls have in the file, or from the times where they have none; and how many
    numbers occur more than once. Rows are in the order of (thread, start)."""
    found = np.full(len(start), -1, np.int64)
    numbered = own >= 0
    if not numbered.all():
        for first, last in thread_slices(thread):
            part = slice(first, last)
            near, out = _nested(start[part], end[part])
            near = np.where(out, -1, near)
            found[part] = np.where(near < 0, -1, near + first)
    if not numbered.any():
        return found, 0
    rows = np.flatnonzero(numbered)
    rows = rows[np.argsort(own[rows], kind="stable")]
    keys = own[rows]
    named = np.flatnonzero(numbered & (parent >= 0))
    place = np.minimum(np.searchsorted(keys, parent[named]), len(keys) - 1)
    caller = rows[place]
    # a caller began before what it calls; this also keeps chains of callers from running in circles
    before = np.where(
        thread[caller] == thread[named],
        caller < named,
        start[caller] < start[named],
    )
    known = (keys[place] == parent[named]) & before
    found[numbered] = -1
    found[named[known]] = caller[known]
    return found, len(keys) - len(np.unique(keys))


def stacks_of(
    thread: np.ndarray,
    start: np.ndarray,
    written: np.ndarray,
    texts: list[str],
    frames: Frames,
    wanted: np.ndarray,
) -> tuple[np.ndarray, Any]:
    """The stack of each event: as the file words it, else the Python calls around its beginning."""
    if texts:
        return written.astype(np.int32), tuple([tuple(_frames_of(text)) for text in texts])
    stack = np.full(len(start), -1, np.int32)
    if not len(frames):
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
        around = innermost(frames.start_ns[a:b], frames.end_ns[a:b], local, start[rows])
        stack[rows] = np.where(around >= 0, path[np.maximum(around, 0) + a], -1)
    return stack, table


def _frames_of(text: str) -> list[str]:
    return [part for part in text.split(";") if part and not is_left_out(part)]


# ---------------------------------------------------------------------------------------------------- forward and backward


def forward_threads(
    thread: np.ndarray, start: np.ndarray, sequence: np.ndarray, number: np.ndarray
) -> np.ndarray:
    """The thread of the forward op of each event of a backward pass; 0: it is none. The file numbers threads in its own way: a
    number means the thread on which most ops of the same sequence numbers ran forward."""
    made = np.zeros(len(thread), np.int64)
    backward = np.flatnonzero((number > 0) & (sequence >= 0))
    if not len(backward):
        return made
    forward = np.flatnonzero((number <= 0) & (sequence >= 0))
    order = forward[np.argsort(sequence[forward], kind="stable")]
    main = (
        int(thread[np.argmax(np.bincount(np.unique(thread, return_inverse=True)[1]))])
        if not len(order)
        else 0
    )
    for which in np.unique(number[backward]).tolist():
        rows = backward[number[backward] == which]
        place = (
            np.searchsorted(sequence[order], sequence[rows]) if len(order) else np.zeros(len(rows), np.int64)
        )
        place = np.minimum(place, max(len(order) - 1, 0))
        known = sequence[order][place] == sequence[rows] if len(order) else np.zeros(len(rows), bool)
        if known.any():
            threads, counts = np.unique(thread[order[place[known]]], return_counts=True)
            made[rows] = threads[np.argmax(counts)]
        else:
            made[rows] = main or thread[rows[0]]
    return made


# ---------------------------------------------------------------------------------------------------- devices


class Links:
    """Finds the runtime call and the op of what a device did."""

    def __init__(
        self,
        thread: np.ndarray,
        start: np.ndarray,
        end: np.ndarray,
        external: np.ndarray,
        correlation: np.ndarray,
        is_runtime: np.ndarray,
    ) -> None:
        self.thread, self.start, self.end, self.is_runtime = thread, start, end, is_runtime
        self.external = external
        self._launches = _Finder(correlation, start, is_runtime & (correlation > 0))
        self._ops = _Finder(external, start, ~is_runtime & (external > 0))

    @property
    def shared(self) -> int:
        """How many ops have the External id of another."""
        return self._ops.shared

    def of(
        self,
        correlation: np.ndarray,
        external: np.ndarray,
        start: np.ndarray,
        kind: np.ndarray,
        flow: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the runtime calls that launched what a device did, and of the ops that it is charged to; -1: none."""
        launch = self._launches.last_before(correlation, start)
        op = self._ops.last_before(external, start)
        has = (op < 0) & (launch >= 0)
        if has.any():
            rows = launch[has]
            named = self._ops.last_before(self.external[rows], self.start[rows])
            op[has] = np.where(named >= 0, named, self.around(rows))
        op = np.where((op < 0) & (kind < DEVICE_ANNOTATION), flow, op)
        return launch, op

    def around(self, rows: np.ndarray) -> np.ndarray:
        """The innermost ops around the beginnings of rows."""
        return self.at(self.thread[rows], self.start[rows])

    def at(self, threads: np.ndarray, times: np.ndarray) -> np.ndarray:
        """The innermost ops of threads at times."""
        found = np.full(len(times), -1, np.int64)
        ops = np.flatnonzero(~self.is_runtime)
        for first, last in thread_slices(self.thread[ops]):
            part = ops[first:last]
            here = np.flatnonzero(threads == self.thread[part[0]])
            if not len(here):
                continue
            near, out = _nested(self.start[part], self.end[part])
            inside = innermost(self.start[part], self.end[part], np.where(out, -1, near), times[here])
            found[here] = np.where(inside >= 0, part[np.maximum(inside, 0)], -1)
        return found


class _Finder:
    """Rows by a number; where several rows have it, the last one that began before a time."""

    def __init__(self, number: np.ndarray, start: np.ndarray, which: np.ndarray) -> None:
        rows = np.flatnonzero(which)
        order = rows[np.lexsort((start[rows], number[rows]))]
        self._rows, self._keys, self._starts = order, number[order], start[order]
        self.shared = int((self._keys[1:] == self._keys[:-1]).sum())

    def last_before(self, number: np.ndarray, time: np.ndarray) -> np.ndarray:
        if not len(self._rows):
            return np.full(len(number), -1, np.int64)
        first = np.searchsorted(self._keys, number)
        place = np.minimum(first, len(self._keys) - 1)
        known = self._keys[place] == number
        if self.shared:
            last = np.searchsorted(self._keys, number, side="right")
            for query in np.flatnonzero(last - first > 1).tolist():
                a, b = int(first[query]), int(last[query])
                place[query] = max(
                    a, a + int(np.searchsorted(self._starts[a:b], time[query], side="right")) - 1
                )
        return np.where(known, self._rows[place], -1)


def flow_sources(
    flows: dict[str, np.ndarray],
    identity: np.ndarray,
    thread: np.ndarray,
    start: np.ndarray,
    links: Links,
    correlation: np.ndarray,
) -> np.ndarray:
    """The ops from which arrows lead to what a device did, for files that say it so and not by numbers; -1: none."""
    found = np.full(len(start), -1, np.int64)
    loose = np.flatnonzero(correlation < 0)
    if not len(loose) or not len(flows["start"]):
        return found
    begins = flows["begins"]
    source = {
        flow: (int(identity[place]), at)
        for flow, place, at in zip(
            flows["flow"][begins].tolist(), flows["thread"][begins].tolist(), flows["start"][begins].tolist()
        )
    }
    target = {
        (place, at): flow
        for flow, place, at in zip(
            flows["flow"][~begins].tolist(),
            flows["thread"][~begins].tolist(),
            flows["start"][~begins].tolist(),
        )
    }
    ends = [
        (row, source.get(target.get(key, -1)))
        for row, key in zip(loose.tolist(), zip(thread[loose].tolist(), start[loose].tolist()))
    ]
    known = [(row, *end) for row, end in ends if end is not None]
    if known:
        rows, threads, times = (np.array(column, np.int64) for column in zip(*known))
        found[rows] = links.at(threads, times)
    return found
