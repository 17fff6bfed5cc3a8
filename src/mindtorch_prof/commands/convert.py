"""Convert a trace to speedscope, Parquet, CSV, or a repaired Chrome (Kineto) trace.

Parquet and CSV files contain one table: events by default; --table selects
averages, steps, memory, device or figures.

example:
  mindtorch-prof convert trace.json.gz --to speedscope
  mindtorch-prof convert trace.json.gz -o events.csv
  mindtorch-prof convert trace.json.gz --to csv --table averages -o averages.csv
  mindtorch-prof convert trace.json.gz --to csv -o recorded.csv --as-recorded
"""

from __future__ import annotations

import argparse
import os

from ..export.exporters import EXPORTERS, ExportOptions
from . import _common
from ._common import CommandError
from ._options import path_to_write


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `convert`."""
    _common.add_file(parser)
    parser.add_argument(
        "--to", choices=sorted(EXPORTERS), help="the format to write (the one that OUT's name ends like)"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=path_to_write,
        metavar="OUT",
        help="the file to write, - for standard output (the name of FILE with the suffix of the format)",
    )
    parser.add_argument(
        "--table",
        choices=("events", "averages", "steps", "memory", "device", "figures"),
        default="events",
        help="the table to write to CSV and Parquet files (events)",
    )
    _common.add_keep_metadata(parser)


def run(options: argparse.Namespace) -> int:
    """Write the file."""
    to = options.to or _format_of(options.output)
    loaded = _common.without_environment(_common.open_trace(options.file, options), options)
    target = options.output or _stem(options.file) + EXPORTERS[to].suffix
    if os.path.exists(target) and os.path.exists(options.file) and os.path.samefile(target, options.file):
        raise CommandError(f"{target}: is the input file; expected another name for -o")
    wanted = ExportOptions(table=options.table, name=os.path.basename(options.file))
    with _common.writing(target), _common.phase(f"writing {os.path.basename(target)}"):
        try:
            EXPORTERS[to].write(loaded, target, wanted)
        except ImportError as error:
            raise CommandError(str(error)) from error
    _common.say_written(target)
    return 0


def _format_of(output: str | None) -> str:
    """The format whose suffix the name of a file has."""
    if output is None:
        raise CommandError(
            f"no format; expected --to ({', '.join(sorted(EXPORTERS))}), or -o with a name that ends like one"
        )
    name = output.removesuffix(".gz")
    for to in ("speedscope", "csv", "parquet", "native"):
        if name.endswith(EXPORTERS[to].suffix):
            return to
    if name.endswith(".json"):
        return "chrome"
    raise CommandError(f"{output}: ends like no format; expected --to ({', '.join(sorted(EXPORTERS))})")


def _stem(path: str) -> str:
    for suffix in (".gz", ".json", ".trace", ".pt"):
        path = path.removesuffix(suffix)
    return path
