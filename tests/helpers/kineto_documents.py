"""Kineto documents for tests: small traces as torch writes them on several machines and in several years."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

from mindtorch_prof import load

BASE = 1_790_857_026_000_000_000
PID = 4242
HOSTILE_NAME = "evil\x1b[31m|<img>\n=1+1"


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
    return event(name, start, length, cat, stream, device=0, stream=stream, **args) | {"pid": 0}


def document(events: list[dict[str, Any]], **top: Any) -> dict[str, Any]:
    head = {
        "schemaVersion": 1,
        "deviceProperties": [],
        **top,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE,
    }
    return {**head, "traceEvents": events, "traceName": "trace.json"}


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
    """Two ops that launch three kernels and a copy on two streams; an annotation on the host and the device.

    style: cuda, 2021 (old categories, whole microseconds, string threads), rocm, xpu,
    or ascend (times are strings, arrows link ops and kernels).
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
    trace = document(events, deviceProperties=[{"id": 0, "name": "GPU"}])
    if old:
        del trace["baseTimeNanoseconds"]
        for e in trace["traceEvents"]:
            e["ts"] = int(e["ts"]) + 1_623_142_623_000_000
            e["dur"] = int(e["dur"])
            if e["pid"] == 0:
                e["tid"] = f"stream {e['tid']}"
    return trace


def _ascend() -> dict[str, Any]:
    def named(pid: int, name: str) -> dict[str, Any]:
        return {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}

    def on_device(name: str, start: str, length: float) -> dict[str, Any]:
        args = {"Model Id": 4294967295, "Task Type": "AI_CORE", "Stream Id": 2, "Task Id": 1}
        return {"ph": "X", "name": name, "pid": 500, "tid": 2, "ts": start, "dur": length, "args": args}

    def arrow(phase: str, number: int, pid: int, tid: int, at: str) -> dict[str, Any]:
        flow = {
            "ph": phase,
            "id": str(number),
            "pid": pid,
            "tid": tid,
            "ts": at,
            "cat": "async_npu",
            "name": "async_npu",
        }
        return flow | ({"bp": "e"} if phase == "f" else {})

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


def training_step(number: int, at: float) -> list[dict[str, Any]]:
    """100 us: linear in a module (50 us: t 10, addmm 30, its kernel 20) and copy_ (10, on the device 10)."""
    linear, transpose, addmm, copy = (number * 10 + i for i in range(1, 5))
    return [
        event(f"ProfilerStep#{number}", at, 100, "user_annotation"),
        event(
            "nn.Module: Linear_0",
            at + 5,
            60,
            "python_function",
            **{"Python id": linear, "Python module id": 0},
        ),
        event("aten::linear", at + 10, 50, **{"External id": linear, "Input Dims": [[2, 4], [4, 4]]}),
        event("aten::t", at + 10, 10, **{"External id": transpose, "Input Dims": [[4, 4]]}),
        event("aten::addmm", at + 25, 30, **{"External id": addmm, "Input Dims": [[4], [2, 4], [4, 4]]}),
        launch(at + 30, addmm),
        event("aten::copy_", at + 80, 10, **{"External id": copy}),
        launch(at + 82, copy),
        kernel("ampere_sgemm", at + 40, 20, correlation=addmm),
        kernel("Memcpy DtoH", at + 85, 10, correlation=copy),
    ]


def launch(start: float, number: int) -> dict[str, Any]:
    """A runtime call of 2 us by the op of this external id, for the kernel of this correlation id."""
    return event("cudaLaunchKernel", start, 2, "cuda_runtime", correlation=number, **{"External id": number})


def waiting_device(path: Path, *, memcpy: str = "Memcpy HtoD (Pinned -> Device)") -> Path:
    """A file: the host launches a kernel, copies, and waits for a value; the device is idle in between."""
    events: list[dict[str, Any]] = []
    for step in range(3):
        at = step * 1000.0
        mm, copy, wait = ({"External id": step * 10 + i, "correlation": step * 10 + i} for i in (1, 2, 3))
        events += [
            event("aten::mm", at + 1, 50, **mm),
            event("cudaLaunchKernel", at + 10, 5, "cuda_runtime", **mm),
            kernel("gemm", at + 20, 100, **mm),
            event("aten::to", at + 200, 60, **copy),
            event("cudaMemcpyAsync", at + 210, 40, "cuda_runtime", **copy),
            kernel(memcpy, at + 220, 30, cat="gpu_memcpy", **copy),
            event("aten::item", at + 300, 300, **wait),
            event("cudaStreamSynchronize", at + 310, 250, "cuda_runtime", **wait),
        ]
    return write(path, events)


def as_bytes(document: Any, **how: Any) -> bytes:
    return json.dumps(document, **how).encode()


def load_document(document: Any, **how: Any) -> Any:
    """A document, or the bytes of a file, as `load` opens it."""
    return load(io.BytesIO(document if isinstance(document, bytes) else as_bytes(document)), **how)


def event_names(loaded: Any) -> list[str]:
    return [event.name for event in loaded.events()]


def write(path: Path, events: list[dict[str, Any]], **top: Any) -> Path:
    """A file of these events, on a machine with one device."""
    head = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], **top}
    data = as_bytes({**head, "traceEvents": events})
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path
