"""Check `prof.overhead()`: programs in; what recording adds to them, by the clock and as estimated, out."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # read by the BLAS libraries when they are loaded

import numpy as np

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import profile

RUNS = 20  # runs of a program per turn
MODES: dict[str, dict[str, bool]] = {
    "default": {},
    "shapes": {"record_shapes": True},
    "memory": {"profile_memory": True},
    "shapes, memory": {"record_shapes": True, "profile_memory": True},
    "modules": {"with_modules": True},
    "stack": {"with_stack": True},
    "all": {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_flops": True},
}


def small_ops() -> Callable[[], None]:
    """1,200 ops on 4x4 tensors."""
    x = torch.ones(4, 4)

    def run() -> None:
        for _ in range(300):
            ((x + x) * x).relu().sum()

    return run


def mlp() -> Callable[[], None]:
    """A training step of a two-layer classifier."""
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    images, labels = torch.rand(64, 784), torch.randint(10, (64,))
    return training(model, torch.optim.SGD(model.parameters(), lr=0.1), images, labels)


def gpt() -> Callable[[], None]:
    """A training step of a small transformer."""
    model = nn.Sequential(nn.Embedding(50, 64), Block(64), Block(64), nn.Linear(64, 50), nn.Flatten(0, 1))
    tokens = torch.randint(50, (4, 32))
    return training(model, torch.optim.Adam(model.parameters(), lr=1e-3), tokens, tokens.flatten())


class Block(nn.Module):
    """Attention and two layers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inputs, self.outputs = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.layers = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        parts = self.inputs(self.norm(x)).view(batch, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*parts.unbind(0), is_causal=True)
        x = x + self.outputs(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.layers(self.second_norm(x))


def training(model: Any, optimizer: Any, data: Any, labels: Any) -> Callable[[], None]:
    def run() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data), labels).backward()
        optimizer.step()

    return run


class Comparison(NamedTuple):
    """One run of a program, by the clock of the process and as estimated; milliseconds."""

    alone: float
    added: float
    events: float
    estimate: float


def compare(run: Callable[[], None], options: dict[str, bool], rounds: int) -> Comparison:
    """Run a program without a profile and with one, by turns of some runs each.

    On a busy machine most runs are slowed down by other programs: of both kinds the fast ones count, the
    lower decile. What a recording does once, for inputs and functions that are new, is in its first run,
    which does not count; in the estimate it is one of many.
    """
    for _ in range(2):  # generates the code of ops
        with profile(**options):
            run()
    alone, recorded, estimates, events = [], [], [], 0
    for _ in range(rounds):
        run()
        alone += [timed(run) for _ in range(RUNS)]
        prof = profile(**options)
        prof.start()
        run()
        recorded += [timed(run) for _ in range(RUNS)]
        prof.stop()
        overhead = prof.overhead()
        assert overhead is not None
        estimates.append(overhead.total_ns / (RUNS + 1))
        events = overhead.n_events
    fast, fast_recorded = np.quantile(alone, 0.1), np.quantile(recorded, 0.1)
    return Comparison(fast, fast_recorded - fast, events / (RUNS + 1), float(np.median(estimates)) / 1e6)


def timed(run: Callable[[], None]) -> float:
    """Milliseconds of processor time: other programs on the machine do not count."""
    begin = time.process_time_ns()
    run()
    return (time.process_time_ns() - begin) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modes", nargs="*", metavar="MODE", help=f"some of: {'; '.join(MODES)} (all)")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    head = ("program", "mode", "ms", "added ms", "by the clock", "events", "us/event", "estimated", "error")
    print("{:10} {:15} {:>8} {:>9} {:>13} {:>7} {:>9} {:>10} {:>6}".format(*head))
    for make in (small_ops, mlp, gpt):
        run = make()
        for mode in options.modes or MODES:
            alone, added, events, estimate = compare(run, MODES[mode], options.rounds)
            per_event = estimate * 1000 / events
            print(
                f"{make.__name__:10} {mode:15} {alone:8.2f} {added:9.2f} {added / alone:13.1%} "
                f"{events:7,.0f} {per_event:9.2f} {estimate / alone:10.1%} {estimate / added - 1:+6.0%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
