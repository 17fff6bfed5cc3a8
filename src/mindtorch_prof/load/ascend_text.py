"""Ascend captures as text: trace_view.json and the CSV and JSON files beside it in, a Trace out.

trace_view.json is a list of Chrome trace events whose `ts` are texts, as microseconds since the epoch with three decimals do not fit
a double. What an event is depends on its process: Python (the framework, whose events have categories), CANN (calls of the host's
libraries), Ascend Hardware (tasks by stream), HCCL or Communication (collectives, and their tasks by plane), Overlap Analysis
(derived from the others, and not read), and processes that only have counters.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
import orjson

from ..arrays import Array, BoolArray, FloatArray, IntArray
from ..json_types import JSONScalar
from ..trace import ANNOTATION, DEVICE_KERNEL, DEVICE_PART, DEVICE_SYNC, RUNTIME, Health, Trace
from .ascend import (
    FIRST_UNKNOWN_STREAM,
    LARGEST_NS,
    NONE,
    Capture,
    Tables,
    collective_arguments,
    finished,
    inputs_json,
    op_kinds,
    pair_keys,
    stack_text,
    task_kinds,
)
from .ascend_files import Files, nanoseconds
from .collect import Collector
from .event_values import Table
from .json_slices import EventArgs, RawEvent, Slices
from .process_names import plain_key

Rows: TypeAlias = "list[RawEvent]"
Place: TypeAlias = "tuple[JSONScalar, JSONScalar]"  # (pid, tid)

PROCESSES = frozenset(
    {"Ascend Hardware", "CANN", "HCCL", "Overlap Analysis"}
)  # names that only such files have
_HARDWARE, _CANN, _FRAMEWORK = (
    re.compile("Ascend Hardware"),
    re.compile("CANN"),
    re.compile("Python|MindSpore"),
)
_COLLECTIVES = re.compile("HCCL|Communication")
_DERIVED = re.compile("Overlap Analysis|Step Trace")
_GROUP = re.compile(r"Group|.*Communication$")
_FAULTS = (KeyError, TypeError, ValueError, OverflowError, AttributeError, IndexError)
_FLOWS = frozenset({"async_npu", "HostToDevice"})
_QUEUE = frozenset({"enqueue", "dequeue", "async_task_queue"})
_SAME_START_NS = 10  # the CSV files round times in their own way


def is_text_capture(head: bytes) -> bool:
    """Whether the first bytes of a file are those of a list of events with times as texts."""
    return head.lstrip()[:1] == b"[" and re.search(rb'"ts"\s*:\s*"\d', head) is not None


def read_text(slices: Slices, path: Path | None, source: str, advance: Callable[[], object]) -> Trace | None:
    """Read a trace_view.json, and the files beside it where it has a path; None: it is a list of other events. source: the path that the
    user gave, which may be that of a folder."""
    events = _Events()
    for batch in slices:
        events.add(batch)
        del batch  # frees the parsed objects before the next slice is parsed
        advance()
    if not PROCESSES & {*events.processes.values()}:
        return None
    return _trace(events, slices, path, source)


# ---------------------------------------------------------------------------------------------------- events


@dataclass
class _Columns:
    """Columns that grow by lists."""

    parts: defaultdict[str, list[Array]] = field(default_factory=lambda: defaultdict(list))

    def add(self, **columns: Array | Sequence[int]) -> None:
        # all of them first: a value that is no number of 64 bits must leave none behind
        arrays = {name: np.asarray(values, np.int64).reshape(-1) for name, values in columns.items()}
        if len({len(array) for array in arrays.values()}) != 1:
            raise ValueError("a list where a number is expected")
        for name, array in arrays.items():
            self.parts[name].append(array)

    def whole(self, *names: str) -> dict[str, Array]:
        empty = np.empty(0, np.int64)
        return {name: np.concatenate(self.parts[name]) if self.parts[name] else empty for name in names}


class _Events:
    """Collects the events of a file. Which process an event is of is known only at the end."""

    def __init__(self) -> None:
        self.collector = Collector()
        self.places: Table[Place] = Table()
        self.task_types: Table[str] = Table()
        self.arguments: list[bytes] = []  # JSON of the arguments of rows of `other`
        self.ops, self.calls, self.frames, self.other = (_Columns() for _ in range(4))
        self.flows = _Columns()
        self.flow_ids: Table[tuple[str, JSONScalar]] = Table()
        self.counters: list[tuple[IntArray, list[int], FloatArray]] = []  # times, series, values
        self.series: Table[tuple[JSONScalar, ...]] = Table()  # counter, argument, numbers of what it counts
        self._inputs: dict[tuple[object, object], int] = {}  # by texts of dims and types
        self.processes: dict[JSONScalar, str] = {}
        self.labels: dict[JSONScalar, str] = {}
        self.threads: dict[Place, str] = {}
        self.dropped: Counter[str] = Counter()

    def add(self, events: Rows) -> None:
        """Add the events of a slice."""
        groups: defaultdict[tuple[object, object], Rows] = defaultdict(list)
        for event in events:
            try:
                groups[event.get("ph"), event.get("cat")].append(event)
            except _FAULTS:
                self.dropped["not understood"] += 1
        for (phase, cat), group in groups.items():
            adder = self._adder(phase, cat)
            if adder is not None:
                self._add_or_drop(adder, group)

    def _adder(self, phase: object, cat: object) -> Callable[[Rows], None] | None:
        if phase == "X":
            if cat in ("cpu_op", "user_annotation"):
                return self._add_ops
            if cat == "python_function":
                return self._add_frames
            return self._add_calls if cat in _QUEUE else self._add_other
        if phase in ("s", "f"):
            return self._add_flows if cat in _FLOWS else None
        if phase == "M":
            return self._add_metadata
        return self._add_counters if phase == "C" else None

    def _add_or_drop(self, adder: Callable[[Rows], None], group: Rows) -> None:
        """Add a group; if an event in it has a fault, add those that have none."""
        try:
            adder(group)
        except _FAULTS:
            for event in group:
                try:
                    adder([event])
                except _FAULTS:
                    self.dropped["not understood"] += 1

    def _common(self, group: Rows) -> dict[str, Array]:
        return {
            "start": nanoseconds([e["ts"] for e in group]),
            "length": _lengths([e["dur"] for e in group]),
            "name": np.array(self.collector.names.numbers([e["name"] for e in group]), np.int64),
            "place": np.array(self.places.numbers([(e["pid"], e["tid"]) for e in group]), np.int64),
        }

    def _add_ops(self, group: Rows) -> None:
        args = [_arguments(e) for e in group]
        stacks = self.collector.stacks
        columns: dict[str, Array | list[int]] = {
            **self._common(group),
            "sequence": [int(a.get("Sequence number", -1)) for a in args],
            "forward": [int(a.get("Fwd thread id", 0)) for a in args],
            "inputs": [
                self._inputs_number(a["Input Dims"], a.get("Input type", "")) if "Input Dims" in a else -1
                for a in args
            ],
            "stack": [stacks[stack_text(t)] if (t := a.get("Call stack")) else -1 for a in args],
        }
        self.ops.add(**columns)

    def _inputs_number(self, dims: object, types: object) -> int:
        if not isinstance(dims, str):  # lists, as Kineto has them
            return self.collector.inputs[orjson.dumps([None, types, None, dims])]
        number = self._inputs.get((dims, types))
        if number is None:
            number = self.collector.inputs[inputs_json(str(dims), str(types))]
            self._inputs[dims, types] = number
        return number

    def _add_calls(self, group: Rows) -> None:
        queue = [int(_arguments(e).get("correlation_id", -1)) for e in group]
        self.calls.add(**self._common(group), queue=queue)

    def _add_frames(self, group: Rows) -> None:
        args = [_arguments(e) for e in group]
        own = [int(a.get("Python id", -1)) for a in args]
        parent = [-1 if (p := a.get("Python parent id")) is None else int(p) for a in args]
        module = [int(a.get("Python module id", -1)) for a in args]
        self.frames.add(**self._common(group), own=own, parent=parent, module=module)

    def _add_other(self, group: Rows) -> None:
        args = [_arguments(e) for e in group]
        first = len(self.arguments)
        columns: dict[str, Array | list[int]] = {
            **self._common(group),
            "connection": [_whole(a.get("connection_id")) for a in args],
            "stream": [_whole(a.get("stream id", a.get("Physic Stream Id"))) for a in args],
            "type": self.task_types.numbers([str(a.get("Task Type", a.get("task type", ""))) for a in args]),
            "argument": list(range(first, first + len(group))),
        }
        texts = list(map(orjson.dumps, args))
        self.other.add(**columns)
        self.arguments += texts

    def _add_flows(self, group: Rows) -> None:
        self.flows.add(
            start=nanoseconds([e["ts"] for e in group]),
            flow=self.flow_ids.numbers([(str(e["cat"]), e["id"]) for e in group]),
            begins=[int(e["ph"] == "s") for e in group],
            place=self.places.numbers([(e["pid"], e["tid"]) for e in group]),
        )

    def _add_metadata(self, group: Rows) -> None:
        for event in group:
            args = _arguments(event)
            pid = event.get("pid")
            if event["name"] == "process_name":
                self.processes[pid] = str(args["name"]).strip()
            elif event["name"] == "process_labels":
                self.labels[pid] = str(args["labels"]).strip()
            elif event["name"] == "thread_name":
                self.threads[pid, event.get("tid")] = str(args["name"]).strip()

    def _add_counters(self, group: Rows) -> None:
        layouts: defaultdict[tuple[str, ...], Rows] = defaultdict(list)
        for event in group:
            layouts[tuple(_arguments(event))].append(event)
        for keys, rows in layouts.items():
            times = nanoseconds([e["ts"] for e in rows])
            ids = [key for key in keys if key.endswith("_id")]
            for key in keys:
                values = [e["args"][key] for e in rows]
                if key in ids or {*map(type, values)} - {int, float}:
                    continue
                which = [(e["name"], key, *[e["args"][i] for i in ids]) for e in rows]
                self.counters.append((times, self.series.numbers(which), np.array(values, np.float64)))


def _lengths(values: Sequence[float]) -> IntArray:
    """Durations in microseconds as whole nanoseconds. Raises TypeError or ValueError where one is none."""
    lengths: FloatArray = np.fromiter(map(float, values), np.float64) * 1000
    if not (np.abs(lengths) < LARGEST_NS).all():
        raise ValueError("a duration beyond all clocks")
    return np.maximum(np.rint(lengths), 0).astype(np.int64)


def _arguments(event: RawEvent) -> EventArgs:
    args = event.get("args")
    return args if isinstance(args, dict) else {}


def _whole(value: object) -> int:
    """A number of a file that counts from 0; -1: none."""
    try:
        number = int(value)  # type: ignore[call-overload]
    except _FAULTS:
        return -1
    return number if 0 <= number < 1 << 62 else -1


def _unit(series: str) -> str:
    """The unit of a counter's series: `Read(MB/s)` and `MHz` have one, `value` has none."""
    match = re.search(r"\((.+)\)$", series)
    if match:
        return f" ({match[1]})"
    return f" ({series})" if series in ("MHz", "KB", "MB", "GB", "%", "W") else ""


# ---------------------------------------------------------------------------------------------------- processes


class _Processes:
    """What the processes of a file are, by pid."""

    def __init__(self, events: _Events) -> None:
        self._names, self._labels = events.processes, events.labels
        framework = [pid for pid, name in self._names.items() if _FRAMEWORK.fullmatch(name)]
        known = {pid for pid, _ in events.places}
        self.host = next((pid for pid in framework if pid in known), framework[0] if framework else None)
        if self.host is None:
            numbers = [pid >> 10 for pid in self._names if isinstance(pid, int) and pid >> 10]
            self.host = numbers[0] if numbers else 0

    def kind(self, pid: JSONScalar) -> str:
        name = self._names.get(pid, "")
        if _DERIVED.match(name):
            return "derived"
        if _HARDWARE.match(name):
            return "hardware"
        if _COLLECTIVES.match(name):
            return "collectives"
        if _CANN.match(name):
            return "calls"
        return "unknown" if "NPU" in self._labels.get(pid, "") else "host"

    def device(self, pid: JSONScalar, otherwise: int) -> int:
        """The number of the device that a process stands for: named, or in the lowest five bits of a pid that was made from the host's."""
        named = re.search(
            r"(?:device|NPU)\D{0,3}(\d+)", f"{self._names.get(pid, '')} {self._labels.get(pid, '')}"
        )
        if named:
            return int(named[1])
        if isinstance(pid, int) and isinstance(self.host, int) and pid >> 10 == self.host:
            return pid & 31
        return otherwise


# ---------------------------------------------------------------------------------------------------- the Trace


def _trace(events: _Events, slices: Slices, path: Path | None, source: str) -> Trace:
    capture = Capture.around(path) if path else Capture(None, {}, {}, "")
    files = Files(capture.output)
    tables = Tables(events.collector)
    processes = _Processes(events)
    tables.allocations = files.allocations()
    places = _Places(events, processes, files.device)
    ops = events.ops.whole("start", "length", "name", "place", "sequence", "forward", "inputs", "stack")
    queue = events.calls.whole("start", "length", "name", "place", "queue")
    other = events.other.whole("start", "length", "name", "place", "connection", "stream", "type", "argument")
    kind = (
        np.array(places.kinds or [""], object)[other["place"]] if len(other["place"]) else np.empty(0, object)
    )
    names = [str(name) for name in events.collector.names]
    calls = _chosen(other, (kind == "calls") | (kind == "host"))
    tables.host = _host(ops, queue, calls, places, names)
    frames = events.frames.whole("start", "length", "name", "place", "own", "parent", "module")
    frames["thread"] = places.threads[frames.pop("place")].astype(np.int32)
    frames["name"] = frames["name"].astype(np.int32)
    tables.frames = frames
    tables.device = _device(events, tables, other, kind, places, files, names)
    tables.device["op"] = _flow_targets(events, ops, tables.device, "async_npu")
    _link_calls(events, calls, tables.device)
    del tables.device["place"]
    tables.counters = _counters(events)
    unknown = kind == "unknown"
    if unknown.any():
        shown = sorted({places.names[p] for p in np.unique(other["place"][unknown]).tolist()})
        tables.lacks.append(
            f"rows of the processes {', '.join(shown)} have no place in a trace and are left out"
        )
    _add_thread_names(events, processes)
    notes = [*slices.notes, *(f"{n:,} dropped: {reason}" for reason, n in events.dropped.items())]
    health = Health(slices.lost + sum(events.dropped.values()), 0, slices.repaired, tuple(notes))
    return finished(tables, capture, {}, source, health)


class _Places:
    """By place (process and thread of the file): what it is, and its thread, device and name."""

    def __init__(self, events: _Events, processes: _Processes, device: int) -> None:
        keys = list(events.places)
        self.kinds = [processes.kind(pid) for pid, _ in keys]
        self.names = [events.processes.get(pid, str(pid)) for pid, _ in keys]
        self.labels = [events.threads.get(key, "") for key in keys]
        # calls of CANN are made on threads of the framework's process, which the file shows a second time
        threads = events.collector.threads
        numbers = [
            threads[processes.host, tid] if kind in ("calls", "host") else 0
            for (_, tid), kind in zip(keys, self.kinds)
        ]
        self.threads = np.array(numbers or [0], np.int64)
        self.devices = np.array([processes.device(pid, device) for pid, _ in keys] or [0], np.int64)
        self.tids = np.array([_whole(tid) for _, tid in keys] or [0], np.int64)


def _chosen(table: dict[str, Array], which: BoolArray | IntArray) -> dict[str, Array]:
    return {name: column[which] for name, column in table.items()}


def _host(
    ops: dict[str, Array],
    queue: dict[str, Array],
    calls: dict[str, Array],
    places: _Places,
    names: list[str],
) -> dict[str, Array]:
    """The host's table: ops first, in the order of `ops`."""
    counts = [len(part["start"]) for part in (ops, queue, calls)]
    is_call = np.array([kind == "calls" for kind in places.kinds] or [False])[calls["place"]]

    def column(key: str, none: int, *, of: str = "") -> Array:
        return np.concatenate(
            [
                part[of or key] if (of or key) in part else np.full(count, none, np.int64)
                for part, count in zip((ops, queue, calls), counts)
            ]
        )

    kind = np.concatenate(
        [
            op_kinds(names)[ops["name"]] if counts[0] else np.empty(0, np.int8),
            np.full(counts[1], RUNTIME, np.int8),
            np.where(is_call, RUNTIME, ANNOTATION).astype(np.int8),
        ]
    )
    return {
        "name": column("name", 0).astype(np.int32),
        "thread": places.threads[column("place", 0)].astype(np.int32),
        "start": column("start", 0),
        "length": column("length", 0),
        "kind": kind,
        "sequence": column("sequence", -1),
        "forward": column("forward", 0),
        "inputs": column("inputs", -1).astype(np.int32),
        "stack": column("stack", -1).astype(np.int32),
        "connection": column("connection", -1),
        "queue": column("queue", -1),
    }


def _device(
    events: _Events,
    tables: Tables,
    other: dict[str, Array],
    kind: Array,
    places: _Places,
    files: Files,
    names: list[str],
) -> dict[str, Array]:
    """The table of what the device did: tasks of the hardware, collectives, and the collectives' tasks."""
    is_group_thread = np.array([_GROUP.match(label) is not None for label in places.labels] or [False])
    on_group = is_group_thread[other["place"]] if len(kind) else np.empty(0, bool)
    hardware = _chosen(other, kind == "hardware")
    groups = _chosen(other, (kind == "collectives") & on_group)
    parts = _chosen(other, (kind == "collectives") & ~on_group)
    if not len(groups["start"]):
        groups = _described_collectives(events, hardware, files, names)
    hardware["stream"] = places.tids[hardware["place"]]
    types = list(events.task_types)
    labels = [(names[n], types[t]) for n, t in zip(hardware["name"].tolist(), hardware["type"].tolist())]
    hardware_kind = task_kinds(labels)[: len(labels)]
    hardware_kind[
        np.isin(hardware["connection"], groups["connection"][groups["connection"] >= 0])
        & (hardware_kind != DEVICE_SYNC)
    ] = DEVICE_PART
    hardware_kind[_is_frame(hardware, hardware_kind, groups, files, names)] = DEVICE_PART
    if len(parts["start"]):  # the same tasks, with more to say of each
        keep = ~_repeated(hardware, parts)
        hardware, hardware_kind = _chosen(hardware, keep), hardware_kind[keep]
    groups["stream"] = _streams_of(groups, parts, hardware, hardware_kind)
    parts["connection"] = _connections_of(groups, parts, places)
    tables.collector.categories["collective"] = len(groups["start"])
    tables.collector.categories["collective times"] = len(files.collectives)
    tables.collector.categories["kernel shapes"] = int("Input Shapes" in files.kernels.keys)
    part_labels = [(names[n], "") for n in parts["name"].tolist()]
    part_kind = np.where(
        np.isin(task_kinds(part_labels)[: len(part_labels)], (DEVICE_SYNC,)), DEVICE_SYNC, DEVICE_PART
    )
    extra = np.concatenate(
        [
            _kernel_extra(events, hardware, hardware_kind, files, names),
            _group_extra(events, groups, parts, places, files, names),
            _plain_extra(events, parts),
        ]
    )
    whole = {key: np.concatenate([t[key] for t in (hardware, groups, parts)]) for key in hardware}
    return {
        "name": whole["name"].astype(np.int32),
        "start": whole["start"],
        "length": whole["length"],
        "kind": np.concatenate(
            [hardware_kind, np.full(len(groups["start"]), DEVICE_KERNEL), part_kind]
        ).astype(np.int8),
        "device": places.devices[whole["place"]] if len(whole["place"]) else np.empty(0, np.int64),
        "stream": whole["stream"],
        "connection": whole["connection"],
        "extra": extra.astype(np.int32),
        "place": whole["place"],
    }


def _described_collectives(
    events: _Events, hardware: dict[str, Array], files: Files, names: list[str]
) -> dict[str, Array]:
    """The collectives of kernel_details.csv, for files whose events have none: as rows of the hardware's process."""
    rows, length = files.kernels.collectives()
    if not len(rows) or not len(hardware["place"]):
        return _chosen(hardware, np.zeros(len(hardware["place"]), bool))
    numbers = [events.collector.names[files.kernels.names[row]] for row in rows.tolist()]
    names += [str(name) for name in list(events.collector.names)[len(names) :]]
    first = len(events.arguments)
    events.arguments += [b"{}"] * len(rows)
    none = np.full(len(rows), -1, np.int64)
    return {
        "start": files.kernels.start[rows],
        "length": length,
        "name": np.array(numbers, np.int64),
        "place": np.full(len(rows), hardware["place"][0]),
        "connection": none,
        "stream": none,
        "type": np.full(len(rows), events.task_types[""], np.int64),
        "argument": first + np.arange(len(rows)),
    }


def _is_frame(
    hardware: dict[str, Array], kind: IntArray, groups: dict[str, Array], files: Files, names: list[str]
) -> BoolArray:
    """Mask of tasks that look like kernels and are the frame around a collective's tasks: they run inside a collective, are not in
    kernel_details.csv, and neither is any task of their stream."""
    frame = np.zeros(len(kind), bool)
    rows = np.flatnonzero(kind == DEVICE_KERNEL)
    if not files.kernels.rows or not len(rows) or not len(groups["start"]):
        return frame
    texts = [names[n] for n in hardware["name"][rows].tolist()]
    described = nearest_rows(files.kernels.names, files.kernels.start, texts, hardware["start"][rows]) >= 0
    elsewhere = ~np.isin(hardware["stream"][rows], hardware["stream"][rows[described]])
    order = np.argsort(groups["start"], kind="stable")
    starts = groups["start"][order]
    ends = np.maximum.accumulate((groups["start"] + groups["length"])[order])
    place = np.searchsorted(starts, hardware["start"][rows] + _SAME_START_NS, side="right") - 1
    inside = (place >= 0) & (hardware["start"][rows] <= ends[np.maximum(place, 0)])
    frame[rows] = elsewhere & inside
    return frame


def _repeated(hardware: dict[str, Array], parts: dict[str, Array]) -> BoolArray:
    """Which tasks of the hardware are also tasks of a collective: same stream and start."""
    order = np.argsort(parts["start"], kind="stable")
    starts, streams = parts["start"][order], parts["stream"][order]
    repeated = np.zeros(len(hardware["start"]), bool)
    # several planes may start a task at once: compare with all tasks of the stream
    for stream in np.unique(streams).tolist():
        own = np.unique(starts[streams == stream])
        place = np.minimum(np.searchsorted(own, hardware["start"] - _SAME_START_NS), len(own) - 1)
        repeated |= (hardware["stream"] == stream) & (
            np.abs(own[place] - hardware["start"]) <= _SAME_START_NS
        )
    return repeated


def _streams_of(
    groups: dict[str, Array], parts: dict[str, Array], hardware: dict[str, Array], kinds: IntArray
) -> IntArray:
    """The stream of each collective: that of its tasks; negative: not known, one number for each thread of collectives."""
    is_part = kinds == DEVICE_PART
    starts = np.concatenate([parts["start"], hardware["start"][is_part]])
    streams = np.concatenate([parts["stream"], hardware["stream"][is_part]])
    order = np.argsort(starts, kind="stable")
    starts, streams = starts[order], streams[order]
    _, thread = np.unique(groups["place"], return_inverse=True)
    unknown = FIRST_UNKNOWN_STREAM - thread.reshape(-1)
    if not len(starts):
        return unknown
    first = np.searchsorted(starts, groups["start"] - _SAME_START_NS)
    place = np.minimum(first, len(starts) - 1)
    inside = (first < len(starts)) & (starts[place] <= groups["start"] + groups["length"])
    return np.where(inside & (streams[place] >= 0), streams[place], unknown)


def _connections_of(groups: dict[str, Array], parts: dict[str, Array], places: _Places) -> IntArray:
    """The connection of each task of a collective: that of the last collective that began before it in its group."""
    connection = np.full(len(parts["start"]), -1, np.int64)
    owner = _groups_of(groups, parts, places)
    for thread in np.unique(owner[owner >= 0]).tolist():
        own = np.flatnonzero(groups["place"] == thread)
        own = own[np.argsort(groups["start"][own], kind="stable")]
        mine = np.flatnonzero(owner == thread)
        place = np.searchsorted(groups["start"][own], parts["start"][mine] + _SAME_START_NS, side="right") - 1
        row = own[np.maximum(place, 0)]
        inside = (place >= 0) & (parts["start"][mine] <= groups["start"][row] + groups["length"][row])
        connection[mine] = np.where(inside, groups["connection"][row], -1)
    return connection


def _groups_of(groups: dict[str, Array], parts: dict[str, Array], places: _Places) -> IntArray:
    """The place of the group that each task belongs to: a group's planes follow it in the order of threads; -1: none."""
    threads = np.unique(groups["place"])
    if not len(threads):
        return np.full(len(parts["start"]), -1, np.int64)
    threads = threads[np.argsort(places.tids[threads], kind="stable")]
    before = np.searchsorted(places.tids[threads], places.tids[parts["place"]], side="right") - 1
    return np.where(before >= 0, threads[np.maximum(before, 0)], -1)


def _flow_targets(
    events: _Events, ops: dict[str, Array], device: dict[str, Array], category: str
) -> IntArray:
    """By row of the device the row of `ops` from whose start a flow of a category leads to it; -1: none."""
    flows = events.flows.whole("start", "flow", "begins", "place")
    ids = list(events.flow_ids)
    wanted = (
        np.array([cat == category for cat, _ in ids] or [False])[flows["flow"]]
        if len(flows["flow"])
        else np.empty(0, bool)
    )
    begins = _chosen(flows, wanted & (flows["begins"] == 1))
    ends = _chosen(flows, wanted & (flows["begins"] == 0))
    found = np.full(len(device["start"]), -1, np.int64)
    if not len(begins["start"]) or not len(ends["start"]) or not len(ops["start"]):
        return found
    source = _last_rows(ops["place"], ops["start"], begins["place"], begins["start"])
    order = np.argsort(begins["flow"], kind="stable")
    place = np.minimum(np.searchsorted(begins["flow"][order], ends["flow"]), len(order) - 1)
    match = order[place]
    source_of_end = np.where(begins["flow"][match] == ends["flow"], source[match], -1)
    target = _last_rows(device["place"], device["start"], ends["place"], ends["start"])
    known = (target >= 0) & (source_of_end >= 0)
    found[target[known]] = source_of_end[known]
    return found


def _last_rows(places: IntArray, starts: IntArray, at_place: IntArray, at_start: IntArray) -> IntArray:
    """For each (place, start) the last row of the table that has both; -1: none."""
    if not len(starts):
        return np.full(len(at_start), -1, np.int64)
    key, wanted = pair_keys((places, starts), (at_place, at_start))
    order = np.argsort(key, kind="stable")
    place = np.searchsorted(key[order], wanted, side="right") - 1
    row = order[np.maximum(place, 0)]
    return np.where((place >= 0) & (key[row] == wanted), row, -1)


def _link_calls(events: _Events, calls: dict[str, Array], device: dict[str, Array]) -> None:
    """Give rows of the device that name no connection that of the call from which a flow leads to them."""
    source = _flow_targets(events, calls, device, "HostToDevice")
    known = (device["connection"] < 0) & (source >= 0)
    device["connection"][known] = calls["connection"][source[known]]


def _counters(events: _Events) -> dict[str, Array]:
    """The table of counters: each series is named by its counter, the number of the unit that it counts, and its unit of measure."""
    if not events.counters:
        return {"name": np.empty(0, np.int32), "start": np.empty(0, np.int64), "value": np.empty(0)}
    start, name, value = zip(*events.counters)
    texts = [
        " ".join([str(counter), *map(str, ids)]) + _unit(str(key)) for counter, key, *ids in events.series
    ]
    numbers = np.array(events.collector.counter_names.numbers(texts), np.int32)
    return {
        "name": numbers[np.concatenate(name)],
        "start": np.concatenate(start),
        "value": np.concatenate(value),
    }


def _add_thread_names(events: _Events, processes: _Processes) -> None:
    """Names of the host's threads and process, for the settings."""
    host = processes.host
    names = events.collector.process_names
    names.processes[plain_key(host)] = events.processes.get(host, "Python")
    for (pid, tid), name in events.threads.items():
        if processes.kind(pid) in ("host", "calls"):
            names.threads[plain_key(host), tid] = name


# ---------------------------------------------------------------------------------------------------- further arguments


def _plain_extra(events: _Events, table: dict[str, Array]) -> IntArray:
    """Numbers of the arguments as the file has them."""
    table_ = events.collector.device_extras
    first = len(table_)
    for place in table["argument"].tolist():
        arguments = orjson.loads(events.arguments[place])
        table_.append((tuple(arguments), orjson.dumps(list(arguments.values()))))
    return np.arange(first, len(table_))


def _kernel_extra(
    events: _Events, hardware: dict[str, Array], kind: IntArray, files: Files, names: list[str]
) -> IntArray:
    """The arguments of tasks, with what kernel_details.csv says of those that are kernels."""
    extra = _plain_extra(events, hardware)
    details = files.kernels
    if not details.rows or not len(extra):
        return extra
    texts = np.array([names[n] for n in hardware["name"].tolist()], object)
    row_of = nearest_rows(details.names, details.start, texts.tolist(), hardware["start"])
    rows = events.collector.device_extras
    for place, row in zip(extra.tolist(), row_of.tolist()):
        if row >= 0:
            keys, text = rows[place]
            more = details.arguments(row)
            rows[place] = (*keys, *more), orjson.dumps([*orjson.loads(text), *more.values()])
    return extra


def nearest_rows(names: Sequence[str], starts: IntArray, wanted: Sequence[str], at: IntArray) -> IntArray:
    """For each wanted (name, start) the row of the same name that starts within a few nanoseconds of it; -1: none."""
    number: Table[str] = Table()
    table_names = np.array(number.numbers(names), np.int64)
    wanted_names = np.array(number.numbers(wanted), np.int64)
    if not len(table_names) or not len(wanted_names):
        return np.full(len(wanted_names), -1, np.int64)
    key, earliest = pair_keys((table_names, starts), (wanted_names, at - _SAME_START_NS))
    order = np.argsort(key, kind="stable")
    row = order[np.minimum(np.searchsorted(key[order], earliest), len(key) - 1)]
    is_same = (table_names[row] == wanted_names) & (np.abs(starts[row] - at) <= _SAME_START_NS)
    return np.where(is_same, row, -1)


def _group_extra(
    events: _Events,
    groups: dict[str, Array],
    parts: dict[str, Array],
    places: _Places,
    files: Files,
    names: list[str],
) -> IntArray:
    """The arguments of collectives, under the names that NCCL's have, with what communication.json says of them."""
    table = events.collector.device_extras
    first = len(table)
    sizes = _group_sizes(events, groups, parts, places)
    for place, thread, name in zip(
        groups["argument"].tolist(), groups["place"].tolist(), groups["name"].tolist()
    ):
        own = orjson.loads(events.arguments[place])
        group, times = files.collectives.get(names[name], ("", {}))
        arguments = collective_arguments(
            names[name], own.get("count"), own.get("data_type"), group, sizes.get(thread, 0)
        )
        rest = {key: value for key, value in own.items() if key not in ("count", "data_type")}
        arguments = {**arguments, "Group": places.labels[thread], **rest, **times}
        table.append((tuple(arguments), orjson.dumps(list(arguments.values()))))
    return np.arange(first, len(table))


def _group_sizes(
    events: _Events, groups: dict[str, Array], parts: dict[str, Array], places: _Places
) -> dict[int, int]:
    """By place of a group the number of ranks that its tasks name."""
    ranks: defaultdict[int, set[int]] = defaultdict(set)
    owner = _groups_of(groups, parts, places)
    for place, group in zip(parts["argument"].tolist(), owner.tolist()):
        arguments = orjson.loads(events.arguments[place])
        ranks[group].update((_whole(arguments.get("src rank")), _whole(arguments.get("dst rank"))))
    return {group: len(own - {-1, NONE}) for group, own in ranks.items()}
