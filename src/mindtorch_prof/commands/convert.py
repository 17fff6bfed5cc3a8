"""Convert a trace to speedscope, OpenTelemetry, Parquet, CSV, or a repaired Chrome (Kineto) trace.

Parquet and CSV files contain one table: events by default; --table selects
averages, steps, memory, device or figures. OpenTelemetry's spans are the
longest events; with the address of a collector as OUT they are sent to it.

example:
  mindtorch-prof convert trace.json.gz --to speedscope
  mindtorch-prof convert trace.json.gz -o events.csv
  mindtorch-prof convert trace.json.gz --to csv --table averages -o averages.csv
  mindtorch-prof convert trace.json.gz --to csv -o recorded.csv --as-recorded
  mindtorch-prof convert trace.json.gz --to otlp --min-us 100 --max-spans 500
  mindtorch-prof convert trace.json.gz --to otlp -o http://localhost:4318
"""

from __future__ import annotations

import argparse
import os
import sys

from ..export.exporters import EXPORTERS, ExportOptions, is_address
from . import _common
from ._common import CommandError
from ._options import number, path_to_write


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
        help="the file to write, - for standard output (the name of FILE with the suffix of the format); with --to otlp also the address of a collector",
    )
    parser.add_argument(
        "--table",
        choices=("events", "averages", "steps", "memory", "device", "figures"),
        default="events",
        help="the table to write to CSV and Parquet files (events)",
    )
    parser.add_argument(
        "--min-us",
        type=number,
        default=0.0,
        metavar="N",
        help="leave out spans that are shorter (0), for otlp",
    )
    parser.add_argument(
        "--max-spans",
        type=_common.count,
        default=ExportOptions().max_spans,
        metavar="N",
        help="write the N longest spans, 0: all (1000), for otlp",
    )
    parser.add_argument(
        "--parent",
        metavar="TRACEPARENT",
        help="the span that the recording belongs to: 00-TRACE_ID-SPAN_ID-01, for otlp",
    )
    _common.add_keep_metadata(parser)


def run(options: argparse.Namespace) -> int:
    """Write the file."""
    to = options.to or _format_of(options.output)
    loaded = _common.without_environment(_common.open_trace(options.file, options), options)
    target = options.output or _stem(options.file) + EXPORTERS[to].suffix
    if os.path.exists(target) and os.path.exists(options.file) and os.path.samefile(target, options.file):
        raise CommandError(f"{target}: is the input file; expected another name for -o")
    wanted = ExportOptions(
        options.table, os.path.basename(options.file), options.min_us, options.max_spans, options.parent
    )
    sent = is_address(target)
    if sent and to != "otlp":
        raise CommandError(f"{target}: an address takes --to otlp alone")
    with _common.writing(target), _common.phase(f"writing {os.path.basename(target)}"):
        try:
            EXPORTERS[to].write(loaded, target, wanted)
        except (ImportError, ValueError) as error:
            raise CommandError(str(error)) from error
    if sent:
        _common.say(f"sent to {target}", file=sys.stderr)
    else:
        _common.say_written(target)
    return 0


def _format_of(output: str | None) -> str:
    """The format whose suffix the name of a file has."""
    if output is None:
        raise CommandError(
            f"no format; expected --to ({', '.join(sorted(EXPORTERS))}), or -o with a name that ends like one"
        )
    name = output.removesuffix(".gz")
    if is_address(output):
        return "otlp"
    for to in ("speedscope", "otlp", "csv", "parquet", "native"):
        if name.endswith(EXPORTERS[to].suffix):
            return to
    if name.endswith(".json"):
        return "chrome"
    raise CommandError(f"{output}: ends like no format; expected --to ({', '.join(sorted(EXPORTERS))})")


def _stem(path: str) -> str:
    for suffix in (".gz", ".json", ".trace", ".pt"):
        path = path.removesuffix(suffix)
    return path
