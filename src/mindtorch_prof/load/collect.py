"""Columns: events of a Chrome trace as dicts in, slice by slice; arrays of numbers and tables of texts out.

Only the kind of an event is interpreted here. The work per event is a few list comprehensions over parsed dicts; values that
repeat (names, threads, inputs, arguments) get a number through a dict. A group that holds an event with a value of a wrong type
is cleaned event by event and added again.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from operator import itemgetter
from typing import Any, Literal, TypeAlias, overload

import numpy as np
import numpy.typing as npt
import orjson

from ..json_types import JSONObject, JSONScalar, JSONValue
from ..trace import ALLOCATES, DEVICE_KERNEL, OP, PYTHON, RUNTIME, SYNTHETIC
from .begin_end_events import BeginEndEvents
from .categories import DEVICE, HOST, MOST_KEYS, SPAN, category
from .column_builder import INT64, ColumnBuilder, Lists
from .event_values import LARGEST_US, StackTable, Table, TextTable, as_number, plain
from .json_slices import EventArgs, RawEvent
from .process_names import ProcessNames, ThreadKey
from .synthetic_marks import mark_of

_Adder: TypeAlias = "Callable[[list[RawEvent]], None]"  # adds events to columns
_Getter: TypeAlias = "Callable[[EventArgs], object]"  # takes some of the arguments

_FLOWS = frozenset("stf")
NUMBERED_FLOWS = frozenset({"ac2g", "fwdbwd"})  # they repeat what correlation ids and sequence numbers say
_INPUTS = ("Concrete Inputs", "Input type", "Input Strides", "Input Dims")
# arguments of ops that have columns of their own, or say nothing beyond them
_KNOWN = frozenset(
    {
        "External id",
        "external id",
        "Sequence number",
        "Fwd thread id",
        "Record function id",
        "Ev Idx",
        "Profiler Event Index",
        "finished",
        "Call stack",
        "Trace name",
        "Trace iteration",
        "Device",
        SYNTHETIC,
        ALLOCATES,
        *_INPUTS,
    }
)
_DEVICE_KNOWN = frozenset({"External id", "external id", "correlation", "device", "stream"})
_OP_NUMBERS = (("external", "External id"), ("sequence", "Sequence number"), ("forward", "Fwd thread id"))
_PLACE = itemgetter("pid", "tid")
MOST_DEVICE_THREADS = 32_768  # numbers of (process, thread) up to which events of devices get one
OTHER_THREADS: Any = (b"", b"")  # in no file
# columns of host events whose arguments do not have them
_NO_HOST: dict[str, int] = {
    "external": 0,
    "sequence": -1,
    "forward": 0,
    "inputs": -1,
    "stack": -1,
    "extra": -1,
    "flops": -1,
    "correlation": -1,
    "unfinished": False,
    "synthetic": 0,
}
_NO_RUNTIME = {
    name: value for name, value in _NO_HOST.items() if name not in ("external", "correlation", "extra")
}
_FLOPS = ("flops", "FLOPs", "Flops")
LAUNCHED_KERNEL = "kernel"  # an argument of launch calls: all that says what a graph's capture launched
MERGED_FROM = 10_000_000  # merged files number the processes of ranks from here on, above every pid of Linux
_FAULTS = (KeyError, TypeError, ValueError, OverflowError, AttributeError, IndexError)
_OTHER_IDS = 2**62  # numbers of flows that have no whole number of their own begin here


class Parsed(Sequence[JSONObject]):
    """A table of JSON texts, each parsed when it is accessed."""

    def __init__(self, texts: list[bytes]) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, index: int) -> JSONObject: ...
    @overload
    def __getitem__(self, index: slice) -> Parsed: ...
    def __getitem__(self, index: int | slice) -> JSONObject | Parsed:
        if isinstance(index, slice):
            return Parsed(self._texts[index])
        arguments: JSONObject = orjson.loads(self._texts[index])
        return arguments


_KeysAndValues: TypeAlias = "tuple[tuple[str, ...], bytes]"  # keys, and JSON of the list of their values


class Arguments(Sequence[JSONObject]):
    """A table of (keys, JSON of their values), each made a dict when it is accessed."""

    def __init__(self, rows: Iterable[_KeysAndValues]) -> None:
        self._rows = list(rows)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> JSONObject: ...
    @overload
    def __getitem__(self, index: slice) -> Arguments: ...
    def __getitem__(self, index: int | slice) -> JSONObject | Arguments:
        if isinstance(index, slice):
            return Arguments(self._rows[index])
        keys, text = self._rows[index]
        return dict(zip(keys, orjson.loads(text)))


class _ArgumentTable(dict[bytes, int]):
    """JSON of values of the same keys to numbers: places in a list that all such tables share."""

    def __init__(self, keys: tuple[str, ...], rows: list[_KeysAndValues]) -> None:
        super().__init__()
        self._keys, self._rows = keys, rows

    def __missing__(self, text: bytes) -> int:
        text = bytes(memoryview(text))  # see TextTable
        number = self[text] = len(self._rows)
        self._rows.append((self._keys, text))
        return number


class Collector:
    """Collects the events of one file."""

    def __init__(self) -> None:
        self.names: Table[JSONScalar] = Table()
        self.threads: Table[ThreadKey] = Table()
        self.inputs = TextTable()  # JSON of an event's inputs
        self.stacks = StackTable()
        self.extras = TextTable()  # JSON of further arguments
        self.device_extras: list[_KeysAndValues] = []
        self.counter_names: Table[str] = Table()
        times: dict[str, npt.DTypeLike] = {
            "name": np.int32,
            "thread": np.int32,
            "start": np.int64,
            "length": np.int64,
        }
        self.host = ColumnBuilder(
            **times,
            kind=np.int8,
            external=np.int64,
            sequence=np.int64,
            forward=np.int64,
            inputs=np.int32,
            stack=np.int32,
            extra=np.int32,
            flops=np.int64,
            correlation=np.int64,
            unfinished=bool,
            synthetic=np.int8,
        )
        self.frames = ColumnBuilder(**times, own=np.int64, parent=np.int64, module=np.int64)
        self.device = ColumnBuilder(
            **times,
            kind=np.int8,
            device=np.int64,
            stream=np.int64,
            external=np.int64,
            correlation=np.int64,
            extra=np.int32,
        )
        self.memory = ColumnBuilder(
            thread=np.int32,
            start=np.int64,
            nbytes=np.int64,
            address=np.int64,
            total=np.int64,
            device=np.int64,
        )
        self.counters = ColumnBuilder(name=np.int32, start=np.int64, value=np.float64)
        self.flows = ColumnBuilder(
            category=np.int32, flow=np.int64, begins=bool, thread=np.int32, start=np.int64
        )
        self.flow_categories: Table[str | None] = Table()
        self.process_names = ProcessNames()
        self.span: tuple[int, int] | None = None  # from the start to the end of the recordings in the file
        self.window_start: int | None = None
        self.window_end: int | None = None
        self.categories: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()  # by reason
        self.repaired: Counter[str] = Counter()  # by kind of fault
        self.count = 0  # of all entries, also of those that are no events
        self._begins_and_ends = BeginEndEvents(self.threads, self.dropped, self.repaired)
        # by the keys of arguments: see `_layout`
        self._layouts: dict[tuple[str, ...], tuple[_Getter | None, bool]] = {}
        # the same of events of devices: the table of their further arguments, and what takes those out
        self._device_layouts: dict[tuple[str, ...], tuple[_ArgumentTable, _Getter | None]] = {}
        self._rare_extras: dict[_KeysAndValues, int] = {}

    # ------------------------------------------------------------------------------------------------ slices

    def add(self, events: list[RawEvent]) -> None:
        """Add the events of a slice."""
        self.count += len(events)
        groups: defaultdict[str | None, list[RawEvent]] = defaultdict(list)
        try:
            for event in events:
                groups[event["cat"]].append(event)
        except _FAULTS:  # metadata and marks have no category
            groups.clear()
            for event in self._with_phase(events):
                groups[event.get("cat")].append(event)
        for cat, group in groups.items():
            self.add_group(cat, group)

    def add_group(self, cat: str | None, group: list[RawEvent]) -> None:
        """Add the events of a slice that have one category."""
        if cat in NUMBERED_FLOWS:
            return
        meaning = category(cat)
        # only slices have a duration: where all events have one, there are no others in the group
        if cat is None or meaning is None or not self._add_all(*meaning, group):
            self._add_phases(cat, group)
        else:
            self.count_category(cat, len(group))

    def count_category(self, cat: str, count: int) -> None:
        """Count events of a category; those of further ones where there are very many are not counted."""
        if len(self.categories) < MOST_KEYS or cat in self.categories:
            self.categories[cat] += count

    def _add_phases(self, cat: str | None, group: list[RawEvent]) -> None:
        """Add events of one category, phase by phase."""
        try:
            phases = {event["ph"] for event in group}
            all_texts = {*map(type, phases)} == {str}
        except _FAULTS:
            all_texts = False
        if not all_texts:
            group = list(self._with_phase(group))
            phases = {event["ph"] for event in group}
        for phase in sorted(phases):
            part = group if len(phases) == 1 else [event for event in group if event["ph"] == phase]
            self._add_group(phase, cat, part)

    def _with_phase(self, events: list[RawEvent]) -> Iterable[RawEvent]:
        """The events that have a phase; others, and entries that are no objects, are dropped."""
        for event in events:
            if not isinstance(event, dict) or not isinstance(event.get("ph"), str):
                self.dropped["no phase"] += 1
            else:
                cat = event.get("cat")
                yield event if isinstance(cat, str) else {**event, "cat": None}

    def _add_group(self, phase: str, cat: str | None, group: list[RawEvent]) -> None:
        """Add events of one phase and category. Phases that have no place in a Trace are ignored."""
        if phase == "X":
            self._add_slices(cat, group)
        elif phase in _FLOWS:
            if cat not in NUMBERED_FLOWS:
                self._add_or_clean(self._add_flows, group)
        elif phase == "M":
            self.process_names.add(group)
        elif phase in ("i", "I", "R"):
            self._add_instants(group)
        elif phase in ("B", "E"):
            self._begins_and_ends.add(group)
        elif phase == "C":
            self._add_counters(group)

    def _add_slices(self, cat: str | None, group: list[RawEvent]) -> None:
        meaning = category(cat)
        self.count_category(cat if isinstance(cat, str) else "", len(group))
        if meaning is None:
            # an unknown category: a slice on a device if its arguments say so, else one on the host
            on_device = [e for e in group if _on_device(e)]
            if on_device:
                group = [e for e in group if not _on_device(e)]
                self._add_or_clean(lambda part: self._add_device(DEVICE_KERNEL, part), on_device)
            meaning = HOST, OP
        self._add_or_clean(self._adder(*meaning), group)

    def _adder(self, where: str, kind: int) -> _Adder:
        """The method that adds slices of a kind."""
        if where == SPAN:
            return self._add_spans
        if where == DEVICE:
            return lambda group: self._add_device(kind, group)
        if kind == PYTHON:
            return self._add_frames
        if kind == RUNTIME:
            return self._add_runtime
        return lambda group: self._add_host(kind, group)

    def _add_all(self, where: str, kind: int, group: list[RawEvent]) -> bool:
        """Add a group of slices; whether it could be added."""
        try:
            self._adder(where, kind)(group)
        except _FAULTS:
            return False
        return True

    def _add_or_clean(self, add: _Adder, group: list[RawEvent]) -> None:
        """Add a group; if an event in it has a fault, clean the events and add those that can be added."""
        if not group:
            return
        try:
            add(group)
        except _FAULTS:
            cleaned = [e for e in map(self._cleaned, group) if e is not None]
            try:
                add(cleaned)
            except _FAULTS:
                for event in cleaned:
                    try:
                        add([event])
                    except _FAULTS:
                        self.dropped["not understood"] += 1

    def _cleaned(self, event: RawEvent) -> RawEvent | None:
        """An event with all fields of the right type; None if it has no time."""
        start, length = as_number(event.get("ts")), as_number(event.get("dur"))
        if start is None:
            self.dropped["no time"] += 1
            return None
        if length is None and event.get("ph") == "X":
            self.repaired["without a duration"] += 1
        name = event.get("name")
        if not isinstance(name, str):
            if name is None:
                name = ""
            self.repaired["without a name"] += 1
        args = event.get("args")
        return {
            **event,
            "name": str(name),
            "ts": start,
            "dur": length or 0.0,
            "pid": plain(event.get("pid")),
            "tid": plain(event.get("tid")),
            "id": plain(event.get("id")),
            "args": _clean_args(args) if isinstance(args, dict) else {},
        }

    # ------------------------------------------------------------------------------------------------ kinds

    def _common(
        self, group: list[RawEvent], threads: Callable[[list[RawEvent]], list[int]] | None = None
    ) -> Lists:
        """Name, thread, start and length of each; raises before anything is added if an event has a fault. Asked for before texts get numbers:
        those of events that are no slices would be kept for nothing."""
        return {
            "start": _times([e["ts"] for e in group]),
            "length": _times([e["dur"] for e in group]),
            "name": self.names.numbers([e["name"] for e in group]),
            "thread": (threads or self._thread)(group),
        }

    def _thread(self, group: list[RawEvent]) -> list[int]:
        """Numbers of the events' (process, thread)."""
        return self.threads.numbers(map(_PLACE, group))

    def _add_host(self, kind: int, group: list[RawEvent]) -> None:
        by_layout: defaultdict[tuple[str, ...], list[RawEvent]] = defaultdict(list)
        for event in group:
            by_layout[tuple(event.get("args") or ())].append(event)
        parts = [self._host_columns(layout, events) for layout, events in by_layout.items()]
        for lists, constants in parts:
            self.host.add(lists, kind=kind, **constants)

    def _host_columns(self, layout: tuple[str, ...], group: list[RawEvent]) -> tuple[Lists, dict[str, int]]:
        """Columns of events whose arguments have the same keys, and the constant columns that their arguments do not have."""
        known = self._layouts.get(layout)
        if known is None:
            if len(self._layouts) >= MOST_KEYS:
                self._layouts.clear()
            known = self._layouts[layout] = _layout(layout)
        take_inputs, has_rare = known
        lists = self._common(group)
        args = _arguments(group)
        if take_inputs is not None:
            lists["inputs"] = self.inputs.numbers(map(orjson.dumps, map(take_inputs, args)))
        for name, key in _OP_NUMBERS:
            if key in layout:
                lists[name] = [a[key] for a in args]
        if SYNTHETIC in layout:
            lists["synthetic"] = [mark_of(a, e["dur"]) for a, e in zip(args, group)]
        if has_rare:
            self._add_rare(args, lists)
        return lists, {name: value for name, value in _NO_HOST.items() if name not in lists}

    def _add_rare(self, args: list[EventArgs], lists: Lists) -> None:
        """The rarer arguments of ops."""
        stack, extra, flops, unfinished = [], [], [], []
        for arguments in args:
            text = arguments.get("Call stack")
            stack.append(self.stacks[text] if isinstance(text, str) and text else -1)
            unfinished.append(arguments.get("finished") is False)
            counts = [arguments[key] for key in _FLOPS if isinstance(arguments.get(key), (int, float))]
            flops.append(int(counts[0]) if counts else -1)
            extra.append(self.extra_number(arguments))
        lists |= {"stack": stack, "extra": extra, "flops": flops, "unfinished": unfinished}
        if "external id" in args[0]:
            lists["external"] = [a["external id"] for a in args]

    def extra_number(self, arguments: EventArgs) -> int:
        """The number of an op's arguments that have no column; -1: there are none."""
        rest = {key: value for key, value in arguments.items() if _is_extra(key)}
        return self.extras[orjson.dumps(rest)] if rest else -1

    def _add_runtime(self, group: list[RawEvent]) -> None:
        lists, args = self._common(group), _arguments(group)
        lists |= {"external": _external(args), "correlation": _field(args, "correlation", -1)}
        lists["extra"] = [self.launched_kernel_number(a.get(LAUNCHED_KERNEL)) for a in args]
        self.host.add(lists, kind=RUNTIME, **_NO_RUNTIME)

    def launched_kernel_number(self, name: object) -> int:
        """The number of the kernel's name that ROCm writes into the arguments of a launch call, as of an op's further arguments; -1: none."""
        return self.extras[orjson.dumps({LAUNCHED_KERNEL: name})] if isinstance(name, str) and name else -1

    def _add_frames(self, group: list[RawEvent]) -> None:
        args = _arguments(group)
        own = _field(args, "Python id", -1)
        parent = [-1 if (p := a.get("Python parent id")) is None else p for a in args]
        module = [a.get("Python module id", -1) for a in args]
        self.frames.add({"own": own, "parent": parent, "module": module, **self._common(group)})

    def _device_threads(self, group: list[RawEvent]) -> list[int]:
        """Numbers of the (process, thread) of events of devices."""
        if len(self.threads) + len(group) < MOST_DEVICE_THREADS:
            return self._thread(group)
        return list(map(self.device_thread, map(_PLACE, group)))

    def device_thread(self, place: ThreadKey) -> int:
        """The number of the (process, thread) of an event of a device. Only flows need it: of further ones where a file has very many, all
        have the same."""
        number = self.threads.get(place)
        if number is None:
            number = self.threads[place if len(self.threads) < MOST_DEVICE_THREADS else OTHER_THREADS]
        return number

    def _add_device(self, kind: int, group: list[RawEvent]) -> None:
        lists, args = self._common(group, self._device_threads), _arguments(group)
        lists |= {
            "external": _external(args),
            "correlation": _field(args, "correlation", -1),
            "device": _of_ranks(_device_or_stream(args, "device", group, "pid"), group),
            "stream": _device_or_stream(args, "stream", group, "tid"),
            "extra": self._device_extra(args),
        }
        self.device.add(lists, kind=kind)

    def _device_extra(self, args: list[EventArgs]) -> list[int]:
        """Numbers of the arguments that have no column."""
        if len({*map(len, args)}) == 1:
            try:
                return self._same_extra(tuple(args[0]), args)
            except KeyError:
                pass
        return [self.device_extra_number(arguments) for arguments in args]

    def taken_device_extras(self) -> list[_KeysAndValues]:
        """Further arguments of devices' events, by number. No more events can be added after that."""
        self._device_layouts.clear()
        self._rare_extras.clear()
        return self.device_extras

    def device_extra_number(self, arguments: EventArgs) -> int:
        """The number of the arguments of a device's event that have no column; -1: there are none."""
        return self._same_extra(tuple(arguments), [arguments])[0]

    def _same_extra(self, layout: tuple[str, ...], args: list[EventArgs]) -> list[int]:
        """The same for arguments of the same keys."""
        known = self._device_layouts.get(layout)
        if known is None:
            rest = tuple([key for key in layout if key not in _DEVICE_KNOWN])
            # one key twice, so that itemgetter gives a tuple also where there is one key
            take = itemgetter(*rest, rest[0]) if rest else None
            if len(self._device_layouts) >= MOST_KEYS:
                return [self._rare_extra(rest, take, arguments) for arguments in args]
            known = self._device_layouts[layout] = _ArgumentTable(rest, self.device_extras), take
        table, take_rest = known
        if take_rest is None:
            return [-1] * len(args)
        return list(map(table.__getitem__, map(orjson.dumps, map(take_rest, args))))

    def _rare_extra(self, keys: tuple[str, ...], take: _Getter | None, arguments: EventArgs) -> int:
        """The same where a file has very many different keys: one table for all of them."""
        if take is None:
            return -1
        row = keys, bytes(memoryview(orjson.dumps(take(arguments))))
        number = self._rare_extras.setdefault(row, len(self.device_extras))
        if number == len(self.device_extras):
            self.device_extras.append(row)
        return number

    def _add_spans(self, group: list[RawEvent]) -> None:
        for event in group:
            start, length = as_number(event["ts"]), as_number(event["dur"])
            if start is not None and length is not None:
                first, last = round(start * 1000), round((start + max(length, 0.0)) * 1000)
                if self.span is not None:
                    first, last = min(first, self.span[0]), max(last, self.span[1])
                self.span = first, last

    def _add_instants(self, group: list[RawEvent]) -> None:
        """Add allocations and the marks of the recording's start and end; other instants have no place in a Trace."""
        memory = [e for e in group if e.get("name") == "[memory]"]
        self._add_or_clean(self._add_memory, memory)
        if len(memory) == len(group):
            return
        for event in group:
            name, time = event.get("name"), as_number(event.get("ts"))
            if time is None or not isinstance(name, str):
                continue
            if name == "Record Window End":
                self.window_end = round(time * 1000)
            elif name.startswith("Iteration Start"):
                self.window_start = round(time * 1000)

    def _add_memory(self, group: list[RawEvent]) -> None:
        args = _arguments(group)
        self.memory.add(
            {
                "start": _times([e["ts"] for e in group]),
                "nbytes": _field(args, "Bytes", 0),
                "address": _field(args, "Addr", 0),
                "total": _field(args, "Total Allocated", -1),
                "device": [
                    max(index, 0) if kind else -1
                    for index, kind in zip(_field(args, "Device Id", -1), _field(args, "Device Type", 0))
                ],
                "thread": self._thread(group),
            }
        )

    def _add_counters(self, group: list[RawEvent]) -> None:
        names: list[str] = []
        times: list[float] = []
        values: list[float] = []
        for event in group:
            time, args = as_number(event.get("ts")), event.get("args")
            if time is None or not isinstance(args, dict):
                self.dropped["counters without a time or value"] += 1
                continue
            for series, value in args.items():
                number = as_number(value)
                if number is not None:
                    counter = str(event.get("name", ""))
                    names.append(counter if len(args) == 1 else f"{counter}: {series}")
                    times.append(time)
                    values.append(number)
        if names:
            self.counters.add({"start": times, "name": self.counter_names.numbers(names), "value": values})

    def _add_flows(self, group: list[RawEvent]) -> None:
        self.flows.add(
            {
                "start": _times([e["ts"] for e in group]),
                "category": [self._flow_category(e.get("cat")) for e in group],
                "flow": [self._flow_number(e.get("cat"), e["id"]) for e in group],
                "begins": [e["ph"] == "s" for e in group],
                "thread": self._thread(group),
            }
        )

    def _flow_category(self, cat: str | None) -> int:
        """The number of a flow's category; -1: a file has very many, and the flow's number stands for its category too."""
        if len(self.flow_categories) < MOST_KEYS or cat in self.flow_categories:
            return self.flow_categories[cat]
        return -1

    def _flow_number(self, cat: str | None, flow: JSONScalar) -> int:
        """The number of a flow's id: the id itself where it is a whole number, and else one beyond those, a digest: a table of the ids would
        take many times the memory of their numbers, and flows are no part of a Trace."""
        if isinstance(flow, float) and flow.is_integer():
            flow = int(flow)
        if cat in self.flow_categories:
            if isinstance(flow, int) and abs(flow) < _OTHER_IDS:
                return flow
            cat = None
        digest = blake2b(ascii((cat, flow)).encode(), digest_size=8).digest()
        return _OTHER_IDS + (int.from_bytes(digest, "little") >> 2)

    def pair(self) -> None:
        """Turn pairs of begin and end events into slices."""
        for cat, group in self._begins_and_ends.slices():
            self._add_slices(cat, group)


# ---------------------------------------------------------------------------------------------------- values


def _arguments(group: list[RawEvent]) -> list[EventArgs]:
    try:
        return [e["args"] for e in group]
    except KeyError:
        return [e.get("args") or {} for e in group]


def _layout(keys: tuple[str, ...]) -> tuple[_Getter | None, bool]:
    """Of the keys of arguments: what takes the inputs out (None: there are none), and whether rare arguments are among them."""
    inputs = [key for key in _INPUTS if key in keys]
    has_rare = bool({*keys} - (_KNOWN - {"Call stack", "finished", "external id"}))
    if len(inputs) == len(_INPUTS):
        return itemgetter(*_INPUTS), has_rare
    return (lambda args: tuple([args.get(key) for key in _INPUTS])) if inputs else None, has_rare


def _is_extra(key: str) -> bool:
    return key not in _KNOWN and key not in _FLOPS


def places_of_extras(keys: tuple[str, ...]) -> tuple[bool, list[int], list[int]]:
    """Of the keys of arguments: whether rare ones are among them, and the places of those that have no column, for ops and for
    events of devices."""
    _, has_rare = _layout(keys)
    extras = [place for place, key in enumerate(keys) if _is_extra(key)]
    return has_rare, extras, [place for place, key in enumerate(keys) if key not in _DEVICE_KNOWN]


def _field(args: list[EventArgs], key: str, none: int) -> list[int]:
    try:
        return [a[key] for a in args]
    except KeyError:
        return [a.get(key, none) for a in args]


def _external(args: list[EventArgs]) -> list[int]:
    try:
        return [a["External id"] for a in args]
    except KeyError:
        return [a.get("External id") or a.get("external id", 0) for a in args]


def _of_ranks(devices: list[int], group: list[RawEvent]) -> list[int]:
    """In a file that was merged from several ranks, the numbers of the devices' processes: each rank has a device 0."""
    processes = [e["pid"] for e in group]
    if not any(process.__class__ is int and process >= MERGED_FROM for process in {*processes}):
        return devices
    return [
        process if process.__class__ is int and process >= MERGED_FROM else device
        for process, device in zip(processes, devices)
    ]


def _device_or_stream(
    args: list[EventArgs], key: str, group: list[RawEvent], otherwise: Literal["pid", "tid"]
) -> list[int]:
    """The device or stream of each event: an argument, or else its process or thread."""
    try:
        values = [a[key] for a in args]
    except KeyError:
        values = [a.get(key) for a in args]
    if {*map(type, values)} == {int}:
        return values
    return [_first_whole(value, event[otherwise]) for value, event in zip(values, group)]


def _on_device(event: RawEvent) -> bool:
    args = event.get("args")
    return isinstance(args, dict) and ("Stream Id" in args or ("stream" in args and "device" in args))


def _times(values: list[float]) -> list[float]:
    """The same times; raises TypeError unless all are numbers, as only numbers add up."""
    sum(values)
    return values


def _first_whole(*values: JSONValue) -> int:
    """The first of the values that is a number of a device or stream, also out of `stream 7`; -1 if none is."""
    for value in values:
        if value.__class__ is int:
            return value if INT64.min < value < INT64.max else -1
        if isinstance(value, str):
            digits = "".join(c for c in value if c.isdecimal() and c.isascii())
            if digits:
                return int(digits[:15])
        elif isinstance(value, float) and math.isfinite(value) and abs(value) < LARGEST_US:
            return int(value)
    return -1


_NUMBERED = (
    "External id",
    "external id",
    "Sequence number",
    "Fwd thread id",
    "correlation",
    "Python id",
    "Python parent id",
    "Python module id",
    "Bytes",
    "Addr",
    "Total Allocated",
    "Device Type",
    "Device Id",
)


def _clean_args(args: EventArgs) -> EventArgs:
    """Arguments without those that should be numbers and are none."""
    cleaned = {str(key): value for key, value in args.items()}
    for key in _NUMBERED:
        if key in cleaned and cleaned[key].__class__ is not int:
            number = as_number(cleaned[key])
            if number is None:
                del cleaned[key]
            else:
                cleaned[key] = int(number)
        if key in cleaned and not INT64.min <= cleaned[key] <= INT64.max:
            # an unsigned address of 64 bits
            cleaned[key] = cleaned[key] - 2**64 if 0 < cleaned[key] < 2**64 else 0
    return cleaned
