"""Suggest changes that save time, each with evidence and the time it can save at most.

Looks for data loading in the foreground, loops over the rows of a tensor,
gradients that are filled with zeros, biases before batch norms and thousands
of tiny ops; in traces with a device also for synchronisation, copies from
memory that is not pinned, and an idle device. The exit code is 1 if there are
suggestions.

example:
  mindtorch-prof advise trace.json.gz
  mindtorch-prof advise trace.json.gz --format json --min-share 5%
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from . import _common
from ._options import share

if TYPE_CHECKING:
    from ..analysis.advice import Advice

_KEYS = ("code", "share", "at_stake_us", "count", "message", "advice")
_TITLES = {
    "code": "Code",
    "share": "Share",
    "at_stake_us": "Saves up to",
    "count": "Count",
    "message": "Finding",
    "advice": "Suggestion",
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
        help="leave out suggestions that save less than this share of the recording (2%%)",
    )


def run(options: argparse.Namespace) -> int:
    """Print the suggestions; the exit code is 1 if there are any."""
    from ..analysis.advice import advise

    loaded = _common.open_trace(options.file, options)
    with _common.phase("looking for advice"):
        suggestions = advise(loaded, options.min_share)
    shown = suggestions[: options.top or None]
    if options.format == "table":
        for advice in shown:
            _print(advice)
        print(_summary(len(suggestions)))
    else:
        rows = [advice.to_dict() for advice in shown]
        keys = [*_KEYS, "evidence"] if options.format == "json" else _KEYS
        _common.print_rows(
            rows, options.format, keys=keys, about={"file": options.file}, titles=_TITLES, units=_UNITS
        )
    return 1 if suggestions else 0


def _print(advice: Advice) -> None:
    from ..analysis.columns import formatted

    time = formatted(advice.at_stake_us, "us")
    _common.say(f"up to {advice.share:.0%} ({time}): {advice.message} [{advice.code}]")
    _common.say(f"  suggestion: {advice.advice}")
    for row in advice.evidence:
        where = f"  {row['where']}" if row["where"] else ""
        total = formatted(row["total_us"], "us")
        _common.say(f"  {total:>10}  {row['count']:>6,} x  {row['name']}{where}")
    print()


def _summary(count: int) -> str:
    return {0: "no suggestions", 1: "1 suggestion"}.get(count, f"{count:,} suggestions")
