"""Small Chrome traces as torch writes them on various machines and in various years, made by hand for the tests of loading."""

from __future__ import annotations

import json
from typing import Any

BASE = 1_790_857_026_000_000_000
PID = 4242


def event(
    name: str, start: float, length: float, cat: str = "cpu_op", tid: Any = PID, **args: Any
) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        "pid": PID,
        "tid": tid,
        "ts": start,
        "dur": length,
        "args": args,
    }


def kernel(
    name: str, start: float, length: float, stream: int = 7, cat: str = "kernel", **args: Any
) -> dict[str, Any]:
    made = event(name, start, length, cat, stream, device=0, stream=stream, **args)
    return made | {"pid": 0}


def document(events: list[dict[str, Any]], **top: Any) -> dict[str, Any]:
    head = {
        "schemaVersion": 1,
        "deviceProperties": [],
        **top,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE,
    }
    return {**head, "traceEvents": events, "traceName": "made.json"}


def cpu() -> dict[str, Any]:
    """linear with two ops inside, inside a step; one allocation."""
    shapes = {
        "Concrete Inputs": ["", "", ""],
        "Input type": ["float", "float", "float"],
        "Input Strides": [[4, 1], [4, 1], [1]],
        "Input Dims": [[2, 4], [3, 4], [3]],
    }
    memory = {
        "Total Reserved": 0,
        "Total Allocated": 64,
        "Bytes": 64,
        "Device Id": -1,
        "Device Type": 0,
        "Addr": 9,
    }
    return document(
        [
            {"ph": "M", "name": "process_name", "ts": 0, "pid": PID, "tid": 0, "args": {"name": "python"}},
            event("ProfilerStep#3", 1000.0, 100.0, "user_annotation", **{"External id": 1}),
            event(
                "aten::linear",
                1010.5,
                50.25,
                **{"External id": 2, **shapes, "Sequence number": 5, "Fwd thread id": 0},
            ),
            event("aten::t", 1011.0, 4.0, **{"External id": 3}),
            event("aten::addmm", 1020.0, 40.001, **{"External id": 4}),
            {
                "ph": "i",
                "s": "t",
                "cat": "cpu_instant_event",
                "name": "[memory]",
                "pid": PID,
                "tid": PID,
                "ts": 1030.0,
                "args": memory,
            },
            {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 1200.0},
        ],
        record_shapes=1,
        profile_memory=1,
    )


def gpu(style: str = "cuda") -> dict[str, Any]:
    """Two ops that launch three kernels and a copy on two streams, with runtime calls and an annotation on both sides.

    style: cuda, 2021 (old categories, whole microseconds, string threads), rocm, xpu, or ascend (texts for times, arrows for numbers).
    """
    if style == "ascend":
        return _ascend()
    old = style == "2021"
    runtime = {"xpu": "xpu_runtime"}.get(style, "Runtime" if old else "cuda_runtime")
    op, work, copy = ("Operator", "Kernel", "Memcpy") if old else ("cpu_op", "kernel", "gpu_memcpy")
    key = "external id" if old else "External id"
    launch = {"rocm": "hipLaunchKernel", "xpu": "urEnqueueKernelLaunch"}.get(style, "cudaLaunchKernel")
    thread = str(PID) if old else PID
    events = [
        event("aten::linear", 1000.0, 80.0, op, thread, **{"External id": 1}),
        event("aten::addmm", 1010.0, 60.0, op, thread, **{"External id": 2}),
        event(launch, 1020.0, 10.0, runtime, thread, **{key: 2, "correlation": 51, "cbid": 211}),
        event(launch, 1035.0, 10.0, runtime, thread, **{key: 2, "correlation": 52, "cbid": 211}),
        event("aten::copy_", 1100.0, 30.0, op, thread, **{"External id": 3}),
        event("cudaMemcpyAsync", 1105.0, 5.0, runtime, thread, **{key: 3, "correlation": 53, "cbid": 41}),
        event("cudaGraphLaunch", 1150.0, 20.0, runtime, thread, correlation=54, cbid=9),
        kernel(
            "gemm", 1030.0, 100.0, cat=work, correlation=51, grid=[8, 1, 1], block=[128, 1, 1], **{key: 2}
        ),
        kernel("gemm", 1140.0, 50.0, cat=work, correlation=52, grid=[8, 1, 1], block=[128, 1, 1], **{key: 2}),
        kernel(
            "Memcpy HtoD (Pageable -> Device)", 1120.0, 40.0, 20, copy, correlation=53, bytes=4096, **{key: 3}
        ),
        kernel("graphed", 1200.0, 10.0, cat=work, correlation=54),
    ]
    if not old:
        events.insert(0, event("step", 990.0, 200.0, "user_annotation", **{"External id": 9}))
        events.append(kernel("step", 1030.0, 180.0, cat="gpu_user_annotation", **{"External id": 9}))
    made = document(events, deviceProperties=[{"id": 0, "name": "Made"}])
    if old:
        del made["baseTimeNanoseconds"]
        for e in made["traceEvents"]:
            e["ts"] = int(e["ts"]) + 1_623_142_623_000_000
            e["dur"] = int(e["dur"])
            if e["pid"] == 0:
                e["tid"] = f"stream {e['tid']}"
    return made


def _ascend() -> dict[str, Any]:
    def named(pid: int, name: str) -> dict[str, Any]:
        return {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}

    def on_device(name: str, start: str, length: float) -> dict[str, Any]:
        args = {"Model Id": 4294967295, "Task Type": "AI_CORE", "Stream Id": 2, "Task Id": 1}
        return {"ph": "X", "name": name, "pid": 500, "tid": 2, "ts": start, "dur": length, "args": args}

    def arrow(phase: str, number: int, pid: int, tid: int, at: str) -> dict[str, Any]:
        made = {
            "ph": phase,
            "id": str(number),
            "pid": pid,
            "tid": tid,
            "ts": at,
            "cat": "async_npu",
            "name": "async_npu",
        }
        return made | ({"bp": "e"} if phase == "f" else {})

    events = [
        named(PID, "Python"),
        named(500, "Ascend Hardware"),
        {
            "ph": "X",
            "name": "aten::linear",
            "pid": PID,
            "tid": PID,
            "ts": "1701234567000000.000",
            "dur": 80.0,
            "args": {},
            "cat": "cpu_op",
        },
        arrow("s", 1, PID, PID, "1701234567000010.000"),
        on_device("MatMul", "1701234567000030.250", 100.0),
        arrow("f", 1, 500, 2, "1701234567000030.250"),
    ]
    return {"traceEvents": events}


def as_bytes(made: Any, **how: Any) -> bytes:
    return json.dumps(made, **how).encode()
