"""Raw events: a trace file in, its events as they stand in it out (in batches, or some fields of each as columns), and back into a file.

Unlike a Trace this keeps everything, also what this package does not understand: cutting and merging files work on it. Knows nothing of ops.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TypeAlias

import numpy as np
import orjson

from ..arrays import BoolArray, IntArray
from ..export.chrome import write
from ..json_text import safe_end_bytes, spaced
from ..json_types import JSONObject, JSONScalar
from ..load import byte_source, load
from ..load.byte_source import Limits, Source
from ..load.errors import BrokenTraceError
from ..load.formats import is_other_format, trace_file
from ..load.json_slices import RawEvent, Slices, no_garbage_collection
from ..load.synthetic_marks import mark_of
from ..recorded_health import health_at, with_recorded
from ..sensitive_data import without_environment
from ..trace import SYNTHETIC, Health

Progress: TypeAlias = byte_source.Progress
ThreadKey: TypeAlias = "tuple[JSONScalar, JSONScalar]"  # (pid, tid)

# categories of what happens on a device, new and old
DEVICE_CATEGORIES = frozenset(
    "kernel gpu_memcpy gpu_memset gpu_user_annotation cuda_sync cuda_profiler_range concurrent_kernel"
    " collective_task mtia_ccp_events mtia_insight mtia_workloadd gpu_pm_counter Kernel Memcpy Memset".split()
)
DEVICE_ANNOTATIONS = frozenset(("gpu_user_annotation",))
NONE = int(np.iinfo(np.int64).min)  # a time or number that an event does not have
# microseconds since the epoch in the year 2096: a start and a length together fit an int64 of nanoseconds
_FURTHEST = 4e15


@dataclass
class Head:
    """The keys beside the events of a file, and what was wrong with it; complete when all events were read."""

    top: JSONObject = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def base_ns(self) -> int:
        """What times of the file count from, in nanoseconds since the epoch."""
        base = self.top.get("baseTimeNanoseconds")
        return base if base.__class__ is int and 0 <= base < _FURTHEST * 1000 else 0

    @property
    def health(self) -> Health:
        """What the recording lacked, and what was wrong with the file."""
        return with_recorded(Health(notes=tuple(self.notes)), health_at(self.top))

    @property
    def rank(self) -> int | None:
        """The rank of the process that wrote the file."""
        info = self.top.get("distributedInfo")
        rank = info.get("rank") if isinstance(info, dict) else None
        return rank if isinstance(rank, int) and not isinstance(rank, bool) else None


def batches(
    path: str | os.PathLike[str],
    head: Head,
    *,
    strict: bool = False,
    as_recorded: bool = False,
    progress: Progress | None = None,
) -> Generator[list[RawEvent], None, None]:
    """The events of a file, some thousand at a time; fills `head`. strict: refuse a file that would have to be repaired. as_recorded:
    without synthetic events. A trace of another format than Kineto's is read as the file that `convert --to chrome` makes of it."""
    with _kineto_source(path) as source, no_garbage_collection():
        slices = Slices(source)
        head.top = slices.top  # holds the keys before the events with the first batch
        for events in slices:
            yield [
                event
                for event in events
                if event.__class__ is dict and not (as_recorded and _is_synthetic(event))
            ]
            if progress is not None:
                progress(source.consumed, source.total)
        head.notes = list(slices.notes)
        if strict and head.notes:
            raise BrokenTraceError(f"{os.fspath(path)}: {head.notes[0]}")


@contextmanager
def _kineto_source(path: str | os.PathLike[str]) -> Iterator[Source]:
    """The content of a trace in Kineto's format."""
    with Source(trace_file(path), Limits()) as source:
        if not is_other_format(source.head()):
            yield source
            return
    with tempfile.TemporaryFile() as file:
        write(load(path).trace, file)
        file.seek(0)
        with Source(file, Limits()) as source:
            source.name = os.fspath(path)
            yield source


def _is_synthetic(event: RawEvent) -> bool:
    """Whether an event is synthetic, see `Trace.synthetic`."""
    args = event.get("args")
    return args.__class__ is dict and mark_of(args, event.get("dur")) != 0


# ---------------------------------------------------------------------------------------------------- columns


@dataclass(frozen=True)
class EventColumns:
    """Some fields of each event of a file, in the file's order."""

    head: Head
    names: tuple[str, ...]
    categories: tuple[str, ...]
    threads: tuple[ThreadKey, ...]
    phase: IntArray  # uint8, ord of `ph`; 0: none
    name: IntArray  # int32, into `names`
    category: IntArray  # int32, into `categories`
    thread: IntArray  # int32, into `threads`
    start_ns: IntArray  # int64, NONE: no time
    length_ns: IntArray  # int64, 0: none
    correlation: IntArray  # int64, NONE: none
    external: IntArray  # int64, NONE: none
    flow: IntArray  # int64: number of the (category, id) of an end of a flow; NONE: no end of a flow
    python: IntArray  # int64, Python id; NONE: none
    python_parent: IntArray  # int64
    synthetic: IntArray  # int8, 1: a synthetic event (see `Trace.synthetic`); 0: any other
    partner: IntArray  # int64: of a begin (B) the row of its end (E) and the other way round; -1: none
    process_labels: Mapping[JSONScalar, Mapping[str, str]]  # by pid: texts of process_name, process_labels
    thread_names: Mapping[ThreadKey, str]

    def __len__(self) -> int:
        return len(self.phase)

    @property
    def end_ns(self) -> IntArray:
        ends: IntArray = self.start_ns + self.length_ns
        return ends

    def is_category(self, wanted: Iterable[str]) -> BoolArray:
        """Mask of the events of some categories."""
        categories = frozenset(wanted)
        return self.by_category([category in categories for category in self.categories])

    def by_category(self, values: list[bool]) -> BoolArray:
        """Values of categories as values of events."""
        return _spread(values, self.category)

    def by_name(self, values: list[bool]) -> BoolArray:
        """Values of names as values of events."""
        return _spread(values, self.name)

    def by_thread(self, values: list[bool]) -> BoolArray:
        """Values of threads as values of events."""
        return _spread(values, self.thread)


def _spread(values: list[bool], index: IntArray) -> BoolArray:
    by_entry: BoolArray = np.array(values or [False], bool)
    return by_entry[index]


def read_columns(
    path: str | os.PathLike[str],
    *,
    strict: bool = False,
    as_recorded: bool = False,
    progress: Progress | None = None,
) -> EventColumns:
    """Read the columns of all events of a file, or of those that are not synthetic."""
    head = Head()
    names: dict[str, int] = {}
    categories: dict[str, int] = {}
    threads: dict[ThreadKey, int] = {}
    flows: dict[ThreadKey, int] = {}  # (category, id)
    process_labels: dict[JSONScalar, dict[str, str]] = {}
    thread_names: dict[ThreadKey, str] = {}
    parts: list[tuple[IntArray, ...]] = []
    for events in _small(batches(path, head, strict=strict, as_recorded=as_recorded, progress=progress)):
        phases = [e.get("ph") for e in events]
        args = [a if (a := e.get("args")).__class__ is dict else _NO_ARGS for e in events]
        parts.append(
            (
                np.array([_PHASES.get(p, 0) if p.__class__ is str else 0 for p in phases], np.uint8),
                _numbered([e.get("name") for e in events], names),
                _numbered([e.get("cat") for e in events], categories),
                _numbered_pairs([(e.get("pid"), e.get("tid")) for e in events], threads),
                nanoseconds([e.get("ts") for e in events]),
                np.maximum(nanoseconds([e.get("dur", 0) for e in events], 0), 0),
                _integers([a.get("correlation") for a in args]),
                _integers([a["External id"] if "External id" in a else a.get("external id") for a in args]),
                np.array(
                    [
                        flows.setdefault(_hashable(e.get("cat"), e.get("id")), len(flows))
                        if p in _FLOW
                        else NONE
                        for e, p in zip(events, phases)
                    ],
                    np.int64,
                ),
                _integers([a.get("Python id") for a in args]),
                _integers([a.get("Python parent id") for a in args]),
                np.array([SYNTHETIC in a and _is_synthetic(e) for a, e in zip(args, events)], np.int8),
            )
        )
        for event, p in zip(events, phases):
            if p == "M":
                _read_label(event, process_labels, thread_names)
    empty: IntArray = np.empty(0, np.int64)
    joined = [np.concatenate(column) for column in zip(*parts)] if parts else [empty] * 12
    phase, name, category, thread, start, length, correlation, external, flow, python, parent, synthetic = (
        joined
    )
    partner, length = _paired(phase, thread, start, length)
    return EventColumns(
        head,
        tuple(names),
        tuple(categories),
        tuple(threads),
        phase,
        name,
        category,
        thread,
        start,
        length,
        correlation,
        external,
        flow,
        python,
        parent,
        synthetic,
        partner,
        process_labels,
        thread_names,
    )


def _small(batches_: Iterable[list[RawEvent]]) -> Iterator[list[RawEvent]]:
    """Batches that stay in the processor's cache while field after field is read: a fifth of the time less."""
    for events in batches_:
        for first in range(0, len(events), 512):
            yield events[first : first + 512]


_NO_ARGS: JSONObject = {}
_FLOW = ("s", "t", "f")
_PHASES = {chr(code): code for code in range(1, 128)}


def _numbered(values: Sequence[object], table: dict[str, int]) -> IntArray:
    """Numbers of texts; new ones get the next number."""
    number = table.setdefault
    return np.array([number(v if v.__class__ is str else _text(v), len(table)) for v in values], np.int32)


def _numbered_pairs(values: list[ThreadKey], table: dict[ThreadKey, int]) -> IntArray:
    number = table.setdefault
    try:
        return np.array([number(v, len(table)) for v in values], np.int32)
    except TypeError:  # a list or an object where a number belongs
        return np.array([number(_hashable(*v), len(table)) for v in values], np.int32)


def _text(value: object) -> str:
    return value if value.__class__ is str else "" if value is None else str(value)


def _hashable(first: JSONScalar, second: JSONScalar) -> ThreadKey:
    """The pair; as texts if one of the two is a list or an object."""
    try:
        hash((first, second))
    except TypeError:
        return str(first), str(second)
    return first, second


def _read_label(
    event: RawEvent, process_labels: dict[JSONScalar, dict[str, str]], thread_names: dict[ThreadKey, str]
) -> None:
    name, args, pid = event.get("name"), event.get("args"), event.get("pid")
    if not isinstance(args, dict):
        return
    if name == "process_name" or name == "process_labels":
        pid = _hashable(pid, None)[0]
        process_labels.setdefault(pid, {})[name] = _text(args.get("name", args.get("labels")))
    elif name == "thread_name":
        thread_names[_hashable(pid, event.get("tid"))] = _text(args.get("name"))


def nanoseconds(values: Sequence[object], missing: int = NONE) -> IntArray:
    """Times of a file (microseconds with three decimals) as whole nanoseconds."""
    try:
        times = np.array(values, np.float64)  # None becomes NaN
        if times.ndim != 1:  # all of them are lists
            raise TypeError
    except (TypeError, ValueError, OverflowError):
        times = np.array([_float(value) for value in values], np.float64)
    known = np.isfinite(times) & (np.abs(times) < _FURTHEST)
    times = np.where(known, times, 0.0)
    whole = np.floor(times)
    rounded = whole.astype(np.int64) * 1000 + np.rint((times - whole) * 1000).astype(np.int64)
    return np.where(known, rounded, missing)


def _float(value: object) -> float:
    try:
        return float(value) if isinstance(value, (int, float, str)) else float("nan")
    except (ValueError, OverflowError):
        return float("nan")


def _integers(values: Sequence[object]) -> IntArray:
    try:
        return np.array(
            [v if v.__class__ is int else NONE if v is None else _digits(v) for v in values], np.int64
        )
    except OverflowError:
        return np.array([_digits(v) for v in values], np.int64)


_LARGE = 1 << 62


def _digits(value: object) -> int:
    """A number that a file has as text or as a float."""
    if not isinstance(value, (int, float, str)):
        return NONE
    try:
        number = int(value)
    except (ValueError, OverflowError):
        return NONE
    return number if -_LARGE < number < _LARGE else number % _LARGE


def _paired(
    phase: IntArray, thread: IntArray, start: IntArray, length: IntArray
) -> tuple[IntArray, IntArray]:
    """Partners of begins and ends, and lengths with those of begins filled in."""
    partner = np.full(len(phase), -1, np.int64)
    rows = np.flatnonzero(((phase == ord("B")) | (phase == ord("E"))) & (start != NONE))
    if not len(rows):
        return partner, length
    length = length.copy()
    open_: dict[int, list[int]] = {}  # by thread
    order = rows[np.argsort(start[rows], kind="stable")]
    for row, thread_id in zip(order.tolist(), thread[order].tolist()):
        waiting = open_.setdefault(thread_id, [])
        if phase[row] == ord("B"):
            waiting.append(row)
        elif waiting:
            begin = waiting.pop()
            partner[row], partner[begin] = begin, row
            length[begin] = max(0, int(start[row]) - int(start[begin]))
    return partner, length


# ---------------------------------------------------------------------------------------------------- writing


class Writer:
    """Writes a trace: the head, events in batches, and the end."""

    def __init__(self, out: IO[bytes], top: JSONObject, last: tuple[str, ...] = ("traceName",)) -> None:
        """`last`: keys that are written after the events."""
        self._out = out
        self._first = True
        self._last = {key: top[key] for key in last if key in top}
        head = {key: value for key, value in top.items() if key not in (*last, "traceEvents")}
        lines = [f"  {spaced(key)}: {spaced(value)},\n" for key, value in head.items()]
        out.write(("{\n" + "".join(lines) + '  "traceEvents": [\n').encode())

    def write(self, events: list[RawEvent]) -> None:
        """Add events."""
        if not events:
            return
        try:
            text = b",\n".join(map(orjson.dumps, events))
        except (TypeError, ValueError):  # a lone surrogate: the standard encoder escapes it
            text = b",\n".join([json.dumps(event).encode() for event in events])
        if not self._first:
            self._out.write(b",\n")
        self._out.write(safe_end_bytes(text))
        self._first = False

    def close(self, more: JSONObject | None = None) -> None:
        """Write the end, with keys that are known only now."""
        keys = {**(more or {}), **self._last}
        last = "".join(f",\n  {spaced(key)}: {spaced(value)}" for key, value in keys.items())
        self._out.write(f"\n  ]{last}\n}}\n".encode())


class MetadataFilter:
    """Leaves environments, command lines and secrets out of heads and of metadata events (`ph` M), and notes which keys went."""

    def __init__(self, keep: bool) -> None:
        """`keep`: leave everything as it is."""
        self._keep = keep
        self._left_out: dict[str, None] = {}

    @property
    def left_out(self) -> tuple[str, ...]:
        """The keys that were left out."""
        return tuple(self._left_out)

    def top(self, top: JSONObject) -> JSONObject:
        """The keys beside the events."""
        if self._keep:
            return top
        kept, left_out = without_environment({k: v for k, v in top.items() if k != "traceEvents"})
        self._left_out.update(dict.fromkeys(left_out))
        return kept

    def events(self, events: list[RawEvent]) -> list[RawEvent]:
        """Events, with the arguments of metadata events changed in place."""
        if self._keep:
            return events
        for event in events:
            if event.get("ph") != "M":
                continue
            args = event.get("args")
            name = event.get("name")  # of a damaged file: anything
            if args.__class__ is dict and not (isinstance(name, str) and name in _NAMES_AND_ORDER):
                name = str(event.get("name"))
                kept, left_out = without_environment({name: args})
                inner = kept.get(name)
                event["args"] = inner if isinstance(inner, dict) else {}
                self._left_out.update(dict.fromkeys(left_out))
        return events


# metadata events that viewers need, of which the arguments are names and numbers
_NAMES_AND_ORDER = frozenset(
    ("process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index")
)


def valid_top(top: JSONObject) -> JSONObject:
    """A head with the keys that every reader expects: schemaVersion, deviceProperties, displayTimeUnit."""
    valid = {key: value for key, value in top.items() if key != "traceEvents"}
    if valid.get("schemaVersion") != 1:
        valid = {**valid, "schemaVersion": 1}
    if not isinstance(valid.get("deviceProperties"), list):
        valid["deviceProperties"] = []
    valid.setdefault("displayTimeUnit", "ms")
    return valid


def microseconds(nanoseconds: int) -> float | int:
    """A time as files hold it."""
    return nanoseconds // 1000 if nanoseconds % 1000 == 0 else nanoseconds / 1000
