"""Write an HTML report of where time and memory went; with a second trace, what changed.

The report is one self-contained file that opens offline. It has an overview,
the operators, a flame graph, the timeline, memory, modules, the device and a
roofline, depending on what was recorded.

example:
  mindtorch-prof report trace.json.gz -o report.html
  mindtorch-prof report before.json.gz after.json.gz -o changes.html
  mindtorch-prof report trace.json.gz -o report.html --as-recorded
"""

from __future__ import annotations

import argparse
import os

from ._common import (
    CommandError,
    add_file,
    add_keep_metadata,
    open_trace,
    phase,
    say,
    without_environment,
    writing,
)
from ._options import path_to_write

_OUTPUT = "report.html"


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `report`."""
    add_file(parser, "trace")
    add_file(parser, "other", nargs="?", help="a second trace to compare with the first")
    parser.add_argument(
        "-o",
        "--output",
        type=path_to_write,
        default=_OUTPUT,
        metavar="FILE",
        help=f"the file to write ({_OUTPUT})",
    )
    parser.add_argument(
        "--max-events",
        type=_positive,
        default=None,
        metavar="N",
        help="the most events that the timeline shows; of more, only the longest are kept (1,000,000)",
    )
    add_keep_metadata(parser)


def run(options: argparse.Namespace) -> int:
    """Write the report and print its path."""
    from ..export.html import export_html

    files = [options.trace] if options.other is None else [options.trace, options.other]
    for file in files:
        if os.path.realpath(file) == os.path.realpath(options.output):
            raise CommandError(f"{options.output}: is the input file; expected another name for -o")
    first, *second = [without_environment(open_trace(file, options), options) for file in files]
    with writing(options.output), phase(f"writing {os.path.basename(options.output)}"):
        export_html(first, options.output, *second, max_events=options.max_events)
    size = os.path.getsize(options.output) if os.path.isfile(options.output) else 0
    say(f"The report is in {os.path.abspath(options.output)} ({size / 1e6:.1f} MB).")
    return 0


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of events; expected 1 or more")
    return int(text)
