"""Summarise a trace on one page: where the time went and what looks wrong.

Shows time per step and per category. At most 60 lines; the same file always
gives the same page.

example:
  mindtorch-prof summary trace.json.gz
  mindtorch-prof summary trace.json.gz --format md
"""

from __future__ import annotations

import argparse

from ..text_tables import screen_width, wrapped
from . import _common


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `summary`."""
    _common.add_file(parser)
    _common.add_output(parser, top=10)


def run(options: argparse.Namespace) -> int:
    """Print the page."""
    from ..analysis.summary import PAGE, summary, summary_text

    loaded = _common.open_trace(options.file, options)
    with _common.phase("aggregating"):
        data = summary(loaded, top=options.top or 1 << 30)
    if options.format == "json":
        _common.print_json(data)
    elif options.format == "csv":
        parts = (
            ("categories", "category", data["categories"]),
            ("ops", "name", data["ops"]),
            ("ops_by_device_time", "name", data["ops_by_device_time"]),
            ("kernels", "name", data["kernels"]),
            ("modules", "module", data["modules"]),
        )
        rows = [
            {"part": part, "name": row[key], **{k: v for k, v in row.items() if k != key}}
            for part, key, part_rows in parts
            for row in part_rows
        ]
        keys = ["part", "name", "count", "self_cpu_time_total", "self_cpu_share", "self_device_time_total"]
        _common.print_rows(rows, "csv", keys=keys)
    else:
        markdown = options.format == "md"
        width = None if options.wide else screen_width() or PAGE
        page = summary_text(data, markdown=markdown, width=width)
        print(page if markdown else wrapped(page, screen_width()), end="")
    return 0
