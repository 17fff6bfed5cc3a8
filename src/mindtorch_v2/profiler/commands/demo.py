"""Train a small seeded model and print its loss.

example:
  mindtorch-prof demo --steps 20 --seed 1
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `demo`."""
    parser.add_argument("--steps", type=_positive, default=100, metavar="N", help="training steps (100)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of weights and data (0)")


def run(options: argparse.Namespace) -> int:
    """Print the loss of every tenth step, and of the last one."""
    for step, loss in enumerate(train(options.steps, options.seed), start=1):
        if step == 1 or step % 10 == 0 or step == options.steps:
            print(f"step {step:4d}  loss {loss:.4f}")
    return 0


def train(steps: int, seed: int) -> Iterator[float]:
    """Fit a two-layer classifier to two interleaved half circles; yields the loss of each step."""
    import mindtorch_v2 as torch
    from mindtorch_v2 import nn

    torch.manual_seed(seed)
    points, labels = half_circles(256)
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(points), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def half_circles(count: int) -> tuple[Any, Any]:
    """`count` noisy points on two half circles, and which circle each is on."""
    import mindtorch_v2 as torch

    labels = torch.arange(count) % 2
    angle = torch.rand(count) * torch.pi
    upper = torch.stack((angle.cos(), angle.sin()), dim=1)
    lower = torch.stack((1 - angle.cos(), 0.5 - angle.sin()), dim=1)
    points = torch.where(labels.bool().unsqueeze(1), lower, upper)
    return points + 0.1 * torch.randn(count, 2), labels


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} steps cannot be run; give 1 or more")
    return number
