"""Time opening a large trace and making its op table, beside other tools: a file in, ratios out.

Each tool runs in a process of its own, in turns; processor time without imports, and the peak of memory. The
last lines are whole commands, from the start of the interpreter to its end.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

OURS = """
import json, resource, sys, time
from mindtorch_prof.load import load
import mindtorch_prof.load.open_trace, mindtorch_prof.torch_api.table
begin = time.process_time()
loaded = load(sys.argv[1], python_functions=False)
rows = loaded.key_averages()
rows.table(sort_by="self_device_time_total")
spent = time.process_time() - begin
begin = time.process_time()
for _ in range(3):
    loaded.key_averages(group_by_input_shape=True)
averages = (time.process_time() - begin) / 3
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seconds": spent, "averages": averages, "peak_kb": peak, "rows": len(rows)}))
"""
# only its rows and a table of sums by name: it has no self times
HTA = """
import json, logging, os, resource, sys, time, warnings
os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
from hta.common.trace_parser import parse_trace_dataframe
from hta.configs.parser_config import ParserConfig
begin = time.process_time()
_, frame, symbols = parse_trace_dataframe(sys.argv[1], ParserConfig.get_default_cfg())
rows = frame.groupby("name")["dur"].agg(["count", "sum", "mean"]).sort_values("sum", ascending=False)
names = symbols.get_sym_table()
rows.index = [names[i] for i in rows.index]
rows.to_string()
spent = time.process_time() - begin
begin = time.process_time()
for _ in range(3):
    frame.groupby(["name", "cat"])["dur"].agg(["count", "sum", "mean"])
averages = (time.process_time() - begin) / 3
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seconds": spent, "averages": averages, "peak_kb": peak, "rows": len(rows)}))
"""
PARSER = """
import json, resource, sys, time
import orjson
begin = time.process_time()
document = orjson.loads(open(sys.argv[1], "rb").read())
sums = {}
for event in document["traceEvents"]:
    if "dur" in event:
        count, total = sums.get(event["name"], (0, 0))
        sums[event["name"]] = count + 1, total + event["dur"]
spent = time.process_time() - begin
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seconds": spent, "averages": 0, "peak_kb": peak, "rows": len(sums)}))
"""


# -------------------------------------------------------------------------------- a trace to open


class Job:
    """A training job of made-up times: forward on one thread, backward on another, kernels on two streams.

    host_bound: kernels are so short that the device has nothing queued and waits for nearly each launch."""

    def __init__(self, seed: int = 7, host_bound: bool = False) -> None:
        self.random = random.Random(seed)
        self.longest_kernel = 4000 if host_bound else 60000
        self.now, self.external, self.correlation, self.index = 1_000_000, 0, 0, 0
        self.stream = {7: 0, 20: 0}
        self.call = 0

    def slice(self, cat: str, name: str, tid: int, start: int, length: int, **args: Any) -> dict[str, Any]:
        pid = tid if cat in ("kernel", "gpu_memcpy") else 4242
        times = {"ts": start / 1000, "dur": length / 1000}
        return {
            "ph": "X",
            "cat": cat,
            "name": name,
            "pid": 0 if pid in self.stream else 4242,
            "tid": tid,
            **times,
            "args": args,
        }

    def op(self, name: str, tid: int, start: int, length: int, **more: Any) -> dict[str, Any]:
        self.external += 1
        self.index += 1
        dims = self.random.choice(
            ([[32, 128, 768], [768, 768]], [[64, 64, 56, 56]], [[4096, 1024], [1024], []])
        )
        shapes = {
            "Concrete Inputs": ["" if d else "1" for d in dims],
            "Input type": ["float" if d else "Scalar" for d in dims],
            "Input Strides": [[1] * len(d) for d in dims],
            "Input Dims": dims,
        }
        known = {
            "External id": self.external,
            **more,
            "Record function id": 0,
            **shapes,
            "Ev Idx": self.index,
        }
        return self.slice("cpu_op", name, tid, start, length, **known)

    def launch(self, tid: int, start: int) -> Iterator[dict[str, Any]]:
        self.correlation += 1
        stream = 7 if self.random.random() < 0.9 else 20
        ids = {"External id": self.external, "correlation": self.correlation}
        yield self.slice("cuda_runtime", "cudaLaunchKernel", tid, start, 3000, cbid=211, **ids)
        arrow = {"id": self.correlation, "cat": "ac2g", "name": "ac2g"}
        yield {"ph": "s", "pid": 4242, "tid": tid, "ts": start / 1000, **arrow}
        begin = max(self.stream[stream], start + 4000)
        length = self.random.randint(1500, self.longest_kernel)
        self.stream[stream] = begin + length + 300
        name = f"void kernel_of_a_long_name<{self.correlation % 7}, at::detail::Array<char*, 3> >(int, float)"
        shape = {"registers per thread": 32, "grid": [864, 1, 1], "block": [128, 1, 1], "warps per SM": 34.0}
        yield self.slice(
            "kernel", name, stream, begin, length, **ids, queued=0, device=0, stream=stream, **shape
        )
        yield {"ph": "f", "bp": "e", "pid": 0, "tid": stream, "ts": begin / 1000, **arrow}

    def layer(self, number: int) -> Iterator[dict[str, Any]]:
        start = self.now
        for depth, name in enumerate(
            (f"nn.Module: Block_{number % 24}", "module.py(1782): _call_impl", "model.py(10): forward")
        ):
            self.call += 1
            self.index += 1
            args = {
                "Python parent id": self.call - 1 if depth else None,
                "Python id": self.call,
                "Ev Idx": self.index,
            }
            yield self.slice("python_function", name, 4242, start + 100 * depth, 24_000 - 200 * depth, **args)
        yield self.op(
            "aten::linear", 4242, start + 1000, 20_000, **{"Sequence number": number, "Fwd thread id": 0}
        )
        yield self.op("aten::addmm", 4242, start + 2000, 16_000)
        memory = {
            "Total Allocated": 4096,
            "Bytes": 4096,
            "Device Id": 0,
            "Device Type": 1,
            "Addr": 139926520725504 + number,
        }
        instant = {
            "ph": "i",
            "s": "t",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "pid": 4242,
            "tid": 4242,
        }
        yield {**instant, "ts": (start + 2500) / 1000, "args": memory}
        for at in (3000, 8000):
            yield from self.launch(4242, start + at)
        node = {"Sequence number": number, "Fwd thread id": 1}
        yield self.op(
            "autograd::engine::evaluate_function: AddmmBackward0", 4300, start + 1000, 18_000, **node
        )
        yield self.op("AddmmBackward0", 4300, start + 1500, 17_000, **node)
        yield self.op("aten::mm", 4300, start + 2000, 12_000)
        yield from self.launch(4300, start + 3000)
        self.now += 25_000

    def events(self, count: int, steps: int = 0) -> Iterator[dict[str, Any]]:
        made, number, step, step_start = 0, 0, 0, self.now
        while made < count:
            for event in self.layer(number):
                made += 1
                yield event
            number += 1
            if made * steps >= (step + 1) * count:
                name = f"ProfilerStep#{step}"
                yield self.slice("user_annotation", name, 4242, step_start, self.now - step_start - 100)
                step, step_start = step + 1, self.now


def write(path: str, count: int, steps: int = 0, host_bound: bool = False) -> None:
    """Write a trace of about `count` events, with marks of steps if wanted."""
    head = {
        "schemaVersion": 1,
        "deviceProperties": [],
        "record_shapes": 1,
        "with_stack": 1,
        "profile_memory": 1,
    }
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "wt", encoding="utf-8") as out:
        out.write(
            json.dumps({**head, "baseTimeNanoseconds": 1790857026000000000})[:-1] + ', "traceEvents": [\n'
        )
        for place, event in enumerate(Job(host_bound=host_bound).events(count, steps)):
            out.write((",\n" if place else "") + json.dumps(event))
        out.write('\n], "traceName": "made.json"}\n')


# -------------------------------------------------------------------------------- measuring


def run(python: str, program: str, path: str, core: str) -> dict[str, float]:
    """What a program in a process of its own says of itself."""
    environment = {**os.environ, "MINDTORCH_CORE": core}
    done = subprocess.run(
        [python, "-c", program, path], capture_output=True, text=True, check=True, env=environment
    )
    return json.loads(done.stdout.strip().splitlines()[-1])


def command_seconds(core: str, *words: str) -> float:
    """Processor time of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "MINDTORCH_CORE": core}
    command = [sys.executable, "-m", "mindtorch_prof", *words]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def content_size(path: str) -> int:
    """Bytes of a file, unpacked."""
    if not path.endswith(".gz"):
        return os.path.getsize(path)
    with gzip.open(path) as file:
        return sum(map(len, iter(lambda: file.read(1 << 20), b"")))


def main() -> None:
    """Print a line a tool."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000, help="how many events to make (1,000,000)")
    parser.add_argument("--file", help="a trace to open instead of a made one")
    parser.add_argument("--hta", metavar="PYTHON", help="an interpreter that has HolisticTraceAnalysis")
    parser.add_argument("--rounds", type=int, default=2, help="how often each tool runs; the best counts (2)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as where:
        path = options.file or os.path.join(where, "made.pt.trace.json")
        if not options.file:
            write(path, options.events)
        size = content_size(path)
        tools = [(f"mindtorch_prof, {core}", sys.executable, OURS, core) for core in ("c", "python")]
        if not path.endswith(".gz"):
            tools.append(("orjson, whole, and a loop", sys.executable, PARSER, ""))
        if options.hta:
            tools.append(("HolisticTraceAnalysis", options.hta, HTA, ""))
        best: dict[str, dict[str, float]] = {}
        commands: dict[str, float] = {}
        for _ in range(options.rounds):
            for name, python, program, core in tools:
                measured = run(python, program, path, core)
                best[name] = min(best.get(name, measured), measured, key=lambda one: one["seconds"])
            for core in ("c", "python"):
                report = os.path.join(where, "report.html")
                seconds = command_seconds(core, "report", path, "-o", report)
                commands[core] = min(commands.get(core, seconds), seconds)
    ours = best["mindtorch_prof, c"]
    print(f"{size / 1e6:.0f} MB of JSON{', packed' if path.endswith('.gz') else ''}")
    print(f"{'':26} {'to the table':>13} {'ratio':>7} {'averages again':>15} {'peak':>9} {'of JSON':>8}")
    for name, measured in best.items():
        again = f"{measured['averages'] * 1000:.0f} ms" if measured["averages"] else "-"
        peak = measured["peak_kb"] * 1024
        seconds = measured["seconds"]
        print(
            f"{name:26} {seconds:11.2f} s {seconds / ours['seconds']:6.1f}x {again:>15} "
            f"{peak / 1e6:6.0f} MB {peak / size:7.2f}x"
        )
    for core, seconds in commands.items():
        print(f"{f'report, {core}':26} {seconds:11.2f} s")


if __name__ == "__main__":
    main()
