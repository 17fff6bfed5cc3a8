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

RUNS = 10  # runs of a program per turn
FAST = 0.08  # the quantile of all runs that counts
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


def convolutions() -> Callable[[], None]:
    """A training step of a small convolutional network; not used to adjust the estimate, nor is `views`."""
    layers = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    ]
    model = nn.Sequential(*layers)
    images, labels = torch.rand(4, 3, 16, 16), torch.randint(10, (4,))
    return training(model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), images, labels)


def views() -> Callable[[], None]:
    """Views, indexing and writing to parts of a tensor: nearly no arithmetic."""
    x, rows = torch.rand(32, 8, 4), torch.tensor([3, 1, 2])

    def run() -> None:
        for n in range(32):
            x[n].t().reshape(-1)[2:9].unsqueeze(0).expand(3, 7)
            x.transpose(0, 1)[..., 1].narrow(1, n // 2, 4).contiguous()
            x[rows, n % 8] = x[n, :3]

    return run


def recurrent() -> Callable[[], None]:
    """A training step of an LSTM; not used to adjust the estimate, nor are `penalty` and `sampling`."""
    model = nn.LSTM(16, 32, batch_first=True)
    data = torch.rand(4, 12, 16)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def run() -> None:
        optimizer.zero_grad()
        model(data)[0].pow(2).mean().backward()
        optimizer.step()

    return run


def penalty() -> Callable[[], None]:
    """A gradient penalty: two backward passes through a small network."""
    model = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.LayerNorm(64), nn.Linear(64, 1))
    data = torch.rand(16, 32, requires_grad=True)

    def run() -> None:
        (gradient,) = torch.autograd.grad(model(data).sum(), data, create_graph=True)
        (gradient.norm(2, dim=1) - 1).pow(2).mean().backward()
        model.zero_grad()
        data.grad = None

    return run


def sampling() -> Callable[[], None]:
    """Sampling tokens one by one from a small model, without gradients."""
    table, weight = torch.rand(50, 32), torch.rand(32, 50)

    def run() -> None:
        with torch.no_grad():
            token = torch.zeros(1, dtype=torch.int64)
            for _ in range(20):
                scores = (nn.functional.embedding(token, table) @ weight) / 2.0
                chances = torch.softmax(scores, dim=-1)
                token = torch.topk(chances, 3).indices[:, 0]
                scores.masked_fill_(chances < 0.01, -1.0)

    return run


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
    least: float  # the quartiles of what was added, each from an eighth of the rounds
    most: float
    events: float
    estimate: float


def compare(run: Callable[[], None], options: dict[str, bool], rounds: int) -> Comparison:
    """Run a program without a profile and with one, by turns of some runs each.

    On a busy machine most runs are slowed down by other programs: of both kinds the fast ones count, a low
    quantile of all runs. What a recording does once, for inputs and functions that are new, is in its first
    run, which does not count; in the estimate it is one of many. The quartiles are those of the same
    difference, each taken from an eighth of the rounds.
    """
    for _ in range(2):  # generates the code of ops
        with profile(**options):
            run()
    alone, recorded, estimates, events = [], [], [], 0
    for _ in range(rounds):
        run()
        alone.append([timed(run) for _ in range(RUNS)])
        prof = profile(**options)
        prof.start()
        run()
        recorded.append([timed(run) for _ in range(RUNS)])
        prof.stop()
        overhead = prof.overhead()
        assert overhead is not None
        estimates.append(overhead.total_ns / (RUNS + 1))
        events = overhead.n_events
    parts = [slice(n, None, 8) for n in range(8)]
    added = [np.quantile(recorded[part], FAST) - np.quantile(alone[part], FAST) for part in parts]
    fast = float(np.quantile(alone, FAST))
    least, most = np.quantile(added, (0.25, 0.75))
    estimate = float(np.median(estimates)) / 1e6
    return Comparison(
        fast, float(np.quantile(recorded, FAST)) - fast, least, most, events / (RUNS + 1), estimate
    )


def timed(run: Callable[[], None]) -> float:
    """Milliseconds of processor time: other programs on the machine do not count."""
    begin = time.process_time_ns()
    run()
    return (time.process_time_ns() - begin) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modes", nargs="*", metavar="MODE", help=f"some of: {'; '.join(MODES)} (all)")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    print(f"load {os.getloadavg()[0]:.1f}")
    head = (
        "program",
        "mode",
        "ms",
        "added",
        "half of the parts",
        "events",
        "us/event",
        "estimated",
        "error",
    )
    print("{:12} {:15} {:>7} {:>7} {:>18} {:>7} {:>9} {:>10} {:>6}".format(*head))
    for make in (small_ops, mlp, gpt, convolutions, views, recurrent, penalty, sampling):
        run = make()
        for mode in options.modes or MODES:
            alone, added, least, most, events, estimate = compare(run, MODES[mode], options.rounds)
            between = f"{least / alone:.1%} to {most / alone:.1%}"
            print(
                f"{make.__name__:12} {mode:15} {alone:7.2f} {added / alone:7.1%} {between:>18} "
                f"{events:7,.0f} {estimate * 1000 / events:9.2f} {estimate / alone:10.1%} "
                f"{estimate / added - 1:+6.0%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
