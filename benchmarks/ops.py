"""Time a few ops and one training step: a package name in, a table of microseconds out."""

from __future__ import annotations

import argparse
import importlib
import os
import time
from collections.abc import Callable
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # read by the BLAS libraries when they are loaded

import numpy as np


def best_us(call: Callable[[], object], seconds: float = 0.2) -> float:
    """Processor time of one call in microseconds: the best of the rounds that fit into `seconds`."""
    count, spent = 1, 0.0
    while spent < seconds / 20:
        count *= 2
        spent = timed(call, count)
    rounds = max(3, int(seconds / spent))
    return min(timed(call, count) for _ in range(rounds)) / count * 1e6


def timed(call: Callable[[], object], count: int) -> float:
    """Processor time of `count` calls in seconds."""
    begin = time.process_time()
    for _ in range(count):
        call()
    return time.process_time() - begin


def cases(torch: Any) -> list[tuple[str, Callable[[], object], Callable[[], object] | None]]:
    """Rows of the table: a title, the package's call, and NumPy's where there is one."""
    small, large = np.ones((4, 4), np.float32), np.ones((256, 256), np.float32)
    x, big = torch.from_numpy(small), torch.from_numpy(large)
    leaf = torch.ones(4, 4, requires_grad=True)
    return [
        ("x + x, 4x4", lambda: x + x, lambda: small + small),
        ("x + x, 4x4, with gradient", lambda: leaf + leaf, None),
        ("x @ x, 256x256", lambda: big @ big, lambda: large @ large),
        ("x.sum(), 256x256", big.sum, large.sum),
        ("softmax, 256x256", lambda: big.softmax(1), None),
        ("training step, 784-256-10", training_step(torch), None),
    ]


def training_step(torch: Any) -> Callable[[], object]:
    """A step of a two-layer classifier on a batch of 64."""
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    images, labels = torch.rand(64, 784), torch.randint(10, (64,))

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", default="mindtorch_v2", help="module to measure (default: mindtorch_v2)")
    options = parser.parse_args()
    torch = importlib.import_module(options.package)
    torch.set_num_threads(1)
    print(f"{options.package:30} {'us':>10} {'numpy us':>10}")
    for title, call, beside in cases(torch):
        numpy_us = f"{best_us(beside):10.2f}" if beside else f"{'':>10}"
        print(f"{title:30} {best_us(call):10.2f} {numpy_us}")


if __name__ == "__main__":
    main()
