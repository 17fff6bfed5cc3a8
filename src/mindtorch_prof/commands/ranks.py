"""Find stragglers: which rank do the others wait for? The short form of `fleet`.

Prints the verdict and one row per rank. Takes one file per rank, merged files,
folders and patterns. The exit code is 0, with or without stragglers.

example:
  mindtorch-prof ranks rank0.json.gz rank1.json.gz
  mindtorch-prof ranks 'run/*.json.gz' --format json
"""

from __future__ import annotations

import argparse

from . import fleet
from ._common import add_output, print_json, print_rows

_KEYS = ("verdict", "steps", "ranks", "missing", "notes")


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ranks`."""
    fleet.add_files(parser)
    add_output(parser, top=0)


def run(options: argparse.Namespace) -> int:
    """Print the verdict and one row per rank."""
    report = fleet.read_job(options)
    if options.format == "json":
        whole = report.to_dict()
        print_json({key: whole[key] for key in _KEYS})
    elif options.format == "csv":
        print_rows(report.rank_rows(), "csv", top=options.top)
    else:
        fleet.print_sentences(report)
        print()
        fleet.print_ranks(report, options.format, options.top)
        print()
        fleet.print_notes(report)
    return 0
