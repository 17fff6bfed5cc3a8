"""What the two forms of an Ascend capture have in common: its folder, tasks, inputs, links and memory as columns in; filled tables
of a Collector, and the Trace made of them, out.

torch_npu's profiler writes a capture as text (trace_view.json beside CSV files) or as a database. A task of the device is a
kernel, a copy, a wait, or a part of a collective; only the first two and the collectives themselves are work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import orjson

from ..arrays import Array, BoolArray, IntArray
from ..json_types import JSONObject, JSONValue
from ..settings import CAPTURE_OUTPUT as OUTPUT
from ..trace import (
    ANNOTATION,
    DEVICE_COPY,
    DEVICE_KERNEL,
    DEVICE_PART,
    DEVICE_SET,
    DEVICE_SYNC,
    OP,
    RUNTIME,
    Health,
    Trace,
)
from .collect import Collector
from .errors import NotATraceError
from .kernel_links import Links
from .kineto import built

NONE = 4_294_967_295  # an unsigned number that stands for none in rank and model ids
KB, MB = 1 << 10, 1 << 20
LARGEST_NS = 4 * 10**18  # a start and a length together fit 64 bits
LARGEST_BYTES = 1 << 52
# of collectives whose stream is not known, one for each group; -1 stands for all streams in tables of usage
FIRST_UNKNOWN_STREAM = -2

# ---------------------------------------------------------------------------------------------------- tasks of the device

# what tasks of the hardware are, by the words in their name or type
_WAITS = re.compile(
    r"wait|record|profiling_(en|dis)able|place_?holder|maintenance|label|end_?graph|nop", re.IGNORECASE
)
_COPIES = re.compile(r"memcpy", re.IGNORECASE)
_SETS = re.compile(r"memset", re.IGNORECASE)
_TRANSFERS = re.compile(
    r"sdma|rdma|write[ _]value|reduce_?inline|reduce_?async|notify|capture|ffts", re.IGNORECASE
)  # only collectives have tasks of these types that are no copies
_ANNOTATIONS = re.compile(
    r"ProfilerStep#\d+$|Optimizer\.\w+#|enumerate\(DataLoader\)|DistributedDataParallel\.forward|##"
)


def task_kinds(labels: Sequence[tuple[str, str]]) -> IntArray:
    """The kind of device row by (name, type) of a task."""
    return np.array([_task_kind(*label) for label in labels] or [DEVICE_KERNEL], np.int8)


def _task_kind(name: str, type_: str) -> int:
    # kernels are named by their ops, which may have any of the words: their type decides
    if _is_core(type_):
        return DEVICE_KERNEL
    if _COPIES.search(name):
        return DEVICE_COPY
    if _SETS.search(name):
        return DEVICE_SET
    if _WAITS.search(name) or _WAITS.search(type_):
        return DEVICE_SYNC
    return DEVICE_PART if _TRANSFERS.search(type_) else DEVICE_KERNEL


_CORE = re.compile(
    r"AI_?CORE|AI_?VEC|AI_?CPU|KERNEL|MIX|DSA|DVPP|STARS_COMMON|DSS|HCCL_AI_CPU|AIV|AIC\b", re.IGNORECASE
)


def _is_core(type_: str) -> bool:
    """Whether tasks of a type run on cores and computing units of the device."""
    return _CORE.search(type_) is not None


def op_kinds(names: Sequence[str]) -> IntArray:
    """OP or ANNOTATION by name of an event of the framework, which does not tell the two apart."""
    return np.array([ANNOTATION if _ANNOTATIONS.match(name) else OP for name in names] or [OP], np.int8)


# ---------------------------------------------------------------------------------------------------- inputs

_SEPARATOR = re.compile(r";[\r\n]*")


def inputs_json(dims: str, types: str) -> bytes:
    """The inputs of an op as `Inputs.from_json` takes them, from the texts of its dims and types: one entry per argument, between
    semicolons. Some versions have the two texts the wrong way round."""
    if any(c.isalpha() for c in dims) and not any(c.isalpha() for c in types):
        dims, types = types, dims
    kinds = ["" if kind == "None" else kind for kind in _SEPARATOR.split(types)] if types else []
    return orjson.dumps([None, kinds, None, [_sizes(text) for text in _SEPARATOR.split(dims)]])


def _sizes(text: str) -> list[int] | list[list[int]]:
    """Sizes of a tensor (`32,3,224,224`), or of the tensors of a list (`[[2,3],[4]]`)."""
    text = text.strip()
    if text.startswith("["):
        try:
            value: list[int] | list[list[int]] = orjson.loads(text)
            return value
        except ValueError:
            return []
    return [int(size) for size in text.split(",") if size.strip().lstrip("-").isdecimal()]


def stack_text(text: str) -> str:
    """A call stack as Kineto words it: frames between semicolons, without line ends."""
    return text.replace("\r\n", "").replace("\n", "")


# ---------------------------------------------------------------------------------------------------- collectives

_HCOM = re.compile(r"hcom_([A-Za-z]+?)_*(?:_(\d+)_(\d+)_\d+)?$")
_COLLECTIVES = {
    "allreduce": "allreduce",
    "allgather": "allgather",
    "allgatherv": "allgatherv",
    "reducescatter": "reduce_scatter",
    "reducescatterv": "reduce_scatter",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "scatter": "scatter",
    "gather": "gather",
    "alltoall": "all_to_all",
    "alltoallv": "all_to_allv",
    "alltoallvc": "all_to_allv",
    "send": "send",
    "receive": "recv",
    "batchsendrecv": "batch_send_recv",
    "barrier": "barrier",
}
_DTYPES = {
    "FP32": "Float",
    "FP16": "Half",
    "BFP16": "BFloat16",
    "FP64": "Double",
    "INT8": "Char",
    "INT16": "Short",
    "INT32": "Int",
    "INT64": "Long",
    "UINT8": "Byte",
}


def collective_arguments(
    name: str, count: object, dtype: object, group: object, group_size: int, **further: JSONValue
) -> JSONObject:
    """The arguments of a collective under the names that NCCL's have, and further ones."""
    match = _HCOM.match(name)
    arguments: JSONObject = {}
    if match:
        arguments["Collective name"] = _COLLECTIVES.get(match[1].lower(), match[1].lower())
    if isinstance(count, (int, float)) and 0 <= count < LARGEST_BYTES:
        arguments["In msg nelems"] = int(count)
    if isinstance(dtype, str) and dtype:
        arguments["dtype"] = _DTYPES.get(dtype, dtype)
    if isinstance(group, str) and group:
        arguments["Process Group Name"] = group
    elif match and match[2]:
        arguments["Process Group Name"] = match[2]
    if group_size > 1:
        arguments["Group size"] = group_size
    if match and match[3]:
        arguments["Seq"] = int(match[3])
    return {**arguments, **{key: value for key, value in further.items() if value not in (None, "")}}


# ---------------------------------------------------------------------------------------------------- the folder of a capture


@dataclass(frozen=True)
class Capture:
    """What a capture's folder says beside its events."""

    output: Path | None  # the folder of the files that were opened
    info: JSONObject  # profiler_info
    metadata: JSONObject  # profiler_metadata
    folder: str  # name of the capture's folder; empty: not known

    @staticmethod
    def around(path: Path) -> Capture:
        """The capture that a trace_view.json or database is part of."""
        output = path.absolute().parent
        folders = [output.parent, output] if output.name == OUTPUT else [output]
        info: JSONObject = {}
        metadata: JSONObject = {}
        for folder in folders:
            for file in sorted(folder.glob("profiler_info*.json")):
                info = info or json_object(file)
            metadata = metadata or json_object(folder / "profiler_metadata.json")
        name = output.parent.name if output.name == OUTPUT else ""
        return Capture(output, info, metadata, name)

    @property
    def level(self) -> str:
        """`Level0`, `Level1` ...; empty: not known."""
        level = str(self._experimental.get("_profiler_level") or "")
        return level.rpartition(".")[2]

    @property
    def _common(self) -> JSONObject:
        return _object(_object(self.info.get("config")).get("common_config"))

    @property
    def _experimental(self) -> JSONObject:
        return _object(_object(self.info.get("config")).get("experimental_config"))

    @property
    def rank(self) -> int | None:
        rank = self.info.get("rank_id")
        return rank if isinstance(rank, int) and rank >= 0 else None

    @property
    def world_size(self) -> int | None:
        """The number of ranks, where the recorded process groups say it."""
        sizes = [
            len(ranks)
            for group in _object(self.metadata.get("parallel_group_info")).values()
            if isinstance(ranks := _object(group).get("global_ranks"), list)
        ]
        return max(sizes, default=None)

    @property
    def host_name(self) -> str:
        """The host, from the folder's name: host_pid_time_ascend_pt, or _ms of MindSpore."""
        match = re.match(r"(.+)_\d+_\d{14,}_ascend_(?:pt|ms)$", self.folder)
        return match[1] if match else ""

    def top(self, **more: JSONValue) -> JSONObject:
        """What a Kineto file says of itself at its top."""
        common, experimental = self._common, self._experimental
        flags = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
        top: JSONObject = {flag: 1 for flag in flags if common.get(flag)}
        if self.rank is not None:
            top["distributedInfo"] = {
                "backend": "hccl",
                "rank": self.rank,
                **({"world_size": self.world_size} if self.world_size else {}),
            }
        if self.host_name:
            top["host_name"] = self.host_name
        settings: JSONObject = {
            **{key: common[key] for key in ("activities", "schedule") if key in common},
            **{key.lstrip("_"): value for key, value in experimental.items() if value is not None},
        }
        if settings:
            top["ascend_profiler"] = settings
        return {**top, **{key: value for key, value in more.items() if value not in (None, "", [])}}


def json_object(path: Path) -> JSONObject:
    """The JSON object of a small file; empty where there is none."""
    try:
        return _object(orjson.loads(path.read_bytes()))
    except (OSError, ValueError):
        return {}


def _object(value: object) -> JSONObject:
    return value if isinstance(value, dict) else {}


# ---------------------------------------------------------------------------------------------------- tables


@dataclass
class Tables:
    """The tables of a capture, as its reader fills them: columns by name. Times in nanoseconds since the epoch."""

    collector: Collector = field(default_factory=Collector)
    # name, thread, start, length, kind, sequence, forward, inputs, stack, connection, queue (-1: none)
    host: dict[str, Array] = field(default_factory=dict)
    # name, start, length, kind, device, stream, connection, extra, op (row of `host`; -1: none)
    device: dict[str, Array] = field(default_factory=dict)
    # name, thread, start, length, own, parent, module
    frames: dict[str, Array] = field(default_factory=dict)
    # start, name, value
    counters: dict[str, Array] = field(default_factory=dict)
    allocations: Allocations | None = None
    lacks: list[str] = field(default_factory=list)


@dataclass
class Allocations:
    """Memory of devices: allocations with their release, and the allocators' totals over time."""

    name: list[str]  # op that allocated
    size: IntArray  # bytes
    start: IntArray  # ns
    release: IntArray  # ns, -1: not released
    total: IntArray  # bytes allocated after the allocation, -1: not known
    release_total: IntArray
    device: IntArray
    component: list[str]  # of the records below
    time: IntArray
    allocated: IntArray  # bytes, -1: not known
    reserved: IntArray
    active: IntArray
    record_device: IntArray


def pair_keys(
    table: tuple[IntArray, IntArray], wanted: tuple[IntArray, IntArray]
) -> tuple[IntArray, IntArray]:
    """One number for each pair (group, value) of a table, and of what is looked for in it: in the order of (group, value). Values may be as
    far apart as numbers are."""
    values, rank = np.unique(np.concatenate([table[1], wanted[1]]), return_inverse=True)
    rank = rank.reshape(-1)
    count = len(table[1])
    return table[0] * len(values) + rank[:count], wanted[0] * len(values) + rank[count:]


def first_known(times: IntArray, otherwise: IntArray) -> IntArray:
    """Times; the others where they are not known. Memory is counted as free from its active release on, before it is released."""
    return np.where(times >= 0, times, otherwise)


def finished(tables: Tables, capture: Capture, top: JSONObject, source: str, health: Health) -> Trace:
    """The Trace of the tables of a capture. top: what the file itself says of the recording. source: the path that was given."""
    collector = tables.collector
    collector.dropped["no time"] += _drop_impossible_times(tables)
    host, device = tables.host, tables.device
    if not len(host["start"]) and not len(device["start"]) and not len(tables.frames["start"]):
        raise NotATraceError(f"{source or 'the file'}: an Ascend trace without events")
    starts = [t["start"] for t in (host, device, tables.frames) if len(t["start"])]
    origin = min(int(column.min()) for column in starts)
    for table in (host, device, tables.frames, tables.counters):
        table["start"] = table["start"] - origin
    names = list(map(str, collector.names))
    _find_ops(host, names)
    number = np.append(host["external"][host.pop("place")], 0)  # by row before sorting
    device["external"] = np.where(device["op"] >= 0, number[device["op"]], 0)
    device["correlation"] = device["connection"]
    device["thread"] = np.zeros(len(device["start"]), np.int32)
    _add(collector, host, device, tables)
    if tables.allocations is not None:
        _add_memory(collector, tables.allocations, host, names, origin)
    collector.categories["ascend"] = len(device["start"])
    top = {**capture.top(), **{k: v for k, v in top.items() if v not in (None, "", [])}}
    lacks = [*tables.lacks, *_lacks(tables, capture)]
    health = replace(health, lacks=tuple(lacks))
    return built({**top, "baseTimeNanoseconds": origin}, collector, source, health)


def in_range(table: dict[str, Array]) -> BoolArray:
    """Mask of the rows whose start and end are times since some epoch."""
    start, length = table["start"], table["length"]
    mask: BoolArray = (start >= 0) & (start < LARGEST_NS) & (length < LARGEST_NS)
    return mask


def _drop_impossible_times(tables: Tables) -> int:
    """Leave out rows whose times are beyond all clocks; how many there are."""
    known = in_range(tables.host)
    new_row = np.where(known, np.cumsum(known) - 1, -1)
    op = tables.device["op"]
    tables.device["op"] = np.where(op >= 0, np.append(new_row, -1)[op], -1)
    masks = [in_range(table) for table in (tables.host, tables.device, tables.frames)]
    tables.host, tables.device, tables.frames = (
        {name: column[mask] for name, column in table.items()}
        for table, mask in zip((tables.host, tables.device, tables.frames), masks)
    )
    counted = (tables.counters["start"] >= 0) & (tables.counters["start"] < LARGEST_NS)
    tables.counters = {name: column[counted] for name, column in tables.counters.items()}
    return sum(int((~mask).sum()) for mask in masks)


def _find_ops(host: dict[str, Array], names: list[str]) -> None:
    """Sort host rows into the order of a Trace and add `external`: of an op its own number, of a call the number of the op that it
    works for. Calls of the queue's thread work for the op that put them into the queue. `place`: where each row was sorted to."""
    count = len(host["start"])
    order = np.lexsort((-host["length"], host["start"], host["thread"]))
    host["place"] = np.empty(count, np.int64)
    host["place"][order] = np.arange(count)
    for key in host:
        if key != "place":
            host[key] = host[key][order]
    thread, start, kind = host["thread"], host["start"], host["kind"]
    end = start + host["length"]
    none = np.full(count, -1, np.int64)
    is_call: BoolArray = kind == RUNTIME
    everything = np.ones(count, bool)
    ops = Links(thread, start, end, none, none, is_call, everything)
    external = np.where(is_call, 0, np.arange(1, count + 1))
    calls = np.flatnonzero(is_call)
    around = np.full(count, -1, np.int64)
    around[calls] = ops.at(thread[calls], start[calls])
    # from the queue's other end
    queue = host["queue"]
    ends = np.flatnonzero(queue >= 0)
    if len(ends):
        takes = np.array([name.startswith("Dequeue") for name in names] or [False])[host["name"]]
        puts = ends[~takes[ends]]
        puts = puts[np.argsort(queue[puts], kind="stable")]
        taken = ends[takes[ends]]
        if len(puts) and len(taken):
            place = np.minimum(np.searchsorted(queue[puts], queue[taken]), len(puts) - 1)
            known = queue[puts[place]] == queue[taken]
            around[taken] = np.where(known, around[puts[place]], around[taken])
            is_take = np.zeros(count, bool)
            is_take[taken] = True
            inside = Links(thread, start, end, none, none, ~is_take, everything)
            lone = calls[around[calls] < 0]
            lone = lone[~is_take[lone]]
            take = inside.at(thread[lone], start[lone])
            around[lone] = np.where(take >= 0, around[np.maximum(take, 0)], -1)
    external[calls] = np.where(around[calls] >= 0, around[calls] + 1, 0)
    host["external"] = external


def _add(collector: Collector, host: dict[str, Array], device: dict[str, Array], tables: Tables) -> None:
    """Add the tables to the collector's columns."""
    count = len(host["start"])
    queue = host["queue"]
    extra = np.full(count, -1, np.int32)
    ends = np.flatnonzero(queue >= 0)
    if len(ends):  # both ends of the queue keep its number: their rows have no correlation with the device
        distinct, place = np.unique(queue[ends], return_inverse=True)
        numbers = [collector.extras[orjson.dumps({"correlation_id": n})] for n in distinct.tolist()]
        extra[ends] = np.array(numbers, np.int32)[place.reshape(-1)]
    collector.host.add_columns(
        {
            **{key: host[key] for key in ("name", "thread", "start", "length", "kind")},
            **{key: host[key] for key in ("external", "sequence", "forward", "inputs", "stack")},
            "extra": extra,
            "flops": np.full(count, -1, np.int64),
            "correlation": np.where(host["kind"] == RUNTIME, host["connection"], -1),
            "unfinished": np.zeros(count, bool),
            "synthetic": np.zeros(count, np.int8),
        },
        coarse=False,
    )
    keys = ("name", "thread", "start", "length", "kind", "device", "stream", "external", "correlation")
    collector.device.add_columns({key: device[key] for key in (*keys, "extra")}, coarse=False)
    collector.frames.add_columns(tables.frames, coarse=False)
    collector.counters.add_columns(tables.counters, coarse=False)


# ---------------------------------------------------------------------------------------------------- memory


def _add_memory(
    collector: Collector, memory: Allocations, host: dict[str, Array], names: list[str], origin: int
) -> None:
    """Allocations, their releases, and changes of the framework's total that belong to neither: releases of older memory. Each allocator's
    totals are counters."""
    memory = _possible(memory)
    _add_totals(collector, memory, origin)
    released = np.flatnonzero(memory.release >= 0)
    thread = _allocating_threads(memory, host, names, origin)
    engine = _is_of_engine(memory)
    columns: dict[str, Array] = {
        "start": np.concatenate([memory.start, memory.release[released]]),
        "nbytes": np.concatenate([memory.size, -memory.size[released]]),
        "address": np.concatenate([np.arange(1, len(engine) + 1), released + 1]),
        "total": np.concatenate([memory.total, memory.release_total[released]]),
        "device": np.concatenate([memory.device, memory.device[released]]),
        "thread": np.concatenate([thread, thread[released]]),
        "engine": np.concatenate([engine, engine[released]]),
    }
    for number in np.unique(np.concatenate([memory.record_device, memory.device])).tolist():
        columns = _with_other_changes(columns, memory, number, _main_place(collector))
    del columns["engine"]
    columns["start"] = columns["start"] - origin
    columns["thread"] = columns["thread"].astype(np.int32)
    collector.memory.add_columns(columns, coarse=False)


def _possible(memory: Allocations) -> Allocations:
    """Allocations and records without those whose times or sizes are beyond all clocks and memories."""
    rows = np.flatnonzero((memory.start >= 0) & (memory.start < LARGEST_NS) & (memory.size < LARGEST_BYTES))
    records = np.flatnonzero((memory.time >= 0) & (memory.time < LARGEST_NS))

    def bounded(values: IntArray, below: int) -> IntArray:
        return np.where((values >= 0) & (values < below), values, -1)

    return Allocations(
        name=[memory.name[row] for row in rows.tolist()],
        size=memory.size[rows],
        start=memory.start[rows],
        release=bounded(memory.release[rows], LARGEST_NS),
        total=bounded(memory.total[rows], LARGEST_BYTES),
        release_total=bounded(memory.release_total[rows], LARGEST_BYTES),
        device=memory.device[rows],
        component=[memory.component[row] for row in records.tolist()],
        time=memory.time[records],
        allocated=bounded(memory.allocated[records], LARGEST_BYTES),
        reserved=bounded(memory.reserved[records], LARGEST_BYTES),
        active=bounded(memory.active[records], LARGEST_BYTES),
        record_device=memory.record_device[records],
    )


def _is_of_engine(memory: Allocations) -> BoolArray:
    """Mask of the allocations that the graph engine made by itself, beside the framework's: those in the records of its own total."""
    component = np.array(memory.component or [""], object)[: len(memory.time)]
    named = np.array([name.startswith("cann::") for name in memory.name], bool)
    recorded: BoolArray = np.isin(memory.start, memory.time[component == "GE"])
    return named | (recorded & ~np.isin(memory.start, memory.time[component == "PTA"]))


def _with_other_changes(
    columns: dict[str, Array], memory: Allocations, number: int, thread: int
) -> dict[str, Array]:
    """The rows of memory with those changes of a device's recorded total that no row explains, and with the totals of both allocators.
    The engine's own records count a release only with the next one, so that its total is summed up."""
    is_own = np.array([component == "PTA" for component in memory.component] or [False], bool)
    rows = np.flatnonzero(is_own[: len(memory.time)])
    rows = rows[(memory.record_device[rows] == number) & (memory.allocated[rows] >= 0)]
    rows = rows[np.argsort(memory.time[rows], kind="stable")]
    time, allocated = memory.time[rows], memory.allocated[rows]
    if len(rows):
        known = np.flatnonzero((columns["device"] == number) & ~columns["engine"])
        place = np.searchsorted(time, columns["start"][known], side="right") - 1
        change = np.diff(allocated, prepend=allocated[:1])
        np.subtract.at(change, np.maximum(place, 0), columns["nbytes"][known])
        rest = np.flatnonzero(change[1:]) + 1
        further: dict[str, Array] = {
            "start": time[rest],
            "nbytes": change[rest],
            "address": np.arange(len(rest)) + columns["address"].max(initial=0) + 1,
            "total": allocated[rest],
            "device": np.full(len(rest), number, np.int64),
            "thread": np.full(len(rest), thread, np.int64),
            "engine": np.zeros(len(rest), bool),
        }
        columns = {key: np.concatenate([columns[key], further[key]]) for key in columns}
    here = np.flatnonzero(columns["device"] == number)
    here = here[np.argsort(columns["start"][here], kind="stable")]
    engine = columns["engine"][here]
    running = np.cumsum(np.where(engine, columns["nbytes"][here], 0))
    if engine.any():  # what was allocated before
        first = here[np.argmax(engine)]
        running += max(int(columns["total"][first] - columns["nbytes"][first]), 0)
    if len(rows):
        place = np.searchsorted(time, columns["start"][here], side="right") - 1
        before = int(allocated[0])
        columns["total"][here] = np.where(place >= 0, allocated[np.maximum(place, 0)], before) + running
    return columns


def _add_totals(collector: Collector, memory: Allocations, origin: int) -> None:
    """The totals of each allocator, as counters."""
    component = np.array(memory.component or [""], object)
    for name in sorted({*memory.component}):
        rows = np.flatnonzero(component == name)
        for word, column in (
            ("allocated", memory.allocated),
            ("reserved", memory.reserved),
            ("active", memory.active),
        ):
            known = rows[column[rows] >= 0]
            if len(known):
                number = collector.counter_names[f"memory of {name}: {word} (bytes)"]
                collector.counters.add_columns(
                    {
                        "name": np.full(len(known), number, np.int32),
                        "start": memory.time[known] - origin,
                        "value": column[known].astype(np.float64),
                    },
                    coarse=False,
                )


def _main_place(collector: Collector) -> int:
    """A thread of the file: the first one."""
    return 0 if len(collector.threads) else collector.threads[0, 0]


def _allocating_threads(
    memory: Allocations, host: dict[str, Array], names: list[str], origin: int
) -> IntArray:
    """The thread of the op that allocated: the one on which an op of that name ran; else the first thread."""
    thread = np.zeros(len(memory.start), np.int64)
    if not len(memory.start) or not len(host["start"]):
        return thread
    number = {name: i for i, name in enumerate(names)}
    wanted = np.array([number.get(name, -1) for name in memory.name], np.int64)
    time = memory.start - origin
    rows = np.flatnonzero(host["kind"] != RUNTIME)
    if not len(rows):
        return thread
    key, last = pair_keys((host["name"][rows].astype(np.int64), host["start"][rows]), (wanted, time))
    order = np.argsort(key, kind="stable")
    place = np.searchsorted(key[order], last, side="right") - 1
    match = rows[order[np.maximum(place, 0)]]
    known = (place >= 0) & (host["name"][match] == wanted)
    return np.where(known, host["thread"][match], 0)


# ---------------------------------------------------------------------------------------------------- what a capture lacks


def _lacks(tables: Tables, capture: Capture) -> Iterable[str]:
    """What cannot be known from a capture, each in one sentence."""
    device, host = tables.device, tables.host
    level = f" (recorded with {capture.level})" if capture.level else ""
    kinds = {*np.unique(device["kind"]).tolist()} if len(device["kind"]) else set()
    if not len(device["start"]):
        yield f"no work of the device was recorded{level}"
    elif DEVICE_PART not in kinds and tables.collector.categories["collective"]:
        yield f"collectives have no tasks: how long each transferred and waited is not known{level}"
    elif tables.collector.categories["collective"] and not tables.collector.categories["collective times"]:
        yield f"how long collectives transferred and waited is not known: communication.json or analysis.db is not there{level}"
    elif DEVICE_PART in kinds and not tables.collector.categories["collective"]:
        yield f"tasks of collectives were recorded, but not the collectives: communication counts as idle time{level}"
    if DEVICE_KERNEL in kinds and not tables.collector.categories["kernel shapes"]:
        yield f"the shapes and types of kernels are not known{level}"
    if len(device["start"]) and not (host["kind"] == OP).any():
        yield "no ops of the framework were recorded (activities without CPU): work belongs to no op"
    if len(device["start"]) and not (host["connection"] >= 0).any():
        yield f"no CANN API calls were recorded: which call launched a kernel is not known{level}"
    if (host["inputs"] >= 0).any():
        yield "inputs have shapes and types, but no strides and no values: this format does not hold them"
    elif (host["kind"] == OP).any():
        yield "the shapes of inputs were not recorded (record_shapes)"
    if not (host["stack"] >= 0).any() and not len(tables.frames["start"]) and (host["kind"] == OP).any():
        yield "call stacks were not recorded (with_stack)"
    memory = tables.allocations
    if memory is None or not (len(memory.start) or len(memory.time)):
        yield "memory was not recorded (profile_memory)"


def empty_frames() -> dict[str, Array]:
    """The columns of no Python calls."""
    types: Mapping[str, type[np.generic]] = {
        "name": np.int32,
        "thread": np.int32,
        "start": np.int64,
        "length": np.int64,
        "own": np.int64,
        "parent": np.int64,
        "module": np.int64,
    }
    return {name: np.empty(0, kind) for name, kind in types.items()}
