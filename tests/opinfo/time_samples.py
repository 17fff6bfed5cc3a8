"""The samples of `record_samples.py` in, a table out: how many times as long as torch each op takes.

    python tests/opinfo/time_samples.py FOLDER --torch-python PYTHON [--op NAME ...] [--above 5]

Each package has one process with one thread; they take turns. An op's time is the sum over its float32
samples of the best processor time of a call.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROUNDS = 2
REPEATS = 3
ROUND_NS = 1_000_000


class Worker:
    """One package in a process of its own: the name of a sample file in, microseconds of each sample out."""

    def __init__(self, python: str, package: str, folder: Path) -> None:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        environment = {**os.environ, **threads, "OPINFO_PACKAGE": package}
        self._process = subprocess.Popen(
            [python, __file__, str(folder), "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def microseconds(self, name: str) -> list[float | None]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(name + "\n")
        stdin.flush()
        times: list[float | None] = json.loads(stdout.readline())
        return times

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def _best_time(call: Callable[[], Any]) -> float:
    """Processor time of one call in microseconds: the best of several rounds of about a millisecond."""
    call()
    best, count = float("inf"), 1
    for _ in range(REPEATS + 1):
        begin = time.process_time_ns()
        for _ in range(count):
            call()
        best = min(best, (time.process_time_ns() - begin) / count)
        count = max(1, min(500, int(ROUND_NS / max(best, 1))))
    return best / 1000


def work(folder: Path) -> None:
    """Answer with times, one line for each line read."""
    import compare_samples

    compare_samples.torch.set_num_threads(1)
    for line in sys.stdin:
        op = line.strip()
        times: list[float | None] = []
        for row in pickle.loads((folder / f"{op}.pickle").read_bytes()).get("float32", []):
            try:
                if "error" in row or row["clone"]:
                    continue
                sample, call = compare_samples.Sample(row), compare_samples.function_of(op, row)
                times.append(_best_time(lambda: call(*sample.arguments, **sample.options)))  # noqa: B023
            except Exception:  # compare_samples.py counts what is not supported
                times.append(None)
        print(json.dumps(times), flush=True)


def main() -> None:
    """Time all ops, or some, and print the slowest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--torch-python", help="an interpreter that has torch")
    parser.add_argument("--op", nargs="*")
    parser.add_argument("--above", type=float, default=5, help="print ops that take longer than this")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.worker:
        work(options.folder)
        return
    ours = Worker(sys.executable, "mindtorch_v2", options.folder)
    theirs = Worker(options.torch_python, "torch", options.folder)
    ratios: dict[str, tuple[float, float, float]] = {}
    for file in sorted(options.folder.glob("*.pickle")):
        if options.op and file.stem not in options.op:
            continue
        rounds = [(ours.microseconds(file.stem), theirs.microseconds(file.stem)) for _ in range(ROUNDS)]
        pairs = [
            (min(round[0][i] for round in rounds), min(round[1][i] for round in rounds))
            for i in range(len(rounds[0][0]))
            if all(round[k][i] is not None for round in rounds for k in (0, 1))
        ]
        if pairs:
            here, torch = (sum(column) for column in zip(*pairs))
            ratios[file.stem] = (here / torch, here / len(pairs), torch / len(pairs))
    for op, (ratio, here, torch) in sorted(ratios.items(), key=lambda item: -item[1][0]):
        if ratio > options.above:
            print(f"{op:50} {ratio:7.1f} x {here:9.1f} us {torch:9.1f} us")
    values = [ratio for ratio, _, _ in ratios.values()]
    if values:
        slow = sum(value > 5 for value in values)
        print(f"{len(values)} ops, median {statistics.median(values):.2f} x, {slow} above 5 x")
    ours.close()
    theirs.close()


if __name__ == "__main__":
    main()
