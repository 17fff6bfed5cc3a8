"""Find stragglers: which rank do the others wait for?

Prints the step time, communication and work of each rank. Expects one file per
rank, or one merged file. Work is the step time minus exposed communication: if
every step synchronises, all ranks have the same step time, and the straggler
is the rank that waits least. The exit code is 0, with or without stragglers.

example:
  mindtorch-prof ranks rank0.json.gz rank1.json.gz
"""

from __future__ import annotations

import argparse
import os

from ..number_formats import format_time
from ._common import CommandError, add_file, add_output, paths_of_traces, plain, print_rows, progress
from ._options import share

_KEYS = (
    "rank",
    "steps",
    "step_us",
    "communication_us",
    "exposed_us",
    "device_us",
    "work_us",
    "behind",
    "slowest",
    "slow",
)
_UNITS = {
    **{f"{name}_us": "us" for name in ("step", "work", "communication", "exposed", "device")},
    "behind": "text",
    "slowest": "text",
    "slow": "text",
    "rank": "text",
    "steps": "count",
}
_TITLES = {
    "rank": "Rank",
    "label": "File",
    "steps": "Steps",
    "step_us": "Step",
    "communication_us": "Communication",
    "exposed_us": "Exposed",
    "device_us": "Device busy",
    "work_us": "Work",
    "behind": "Work vs median",
    "slowest": "Slowest in steps",
    "slow": "Verdict",
}


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ranks`."""
    add_file(parser, "files", nargs="+", metavar="FILE")
    parser.add_argument(
        "--threshold",
        type=share,
        default=0.05,
        metavar="PCT",
        help="how much more work than the other ranks makes a straggler (5%%)",
    )
    add_output(parser, top=0)


def run(options: argparse.Namespace) -> int:
    """Print one row per rank."""
    from ..fleet.ranks import rank_report

    options.files = paths_of_traces(options.files)
    for path in options.files:
        if not os.path.exists(path):
            raise CommandError(f"{path}: No such file or directory")
    try:
        with progress(f"reading {len(options.files)} files") as bar:
            report = rank_report(
                options.files,
                threshold=options.threshold,
                strict=options.strict,
                as_recorded=options.as_recorded,
                progress=bar,
            )
    except ValueError as error:
        raise CommandError(plain(str(error))) from error
    rows = report.to_dicts()
    if options.format in ("json", "csv"):
        about = {"steps": list(report.steps), "skew_us": report.skew_us, "notes": list(report.notes)}
        keys = ["label", *_KEYS]
        print_rows(rows, options.format, keys=keys, top=options.top, about=about)
        return 0
    for row in rows:
        row["behind"] = f"{row['behind']:+.1%}"
        row["slowest"] = f"{row['slowest']} of {len(report.steps)}" if report.steps else ""
        row["slow"] = "straggler" if row["slow"] else ""
    named = all(row["rank"] is not None for row in rows)
    keys = list(_KEYS) if named else ["label", *_KEYS[1:]]
    if not any(row["device_us"] for row in rows):
        keys.remove("device_us")
    print_rows(rows, options.format, keys=keys, top=options.top, units=_UNITS, titles=_TITLES)
    print()
    if len(rows) > 1:
        slow = ", ".join(row.label for row in report.slow)
        print(f"stragglers: {plain(slow)}" if slow else "no stragglers")
        print(f"skew: the ranks start a step within {format_time(report.skew_us)} of each other")
    for note in report.notes:
        print(f"note: {plain(note)}")
    return 0
