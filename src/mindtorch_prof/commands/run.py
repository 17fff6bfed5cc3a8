"""Run a Python program under the profiler, print the table and write the trace.

The program runs unchanged, under real torch where that is installed, else
under mindtorch_v2, which then answers `import torch` (--torch chooses). The
trace is also written if the program raises, calls sys.exit or os._exit, or
receives SIGINT or SIGTERM. The exit code is the program's own, or 128 + n if
signal n ended it.

Steps are counted from 0, as ProfilerStep#N shows them; one ends with each call
of step() on the first optimizer that steps. Options come before the program.

example:
  mindtorch-prof run train.py --lr 0.1
  mindtorch-prof run --steps 5-10 --record-shapes -o train.json.gz train.py
  mindtorch-prof run --steps 10-12 --every 1000 -m package.train --epochs 2
  mindtorch-prof run --on-signal USR2 --seconds 20 serve.py
  mindtorch-prof run --torch mindtorch --spill p/ train.py
  torchrun --nproc-per-node 4 -m mindtorch_prof run \\
    --rank-from-env train.py
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Any

from ..files import is_standard_output
from ..text_escaping import terminal_text
from . import _common, show
from ._common import CommandError
from ._options import path_to_write
from ._plugins import plugins

if TYPE_CHECKING:
    from ..live.program import Program
    from ..live.run_torch import Outcome
    from ..live.window import Window

SWITCHES = {
    "record_shapes": "record input shapes",
    "profile_memory": "record allocations and frees",
    "with_stack": "record Python stacks",
    "with_flops": "count floating-point operations",
    "with_modules": "record calls of nn.Modules",
    "all_threads": "record all threads, not only the main one",
}
REAL, LIBRARY = "real", "mindtorch"
CHOICE = "MINDTORCH_PROF_TORCH"  # environment: what --torch is where it is not given
_LAUNCHERS = ("torch.distributed.run", "torch.distributed.launch", "torchrun", "accelerate.commands.launch")
NO_FILTER = {"where": None, "stats": False, "columns": None, "no_name": False, "legend": False}


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `run`."""
    parser.add_argument(
        "--torch",
        choices=(REAL, LIBRARY),
        help="what `import torch` imports in the program: real torch, or mindtorch_v2 (real torch if it is installed)",
    )
    for name, text in SWITCHES.items():
        parser.add_argument(f"--{name.replace('_', '-')}", action="store_true", help=text)
    when = parser.add_mutually_exclusive_group()
    when.add_argument(
        "--steps",
        type=_steps,
        metavar="RANGE",
        help="record these steps: 5-10 both included, 5- to the end, 5 the first five",
    )
    when.add_argument(
        "--schedule",
        type=_schedule,
        metavar="WAIT,WARMUP,ACTIVE[,REPEAT]",
        help="skip WAIT and WARMUP steps, record ACTIVE steps; REPEAT times (1; 0: until the end)",
    )
    parser.add_argument(
        "--every",
        type=_positive,
        metavar="N",
        help="record again after every N steps: those of --steps, or one; one numbered file each",
    )
    parser.add_argument(
        "--seconds",
        type=_duration,
        metavar="S",
        help="end the recording after S seconds; the program goes on",
    )
    parser.add_argument(
        "--on-signal",
        type=_signal,
        metavar="NAME",
        help="start recording when the program receives this signal (USR2), end it with the next one",
    )
    parser.add_argument(
        "--rank-from-env",
        action="store_true",
        help="put the rank that the launcher gives (RANK, SLURM_PROCID ...) into the file's name; without it, this is done for jobs of several processes",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=path_to_write,
        metavar="FILE",
        help="trace file to write (PROGRAM.pt.trace.json; .gz compresses); with several recordings, one numbered file each",
    )
    parser.add_argument(
        "--spill",
        metavar="FOLDER",
        help="also write the recording to this folder while the program runs, so that it survives kill -9 (see recover); not with real torch",
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
    parser.set_defaults(load=load)


def load(options: argparse.Namespace) -> None:
    """Import the library that the program runs on, before memory is limited."""
    if _chosen_torch(options) == REAL:
        importlib.import_module("torch")
    elif "run" in plugins():
        plugins()["run"].load()
        import numpy as np

        matrix = np.ones((128, 128))
        matrix @ matrix  # OpenBLAS ends the process if there is no memory for the buffer of its first product


def run(options: argparse.Namespace) -> int:
    """Run the program; the exit code is its own."""
    program = program_of(options)
    if options.sort_by:
        show.named_column(options.sort_by)  # an unknown column is an error before the program runs
    check_folder(output_path(options, program))
    if _chosen_torch(options) == REAL:
        return _run_with_torch(options, program)
    return _run_with_library(options)


def program_of(options: argparse.Namespace) -> Program:
    """The program that the options name."""
    from ..live.program import Program

    words = options.module or options.program
    if not words:
        raise CommandError("no program to run; expected a file, or -m and a module")
    if words[0].startswith("-") and not options.module:
        raise CommandError(f"{words[0]}: is not an option of run; options of run come before the program")
    name = words[0] if options.module else os.path.basename(words[0])
    if name in _LAUNCHERS:
        raise CommandError(
            f"{words[0]}: starts the processes of a job and does nothing itself; start it first, and `run` in each process: "
            "torchrun ... -m mindtorch_prof run --rank-from-env train.py"
        )
    return Program(words[0], words[1:], module=bool(options.module))


def output_path(options: argparse.Namespace, program: Program) -> str:
    """The trace file to write, with the rank of this process in its name if it has one."""
    from ..live.ranks import rank_from_environment, with_rank

    if options.output and is_standard_output(options.output):
        raise CommandError("-o: the program itself writes to standard output; expected the name of a file")
    path = os.path.abspath(options.output or f"{program.name}.pt.trace.json")
    rank = rank_from_environment()
    if rank is None and options.rank_from_env:
        raise CommandError(
            "--rank-from-env: the environment has no rank; expected RANK and WORLD_SIZE, as torchrun sets them"
        )
    if rank is not None and (options.rank_from_env or rank[1] > 1):
        path = with_rank(path, rank[0])
    return path


def check_folder(path: str) -> None:
    """Raise CommandError before a program runs for hours whose trace cannot be written."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise CommandError(f"{path}: cannot be written: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise CommandError(f"{path}: cannot be written: the folder {folder} is read-only")
    if os.path.isdir(path):
        raise CommandError(f"{path}: cannot be written: it is a folder")


def _chosen_torch(options: argparse.Namespace) -> str:
    chosen: str | None = options.torch or os.environ.get(CHOICE)
    if chosen not in (None, "", REAL, LIBRARY):
        raise CommandError(f"{CHOICE}={chosen}: expected {REAL} or {LIBRARY}")
    try:
        installed = importlib.util.find_spec("torch") is not None
    except ValueError:  # a module torch without a spec: not the real one
        installed = False
    if chosen == REAL and not installed:
        raise CommandError("--torch real: torch is not installed for this Python")
    return chosen or (REAL if installed else LIBRARY)


def _run_with_library(options: argparse.Namespace) -> int:
    """Run the program under mindtorch_v2, which says by an entry point how."""
    for name in ("every", "seconds", "on_signal"):
        if getattr(options, name) is not None:
            raise CommandError(f"--{name.replace('_', '-')} needs real torch (--torch real)")
    runner = plugins().get("run")
    if runner is None:
        raise CommandError("neither torch nor mindtorch_v2 is installed for this Python")
    code: int = runner.load().run(options)
    return code


def _run_with_torch(options: argparse.Namespace, program: Program) -> int:
    from ..live.program import ProgramError
    from ..live.run_torch import run as run_program

    if options.spill is not None:
        raise CommandError(
            "--spill needs --torch mindtorch: real torch's profiler gives out its events only when it is stopped; "
            "--every writes a trace per window of steps"
        )
    writer = _TraceWriter(options, program)
    settings = {name: bool(getattr(options, name)) for name in SWITCHES}
    try:
        return run_program(
            program,
            window=writer.window,
            on_ready=writer.ready,
            on_end=writer.end,
            on_note=print_message,
            **settings,
        )
    except ProgramError as error:
        raise CommandError(str(error)) from error


def window_of(options: argparse.Namespace) -> Window:
    """What the options say is recorded."""
    from ..live.window import Window

    if options.seconds and (options.steps or options.schedule or options.every):
        raise CommandError("--seconds and --steps, --schedule or --every: expected one of them")
    if options.on_signal and (options.steps or options.schedule or options.every):
        raise CommandError("--on-signal and --steps, --schedule or --every: expected one of them")
    if options.on_signal or options.seconds:
        return Window(seconds=options.seconds or 0.0, signal=options.on_signal or "")
    if options.schedule is not None:
        if options.every:
            raise CommandError("--schedule says itself how recordings repeat; expected --steps with --every")
        wait, warmup, active, repeat = options.schedule
        first = wait + warmup
        return Window(first, first + active - 1, first + active, repeat, warmup)
    first, last = options.steps or ((options.every,) * 2 if options.every else (0, None))
    if options.every and last is None:
        raise CommandError("--every needs an end of --steps; expected a range such as 5-10")
    if options.every and last is not None and last - first + 1 >= options.every:
        raise CommandError(f"--every {options.every}: --steps has as many steps; expected fewer")
    return Window(first, last, options.every or 0, 0 if options.every else 1)


class _TraceWriter:
    """Writes the traces and, at the end, prints the table. Errors are printed; they do not change the program's exit code."""

    def __init__(self, options: argparse.Namespace, program: Program) -> None:
        from ..live.ranks import rank_from_environment

        self.options, self.path = options, output_path(options, program)
        self.window = window_of(options)
        rank = rank_from_environment()
        # one table for a job, not one per process
        self.with_table = not options.quiet and (rank is None or rank[0] == 0)
        self.written: list[str] = []

    def ready(self, prof: Any, number: int) -> None:
        from ..live.ranks import with_part
        from ..live.run_torch import export_trace

        path = with_part(self.path, str(number)) if self.window.several else self.path
        try:
            export_trace(prof, path)
            self.written.append(path)
        except (OSError, RuntimeError) as error:
            print_message(f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}")

    def end(self, outcome: Outcome) -> None:
        if outcome.last is not None and self.with_table:
            self._print_table(outcome)
        print_files(self.written)
        if not outcome.recordings:
            print_message(_nothing_recorded(self.window, outcome))

    def _print_table(self, outcome: Outcome) -> None:
        from ..load import TraceError, from_torch

        options = argparse.Namespace(**{**vars(self.options), "file": self.path, **NO_FILTER})
        try:
            recording = from_torch(outcome.last)
            if not _prints_torch_s_table(options):
                show.print_table(recording._listed, options)
            else:
                column = "self_device_time_total" if outcome.last.use_device else "self_cpu_time_total"
                table = recording.key_averages().table(sort_by=column, row_limit=options.top)
                print(terminal_text(table, lines=True))
            sys.stdout.flush()
        except BrokenPipeError:
            pass
        except (CommandError, TraceError) as error:
            print_message(str(error))


def _prints_torch_s_table(options: argparse.Namespace) -> bool:
    """Whether the table is the one that torch itself prints by default."""
    return not options.group_by and options.format == "table" and options.sort_by is None


def _nothing_recorded(window: Window, outcome: Outcome) -> str:
    if outcome.notes:
        return "nothing was recorded: the program profiles itself"
    if window.signal:
        return f"nothing was recorded: the program ended without a signal {window.signal}"
    return (
        f"nothing was recorded: the program ended after {outcome.steps} steps (calls of optimizer.step()), "
        f"recording starts with step {window.first}"
    )


def print_files(paths: list[str]) -> None:
    """One line that says what was written and how to open it."""
    if not paths:
        return
    shown = os.path.relpath(paths[-1])
    shown = paths[-1] if shown.startswith("..") else shown
    several = f" (and {len(paths) - 1} before it)" if len(paths) > 1 else ""
    print_message(f"the trace is in {paths[-1]}{several}; open it with: mindtorch-prof report {shown}")


def print_message(text: str) -> None:
    """A line on the error stream, which may be closed."""
    try:
        print(f"mindtorch-prof: {text}", file=sys.stderr, flush=True)
    except (OSError, ValueError):
        pass


# ---------------------------------------------------------------------------------------------------- values of options


def _steps(text: str) -> tuple[int, int | None]:
    from ..live.window import step_range

    try:
        return step_range(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


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


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of steps; expected 1 or more")
    return int(text)


def _duration(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in seconds; expected a number above 0")
    return seconds


def _signal(text: str) -> str:
    from ..live.signals import signal_number

    try:
        signal_number(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text
