"""Write one HTML file that shows where time and memory went; with a second trace, what changed.

The file needs nothing but itself: it opens offline, from a mail or a build's artefacts. It holds an overview, the operators,
a flame graph, the timeline, memory and modules, as far as they were recorded.

example:
  mindtorch-prof report trace.json.gz -o report.html
  mindtorch-prof report before.json.gz after.json.gz -o changes.html
"""

from __future__ import annotations

import argparse
import os

from ._common import CommandError, add_file, open_trace, writing

_OUTPUT = "report.html"


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `report`."""
    add_file(parser, "trace")
    add_file(parser, "other", nargs="?", help="a second trace, to be compared with the first")
    parser.add_argument("-o", "--output", default=_OUTPUT, metavar="FILE", help=f"file to write ({_OUTPUT})")
    parser.add_argument(
        "--max-events",
        type=_positive,
        default=None,
        metavar="N",
        help="events that the timeline may have before it is thinned to the longest (1,000,000)",
    )


def run(options: argparse.Namespace) -> int:
    """Write the report and say where it is."""
    from ..export.html import export_html

    files = [options.trace] if options.other is None else [options.trace, options.other]
    for file in files:
        if os.path.realpath(file) == os.path.realpath(options.output):
            raise CommandError(
                f"{options.output}: the report would replace the trace; give another name with -o"
            )
    loaded = [open_trace(file, strict=options.strict) for file in files]
    with writing(options.output):
        export_html(*loaded[:1], options.output, *loaded[1:], max_events=options.max_events)
    size = os.path.getsize(options.output) if os.path.isfile(options.output) else 0
    print(f"The report is in {os.path.abspath(options.output)} ({size / 1e6:.1f} MB).")
    return 0


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of events; give 1 or more")
    return int(text)
