"""Captures for tests: a small recording of an Ascend device in both of its forms, and one of nsys.

The recording: a step in which the main thread calls aten::mm, whose kernel a second thread launches, and
c10d::allreduce_, whose collective overlaps the kernel by 20 us. Times below are microseconds since BASE.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any, TypeAlias

Tables: TypeAlias = "dict[str, tuple[tuple[str, ...], list[tuple[Any, ...]]]]"  # columns and rows by name

BASE_NS = 1_736_408_883_000_000_000
PID, WORKER, DEVICE = 3_000_000, 3_000_007, 3
HARDWARE, HCCL, CANN, DERIVED, FREQUENCY = ((PID << 10) | (n << 5) | DEVICE for n in (13, 15, 7, 23, 14))

STEP = ("ProfilerStep#7", 0.0, 1000.0)
MM = ("aten::mm", 10.0, 30.0)
ACLNN = ("aclnnMm", 12.0, 20.0)
ALLREDUCE = ("c10d::allreduce_", 50.0, 20.0)
BACKWARD = ("MmBackward0", 80.0, 10.0)
ENQUEUE = [("Enqueue", 14.0, 2.0, 100), ("Enqueue", 55.0, 2.0, 101)]
DEQUEUE = [("Dequeue@aclnnMm", 20.0, 10.0, 100), ("Dequeue@HcclAllreduce", 60.0, 10.0, 101)]
# level, name, start, length, connection
CALLS = [
    ("AscendCL", "aclnnMm", 21.0, 8.0, 5),
    ("Node", "launch", 22.0, 5.0, 6),
    ("Node", "launch", 62.0, 5.0, 7),
]
KERNEL = ("MatMulV2_kernel", 100.123, 50.5)
COPY = ("MEMCPY_ASYNC", 160.0, 8.25)
WAIT = ("EVENT_WAIT", 170.0, 400.0)
COLLECTIVE = ("hcom_allReduce__586_4_1", 130.623, 200.0)
TASKS = [("Memcpy", 131.0, 100.0), ("Notify_Wait", 231.0, 99.0)]
COMPUTATION_US, COMMUNICATION_US, OVERLAP_US = 50.5, 200.0, 20.0


def us(time: float) -> str:
    """A time as trace_view.json has it."""
    nanoseconds = BASE_NS + round(time * 1000)
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"


def ns(time: float) -> int:
    return BASE_NS + round(time * 1000)


def _slice(
    name: str, start: float, length: float, pid: int, tid: int, cat: str = "", **args: Any
) -> dict[str, Any]:
    event: dict[str, Any] = {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": us(start), "dur": length}
    return event | ({"cat": cat} if cat else {}) | {"args": args}


def _flow(phase: str, cat: str, number: object, time: float, pid: int, tid: int) -> dict[str, Any]:
    return {"ph": phase, "cat": cat, "name": cat, "id": number, "pid": pid, "tid": tid, "ts": us(time)}


def text_events() -> list[dict[str, Any]]:
    """The events of trace_view.json; names of processes come last, as they do in files."""
    plain = {"Sequence number": -1, "Fwd thread id": 0}
    events = [
        _slice(*STEP, PID, PID, "cpu_op", **plain),
        _slice(
            *MM,
            PID,
            PID,
            "cpu_op",
            **{"Sequence number": 4, "Fwd thread id": 0},
            **{"Input Dims": "2,3;\r\n3,5;\r\n", "Input type": "float;\r\nfloat;\r\nNone"},
            **{"Call stack": "model.py(3): forward;\r\ntrain.py(9): main"},
        ),
        _slice(*ACLNN, PID, PID, "cpu_op", **plain),
        _slice(*ALLREDUCE, PID, PID, "cpu_op", **plain),
        _slice(*BACKWARD, PID, PID, "cpu_op", **{"Sequence number": 4, "Fwd thread id": 1}),
        _slice(
            "nn.Module: Linear_0",
            5.0,
            40.0,
            PID,
            PID,
            "python_function",
            **{"Python id": 1, "Python parent id": None, "Python module id": 0},
        ),
        *(_slice(n, s, d, PID, PID, "enqueue", correlation_id=c) for n, s, d, c in ENQUEUE),
        *(_slice(n, s, d, PID, WORKER, "dequeue", correlation_id=c) for n, s, d, c in DEQUEUE),
        *(
            _slice(f"{level}@{n}", s, d, CANN, WORKER, connection_id=c, level=level)
            for level, n, s, d, c in CALLS
        ),
        _slice(*KERNEL, HARDWARE, 2, **{"Task Type": "AI_CORE", "connection_id": 6}),
        _slice(*COPY, HARDWARE, 2, **{"Task Type": "SDMA_SQE", "connection_id": 5}),
        _slice(*WAIT, HARDWARE, 2, **{"Task Type": "EVENT_WAIT_SQE", "connection_id": 8}),
        *(
            _slice(n, s, d, HARDWARE, 4, **{"Task Type": t, "connection_id": 7})
            for (_, s, d), n, t in zip(TASKS, ("SDMA", "Notify Wait"), ("SDMA", "Notify Wait"))
        ),
        _slice(*COLLECTIVE, HCCL, 0, connection_id=7, data_type="FP16", alg_type="RING", count=1000),
        *(_slice(n, s, d, HCCL, 1, **{"stream id": 4, "src rank": 0, "dst rank": 1}) for n, s, d in TASKS),
        _slice("Computing", *KERNEL[1:], DERIVED, 0),
        _slice("Communication", *COLLECTIVE[1:], DERIVED, 1),
        _slice("Free", 0.0, 100.0, DERIVED, 3),
        _flow("s", "async_npu", 900, ACLNN[1], PID, PID),
        _flow("f", "async_npu", 900, KERNEL[1], HARDWARE, 2),
        _flow("s", "async_npu", 901, ALLREDUCE[1], PID, PID),
        _flow("f", "async_npu", 901, COLLECTIVE[1], HCCL, 0),
        {"ph": "C", "name": "AI Core Freq", "pid": FREQUENCY, "tid": 0, "ts": us(1.0), "args": {"MHz": 1800}},
    ]
    names = {
        PID: "Python",
        HARDWARE: "Ascend Hardware",
        HCCL: "HCCL",
        CANN: "CANN",
        DERIVED: "Overlap Analysis",
        FREQUENCY: "AI Core Freq",
    }
    threads = {
        (HCCL, 0): "Group 0 Communication",
        (HCCL, 1): "Plane 0",
        (HARDWARE, 2): "Stream 2",
        (HARDWARE, 4): "Stream 4",
    }
    for pid, name in names.items():
        label = "CPU" if name in ("Python", "CANN") else "NPU"
        events.append({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}})
        events.append({"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "args": {"labels": label}})
    for (pid, tid), name in threads.items():
        events.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}})
    return events


def _info(folder: Path, form: str) -> Path:
    output = folder / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    config = {
        "config": {
            "common_config": {"record_shapes": True, "with_stack": True, "profile_memory": True},
            "experimental_config": {"_profiler_level": "Level1", "_export_type": form},
        },
        "rank_id": 6,
    }
    (folder / "profiler_info_6.json").write_text(json.dumps(config))
    group = {"group": {"group_name": "default_group", "global_ranks": list(range(8))}}
    (folder / "profiler_metadata.json").write_text(json.dumps({"parallel_group_info": group}))
    return output


def text_capture(folder: Path, events: list[dict[str, Any]] | None = None) -> Path:
    """Write the capture as text; its folder."""
    output = _info(folder, "text")
    (output / "trace_view.json").write_text(json.dumps(text_events() if events is None else events))
    (output / "kernel_details.csv").write_text(
        "Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Shapes,aic_mac_ratio\n"
        f'{KERNEL[0]},MatMulV2,AI_CORE,{us(KERNEL[1])}\t,{KERNEL[2]},"""2,3;3,5""",0.25\n'
    )
    (output / "memory_record.csv").write_text(
        "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),"
        "Stream Ptr,Device Type\n"
        f"PTA,{us(9)}\t,10,32,10,1,NPU:{DEVICE}\n"
        f"PTA,{us(11)}\t,14,32,14,1,NPU:{DEVICE}\n"
        f"PTA,{us(60)}\t,13,32,13,1,NPU:{DEVICE}\n"
        f"PTA,{us(85)}\t,9,32,9,1,NPU:{DEVICE}\n"
    )
    (output / "operator_memory.csv").write_text(
        "Name,Size(KB),Allocation Time(us),Release Time(us),Active Release Time(us),Device Type\n"
        f"aten::mm,4096,{us(11)}\t,{us(86)}\t,{us(85)}\t,NPU:{DEVICE}\n"
    )
    times = {"Elapse Time(ms)": 0.2, "Transit Time(ms)": 0.1, "Wait Time(ms)": 0.099}
    document = {
        "step7": {"p2p": {}, "collective": {f"{COLLECTIVE[0]}@9586": {"Communication Time Info": times}}}
    }
    (output / "communication.json").write_text(json.dumps(document))
    return folder


class Strings(dict[str, int]):
    """Numbers of texts, for a table of strings."""

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self)
        return number


def write_tables(path: Path, tables: Tables) -> Path:
    """Write tables (columns, rows) into an SQLite file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    for name, (columns, rows) in tables.items():
        connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
        connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows)
    connection.commit()
    connection.close()
    return path


def db_tables() -> Tables:
    """The capture as tables."""
    texts = Strings()
    main, worker = (PID << 32) | PID, (PID << 32) | WORKER
    dims, types = texts["2,3;\r\n3,5;\r\n"], texts["float;\r\nfloat;\r\nNone"]

    def op(event: tuple[str, float, float], link: Any = None, *more: Any) -> tuple[Any, ...]:
        name, start, length = event
        sequence, forward, shapes, kinds, chain = more or (-1, 0, None, None, None)
        return (
            str(ns(start)),
            str(ns(start + length)),
            main,
            link,
            texts[name],
            sequence,
            forward,
            kinds,
            shapes,
            chain,
            50001,
        )

    def queue(event: tuple[str, float, float, int], tid: int, link: int) -> tuple[Any, ...]:
        name, start, length, _ = event
        return (
            str(ns(start)),
            str(ns(start + length)),
            tid,
            link,
            texts[name],
            None,
            None,
            None,
            None,
            None,
            50002,
        )

    api = [
        op(STEP),
        # the two columns of inputs are the wrong way round, as one version writes them
        op(MM, None, 4, 0, types, dims, 0),
        op(ACLNN, 50),
        op(ALLREDUCE, 51),
        op(BACKWARD, None, 4, 1, None, None, None),
        (
            str(ns(5.0)),
            str(ns(45.0)),
            main,
            None,
            texts["nn.Module: Linear_0"],
            None,
            None,
            None,
            None,
            None,
            50003,
        ),
        *(queue(event, main, 60 + n) for n, event in enumerate(ENQUEUE)),
        *(queue(event, worker, 70 + n) for n, event in enumerate(DEQUEUE)),
    ]
    levels = {"AscendCL": 20000, "Node": 10000}

    def task(
        number: int, event: tuple[str, float, float], kind: str, stream: int, connection: int
    ) -> tuple[Any, ...]:
        _, start, length = event
        return (
            ns(start),
            ns(start) + round(length * 1000),
            DEVICE,
            connection,
            number,
            PID,
            texts[kind],
            stream,
            number,
        )

    tasks = [
        task(0, KERNEL, "KERNEL_AICORE", 2, 6),
        task(1, KERNEL, "KERNEL_AICORE", 2, 6),  # the kernel a second time, without a description
        task(2, COPY, "MEMCPY_ASYNC", 2, 5),
        task(3, WAIT, "EVENT_WAIT", 2, 8),
        task(4, TASKS[0], "SDMA", 4, 7),
        task(5, TASKS[1], "Notify Wait", 4, 7),
    ]
    name, start, length = COLLECTIVE
    tables: Tables = {
        "PYTORCH_API": (
            (
                "startNs TEXT",
                "endNs TEXT",
                "globalTid",
                "connectionId",
                "name",
                "sequenceNumber",
                "fwdThreadId",
                "inputDtypes",
                "inputShapes",
                "callchainId",
                "type",
            ),
            api,
        ),
        "PYTORCH_CALLCHAINS": (
            ("id", "stack", "stackDepth"),
            [(0, texts["train.py(9): main"], 1), (0, texts["model.py(3): forward"], 0)],
        ),
        "CONNECTION_IDS": (
            ("id", "connectionId"),
            [(50, 6), (51, 7), (60, 100), (70, 100), (61, 101), (71, 101)],
        ),
        "CANN_API": (
            ("startNs", "endNs", "type", "globalTid", "connectionId", "name"),
            [(ns(s), ns(s + d), levels[level], worker, c, texts[n]) for level, n, s, d, c in CALLS],
        ),
        "TASK": (
            (
                "startNs",
                "endNs",
                "deviceId",
                "connectionId",
                "globalTaskId",
                "globalPid",
                "taskType",
                "streamId",
                "taskId",
            ),
            tasks,
        ),
        "COMPUTE_TASK_INFO": (
            ("name", "globalTaskId", "taskType", "opType", "inputShapes"),
            [(texts[KERNEL[0]], 0, texts["AI_CORE"], texts["MatMulV2"], texts["2,3;3,5"])],
        ),
        "TASK_PMU_INFO": (("globalTaskId", "name", "value"), [(0, texts["aic_mac_ratio"], 0.25)]),
        "COMMUNICATION_OP": (
            (
                "opName",
                "startNs",
                "endNs",
                "connectionId",
                "groupName",
                "opId",
                "dataType",
                "algType",
                "count",
            ),
            [(texts[name], ns(start), ns(start + length), 7, texts["9586"], 1, 3, texts["RING"], 1000)],
        ),
        "COMMUNICATION_TASK_INFO": (
            ("name", "globalTaskId", "taskType", "planeId", "srcRank", "dstRank", "opId"),
            [(texts[name], 4 + n, texts[TASKS[n][0]], 0, 0, 1, 1) for n in (0, 1)],
        ),
        "ENUM_HCCL_DATA_TYPE": (("id", "name"), [(3, "FP16")]),
        "AICORE_FREQ": (("deviceId", "timestampNs", "freq"), [(DEVICE, ns(1.0), 1800)]),
        "MEMORY_RECORD": (
            ("component", "timestamp", "totalAllocated", "totalReserved", "totalActive", "deviceId"),
            [
                (texts["PTA"], ns(t), n << 20, 32 << 20, n << 20, DEVICE)
                for t, n in ((9, 10), (11, 14), (60, 13), (85, 9))
            ],
        ),
        "OP_MEMORY": (
            ("name", "size", "allocationTime", "releaseTime", "activeReleaseTime", "deviceId"),
            [(texts["aten::mm"], 4 << 20, ns(11), ns(86), ns(85), DEVICE)],
        ),
        "NPU_INFO": (("id", "name"), [(DEVICE, "Ascend910B")]),
        "HOST_INFO": (("hostUid", "hostName"), [("1", "node7")]),
        "OVERLAP_ANALYSIS": (
            ("id", "deviceId", "startNs", "endNs", "type"),
            [(1, DEVICE, ns(0), ns(100), 3)],
        ),
    }
    tables["STRING_IDS"] = (
        ("id INTEGER PRIMARY KEY", "value TEXT"),
        [(n, text) for text, n in texts.items()],
    )
    return tables


def db_capture(folder: Path) -> Path:
    """Write the capture as a database; its folder."""
    output = _info(folder, "db")
    write_tables(output / "ascend_pytorch_profiler_6.db", db_tables())
    times = ("hccl_op_name", "elapse_time", "transit_time", "wait_time")
    write_tables(output / "analysis.db", {"CommAnalyzerTime": (times, [(COLLECTIVE[0], 0.2, 0.1, 0.099)])})
    return folder


# ---------------------------------------------------------------------------------------------------- nsys


def nsys_tables() -> Tables:
    """Two processes with one GPU each, both of which call it device 0 and use correlation id 7."""
    texts = Strings()
    first, second = (41 << 24), (42 << 24)
    tables: Tables = {
        "CUPTI_ACTIVITY_KIND_KERNEL": (
            (
                "start",
                "end",
                "deviceId",
                "streamId",
                "correlationId",
                "globalPid",
                "demangledName",
                "shortName",
                "gridX",
                "gridY",
                "gridZ",
                "blockX",
                "blockY",
                "blockZ",
            ),
            [
                (
                    1200,
                    1700,
                    0,
                    7,
                    7,
                    first,
                    texts["void gemm<float>(float*)"],
                    texts["gemm"],
                    4,
                    1,
                    1,
                    128,
                    1,
                    1,
                ),
                (
                    1300,
                    1600,
                    0,
                    7,
                    7,
                    second,
                    texts["ncclDevKernel_AllReduce_Sum_f32"],
                    texts["nccl"],
                    1,
                    1,
                    1,
                    32,
                    1,
                    1,
                ),
            ],
        ),
        "CUPTI_ACTIVITY_KIND_MEMCPY": (
            (
                "start",
                "end",
                "deviceId",
                "streamId",
                "correlationId",
                "globalPid",
                "bytes",
                "copyKind",
                "srcKind",
                "dstKind",
            ),
            [(1800, 2000, 0, 7, 8, first, 4000, 1, 1, 2)],
        ),
        "CUPTI_ACTIVITY_KIND_MEMSET": (
            ("start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes", "memKind"),
            [(2100, 2110, 0, 7, 9, first, 64, 2)],
        ),
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (
            ("start", "end", "deviceId", "streamId", "correlationId", "globalPid", "syncType", "eventId"),
            [(2200, 2300, 0, 7, 10, first, 3, 0)],
        ),
        "CUPTI_ACTIVITY_KIND_RUNTIME": (
            ("start", "end", "globalTid", "correlationId", "nameId"),
            [
                (1110, 1120, first | 41, 7, texts["cudaLaunchKernel_v7000"]),
                (1150, 1160, second | 42, 7, texts["cudaLaunchKernel_v7000"]),
                (1170, 1180, first | 41, 8, texts["cudaMemcpyAsync_v3020"]),
            ],
        ),
        "NVTX_EVENTS": (
            ("start", "end", "eventType", "text", "textId", "globalTid", "domainId"),
            [
                (1000, 3000, 59, "ProfilerStep#3", None, first | 41, 0),
                (
                    1100,
                    1130,
                    59,
                    "aten::mm, seq = 5, op_id = 12, sizes = [[2, 3], [3, 5]]",
                    None,
                    first | 41,
                    0,
                ),
                (1140, 1165, 59, None, texts["my range"], second | 42, 0),
                (1166, 1190, 59, "FSDP::pre_forward (layer.0), op_id = 13", None, first | 41, 0),
                (1500, None, 34, "a mark", None, first | 41, 0),
                (2500, None, 60, "never ended", None, first | 41, 0),
            ],
        ),
        "TARGET_INFO_GPU": (
            ("id", "name", "totalMemory", "smCount", "computeMajor", "computeMinor"),
            [
                (0, "NVIDIA H100 80GB HBM3", 85_000_000_000, 132, 9, 0),
                (1, "NVIDIA H100 80GB HBM3", 85_000_000_000, 132, 9, 0),
            ],
        ),
        "TARGET_INFO_CUDA_DEVICE": (("gpuId", "cudaId", "pid"), [(0, 0, 41), (1, 0, 42)]),
        "TARGET_INFO_SESSION_START_TIME": (("utcEpochNs", "utcTime", "localTime"), [(BASE_NS, "", "")]),
        "PROCESSES": (("globalPid", "pid", "name"), [(first, 41, "python3")]),
        "ThreadNames": (("nameId", "priority", "globalTid"), [(texts["main thread"], 0, first | 41)]),
    }
    tables["StringIds"] = (("id INTEGER PRIMARY KEY", "value TEXT"), [(n, text) for text, n in texts.items()])
    return tables


def nsys_export(path: Path) -> Path:
    """Write the export; its path."""
    return write_tables(path, nsys_tables())
