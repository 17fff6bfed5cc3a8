"""Suggest changes that save time, each with evidence, the time at stake and the next step.

On the host: data loading, loops over the rows of a tensor, optimizers that
update parameters one by one, gradients filled with zeros, biases before batch
norms, thousands of tiny ops. On a device: its idle time by cause, exposed
communication and copies, conversions between memory layouts, matrix products
that do not use tensor cores, kernels worth fusing, kernels far from the
device's peak. Ranked by the time at stake: no time counts twice, and work that
is not on the critical path of the step counts for nothing. The exit code is 1
if there are suggestions.

example:
  mindtorch-prof advise trace.json.gz
  mindtorch-prof advise trace.json.gz --format json --min-share 5%
"""

from __future__ import annotations

import argparse

from . import _common
from ._options import share

_KEYS = ("code", "share", "at_stake_us", "count", "message", "advice")
_TITLES = {
    "code": "Code",
    "share": "Share",
    "at_stake_us": "At stake",
    "count": "Count",
    "message": "Finding",
    "advice": "Next step",
}
_UNITS = {"share": "share", "at_stake_us": "us", "count": "count"}


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `advise`."""
    _common.add_file(parser)
    _common.add_capture(parser)
    _common.add_output(parser, top=0)
    parser.add_argument(
        "--min-share",
        type=share,
        default=0.02,
        metavar="PCT",
        help="leave out suggestions that save less than this share of the recording (2%%)",
    )


def run(options: argparse.Namespace) -> int:
    """Print the suggestions; the exit code is 1 if there are any."""
    from ..analysis.advice import review
    from ..analysis.answers import advice_lines

    trace, match = _common.with_capture(_common.open_trace(options.file, options), options)
    with _common.phase("looking for advice"):
        found = review(trace, options.min_share)
    suggestions = found.suggestions
    shown = suggestions[: options.top or None]
    if options.format == "table":
        for advice in shown:
            for line in advice_lines(advice):
                _common.say(line)
            print()
        print(_summary(len(suggestions)))
        for note in (*found.notes, *([match.sentence()] if match is not None else [])):
            _common.say(f"note: {note}")
    else:
        rows = [advice.to_dict() for advice in shown]
        keys = [*_KEYS, "step_us", "step_without_us", "evidence"] if options.format == "json" else _KEYS
        _common.print_rows(
            rows,
            options.format,
            keys=keys,
            about={"file": options.file, "notes": found.notes},
            titles=_TITLES,
            units=_UNITS,
        )
    return 1 if suggestions else 0


def _summary(count: int) -> str:
    return {0: "no suggestions", 1: "1 suggestion"}.get(count, f"{count:,} suggestions")
