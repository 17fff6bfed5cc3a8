"""Write folded stacks, for flamegraph.pl, speedscope and inferno.

Each line is `frame;frame;frame microseconds`. Frames are the Python stack of
an op (if the trace has stacks); with --by ops its ancestors, with --by both
the Python stack and the ancestors.

example:
  mindtorch-prof stacks trace.json.gz -o stacks.txt
  mindtorch-prof stacks trace.json.gz --by ops | flamegraph.pl > ops.svg
"""

from __future__ import annotations

import argparse
import sys

from . import _common
from ._common import CommandError
from ._options import path_to_write


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `stacks`."""
    _common.add_file(parser)
    parser.add_argument(
        "--by",
        choices=("python", "ops", "both"),
        help="what to use as frames (python if the trace has stacks, else ops)",
    )
    parser.add_argument(
        "--metric", choices=("cpu", "device"), default="cpu", help="which self time to use (cpu)"
    )
    parser.add_argument(
        "-o", "--output", type=path_to_write, metavar="OUT", help="the file to write (standard output)"
    )


def run(options: argparse.Namespace) -> int:
    """Write the lines."""
    from ..analysis.folded_stacks import FRAMES, folded

    loaded = _common.open_trace(options.file, options)
    by = options.by or ("python" if (loaded.trace.stack >= 0).any() else "ops")
    if by == "python" and not (loaded.trace.stack >= 0).any():
        raise CommandError(
            f"{options.file}: has no Python stacks (record with with_stack=True); --by ops uses the ops as frames"
        )
    assert by in FRAMES
    with _common.phase("aggregating"):
        stacks = folded(loaded, by=by, device=options.metric == "device")
    if options.output is None:
        for line, value in stacks:
            sys.stdout.write(f"{line} {value}\n")
        return 0
    from ..files import open_for_export

    with _common.writing(options.output), open_for_export(options.output) as out:
        out.writelines(f"{line} {value}\n".encode() for line, value in stacks)
    _common.say_written(options.output)
    return 0
