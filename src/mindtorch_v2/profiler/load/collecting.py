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
_FLOPS = ("flops", "FLOPs", "Flops")
LARGEST_US = 9.0e15  # times beyond this are no microseconds since any epoch
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

    def numbers(self, keys: Iterable[Any]) -> np.ndarray:
        return np.array(list(map(self.__getitem__, keys)), np.int32)


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


class Columns:
    """Named columns that grow by slices."""

    def __init__(self, **types: Any) -> None:
        self._types = types
        self._parts: dict[str, list[np.ndarray]] = {name: [] for name in types}

    def add(self, count: int, **columns: Any) -> None:
        """Add rows; a single value stands for all of them."""
        for name, values in columns.items():
            self._parts[name].append(np.asarray(values) if np.ndim(values) else np.full(count, values))

    def whole(self) -> dict[str, np.ndarray]:
        """All columns; their slices are given up one by one."""
        made = {}
        for name, kind in self._types.items():
            parts = self._parts.pop(name)
            made[name] = np.concatenate([np.asarray(p, kind) for p in parts]) if parts else np.empty(0, kind)
        return made


class Collector:
    """Takes the events of one file."""

    def __init__(self) -> None:
        self.names = Table()
        self.threads = Table()  # (pid, tid)
        self.inputs = Table()  # JSON of an event's inputs
        self.stacks = Table()  # texts of call stacks
        self.extras = Table()  # JSON of further arguments
        self.device_extras = Table()
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
            origin=np.int8,
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
        self.layouts: dict[tuple, tuple[bool, bool, Any]] = {}
        self.count = 0
        self.coarse = True  # whether all times are whole microseconds, or as far from 0 as the epoch

    # ------------------------------------------------------------------------------------------------ slices

    def add(self, events: list[Any]) -> None:
        """Take the events of a slice."""
        self.count += len(events)
        groups: defaultdict[tuple[Any, Any], list[dict[str, Any]]] = defaultdict(list)
        try:
            for event in events:
                groups[event["ph"], event.get("cat")].append(event)
        except (KeyError, TypeError, AttributeError):
            groups.clear()
            for event in self._with_phase(events):
                groups[event["ph"], event["cat"]].append(event)
        for (phase, cat), group in groups.items():
            self._add_group(phase, cat, group)

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
            if cat not in ("ac2g", "fwdbwd"):
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
        where, kind = meaning
        if where == SPAN:
            self._careful(self._add_spans, group)
        elif where == DEVICE:
            self._careful(lambda part: self._add_device(kind, part), group)
        elif kind == PYTHON:
            self._careful(self._add_frames, group)
        elif kind == RUNTIME:
            self._careful(self._add_runtime, group)
        else:
            self._careful(lambda part: self._add_host(kind, part), group)

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

    def _common(self, group: list[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Name, thread, start and length of each; nothing is kept of a group that has a fault."""
        start, coarse = _nanoseconds([e["ts"] for e in group])
        length, whole = _nanoseconds([e["dur"] for e in group])
        short = length < 0
        name = self.names.numbers([_text(e["name"]) for e in group])
        thread = self.threads.numbers(zip([e["pid"] for e in group], [e["tid"] for e in group]))
        if short.any():
            self.repaired["of negative length"] += int(short.sum())
            length = np.maximum(length, 0)
        self.coarse &= coarse and (whole or abs(int(start[0])) > 10**18)
        return name, thread, start, length

    def _add_host(self, kind: int, group: list[dict[str, Any]]) -> None:
        args = _arguments(group)
        count = len(group)
        layouts = list(map(tuple, args))
        known = self.layouts
        for layout in set(layouts):
            if layout not in known:
                known[layout] = _layout(layout)
        has_inputs = [i for i, layout in enumerate(layouts) if known[layout][0]]
        has_more = [i for i, layout in enumerate(layouts) if known[layout][1]]
        inputs = np.full(count, -1, np.int32)
        if has_inputs:
            dump = orjson.dumps
            texts = [dump(known[layouts[i]][2](args[i])) for i in has_inputs]
            inputs[has_inputs] = self.inputs.numbers(texts)
        external = _integers([a.get("External id", 0) for a in args])
        sequence = _integers([a.get("Sequence number", -1) for a in args])
        forward = _integers([a.get("Fwd thread id", 0) for a in args])
        stack, extra = np.full(count, -1, np.int32), np.full(count, -1, np.int32)
        unfinished = np.zeros(count, bool)
        flops = np.full(count, -1, np.int64)
        if has_more:
            self._add_more(
                [args[i] for i in has_more], np.array(has_more), external, stack, extra, unfinished, flops
            )
        name, thread, start, length = self._common(group)
        self.host.add(
            count,
            name=name,
            thread=thread,
            start=start,
            length=length,
            kind=kind,
            external=external,
            sequence=sequence,
            forward=forward,
            inputs=inputs,
            stack=stack,
            extra=extra,
            flops=flops,
            correlation=-1,
            unfinished=unfinished,
            origin=0,
        )

    def _add_more(
        self,
        args: list[dict[str, Any]],
        rows: np.ndarray,
        external: np.ndarray,
        stack: np.ndarray,
        extra: np.ndarray,
        unfinished: np.ndarray,
        flops: np.ndarray,
    ) -> None:
        """The rarer arguments of ops."""
        for row, given in zip(rows.tolist(), args):
            text = given.get("Call stack")
            if isinstance(text, str) and text:
                stack[row] = self.stacks[text]
            if given.get("finished") is False:
                unfinished[row] = True
            if "external id" in given:
                external[row] = int(given["external id"])
            for key in _FLOPS:
                if isinstance(given.get(key), (int, float)):
                    flops[row] = int(given[key])
            rest = {key: value for key, value in given.items() if key not in _KNOWN and key not in _FLOPS}
            if rest:
                extra[row] = self.extras[orjson.dumps(rest)]

    def _add_runtime(self, group: list[dict[str, Any]]) -> None:
        args = _arguments(group)
        external = _integers([a.get("External id", 0) or a.get("external id", 0) for a in args])
        correlation = _integers([a.get("correlation", -1) for a in args])
        name, thread, start, length = self._common(group)
        self.host.add(
            len(group),
            name=name,
            thread=thread,
            start=start,
            length=length,
            kind=RUNTIME,
            external=external,
            sequence=-1,
            forward=0,
            inputs=-1,
            stack=-1,
            extra=-1,
            flops=-1,
            correlation=correlation,
            unfinished=False,
            origin=1,
        )

    def _add_frames(self, group: list[dict[str, Any]]) -> None:
        args = _arguments(group)
        own = _integers([a.get("Python id", -1) for a in args])
        parent = _integers([-1 if (p := a.get("Python parent id")) is None else p for a in args])
        module = _integers([a.get("Python module id", -1) for a in args])
        name, thread, start, length = self._common(group)
        self.frames.add(
            len(group),
            name=name,
            thread=thread,
            start=start,
            length=length,
            own=own,
            parent=parent,
            module=module,
        )

    def _add_device(self, kind: int, group: list[dict[str, Any]]) -> None:
        args = [dict(a) for a in _arguments(group)]
        external = _integers([a.pop("External id", None) or a.pop("external id", 0) for a in args])
        correlation = _integers([a.pop("correlation", -1) for a in args])
        device = _integers([_whole(a.pop("device", None), e["pid"]) for a, e in zip(args, group)])
        stream = _integers([_whole(a.pop("stream", None), e["tid"]) for a, e in zip(args, group)])
        extra = self.device_extras.numbers(map(orjson.dumps, args))
        empty = self.device_extras.get(b"{}", -1)
        extra = np.where(extra == empty, np.int32(-1), extra)
        name, thread, start, length = self._common(group)
        self.device.add(
            len(group),
            name=name,
            thread=thread,
            start=start,
            length=length,
            kind=kind,
            device=device,
            stream=stream,
            external=external,
            correlation=correlation,
            extra=extra,
        )

    def _add_spans(self, group: list[dict[str, Any]]) -> None:
        start, _ = _nanoseconds([e["ts"] for e in group])
        length, _ = _nanoseconds([e["dur"] for e in group])
        self.spans += zip(start.tolist(), (start + np.maximum(length, 0)).tolist())

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
        start, _ = _nanoseconds([e["ts"] for e in group])
        nbytes = _integers([a.get("Bytes", 0) for a in args])
        address = _integers([a.get("Addr", 0) for a in args])
        total = _integers([a.get("Total Allocated", -1) for a in args])
        kind = _integers([a.get("Device Type", 0) for a in args])
        device = _integers([a.get("Device Id", -1) for a in args])
        thread = self.threads.numbers(zip([e["pid"] for e in group], [e["tid"] for e in group]))
        device = np.where(kind == 0, -1, np.maximum(device, 0))
        self.memory.add(
            len(group), thread=thread, start=start, nbytes=nbytes, address=address, total=total, device=device
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
            start, _ = _nanoseconds(times)
            self.counters.add(
                len(names), name=self.counter_names.numbers(names), start=start, value=np.array(values)
            )

    def _add_flows(self, group: list[dict[str, Any]]) -> None:
        start, _ = _nanoseconds([e["ts"] for e in group])
        thread = self.threads.numbers(zip([e["pid"] for e in group], [e["tid"] for e in group]))
        flow = self.flow_ids.numbers([(e.get("cat"), e["id"]) for e in group])
        begins = np.array([e["ph"] == "s" for e in group], bool)
        self.flows.add(len(group), flow=flow, begins=begins, thread=thread, start=start)

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
    return [e.get("args") or {} for e in group]


def _layout(keys: tuple) -> tuple[bool, bool, Any]:
    """Of a tuple of keys: whether inputs are among them, whether anything rare is, and what takes the inputs out."""
    inputs = [key for key in _INPUTS if key in keys]
    rare = bool({*keys} - (_KNOWN - {"Call stack", "finished", "external id"}))
    if len(inputs) == len(_INPUTS):
        return True, rare, itemgetter(*_INPUTS)
    return bool(inputs), rare, lambda args: tuple([args.get(key) for key in _INPUTS])


def _on_device(event: dict[str, Any]) -> bool:
    args = event.get("args")
    return isinstance(args, dict) and ("Stream Id" in args or ("stream" in args and "device" in args))


def _text(value: Any) -> str:
    if value.__class__ is not str:
        raise TypeError
    return value


def _nanoseconds(times: list[Any]) -> tuple[np.ndarray, bool]:
    """Microseconds as whole nanoseconds, and whether they say no more than microseconds do."""
    us = np.array(times, np.float64)
    if not (np.abs(us) < LARGEST_US).all():
        raise ValueError
    whole = np.floor(us)
    rest = us - whole
    # a double holds nanoseconds up to 2**53 of them: beyond, its last digits are noise
    return whole.astype(np.int64) * 1000 + np.rint(rest * 1000).astype(np.int64), bool(
        not rest.any() or us[0] > 2**53 / 1000
    )


def _integers(values: list[Any]) -> np.ndarray:
    found = np.array(values)
    if found.dtype.kind not in "iub" and len(found):
        raise ValueError
    return found.astype(np.int64)


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


_NUMBERED = ("External id", "external id", "Sequence number", "Fwd thread id", "correlation", "Python id")
_NUMBERED += (
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
