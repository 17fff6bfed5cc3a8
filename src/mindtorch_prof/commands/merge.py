"""Merge the trace files of several ranks into one file.

The merged file has a common time base and distinct process and event ids.
Times are aligned by baseTimeNanoseconds. Processes are named after their rank;
a process id that another file uses is replaced.

example:
  mindtorch-prof merge rank0.json.gz rank1.json.gz -o all.json.gz
  mindtorch-prof merge rank0.json.gz rank1.json.gz -o all.json.gz --as-recorded
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from ..text_escaping import terminal_text
from ._common import (
    CommandError,
    add_file,
    add_keep_metadata,
    add_wide,
    print_json,
    print_rows,
    progress,
    say,
    say_left_out,
    trace_files,
    writing,
)
from ._options import path_to_write

if TYPE_CHECKING:
    from ..rewrite.merge import Merged


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `merge`."""
    add_file(parser, "files", nargs="+", metavar="FILE", cached=False)
    parser.add_argument(
        "-o",
        "--output",
        type=path_to_write,
        required=True,
        metavar="OUT",
        help="the file to write; a name that ends in .gz is compressed",
    )
    parser.add_argument(
        "--format",
        choices=("table", "md", "json", "csv"),
        default="table",
        help="format of the summary that is printed",
    )
    add_wide(parser)
    add_keep_metadata(parser)


def run(options: argparse.Namespace) -> int:
    """Write the merged file and print a summary of it."""
    from ..rewrite.merge import merge_traces

    options.files = trace_files(options.files)
    for path in options.files:
        if os.path.realpath(path) == os.path.realpath(options.output):
            raise CommandError(f"{path}: is also the output file; expected another name for -o")
    try:
        with progress(f"merging {len(options.files)} files") as bar, writing(options.output):
            merged = merge_traces(
                options.files,
                options.output,
                strict=options.strict,
                as_recorded=options.as_recorded,
                keep_metadata=options.keep_metadata,
                progress=bar,
            )
    except ValueError as error:
        raise CommandError(terminal_text(str(error))) from error
    _print_result(merged, options.format)
    return 0


def _print_result(merged: Merged, format: str) -> None:
    rows = [
        {
            "file": part.path,
            "rank": part.rank,
            "events": part.events,
            "processes": ", ".join(str(pid) for pid in part.pids if isinstance(pid, int)),
            "shift_us": part.shift_ns / 1000,
        }
        for part in merged.parts
    ]
    if format == "json":
        about = {
            "path": merged.path,
            "events": merged.events,
            "base_ns": merged.base_ns,
            "notes": list(merged.notes),
            "left_out": list(merged.left_out),
        }
        print_json({**about, "rows": rows})
        return
    units = {"shift_us": "us", "rank": "text"}
    titles = {
        "file": "File",
        "rank": "Rank",
        "events": "Events",
        "processes": "Processes",
        "shift_us": "Time shift",
    }
    print_rows(rows, format, units=units, titles=titles, least_important=("processes",))
    if format != "csv":
        size = os.path.getsize(merged.path) if os.path.isfile(merged.path) else 0
        say(f"\n{merged.path}: {merged.events:,} events from {len(merged.parts)} files; {size:,} bytes")
        for note in (*merged.notes, *(n for part in merged.parts for n in part.notes)):
            say(f"note: {note}")
        say_left_out(merged.left_out)
