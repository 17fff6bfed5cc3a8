"""Python calls after the stop: the core's log of calls and returns in; `Frames` and the stacks of events out.

The log of a thread has two integers per row: the number of a function (see `raw.FunctionNames`) and the time at a call, RETURN and the time at
a return. The upper half of a call's first integer is the bytecode offset in its caller plus one, 0: not known. Which calls are shown,
and under which name, is decided here, on columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..trace import ANNOTATION, Frames
from ..tree import depths, depths_below, innermost, levels, nearest, parents, thread_slices
from .raw import HIDDEN_KIND, LIBRARY_KIND, RETURN, SHOWN_KIND, FunctionNames

CALL_SITE = 32  # how many bits of a call's first integer are the function's number


class EventSpans(NamedTuple):
    """Columns of events, which Python calls must not cross."""

    kind: np.ndarray
    thread: np.ndarray
    start_ns: np.ndarray
    end_ns: np.ndarray


class CallRows(NamedTuple):
    """Calls as columns, a caller before what it calls."""

    number: np.ndarray  # of the function
    start: np.ndarray
    end: np.ndarray
    thread: np.ndarray
    parent: np.ndarray  # row of the caller; -1: none
    call_site: np.ndarray  # bytecode offset in the caller; -1: not known


class Calls:
    """All calls of a recording. logs: by thread, the rows of the core's log, all calls returned."""

    def __init__(self, functions: FunctionNames, logs: dict[int, np.ndarray]) -> None:
        self.functions = functions
        self.kinds = functions.kinds()
        self.in_c = functions.are_c_functions()
        # by thread: the call that is innermost after each row of the log, before the first row none
        self.innermost: dict[int, np.ndarray] = {}
        parts, base = [], 0
        for thread in sorted(logs):
            rows, innermost_call = _thread_rows(thread, logs[thread])
            self.innermost[thread] = np.where(innermost_call >= 0, innermost_call + base, -1)
            parts.append(rows._replace(parent=np.where(rows.parent >= 0, rows.parent + base, -1)))
            base += len(rows.start)
        empty = np.empty(0, np.int64)
        self.rows = CallRows(*(np.concatenate(c) for c in zip(*parts))) if parts else CallRows(*[empty] * 6)
        self.is_shown = _are_shown(self.rows, self.kinds)

    def frames(self, events: EventSpans) -> Frames:
        """The calls that are shown. None crosses an annotation."""
        if not self.is_shown.any():
            return Frames.none()
        names, modules = self.functions.names()
        line = self._lines()
        shown = self.is_shown
        above = self._nearest_above(shown)
        number, start, end, thread = (column[shown] for column in self.rows[:4])
        row = np.cumsum(shown) - 1
        parent = np.where(above[shown] >= 0, row[above[shown]], -1)
        start, end = _cut_at_annotations(events, start, end, thread, parent)
        order = np.lexsort((np.arange(len(start)), start, thread))  # a caller stands before what it calls
        new_row = np.empty(len(start), np.int64)
        new_row[order] = np.arange(len(start))
        parent = np.where(parent >= 0, new_row[parent], -1)
        columns = (number.astype(np.int32), start, end, thread, parent, modules[number], line[shown])
        return Frames(names, *(column[order] for column in columns))

    def stacks(
        self, thread: np.ndarray, position: np.ndarray
    ) -> tuple[tuple[tuple[str, ...], ...], np.ndarray]:
        """The distinct stacks (innermost frame first), and for each event the index of its stack, -1: none. position: how many rows
        the log of its thread had when the event began."""
        call = np.full(len(position), -1, np.int64)
        for one, innermost_call in self.innermost.items():
            here = thread == one
            call[here] = innermost_call[position[here]]
        in_stack = self.is_shown & ~self.in_c[self.rows.number]
        found = call >= 0
        call[found] = nearest(self.rows.parent, in_stack)[call[found]]
        distinct, stack_of = self._distinct_stacks(np.unique(call[call >= 0]), self._nearest_above(in_stack))
        return distinct, np.append(stack_of, np.int32(-1))[call]

    def _distinct_stacks(
        self, wanted: np.ndarray, parent: np.ndarray
    ) -> tuple[tuple[tuple[str, ...], ...], np.ndarray]:
        """The distinct stacks of some calls, and by call the index of its stack."""
        names = self.functions.names()[0]
        stack_of = np.full(len(parent), -1, np.int32)
        distinct: list[tuple[str, ...]] = []
        is_needed = np.zeros(len(parent), bool)
        while len(wanted):
            is_needed[wanted] = True
            wanted = np.unique(parent[wanted])
            wanted = wanted[wanted >= 0]
            wanted = wanted[~is_needed[wanted]]
        needed = np.flatnonzero(is_needed)
        place = np.cumsum(is_needed) - 1
        above = parent[needed]
        for level in levels(depths_below(np.where(above >= 0, place[above], -1))):
            calls = needed[level]
            above = np.where(parent[calls] >= 0, stack_of[parent[calls]], -1).astype(np.int64)
            keys, stack = np.unique(
                (above + 1) * len(names) + self.rows.number[calls].astype(np.int64), return_inverse=True
            )
            stack_of[calls] = stack + len(distinct)
            for key in keys.tolist():
                caller, name = divmod(key, len(names))
                distinct.append((names[name], *(distinct[caller - 1] if caller else ())))
        return tuple(distinct), stack_of

    def _nearest_above(self, stop: np.ndarray) -> np.ndarray:
        """For each call the nearest caller at which `stop` holds; -1: none."""
        parent = self.rows.parent
        return np.where(parent >= 0, nearest(parent, stop)[parent], -1)

    def _lines(self) -> np.ndarray:
        """The line in the caller from which each call was made; 0: not known."""
        number, call_site = self.rows.number, self.rows.call_site
        line = np.zeros(len(number), np.int64)
        caller = self._nearest_above(~self.in_c[number])
        rows = np.flatnonzero((caller >= 0) & (call_site >= 0))
        calling = number[caller[rows]]
        order = np.argsort(calling, kind="stable")
        bounds = np.flatnonzero(np.diff(calling[order], prepend=-1, append=-1))
        for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist()):
            known = self.functions.lines_of(int(calling[order[first]]))
            if known is not None:
                begins, lines = known
                made_here = rows[order[first:last]]
                line[made_here] = lines[np.searchsorted(begins, call_site[made_here], side="right") - 1]
        return line


def _thread_rows(thread: int, log: np.ndarray) -> tuple[CallRows, np.ndarray]:
    """The calls of one thread in the order in which they began; and which of them is the innermost after each row of the log."""
    began, ended, parent, innermost_call = matched(log[:, 0] != RETURN)
    word = log[began, 0]
    number, call_site = word & ((1 << CALL_SITE) - 1), (word >> CALL_SITE) - 1
    start = log[began, 1]
    end = np.where(ended >= 0, log[ended, 1], start)
    rows = CallRows(number, start, end, np.full(len(began), thread, np.int64), parent, call_site)
    return rows, innermost_call


def matched(enters: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """For each call in the order in which they began: the row at which it began, the row at which it returned (-1: it did not), and its
    caller (-1: none). And the innermost open call before the first row and after each.

    enters: by row, whether it is a call; else a return. Calls and returns alternate at each depth, so that a call and its return are
    neighbours once rows are sorted by depth. Returns without a call, which began before the thread was traced, are left out.
    """
    depth = np.cumsum(np.where(enters, 1, -1))
    lowest = np.minimum.accumulate(np.minimum(depth, 0))
    is_stray = ~enters & (lowest < np.concatenate(([0], lowest[:-1])))
    rows = np.flatnonzero(~is_stray)
    is_call = enters[rows]
    level = np.where(is_call, (depth - lowest)[rows], (depth - lowest)[rows] + 1)
    order = np.argsort(level, kind="stable")
    first = np.flatnonzero(is_call[order])
    has_return = np.zeros(len(first), bool)
    inside = first + 1 < len(order)
    has_return[inside] = ~is_call[order[first[inside] + 1]]
    began = order[first]
    ended = np.full(len(first), -1, np.int64)
    ended[has_return] = order[first[has_return] + 1]
    by_start = np.argsort(began)
    began, ended = began[by_start], ended[by_start]
    parent = parents(level[began] - 1)
    innermost_call = np.full(len(enters) + 1, -1, np.int64)
    innermost_call[rows[began] + 1] = np.arange(len(began))
    returned = ended >= 0
    innermost_call[rows[ended[returned]] + 1] = parent[returned]
    return rows[began], np.where(returned, rows[ended], -1), parent, innermost_call


def _are_shown(rows: CallRows, kinds: np.ndarray) -> np.ndarray:
    """Which calls are shown."""
    kind = kinds[rows.number]
    caller = nearest(rows.parent, kind != LIBRARY_KIND)
    by_hidden = (caller >= 0) & (kind[caller] == HIDDEN_KIND)
    shown: np.ndarray = (kind == SHOWN_KIND) | ((kind == LIBRARY_KIND) & ~by_hidden)
    return shown


def _cut_at_annotations(
    events: EventSpans, start: np.ndarray, end: np.ndarray, thread: np.ndarray, parent: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Start and end of calls. A call that opened an annotation and did not close it (or the reverse) would cross it: it is shortened,
    and with it the calls inside it."""
    annotations = events.kind == ANNOTATION
    if not annotations.any():
        return start, end
    start, end = start.copy(), end.copy()
    annotation_start, annotation_end, annotation_thread = (
        column[annotations] for column in (events.start_ns, events.end_ns, events.thread)
    )
    is_cut = False
    for first, last in thread_slices(annotation_thread):
        rows = np.flatnonzero(thread == annotation_thread[first])
        begins, ends = annotation_start[first:last], annotation_end[first:last]
        above = parents(depths(begins, ends))
        before = innermost(begins, ends - 1, above, start[rows])
        after = innermost(begins, ends - 1, above, end[rows])
        for row, a, b in zip(
            rows[before != after].tolist(), *(x[before != after].tolist() for x in (before, after))
        ):
            opened, closed = _ancestors(above, b), _ancestors(above, a)
            only_opened = [r for r in opened if r not in closed and begins[r] > start[row]]
            only_closed = [r for r in closed if r not in opened and ends[r] < end[row]]
            if only_closed:
                start[row] = max(start[row], int(max(ends[r] for r in only_closed)))
            if only_opened:
                end[row] = min(end[row], int(min(begins[r] for r in only_opened)))
            end[row] = max(end[row], start[row])
            is_cut = True
    if is_cut:
        for level in levels(depths_below(parent))[1:]:
            up = parent[level]
            start[level] = np.clip(start[level], start[up], end[up])
            end[level] = np.clip(end[level], start[level], end[up])
    return start, end


def _ancestors(parent: np.ndarray, row: int) -> list[int]:
    rows = []
    while row >= 0:
        rows.append(row)
        row = int(parent[row])
    return rows
