"""Convert a trace to speedscope, Parquet, CSV, or a repaired Chrome (Kineto) trace.

Parquet and CSV files contain one table: events by default; --table selects
averages, steps, memory or device.

example:
  mindtorch-prof convert trace.json.gz --to speedscope -o trace.speedscope.json
  mindtorch-prof convert trace.json.gz --to csv --table averages -o averages.csv
"""

from __future__ import annotations

import argparse
import os
import sys

from . import _common
from ._common import CommandError

_SUFFIXES = {
    "speedscope": ".speedscope.json",
    "parquet": ".parquet",
    "csv": ".csv",
    "chrome": ".pt.trace.json.gz",
}


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `convert`."""
    _common.add_file(parser)
    parser.add_argument("--to", required=True, choices=sorted(_SUFFIXES), help="the format to write")
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help="the file to write, - for standard output (the name of FILE with the suffix of the format)",
    )
    parser.add_argument(
        "--table",
        choices=("events", "averages", "steps", "memory", "device"),
        default="events",
        help="the table to write to CSV and Parquet files (events)",
    )


def run(options: argparse.Namespace) -> int:
    """Write the file."""
    loaded = _common.open_trace(options.file, strict=options.strict)
    target = options.output or _stem(options.file) + _SUFFIXES[options.to]
    if target == "-":
        target = "/dev/stdout"
    if os.path.exists(target) and os.path.exists(options.file) and os.path.samefile(target, options.file):
        raise CommandError(f"{target}: is the input file; expected another name for -o")
    with _common.writing(target):
        if options.to == "chrome":
            loaded.export_chrome_trace(target)
        elif options.to == "speedscope":
            from ..export.speedscope import export_speedscope

            export_speedscope(loaded, target, name=os.path.basename(options.file))
        else:
            _write_table(loaded, options, target)
    if target != "/dev/stdout":
        print(f"{target}: {os.path.getsize(target):,} bytes", file=sys.stderr)
    return 0


def _write_table(loaded: object, options: argparse.Namespace, target: str) -> None:
    from ..analysis.tables import TABLES
    from ..export.sheet_files import export_csv, export_parquet

    sheet = TABLES[options.table](loaded)
    try:
        (export_csv if options.to == "csv" else export_parquet)(sheet, target)
    except ImportError as error:
        raise CommandError(str(error)) from error


def _stem(path: str) -> str:
    for suffix in (".gz", ".json", ".trace", ".pt"):
        path = path.removesuffix(suffix)
    return path
