"""Trace files for tests: events in, a Kineto trace file out, with times that are easy to add up."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

BASE = 1790857026000000000
START = 3908837965000  # microseconds after the base at which every trace begins
PID, MAIN, OTHER = 4242, 4242, 4300
DEVICE, STREAM = 0, 7


class TraceFileBuilder:
    """Collects events; `dump` writes them. Times are microseconds since the trace begins."""

    def __init__(self, rank: int | None = None, pid: int = PID) -> None:
        self.events: list[dict[str, Any]] = []
        self.pid = pid
        self.top: dict[str, Any] = {"schemaVersion": 1, "deviceProperties": [], "displayTimeUnit": "ms"}
        self.top["baseTimeNanoseconds"] = BASE
        if rank is not None:
            self.top["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 2}
        self._number = 0
        self.meta("process_name", pid, 0, {"name": "python"})
        self.meta("process_labels", pid, 0, {"labels": "CPU"})
        for tid in (MAIN, OTHER):
            self.meta("thread_name", pid, tid, {"name": f"thread {tid} (python)"})

    def meta(self, name: str, pid: int, tid: int, args: dict[str, Any]) -> None:
        self.events.append({"ph": "M", "name": name, "ts": START, "pid": pid, "tid": tid, "args": args})

    def number(self) -> int:
        self._number += 1
        return self._number

    def slice(
        self, cat: str, name: str, at: float, dur: float, pid: int, tid: int, args: dict[str, Any]
    ) -> dict[str, Any]:
        event = {
            "ph": "X",
            "cat": cat,
            "name": name,
            "pid": pid,
            "tid": tid,
            "ts": START + at,
            "dur": dur,
            "args": args,
        }
        self.events.append(event)
        return event

    def op(self, name: str, at: float, dur: float, tid: int = MAIN, **more: Any) -> int:
        """An op; gives its external id. `shapes` become its input dims."""
        number = self.number()
        args: dict[str, Any] = {"External id": number, "Record function id": 0, "Ev Idx": number - 1}
        shapes = more.pop("shapes", None)
        if shapes is not None:
            args["Input Dims"] = shapes
            args["Input type"] = ["float"] * len(shapes)
            args["Input Strides"] = [[1] * len(shape) for shape in shapes]
            args["Concrete Inputs"] = [""] * len(shapes)
            self.top["record_shapes"] = 1
        self.slice(more.pop("cat", "cpu_op"), name, at, dur, self.pid, tid, {**args, **more})
        return number

    def step(self, number: int, at: float, dur: float) -> int:
        return self.op(f"ProfilerStep#{number}", at, dur, cat="user_annotation")

    def launch(
        self, external: int, at: float, kernel_at: float, dur: float, name: str = "gemm", tid: int = MAIN
    ) -> int:
        """A runtime call, the kernel that it launches, and the flow between them; gives the correlation."""
        correlation = 1000 + self.number()
        args = {"External id": external, "correlation": correlation}
        self.slice("cuda_runtime", "cudaLaunchKernel", at, 1, self.pid, tid, dict(args))
        flow = {"id": correlation, "cat": "ac2g", "name": "ac2g"}
        self.events.append({"ph": "s", **flow, "pid": self.pid, "tid": tid, "ts": START + at})
        self.slice("kernel", name, kernel_at, dur, DEVICE, STREAM, {**args, "device": 0, "stream": STREAM})
        self.events.append(
            {"ph": "f", "bp": "e", **flow, "pid": DEVICE, "tid": STREAM, "ts": START + kernel_at}
        )
        return correlation

    def frame(self, name: str, at: float, dur: float, parent: int | None, tid: int = MAIN) -> int:
        number = self.number()
        args = {"Python id": number, "Python parent id": parent, "Ev Idx": number - 1}
        self.slice("python_function", name, at, dur, self.pid, tid, args)
        return number

    def memory(self, at: float, nbytes: int, total: int, tid: int = MAIN) -> None:
        args = {
            "Total Allocated": total,
            "Total Reserved": 0,
            "Bytes": nbytes,
            "Addr": 4096,
            "Device Id": -1,
            "Device Type": 0,
        }
        args["Ev Idx"] = self.number() - 1
        self.top["profile_memory"] = 1
        self.events.append(
            {
                "ph": "i",
                "s": "t",
                "cat": "cpu_instant_event",
                "name": "[memory]",
                "pid": self.pid,
                "tid": tid,
                "ts": START + at,
                "args": args,
            }
        )

    def close(self, dur: float) -> TraceFileBuilder:
        """The span and the marks that end every trace."""
        self.slice("Trace", "PyTorch Profiler (0)", 0, dur, "Spans", "PyTorch Profiler", {"Op count": 0})  # type: ignore[arg-type]
        for name, pid, at in (
            ("Iteration Start: PyTorch Profiler", "Traces", 0),
            ("Record Window End", "", dur),
        ):
            self.events.append({"ph": "i", "s": "g", "name": name, "pid": pid, "tid": pid, "ts": START + at})
        return self

    def dump(self, path: Path) -> str:
        text = json.dumps({**self.top, "traceEvents": self.events, "traceName": path.name})
        if path.suffix == ".gz":
            path.write_bytes(gzip.compress(text.encode()))
        else:
            path.write_text(text)
        return str(path)


def read_trace(path: str | Path) -> dict[str, Any]:
    """A trace file as a dict."""
    data = Path(path).read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def training(
    steps: int = 3, rank: int | None = None, slow: float = 1.0, extra: bool = False, first: int = 0
) -> TraceFileBuilder:
    """Steps of 100 us: linear with an addmm that launches a kernel, relu, backward on another thread."""
    trace = TraceFileBuilder(rank)
    root = trace.frame("train.py(1): <module>", 0, 100 * steps, None)
    for place in range(steps):
        at, number = 100 * place, first + place
        trace.step(number, at, 99)
        inner = trace.frame("train.py(5): step", at + 1, 97, root)
        trace.frame("model.py(9): forward", at + 2, 40, inner)
        trace.op("aten::linear", at + 3, 20 + 10 * (slow - 1), shapes=[[4, 8], [16, 8]])
        addmm = trace.op("aten::addmm", at + 4, 10 * slow, shapes=[[16], [4, 8], [8, 16]])
        trace.launch(addmm, at + 5, at + 60, 30 * slow)
        trace.memory(at + 6, 256, 256 * (place + 1))
        trace.op("aten::relu", at + 46, 5)
        if extra:
            trace.op("aten::erf", at + 52, 3)
        trace.op("AddmmBackward0", at + 60, 20, tid=OTHER, **{"Sequence number": number, "Fwd thread id": 1})
    return trace.close(100 * steps + 50)


def repeated_ops(ops: list[tuple[str, int, int]], steps: int = 0) -> TraceFileBuilder:
    """A trace of (name, calls, microseconds of each), repeated in every step; times differ by up to 0.4."""
    trace = TraceFileBuilder()
    at = 0.0
    for step in range(max(steps, 1)):
        begun = at
        for name, calls, length in ops:
            for call in range(calls):
                trace.op(name, at + 1, length + (step * 7 + call * 3) % 5 * 0.1)
                at += length + 2
        if steps:
            trace.step(step, begun, at - begun + 1)
            at += 2
    return trace.close(at + 10)


def noisy_ops(ops: dict[str, tuple[int, float]], steps: int = 6, seed: int = 0) -> TraceFileBuilder:
    """A trace of ops (calls, microseconds of each) in steps; times differ by 2 % (standard deviation)."""
    random = np.random.default_rng(seed)
    trace, at = TraceFileBuilder(), 0.0
    for step in range(steps):
        begun = at
        for name, (calls, length) in ops.items():
            for _ in range(calls):
                real = round(length * random.normal(1, 0.02), 3)
                trace.op(name, at + 1, real, shapes=[[8, calls]])
                at = round(at + real + 2, 3)
        trace.memory(begun + 2, 1024 * len(ops), 1024 * len(ops))
        trace.step(step, begun, round(at - begun + 1, 3))
        at = round(at + 2, 3)
    return trace.close(at + 10)


def rank_steps(rank: int, work: float, steps: int = 6) -> TraceFileBuilder:
    """Steps of 200 us that end together on all ranks: work, then a collective that takes the rest."""
    trace = TraceFileBuilder(rank)
    for step in range(steps):
        at, mine = 200 * step, work + step % 3
        trace.step(step, at, 199)
        op = trace.op("aten::mm", at + 1, 10)
        trace.launch(op, at + 2, at + 5, mine - 5, name="gemm")
        trace.launch(op, at + 4, at + mine, 199 - mine, name="ncclDevKernel_AllReduce_Sum_f32_RING")
    return trace.close(200 * steps)
