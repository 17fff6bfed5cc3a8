"""Train a small model under the profiler, print its loss and the table, and write a trace.

example:
  mindtorch-prof demo --steps 20 --seed 1 --trace demo.json.gz
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mindtorch_prof.commands import show
from mindtorch_prof.commands._common import CommandError, add_wide, say
from mindtorch_prof.text_escaping import terminal_text

if TYPE_CHECKING:
    from mindtorch_v2._tensor import Tensor

_TRACE = "mindtorch-demo.pt.trace.json"


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `demo`."""
    parser.add_argument("--steps", type=_positive, default=100, metavar="N", help="training steps (100)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of weights and data (0)")
    parser.add_argument("--rows", type=_positive, default=12, metavar="N", help="rows of the table (12)")
    parser.add_argument("--trace", default=_TRACE, metavar="FILE", help=f"trace file to write ({_TRACE})")
    add_wide(parser)


def run(options: argparse.Namespace) -> int:
    """Print the loss of every tenth step, and of the last one; then the table and what to do with the trace."""
    from mindtorch_v2.profiler import profile

    with profile(record_shapes=True, profile_memory=True) as prof:
        for step, loss in enumerate(train(options.steps, options.seed), start=1):
            if step == 1 or step % 10 == 0 or step == options.steps:
                print(f"step {step:4d}  loss {loss:.4f}")
    assert prof.profiler is not None
    results = prof.profiler._results
    assert results is not None
    rows = len(results.key_averages())
    print()
    show.print_table(results, _table_options(options))
    try:
        prof.export_chrome_trace(options.trace)
    except OSError as error:
        raise CommandError(f"{options.trace}: cannot be written: {error.strerror or error}") from error
    say(
        f"\n{options.steps} steps: {len(prof.events()):,} events in {rows} rows; the table shows {min(options.rows, rows)}."
    )
    print(
        f"The trace is in {terminal_text(options.trace)}. What to do with it:\n"
        f"  mindtorch-prof summary {shlex.quote(options.trace)}\n"
        f"  mindtorch-prof report {shlex.quote(options.trace)} -o report.html"
    )
    return 0


def _table_options(options: argparse.Namespace) -> argparse.Namespace:
    """The options of `show` for the table."""
    return argparse.Namespace(
        sort_by="self_cpu_time_total",
        group_by="",
        no_name=False,
        where=None,
        stats=False,
        columns=None,
        legend=False,
        format="table",
        top=options.rows,
        file=options.trace,
        hint="--wide shows all columns",
    )


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


def half_circles(count: int) -> tuple[Tensor, Tensor]:
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
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return number
