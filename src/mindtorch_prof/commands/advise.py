"""Say what costs time for no good reason: few things, each with evidence and the time at stake.

Loading while the program waits, loops over rows, gradients filled with zeros, biases before batch norms, thousands of tiny ops; of traces
of devices also waiting for them, copies from memory that is not pinned and idle time. Exit code 1 if something was found.

example:
  mindtorch-prof advise trace.json.gz
  mindtorch-prof advise trace.json.gz --format json --min-share 5%
"""

from __future__ import annotations

import argparse
from typing import Any

from . import _common
from ._options import share

_KEYS = ("code", "share", "at_stake_us", "count", "message", "advice")
_TITLES = {
    "code": "Code",
    "share": "Share",
    "at_stake_us": "At stake",
    "count": "Count",
    "message": "Seen",
    "advice": "Do",
}
_UNITS = {"share": "share", "at_stake_us": "us", "count": "count"}


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `advise`."""
    _common.add_file(parser)
    _common.add_output(parser, ("table", "md", "json"), top=0)
    parser.add_argument(
        "--min-share",
        type=share,
        default=0.02,
        metavar="PCT",
        help="leave out what is less of the recording's time (2%%)",
    )


def run(options: argparse.Namespace) -> int:
    """Print the advice; 1 if there is any."""
    from ..analysis.advice import advise

    found = advise(_common.open_trace(options.file, strict=options.strict), options.min_share)
    shown = found[: options.top or None]
    if options.format == "table":
        for advice in shown:
            _print(advice)
        print(_summary(len(found)))
    else:
        rows = [advice.to_dict() for advice in shown]
        keys = [*_KEYS, "evidence"] if options.format == "json" else _KEYS
        _common.print_rows(
            rows, options.format, keys=keys, about={"file": options.file}, titles=_TITLES, units=_UNITS
        )
    return 1 if found else 0


def _print(advice: Any) -> None:
    from ..analysis.columns import formatted

    time = formatted(advice.at_stake_us, "us")
    print(_common.plain(f"{advice.share:.0%} at stake ({time}): {advice.message} [{advice.code}]"))
    print(_common.plain(f"  do: {advice.advice}"))
    for row in advice.evidence:
        where = f"  {row['where']}" if row["where"] else ""
        total = formatted(row["total_us"], "us")
        print(_common.plain(f"  {total:>10}  {row['count']:>6,} x  {row['name']}{where}"))
    print()


def _summary(count: int) -> str:
    return {0: "nothing to advise", 1: "1 piece of advice"}.get(count, f"{count:,} pieces of advice")
