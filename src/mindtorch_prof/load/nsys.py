"""nsys reports: the SQLite file that `nsys export --type sqlite` writes in, a Trace out.

Times are nanoseconds. Texts are numbers into StringIds. Work of the device and the call that launched it share a correlation id, which is
unique within a process. NVTX ranges are annotations; those of torch.autograd.profiler.emit_nvtx that name ops are ops.
"""

from __future__ import annotations

import re

import numpy as np
import orjson

from ..arrays import Array, IntArray
from ..json_types import JSONObject, JSONValue
from ..trace import (
    ANNOTATION,
    DEVICE_COPY,
    DEVICE_KERNEL,
    DEVICE_SET,
    DEVICE_SYNC,
    OP,
    RUNTIME,
    Health,
    Trace,
)
from .ascend import LARGEST_BYTES, LARGEST_NS, in_range
from .collect import Collector
from .errors import NotATraceError
from .kineto import built
from .sqlite_tables import SqliteTables, texts_of

_KERNELS, _GRAPHS = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_COPIES, _SETS = "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"
_SYNCS = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
_CALLS = ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER")
_RANGES = "NVTX_EVENTS"
_PUSH_POP, _START_END, _NVTXT, _DOMAIN = 59, 60, 70, 75  # types of NVTX events

# names as Kineto has them
_COPY_KINDS = {1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 9: "HtoH", 10: "PtoP"}  # fmt: skip
_MEMORY_KINDS = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed", 5: "Device", 6: "Managed"}
_SYNC_TYPES = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}
# columns of TARGET_INFO_GPU, and what Kineto's deviceProperties calls them
_PROPERTIES = {
    "id": "id",
    "name": "name",
    "totalMemory": "totalGlobalMem",
    "computeMajor": "computeMajor",
    "computeMinor": "computeMinor",
    "smCount": "numSms",
    "maxThreadsPerBlock": "maxThreadsPerBlock",
    "maxRegistersPerBlock": "regsPerBlock",
    "maxRegistersPerSm": "regsPerMultiprocessor",
    "threadsPerWarp": "warpSize",
    "maxShmemPerBlock": "sharedMemPerBlock",
    "maxShmemPerBlockOptin": "sharedMemPerBlockOptin",
    "maxShmemPerSm": "sharedMemPerMultiprocessor",
    "memoryBandwidth": "memoryBandwidth",
    "clockRate": "clockRate",
    "l2CacheSize": "l2CacheSize",
    "chipName": "chipName",
}
_KERNEL_SIZES = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
_VERSION = re.compile(r"_v\d+$")
_OP_NAME = re.compile(r"[A-Za-z_]\w*::[\w.]+$")
_NODE_NAME = re.compile(
    r"(?:autograd::engine::evaluate_function: |torch::autograd::)?\w+(?:Backward\d*|AccumulateGrad)$"
)
_NO_TIME = -1


def is_nsys(tables: SqliteTables) -> bool:
    """Whether a database is an export of nsys."""
    known = {_KERNELS, _GRAPHS, _COPIES, _RANGES, *_CALLS}
    return bool(known & tables.tables)  # tables are written when they get a row: also that of texts


def read_nsys(file: SqliteTables, source: str) -> Trace:
    """The Trace of an export."""
    return _Reader(file, source).trace()


class _Reader:
    """The steps from the tables of the file to a Trace."""

    def __init__(self, file: SqliteTables, source: str) -> None:
        self.file, self.source = file, source
        self.strings = file.mapping("StringIds", "id", "value")
        self.collector = Collector()
        self.lacks: list[str] = []
        self.with_shapes = False

    def trace(self) -> Trace:
        host = self._host()
        device = self._device()
        if not len(host["start"]) and not len(device["start"]):
            raise NotATraceError(f"{self.source}: an nsys export without NVTX ranges, CUDA calls and kernels")
        host, device = (self._in_range(table) for table in (host, device))
        device["process"] = _owners(host, device)
        self._unify_correlations(host, device)
        origin = min(int(table["start"].min()) for table in (host, device) if len(table["start"]))
        host["start"], device["start"] = host["start"] - origin, device["start"] - origin
        self.collector.host.add_columns(_without(host, "process"), coarse=False)
        self.collector.device.add_columns(_without(device, "process"), coarse=False)
        self._add_memory(origin)
        self._add_counters(origin)
        self._add_names()
        self._say_what_is_lacking(host, device)
        top = self._about()
        epoch = self._epoch_ns()
        if epoch is not None:
            top["baseTimeNanoseconds"] = epoch + origin
        self.collector.categories["cuda"] = len(device["start"])
        return built(top, self.collector, self.source, Health(lacks=tuple(self.lacks)))

    def _in_range(self, table: dict[str, Array]) -> dict[str, Array]:
        """A table without the rows whose times are beyond all clocks."""
        known = in_range(table)
        self.collector.dropped["no time"] += int((~known).sum())
        return {name: column[known] for name, column in table.items()}

    def _text(self, numbers: IntArray) -> list[str]:
        return texts_of(numbers.tolist(), self.strings)

    def _names(self, texts: list[str]) -> IntArray:
        return np.array(self.collector.names.numbers(texts), np.int32)

    def _threads(self, global_tid: IntArray) -> IntArray:
        """Numbers of threads: a global thread id holds 24 bits for the process, and 24 for the thread."""
        distinct, place = np.unique(global_tid, return_inverse=True)
        keys = [(_process(tid), tid & 0xFFFFFF) for tid in distinct.tolist()]
        numbers = np.array(self.collector.threads.numbers(keys) or [0], np.int32)
        return numbers[place.reshape(-1)] if len(global_tid) else np.empty(0, np.int32)

    # ------------------------------------------------------------------------------------------------ host

    def _host(self) -> dict[str, Array]:
        """NVTX ranges and calls of CUDA."""
        parts = [self._ranges(), *(self._calls(table) for table in _CALLS)]
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}

    def _calls(self, table: str) -> dict[str, Array]:
        start, end, tid, correlation, name = self.file.integers(
            table, "start", "end", "globalTid", "correlationId", "nameId"
        )
        labels = {
            number: _VERSION.sub("", self.strings.get(number, "")) for number in np.unique(name).tolist()
        }
        texts = [labels[number] for number in name.tolist()]
        return self._host_rows(
            self._names(texts), tid, start, end, np.full(len(start), RUNTIME, np.int8), correlation
        )

    def _host_rows(
        self,
        name: IntArray,
        tid: IntArray,
        start: IntArray,
        end: IntArray,
        kind: IntArray,
        correlation: IntArray,
    ) -> dict[str, Array]:
        count = len(start)
        none = np.full(count, -1, np.int64)
        return {
            "name": name,
            "thread": self._threads(tid),
            "start": start,
            "length": np.maximum(end - start, 0),
            "kind": kind,
            "external": np.zeros(count, np.int64),
            "sequence": none,
            "forward": np.zeros(count, np.int64),
            "inputs": none.astype(np.int32),
            "stack": none.astype(np.int32),
            "extra": none.astype(np.int32),
            "flops": none,
            "correlation": correlation,
            "unfinished": np.zeros(count, bool),
            "synthetic": np.zeros(count, np.int8),
            "process": _processes(tid),
        }

    def _ranges(self) -> dict[str, Array]:
        start, end, kind, tid, text_id, domain = self.file.integers(
            _RANGES, "start", "end", "eventType", "globalTid", "textId", "domainId"
        )
        # older exports write defaults for what is missing: an empty text, an end of 0
        texts = [
            text if isinstance(text, str) and text else self.strings.get(number, "")
            for (text,), number in zip(self.file.values(_RANGES, "text"), text_id.tolist())
        ]
        if "eventType" in self.file.columns(_RANGES):
            is_range = np.isin(kind, (_PUSH_POP, _START_END, _NVTXT))
        else:
            is_range = end > 0
        domains = {
            int(domain[row]): texts[row] for row in np.flatnonzero((kind == _DOMAIN) & (domain > 0)).tolist()
        }
        chosen = np.flatnonzero(is_range)
        parsed = [_parsed_range(texts[row]) for row in chosen.tolist()]
        unfinished = end[chosen] < start[chosen]
        last = int(max(start.max(), end.max())) if len(start) else 0
        rows = self._host_rows(
            self._names([each[0] for each in parsed]),
            tid[chosen],
            start[chosen],
            np.where(unfinished, last, end[chosen]),
            np.array([each[1] for each in parsed], np.int8),
            np.full(len(chosen), -1, np.int64),
        )
        rows["unfinished"] = unfinished
        rows["sequence"] = np.array([each[2] for each in parsed], np.int64)
        inputs = self.collector.inputs
        rows["inputs"] = np.array([-1 if e[3] is None else inputs[e[3]] for e in parsed], np.int32)
        self.with_shapes = bool((rows["inputs"] >= 0).any())
        if domains:
            numbers = {
                number: self.collector.extras[orjson.dumps({"domain": name})]
                for number, name in domains.items()
            }
            rows["extra"] = np.array([numbers.get(d, -1) for d in domain[chosen].tolist()], np.int32)
        return rows

    # ------------------------------------------------------------------------------------------------ device

    def _device(self) -> dict[str, Array]:
        parts = [self._kernels(), self._graphs(), self._copies(), self._sets(), self._syncs()]
        whole = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
        whole["device"] = self._physical_devices(whole["process"], whole["device"])
        return whole

    def _device_rows(
        self, table: str, texts: list[str], kind: int, arguments: dict[str, list[JSONValue]]
    ) -> dict[str, Array]:
        start, end, device, stream, correlation, pid = self.file.integers(
            table, "start", "end", "deviceId", "streamId", "correlationId", "globalPid"
        )
        count = len(start)
        return {
            "name": self._names(texts),
            "thread": np.zeros(count, np.int32),
            "start": start,
            "length": np.maximum(end - start, 0),
            "kind": np.full(count, kind, np.int8),
            "device": device,
            "stream": np.where(stream < 1 << 31, stream, -1),
            "external": np.zeros(count, np.int64),
            "correlation": correlation,
            "extra": self._extra(arguments, count),
            "process": _processes(pid),
        }

    def _extra(self, columns: dict[str, list[JSONValue]], count: int) -> IntArray:
        """Numbers of rows of arguments, equal rows once."""
        table = self.collector.device_extras
        keys = tuple(columns)
        if not keys:
            return np.full(count, -1, np.int32)
        known: dict[bytes, int] = {}
        numbers = []
        for text in map(orjson.dumps, zip(*columns.values())):
            number = known.get(text)
            if number is None:
                number = known[text] = len(table)
                table.append((keys, text))
            numbers.append(number)
        return np.array(numbers, np.int32)

    def _kernels(self) -> dict[str, Array]:
        demangled, short, mangled = self.file.integers(_KERNELS, "demangledName", "shortName", "mangledName")
        name = np.where(demangled >= 0, demangled, np.where(short >= 0, short, mangled))
        columns = self.file.columns(_KERNELS)
        arguments: dict[str, list[JSONValue]] = {}
        if columns.issuperset(_KERNEL_SIZES):
            x, y, z, bx, by, bz = self.file.integers(_KERNELS, *_KERNEL_SIZES)
            arguments["grid"] = np.stack([x, y, z], 1).tolist()
            arguments["block"] = np.stack([bx, by, bz], 1).tolist()
        for column, title in (
            ("contextId", "context"),
            ("registersPerThread", "registers per thread"),
            ("graphId", "graph id"),
            ("graphNodeId", "graph node id"),
        ):
            if column in columns:
                (values,) = self.file.integers(_KERNELS, column, none=0)
                if values.any():
                    arguments[title] = values.tolist()
        if {"staticSharedMemory", "dynamicSharedMemory"} <= columns:
            static, dynamic = self.file.integers(
                _KERNELS, "staticSharedMemory", "dynamicSharedMemory", none=0
            )
            arguments["shared memory"] = (static + dynamic).tolist()
        return self._device_rows(_KERNELS, self._text(name), DEVICE_KERNEL, arguments)

    def _graphs(self) -> dict[str, Array]:
        """Launches of CUDA graphs, which are recorded as a whole unless nsys was told to record their nodes."""
        graph, execution = self.file.integers(_GRAPHS, "graphId", "graphExecId")
        if len(graph):
            self.lacks.append(
                "CUDA graphs were recorded as a whole: their kernels are not known (--cuda-graph-trace=node)"
            )
        arguments: dict[str, list[JSONValue]] = {
            "graph id": graph.tolist(),
            "graph exec id": execution.tolist(),
        }
        return self._device_rows(
            _GRAPHS, [f"CUDA graph {n}" for n in graph.tolist()], DEVICE_KERNEL, arguments
        )

    def _copies(self) -> dict[str, Array]:
        kind, source, target, nbytes, start, end = self.file.integers(
            _COPIES, "copyKind", "srcKind", "dstKind", "bytes", "start", "end"
        )
        texts = [
            f"Memcpy {_COPY_KINDS.get(k, 'unknown')} ({_MEMORY_KINDS.get(s, 'unknown')} -> {_MEMORY_KINDS.get(t, 'unknown')})"
            for k, s, t in zip(kind.tolist(), source.tolist(), target.tolist())
        ]
        rate = np.maximum(nbytes, 0) / np.maximum(end - start, 1)
        arguments: dict[str, list[JSONValue]] = {
            "bytes": nbytes.tolist(),
            "memory bandwidth (GB/s)": rate.tolist(),
        }
        return self._device_rows(_COPIES, texts, DEVICE_COPY, arguments)

    def _sets(self) -> dict[str, Array]:
        kind, nbytes = self.file.integers(_SETS, "memKind", "bytes")
        texts = [f"Memset ({_MEMORY_KINDS.get(k, 'unknown')})" for k in kind.tolist()]
        return self._device_rows(_SETS, texts, DEVICE_SET, {"bytes": nbytes.tolist()})

    def _syncs(self) -> dict[str, Array]:
        kind, event = self.file.integers(_SYNCS, "syncType", "eventId")
        texts = [_SYNC_TYPES.get(k, "Sync") for k in kind.tolist()]
        return self._device_rows(_SYNCS, texts, DEVICE_SYNC, {"cuda_event id": event.tolist()})

    def _physical_devices(self, process: IntArray, device: IntArray) -> IntArray:
        """Numbers of GPUs: a process numbers those that it sees from 0."""
        gpu, cuda, pid = self.file.integers("TARGET_INFO_CUDA_DEVICE", "gpuId", "cudaId", "pid")
        physical = device.copy()
        for number, seen, owner in zip(gpu.tolist(), cuda.tolist(), pid.tolist()):
            if number >= 0:
                physical[(process == owner) & (device == seen)] = number
        return physical

    def _unify_correlations(self, host: dict[str, Array], device: dict[str, Array]) -> None:
        """Make correlation ids unique where several processes use the same ones."""
        correlation, process = (
            np.concatenate([host[key], device[key]]) for key in ("correlation", "process")
        )
        pairs = np.unique(np.stack([correlation, process])[:, correlation >= 0], axis=1)
        if not (pairs[0, 1:] == pairs[0, :-1]).any():
            return
        numbers = np.unique(np.concatenate([host["process"], device["process"]]))
        for table in (host, device):
            shift = np.searchsorted(numbers, table["process"]) << 40
            table["correlation"] = np.where(table["correlation"] >= 0, table["correlation"] + shift, -1)

    # ------------------------------------------------------------------------------------------------ memory, counters

    def _add_memory(self, origin: int) -> None:
        table = "CUDA_GPU_MEMORY_USAGE_EVENTS"
        start, device, address, nbytes, operation, kind, pid = self.file.integers(
            table, "start", "deviceId", "address", "bytes", "memoryOperationType", "memKind", "globalPid"
        )
        if not len(start):
            return
        known = (start >= 0) & (start < LARGEST_NS) & (nbytes >= 0) & (nbytes < LARGEST_BYTES)
        start, device, address, nbytes, operation, kind, pid = (
            column[known] for column in (start, device, address, nbytes, operation, kind, pid)
        )
        process = _processes(pid)
        threads = {p: self.collector.threads[p, p] for p in np.unique(process).tolist()}
        on_device = kind != 1  # pinned memory is the host's
        self.collector.memory.add_columns(
            {
                "thread": np.array([threads[p] for p in process.tolist()], np.int32),
                "start": start - origin,
                "nbytes": np.where(operation == 0, nbytes, -nbytes),
                "address": address,
                "total": np.full(len(start), -1, np.int64),
                "device": np.where(on_device, self._physical_devices(process, device), -1),
            },
            coarse=False,
        )

    def _add_counters(self, origin: int) -> None:
        time, kind, metric = self.file.integers("GPU_METRICS", "timestamp", "typeId", "metricId")
        values = self.file.floats("GPU_METRICS", "value")
        known = np.isfinite(values) & (time >= 0) & (time < LARGEST_NS)
        time, kind, metric = (column[known] for column in (time, kind, metric))
        values = values[known]
        if not len(time):
            return
        names = {
            (k, m): str(name)
            for k, m, name in self.file.values("TARGET_INFO_GPU_METRICS", "typeId", "metricId", "metricName")
        }
        pairs, place = np.unique(np.stack([kind, metric]), axis=1, return_inverse=True)
        gpus = len(np.unique(pairs[0]))
        numbers = [
            self.collector.counter_names[
                names.get((k, m), names.get((None, m), f"metric {m}"))
                + (f", GPU {k & 0xFF}" if gpus > 1 else "")
            ]
            for k, m in pairs.T.tolist()
        ]
        self.collector.counters.add_columns(
            {
                "name": np.array(numbers, np.int32)[place.reshape(-1)],
                "start": time - origin,
                "value": values,
            },
            coarse=False,
        )

    # ------------------------------------------------------------------------------------------------ the whole

    def _add_names(self) -> None:
        """Names of processes and threads."""
        names = self.collector.process_names
        known = {pid for pid, _ in self.collector.threads}
        for pid, name in self.file.values("PROCESSES", "pid", "name"):
            if pid in known and isinstance(name, str):
                names.processes[pid] = name.strip()
        number, tid = self.file.integers("ThreadNames", "nameId", "globalTid")
        for name, global_tid in zip(self._text(number), tid.tolist()):
            key = _process(global_tid), global_tid & 0xFFFFFF
            if key in self.collector.threads:
                names.threads[key] = name.strip()

    def _about(self) -> JSONObject:
        """What the export says of the recording, as a Kineto file says it at its top."""
        columns = [c for c in _PROPERTIES if c in self.file.columns("TARGET_INFO_GPU")]
        devices: list[JSONValue] = [
            {_PROPERTIES[c]: v for c, v in zip(columns, row) if isinstance(v, (int, float, str))}
            for row in self.file.values("TARGET_INFO_GPU", *columns)
        ]
        if not devices:
            self.lacks.append(
                "the GPUs are not described (TARGET_INFO_GPU): their names, cores and memory are not known"
            )
        about: JSONObject = {"deviceProperties": devices}
        settings = {key: value for key, value in self.file.values("META_DATA_EXPORT", "name", "value")}  # noqa: C416  (rows are of any length)
        version = settings.get("EXPORT_PRODUCT_VERSION")
        if isinstance(version, str):
            about["nsys_version"] = version
        hosts = [
            value
            for key, value in self.file.values("TARGET_INFO_SYSTEM_ENV", "name", "value")
            if key == "Hostname"
        ]
        if hosts and isinstance(hosts[0], str):
            about["host_name"] = hosts[0]
        if self.with_shapes:
            about["record_shapes"] = 1
        return about

    def _epoch_ns(self) -> int | None:
        """The time since the epoch at which the file's times are 0; None: not known."""
        rows = self.file.values("TARGET_INFO_SESSION_START_TIME", "utcEpochNs", "systemClockNs")
        if not rows:
            return None
        epoch, clock = rows[0]
        if not isinstance(epoch, int):
            return None
        began = [row[0] for row in self.file.values("ANALYSIS_DETAILS", "startTime")]
        # times count from the start of the session, or are those of the system's clock, which the session then also starts at
        return epoch - clock if isinstance(clock, int) and began == [clock] else epoch

    def _say_what_is_lacking(self, host: dict[str, Array], device: dict[str, Array]) -> None:
        if not self.strings:
            self.lacks.append("the table of texts (StringIds) is not there: kernels and calls have no names")
        kinds = {*np.unique(host["kind"]).tolist()}
        if not {ANNOTATION, OP} & kinds:
            self.lacks.append("no NVTX ranges were recorded: kernels cannot be charged to ops or annotations")
        elif OP not in kinds:
            self.lacks.append(
                "no ops were recorded, only annotations (torch.autograd.profiler.emit_nvtx records ops)"
            )
        if RUNTIME not in kinds:
            self.lacks.append("no CUDA API calls were recorded: which call launched a kernel is not known")
        if not len(device["start"]):
            self.lacks.append("no work of a GPU was recorded")
        if not self.with_shapes:
            self.lacks.append(
                "the shapes of inputs were not recorded (emit_nvtx(record_shapes=True) records them)"
            )
        self.lacks.append("call stacks and memory of tensors are not read from nsys exports")


def _without(table: dict[str, Array], key: str) -> dict[str, Array]:
    return {name: column for name, column in table.items() if name != key}


def _process(global_id: int) -> int:
    return (global_id >> 24) & 0xFFFFFF


def _processes(global_id: IntArray) -> IntArray:
    return np.where(global_id >= 0, (global_id >> 24) & 0xFFFFFF, -1)


def _owners(host: dict[str, Array], device: dict[str, Array]) -> IntArray:
    """The process of each work of a device. Where the export does not say it, the one that made a call with its correlation id, if there is
    only one; -1: not known."""
    pairs = np.unique(np.stack([host["correlation"], host["process"]])[:, host["correlation"] >= 0], axis=1)
    first, last = (np.searchsorted(pairs[0], device["correlation"], side=side) for side in ("left", "right"))
    only = np.append(pairs[1], -1)[np.where(last - first == 1, first, -1)]
    return np.where(device["process"] < 0, only, device["process"])


def _parsed_range(text: str) -> tuple[str, int, int, bytes | None]:
    """Name, kind, sequence number (-1: none) and inputs of a range. torch's emit_nvtx writes `name, seq = 7, op_id = 12, sizes = [[2, 3]]`."""
    if ", op_id = " not in text and ", seq = " not in text:
        return text, ANNOTATION, -1, None
    rest, _, _ = text.partition(", input_op_ids = ")
    rest, _, sizes = rest.partition(", sizes = ")
    rest, _, _ = rest.partition(", op_id = ")
    name, _, sequence = rest.partition(", seq = ")
    number = int(sequence) if sequence.lstrip("-").isdecimal() else -1
    is_op = _OP_NAME.match(name) is not None or _NODE_NAME.match(name) is not None
    return name, OP if is_op else ANNOTATION, number, _inputs(sizes)


def _inputs(sizes: str) -> bytes | None:
    """The inputs of an op from its printed sizes; None: there are none."""
    if not sizes.startswith("["):
        return None
    try:
        dims = orjson.loads(sizes)
    except ValueError:
        return None
    return orjson.dumps([None, None, None, dims]) if isinstance(dims, list) else None
