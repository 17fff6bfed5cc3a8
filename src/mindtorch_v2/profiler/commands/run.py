"""Run a Python program under the profiler, print the table and write the trace.

In the program, `import torch` imports mindtorch_v2. The trace is also written
if the program raises, calls sys.exit or receives SIGINT or SIGTERM. The exit
code is the program's own, or 128 + n if signal n ended it.

With --steps or --schedule, a step ends with each call of step() on the first
optimizer that steps.

example:
  mindtorch-prof run train.py --lr 0.1
  mindtorch-prof run --record-shapes --with-stack -o train.json.gz train.py
  mindtorch-prof run --schedule 1,1,3 --profile-memory -m package.train --epochs 2
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from mindtorch_prof.commands import _common, show
from mindtorch_prof.commands._common import CommandError

if TYPE_CHECKING:
    from ..run_program import Outcome
    from ..session import profile

_SWITCHES = {
    "record_shapes": "record input shapes",
    "profile_memory": "record allocations and frees",
    "with_stack": "record Python stacks",
    "with_flops": "count floating-point operations",
    "with_modules": "record calls of nn.Modules",
    "all_threads": "record all threads, not only the main one",
}


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `run`."""
    for name, text in _SWITCHES.items():
        parser.add_argument(f"--{name.replace('_', '-')}", action="store_true", help=text)
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--steps", type=_steps, metavar="N", help="record the first N steps only")
    when.add_argument(
        "--schedule",
        type=_schedule,
        metavar="WAIT,WARMUP,ACTIVE[,REPEAT]",
        help="skip WAIT and WARMUP steps, record ACTIVE steps; REPEAT times (1; 0: until the end)",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="trace file to write (PROGRAM.pt.trace.json; .gz compresses); with several cycles, one numbered file per cycle",
    )
    parser.add_argument(
        "--sort-by", metavar="COLUMN", help="column to sort the table by, largest first (self_cpu_time_total)"
    )
    parser.add_argument(
        "--group-by", default="", metavar="KEYS", help="keys to group the table by, as in `show`"
    )
    parser.add_argument("--quiet", action="store_true", help="print no table")
    _common.add_output(parser, top=20)
    parser.add_argument(
        "-m",
        dest="module",
        nargs=argparse.REMAINDER,
        metavar=("MODULE", "..."),
        help="a module to run as a program, and its arguments",
    )
    parser.add_argument(
        "program",
        nargs=argparse.REMAINDER,
        default=[],
        metavar="PROGRAM ...",
        help="the program and its arguments",
    )


def run(options: argparse.Namespace) -> int:
    """Run the program; the exit code is its own."""
    words = options.module or options.program
    if not words:
        raise CommandError("no program to run; expected a file, or -m and a module")
    if words[0].startswith("-") and not options.module:
        raise CommandError(f"{words[0]}: is not an option of run; options of run come before the program")
    from ..run_program import Program, ProgramError, run

    program = Program(words[0], words[1:], module=bool(options.module))
    if options.sort_by:
        show.named_column(options.sort_by)  # an unknown column is an error before the program runs
    writer = _TraceWriter(options, os.path.abspath(options.output or f"{program.name}.pt.trace.json"))
    schedule = options.schedule
    if options.steps is not None:
        schedule = (0, 0, options.steps, 1)
    settings = {name: getattr(options, name) for name in _SWITCHES}
    try:
        return run(program, schedule=schedule, on_ready=writer.ready, on_end=writer.end, **settings)
    except ProgramError as error:
        raise CommandError(str(error)) from error


class _TraceWriter:
    """Writes the traces and, at the end, prints the table. Errors are printed; they do not change the program's exit code."""

    def __init__(self, options: argparse.Namespace, path: str) -> None:
        self.options, self.path = options, path
        self.several = (
            options.schedule is not None and len(options.schedule) == 4 and options.schedule[3] != 1
        )
        self.written: list[str] = []

    def ready(self, prof: profile, cycle: int) -> None:
        path = _numbered(self.path, cycle) if self.several else self.path
        try:
            prof._export_chrome_trace(
                path
            )  # which raises: `export_chrome_trace` warns where a callback calls it
            self.written.append(path)
        except OSError as error:
            _print_message(f"{path}: cannot be written: {error.strerror or error}")

    def end(self, outcome: Outcome) -> None:
        if outcome.recordings and not self.options.quiet:
            options = argparse.Namespace(**{**vars(self.options), "file": self.path, **_NO_FILTER})
            try:
                show.print_table(outcome.recordings[-1], options)
                sys.stdout.flush()
            except BrokenPipeError:
                pass
            except CommandError as error:
                _print_message(str(error))
        for path in self.written:
            _print_message(f"the trace is in {path}")
        if not outcome.recordings:
            _print_message(_nothing_recorded(self.options, outcome.steps))


_NO_FILTER = {"where": None, "stats": False, "columns": None, "no_name": False}


def _nothing_recorded(options: argparse.Namespace, steps: int) -> str:
    wait, warmup = (options.schedule or (0, 0))[:2]
    return (
        f"nothing was recorded: the program ended after {steps} steps (calls of optimizer.step()), "
        f"recording starts after {wait + warmup}"
    )


def _print_message(text: str) -> None:
    try:
        print(f"mindtorch-prof: {text}", file=sys.stderr, flush=True)
    except OSError:
        pass


def _numbered(path: str, number: int) -> str:
    """out.pt.trace.json.gz -> out.2.pt.trace.json.gz"""
    folder, name = os.path.split(path)
    stem, dot, suffix = name.partition(".")
    return os.path.join(folder, f"{stem}.{number}{dot}{suffix}")


def _steps(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of steps; expected 1 or more")
    return int(text)


def _schedule(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if len(parts) not in {3, 4} or not all(part.strip().isdigit() for part in parts):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a schedule; expected WAIT,WARMUP,ACTIVE[,REPEAT], such as 1,1,3"
        )
    numbers = tuple(int(part) for part in parts)
    if numbers[2] < 1:
        raise argparse.ArgumentTypeError(f"{text!r} records no step; expected ACTIVE of 1 or more")
    return numbers if len(numbers) == 4 else (*numbers, 1)
