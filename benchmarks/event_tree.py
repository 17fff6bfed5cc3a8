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
    """Processor seconds by part: the least of all rounds."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.counts: dict[str, int] = {}

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        gc.collect()
        begin = time.process_time()
        yield
        spent = time.process_time() - begin
        self.seconds[name] = min(spent, self.seconds.get(name, spent))


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


def measured(package: str, size: int, rounds: int) -> dict[str, Any]:
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

    for _ in range(rounds):
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
        del prof, found
    return {"seconds": clock.seconds, "nodes": clock.counts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", default="mindtorch_v2", help="module to measure (default: mindtorch_v2)")
    parser.add_argument("--beside", metavar="PYTHON", help="an interpreter that has torch, to measure it too")
    parser.add_argument("--size", type=int, default=100_000, help="ops (default: 100,000)")
    parser.add_argument("--rounds", type=int, default=2, help="the best of so many counts (default: 2)")
    parser.add_argument("--json", action="store_true", help="seconds as JSON")
    options = parser.parse_args()
    theirs: dict[str, Any] | None = None
    if options.beside:
        command = [options.beside, __file__, "--package", "torch", "--json"]
        command += ["--size", str(options.size), "--rounds", str(options.rounds)]
        theirs = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    ours = measured(options.package, options.size, options.rounds)
    if options.json:
        json.dump(ours, sys.stdout)
        return
    print(f"{'':58} {options.package:>12} {'torch' if theirs else '':>10} {'ratio' if theirs else '':>8}")
    for title, nodes in ours["nodes"].items():
        print(f"{title + ', nodes':58} {nodes:12,} " + (f"{theirs['nodes'][title]:10,}" if theirs else ""))
    for title, seconds in ours["seconds"].items():
        line = f"{title:58} {seconds:12.4f} "
        if theirs:
            other = theirs["seconds"][title]
            line += f"{other:10.4f} {seconds / other:8.3f}"
        print(line)


if __name__ == "__main__":
    main()
