"""Columns: events of a Chrome trace as dicts in, slice by slice; arrays of numbers and tables of texts out.

Nothing is understood here beyond the kind of an event. Work per event is a few list comprehensions over parsed dicts; what
repeats (names, threads, inputs, arguments) becomes a number through a dict. A group of events with a fault in it is cleaned
event by event and then goes the same way.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import orjson

from ..trace import (
    ANNOTATION,
    DEVICE_ANNOTATION,
    DEVICE_COPY,
    DEVICE_KERNEL,
    DEVICE_SET,
    DEVICE_SYNC,
    OP,
    PYTHON,
    RUNTIME,
)

# what a category means: (host or device, kind)
HOST, DEVICE, SPAN = "host", "device", "span"
_CATEGORIES: dict[str, tuple[str, int]] = {
    "cpu_op": (HOST, OP),
    "operator": (HOST, OP),
    "user_annotation": (HOST, ANNOTATION),
    "python_function": (HOST, PYTHON),
    "trace": (SPAN, 0),
    "kernel": (DEVICE, DEVICE_KERNEL),
    "concurrent_kernel": (DEVICE, DEVICE_KERNEL),
    "mtia_ccp_events": (DEVICE, DEVICE_KERNEL),
    "mtia_kernel": (DEVICE, DEVICE_KERNEL),
    "hpu_op": (DEVICE, DEVICE_KERNEL),
    "gpu_memcpy": (DEVICE, DEVICE_COPY),
    "memcpy": (DEVICE, DEVICE_COPY),
    "gpu_memset": (DEVICE, DEVICE_SET),
    "memset": (DEVICE, DEVICE_SET),
    "gpu_user_annotation": (DEVICE, DEVICE_ANNOTATION),
    "cuda_profiler_range": (DEVICE, DEVICE_ANNOTATION),
    "cuda_sync": (DEVICE, DEVICE_SYNC),
    "cuda_event": (DEVICE, DEVICE_SYNC),
    "overhead": (HOST, RUNTIME),
    "runtime": (HOST, RUNTIME),
    "async_task_queue": (HOST, RUNTIME),
    "enqueue": (HOST, RUNTIME),
    "dequeue": (HOST, RUNTIME),
}
_FLOWS = frozenset("stf")
_NUMBERED_FLOWS = frozenset(
    {"ac2g", "fwdbwd"}
)  # arrows that repeat what correlation and sequence numbers say
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
        *_INPUTS,
    }
)
_DEVICE_KNOWN = frozenset({"External id", "external id", "correlation", "device", "stream"})
_OP_NUMBERS = (("external", "External id"), ("sequence", "Sequence number"), ("forward", "Fwd thread id"))
_PLACE = itemgetter("pid", "tid")
_TIMES = frozenset({"start", "length"})
_ZERO = frozenset(
    {"external", "forward", "nbytes", "address"}
)  # columns in which 0 stands for nothing, not -1
_SEAL = 32_768  # rows: as many are kept as plain numbers before they become arrays
# what a host event has where its file says nothing
_NO_HOST: dict[str, Any] = {
    "external": 0,
    "sequence": -1,
    "forward": 0,
    "inputs": -1,
    "stack": -1,
    "extra": -1,
    "flops": -1,
    "correlation": -1,
    "unfinished": False,
}
_NO_RUNTIME = {name: value for name, value in _NO_HOST.items() if name not in ("external", "correlation")}
_FLOPS = ("flops", "FLOPs", "Flops")
LARGEST_US = 9.0e15  # times beyond this are no microseconds since any epoch
MERGED_FROM = 10_000_000  # merged files number the processes of ranks from here on, above every pid of Linux
_FAULTS = (KeyError, TypeError, ValueError, OverflowError, AttributeError, IndexError)
_INT = np.iinfo(np.int64)


def category(cat: Any) -> tuple[str, int] | None:
    """What a category means; None: nothing is known of it."""
    text = cat.lower() if isinstance(cat, str) else ""
    found = _CATEGORIES.get(text)
    if found is None and text.endswith(("_runtime", "_driver")):
        return HOST, RUNTIME
    return found


class Table(dict):
    """Things to numbers, from 0 in the order in which they are met."""

    def __missing__(self, key: Any) -> int:
        number = self[key] = len(self)
        return number

    def numbers(self, keys: Iterable[Any]) -> list[int]:
        return list(map(self.__getitem__, keys))


class Parsed(Sequence):
    """A table of JSON texts, each parsed when it is asked for."""

    def __init__(self, texts: Iterable[bytes]) -> None:
        self._texts = list(texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Parsed(self._texts[index])
        return orjson.loads(self._texts[index])


class Arguments(Sequence):
    """A table of (keys, JSON of their values); each a dict when it is asked for."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self._rows = list(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Arguments(self._rows[index])
        keys, text = self._rows[index]
        return dict(zip(keys, orjson.loads(text)))


class _ArgumentTable(dict):
    """JSON of values of the same keys to numbers, which several tables share: places in the list of all."""

    def __init__(self, keys: tuple[str, ...], rows: list[tuple[tuple[str, ...], bytes]]) -> None:
        super().__init__()
        self._keys, self._rows = keys, rows

    def __missing__(self, text: bytes) -> int:
        number = self[text] = len(self._rows)
        self._rows.append((self._keys, text))
        return number


class Columns:
    """Named columns that grow by lists of plain numbers and are sealed into arrays now and then. Times are numbers, as was seen
    before; other values that are none become the column's word for nothing."""

    def __init__(self, **types: Any) -> None:
        self._types = types
        self._parts: dict[str, list[np.ndarray]] = {name: [] for name in types}
        self._open: dict[tuple, dict[str, list[Any]]] = {}  # by the columns that have one value for all rows
        self.short = 0  # how many lengths were negative
        self.beyond = 0  # how many rows had times beyond all clocks, and were left out
        self.coarse = True  # whether all times are whole microseconds, or as far from 0 as the epoch

    def add(self, lists: dict[str, list[Any]], **same: Any) -> None:
        """Add rows: columns as lists, and columns that have one value for all rows."""
        key = tuple(same.items())
        open_ = self._open.get(key)
        if open_ is None:
            self._open[key] = open_ = {name: [] for name in lists}
        for name, values in lists.items():
            open_[name] += values
        if len(open_["start"]) >= _SEAL:
            self._seal(dict(key), self._open.pop(key))

    def _seal(self, same: dict[str, Any], lists: dict[str, list[Any]]) -> None:
        count = len(lists["start"])
        made, beyond = {}, np.zeros(count, bool)
        for name, kind in self._types.items():
            if name in same:
                made[name] = np.full(count, same[name], kind)
            elif name in _TIMES:
                us = np.array(lists[name], np.float64)
                beyond |= np.abs(us) >= LARGEST_US
                made[name] = us
            else:
                made[name] = _array(lists[name], name, kind)
        if beyond.any():
            self.beyond += int(beyond.sum())
            made = {name: column[~beyond] for name, column in made.items()}
        for name in _TIMES & made.keys():
            made[name], coarse = _nanoseconds(made[name])
            self.coarse &= coarse
        if "length" in made and (made["length"] < 0).any():
            self.short += int((made["length"] < 0).sum())
            made["length"] = np.maximum(made["length"], 0)
        for name, column in made.items():
            self._parts[name].append(column)

    def whole(self) -> dict[str, np.ndarray]:
        """All columns; their slices are given up one by one."""
        for key, lists in self._open.items():
            self._seal(dict(key), lists)
        self._open = {}
        made = {}
        for name, kind in self._types.items():
            parts = self._parts.pop(name)
            made[name] = np.concatenate(parts) if parts else np.empty(0, kind)
        return made


def _array(values: list[Any], name: str, kind: Any) -> np.ndarray:
    try:
        return np.fromiter(values, kind, len(values))
    except (OverflowError, TypeError, ValueError):
        otherwise = 0 if name in _ZERO else -1
        return np.array([_fitting(value, otherwise) for value in values], kind)


def _fitting(value: Any, otherwise: int) -> int:
    """A value as a whole number of 64 bits; addresses without a sign keep their bits."""
    number = value if value.__class__ is int else _number(value)
    if number is None:
        return otherwise
    number = int(number)
    if _INT.min <= number <= _INT.max:
        return number
    return number - 2**64 if 0 < number < 2**64 else otherwise


class Collector:
    """Takes the events of one file."""

    def __init__(self) -> None:
        self.names = Table()
        self.threads = Table()  # (pid, tid)
        self.inputs = Table()  # JSON of an event's inputs
        self.stacks = Table()  # texts of call stacks
        self.extras = Table()  # JSON of further arguments
        self.device_extras: list[tuple[tuple[str, ...], bytes]] = []
        self.counter_names = Table()
        times = {"name": np.int32, "thread": np.int32, "start": np.int64, "length": np.int64}
        self.host = Columns(
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
        )
        self.frames = Columns(**times, own=np.int64, parent=np.int64, module=np.int64)
        self.device = Columns(
            **times,
            kind=np.int8,
            device=np.int64,
            stream=np.int64,
            external=np.int64,
            correlation=np.int64,
            extra=np.int32,
        )
        self.memory = Columns(
            thread=np.int32,
            start=np.int64,
            nbytes=np.int64,
            address=np.int64,
            total=np.int64,
            device=np.int64,
        )
        self.counters = Columns(name=np.int32, start=np.int64, value=np.float64)
        self.flows = Columns(flow=np.int32, begins=bool, thread=np.int32, start=np.int64)
        self.flow_ids = Table()
        self.metadata: list[dict[str, Any]] = []
        self.begins: list[dict[str, Any]] = []  # events of phase B and E, in the order of the file
        self.spans: list[tuple[int, int]] = []
        self.window_start: int | None = None
        self.window_end: int | None = None
        self.categories: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()  # by phase: what has no place in a Trace
        self.dropped: Counter[str] = Counter()  # by reason
        self.repaired: Counter[str] = Counter()
        self.layouts: dict[tuple, tuple[Any, bool]] = {}
        self.device_layouts: dict[tuple, tuple[_ArgumentTable, Any]] = {}
        self.count = 0

    # ------------------------------------------------------------------------------------------------ slices

    def add(self, events: list[Any]) -> None:
        """Take the events of a slice."""
        self.count += len(events)
        groups: defaultdict[Any, list[dict[str, Any]]] = defaultdict(list)
        try:
            for event in events:
                groups[event["cat"]].append(event)
        except _FAULTS:  # metadata and marks have no category
            groups.clear()
            for event in self._with_phase(events):
                groups[event.get("cat")].append(event)
        for cat, group in groups.items():
            if cat in _NUMBERED_FLOWS:
                continue
            meaning = category(cat)
            # only slices have a duration: where all have one, nothing else is there
            if meaning is None or not self._add_known(*meaning, group):
                self._add_phases(cat, group)
            else:
                self.categories[cat] += len(group)

    def _add_phases(self, cat: Any, group: list[dict[str, Any]]) -> None:
        """Take events of one category, phase by phase."""
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

    def _with_phase(self, events: list[Any]) -> Iterable[dict[str, Any]]:
        for event in events:
            if not isinstance(event, dict) or not isinstance(event.get("ph"), str):
                self.dropped["no phase"] += 1
            else:
                cat = event.get("cat")
                yield event if isinstance(cat, str) else {**event, "cat": None}

    def _add_group(self, phase: str, cat: Any, group: list[dict[str, Any]]) -> None:
        if phase == "X":
            self._add_slices(cat, group)
        elif phase in _FLOWS:
            if cat not in _NUMBERED_FLOWS:
                self._careful(self._add_flows, group)
        elif phase == "M":
            self.metadata += group
        elif phase in ("i", "I", "R"):
            self._add_instants(group)
        elif phase in ("B", "E"):
            self.begins += group
        elif phase == "C":
            self._add_counters(group)
        else:
            self.left_out[phase[:20]] += len(group)

    def _add_slices(self, cat: Any, group: list[dict[str, Any]]) -> None:
        meaning = category(cat)
        self.categories[cat if isinstance(cat, str) else ""] += len(group)
        if meaning is None:
            # nothing says what it is: a slice on a device if its arguments say so, else one on the host
            there = [e for e in group if _on_device(e)]
            if there:
                here = [e for e in group if not _on_device(e)]
                self._careful(lambda part: self._add_device(DEVICE_KERNEL, part), there)
                group = here
            meaning = HOST, OP
        add = self._adding(*meaning)
        self._careful(add, group)

    def _adding(self, where: str, kind: int) -> Any:
        """What takes slices of a kind."""
        if where == SPAN:
            return self._add_spans
        if where == DEVICE:
            return lambda group: self._add_device(kind, group)
        if kind == PYTHON:
            return self._add_frames
        if kind == RUNTIME:
            return self._add_runtime
        return lambda group: self._add_host(kind, group)

    def _add_known(self, where: str, kind: int, group: list[dict[str, Any]]) -> bool:
        try:
            self._adding(where, kind)(group)
        except _FAULTS:
            return False
        return True

    def _careful(self, add: Any, group: list[dict[str, Any]]) -> None:
        """Add a group; if something in it is not as it should be, add what is left of it after cleaning."""
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
                        self.dropped["not to be understood"] += 1

    def _cleaned(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """An event with all fields of the right type; None if it has no name or time."""
        at, length = _number(event.get("ts")), _number(event.get("dur"))
        if at is None:
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
            "ts": at,
            "dur": length or 0.0,
            "pid": _plain(event.get("pid")),
            "tid": _plain(event.get("tid")),
            "id": _plain(event.get("id")),
            "args": _clean_args(args) if isinstance(args, dict) else {},
        }

    # ------------------------------------------------------------------------------------------------ kinds

    def _common(self, group: list[dict[str, Any]]) -> dict[str, list[Any]]:
        """Name, thread, start and length of each; nothing is kept of a group that has a fault."""
        return {
            "start": _times([e["ts"] for e in group]),
            "length": _times([e["dur"] for e in group]),
            "name": self.names.numbers([e["name"] for e in group]),
            "thread": self._thread(group),
        }

    def _thread(self, group: list[dict[str, Any]]) -> list[int]:
        """Numbers of the events' (process, thread)."""
        return self.threads.numbers(map(_PLACE, group))

    def _add_host(self, kind: int, group: list[dict[str, Any]]) -> None:
        by_layout: defaultdict[tuple, list[dict[str, Any]]] = defaultdict(list)
        for event in group:
            by_layout[tuple(event.get("args") or ())].append(event)
        made = [self._host_columns(layout, events) for layout, events in by_layout.items()]
        for lists, same in made:
            self.host.add(lists, kind=kind, **same)

    def _host_columns(
        self, layout: tuple, group: list[dict[str, Any]]
    ) -> tuple[dict[str, list[Any]], dict[str, Any]]:
        """Columns of events whose arguments have the same keys, and what their arguments do not say."""
        known = self.layouts.get(layout)
        if known is None:
            known = self.layouts[layout] = _layout(layout)
        args = _arguments(group)
        taken, rare = known
        lists: dict[str, list[Any]] = {}
        if taken is not None:
            lists["inputs"] = self.inputs.numbers(map(orjson.dumps, map(taken, args)))
        for name, key in _OP_NUMBERS:
            if key in layout:
                lists[name] = [a[key] for a in args]
        if rare:
            self._add_more(args, lists)
        lists |= self._common(group)
        return lists, {name: value for name, value in _NO_HOST.items() if name not in lists}

    def _add_more(self, args: list[dict[str, Any]], lists: dict[str, list[Any]]) -> None:
        """The rarer arguments of ops."""
        stack, extra, flops, unfinished = [], [], [], []
        for given in args:
            text = given.get("Call stack")
            stack.append(self.stacks[text] if isinstance(text, str) and text else -1)
            unfinished.append(given.get("finished") is False)
            counted = [given[key] for key in _FLOPS if isinstance(given.get(key), (int, float))]
            flops.append(int(counted[0]) if counted else -1)
            rest = {key: value for key, value in given.items() if key not in _KNOWN and key not in _FLOPS}
            extra.append(self.extras[orjson.dumps(rest)] if rest else -1)
        lists |= {"stack": stack, "extra": extra, "flops": flops, "unfinished": unfinished}
        if "external id" in args[0]:
            lists["external"] = [a["external id"] for a in args]

    def _add_runtime(self, group: list[dict[str, Any]]) -> None:
        args = _arguments(group)
        lists = {"external": _external(args), "correlation": _field(args, "correlation", -1)}
        lists |= self._common(group)
        self.host.add(lists, kind=RUNTIME, **_NO_RUNTIME)

    def _add_frames(self, group: list[dict[str, Any]]) -> None:
        args = _arguments(group)
        own = _field(args, "Python id", -1)
        parent = [-1 if (p := a.get("Python parent id")) is None else p for a in args]
        module = [a.get("Python module id", -1) for a in args]
        self.frames.add({"own": own, "parent": parent, "module": module, **self._common(group)})

    def _add_device(self, kind: int, group: list[dict[str, Any]]) -> None:
        args = _arguments(group)
        lists = {
            "external": _external(args),
            "correlation": _field(args, "correlation", -1),
            "device": _of_ranks(_place(args, "device", group, "pid"), group),
            "stream": _place(args, "stream", group, "tid"),
            "extra": self._device_extra(args),
        }
        self.device.add(lists | self._common(group), kind=kind)

    def _device_extra(self, args: list[dict[str, Any]]) -> list[int]:
        """Numbers of what the arguments say beyond the columns."""
        if len({*map(len, args)}) == 1:
            try:
                return self._same_extra(tuple(args[0]), args)
            except KeyError:
                pass
        return [self._same_extra(tuple(given), [given])[0] for given in args]

    def _same_extra(self, layout: tuple, args: list[dict[str, Any]]) -> list[int]:
        """The same for arguments of the same keys."""
        known = self.device_layouts.get(layout)
        if known is None:
            rest = tuple([key for key in layout if key not in _DEVICE_KNOWN])
            # one key more than there is, so that what is taken is a tuple also where it is one thing
            known = _ArgumentTable(rest, self.device_extras), itemgetter(*rest, rest[0]) if rest else None
            self.device_layouts[layout] = known
        table, taken = known
        if taken is None:
            return [-1] * len(args)
        return list(map(table.__getitem__, map(orjson.dumps, map(taken, args))))

    def _add_spans(self, group: list[dict[str, Any]]) -> None:
        for event in group:
            start, length = _number(event["ts"]), _number(event["dur"])
            if start is not None and length is not None:
                self.spans.append((round(start * 1000), round((start + max(length, 0.0)) * 1000)))

    def _add_instants(self, group: list[dict[str, Any]]) -> None:
        memory = [e for e in group if e.get("name") == "[memory]"]
        self._careful(self._add_memory, memory)
        if len(memory) == len(group):
            return
        for event in group:
            name, at = event.get("name"), _number(event.get("ts"))
            if name == "[memory]" or at is None:
                continue
            if name == "Record Window End":
                self.window_end = round(at * 1000)
            elif isinstance(name, str) and name.startswith("Iteration Start"):
                self.window_start = round(at * 1000)
            else:
                self.left_out["instant"] += 1

    def _add_memory(self, group: list[dict[str, Any]]) -> None:
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

    def _add_counters(self, group: list[dict[str, Any]]) -> None:
        names, times, values = [], [], []
        for event in group:
            at, args = _number(event.get("ts")), event.get("args")
            if at is None or not isinstance(args, dict):
                self.dropped["counters without a time or value"] += 1
                continue
            for series, value in args.items():
                number = _number(value)
                if number is not None:
                    counter = str(event.get("name", ""))
                    names.append(counter if len(args) == 1 else f"{counter}: {series}")
                    times.append(at)
                    values.append(number)
        if names:
            self.counters.add({"start": times, "name": self.counter_names.numbers(names), "value": values})

    def _add_flows(self, group: list[dict[str, Any]]) -> None:
        self.flows.add(
            {
                "start": _times([e["ts"] for e in group]),
                "flow": self.flow_ids.numbers([(e.get("cat"), e["id"]) for e in group]),
                "begins": [e["ph"] == "s" for e in group],
                "thread": self._thread(group),
            }
        )

    # ------------------------------------------------------------------------------------------------ begin and end

    def pair(self) -> None:
        """Turn events that say where something begins and where it ends into slices."""
        open_: defaultdict[tuple[Any, Any], list[dict[str, Any]]] = defaultdict(list)
        made: defaultdict[Any, list[dict[str, Any]]] = defaultdict(list)
        last = -math.inf
        timed = []
        for event in self.begins:
            at = _number(event.get("ts"))
            if at is None:
                self.dropped["no time"] += 1
                continue
            last = max(last, at)
            timed.append((at, event))
        timed.sort(key=itemgetter(0))
        for at, event in timed:
            where = _plain(event.get("pid")), _plain(event.get("tid"))
            if event["ph"] == "B":
                open_[where].append({**event, "ts": at})
                continue
            waiting = open_[where]
            if not waiting:
                self.dropped["ends without a beginning"] += 1
                continue
            begun = waiting.pop()
            args = {**(_dict(begun.get("args"))), **(_dict(event.get("args")))}
            cat = begun.get("cat")
            made[cat if isinstance(cat, str) else None].append(
                {**begun, "ph": "X", "dur": at - begun["ts"], "args": args, "pid": where[0], "tid": where[1]}
            )
        for where, waiting in open_.items():
            for begun in waiting:
                cat = begun.get("cat")
                self.repaired["beginnings without an end, which end with the trace"] += 1
                args = {**_dict(begun.get("args")), "finished": False}
                made[cat if isinstance(cat, str) else None].append(
                    {
                        **begun,
                        "ph": "X",
                        "dur": last - begun["ts"],
                        "args": args,
                        "pid": where[0],
                        "tid": where[1],
                    }
                )
        self.begins = []
        for cat, group in made.items():
            self._add_slices(cat, group)


# ---------------------------------------------------------------------------------------------------- values


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _arguments(group: list[dict[str, Any]]) -> list[dict[str, Any]]:
    try:
        return [e["args"] for e in group]
    except KeyError:
        return [e.get("args") or {} for e in group]


def _layout(keys: tuple) -> tuple[Any, bool]:
    """Of a tuple of keys: what takes the inputs out (None: there are none), and whether anything rare is among them."""
    inputs = [key for key in _INPUTS if key in keys]
    rare = bool({*keys} - (_KNOWN - {"Call stack", "finished", "external id"}))
    if len(inputs) == len(_INPUTS):
        return itemgetter(*_INPUTS), rare
    return (lambda args: tuple([args.get(key) for key in _INPUTS])) if inputs else None, rare


def _field(args: list[dict[str, Any]], key: str, otherwise: int) -> list[int]:
    try:
        return [a[key] for a in args]
    except KeyError:
        return [a.get(key, otherwise) for a in args]


def _external(args: list[dict[str, Any]]) -> list[int]:
    try:
        return [a["External id"] for a in args]
    except KeyError:
        return [a.get("External id") or a.get("external id", 0) for a in args]


def _of_ranks(devices: list[Any], group: list[dict[str, Any]]) -> list[Any]:
    """Devices by the numbers of their processes in a file that was merged from several ranks: each rank has a device 0."""
    processes = [e["pid"] for e in group]
    if not any(process.__class__ is int and process >= MERGED_FROM for process in {*processes}):
        return devices
    return [
        process if process.__class__ is int and process >= MERGED_FROM else device
        for process, device in zip(processes, devices)
    ]


def _place(args: list[dict[str, Any]], key: str, group: list[dict[str, Any]], other: str) -> list[int]:
    """The device or stream of each event: an argument, or else its process or thread."""
    try:
        values = [a[key] for a in args]
    except KeyError:
        values = [a.get(key) for a in args]
    if {*map(type, values)} == {int}:
        return values
    return [_whole(value, event[other]) for value, event in zip(values, group)]


def _on_device(event: dict[str, Any]) -> bool:
    args = event.get("args")
    return isinstance(args, dict) and ("Stream Id" in args or ("stream" in args and "device" in args))


def _times(values: list[Any]) -> list[Any]:
    """Times that are numbers: only numbers add up."""
    sum(values)
    return values


def _nanoseconds(times: Any) -> tuple[np.ndarray, bool]:
    """Microseconds as whole nanoseconds, and whether they say no more than microseconds do."""
    us = np.asarray(times, np.float64)
    whole = np.floor(us)
    rest = us - whole
    # a double holds nanoseconds up to 2**53 of them: beyond, its last digits are noise
    coarse = bool(not rest.any() or us[0] > 2**53 / 1000)
    return whole.astype(np.int64) * 1000 + np.rint(rest * 1000).astype(np.int64), coarse


def _number(value: Any) -> float | None:
    """A number, also where it is written as text; None if it is none, or beyond all times."""
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) and abs(found) < LARGEST_US else None


def _whole(value: Any, otherwise: Any) -> int:
    """A number of a device or stream, also out of `stream 7`; -1 where there is none."""
    for given in (value, otherwise):
        if given.__class__ is int:
            return given if _INT.min < given < _INT.max else -1
        if isinstance(given, str):
            digits = "".join(c for c in given if c.isdecimal() and c.isascii())
            if digits:
                return int(digits[:15])
        elif isinstance(given, float) and math.isfinite(given) and abs(given) < LARGEST_US:
            return int(given)
    return -1


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, str)) or value is None else str(value)


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


def _clean_args(args: dict[str, Any]) -> dict[str, Any]:
    """Arguments whose numbers are numbers; what is none is left out."""
    cleaned = {str(key): value for key, value in args.items()}
    for key in _NUMBERED:
        if key in cleaned and cleaned[key].__class__ is not int:
            number = _number(cleaned[key])
            if number is None:
                del cleaned[key]
            else:
                cleaned[key] = int(number)
        if key in cleaned and not _INT.min <= cleaned[key] <= _INT.max:
            # an address of 64 bits without a sign
            cleaned[key] = cleaned[key] - 2**64 if 0 < cleaned[key] < 2**64 else 0
    return cleaned
