"""Time the event tree and what stands on it: a package in, processor seconds out; beside torch, ratios."""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # read by the BLAS libraries when they are loaded

SETTINGS: dict[str, dict[str, bool]] = {
    "plain": {},
    "shapes, memory": {"record_shapes": True, "profile_memory": True},
    "shapes, memory, stacks": {"record_shapes": True, "profile_memory": True, "with_stack": True},
}


class Clock:
    """Processor seconds by part."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.counts: dict[str, int] = {}

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        gc.collect()
        begin = time.process_time()
        yield
        self.seconds[name] = time.process_time() - begin


def ops(torch: Any, count: int) -> Callable[[], None]:
    """A loop of ops that make a tensor and free it."""
    x = torch.ones(4, 4)

    def run() -> None:
        for _ in range(count):
            x.add(x)

    return run


def training(torch: Any, count: int) -> Callable[[], None]:
    """Steps of a small classifier: some hundred events each."""
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    inputs, labels = torch.ones(4, 8), torch.zeros(4, dtype=torch.long)

    def run() -> None:
        for _ in range(count):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()

    return run


def walk(roots: list[Any]) -> int:
    """Look at every field of every node that all nodes have, and at what went into ops."""
    waiting, count = list(roots), 0
    while waiting:
        event = waiting.pop()
        count += 1
        _ = event.name, event.start_time_ns, event.duration_time_ns, event.tag
        fields = event.extra_fields
        if hasattr(fields, "inputs"):
            _ = fields.inputs
        waiting.extend(event.children)
    return count


def measured(package: str, size: int) -> dict[str, Any]:
    """Seconds by part, and how many nodes there were."""
    torch = importlib.import_module(package)
    profiler = importlib.import_module(f"{package}.profiler")
    utils = importlib.import_module(f"{package}.profiler._utils")
    patterns = importlib.import_module(f"{package}.profiler._pattern_matcher")
    memory = importlib.import_module(f"{package}.profiler._memory_profiler")
    torch.set_num_threads(1)
    clock = Clock()

    def recorded(run: Callable[[], None], how: str, title: str) -> Any:
        prof = profiler.profile(activities=[profiler.ProfilerActivity.CPU], **SETTINGS[how])
        prof.__enter__()
        run()
        with clock.part(f"{title}: stop and tree"):
            prof.__exit__(None, None, None)
            roots = prof.profiler.kineto_results.experimental_event_tree()
        with clock.part(f"{title}: all fields of all nodes"):
            clock.counts[title] = walk(roots)
        return prof

    for how in SETTINGS:  # what is loaded or made at the first time is not measured
        recorded(training(torch, 1), how, "first")
    clock.seconds.clear()
    clock.counts.clear()
    for how in ("plain", "shapes, memory"):
        title = f"{size:,} ops, {how}"
        prof = recorded(ops(torch, size), how, title)
        roots = prof.profiler.kineto_results.experimental_event_tree()
        with clock.part(f"{title}: traverse_dfs"):
            sum(1 for _ in utils.traverse_dfs(roots))
        with clock.part(f"{title}: traverse_bfs"):
            sum(1 for _ in utils.traverse_bfs(roots))
        if how == "plain":
            with clock.part(f"{title}: BasicEvaluation"):
                utils.BasicEvaluation(prof.profiler)
        del prof, roots
    steps = max(1, size // 400)
    title = f"{steps:,} training steps"
    prof = recorded(training(torch, steps), "shapes, memory, stacks", title)
    with clock.part(f"{title}: MemoryProfile"):
        found = prof._memory_profile()
    with clock.part(f"{title}: timeline"):
        _ = found.timeline
    with clock.part(f"{title}: categories, coalesced"):
        memory.MemoryProfileTimeline(found)._coalesce_timeline("cpu")
    with clock.part(f"{title}: BasicEvaluation"):
        utils.BasicEvaluation(prof.profiler)
    with clock.part(f"{title}: report_all_anti_patterns"), contextlib.redirect_stdout(io.StringIO()):
        patterns.report_all_anti_patterns(prof)
    return {"seconds": clock.seconds, "nodes": clock.counts}


def best(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The least seconds of several runs."""
    seconds = {part: min(run["seconds"][part] for run in runs) for part in runs[0]["seconds"]}
    return {"seconds": seconds, "nodes": runs[0]["nodes"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", default="mindtorch_v2", help="module to measure (default: mindtorch_v2)")
    parser.add_argument("--beside", metavar="PYTHON", help="an interpreter that has torch, to measure it too")
    parser.add_argument("--size", type=int, default=100_000, help="ops (default: 100,000)")
    parser.add_argument("--rounds", type=int, default=2, help="the best of so many counts (default: 2)")
    parser.add_argument("--json", action="store_true", help="measure once, and give seconds as JSON")
    options = parser.parse_args()
    if options.json:
        json.dump(measured(options.package, options.size), sys.stdout)
        return

    def run(python: str, package: str) -> dict[str, Any]:
        command = [python, __file__, "--package", package, "--size", str(options.size), "--json"]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)

    # each run in a process of its own, in turns: whatever else the machine does is done to both
    ours, theirs = [], []
    for _ in range(options.rounds):
        ours.append(run(sys.executable, options.package))
        if options.beside:
            theirs.append(run(options.beside, "torch"))
    own, other = best(ours), best(theirs) if theirs else None
    print(f"{'':58} {options.package:>12}" + (f"{'torch':>11} {'ratio':>8}" if other else ""))
    for title, nodes in own["nodes"].items():
        print(f"{title + ', nodes':58} {nodes:12,}" + (f"{other['nodes'][title]:11,}" if other else ""))
    for title, seconds in own["seconds"].items():
        line = f"{title:58} {seconds:12.4f}"
        if other:
            line += f"{other['seconds'][title]:11.4f} {seconds / other['seconds'][title]:8.3f}"
        print(line)


if __name__ == "__main__":
    main()
