"""Slicing: a trace file (or a recording) and a selection in, a smaller trace file out that every reader opens.

Works on the raw events in two passes: the first reads some fields of each event and decides, the second copies the events that stay. Events
of unknown kinds stay where their time and thread stay, synthetic events where their recorded event stays. Two things change in events that
stay: slices that reach beyond the selected time
are cut (`"clipped": true` in their arguments says so), and a link to a Python frame that goes leads to the next one out that stays.
"""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from ..analysis.recording import Recording, as_results, recorded_results
from ..arrays import BoolArray, IntArray, rows_by
from ..files import open_for_export
from ..json_types import JSONScalar
from ..load.categories import HOST, category
from ..load.json_slices import RawEvent
from ..load.synthetic_marks import owners_of
from ..recorded_health import health_at, health_entry, health_of_parts, with_recorded
from ..steps import step_numbers
from ..trace import ANNOTATION, OP, Health
from .raw_events import (
    DEVICE_ANNOTATIONS,
    DEVICE_CATEGORIES,
    NONE,
    EventColumns,
    Head,
    MetadataFilter,
    Progress,
    ThreadKey,
    Writer,
    batches,
    microseconds,
    read_columns,
    valid_top,
)

_RANK = re.compile(r"\brank\D{0,2}(\d+)", re.IGNORECASE)
_SLICE, _BEGIN, _END, _METADATA = ord("X"), ord("B"), ord("E"), ord("M")
_OPS = ((HOST, OP), (HOST, ANNOTATION))
_START_MARKS, _END_MARKS = ("Iteration Start",), ("Record Window End",)


@dataclass(frozen=True)
class Selection:
    """Which events stay: those that meet all conditions. Without a condition all stay."""

    steps: tuple[tuple[int, int], ...] = ()  # from, to: numbers of ProfilerStep#N, both included
    time_us: tuple[float, float] | None = None  # from, to: microseconds since the trace begins
    # names of annotations (* stands for any text): the time of these annotations, in their processes
    under: tuple[str, ...] = ()
    name: str | None = None  # a regular expression: matching events, all inside them, and what these launch
    threads: tuple[str, ...] = ()  # numbers or (parts of) names
    pids: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    min_us: float = 0.0  # shorter slices go
    drop: tuple[str, ...] = ()  # categories or names that go; "memory", "flows" and "counters" as well

    def __bool__(self) -> bool:
        return self != Selection()


@dataclass(frozen=True)
class Sliced:
    """The file that was written."""

    path: str
    events: int  # in the source
    kept: int
    clipped: int
    # since the source's beginning: the range of time that was asked for, within the source; if none was, that of the kept events
    window_us: tuple[float, float]
    notes: tuple[str, ...] = field(default=())
    # of the kept events: device work may run after the call that launched it
    kept_us: tuple[float, float] = (0.0, 0.0)
    left_out: tuple[str, ...] = ()  # keys of metadata that hold an environment or a secret


class NothingLeftError(ValueError):
    """A selection that no event of the file meets."""


def slice_trace(
    source: str | os.PathLike[str] | Recording,
    out: str | os.PathLike[str],
    selection: Selection,
    *,
    strict: bool = False,
    as_recorded: bool = False,
    keep_metadata: bool = False,
    progress: Progress | None = None,
) -> Sliced:
    """Write the events of a trace that a selection keeps: of a file (a path), or of a profile that has stopped. as_recorded: without
    synthetic events. keep_metadata: with environments, command lines and tokens in the metadata of a file."""
    if not isinstance(source, (str, os.PathLike)):
        return _slice_recording(recorded_results(source) if as_recorded else source, out, selection)
    path: str = os.fspath(source)
    columns = read_columns(path, strict=strict, as_recorded=as_recorded, progress=progress)
    plan = _plan(columns, selection, path)
    head = Head()
    written = 0
    metadata = MetadataFilter(keep_metadata)
    with open_for_export(out) as file:
        # a note about the bytes of the source names the source
        damage = health_of_parts([(os.path.basename(path), Health(notes=tuple(columns.head.notes)))])
        health = with_recorded(damage, health_at(columns.head.top))
        top = {**metadata.top(columns.head.top), **health_entry(health)}
        writer = Writer(file, valid_top(top))
        place = 0
        for events in batches(path, head, as_recorded=as_recorded):
            part = plan.keep[place : place + len(events)]
            plan.edit(events, place)
            kept = [event for event, stays in zip(events, part.tolist()) if stays]
            writer.write(metadata.events(kept))
            written += len(kept)
            place += len(events)
            if progress is not None:
                progress(place, len(columns))
        writer.close()
    notes = tuple(columns.head.notes)
    return Sliced(
        os.fspath(out),
        len(columns),
        written,
        plan.clipped,
        plan.window_us,
        notes,
        plan.kept_us,
        metadata.left_out,
    )


def _slice_recording(source: Recording, out: str | os.PathLike[str], selection: Selection) -> Sliced:
    from ..export.chrome import export_chrome_trace

    results = as_results(source)
    with tempfile.TemporaryDirectory() as folder:
        whole = os.path.join(folder, "whole.json")
        export_chrome_trace(results.trace, whole)
        return slice_trace(whole, out, selection, keep_metadata=True)


# ---------------------------------------------------------------------------------------------------- deciding


@dataclass
class Plan:
    """Which events stay, and what changes in them."""

    keep: BoolArray
    cut: dict[int, tuple[int, int]]  # row -> new start and length, of slices that are cut
    times: dict[int, int]  # row -> new time, of instants and ends
    parents: dict[int, int]  # row -> the Python frame around it that stays; NONE: there is none
    window_us: tuple[float, float]
    kept_us: tuple[float, float]
    _changed: IntArray | None = None  # the rows that change, sorted

    @property
    def clipped(self) -> int:
        return len(self.cut)

    def edit(self, events: list[RawEvent], first: int) -> None:
        """Change the events of a batch whose first one is row `first`."""
        if self._changed is None:
            self._changed = np.array(sorted({*self.cut, *self.times, *self.parents}), np.int64)
        low, high = np.searchsorted(self._changed, [first, first + len(events)])
        for row in self._changed[low:high].tolist():
            event = events[row - first]
            if row in self.cut:
                start, length = self.cut[row]
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


def _plan(columns: EventColumns, selection: Selection, path: str) -> Plan:
    timed = columns.start_ns != NONE
    if not timed.any():
        raise NothingLeftError(f"{path}: no event has a time; expected a trace with ts in microseconds")
    # counters may begin long before the first event: the trace begins with that, here as in other commands
    counted_from = timed & (columns.phase != ord("C"))
    origin = int(columns.start_ns[counted_from if counted_from.any() else timed].min())
    slices = timed & ((columns.phase == _SLICE) | ((columns.phase == _BEGIN) & (columns.partner >= 0)))
    synthetic, owner = _owners(columns, slices)
    slices[synthetic] = False  # they follow their recorded events
    metadata = columns.phase == _METADATA
    on_device = columns.is_category(DEVICE_CATEGORIES) & slices
    allowed = columns.by_thread(_threads_allowed(columns, selection, path))
    inside, start, end = _in_windows(columns, selection, timed, slices & ~on_device, origin, path)
    if selection.name is not None:
        named = _named(columns, selection.name, slices)
        named[owner[_named(columns, selection.name, timed)[synthetic]]] = True
        by_name = _contained(columns, named & ~on_device, slices & ~on_device)
    else:
        named = by_name = np.ones(len(columns), bool)

    host = inside & allowed & by_name & ~on_device & ~metadata
    device, device_spans = _device(columns, selection, host, inside, allowed, named, on_device, slices)
    keep = host | device
    # what a device does is kept as a whole, but for its annotations
    start = np.where(on_device, columns.start_ns, start)
    end = np.where(on_device, columns.end_ns, end)
    annotations = np.flatnonzero(device & columns.is_category(DEVICE_ANNOTATIONS))
    if selection and len(annotations) and device_spans:
        keep, start, end = _clip_annotations(columns, keep, start, end, annotations, device_spans)
    _stagger(columns, np.flatnonzero(keep & slices & ~on_device), start, end)
    marks = _marks(columns, timed)
    keep[synthetic], start[synthetic], end[synthetic] = keep[owner], start[owner], start[owner]
    slices[synthetic] = True
    keep = _without_dropped(columns, selection, keep, slices)
    keep[synthetic] &= keep[owner]
    keep |= marks
    moved_start = start != columns.start_ns
    keep = _flows(columns, keep, slices, moved_start, "flows" in selection.drop)
    ends = np.flatnonzero((columns.phase == _END) & (columns.partner >= 0))
    keep[ends] = keep[columns.partner[ends]]
    shown = keep & slices
    if not (shown & ~columns.is_category(("Trace",))).any() and selection:
        raise NothingLeftError(
            f"{path}: nothing is left of its {len(columns):,} events; {_hint(columns, selection, slices)}"
        )
    keep |= metadata & _metadata_stays(columns, selection, allowed)
    changed = np.flatnonzero(shown & (moved_start | (end != columns.end_ns)))
    cut = {row: (int(start[row]), int(end[row] - start[row])) for row in changed.tolist()}
    low, high = int(start[shown].min(initial=origin + (1 << 62))), int(end[shown].max(initial=origin))
    times = _times_of_ends(columns, cut) | _times_of_marks(columns, marks, low, high)
    kept_us = window_us = (low - origin) / 1000, (high - origin) / 1000
    if selection.time_us is not None:
        last_us = (int(columns.end_ns[timed].max()) - origin) / 1000
        window_us = max(selection.time_us[0], 0.0), min(selection.time_us[1], last_us)
    return Plan(keep, cut, times, _parents(columns, keep), window_us, kept_us)


def _owners(columns: EventColumns, slices: BoolArray) -> tuple[IntArray, IntArray]:
    """The rows of synthetic events, and of the recorded events that they stand in; an event whose recorded one is missing is none."""
    is_op = slices & columns.by_category([category(text) in _OPS for text in columns.categories])
    owner = owners_of(columns.synthetic, columns.thread, columns.start_ns, columns.external, is_op)
    rows = np.flatnonzero((columns.synthetic != 0) & (owner >= 0))
    return rows, owner[rows]


def _in_windows(
    columns: EventColumns, selection: Selection, timed: BoolArray, host: BoolArray, origin: int, path: str
) -> tuple[BoolArray, IntArray, IntArray]:
    """Which events lie in the selected time at least in part, and their starts and ends cut to it."""
    process = _processes(columns)
    windows = _windows(columns, selection, process, host, origin, path)
    start, end = columns.start_ns.copy(), columns.end_ns.copy()
    inside = timed.copy()
    own_windows = [pid for pid in windows if pid is not None]
    for pid, spans in windows.items():
        of_process = process == pid if pid is not None else ~np.isin(process, own_windows)
        rows = np.flatnonzero(timed & of_process)
        inside[rows], start[rows], end[rows] = _clip(start[rows], end[rows], spans)
    return inside, start, end


def _processes(columns: EventColumns) -> IntArray:
    """For each event a number of its process."""
    pids: dict[JSONScalar, int] = {}
    by_thread: IntArray = np.array(
        [pids.setdefault(pid, len(pids)) for pid, _ in columns.threads] or [0], np.int64
    )
    return by_thread[columns.thread]


def _threads_allowed(columns: EventColumns, selection: Selection, path: str) -> list[bool]:
    """For each thread of the file whether it may stay."""
    ranks = ranks_of(columns) if selection.ranks else {}
    if selection.ranks:
        known = sorted({rank for rank in ranks.values() if rank is not None})
        missing = sorted(set(selection.ranks) - set(known))
        if missing:
            raise NothingLeftError(
                f"{path}: has no rank {missing[0]}; "
                + (f"it has {_listed(known)}" if known else "it names no ranks")
            )
    return [
        (not selection.ranks or ranks.get(key[0]) in selection.ranks)
        and (not selection.pids or str(key[0]) in selection.pids)
        and (not selection.threads or _is_thread(columns, key, selection.threads))
        for key in columns.threads
    ]


def _is_thread(columns: EventColumns, key: ThreadKey, wanted: tuple[str, ...]) -> bool:
    name = columns.thread_names.get(key, "").lower()
    return any(text == str(key[1]) or (not text.isdigit() and text.lower() in name) for text in wanted)


def ranks_of(columns: EventColumns) -> dict[JSONScalar, int | None]:
    """By pid the rank it belongs to: of merged files from their list of ranks or from the processes' names, else the file's own."""
    ranks: dict[JSONScalar, int | None] = {}
    merged = columns.head.top.get("merged")
    for entry in merged if isinstance(merged, list) else ():
        if isinstance(entry, dict) and isinstance(pids := entry.get("pids"), list):
            rank = entry.get("rank")
            for pid in pids:
                if not isinstance(pid, (list, dict)):
                    ranks[pid] = rank if isinstance(rank, int) else None
    if not ranks:
        for pid, labels in columns.process_labels.items():
            match = _RANK.search(" ".join(labels.values()))
            if match:
                ranks[pid] = int(match[1])
    if not ranks and columns.head.rank is not None:
        ranks = {pid: columns.head.rank for pid, _ in columns.threads}
    return ranks


def _listed(numbers: list[int]) -> str:
    text = ", ".join(map(str, numbers[:20]))
    return text + (" ..." if len(numbers) > 20 else "")


# ---------------------------------------------------------------------------------------------------- time

Spans: TypeAlias = "tuple[IntArray, IntArray]"  # starts and ends


def _windows(
    columns: EventColumns,
    selection: Selection,
    process: IntArray,
    host: BoolArray,
    origin: int,
    path: str,
) -> dict[int | None, Spans]:
    """By process the times that stay; None: for the processes that have none of their own."""
    windows: dict[int | None, Spans] = {}
    if selection.steps:
        numbers = step_numbers(columns.names, columns.name)
        selected = np.zeros(len(columns), bool)
        for first, last in selection.steps:
            selected |= (numbers >= first) & (numbers <= last)
        rows = np.flatnonzero(selected & host)
        if not len(rows):
            known = sorted(set(numbers[host & (numbers >= 0)].tolist()))
            raise NothingLeftError(
                f"{path}: has none of these steps; "
                + (f"it has {_listed(known)}" if known else "it has no steps (ProfilerStep#N)")
            )
        windows = _by_process(columns, process, rows)
    if selection.under:
        patterns = [
            re.compile(".*".join(map(re.escape, text.split("*"))) + r"\Z", re.DOTALL)
            for text in selection.under
        ]
        selected = columns.by_name([any(p.match(name) for p in patterns) for name in columns.names])
        rows = np.flatnonzero(selected & host)
        if not len(rows):
            raise NothingLeftError(
                f"{path}: nothing in it is called {' or '.join(map(repr, selection.under))}"
            )
        windows = _both(windows, _by_process(columns, process, rows))
    if selection.time_us is not None:
        begin, until = (origin + t * 1000 for t in selection.time_us)
        low = np.array([round(begin)], np.int64)
        high = np.array([round(min(until, 2.0**62))], np.int64)
        windows = _both(windows, {None: (low, high)})
    return windows


def _by_process(columns: EventColumns, process: IntArray, rows: IntArray) -> dict[int | None, Spans]:
    windows: dict[int | None, Spans] = {}
    for pid, own in rows_by(process[rows]):
        mine = rows[own]
        windows[pid] = _union(columns.start_ns[mine], columns.end_ns[mine])
    # threads of other processes (devices, marks) go by the time of all
    windows[None] = _union(columns.start_ns[rows], columns.end_ns[rows])
    return windows


def _union(start: IntArray, end: IntArray) -> Spans:
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
        overlap = start <= end
        low += start[overlap].tolist()
        high += end[overlap].tolist()
    return np.array(low, np.int64), np.array(high, np.int64)


def _clip(start: IntArray, end: IntArray, spans: Spans) -> tuple[BoolArray, IntArray, IntArray]:
    """Which events lie in the spans at least in part, and their starts and ends cut to the spans."""
    low, high = spans
    if not len(low):
        return np.zeros(len(start), bool), start, end
    # the first span that ends at or after the event's start, the last one that begins at or before its end
    first = np.searchsorted(high, start, side="left")
    last = np.searchsorted(low, end, side="right") - 1
    inside = (first < len(low)) & (last >= 0) & (first <= last)
    begin = np.maximum(start, low[np.minimum(first, len(low) - 1)])
    until = np.minimum(end, high[np.maximum(last, 0)])
    # an event that only touches a span is outside of it, unless it has no length itself
    touches = (until <= begin) & (end > start)
    inside &= ~touches
    return inside, np.where(inside, begin, start), np.where(inside, np.maximum(until, begin), end)


def _stagger(columns: EventColumns, rows: IntArray, start: IntArray, end: IntArray) -> None:
    """Let slices of a thread that are cut at the same time begin and end a nanosecond apart, the outer ones outside: some readers
    take the event that begins first for the outer one."""
    for cut, whole, other, direction in (
        (end, columns.end_ns, columns.start_ns, 1),
        (start, columns.start_ns, columns.end_ns, -1),
    ):
        moved = rows[cut[rows] != whole[rows]]
        # innermost first: it begins last and, if several begin at once, ends first; in files it comes later
        order = np.lexsort(
            (-moved, -direction * other[moved], direction * whole[moved], cut[moved], columns.thread[moved])
        )
        previous: tuple[int, int] = (-1, 0)
        last = 0
        for row in moved[order].tolist():
            group = int(columns.thread[row]), int(cut[row])
            time = group[1] if group != previous else last + direction
            if direction * time > direction * int(whole[row]):
                time = int(whole[row])
            if direction < 0 and end[row] == columns.end_ns[row]:
                time = _with_same_end(time, int(whole[row]), int(end[row]))
            cut[row] = last = time
            previous = group


def _with_same_end(start: int, whole: int, end: int) -> int:
    """A start at or just before `start` such that start and length, as floats, add up to the same end as before (`whole`: the start
    before the cut): events that end together still do so for readers that add floats."""
    float_end = whole / 1000 + (end - whole) / 1000
    for earlier in range(16):
        candidate = start - earlier
        if candidate <= whole:
            break
        if candidate / 1000 + (end - candidate) / 1000 == float_end:
            return candidate
    return start


# ---------------------------------------------------------------------------------------------------- names, devices


def _named(columns: EventColumns, pattern: str, slices: BoolArray) -> BoolArray:
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
    return columns.by_name([expression.search(name) is not None for name in columns.names]) & slices


def _contained(columns: EventColumns, roots: BoolArray, slices: BoolArray) -> BoolArray:
    """The events that lie wholly inside one of `roots` on the same thread, those included; instants too."""
    contained = roots & slices
    timed = np.flatnonzero(columns.start_ns != NONE)
    for _, own in rows_by(columns.thread[timed]):
        rows = timed[own]
        root_rows = rows[roots[rows]]
        if not len(root_rows):
            continue
        order = np.argsort(columns.start_ns[root_rows], kind="stable")
        begin, until = columns.start_ns[root_rows][order], columns.end_ns[root_rows][order]
        furthest = np.maximum.accumulate(until)
        last_begun = np.searchsorted(begin, columns.start_ns[rows], side="right") - 1
        inside = (last_begun >= 0) & (columns.end_ns[rows] <= furthest[np.maximum(last_begun, 0)])
        contained[rows[inside]] = True
    return contained


def _device(
    columns: EventColumns,
    selection: Selection,
    host: BoolArray,
    inside: BoolArray,
    allowed: BoolArray,
    named: BoolArray,
    on_device: BoolArray,
    slices: BoolArray,
) -> tuple[BoolArray, dict[int, tuple[int, int]]]:
    """Device events that stay: those launched by host events that stay; where the file does not say by which, those of the selected
    time, threads and names. And by thread the time from the first to the last of them.
    """
    if not on_device.any():
        return np.zeros(len(columns), bool), {}
    callers = slices & ~on_device
    linked = np.zeros(len(columns), bool)
    staying = np.zeros(len(columns), bool)
    annotation = columns.is_category(DEVICE_ANNOTATIONS)
    for ids, mask in ((columns.correlation, ~annotation), (columns.external, np.ones(len(columns), bool))):
        with_id = on_device & mask & (ids != NONE) & (ids > 0)
        callers_with_id = callers & (ids != NONE) & (ids > 0)
        if ids is columns.external and (linked & with_id).any():
            with_id &= ~linked  # the launch decides; an op may launch from several threads
        linked |= with_id & np.isin(ids, ids[callers_with_id])
        staying |= with_id & np.isin(ids, ids[callers_with_id & host])
    if selection.ranks or selection.pids:
        host_pids = {columns.threads[t][0] for t in np.unique(columns.thread[host]).tolist()}
        direct = allowed | columns.by_thread([pid in host_pids for pid, _ in columns.threads])
    else:
        direct = allowed
    # without a selection by name `named` is true everywhere
    unlinked = on_device & ~linked & inside & direct & named
    chosen = staying | unlinked
    if selection.name is not None:
        chosen |= on_device & named & inside & allowed  # a kernel's own name
    if selection.threads:
        chosen |= on_device & allowed & inside & named  # a selected stream
    if selection.ranks:
        chosen &= allowed
    spans: dict[int, tuple[int, int]] = {}
    work = np.flatnonzero(chosen & ~annotation)
    for thread, own in rows_by(columns.thread[work]):
        of_thread = work[own]
        spans[thread] = int(columns.start_ns[of_thread].min()), int(columns.end_ns[of_thread].max())
    return chosen, spans


def _clip_annotations(
    columns: EventColumns,
    keep: BoolArray,
    start: IntArray,
    end: IntArray,
    rows: IntArray,
    spans: dict[int, tuple[int, int]],
) -> tuple[BoolArray, IntArray, IntArray]:
    """Annotations on a device reach from the first to the last kernel that stays, not further."""
    keep, start, end = keep.copy(), start.copy(), end.copy()
    for row in rows.tolist():
        low, high = spans.get(int(columns.thread[row]), (0, -1))
        begin, until = max(int(start[row]), low), min(int(end[row]), high)
        if begin < until:
            start[row], end[row] = begin, until
        else:
            keep[row] = False
    return keep, start, end


# ---------------------------------------------------------------------------------------------------- the rest


def _without_dropped(
    columns: EventColumns, selection: Selection, keep: BoolArray, slices: BoolArray
) -> BoolArray:
    """Without short slices and what is to be dropped."""
    if selection.min_us > 0:
        keep = keep & ~(slices & (columns.length_ns < selection.min_us * 1000))
    if selection.drop:
        drop = frozenset(selection.drop)
        keep = keep & ~columns.is_category(drop)
        names = [name in drop or (name == "[memory]" and "memory" in drop) for name in columns.names]
        keep = keep & ~columns.by_name(names)
        if "counters" in drop:
            keep = keep & (columns.phase != ord("C"))
    return keep


def _marks(columns: EventColumns, timed: BoolArray) -> BoolArray:
    """The instants that mark the start and the end of the recording."""
    marks = columns.by_name([name.startswith((*_START_MARKS, *_END_MARKS)) for name in columns.names])
    instants: BoolArray = (columns.phase == ord("i")) | (columns.phase == ord("I"))
    return marks & timed & instants


def _times_of_marks(columns: EventColumns, marks: BoolArray, low: int, high: int) -> dict[int, int]:
    """New times of those instants: at the ends of the time that stays."""
    times: dict[int, int] = {}
    for row in np.flatnonzero(marks).tolist():
        time = int(columns.start_ns[row])
        is_start = columns.names[columns.name[row]].startswith(_START_MARKS)
        new = max(time, low) if is_start else min(time, high)
        if new != time:
            times[row] = new
    return times


def _times_of_ends(columns: EventColumns, cut: dict[int, tuple[int, int]]) -> dict[int, int]:
    """New times of the ends (E) of begins (B) that were cut."""
    return {
        int(columns.partner[row]): start + length
        for row, (start, length) in cut.items()
        if columns.phase[row] == _BEGIN
    }


def _flows(
    columns: EventColumns, keep: BoolArray, slices: BoolArray, moved: BoolArray, drop: bool
) -> BoolArray:
    """Ends of flows stay where the slice at which they are stays, and an end of the other kind does too if there was one."""
    keep = keep.copy()
    rows = np.flatnonzero(columns.flow != NONE)
    if drop or not len(rows):
        keep[rows] = False
        return keep
    # an end at no slice stays if its time and thread stay
    at_slice = _are_starts(columns, rows, slices)
    at_kept_slice = _are_starts(columns, rows, slices & keep & ~moved)
    stays = np.where(at_slice, at_kept_slice, keep[rows])
    number = np.unique(columns.flow[rows], return_inverse=True)[1].reshape(-1)
    starts = columns.phase[rows] == ord("s")
    count = int(number.max()) + 1
    for side in (starts, ~starts):
        had_end = np.bincount(number[side], minlength=count) > 0
        has_end = np.bincount(number[side & stays], minlength=count) > 0
        stays = stays & ~(had_end & ~has_end)[number]
    keep[rows] = stays
    return keep


def _are_starts(columns: EventColumns, rows: IntArray, of: BoolArray) -> BoolArray:
    """Which rows have the thread and the start of one of the events in the mask `of`."""
    others = np.flatnonzero(of)
    if not len(others):
        return np.zeros(len(rows), bool)
    both = np.concatenate([rows, others])
    times, place = np.unique(columns.start_ns[both], return_inverse=True)
    key = columns.thread[both].astype(np.int64) * len(times) + place.reshape(-1)
    return np.isin(key[: len(rows)], key[len(rows) :])


def _metadata_stays(columns: EventColumns, selection: Selection, allowed: BoolArray) -> BoolArray:
    """Names of processes and threads stay with them; those of a process as long as one of its threads stays."""
    if not (selection.ranks or selection.pids or selection.threads):
        return np.ones(len(columns), bool)
    pids = {columns.threads[t][0] for t in np.unique(columns.thread[allowed]).tolist()}
    of_process = columns.by_thread([pid in pids for pid, _ in columns.threads])
    of_thread = columns.by_name([name.startswith("thread_") for name in columns.names])
    return np.where(of_thread, allowed, of_process) if selection.threads else of_process


def _parents(columns: EventColumns, keep: BoolArray) -> dict[int, int]:
    """For Python frames whose caller goes, the next one out that stays."""
    rows = np.flatnonzero((columns.python != NONE) & (columns.python_parent != NONE))
    if not len(rows) or keep[rows].all():
        return {}
    by_id = np.flatnonzero(columns.python != NONE)
    order = by_id[np.argsort(columns.python[by_id], kind="stable")]
    ids = columns.python[order]

    place = np.minimum(np.searchsorted(ids, columns.python_parent[by_id]), len(ids) - 1)
    caller = np.full(len(columns), -1, np.int64)
    caller[by_id] = np.where(ids[place] == columns.python_parent[by_id], order[place], -1)
    loses_caller = (caller >= 0) & (columns.python_parent != NONE) & ~keep[caller]
    # the outermost row on the way out whose own caller goes; each round doubles the way, so a circle of callers ends too
    last = np.where(loses_caller, caller, np.arange(len(columns)))
    for _ in range(max(len(by_id), 1).bit_length()):
        last = last[last]
    kept = rows[keep[rows]]
    parent = np.where(loses_caller[last[kept]], NONE, columns.python_parent[last[kept]])
    changed = parent != columns.python_parent[kept]
    return dict(zip(kept[changed].tolist(), parent[changed].tolist()))


def _hint(columns: EventColumns, selection: Selection, slices: BoolArray) -> str:
    if selection.name is not None and not _named(columns, selection.name, slices).any():
        return f"no name matches {selection.name!r}"
    if selection.threads:
        return "threads: " + ", ".join(sorted({str(tid) for _, tid in columns.threads}))
    if selection.pids:
        return "processes: " + ", ".join(sorted({str(pid) for pid, _ in columns.threads}))
    return "expected a selection that some events fit"
