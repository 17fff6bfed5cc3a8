"""Ascend captures as a database: ascend_pytorch_profiler_<rank>.db, and analysis.db beside it, in, a Trace out.

Times are nanoseconds. Texts are numbers into STRING_IDS. TASK holds all tasks of the hardware; COMPUTE_TASK_INFO says which of them are
kernels, COMMUNICATION_TASK_INFO which are parts of a collective, and COMMUNICATION_OP holds the collectives. A task and the call that
launched it share a connection id; a framework event has an id in CONNECTION_IDS, which lists its connection ids.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import orjson

from ..arrays import Array, BoolArray, FloatArray, IntArray
from ..json_types import JSONObject, JSONValue
from ..trace import ANNOTATION, DEVICE_KERNEL, DEVICE_PART, DEVICE_SYNC, OP, RUNTIME, Health, Trace
from .ascend import (
    FIRST_UNKNOWN_STREAM,
    NONE,
    Allocations,
    Capture,
    Tables,
    collective_arguments,
    empty_frames,
    finished,
    first_known,
    inputs_json,
    op_kinds,
    task_kinds,
)
from .sqlite_tables import SqliteTables, opened_tables, texts_of

_OP, _QUEUE, _PYTHON, _MARK = 50001, 50002, 50003, 50004  # types of framework events
_LEVELS = {5000: "Runtime", 5500: "Hccl", 10000: "Node", 15000: "Model", 20000: "AscendCL"}
# columns of COMPUTE_TASK_INFO that are texts, and what kernel_details.csv calls them
_KERNEL_TEXTS = {
    "opType": "Type",
    "taskType": "Accelerator Core",
    "inputShapes": "Input Shapes",
    "inputDataTypes": "Input Data Types",
    "inputFormats": "Input Formats",
    "outputShapes": "Output Shapes",
    "outputDataTypes": "Output Data Types",
    "outputFormats": "Output Formats",
    "opState": "OP State",
    "hf32Eligible": "HF32 Eligible",
}
_KERNEL_NUMBERS = {
    "blockDim": "Block Dim",
    "blockNum": "Block Dim",
    "mixBlockDim": "Mix Block Dim",
    "mixBlockNum": "Mix Block Dim",
}


def is_ascend(tables: SqliteTables) -> bool:
    """Whether a database is that of an Ascend capture."""
    return "STRING_IDS" in tables.tables and bool({"TASK", "PYTORCH_API", "CANN_API"} & tables.tables)


def read_db(file: SqliteTables, path: Path, source: str) -> Trace:
    """The Trace of a database. source: the path that the user gave, which may be that of a folder."""
    return _Reader(file, path, source).trace()


class _Reader:
    """The steps from the tables of the file to those of a Collector."""

    def __init__(self, file: SqliteTables, path: Path, source: str) -> None:
        self.file, self.path, self.source = file, path, source
        self.strings = file.mapping("STRING_IDS", "id", "value")
        self.tables = Tables()
        self.collector = self.tables.collector

    def trace(self) -> Trace:
        capture = Capture.around(self.path)
        ops = self._framework()
        self._device(ops)
        self._counters()
        self.tables.allocations = self._memory()
        return finished(self.tables, capture, self._about(capture), self.source, Health())

    def _text(self, numbers: IntArray) -> list[str]:
        return texts_of(numbers.tolist(), self.strings)

    def _names(self, texts: list[str]) -> IntArray:
        return np.array(self.collector.names.numbers(texts), np.int32)

    def _by_number(self, numbers: IntArray, make: dict[int, int]) -> IntArray:
        """Values of a table by number."""
        distinct, place = np.unique(numbers, return_inverse=True)
        values = np.array([make.get(n, -1) for n in distinct.tolist()] or [-1], np.int64)
        return values[place.reshape(-1)] if len(numbers) else np.empty(0, np.int64)

    def _threads(self, global_tid: IntArray) -> IntArray:
        """Numbers of threads: the process is in the upper half of a global thread id, the thread in the lower."""
        distinct, place = np.unique(global_tid, return_inverse=True)
        keys = [(tid >> 32, tid & 0xFFFFFFFF) for tid in distinct.tolist()]
        numbers = np.array(self.collector.threads.numbers(keys) or [0], np.int32)
        return numbers[place.reshape(-1)] if len(global_tid) else np.empty(0, np.int32)

    # ------------------------------------------------------------------------------------------------ host

    def _framework(self) -> IntArray:
        """Fill the host's table and that of Python calls; the rows of PYTORCH_API that are in the host's table, in its order."""
        columns = ("startNs", "endNs", "globalTid", "connectionId", "name", "sequenceNumber", "fwdThreadId")
        start, end, tid, link, name, sequence, forward = self.file.integers("PYTORCH_API", *columns)
        types, shapes, chain, kind = self.file.integers(
            "PYTORCH_API", "inputDtypes", "inputShapes", "callchainId", "type"
        )
        is_python = kind == _PYTHON
        rows = np.flatnonzero(~is_python)
        texts = self._text(name[rows])
        others = [self._calls(), self._marks()]
        calls = {key: np.concatenate([part[key] for part in others]) for key in others[0]}
        event_kind = np.select([kind[rows] == _QUEUE, kind[rows] == _MARK], [RUNTIME, ANNOTATION], OP).astype(
            np.int8
        )
        is_op = event_kind == OP
        event_kind[is_op] = op_kinds(texts)[: len(rows)][is_op]
        count = len(calls["start"])
        none = np.full(count, -1, np.int64)
        self.tables.host = {
            "name": np.concatenate([self._names(texts), calls["name"]]),
            "thread": np.concatenate([self._threads(tid[rows]), calls["thread"]]),
            "start": np.concatenate([start[rows], calls["start"]]),
            "length": np.concatenate([np.maximum(end - start, 0)[rows], calls["length"]]),
            "kind": np.concatenate([event_kind, calls["kind"]]),
            "sequence": np.concatenate([sequence[rows], none]),
            "forward": np.concatenate([np.maximum(forward[rows], 0), np.zeros(count, np.int64)]),
            "inputs": np.concatenate([self._inputs(shapes[rows], types[rows]), none]).astype(np.int32),
            "stack": np.concatenate([self._stacks(chain[rows]), none]).astype(np.int32),
            "connection": np.concatenate([np.full(len(rows), -1, np.int64), calls["connection"]]),
            "queue": np.concatenate([self._queue(kind[rows], link[rows]), none]),
        }
        self.tables.frames = self._frames(
            _chosen({"start": start, "end": end, "tid": tid, "name": name}, is_python)
        )
        self._link = link[rows]
        return rows

    def _queue(self, kind: IntArray, link: IntArray) -> IntArray:
        """The number that both ends of the queue share: the connection id of their id."""
        ids, connections = self._connections
        first = np.minimum(np.searchsorted(ids, link), max(len(ids) - 1, 0))
        if not len(ids):
            return np.full(len(kind), -1, np.int64)
        return np.where((kind == _QUEUE) & (ids[first] == link), connections[first], -1)

    @property
    def _connections(self) -> tuple[IntArray, IntArray]:
        """CONNECTION_IDS, sorted by id."""
        ids, connections = self.file.integers("CONNECTION_IDS", "id", "connectionId")
        order = np.lexsort((connections, ids))
        return ids[order], connections[order]

    def _calls(self) -> dict[str, Array]:
        """Calls of the host's libraries."""
        start, end, kind, tid, connection, name = self.file.integers(
            "CANN_API", "startNs", "endNs", "type", "globalTid", "connectionId", "name"
        )
        labels = {
            **{k: v.capitalize() for k, v in self.file.mapping("ENUM_API_TYPE", "id", "name").items()},
            **_LEVELS,
        }
        texts = [f"{labels.get(k, 'CANN')}@{text}" for k, text in zip(kind.tolist(), self._text(name))]
        return {
            "name": self._names(texts),
            "thread": self._threads(tid),
            "start": start,
            "length": np.maximum(end - start, 0),
            "kind": np.full(len(start), RUNTIME, np.int8),
            "connection": connection,
        }

    def _marks(self) -> dict[str, Array]:
        """Ranges that the program marked (mstx), and runs of Python's garbage collector."""
        start, end, tid, message = self.file.integers(
            "MSTX_EVENTS", "startNs", "endNs", "globalTid", "message"
        )
        is_range = end > start
        collected, collected_end, collected_tid = self.file.integers(
            "GC_RECORD", "startNs", "endNs", "globalTid"
        )
        texts = [*self._text(message[is_range]), *["GC"] * len(collected)]
        begin = np.concatenate([start[is_range], collected])
        return {
            "name": self._names(texts),
            "thread": self._threads(np.concatenate([tid[is_range], collected_tid])),
            "start": begin,
            "length": np.maximum(np.concatenate([end[is_range], collected_end]) - begin, 0),
            "kind": np.full(len(begin), ANNOTATION, np.int8),
            "connection": np.full(len(begin), -1, np.int64),
        }

    def _inputs(self, shapes: IntArray, types: IntArray) -> IntArray:
        """Numbers of inputs by (shapes, types); -1: none."""
        pairs, place = np.unique(np.stack([shapes, types]), axis=1, return_inverse=True)
        numbers = [
            -1
            if shape < 0 and kind < 0
            else self.collector.inputs[inputs_json(self.strings.get(shape, ""), self.strings.get(kind, ""))]
            for shape, kind in pairs.T.tolist()
        ]
        return np.array(numbers or [-1], np.int64)[place.reshape(-1)] if len(shapes) else shapes

    def _stacks(self, chains: IntArray) -> IntArray:
        """Numbers of call stacks by chain; -1: none."""
        ids, stack, depth = self.file.integers("PYTORCH_CALLCHAINS", "id", "stack", "stackDepth")
        order = np.lexsort((depth, ids))
        ids, texts = ids[order], self._text(stack[order])
        starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]]) if len(ids) else np.empty(0, np.int64)
        ends = np.append(starts[1:], len(ids))
        numbers = {
            int(ids[first]): self.collector.stacks[";".join(texts[first:last])]
            for first, last in zip(starts.tolist(), ends.tolist())
        }
        return self._by_number(chains, numbers)

    def _frames(self, rows: dict[str, Array]) -> dict[str, Array]:
        count = len(rows["start"])
        if not count:
            return empty_frames()
        none = np.full(count, -1, np.int64)
        texts = self._text(rows["name"])
        module = [_module_number(text) for text in texts]
        return {
            "name": self._names(texts),
            "thread": self._threads(rows["tid"]),
            "start": rows["start"],
            "length": np.maximum(rows["end"] - rows["start"], 0),
            "own": none,
            "parent": none,
            "module": np.array(module, np.int64),
        }

    # ------------------------------------------------------------------------------------------------ device

    def _device(self, ops: IntArray) -> None:
        """Fill the device's table."""
        tasks = self._tasks()
        collectives = self._collectives(tasks)
        keys = ("name", "start", "length", "kind", "device", "stream", "connection", "extra")
        device = {key: np.concatenate([tasks[key], collectives[key]]) for key in keys}
        device["name"], device["kind"] = device["name"].astype(np.int32), device["kind"].astype(np.int8)
        device["extra"] = device["extra"].astype(np.int32)
        device["op"] = self._ops_of(device["connection"])
        self.tables.device = device
        self.collector.categories["collective"] = len(collectives["start"])
        self.collector.categories["collective times"] = self._n_times
        self.collector.categories["kernel shapes"] = int(
            "inputShapes" in self.file.columns("COMPUTE_TASK_INFO")
        )

    def _ops_of(self, connection: IntArray) -> IntArray:
        """By row of the device the row of the host whose event lists its connection id; -1: none."""
        found = np.full(len(connection), -1, np.int64)
        ids, connections = self._connections
        events = np.flatnonzero((self._link >= 0) & (self.tables.host["kind"][: len(self._link)] == OP))
        if not len(ids) or not len(events):
            return found
        by_link = events[np.argsort(self._link[events], kind="stable")]
        place = np.minimum(np.searchsorted(self._link[by_link], ids), len(by_link) - 1)
        known = self._link[by_link[place]] == ids
        ids, connections, event = ids[known], connections[known], by_link[place[known]]
        if not len(ids):
            return found
        # of several events with the same connection the one that began last: the innermost
        order = np.lexsort((self.tables.host["start"][event], connections))
        connections, event = connections[order], event[order]
        last = np.searchsorted(connections, connection, side="right") - 1
        row = np.maximum(last, 0)
        return np.where((last >= 0) & (connections[row] == connection) & (connection >= 0), event[row], -1)

    def _tasks(self) -> dict[str, Array]:
        start, end, device, connection, task, kind, stream = self.file.integers(
            "TASK", "startNs", "endNs", "deviceId", "connectionId", "globalTaskId", "taskType", "streamId"
        )
        texts = self._text(kind)
        kernel = self._kernels()
        part = self._parts()
        is_kernel, is_part = np.isin(task, kernel["task"]), np.isin(task, part["task"])
        row_kind = task_kinds([(text, text) for text in texts])[: len(texts)]
        row_kind[is_kernel] = DEVICE_KERNEL
        # a task on cores without a description shows a kernel or collective, which has a row of its own, a second time
        keep = np.ones(len(task), bool)
        if len(kernel["task"]):
            keep = (row_kind != DEVICE_KERNEL) | is_kernel | is_part
        names = np.array(texts, object) if texts else np.empty(0, object)
        names[is_kernel] = _looked_up(kernel, task[is_kernel], "name")
        names[is_part] = _looked_up(part, task[is_part], "name")
        if is_part.any():
            parts = task_kinds([(name, "") for name in names[is_part].tolist()])
            row_kind[is_part] = np.where(parts == DEVICE_SYNC, DEVICE_SYNC, DEVICE_PART)
        extra = np.full(len(task), -1, np.int64)
        extra[is_kernel] = _looked_up(kernel, task[is_kernel], "extra").astype(np.int64)
        extra[is_part] = _looked_up(part, task[is_part], "extra").astype(np.int64)
        rows: dict[str, Array] = {
            "name": self._names(names.tolist()),
            "start": start,
            "length": np.maximum(end - start, 0),
            "kind": row_kind,
            "device": np.maximum(device, 0),
            "stream": stream,
            "connection": np.where((connection >= 0) & (connection < NONE), connection, -1),
            "extra": extra,
            "task": task,
        }
        return _chosen(rows, keep)

    def _kernels(self) -> dict[str, Array]:
        """COMPUTE_TASK_INFO: by task the name and the number of the further arguments."""
        task, name = self.file.integers("COMPUTE_TASK_INFO", "globalTaskId", "name")
        texts = {
            title: self._text(self.file.integers("COMPUTE_TASK_INFO", column)[0])
            for column, title in _KERNEL_TEXTS.items()
            if column in self.file.columns("COMPUTE_TASK_INFO")
        }
        numbers = {
            title: self.file.integers("COMPUTE_TASK_INFO", column)[0].tolist()
            for column, title in _KERNEL_NUMBERS.items()
            if column in self.file.columns("COMPUTE_TASK_INFO")
        }
        wait = self.file.integers("COMPUTE_TASK_INFO", "waitNs")[0]
        columns: dict[str, list[JSONValue]] = {
            **{key: [text.strip('"') for text in column] for key, column in texts.items()},
            **numbers,
        }
        if (wait >= 0).any():
            columns["Wait Time(us)"] = (wait / 1000).tolist()
        metrics = self._metrics()
        return {
            "task": task,
            "name": np.array(self._text(name), object),
            "extra": self._extra(columns, [metrics.get(t, {}) for t in task.tolist()], len(task)),
        }

    def _metrics(self) -> dict[int, JSONObject]:
        """TASK_PMU_INFO: metrics by task."""
        metrics: dict[int, JSONObject] = {}
        task, name = self.file.integers("TASK_PMU_INFO", "globalTaskId", "name")
        values = self.file.floats("TASK_PMU_INFO", "value")
        for number, label, value in zip(task.tolist(), self._text(name), values.tolist()):
            if value == value:
                title, factor = _metric_title(label)
                metrics.setdefault(number, {})[title] = value * factor
        return metrics

    def _extra(self, columns: dict[str, list[JSONValue]], further: list[JSONObject], count: int) -> IntArray:
        """Numbers of rows of arguments, which are added to the collector's table; values that stand for none are left out."""
        table = self.collector.device_extras
        first = len(table)
        keys = tuple(columns)
        for row, more in zip(zip(*columns.values()) if columns else [()] * count, further):
            known = {key: value for key, value in zip(keys, row) if value not in ("", "N/A", None, -1)}
            arguments = {**known, **more}
            table.append((tuple(arguments), orjson.dumps(list(arguments.values()))))
        return np.arange(first, len(table))

    def _parts(self) -> dict[str, Array]:
        """COMMUNICATION_TASK_INFO: by task the name and the number of the further arguments."""
        table = "COMMUNICATION_TASK_INFO"
        task, kind, plane, source, target, size, transport, data, link, op = self.file.integers(
            table, "globalTaskId", "taskType", "planeId", "srcRank", "dstRank", "size", "transportType",
            "dataType", "linkType", "opId",
        )  # fmt: skip
        self._part_op, self._part_task = op, task
        self._part_ranks = np.stack([source, target])
        columns: dict[str, list[JSONValue]] = {
            "plane": plane.tolist(),
            "src rank": np.where(source < NONE, source, -1).tolist(),
            "dst rank": np.where(target < NONE, target, -1).tolist(),
            "size(Byte)": size.tolist(),
            "transport type": self._enum("ENUM_HCCL_TRANSPORT_TYPE", transport),
            "data type": self._enum("ENUM_HCCL_DATA_TYPE", data),
            "link type": self._enum("ENUM_HCCL_LINK_TYPE", link),
        }
        return {
            "task": task,
            "name": np.array(self._text(kind), object),
            "extra": self._extra(columns, [{}] * len(task), len(task)),
        }

    def _enum(self, table: str, numbers: IntArray) -> list[JSONValue]:
        names = self.file.mapping(table, "id", "name")
        return ["" if name == "INVALID_TYPE" else name for name in texts_of(numbers.tolist(), names)]

    def _collectives(self, tasks: dict[str, Array]) -> dict[str, Array]:
        """COMMUNICATION_OP. Tasks with the connection of a collective are its parts."""
        table = "COMMUNICATION_OP"
        name, start, end, connection, op, group, kind = self.file.integers(
            table, "opName", "startNs", "endNs", "connectionId", "opId", "groupName", "dataType"
        )
        (device,) = self.file.integers(table, "deviceId")
        counts = self.file.floats(table, "count")
        algorithm = self._text(self.file.integers(table, "algType")[0])
        own = np.isin(tasks["connection"], connection[connection >= 0])
        tasks["kind"][own & (tasks["kind"] != DEVICE_SYNC)] = DEVICE_PART
        row = self._task_rows(tasks, op, connection)
        known = row >= 0
        only = _most_frequent(tasks["device"])
        where = np.where(known, tasks["device"][np.maximum(row, 0)], only) if len(tasks["device"]) else device
        _, thread = np.unique(group, return_inverse=True)
        unknown = FIRST_UNKNOWN_STREAM - thread.reshape(-1)
        stream = (
            np.where(known, tasks["stream"][np.maximum(row, 0)], unknown) if len(tasks["stream"]) else unknown
        )
        texts = self._text(name)
        times = self._times()
        self._n_times = len(times)
        dtypes = self._enum("ENUM_HCCL_DATA_TYPE", kind)
        sizes = self._group_sizes(op)
        arguments: list[JSONObject] = []
        for text, count, dtype, group_name, size, algorithm_name in zip(
            texts, counts.tolist(), dtypes, self._text(group), sizes, algorithm
        ):
            own_arguments = collective_arguments(
                text, count if count == count else None, dtype, group_name, size, alg_type=algorithm_name
            )
            arguments.append({**own_arguments, **times.get(text, {})})
        return {
            "name": self._names(texts),
            "start": start,
            "length": np.maximum(end - start, 0),
            "kind": np.full(len(name), DEVICE_KERNEL, np.int8),
            "device": np.where(device >= 0, device, where),
            "stream": stream,
            "connection": connection,
            "extra": self._extra({}, arguments, len(arguments)),
        }

    def _task_rows(self, tasks: dict[str, Array], op: IntArray, connection: IntArray) -> IntArray:
        """By collective a row of a task that is part of it, by its id or else by the connection; -1: none."""
        rows = np.full(len(op), -1, np.int64)
        if not len(tasks["task"]) or not len(op):
            return rows
        by_connection = np.argsort(tasks["connection"], kind="stable")
        sorted_connections = tasks["connection"][by_connection]
        place = np.minimum(np.searchsorted(sorted_connections, connection), len(sorted_connections) - 1)
        rows = np.where(sorted_connections[place] == connection, by_connection[place], rows)
        if len(self._part_op):
            by_op = np.argsort(self._part_op, kind="stable")
            place = np.minimum(np.searchsorted(self._part_op[by_op], op), len(by_op) - 1)
            part = by_op[place]
            by_task = np.argsort(tasks["task"], kind="stable")
            sorted_tasks = tasks["task"][by_task]
            at = np.minimum(np.searchsorted(sorted_tasks, self._part_task[part]), len(sorted_tasks) - 1)
            known = (self._part_op[part] == op) & (sorted_tasks[at] == self._part_task[part])
            rows = np.where(known, by_task[at], rows)
        return rows

    def _group_sizes(self, op: IntArray) -> list[int]:
        """By collective the number of ranks that its tasks name."""
        ranks, owner = self._part_ranks.reshape(-1), np.tile(self._part_op, 2)
        known = (ranks >= 0) & (ranks < NONE)
        pairs = np.unique(np.stack([owner[known], ranks[known]]), axis=1)
        owners, sizes = np.unique(pairs[0], return_counts=True)
        size_of = dict(zip(owners.tolist(), sizes.tolist()))
        return [size_of.get(number, 0) for number in op.tolist()]

    def _times(self) -> dict[str, JSONObject]:
        """What analysis.db says of collectives, under the names of communication.json."""
        beside = self.path.with_name("analysis.db")
        if not beside.is_file():
            return {}
        columns = ("elapse", "transit", "wait", "synchronization", "idle")
        with opened_tables(beside, os.fspath(beside)) as analysis:
            rows = analysis.values("CommAnalyzerTime", "hccl_op_name", *(f"{c}_time" for c in columns))
        titles = [f"{column.capitalize()} Time(ms)" for column in columns]
        return {
            str(name): {t: v for t, v in zip(titles, values) if isinstance(v, (int, float))}
            for name, *values in rows
        }

    # ------------------------------------------------------------------------------------------------ counters, memory

    def _counters(self) -> None:
        """Fill the table of counters, named as in trace_view.json."""
        parts: list[tuple[list[str], IntArray, FloatArray]] = []
        file = self.file

        def add(table: str, column: str, names: list[str]) -> None:
            (time,) = file.integers(table, "timestampNs")
            parts.append((names, time, file.floats(table, column)))

        add("AICORE_FREQ", "freq", ["AI Core Freq (MHz)"] * file.count("AICORE_FREQ"))
        number, mode = file.integers("HBM", "hbmId", "type")
        add(
            "HBM",
            "bandwidth",
            [f"HBM {n}/{t.capitalize()} (B/s)" for n, t in zip(number.tolist(), self._text(mode))],
        )
        number, mode = file.integers("LLC", "llcId", "mode")
        labels = [f"LLC {n} {t.capitalize()}" for n, t in zip(number.tolist(), self._text(mode))]
        add("LLC", "hitRate", [f"{label}/Hit Rate (%)" for label in labels])
        add("LLC", "throughput", [f"{label}/Throughput (B/s)" for label in labels])
        (kind,) = file.integers("NPU_MEM", "type")
        for column in ("ddr", "hbm"):
            add("NPU_MEM", column, [f"{t.upper()}/{column.upper()} (B)" for t in self._text(kind)])
        (number,) = file.integers("ACC_PMU", "accId")
        for column, label in (
            ("readBwLevel", "read_bandwidth"),
            ("writeBwLevel", "write_band_width"),
            ("readOstLevel", "read_ost"),
            ("writeOstLevel", "write_ost"),
        ):
            add("ACC_PMU", column, [f"{label} {n}" for n in number.tolist()])
        count = file.count("SOC_BANDWIDTH_LEVEL")
        add("SOC_BANDWIDTH_LEVEL", "l2BufferBwLevel", ["L2 Buffer Bw Level"] * count)
        add("SOC_BANDWIDTH_LEVEL", "mataBwLevel", ["Mata Bw Level"] * count)
        (kind,) = file.integers("QOS", "eventName")
        add("QOS", "bandwidth", [f"QoS {t} (B/s)" for t in self._text(kind)])
        numbers = [np.array(self.collector.counter_names.numbers(names), np.int32) for names, _, _ in parts]
        value = np.concatenate([value for _, _, value in parts])
        known = np.isfinite(value)
        self.tables.counters = {
            "name": np.concatenate(numbers)[known],
            "start": np.concatenate([time for _, time, _ in parts])[known],
            "value": value[known],
        }

    def _memory(self) -> Allocations | None:
        tables = {"OP_MEMORY", "MEMORY_RECORD"} & self.file.tables
        if not tables:
            return None
        name, size, start, release, active_release, total, release_total, device = self.file.integers(
            "OP_MEMORY", "name", "size", "allocationTime", "releaseTime", "activeReleaseTime",
            "allocationTotalAllocated", "releaseTotalAllocated", "deviceId",
        )  # fmt: skip
        component, time, allocated, reserved, active, record_device = self.file.integers(
            "MEMORY_RECORD",
            "component",
            "timestamp",
            "totalAllocated",
            "totalReserved",
            "totalActive",
            "deviceId",
        )
        return Allocations(
            name=self._text(name),
            size=np.maximum(size, 0),
            start=start,
            release=first_known(active_release, release),
            total=total,
            release_total=release_total,
            device=np.maximum(device, 0),
            component=self._text(component),
            time=time,
            allocated=allocated,
            reserved=reserved,
            active=active,
            record_device=np.maximum(record_device, 0),
        )

    # ------------------------------------------------------------------------------------------------ the whole

    def _about(self, capture: Capture) -> JSONObject:
        """What the database says of its recording, as a Kineto file says it at its top."""
        devices: list[JSONValue] = [
            {"id": number, "name": name}
            for number, name in self.file.values("NPU_INFO", "id", "name")
            if isinstance(number, int) and number >= 0 and isinstance(name, str)
        ]
        host = next((row[0] for row in self.file.values("HOST_INFO", "hostName")), "")
        about: JSONObject = {"deviceProperties": devices, "host_name": host if isinstance(host, str) else ""}
        ranks = self.file.values("RANK_DEVICE_MAP", "rankId", "deviceId")
        if capture.rank is None and len(ranks) == 1 and isinstance(ranks[0][0], int) and ranks[0][0] >= 0:
            about["distributedInfo"] = {"backend": "hccl", "rank": ranks[0][0]}
        return about


def _chosen(table: dict[str, Array], which: BoolArray) -> dict[str, Array]:
    return {name: column[which] for name, column in table.items()}


def _most_frequent(numbers: IntArray) -> int:
    """The number that occurs most often; 0 where there is none."""
    distinct, counts = np.unique(numbers, return_counts=True)
    return int(distinct[np.argmax(counts)]) if len(distinct) else 0


def _looked_up(table: dict[str, Array], tasks: IntArray, column: str) -> Array:
    """Values of a column by task; every task is in the table."""
    if not len(tasks):
        return table[column][:0]
    order = np.argsort(table["task"], kind="stable")
    values: Array = table[column][order[np.searchsorted(table["task"][order], tasks)]]
    return values


def _metric_title(label: str) -> tuple[str, float]:
    """What kernel_details.csv calls a metric, and the factor to its unit: times are in microseconds there, and in nanoseconds here."""
    if not label.endswith("_time"):
        return label, 1
    return {"aic_total_time": "aicore_time", "aiv_total_time": "aiv_time"}.get(label, label) + "(us)", 0.001


def _module_number(name: str) -> int:
    """The number of a module among those of its class, which the name of its call ends with; -1: no module's call."""
    if not name.startswith("nn.Module: "):
        return -1
    number = name.rpartition("_")[2]
    return int(number) if number.isdecimal() else -1
