"""Kineto traces: slices of a Chrome trace in, a Trace out. What is read here is what torch 1.8 to 2.14 and this package write, and
Chrome traces of others as far as they hold slices, instants and counters."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from ..inputs import Inputs
from ..settings import Settings
from ..trace import (
    ANNOTATION,
    BACKWARD_SCOPE,
    ENGINE,
    FUNCTION_SCOPE,
    NODE,
    OP,
    RUNTIME,
    USER_SCOPE,
    Counters,
    Device,
    Frames,
    Health,
    Memory,
    Trace,
)
from ..tree import thread_slices
from . import kernel_links as linking
from .collect import Arguments, Collector, Parsed
from .flops import flops_of
from .json_slices import Slices

_FLAGS = ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules")
_OWN = (
    "schemaVersion",
    "deviceProperties",
    "displayTimeUnit",
    "baseTimeNanoseconds",
    "trace_id",
    "host_name",
)
_ENGINE = "autograd::engine::evaluate_function: "
_NODE = re.compile(r"(?:Backward\d*|^torch::autograd::\w+)$")
# what torch records for its own sake and shows to nobody
_HIDDEN = frozenset(
    {
        "profiler::_record_function_enter",
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit",
        "aten::is_leaf",
        "aten::output_nr",
        "aten::_version",
    }
)
_SNAP_NS = 1_000  # times of whole microseconds: begin and length are rounded each
_FAR_US = 10**9  # times that begin this far from 0 are no times since the start of something short


def trace_of(slices: Slices, collector: Collector, source: str) -> Trace:
    """Put together what was collected from a file."""
    collector.pair()
    builder = _Builder(slices.top, collector, source)
    trace = builder.trace()
    return _with_health(trace, builder, slices)


class _Builder:
    """The steps from collected columns to a Trace; each needs those before it."""

    def __init__(self, top: dict[str, Any], collector: Collector, source: str) -> None:
        self.top, self.found, self.source = top, collector, source
        self.repaired: dict[str, int] = dict(collector.repaired)
        self.dropped: dict[str, int] = dict(collector.dropped)
        self.notes: list[str] = []
        # a name that is no text is one in the table
        self.texts = ["" if name is None else str(name) for name in collector.names]

    def trace(self) -> Trace:
        found, top = self.found, self.top
        host, frames, device, memory = (
            part.whole() for part in (found.host, found.frames, found.device, found.memory)
        )
        parts = (found.host, found.frames, found.device)
        self.repaired["of negative length"] = sum(part.short for part in parts)
        coarse = all(part.coarse for part in parts)
        beyond = sum(part.beyond for part in (*parts, found.memory))
        if beyond:
            self.dropped["no time"] = self.dropped.get("no time", 0) + beyond
        host, frames, device, memory = self._without_zeros(host, frames, device, memory)
        hidden = np.array([text in _HIDDEN for text in self.texts] or [False])[host["name"]]
        if hidden.any():
            host = _chosen(host, ~hidden)
        self.identity = self._identities(host, frames, memory)
        thread = self.identity[host["thread"]]
        order = np.lexsort((-host["length"], host["start"], thread))
        host = _chosen(host, order)
        thread = thread[order]
        start, end = host["start"], host["start"] + host["length"]
        if coarse:
            end = self._snapped(thread, start, end)
        frame_columns = self._frames(frames)
        name, names = _compact(host["name"], self.texts)
        kind, scope = _kinds(host["kind"], name, names)
        input_table = tuple([Inputs.from_json(text) for text in self.found.inputs])
        inputs = host["inputs"]
        stack, stacks = linking.stacks_of(
            thread, start, host["stack"], list(found.stacks), frame_columns, host["kind"] != RUNTIME
        )
        flops = np.maximum(host["flops"], 0)
        if top.get("with_flops") and (inputs >= 0).any():
            flops = np.where(host["flops"] >= 0, flops, flops_of(name, names, inputs, input_table))
        forward = linking.forward_threads(thread, start, host["sequence"], host["forward"])
        links = linking.Links(
            thread, start, end, host["external"], host["correlation"], host["kind"] == RUNTIME
        )
        device_columns = self._device(device, links)
        self.repaired["External ids that several events share"] = links.shared
        extra = host["extra"]
        return Trace(
            names=tuple(names),
            overloads=("",) * len(names),
            name=name,
            start_ns=start,
            end_ns=end,
            thread=thread,
            kind=kind,
            scope=scope,
            sequence=host["sequence"],
            forward_thread=forward,
            inputs=inputs,
            flops=flops,
            stack=stack,
            input_table=input_table,
            stacks=stacks,
            memory=self._memory(memory),
            frames=frame_columns,
            device=device_columns,
            counters=self._counters(),
            external=host["external"],
            extra=extra if (extra >= 0).any() else None,
            extra_table=Parsed(found.extras),
            health=Health(unfinished=int(host["unfinished"].sum())),
            origin_ns=_int(top.get("baseTimeNanoseconds"), 0),
            window_ns=self._window(start, end, device_columns, frame_columns),
            settings=self._settings(thread, device_columns, frame_columns, memory, inputs),
        )

    # ------------------------------------------------------------------------------------------------ rows

    def _without_zeros(self, *tables: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
        """Tables without events at time 0 where all others are far from it: their time was never written."""
        kept = []
        starts = [t["start"][t["start"] != 0] for t in tables]
        later = min((int(s.min()) for s in starts if len(s)), default=0)
        for table in tables:
            zero = table["start"] == 0
            if later > _FAR_US * 1000 and zero.any():
                self.dropped["at time 0"] = self.dropped.get("at time 0", 0) + int(zero.sum())
                table = _chosen(table, ~zero)
            kept.append(table)
        return kept

    def _identities(self, *tables: dict[str, np.ndarray]) -> np.ndarray:
        """A number for each (process, thread) of the file: the thread's own where that is one and no other process has it."""
        keys = list(self.found.threads)
        used = np.zeros(len(keys), bool)
        for table in tables:
            used[table["thread"]] = True
        made = np.zeros(len(keys), np.int64)
        taken: dict[int, tuple[Any, Any]] = {}
        self.threads: dict[int, tuple[Any, Any]] = {}
        for place, (pid, tid) in enumerate(keys):
            wanted = _thread_number(tid)
            both = _plain_key(pid), wanted if wanted is not None else tid
            if wanted is None or taken.get(wanted, both) != both or not 0 <= wanted < 2**62:
                wanted = next((n for n, key in taken.items() if key == both), None) or 2**62 + place
            taken[wanted] = both
            made[place] = wanted
            if used[place]:
                self.threads.setdefault(wanted, (pid, tid))
        return made if len(made) else np.zeros(1, np.int64)

    def _snapped(self, thread: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Ends that stick out of the events around them by no more than rounding are moved."""
        end, moved = linking.snapped(thread, start, end, _SNAP_NS)
        if moved:
            self.repaired[
                "ends moved by at most 1 us into the events around them (the file's times are rounded)"
            ] = moved
        return end

    def _frames(self, frames: dict[str, np.ndarray]) -> Frames:
        if not len(frames["start"]):
            return Frames.none()
        thread = self.identity[frames["thread"]]
        order = np.lexsort((frames["own"], -frames["length"], frames["start"], thread))
        frames, thread = _chosen(frames, order), thread[order]
        name, names = _compact(frames["name"], self.texts)
        start, end = frames["start"], frames["start"] + frames["length"]
        parent, repeated = linking.callers(thread, start, end, frames["own"], frames["parent"])
        if repeated:
            self.repaired["Python ids that several calls share"] = repeated
        return Frames(tuple(names), name, start, end, thread, parent, frames["module"])

    def _device(self, device: dict[str, np.ndarray], links: linking.Links) -> Device:
        if not len(device["start"]):
            return Device.none()
        order = np.lexsort((-device["length"], device["start"], device["stream"], device["device"]))
        device = _chosen(device, order)
        name, names = _compact(device["name"], self.texts)
        start = device["start"]
        flow = linking.flow_sources(
            self.found.flows.whole(),
            self.identity,
            device["thread"],
            start,
            links,
            device["correlation"],
        )
        launch, op = links.of(device["correlation"], device["external"], start, device["kind"], flow)
        return Device(
            tuple(names),
            name,
            start,
            start + device["length"],
            device["device"],
            device["stream"],
            device["kind"],
            device["correlation"],
            launch,
            op,
            device["extra"],
            Arguments(self.found.device_extras),
        )

    def _memory(self, memory: dict[str, np.ndarray]) -> Memory:
        order = np.argsort(memory["start"], kind="stable")
        memory = _chosen(memory, order)
        total = memory["total"]
        unknown = total < 0
        if unknown.any():
            total = np.where(unknown, _running(memory["nbytes"], memory["device"]), total)
        return Memory(
            memory["start"],
            memory["nbytes"],
            memory["address"],
            self.identity[memory["thread"]],
            total,
            (),
            memory["device"] if (memory["device"] >= 0).any() else None,
        )

    def _counters(self) -> Counters:
        found = self.found.counters.whole()
        order = np.argsort(found["start"], kind="stable")
        return Counters(
            tuple(self.found.counter_names),
            found["name"][order],
            found["start"][order],
            found["value"][order],
        )

    # ------------------------------------------------------------------------------------------------ the whole

    def _window(self, start: np.ndarray, end: np.ndarray, device: Device, frames: Frames) -> tuple[int, int]:
        found = self.found
        starts = [int(column.min()) for column in (start, device.start_ns, frames.start_ns) if len(column)]
        ends = [int(column.max()) for column in (end, device.end_ns, frames.end_ns) if len(column)]
        begun = min((span[0] for span in found.spans), default=found.window_start)
        ended = found.window_end
        if ended is None:
            ended = max((span[1] for span in found.spans), default=None)
        if begun is None or (starts and begun == 0 < min(starts)):
            begun = min(starts, default=0)
        if ended is None or ended < begun:
            ended = max([*ends, begun])
        return begun, ended

    def _settings(
        self,
        thread: np.ndarray,
        device: Device,
        frames: Frames,
        memory: dict[str, np.ndarray],
        inputs: np.ndarray,
    ) -> Settings:
        top = self.top
        flags = {flag: bool(top.get(flag)) for flag in _FLAGS}
        # files of 2021 do not say what was asked for
        flags["record_shapes"] |= bool((inputs >= 0).any()) and not flags["with_flops"]
        flags["profile_memory"] |= bool(len(memory["start"]))
        flags["with_stack"] |= bool(len(frames)) or bool(self.found.stacks)
        names, processes, labels = _metadata(self.found.metadata)
        pids = {_plain_key(pid) for pid, _ in self.threads.values()}
        numbers = [pid for pid in pids if isinstance(pid, int)]
        main = _main_thread(thread, self.threads)
        pid = self.threads[main][0] if main in self.threads else (numbers[0] if numbers else 0)
        distributed = top.get("distributedInfo")
        distributed = distributed if isinstance(distributed, dict) else {}
        known = {*_OWN, *_FLAGS, "traceEvents", "traceName", "distributedInfo", "mindtorch_v2"}
        return Settings(
            **flags,
            verbose=bool(self.found.stacks),
            from_file=True,
            source=self.source,
            foreign="mindtorch_v2" not in top,
            trace_id=_text_at(top, "trace_id"),
            host_name=_text_at(top, "host_name"),
            pid=pid if isinstance(pid, int) else 0,
            thread=main,
            threads={identity: self._thread_name(identity, names) for identity in self.threads},
            thread_pids={i: pid for i, (pid, _) in self.threads.items()} if len(pids) > 1 else {},
            processes={pid: processes.get(pid, "") for pid in pids},
            device=_device_name(self.found.categories, labels, processes) if len(device) else None,
            device_properties=tuple(_list_at(top, "deviceProperties")),
            rank=_int_at(distributed, "rank"),
            world_size=_int_at(distributed, "world_size"),
            distributed=distributed,
            metadata={key: value for key, value in top.items() if key not in known},
        )

    def _thread_name(self, identity: int, names: dict[tuple[Any, Any], Any]) -> tuple[int, str]:
        """The system's number of a thread and its name, as the file tells them."""
        pid, tid = self.threads[identity]
        number = _thread_number(tid)
        name = names.get((_plain_key(pid), tid)) or names.get((_plain_key(pid), number), "")
        return identity if number is None else number, str(name)


def _text_at(document: dict[str, Any], key: str) -> str:
    value = document.get(key)
    return value if isinstance(value, str) else ""


def _int_at(document: dict[str, Any], key: str) -> int | None:
    value = document.get(key)
    return value if isinstance(value, int) else None


def _list_at(document: dict[str, Any], key: str) -> list[Any]:
    value = document.get(key)
    return value if isinstance(value, list) else []


def _with_health(trace: Trace, builder: _Builder, slices: Slices) -> Trace:
    notes = [*slices.notes, *builder.notes]
    repaired = {what: n for what, n in builder.repaired.items() if n}
    dropped = {what: n for what, n in builder.dropped.items() if n}
    overlapping = linking.overlapping(trace)
    notes += [f"{n:,} repaired: {what}" for what, n in repaired.items()]
    notes += [f"{n:,} dropped: {what}" for what, n in dropped.items()]
    if overlapping:
        repaired["overlapping"] = overlapping
        notes.append(f"{overlapping:,} events overlap others of their thread without lying inside them")
    return replace(
        trace,
        health=Health(
            dropped=sum(dropped.values()) + slices.lost,
            unfinished=trace.health.unfinished,
            repaired=sum(repaired.values()) + slices.mended,
            notes=tuple(notes),
        ),
    )


# ---------------------------------------------------------------------------------------------------- columns


def _chosen(table: dict[str, np.ndarray], which: np.ndarray) -> dict[str, np.ndarray]:
    return {name: column[which] for name, column in table.items()}


def _compact(numbers: np.ndarray, texts: list[str]) -> tuple[np.ndarray, list[str]]:
    """Numbers of names, and the names that occur."""
    present = np.zeros(max(len(texts), 1), bool)
    present[numbers] = True
    place = np.cumsum(present) - 1
    return place[numbers].astype(np.int32), [texts[i] for i in np.flatnonzero(present[: len(texts)]).tolist()]


def _kinds(kind: np.ndarray, name: np.ndarray, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Kinds and scopes, which a file does not say: nodes of the backward pass are known by what runs them."""
    run = {text[len(_ENGINE) :] for text in names if text.startswith(_ENGINE)}
    by_name = np.array(
        [
            ENGINE if t.startswith(_ENGINE) else NODE if t in run or (not run and _NODE.search(t)) else OP
            for t in names
        ]
        or [OP],
        np.int8,
    )
    kind = np.where(kind == OP, by_name[name], kind).astype(np.int8)
    scope = np.full(len(kind), FUNCTION_SCOPE, np.int8)
    scope[kind == NODE] = BACKWARD_SCOPE
    scope[kind == ANNOTATION] = USER_SCOPE
    return kind, scope


def _running(nbytes: np.ndarray, device: np.ndarray) -> np.ndarray:
    """Sums of bytes so far, for each device by itself."""
    total = np.zeros(len(nbytes), np.int64)
    for which in np.unique(device).tolist():
        here = device == which
        total[here] = np.cumsum(nbytes[here])
    return total


# ---------------------------------------------------------------------------------------------------- processes, threads, devices


def _int(value: Any, otherwise: int) -> int:
    return value if value.__class__ is int and abs(value) < 2**62 else otherwise


def _thread_number(tid: Any) -> int | None:
    if isinstance(tid, bool):
        return None
    if isinstance(tid, int):
        return tid
    if isinstance(tid, str) and tid.isascii() and tid.isdecimal() and len(tid) < 19:
        return int(tid)
    return None


def _plain_key(pid: Any) -> Any:
    number = _thread_number(pid)
    return pid if number is None else number


def _metadata(
    events: list[dict[str, Any]],
) -> tuple[dict[tuple[Any, Any], str], dict[Any, str], dict[Any, str]]:
    """Names of threads and processes, and labels of processes."""
    threads: dict[tuple[Any, Any], str] = {}
    processes: dict[Any, str] = {}
    labels: dict[Any, str] = {}
    for event in events:
        args, pid, tid = event.get("args"), event.get("pid"), event.get("tid")
        if not isinstance(args, dict) or isinstance(pid, (list, dict)) or isinstance(tid, (list, dict)):
            continue
        what, pid = event.get("name"), _plain_key(pid)
        if what == "thread_name":
            threads[pid, tid] = str(args.get("name", "")).strip()
        elif what == "process_name":
            processes[pid] = str(args.get("name", "")).strip()
        elif what == "process_labels":
            labels[pid] = str(args.get("labels", "")).strip()
    return threads, processes, labels


def _main_thread(thread: np.ndarray, threads: dict[int, tuple[Any, Any]]) -> int:
    """The thread whose number is its process's; else the one with most events."""
    for identity, (pid, tid) in threads.items():
        if _plain_key(pid) == _thread_number(tid) and identity in (pid, tid, _thread_number(tid)):
            return identity
    parts = thread_slices(thread)
    if not parts:
        return next(iter(threads), 0)
    first, _ = max(parts, key=lambda part: part[1] - part[0])
    return int(thread[first])


def _device_name(categories: Any, labels: dict[Any, str], processes: dict[Any, str]) -> str:
    """torch's name of the kind of device that a file is from."""
    met = " ".join(
        [*map(str.lower, categories), *map(str.lower, labels.values()), *map(str.lower, processes.values())]
    )
    for word, device in (
        ("xpu", "xpu"),
        ("mtia", "mtia"),
        ("hpu", "hpu"),
        ("privateuse1", "privateuse1"),
        ("ascend", "npu"),
        ("npu", "npu"),
    ):
        if word in met:
            return device
    return "cuda"
