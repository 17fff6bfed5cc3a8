"""Kineto traces: slices of a Chrome trace in, a Trace out. Reads what torch 1.8 to 2.14 and this package write, and Chrome traces
of other programs as far as they hold slices, instants and counters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from ..allocations import totals_of_recording
from ..arrays import Array, BoolArray, IntArray, rows_by
from ..inputs import Inputs
from ..json_types import DEEPEST, JSONObject, JSONValue, nests_too_deep, whole_number
from ..recorded_health import KEY as HEALTH_KEY
from ..recorded_health import health_at, with_recorded
from ..settings import DEFAULT_DTYPE, EVENT_COST, NUM_THREADS, FrozenDict, Settings
from ..trace import (
    ANNOTATION,
    BACKWARD_SCOPE,
    ENGINE,
    FUNCTION_SCOPE,
    HIDDEN_EVENTS,
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
from ..tree import behind_owners, thread_bounds
from .collect import MOST_DEVICE_THREADS, OTHER_THREADS, Arguments, Collector, Parsed
from .column_builder import written_out
from .flops import flops_of
from .json_slices import Slices
from .kernel_links import (
    Links,
    callers,
    flow_sources,
    forward_threads,
    last_places,
    overlapping,
    snapped,
    stacks_of,
)
from .process_names import ThreadKey, plain_key, thread_number
from .synthetic_marks import owners_of, without_gaps

Table: TypeAlias = "dict[str, Array]"  # columns by name, see Collector

_FLAGS = ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules")
# further keys at the top of a file that have a place in a Trace
_KNOWN_KEYS = (
    "schemaVersion",
    "deviceProperties",
    "displayTimeUnit",
    "baseTimeNanoseconds",
    "trace_id",
    "host_name",
    "traceEvents",
    "traceName",
    "distributedInfo",
    EVENT_COST,
    NUM_THREADS,
    DEFAULT_DTYPE,
    HEALTH_KEY,
)
OWN_KEY = "mindtorch_v2"  # at the top of the files that this package writes
_ENGINE = "autograd::engine::evaluate_function: "
_NODE = re.compile(r"(?:Backward\d*|^torch::autograd::\w+)$")
_SNAP_NS = 1_000  # times of whole microseconds: begin and length are rounded each
_DEVICE_WORDS = (  # parts of names, and torch's name of the kind of device; the first one counts
    ("xpu", "xpu"),
    ("mtia", "mtia"),
    ("hpu", "hpu"),
    ("ascend", "npu"),
    ("npu", "npu"),
    ("privateuse1", "privateuse1"),
)
_FAR_US = (
    10**9
)  # microseconds: times this far from 0 are counted from an epoch, not from the start of the recording


def trace_of(slices: Slices, collector: Collector, source: str) -> Trace:
    """The Trace of the events that were collected from a file."""
    collector.pair()
    return built(slices.top, collector, source, Health(slices.lost, 0, slices.repaired, tuple(slices.notes)))


def built(top: JSONObject, collector: Collector, source: str, health: Health) -> Trace:
    """The Trace of collected columns. top: what a Kineto file says of itself at its top. health: what was found while reading."""
    builder = _Builder(top, collector, source)
    return _with_health(builder.trace(), builder, health)


def trace_of_columns(top: JSONObject, collector: Collector) -> tuple[Trace, Table]:
    """The Trace of columns that come from no file; and the columns of its host events, in the order of its rows."""
    builder = _Builder(top, collector, "")
    trace = builder.trace()
    return _with_health(trace, builder, Health()), builder.host


class _Builder:
    """The steps from collected columns to a Trace; each needs those before it."""

    def __init__(self, top: JSONObject, collector: Collector, source: str) -> None:
        deep = {key for key, value in top.items() if nests_too_deep(value)}
        self.top = {key: value for key, value in top.items() if key not in deep}
        self.collected, self.source = collector, source
        self.repaired = Counter(collector.repaired)
        self.dropped = Counter(collector.dropped)
        if deep:
            self.dropped[f"metadata that nests deeper than {DEEPEST} levels"] = len(deep)
        self.notes: list[str] = []
        self.lacks: list[str] = []
        # tables are taken before columns are sorted: each takes as much memory as its texts. Names of other types than text become texts
        self.texts = ["" if name is None else str(name) for name in collector.names.taken()]
        self.stacks, self.inputs = collector.stacks.taken(), collector.inputs.taken()
        self.extras, self.device_extras = collector.extras.taken(), collector.taken_device_extras()
        self.has_stacks = bool(self.stacks)

    def trace(self) -> Trace:
        collected, top = self.collected, self.top
        builders = (collected.host, collected.frames, collected.device, collected.memory)
        host, frames, device, memory = (builder.whole() for builder in builders)
        self.repaired["of negative length"] = sum(builder.negative_lengths for builder in builders[:3])
        self.dropped["no time"] += sum(builder.out_of_range for builder in builders)
        host, frames, device, memory = self._without_zeros(host, frames, device, memory)
        hidden = np.array([text in HIDDEN_EVENTS for text in self.texts] or [False])[host["name"]]
        if hidden.any():
            _choose(host, ~hidden)
        self._leave_out_marks(host, device)
        self.identity = self._identities(host, frames, memory)
        flows = self._flows(device)
        host = self.host = self._in_order(host)
        # columns are taken out where nothing else needs them: a file of 13,000,000 events has a GB of them
        thread = self.identity[host.pop("thread")]
        start, end = written_out(host.pop("start")), written_out(host.pop("length"))
        end += start
        recorded: BoolArray = host["synthetic"] == 0
        if all(builder.coarse for builder in builders[:3]):
            if recorded.all():
                end = self._snapped(thread, start, end)
            else:
                end[recorded] = self._snapped(thread[recorded], start[recorded], end[recorded])
        frame_columns = self._frames(frames)
        name, names = _compact(host.pop("name"), self.texts)
        is_runtime: BoolArray = host["kind"] == RUNTIME
        kind, scope = _kinds(host.pop("kind"), name, names)
        input_table = tuple([Inputs.from_json(text) for text in self.inputs])
        inputs = written_out(host.pop("inputs"))
        stack, stacks = stacks_of(
            thread, start, written_out(host.pop("stack")), self.stacks, frame_columns, ~is_runtime
        )
        flops = written_out(host.pop("flops"))
        unknown: BoolArray = flops < 0
        flops[unknown] = 0
        if top.get("with_flops") and (inputs >= 0).any():
            flops[unknown] = flops_of(name, names, inputs, input_table)[unknown]
        external = written_out(host.pop("external"))
        links = Links(thread, start, end, external, host.pop("correlation"), is_runtime, recorded)
        device_columns = self._device(device, links, flows)
        self.repaired["External ids that several events share"] = links.shared
        del links
        sequence, extra = written_out(host.pop("sequence")), host.pop("extra")
        settings = self._settings(thread, device_columns, frame_columns, memory, inputs)
        return Trace(
            names=tuple(names),
            overloads=("",) * len(names),
            name=name,
            start_ns=start,
            end_ns=end,
            thread=thread,
            kind=kind,
            scope=scope,
            sequence=sequence,
            forward_thread=forward_threads(thread, sequence, host.pop("forward")),
            inputs=inputs,
            flops=flops,
            stack=stack,
            input_table=input_table,
            stacks=stacks,
            memory=self._memory(memory),
            frames=frame_columns,
            device=device_columns,
            counters=self._counters(),
            external=external,
            extra=written_out(extra) if (extra >= 0).any() else None,
            extra_table=Parsed(self.extras),
            health=Health(unfinished=int(host["unfinished"].sum())),
            origin_ns=_base_ns(top),
            window_ns=self._window(start, end, device_columns, frame_columns),
            synthetic=None if recorded.all() else without_gaps(host["synthetic"]),
            settings=settings,
        )

    # ------------------------------------------------------------------------------------------------ rows

    def _without_zeros(self, *tables: Table) -> list[Table]:
        """Tables without events at time 0 where all others are far from it: their time was never written."""
        kept: list[Table] = []
        starts = [t["start"][t["start"] != 0] for t in tables]
        earliest = min((int(s.min()) for s in starts if len(s)), default=0)
        for table in tables:
            zero = table["start"] == 0
            if earliest > _FAR_US * 1000 and zero.any():
                self.dropped["at time 0"] += int(zero.sum())
                _choose(table, ~zero)
            kept.append(table)
        return kept

    def _leave_out_marks(self, host: Table, device: Table) -> None:
        """Leave out the host's rows that only hold the tail of an arrow to a kernel: torch_npu's Kineto files have them in place of the
        launching calls, with the kernel's name and start and no length."""
        candidates = np.flatnonzero(
            (host["kind"] == RUNTIME) & (host["length"] == 0) & (host["correlation"] < 0)
        )
        if not len(candidates) or not len(device["start"]):
            return
        name, start = host["name"][candidates], host["start"][candidates]
        marks = candidates[last_places(device["name"], device["start"], name, start, len(self.texts)) >= 0]
        if len(marks):
            self.lacks.append(
                f"the calls that launched kernels were not recorded: {len(marks):,} rows in their place have the kernels' names and starts"
            )
            is_other = np.ones(len(host["start"]), bool)
            is_other[marks] = False
            _choose(host, is_other)

    def _in_order(self, host: Table) -> Table:
        """Events by (thread, start, longest first), synthetic ones directly after the recorded ones that they stand in. Of events with equal
        times, runtime calls come last, and the others in the order of their numbers, which ops get when they begin: rows are not in the order
        of the file, as readers put events with the same keys together."""
        any_marked = bool(host["synthetic"].any())
        if any_marked:
            _choose(host, np.argsort(host["external"], kind="stable"))
        rank = np.unique(self.identity, return_inverse=True)[1].astype(np.int32)
        thread = rank[host["thread"]]
        order = _outer_first(
            (thread, host["start"]), host["length"], host["kind"] == RUNTIME, host["external"]
        )
        if any_marked:
            is_op = host["kind"] != RUNTIME
            owner = owners_of(host["synthetic"], thread, host["start"], host["external"], is_op)
            alone = owner < 0
            if alone.any():
                self.dropped["synthetic, without the event that they stand in"] = int(alone.sum())
                _choose(host, ~alone)
                return self._in_order(host)
            order = behind_owners(order, owner)
        del thread
        _choose(host, order)
        return host

    def _identities(self, *tables: Table) -> IntArray:
        """A number for each (process, thread) of these tables: the thread's own where it is a number that no other process uses."""
        self.has_other_threads = OTHER_THREADS in self.collected.threads
        keys = self.collected.threads.taken()
        used = np.zeros(len(keys), bool)
        for table in tables:
            used[table["thread"]] = True
        identities = np.full(len(keys), -1, np.int64)
        key_of: dict[int, ThreadKey] = {}  # by identity: the thread's own number
        identity_of: dict[ThreadKey, int] = {}  # other identities, of threads that cannot have their number
        self.threads: dict[int, ThreadKey] = {}  # by identity
        for place in np.flatnonzero(used).tolist():
            pid, tid = given = keys[place]
            identity = thread_number(tid)
            key = plain_key(pid), identity if identity is not None else tid
            if key == given:
                key = given  # a file may have a thread for each of its events: one object for each is enough
            if identity is None or not 0 <= identity < 2**62 or key_of.setdefault(identity, key) != key:
                identity = identity_of.setdefault(key, 2**62 + place)
            identities[place] = identity
            self.threads.setdefault(identity, given)
        return identities if len(identities) else np.zeros(1, np.int64)

    def _snapped(self, thread: IntArray, start: IntArray, end: IntArray) -> IntArray:
        """Ends after the end of the enclosing event by no more than rounding are moved to it."""
        end, moved = snapped(thread, start, end, _SNAP_NS)
        if moved:
            self.repaired[
                "ends moved by at most 1 us into the events around them (the file's times are rounded)"
            ] = moved
        return end

    def _frames(self, frames: Table) -> Frames:
        if not len(frames["start"]):
            return Frames.none()
        thread = self.identity[frames["thread"]]
        order = _outer_first((thread, frames["start"]), frames["length"], frames["own"])
        _choose(frames, order)
        thread = thread[order]
        del order
        start, end = written_out(frames.pop("start")), written_out(frames.pop("length"))
        end += start
        parent, repeated = callers(thread, start, end, frames.pop("own"), frames.pop("parent"))
        if repeated:
            self.repaired["Python ids that several calls share"] = repeated
        name, names = _compact(frames.pop("name"), self.texts)
        return Frames(tuple(names), name, start, end, thread, parent, written_out(frames.pop("module")))

    def _flows(self, device: Table) -> tuple[IntArray, IntArray, IntArray]:
        """Where flows to the rows of a device come from, see `flow_sources`. Its rows are in the order of those of the Trace after that. Flows
        are no part of a Trace: they are freed before its columns are written out."""
        flows = self.collected.flows.whole()
        if len(flows["start"]) and self.has_other_threads:
            self.lacks.append(
                f"flows to devices were followed to the first {MOST_DEVICE_THREADS:,} processes and threads"
            )
        order = _outer_first((device["device"], device["stream"], device["start"]), device["length"])
        _choose(device, order)
        del order
        return flow_sources(flows, self.identity, device["thread"], device["start"], device["correlation"])

    def _device(self, device: Table, links: Links, flows: tuple[IntArray, IntArray, IntArray]) -> Device:
        if not len(device["start"]):
            return Device.none()
        del device["thread"]
        # links are looked for before columns are written out
        launch, op = links.of(
            device["correlation"], device.pop("external"), device["start"], device["kind"], flows
        )
        _write_out(device)
        name, names = _compact(device.pop("name"), self.texts)
        start, end = device["start"], device.pop("length")
        end += start
        return Device(
            tuple(names),
            name,
            start,
            end,
            device["device"],
            device["stream"],
            device["kind"],
            device["correlation"],
            launch,
            op,
            device["extra"],
            Arguments(self.device_extras),
        )

    def _memory(self, memory: Table) -> Memory:
        _choose(memory, np.argsort(memory["start"], kind="stable"))
        total = _totals(memory)
        is_on_device = bool((memory["device"] >= 0).any())
        return Memory(
            written_out(memory["start"]),
            written_out(memory["nbytes"]),
            written_out(memory["address"]),
            self.identity[memory["thread"]],
            total,
            (),
            written_out(memory["device"]) if is_on_device else None,
        )

    def _counters(self) -> Counters:
        counters = self.collected.counters.whole()
        _choose(counters, np.argsort(counters["start"], kind="stable"))
        _write_out(counters)
        names = tuple(self.collected.counter_names)
        return Counters(names, counters["name"], counters["start"], counters["value"])

    # ------------------------------------------------------------------------------------------------ the whole

    def _window(self, start: IntArray, end: IntArray, device: Device, frames: Frames) -> tuple[int, int]:
        """When recording began and ended: as the file says, else the first start and the last end."""
        collected = self.collected
        starts = [int(column.min()) for column in (start, device.start_ns, frames.start_ns) if len(column)]
        ends = [int(column.max()) for column in (end, device.end_ns, frames.end_ns) if len(column)]
        begun = collected.window_start if collected.span is None else collected.span[0]
        ended = collected.window_end
        if ended is None:
            ended = None if collected.span is None else collected.span[1]
        if begun is None or (starts and begun == 0 < min(starts)):
            begun = min(starts, default=0)
        if ended is None or ended < begun:
            ended = max([*ends, begun])
        return begun, ended

    def _settings(
        self, thread: IntArray, device: Device, frames: Frames, memory: Table, inputs: IntArray
    ) -> Settings:
        top, collected = self.top, self.collected
        flags = {flag: bool(top.get(flag)) for flag in _FLAGS}
        process_names = collected.process_names.processes
        device_words = chain(
            collected.categories, collected.process_names.labels.values(), process_names.values()
        )
        # a file may have a process for each of its events: no copies of such tables
        keys = (plain_key(pid) for pid, _ in self.threads.values())
        processes = FrozenDict((key, process_names.get(key, "")) for key in keys)
        has_several = len(processes) > 1
        thread_pids = FrozenDict((i, pid) for i, (pid, _) in self.threads.items() if has_several)
        main = _main_thread(thread, self.threads)
        first = next((pid for pid in processes if isinstance(pid, int)), 0)
        pid = self.threads[main][0] if main in self.threads else first
        distributed = _object_at(top, "distributedInfo")
        known = {*_KNOWN_KEYS, *_FLAGS, OWN_KEY}
        # files of 2021 have no flags: what was recorded shows in the events
        return Settings(
            record_shapes=flags["record_shapes"] or (bool((inputs >= 0).any()) and not flags["with_flops"]),
            profile_memory=flags["profile_memory"] or bool(len(memory["start"])),
            with_stack=flags["with_stack"] or bool(len(frames)) or self.has_stacks,
            with_flops=flags["with_flops"],
            with_modules=flags["with_modules"],
            verbose=self.has_stacks,
            from_file=True,
            source=self.source,
            foreign=OWN_KEY not in top,
            trace_id=_text_at(top, "trace_id"),
            host_name=_text_at(top, "host_name"),
            pid=pid if isinstance(pid, int) else 0,
            thread=main,
            threads=self._named_threads(collected.process_names.threads),
            thread_pids=thread_pids,
            processes=processes,
            device=_device_name(device_words) if len(device) else None,
            device_properties=tuple(_list_at(top, "deviceProperties")),
            event_cost_ns=_cost_at(top, EVENT_COST),
            num_threads=_int_at(top, NUM_THREADS) or 0,
            default_dtype=_text_at(top, DEFAULT_DTYPE) or Settings.default_dtype,
            rank=_int_at(distributed, "rank"),
            world_size=_int_at(distributed, "world_size"),
            distributed=distributed,
            metadata={key: value for key, value in top.items() if key not in known},
        )

    def _named_threads(self, names: Mapping[ThreadKey, str]) -> dict[int, tuple[int, str]]:
        """By identity the system's number of a thread and its name, as the file has them. In place of `threads`: a file may have as many
        threads as events."""
        threads: dict[int, Any] = self.threads
        self.threads = {}
        for identity, (pid, tid) in threads.items():
            number = thread_number(tid)
            name = names.get((plain_key(pid), tid)) or names.get((plain_key(pid), number), "")
            threads[identity] = identity if number is None else number, name
        return threads


def _text_at(document: JSONObject, key: str) -> str:
    value = document.get(key)
    return value if isinstance(value, str) else ""


def _int_at(document: JSONObject, key: str) -> int | None:
    return whole_number(document.get(key))


def _cost_at(document: JSONObject, key: str) -> float | None:
    value = document.get(key)
    known = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e9
    return float(value) if known else None  # type: ignore[arg-type]


def _list_at(document: JSONObject, key: str) -> list[JSONValue]:
    value = document.get(key)
    return value if isinstance(value, list) else []


def _object_at(document: JSONObject, key: str) -> JSONObject:
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def _base_ns(top: JSONObject) -> int:
    """What times count from, in nanoseconds since the epoch."""
    base = top.get("baseTimeNanoseconds")
    return base if base.__class__ is int and abs(base) < 2**62 else 0


def _with_health(trace: Trace, builder: _Builder, read: Health) -> Trace:
    """A trace with what was found while its file was read and while it was built, and with what the file says of its recording."""
    notes = [*read.notes, *builder.notes]
    repaired = {kind: count for kind, count in builder.repaired.items() if count}
    dropped = {reason: count for reason, count in builder.dropped.items() if count}
    overlap_count = overlapping(trace)
    notes += [f"{count:,} repaired: {kind}" for kind, count in repaired.items()]
    notes += [f"{count:,} dropped: {reason}" for reason, count in dropped.items()]
    if overlap_count:
        notes.append(f"{overlap_count:,} events overlap others of their thread without lying inside them")
    found = Health(
        dropped=sum(dropped.values()) + read.dropped,
        unfinished=trace.health.unfinished,
        repaired=sum(repaired.values()) + overlap_count + read.repaired,
        notes=tuple(notes),
        lacks=(*read.lacks, *builder.lacks),
    )
    return replace(trace, health=with_recorded(found, health_at(builder.top)))


# ---------------------------------------------------------------------------------------------------- columns


def _choose(table: Table, which: IntArray | BoolArray) -> None:
    """Leave these rows in a table, in this order. One column after the other: only one of them is there twice."""
    if which.dtype != bool and bool((which[1:] > which[:-1]).all()) and len(which) == len(table["start"]):
        return  # all of them, as they are
    count = int(np.count_nonzero(which)) if which.dtype == bool else len(which)
    for name, column in table.items():
        is_constant = column.strides == (0,)
        table[name] = np.broadcast_to(column[:1], count) if is_constant else column[which]


def _write_out(table: Table) -> None:
    """Give each value of a table a place in memory."""
    for name, column in table.items():
        table[name] = written_out(column)


def _outer_first(keys: tuple[IntArray, ...], length: IntArray, *further: IntArray | BoolArray) -> IntArray:
    """The order of rows by keys; where those are equal the longest first, then by the further ones. Sorting by times alone is quick, as a
    file has them almost in order; lengths are in none."""
    order: IntArray = np.lexsort(keys[::-1])
    begins = np.zeros(len(order), bool)  # whether a row's keys are others than those of the row before
    begins[:1] = True
    for key in keys:
        sorted_key = key[order]
        begins[1:] |= sorted_key[1:] != sorted_key[:-1]
        del sorted_key
    if begins.all():
        return order
    # rows that share their keys with a neighbour are sorted among themselves: their places in the order stay theirs
    tied = ~begins
    tied[:-1] |= tied[1:]
    rows = order if tied.all() else order[tied]
    group = np.cumsum(begins[tied], dtype=np.int32 if len(rows) < 2**31 else np.int64)
    shortest = length[rows]
    np.negative(shortest, out=shortest)
    place = np.lexsort((*[key[rows] for key in further[::-1]], shortest, group))
    del group, shortest
    if rows is order:
        return rows[place]
    order[tied] = rows[place]
    return order


def _compact(numbers: IntArray, texts: list[str]) -> tuple[IntArray, list[str]]:
    """Numbers of names, and the names that occur."""
    present = np.zeros(max(len(texts), 1), bool)
    present[numbers] = True
    place = (np.cumsum(present) - 1).astype(np.int32)
    return place[numbers], [texts[i] for i in np.flatnonzero(present[: len(texts)]).tolist()]


def _kinds(kind: IntArray, name: IntArray, names: list[str]) -> tuple[IntArray, IntArray]:
    """Kinds and scopes, which a file does not have: nodes of the backward pass are known by the engine's events around them."""
    node_names = {text[len(_ENGINE) :] for text in names if text.startswith(_ENGINE)}

    def kind_of(text: str) -> int:
        if text.startswith(_ENGINE):
            return ENGINE
        is_node = text in node_names if node_names else _NODE.search(text) is not None
        return NODE if is_node else OP

    by_name = np.array([kind_of(text) for text in names] or [OP], np.int8)
    kind = np.where(kind == OP, by_name[name], kind).astype(np.int8)
    scope = np.full(len(kind), FUNCTION_SCOPE, np.int8)
    scope[kind == NODE] = BACKWARD_SCOPE
    scope[kind == ANNOTATION] = USER_SCOPE
    return kind, scope


def _totals(memory: Table) -> IntArray:
    """Running totals of memory: of devices those of the file, as far as it has them; of the CPU those of this recording.

    torch's own total of the CPU grows from one recording of a process to the next, as it misses what is freed between them, and
    does not know memory that processes share.
    """
    summed = _running_totals(memory["nbytes"], memory["device"])
    total = written_out(memory.pop("total"))
    unknown = total < 0
    total[unknown] = summed[unknown]
    on_cpu = memory["device"] < 0
    is_same = bool((total[on_cpu] == summed[on_cpu]).all())
    del summed, unknown
    cpu: BoolArray | slice = slice(None) if on_cpu.all() else on_cpu  # a slice copies nothing
    if not is_same and (memory["address"][cpu] != 0).all():
        total[cpu] = totals_of_recording(memory["address"][cpu], memory["nbytes"][cpu])
    return total


def _running_totals(nbytes: IntArray, device: IntArray) -> IntArray:
    """Running sums of bytes, for each device by itself."""
    if bool((device[1:] == device[:-1]).all()):
        return np.cumsum(nbytes)
    total = np.zeros(len(nbytes), np.int64)
    for _, rows in rows_by(device):
        total[rows] = np.cumsum(nbytes[rows])
    return total


# ---------------------------------------------------------------------------------------------------- processes, threads, devices


def _main_thread(thread: IntArray, threads: dict[int, ThreadKey]) -> int:
    """The thread whose number is its process's; else the one with most events."""
    for identity, (pid, tid) in threads.items():
        if plain_key(pid) == thread_number(tid) and identity in (pid, tid, thread_number(tid)):
            return identity
    if not len(thread):
        return next(iter(threads), 0)
    bounds = thread_bounds(thread)
    return int(thread[bounds[np.argmax(np.diff(bounds))]])


def _device_name(words: Iterable[str]) -> str:
    """torch's name of the kind of device, from the categories of events and the names and labels of processes."""
    present = {device for text in words for word, device in _DEVICE_WORDS if word in text.lower()}
    return next((device for _, device in _DEVICE_WORDS if device in present), "cuda")
