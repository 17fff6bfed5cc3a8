"""Slicing: a trace file (or a recording) and a selection in, a smaller trace file out that every reader opens.

Works on the raw events in two passes: the first reads a few facts of each event and decides, the second copies what stays. What nobody
here understands is kept where its time and thread are kept. Cut are: slices that stick out of the selected time (their times are changed,
and `"clipped": true` in their arguments says so), and the link to a Python frame that went.
"""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..export.files import open_for_export
from ..steps import step_numbers
from .raw_events import (
    DEVICE_ANNOTATIONS,
    DEVICE_CATEGORIES,
    NONE,
    Columns,
    Event,
    Head,
    Progress,
    Writer,
    batches,
    columns,
    microseconds,
    valid_top,
)

_RANK = re.compile(r"\brank\D{0,2}(\d+)", re.IGNORECASE)
_SLICE, _BEGIN, _END, _META = ord("X"), ord("B"), ord("E"), ord("M")
_START_MARKS, _END_MARKS = ("Iteration Start",), ("Record Window End",)


@dataclass(frozen=True)
class Selection:
    """What is to stay; several conditions hold together, and none keeps everything."""

    steps: tuple[tuple[int, int], ...] = ()  # from, to: numbers of ProfilerStep#N, both included
    time_us: tuple[float, float] | None = None  # from, to: microseconds since the trace begins
    under: tuple[
        str, ...
    ] = ()  # texts of annotations (* stands for anything): what their process does meanwhile
    name: str | None = None  # a regular expression: what matches, all inside of it, and what that launches
    threads: tuple[str, ...] = ()  # numbers or (parts of) names
    pids: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    min_us: float = 0.0  # shorter slices go
    drop: tuple[str, ...] = ()  # categories or names that go; "memory", "flows" and "counters" as well

    def __bool__(self) -> bool:
        return self != Selection()


@dataclass(frozen=True)
class Sliced:
    """What was written."""

    path: str
    events: int  # in the source
    kept: int
    clipped: int
    window_us: tuple[float, float]  # of what was kept, since the source's beginning
    notes: tuple[str, ...] = field(default=())


class NothingLeftError(ValueError):
    """A selection that no event of the file fits."""


def slice_trace(
    source: Any,
    out: str | os.PathLike[str],
    selection: Selection,
    *,
    strict: bool = False,
    progress: Progress | None = None,
) -> Sliced:
    """Write what a selection leaves of a trace: of a file (a path), or of a profile that has stopped."""
    if not isinstance(source, (str, os.PathLike)):
        return _slice_recording(source, out, selection)
    path: str = os.fspath(source)
    facts = columns(path, strict=strict, progress=progress)
    plan = _plan(facts, selection, path)
    head = Head()
    written = 0
    with open_for_export(out) as file:
        writer = Writer(file, valid_top(facts.head.top))
        place = 0
        for events in batches(path, head):
            part = plan.keep[place : place + len(events)]
            plan.edit(events, place)
            kept = [event for event, stays in zip(events, part.tolist()) if stays]
            writer.write(kept)
            written += len(kept)
            place += len(events)
            if progress is not None:
                progress(place, len(facts))
        writer.close()
    return Sliced(os.fspath(out), len(facts), written, plan.clipped, plan.window_us, tuple(facts.head.notes))


def _slice_recording(source: Any, out: str | os.PathLike[str], selection: Selection) -> Sliced:
    from ..analysis.recording import as_results
    from ..export.chrome import export_chrome_trace

    results = as_results(source)
    with tempfile.TemporaryDirectory() as folder:
        whole = os.path.join(folder, "whole.json")
        export_chrome_trace(results.trace, whole)
        return slice_trace(whole, out, selection)


# ---------------------------------------------------------------------------------------------------- deciding


@dataclass
class Plan:
    """Which events stay, and what changes in them."""

    keep: np.ndarray
    moved: dict[int, tuple[int, int]]  # row -> new start and length, of slices that are cut
    times: dict[int, int]  # row -> new time, of instants and ends
    parents: dict[int, int]  # row -> the Python frame around it that stays; NONE: there is none
    window_us: tuple[float, float]
    _rows: np.ndarray | None = None

    @property
    def clipped(self) -> int:
        return len(self.moved)

    def edit(self, events: list[Event], first: int) -> None:
        """Change the events of a batch whose first one is row `first`."""
        if self._rows is None:
            self._rows = np.array(sorted({*self.moved, *self.times, *self.parents}), np.int64)
        low, high = np.searchsorted(self._rows, [first, first + len(events)])
        for row in self._rows[low:high].tolist():
            event = events[row - first]
            if row in self.moved:
                start, length = self.moved[row]
                event["ts"] = microseconds(start)
                if event.get("ph") == "X":
                    event["dur"] = microseconds(length)
                args = event.get("args")
                event["args"] = {**(args if isinstance(args, dict) else {}), "clipped": True}
            if row in self.times:
                event["ts"] = microseconds(self.times[row])
            if row in self.parents:
                parent = self.parents[row]
                event["args"]["Python parent id"] = None if parent == NONE else parent


def _plan(facts: Columns, wanted: Selection, path: str) -> Plan:
    timed = facts.start_ns != NONE
    if not timed.any():
        raise NothingLeftError(f"{path}: no event has a time; expected a trace with ts in microseconds")
    origin = int(facts.start_ns[timed].min())
    slices = timed & ((facts.phase == _SLICE) | ((facts.phase == _BEGIN) & (facts.partner >= 0)))
    meta = facts.phase == _META
    on_device = facts.is_category(DEVICE_CATEGORIES) & slices
    process = _processes(facts)
    allowed = _threads_allowed(facts, wanted, path)[facts.thread]

    windows = _windows(facts, wanted, process, slices & ~on_device, origin, path)
    start, end = facts.start_ns.copy(), facts.end_ns.copy()
    inside = timed.copy()
    for pid, spans in windows.items():
        rows = np.flatnonzero(
            timed
            & (
                (process == pid)
                if pid is not None
                else ~np.isin(process, [p for p in windows if p is not None])
            )
        )
        inside[rows], start[rows], end[rows] = _clip(start[rows], end[rows], spans)
    if wanted.name is not None:
        named = _named(facts, wanted.name, slices)
        by_name = _contained(facts, named & ~on_device, slices & ~on_device)
    else:
        named = by_name = np.ones(len(facts), bool)

    host = inside & allowed & by_name & ~on_device & ~meta
    device, device_span = _device(facts, wanted, host, inside, allowed, named, on_device, slices)
    clip_device = np.flatnonzero(device & facts.is_category(DEVICE_ANNOTATIONS))
    keep = host | device
    span = np.where(on_device, facts.start_ns, start), np.where(on_device, facts.end_ns, end)
    start, end = span[0].copy(), span[1].copy()
    if wanted and len(clip_device) and device_span:
        keep, start, end = _clip_annotations(facts, keep, start, end, clip_device, device_span)
    _stagger(facts, np.flatnonzero(keep & slices & ~on_device), start, end)
    marks = _marks(facts, timed)
    keep = _thin(facts, wanted, keep, slices)
    keep |= marks
    flows = facts.flow != NONE
    moved_start = start != facts.start_ns
    keep = _flows(facts, keep, slices, flows, moved_start, "flows" in wanted.drop)
    ends = np.flatnonzero((facts.phase == _END) & (facts.partner >= 0))
    keep[ends] = keep[facts.partner[ends]]
    shown = keep & slices
    if not (shown & ~facts.is_category(("Trace",))).any() and wanted:
        raise NothingLeftError(
            f"{path}: nothing is left of its {len(facts):,} events; {_hint(facts, wanted, slices)}"
        )
    keep |= meta & _meta_stays(facts, wanted, allowed)
    changed = np.flatnonzero(shown & (moved_start | (end != facts.end_ns)))
    moved = {r: (int(start[r]), int(end[r] - start[r])) for r in changed.tolist()}
    times = _ends_of(facts, moved)
    low, high = int(start[shown].min(initial=origin + (1 << 62))), int(end[shown].max(initial=origin))
    times |= _marked(facts, marks, low, high)
    return Plan(keep, moved, times, _parents(facts, keep), ((low - origin) / 1000, (high - origin) / 1000))


def _processes(facts: Columns) -> np.ndarray:
    """For each event a number of its process."""
    pids: dict[Any, int] = {}
    of = np.array([pids.setdefault(pid, len(pids)) for pid, _ in facts.threads] or [0], np.int64)
    return of[facts.thread]


def _threads_allowed(facts: Columns, wanted: Selection, path: str) -> np.ndarray:
    """For each thread of the file whether it may stay."""
    fits = np.ones(max(len(facts.threads), 1), bool)
    if wanted.ranks:
        ranks = ranks_of(facts)
        missing = sorted(set(wanted.ranks) - {r for r in ranks.values() if r is not None})
        if missing:
            known = sorted({r for r in ranks.values() if r is not None})
            raise NothingLeftError(
                f"{path}: has no rank {missing[0]}; "
                + (f"it has {_listed(known)}" if known else "it names no ranks")
            )
        fits &= np.array([ranks.get(pid) in wanted.ranks for pid, _ in facts.threads], bool)
    if wanted.pids:
        fits &= np.array([str(pid) in wanted.pids for pid, _ in facts.threads], bool)
    if wanted.threads:
        fits &= np.array([_thread_fits(facts, key, wanted.threads) for key in facts.threads], bool)
    return fits


def _thread_fits(facts: Columns, key: tuple[Any, Any], wanted: tuple[str, ...]) -> bool:
    name = str(facts.labels.get(key, {}).get("thread_name", ""))
    return any(
        text == str(key[1]) or (not text.isdigit() and text.lower() in name.lower()) for text in wanted
    )


def ranks_of(facts: Columns) -> dict[Any, int | None]:
    """By pid the rank it belongs to: of merged files from their list of ranks or from the processes' names, else the file's own."""
    found: dict[Any, int | None] = {}
    merged = facts.head.top.get("merged")
    for entry in merged if isinstance(merged, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("pids"), list):
            for pid in entry["pids"]:
                found[pid] = entry.get("rank")
    if not found:
        for pid, labels in facts.labels.items():
            match = _RANK.search(" ".join(map(str, labels.values()))) if not isinstance(pid, tuple) else None
            if match:
                found[pid] = int(match[1])
    if not found and facts.head.rank is not None:
        found = {pid: facts.head.rank for pid, _ in facts.threads}
    return found


def _listed(numbers: list[int]) -> str:
    text = ", ".join(map(str, numbers[:20]))
    return text + (" ..." if len(numbers) > 20 else "")


# ---------------------------------------------------------------------------------------------------- time

Spans = tuple[np.ndarray, np.ndarray]


def _windows(
    facts: Columns, wanted: Selection, process: np.ndarray, host: np.ndarray, origin: int, path: str
) -> dict[int | None, Spans]:
    """By process the times that stay; None: of the processes that have none of their own."""
    windows: dict[int | None, Spans] = {}
    if wanted.steps:
        numbers = step_numbers(facts.names, facts.name)
        fits = np.zeros(len(facts), bool)
        for first, last in wanted.steps:
            fits |= (numbers >= first) & (numbers <= last)
        rows = np.flatnonzero(fits & host)
        if not len(rows):
            known = sorted(set(numbers[host & (numbers >= 0)].tolist()))
            raise NothingLeftError(
                f"{path}: has none of these steps; "
                + (f"it has {_listed(known)}" if known else "it has no steps (ProfilerStep#N)")
            )
        windows = _by_process(facts, process, rows)
    if wanted.under:
        patterns = [
            re.compile(".*".join(map(re.escape, text.split("*"))) + r"\Z", re.DOTALL) for text in wanted.under
        ]
        fits = np.array([any(p.match(name) for p in patterns) for name in facts.names] or [False])[facts.name]
        rows = np.flatnonzero(fits & host)
        if not len(rows):
            raise NothingLeftError(f"{path}: nothing in it is called {' or '.join(map(repr, wanted.under))}")
        windows = _both(windows, _by_process(facts, process, rows))
    if wanted.time_us is not None:
        begin, until = (origin + t * 1000 for t in wanted.time_us)
        low = np.array([round(begin)], np.int64)
        high = np.array([round(min(until, 2.0**62))], np.int64)
        windows = _both(windows, {None: (low, high)})
    return windows


def _by_process(facts: Columns, process: np.ndarray, rows: np.ndarray) -> dict[int | None, Spans]:
    made: dict[int | None, Spans] = {}
    for pid in np.unique(process[rows]).tolist():
        mine = rows[process[rows] == pid]
        made[pid] = _union(facts.start_ns[mine], facts.end_ns[mine])
    # threads of other processes (devices, marks) go by the time of all
    made[None] = _union(facts.start_ns[rows], facts.end_ns[rows])
    return made


def _union(start: np.ndarray, end: np.ndarray) -> Spans:
    """Spans that do not overlap and cover the same time."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    new = np.ones(len(start), bool)
    new[1:] = start[1:] > end[:-1]
    first = np.flatnonzero(new)
    return start[first], end[np.append(first[1:] - 1, len(end) - 1)]


def _both(a: dict[int | None, Spans], b: dict[int | None, Spans]) -> dict[int | None, Spans]:
    """The time that two sets of windows share."""
    if not a or not b:
        return a or b
    return {pid: _shared(a.get(pid, a[None]), b.get(pid, b[None])) for pid in {*a, *b}}


def _shared(a: Spans, b: Spans) -> Spans:
    low: list[int] = []
    high: list[int] = []
    for first, last in zip(*a):
        start, end = np.maximum(b[0], first), np.minimum(b[1], last)
        fits = start <= end
        low += start[fits].tolist()
        high += end[fits].tolist()
    return np.array(low, np.int64), np.array(high, np.int64)


def _clip(start: np.ndarray, end: np.ndarray, spans: Spans) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which events lie in the spans at least in part, and where they begin and end then."""
    low, high = spans
    if not len(low):
        return np.zeros(len(start), bool), start, end
    # the first span that ends at or after the event's start, the last one that begins at or before its end
    first = np.searchsorted(high, start, side="left")
    last = np.searchsorted(low, end, side="right") - 1
    inside = (first < len(low)) & (last >= 0) & (first <= last)
    begin = np.maximum(start, low[np.minimum(first, len(low) - 1)])
    until = np.minimum(end, high[np.maximum(last, 0)])
    # what only touches a span is outside of it, unless it has no length itself
    touches = (until <= begin) & (end > start)
    inside &= ~touches
    return inside, np.where(inside, begin, start), np.where(inside, np.maximum(until, begin), end)


def _stagger(facts: Columns, rows: np.ndarray, start: np.ndarray, end: np.ndarray) -> None:
    """Let slices of a thread that are cut at the same time begin and end a nanosecond apart, the outer ones outside: there are
    readers that take what begins first for the outer one."""
    for cut, whole, other, way in (
        (end, facts.end_ns, facts.start_ns, 1),
        (start, facts.start_ns, facts.end_ns, -1),
    ):
        moved = rows[cut[rows] != whole[rows]]
        # innermost first: it begins last and, if several begin at once, ends first; in files it stands behind
        order = np.lexsort((-moved, -way * other[moved], way * whole[moved], cut[moved], facts.thread[moved]))
        before: tuple[int, int] = (-1, 0)
        last = 0
        for row in moved[order].tolist():
            group = int(facts.thread[row]), int(cut[row])
            at = group[1] if group != before else last + way
            if way * at > way * int(whole[row]):
                at = int(whole[row])
            if way < 0 and end[row] == facts.end_ns[row]:
                at = _with_same_end(at, int(whole[row]), int(end[row]))
            cut[row] = last = at
            before = group


def _with_same_end(start: int, whole: int, end: int) -> int:
    """A start so close before the wanted one that start and length as floats add up to the end that they had: what ended together goes
    on to do so for readers that add floats."""
    wanted = whole / 1000 + (end - whole) / 1000
    for earlier in range(16):
        at = start - earlier
        if at <= whole:
            break
        if at / 1000 + (end - at) / 1000 == wanted:
            return at
    return start


# ---------------------------------------------------------------------------------------------------- names, devices


def _named(facts: Columns, pattern: str, slices: np.ndarray) -> np.ndarray:
    try:
        found = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
    return np.array([bool(found.search(name)) for name in facts.names] or [False])[facts.name] & slices


def _contained(facts: Columns, roots: np.ndarray, slices: np.ndarray) -> np.ndarray:
    """The events that lie wholly inside one of `roots` on the same thread, those included; instants too."""
    made = np.zeros(len(facts), bool)
    for thread in np.unique(facts.thread[roots]).tolist():
        mine = np.flatnonzero((facts.thread == thread) & (facts.start_ns != NONE))
        around = mine[roots[mine]]
        order = np.argsort(facts.start_ns[around], kind="stable")
        begin, until = facts.start_ns[around][order], facts.end_ns[around][order]
        furthest = np.maximum.accumulate(until)
        at = np.searchsorted(begin, facts.start_ns[mine], side="right") - 1
        inside = (at >= 0) & (facts.end_ns[mine] <= furthest[np.maximum(at, 0)])
        made[mine[inside]] = True
    return made | (roots & slices)


def _device(
    facts: Columns,
    wanted: Selection,
    host: np.ndarray,
    inside: np.ndarray,
    allowed: np.ndarray,
    named: np.ndarray,
    on_device: np.ndarray,
    slices: np.ndarray,
) -> tuple[np.ndarray, dict[int, tuple[int, int]]]:
    """Device events that stay: launched by what stays; where the file does not say by whom, by time, thread and name.

    And by thread the time from the first to the last of them.
    """
    if not on_device.any():
        return np.zeros(len(facts), bool), {}
    callers = slices & ~on_device
    linked = np.zeros(len(facts), bool)
    staying = np.zeros(len(facts), bool)
    annotation = facts.is_category(DEVICE_ANNOTATIONS)
    for ids, which in ((facts.correlation, ~annotation), (facts.external, np.ones(len(facts), bool))):
        here = on_device & which & (ids != NONE) & (ids > 0)
        known = callers & (ids != NONE) & (ids > 0)
        if ids is facts.external and (linked & here).any():
            here &= ~linked  # the launch decides; an op may launch from several threads
        linked |= here & np.isin(ids, ids[known])
        staying |= here & np.isin(ids, ids[known & host])
    if wanted.ranks or wanted.pids:
        ours = {facts.threads[t][0] for t in np.unique(facts.thread[host]).tolist()}
        direct = allowed | np.array([pid in ours for pid, _ in facts.threads], bool)[facts.thread]
    else:
        direct = allowed
    alone = on_device & ~linked & inside & direct & (named if wanted.name is not None else True)
    chosen = staying | alone
    if wanted.name is not None:
        chosen |= on_device & named & inside & allowed  # a kernel's own name
    if wanted.threads:
        chosen |= on_device & allowed & inside & named  # a stream that was asked for
    if wanted.ranks:
        chosen &= allowed
    spans: dict[int, tuple[int, int]] = {}
    work = chosen & ~annotation
    for thread in np.unique(facts.thread[work]).tolist():
        mine = work & (facts.thread == thread)
        spans[thread] = int(facts.start_ns[mine].min()), int(facts.end_ns[mine].max())
    return chosen, spans


def _clip_annotations(
    facts: Columns,
    keep: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    rows: np.ndarray,
    spans: dict[int, tuple[int, int]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Annotations on a device reach from the first to the last kernel that stays, not further."""
    keep, start, end = keep.copy(), start.copy(), end.copy()
    for row in rows.tolist():
        low, high = spans.get(int(facts.thread[row]), (0, -1))
        begin, until = max(int(start[row]), low), min(int(end[row]), high)
        if begin < until:
            start[row], end[row] = begin, until
        else:
            keep[row] = False
    return keep, start, end


# ---------------------------------------------------------------------------------------------------- the rest


def _thin(facts: Columns, wanted: Selection, keep: np.ndarray, slices: np.ndarray) -> np.ndarray:
    """Without short slices and what is to be dropped."""
    if wanted.min_us > 0:
        keep = keep & ~(slices & (facts.length_ns < wanted.min_us * 1000))
    if wanted.drop:
        drop = frozenset(wanted.drop)
        keep = keep & ~facts.is_category(drop)
        names = np.array(
            [name in drop or (name == "[memory]" and "memory" in drop) for name in facts.names] or [False]
        )
        keep = keep & ~names[facts.name]
        if "counters" in drop:
            keep = keep & (facts.phase != ord("C"))
    return keep


def _marks(facts: Columns, timed: np.ndarray) -> np.ndarray:
    """The instants that say when the recording began and ended."""
    known = (*_START_MARKS, *_END_MARKS)
    marks = np.array([name.startswith(known) for name in facts.names] or [False])[facts.name]
    return marks & timed & ((facts.phase == ord("i")) | (facts.phase == ord("I")))


def _marked(facts: Columns, marks: np.ndarray, low: int, high: int) -> dict[int, int]:
    """New times of those instants: at the ends of what stays."""
    made = {}
    for row in np.flatnonzero(marks).tolist():
        at = int(facts.start_ns[row])
        new = max(at, low) if facts.names[facts.name[row]].startswith(_START_MARKS) else min(at, high)
        if new != at:
            made[row] = new
    return made


def _ends_of(facts: Columns, moved: dict[int, tuple[int, int]]) -> dict[int, int]:
    """New times of the ends (E) of begins (B) that were cut."""
    return {
        int(facts.partner[row]): start + length
        for row, (start, length) in moved.items()
        if facts.phase[row] == _BEGIN
    }


def _flows(
    facts: Columns, keep: np.ndarray, slices: np.ndarray, flows: np.ndarray, moved: np.ndarray, drop: bool
) -> np.ndarray:
    """Ends of flows stay where the slice that they sit on stays, and the other end does too if there ever was one."""
    keep = keep.copy()
    rows = np.flatnonzero(flows)
    if drop or not len(rows):
        keep[rows] = False
        return keep
    stays = keep[rows]  # those that sit on no slice go by time and thread, as was decided
    sat = np.zeros(len(rows), bool)
    alive = np.zeros(len(rows), bool)
    for mask, into in ((slices, sat), (slices & keep & ~moved, alive)):
        at = np.flatnonzero(mask)
        wanted = np.stack([facts.thread[rows].astype(np.int64), facts.start_ns[rows]], axis=1)
        into |= _found(wanted, np.stack([facts.thread[at].astype(np.int64), facts.start_ns[at]], axis=1))
    stays = np.where(sat, alive, stays)
    number = np.unique(facts.flow[rows], return_inverse=True)[1].reshape(-1)
    starts = facts.phase[rows] == ord("s")
    count = int(number.max()) + 1
    for side in (starts, ~starts):
        had = np.bincount(number[side], minlength=count) > 0
        has = np.bincount(number[side & stays], minlength=count) > 0
        stays = stays & ~(had & ~has)[number]
    keep[rows] = stays
    return keep


def _found(wanted: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Which rows of a matrix of two columns are among those of another."""
    if not len(among):
        return np.zeros(len(wanted), bool)
    both = np.concatenate([wanted, among])
    times, place = np.unique(both[:, 1], return_inverse=True)
    key = both[:, 0] * len(times) + place.reshape(-1)
    return np.isin(key[: len(wanted)], key[len(wanted) :])


def _meta_stays(facts: Columns, wanted: Selection, allowed: np.ndarray) -> np.ndarray:
    """Names of processes and threads stay with them; those of a process as long as one of its threads stays."""
    if not (wanted.ranks or wanted.pids or wanted.threads):
        return np.ones(len(facts), bool)
    pids = {facts.threads[t][0] for t in np.unique(facts.thread[allowed]).tolist()}
    same = np.array([pid in pids for pid, _ in facts.threads], bool)[facts.thread]
    of_thread = np.array([name.startswith("thread_") for name in facts.names] or [False])[facts.name]
    return np.where(of_thread, allowed, same) if wanted.threads else same


def _parents(facts: Columns, keep: np.ndarray) -> dict[int, int]:
    """For Python frames whose caller goes, the next one out that stays."""
    rows = np.flatnonzero((facts.python != NONE) & (facts.python_parent != NONE))
    if not len(rows) or keep[rows].all():
        return {}
    by_id = np.flatnonzero(facts.python != NONE)
    order = by_id[np.argsort(facts.python[by_id], kind="stable")]
    ids = facts.python[order]

    at = np.minimum(np.searchsorted(ids, facts.python_parent[by_id]), len(ids) - 1)
    caller = np.full(len(facts), -1, np.int64)
    caller[by_id] = np.where(ids[at] == facts.python_parent[by_id], order[at], -1)
    goes = (caller >= 0) & (facts.python_parent != NONE) & ~keep[caller]
    # the outermost row on the way out whose own caller goes; each round doubles the way, so callers in a circle end it too
    last = np.where(goes, caller, np.arange(len(facts)))
    for _ in range(max(len(by_id), 1).bit_length()):
        last = last[last]
    mine = rows[keep[rows]]
    parent = np.where(goes[last[mine]], NONE, facts.python_parent[last[mine]])
    changed = parent != facts.python_parent[mine]
    return dict(zip(mine[changed].tolist(), parent[changed].tolist()))


def _hint(facts: Columns, wanted: Selection, slices: np.ndarray) -> str:
    if wanted.name is not None and not _named(facts, wanted.name, slices).any():
        return f"no name matches {wanted.name!r}"
    if wanted.threads:
        return "threads: " + ", ".join(sorted({str(tid) for _, tid in facts.threads}))
    if wanted.pids:
        return "processes: " + ", ".join(sorted({str(pid) for pid, _ in facts.threads}))
    return "expected a selection that some events fit"
