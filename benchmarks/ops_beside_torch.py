"""Time ops of this library beside torch's: an interpreter with torch in, a table of times and ratios out.

    python benchmarks/ops_beside_torch.py --torch-python /path/to/python [--op gelu ...] [--rounds 5]

Each package has one process with one thread; they take turns, and the best processor time of each counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "src"
WORKER = """
import importlib, json, sys, time, warnings
warnings.simplefilter("ignore")
torch = importlib.import_module(sys.argv[1])
F = torch.nn.functional
torch.set_num_threads(1)
torch.manual_seed(0)
x = torch.randn(1024, 1024)
images = torch.randn(8, 16, 64, 64)
scope = {
    "torch": torch, "F": F, "x": x, "images": images, "labels": torch.randint(1024, (1024,)),
    "line": torch.randn(64, 32), "threes": torch.randn(1000, 3), "small": torch.randn(64, 64),
    "grid": torch.rand(8, 32, 32, 2) * 2 - 1, "weight": torch.randn(16, 16, 3, 3),
    "whole": torch.randint(100, (64, 1000)),
}
for line in sys.stdin:
    call = eval("lambda: " + json.loads(line), scope)
    call()
    count, spent = 1, 0.0
    while spent < 0.01:
        begin = time.process_time()
        for _ in range(count):
            call()
        spent = time.process_time() - begin
        count *= 2
    count //= 2
    best = spent
    for _ in range(3):
        begin = time.process_time()
        for _ in range(count):
            call()
        best = min(best, time.process_time() - begin)
    print(best / count * 1e6, flush=True)
"""
CASES = {
    "gelu": "F.gelu(x)",
    "gelu tanh": "F.gelu(x, approximate='tanh')",
    "clamp": "x.clamp(-1, 1)",
    "clamp_min": "x.clamp(min=0.5)",
    "randn": "torch.randn(1024, 1024)",
    "rand": "torch.rand(1024, 1024)",
    "sum": "x.sum()",
    "sum of rows": "x.sum(1)",
    "sum of columns": "x.sum(0)",
    "mean": "x.mean()",
    "relu": "x.relu()",
    "silu": "F.silu(x)",
    "sigmoid": "x.sigmoid()",
    "tanh": "x.tanh()",
    "exp": "x.exp()",
    "softmax": "x.softmax(1)",
    "log_softmax": "x.log_softmax(1)",
    "layer_norm": "F.layer_norm(x, (1024,))",
    "cross_entropy": "F.cross_entropy(x, labels)",
    "nll_loss": "F.nll_loss(x, labels)",
    "topk": "x.topk(5)",
    "max": "x.max()",
    "max of rows": "x.max(1)",
    "amax": "x.amax(1)",
    "var": "x.var()",
    "sort": "x.sort()",
    "cumsum": "x.cumsum(1)",
    "max_pool2d": "F.max_pool2d(images, 2)",
    "max_pool2d, padded": "F.max_pool2d(images, 3, 2, 1)",
    "avg_pool2d": "F.avg_pool2d(images, 2)",
    "avg_pool2d, padded": "F.avg_pool2d(images, 3, 2, 1)",
    "adaptive_avg_pool2d": "F.adaptive_avg_pool2d(images, 7)",
    "adaptive_max_pool2d": "F.adaptive_max_pool2d(images, 7)",
    "batch_norm": "F.batch_norm(images, None, None, training=True)",
    "conv2d": "F.conv2d(images, weight, padding=1)",
    "interpolate": "F.interpolate(images, scale_factor=2, mode='bilinear')",
    "grid_sample": "F.grid_sample(images, grid, align_corners=False)",
    "mode": "whole.mode(1)",
    "pdist": "F.pdist(line)",
    "cross": "torch.linalg.cross(threes, threes)",
    "qr": "torch.linalg.qr(small)",
    "norm": "x.norm()",
    "matmul": "small @ small",
}


class Worker:
    """One package in a process of its own."""

    def __init__(self, python: str, package: str) -> None:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        environment = {**os.environ, **threads}
        if package != "torch":
            environment["PYTHONPATH"] = str(SOURCE)
        self._process = subprocess.Popen(
            [python, "-c", WORKER, package],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def microseconds(self, call: str) -> float:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(call) + "\n")
        stdin.flush()
        return float(stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch-python", required=True, help="an interpreter that has torch")
    parser.add_argument("--op", nargs="*", default=list(CASES), choices=list(CASES), metavar="OP")
    parser.add_argument("--rounds", type=int, default=3)
    options: Any = parser.parse_args()
    ours, theirs = Worker(sys.executable, "mindtorch_v2"), Worker(options.torch_python, "torch")
    print(f"{'':24} {'here us':>10} {'torch us':>10} {'ratio':>7}")
    for title in options.op:
        times = [
            (ours.microseconds(CASES[title]), theirs.microseconds(CASES[title]))
            for _ in range(options.rounds)
        ]
        here, torch = (min(column) for column in zip(*times))
        print(f"{title:24} {here:10.1f} {torch:10.1f} {here / torch:7.2f}", flush=True)
    ours.close()
    theirs.close()


if __name__ == "__main__":
    main()
