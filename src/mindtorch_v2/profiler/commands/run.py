"""Run a Python program under the profiler of this library: what `mindtorch-prof run --torch mindtorch` does.

The options are those of `mindtorch_prof.commands.run`, which calls this module by its entry point.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from mindtorch_prof.commands import run as engine
from mindtorch_prof.commands import show
from mindtorch_prof.commands._common import CommandError
from mindtorch_prof.live.ranks import with_part

if TYPE_CHECKING:
    from ..run_program import Outcome
    from ..session import profile

prepare_parser = engine.prepare_parser
_TO_THE_END = 10**9  # steps: more than a program has


def run(options: argparse.Namespace) -> int:
    """Run the program; the exit code is its own."""
    from ..run_program import ProgramError, run

    program = engine.program_of(options)
    writer = _TraceWriter(options, engine.output_path(options, program))
    settings = {name: getattr(options, name) for name in engine.SWITCHES}
    try:
        return run(
            program,
            schedule=writer.schedule,
            on_ready=writer.ready,
            on_end=writer.end,
            on_note=engine.print_message,
            spill_dir=options.spill,
            **settings,
        )
    except ProgramError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        if options.spill is None:
            raise
        raise CommandError(
            f"--spill {options.spill}: cannot be written to: {error.strerror or error}"
        ) from error


def _schedule_of(options: argparse.Namespace) -> tuple[int, ...] | None:
    """(wait, warmup, active, repeat) of the options; None: the whole program is recorded."""
    if options.steps is None:
        schedule: tuple[int, ...] | None = options.schedule
        return schedule
    first, last = options.steps
    active = _TO_THE_END if last is None else last - first + 1
    return max(first - 1, 0), min(first, 1), active, 1


class _TraceWriter:
    """Writes the traces and, at the end, prints the table. Errors are printed; they do not change the program's exit code."""

    def __init__(self, options: argparse.Namespace, path: str) -> None:
        self.options, self.path = options, path
        self.schedule = _schedule_of(options)
        self.several = self.schedule is not None and self.schedule[3] != 1
        self.written: list[str] = []

    def ready(self, prof: profile, cycle: int) -> None:
        path = with_part(self.path, str(cycle)) if self.several else self.path
        try:
            prof._export_chrome_trace(
                path
            )  # which raises: `export_chrome_trace` warns where a callback calls it
            self.written.append(path)
        except OSError as error:
            engine.print_message(f"{path}: cannot be written: {error.strerror or error}")

    def end(self, outcome: Outcome) -> None:
        if outcome.recordings and not self.options.quiet:
            options = argparse.Namespace(**{**vars(self.options), "file": self.path, **engine.NO_FILTER})
            try:
                show.print_table(outcome.recordings[-1], options)
                sys.stdout.flush()
            except BrokenPipeError:
                pass
            except CommandError as error:
                engine.print_message(str(error))
        engine.print_files(self.written)
        if not outcome.recordings:
            engine.print_message(_nothing_recorded(self.schedule, outcome.steps))


def _nothing_recorded(schedule: tuple[int, ...] | None, steps: int) -> str:
    wait, warmup = (schedule or (0, 0))[:2]
    return (
        f"nothing was recorded: the program ended after {steps} steps (calls of optimizer.step()), "
        f"recording starts after {wait + warmup}"
    )
