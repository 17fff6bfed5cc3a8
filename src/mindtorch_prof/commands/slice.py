"""Cut a part out of a trace: by step, time, name, thread, process, rank or annotation.

All conditions must hold. Kernels are kept with the op that launched them,
flows if both ends are kept. Events of unknown kinds are kept if their time and
thread are selected. Events that extend beyond the selected time are clipped to
it and marked "clipped".

example:
  mindtorch-prof slice big.json.gz -o small.json.gz --steps 3-5 --drop python_function --min-us 2
  mindtorch-prof slice big.json.gz -o recorded.json.gz --as-recorded
"""

from __future__ import annotations

import argparse
import os
import re
from typing import TYPE_CHECKING

from ..number_formats import format_time
from ..text_escaping import terminal_text
from ._common import (
    CommandError,
    add_file,
    add_keep_metadata,
    print_json,
    progress,
    say,
    say_left_out,
    trace_file,
    writing,
)
from ._options import number, path_to_write

if TYPE_CHECKING:
    from ..rewrite.slice import Sliced

_UNITS = {"": 1.0, "us": 1.0, "ms": 1e3, "s": 1e6, "ns": 1e-3}


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `slice`."""
    add_file(parser, cached=False)
    parser.add_argument(
        "-o",
        "--output",
        type=path_to_write,
        required=True,
        metavar="OUT",
        help="the file to write; a name that ends in .gz is compressed",
    )
    parser.add_argument(
        "--steps", type=steps, default=(), metavar="N-M", help="steps (ProfilerStep#N): 3, 3-5, or 3-5,8"
    )
    parser.add_argument(
        "--time",
        type=span,
        metavar="A..B",
        help="time since the start of the trace, in ns, us, ms or s (us): 10ms..25ms, ..2s, 1.5s..",
    )
    parser.add_argument(
        "--under",
        action="append",
        default=[],
        metavar="TEXT",
        help="events during an annotation (or op) of this name in the same process; * matches anything",
    )
    parser.add_argument(
        "--name",
        metavar="REGEX",
        help="events whose name matches, their descendants, and the device work these launch",
    )
    parser.add_argument(
        "--thread",
        action="append",
        default=[],
        metavar="T",
        help="number of a thread or stream, or a part of its name",
    )
    parser.add_argument("--pid", action="append", default=[], metavar="P", help="id of a process")
    parser.add_argument(
        "--rank", action="append", type=int, default=[], metavar="R", help="a rank of a merged trace"
    )
    parser.add_argument("--min-us", type=number, default=0.0, metavar="US", help="drop shorter slices")
    parser.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="WHAT",
        help="drop a category (python_function ...), a name, or memory, flows, counters; separated by commas",
    )
    parser.add_argument(
        "--format", choices=("table", "json"), default="table", help="format of the summary that is printed"
    )
    add_keep_metadata(parser)


def run(options: argparse.Namespace) -> int:
    """Write the selected part and print a summary of it."""
    from ..rewrite.slice import Selection, slice_trace

    selection = Selection(
        steps=options.steps,
        time_us=options.time,
        under=tuple(options.under),
        name=options.name,
        threads=tuple(options.thread),
        pids=tuple(options.pid),
        ranks=tuple(options.rank),
        min_us=options.min_us,
        drop=tuple(part for text in options.drop for part in text.split(",") if part),
    )
    options.file = trace_file(options.file)
    if not os.path.exists(options.file):
        raise CommandError(f"{options.file}: No such file or directory")
    if os.path.isdir(options.file):
        raise CommandError(f"{options.file}: a folder without a trace file; expected .json or .json.gz in it")
    try:
        with progress(f"cutting {os.path.basename(options.file)}") as bar, writing(options.output):
            result = slice_trace(
                options.file,
                options.output,
                selection,
                strict=options.strict,
                as_recorded=options.as_recorded,
                keep_metadata=options.keep_metadata,
                progress=bar,
            )
    except ValueError as error:
        raise CommandError(terminal_text(str(error))) from error
    _print_result(result, options.format)
    return 0


def _print_result(result: Sliced, format: str) -> None:
    size = os.path.getsize(result.path) if os.path.isfile(result.path) else 0
    if format == "json":
        print_json(
            {
                "path": result.path,
                "events": result.events,
                "kept": result.kept,
                "clipped": result.clipped,
                "from_us": result.window_us[0],
                "to_us": result.window_us[1],
                "kept_from_us": result.kept_us[0],
                "kept_to_us": result.kept_us[1],
                "bytes": size,
                "notes": list(result.notes),
                "left_out": list(result.left_out),
            }
        )
        return
    low, high = result.window_us
    kept_low, kept_high = result.kept_us
    holds = ""
    if (kept_low, kept_high) != (low, high):
        holds = f" (its events: {format_time(max(kept_low, 0))} to {format_time(max(kept_high, 0))})"
    cut = f", {result.clipped:,} clipped" if result.clipped else ""
    say(
        f"{result.path}: {result.kept:,} of {result.events:,} events{cut}; "
        f"{format_time(max(low, 0))} to {format_time(max(high, 0))}{holds}; {size:,} bytes",
    )
    for note in result.notes:
        say(f"note: {note}")
    say_left_out(result.left_out)


def steps(text: str) -> tuple[tuple[int, int], ...]:
    """Ranges of steps: 3, 3-5, 3-5,8."""
    ranges = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if not match or (match[2] is not None and int(match[2]) < int(match[1])):
            raise argparse.ArgumentTypeError(f"{text!r} is not a range of steps; expected 3, 3-5 or 3-5,8")
        ranges.append((int(match[1]), int(match[2] or match[1])))
    return tuple(ranges)


def span(text: str) -> tuple[float, float]:
    """A span of time in microseconds: 10ms..25ms; a missing end is open."""
    first, dots, last = text.partition("..")
    try:
        if not dots:
            raise ValueError
        low = _time(first) if first.strip() else float("-inf")
        high = _time(last) if last.strip() else float("inf")
        if high < low:
            raise ValueError
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a range of time; expected 10ms..25ms (in ns, us, ms or s), ..2s or 1.5s.."
        ) from None
    return max(low, -1e12), high


def _time(text: str) -> float:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*(ns|us|ms|s|)\s*", text)
    if not match:
        raise ValueError
    return float(match[1]) * _UNITS[match[2]]
