"""Compare the ranks of a distributed job: which rank do the others wait for, and why?

Reads each file once, in several processes or on a Dask cluster, matches the
collectives of the ranks, estimates how far their clocks are apart, and says
who holds the others up, in which phase, on the host or on the device. Takes
files, folders, patterns, and @list.txt, a file that lists them. A file that
cannot be read costs its rank alone.

example:
  mindtorch-prof fleet 'run/**/*.json.gz'
  mindtorch-prof fleet run -o fleet.html
  mindtorch-prof fleet run --cache sketches --dask
  mindtorch-prof fleet run --fail-on 'straggler,skew>5%,exposed>30%'
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..number_formats import format_time
from ..text_escaping import terminal_text
from ._common import CommandError, add_output, print_json, print_rows, progress, say, writing
from ._options import path_to_write, share

if TYPE_CHECKING:
    from ..fleet.report import FleetReport, Row

_CONDITION = re.compile(r"(straggler|missing|(skew|exposed)>([0-9.]+%?))$")

RANK_KEYS = ("rank", "steps", "step_us", "own_us", "exposed_us", "idle_us", "wait_us", "last_in")
RANK_TITLES = {
    "rank": "Rank",
    "label": "File",
    "steps": "Steps",
    "step_us": "Step",
    "own_us": "Own host",
    "exposed_us": "Exposed",
    "idle_us": "Idle",
    "wait_us": "Wait in all",
    "last_in": "Last in",
}
RANK_UNITS = {"rank": "text", "label": "text", "steps": "count", "last_in": "text"} | {
    key: "us" for key in RANK_KEYS if key.endswith("_us")
}


def add_files(parser: argparse.ArgumentParser) -> None:
    """Declare the files of a job and how they are read."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="trace files, folders, patterns such as 'run/**/*.json.gz', or @list.txt",
    )
    parser.add_argument(
        "--strict", action="store_true", help="leave a damaged file out instead of repairing it"
    )
    parser.add_argument(
        "--threshold",
        type=share,
        default=0.03,
        metavar="PCT",
        help="share of a step that the others must wait for a rank for it to be a straggler (3%%)",
    )
    parser.add_argument(
        "--workers", type=_positive, metavar="N", help="processes that read files (one per processor)"
    )
    parser.add_argument("--dask", action="store_true", help="read files on a Dask cluster of this machine")
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="read files on the Dask cluster at an address, such as tcp://host:8786",
    )
    parser.add_argument(
        "--cache",
        metavar="DIR",
        help="keep what was read of each file here, by its content: a second run reads what is new",
    )


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `fleet`."""
    add_files(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=path_to_write,
        metavar="FILE",
        help="also write the page of the job: one HTML file",
    )
    parser.add_argument(
        "--fail-on",
        type=_conditions,
        default=(),
        metavar="WHAT",
        help="exit code 1 if one of these holds: straggler, missing, skew>5%%, exposed>30%% (of the step)",
    )
    add_output(parser, top=10)


def run(options: argparse.Namespace) -> int:
    """Print the verdict and the tables."""
    report = read_job(options)
    if options.output:
        from ..fleet.page import export_fleet

        with writing(options.output):
            export_fleet(report, options.output)
    if options.format == "json":
        print_json(report.to_dict())
    elif options.format == "csv":
        print_rows(report.rank_rows(), "csv")
    else:
        _print_text(report, options)
    failed = [text for text, holds in options.fail_on if holds(report)]
    for text in failed:
        print(f"fail: {text}", file=sys.stderr)
    return 1 if failed else 0


def read_job(options: argparse.Namespace) -> FleetReport:
    """Read the files as the options say; a CommandError if none of them is a trace."""
    from ..fleet import fleet
    from ..fleet.dask_runner import DaskError

    with progress("Reading ranks") as bar:
        try:
            report = fleet(
                options.files,
                threshold=options.threshold,
                workers=options.workers,
                dask=options.dask,
                scheduler=options.scheduler,
                cache=options.cache,
                strict=options.strict,
                progress=bar,
            )
        except DaskError as error:
            raise CommandError(terminal_text(str(error))) from error
    if not len(report.job):
        reasons = [f"{each.file}: {each.reason}" for each in report.missing[:3]]
        more = "" if len(report.missing) <= 3 else f" (and {len(report.missing) - 3} more)"
        alone = len(report.missing) == 1
        raise CommandError(
            terminal_text(
                reasons[0] if alone else f"no trace could be read: {'; '.join(reasons) or 'no files'}{more}"
            )
        )
    return report


def print_sentences(report: FleetReport) -> None:
    """The verdict and the findings, as paragraphs."""
    for text in (report.verdict.sentence, *(each.sentence for each in report.findings)):
        say(text)


def print_ranks(report: FleetReport, format: str, top: int) -> None:
    """One row per rank; of many, those that wait least."""
    rows = report.rank_rows()
    keys = [key for key in RANK_KEYS if key != "idle_us" or any(row["idle_us"] for row in rows)]
    if any(row["rank"] is None for row in rows):
        keys[0] = "label"
    if top and len(rows) > top:
        rows.sort(key=_by_wait)
    shown: list[Row] = [
        {**row, "last_in": f"{row['last_in']} of {row['collectives']}"}
        for row in (rows[:top] if top else rows)
    ]
    print_rows(shown, format, keys=keys, units=RANK_UNITS, titles=RANK_TITLES)
    if len(rows) > len(shown):
        say(f"{len(rows) - len(shown):,} more ranks, which wait longer (--top 0 shows all)")


def _by_wait(row: Row) -> float:
    wait = row["wait_us"]
    return float(wait) if isinstance(wait, (int, float)) else 0.0


def print_notes(report: FleetReport, most: int = 10) -> None:
    """What is missing, and what to know before believing the figures."""
    missing = [
        f"{each.file or f'rank {each.rank}' if each.rank is not None or each.file else 'ranks'}: {each.reason}"
        for each in report.missing
    ]
    for text in missing[:most]:
        say(f"missing: {text}")
    if len(missing) > most:
        say(f"missing: {len(missing) - most:,} more (--format json lists all)")
    for note in report.notes:
        say(f"note: {note}")


def _print_text(report: FleetReport, options: argparse.Namespace) -> None:
    print_sentences(report)
    print()
    print_ranks(report, options.format, options.top)
    _print_collectives(report, options)
    _print_what_if(report, options)
    _print_clocks(report)
    print()
    print_notes(report)
    if options.output:
        say(f"The page is in {options.output}.")


def _print_collectives(report: FleetReport, options: argparse.Namespace) -> None:
    rows = report.type_rows()
    if not rows:
        return
    matched = " and ".join(report.collectives.matched_by)
    say(
        f"\nCollectives, matched by {matched}: the bytes of all, and medians of times and rates."
        f" Skew: {report.skew_share:.0%} of the step"
    )
    print_rows(
        rows,
        options.format,
        keys=["name", "count", "bytes", "skew_us", "transfer_us", "mean_wait_us", "bus_gb_s"],
        units={"name": "text", "bytes": "bytes", "bus_gb_s": "number", "count": "count"}
        | dict.fromkeys(("skew_us", "transfer_us", "mean_wait_us"), "us"),
        titles={
            "name": "Collective",
            "count": "Count",
            "bytes": "Bytes",
            "skew_us": "Skew",
            "transfer_us": "Transfer",
            "mean_wait_us": "Mean wait",
            "bus_gb_s": "Bus GB/s",
        },
    )


def _print_what_if(report: FleetReport, options: argparse.Namespace) -> None:
    what_if = report.what_if
    if what_if is None:
        return
    print()
    say(
        f"If every op took its median over ranks, a step would take {format_time(what_if.ideal_step_us)}"
        f" instead of {format_time(what_if.step_us)}."
    )
    parts = [("rank", str(report.rank_name(place)), us) for place, us in what_if.by_rank]
    parts += [("phase", stage, us) for stage, us in what_if.by_stage]
    parts += [("op", op, us) for op, us in what_if.by_op]
    most = max(us for _, _, us in parts) if parts else 0.0
    rows = [{"what": kind, "name": name, "saved_us": us} for kind, name, us in parts if us >= 0.1 * most]
    if rows:
        print_rows(
            rows[: options.top or None],
            options.format,
            keys=["what", "name", "saved_us"],
            units={"what": "text", "name": "text", "saved_us": "us"},
            titles={"what": "If only this", "name": "Had its median", "saved_us": "A step is shorter by"},
        )


def _print_clocks(report: FleetReport) -> None:
    if not report.clocks.known:
        say("\nClocks: not comparable, there are too few collectives that synchronise.")
        return
    rows = report.clock_rows()
    offsets = [abs(row["offset_us"]) for row in rows if isinstance(row["offset_us"], float)]
    residuals = [row["residual_us"] for row in rows if isinstance(row["residual_us"], float)]
    drifts = [abs(row["drift_ppm"]) for row in rows if isinstance(row["drift_ppm"], float)]
    print()
    say(
        f"Clocks: up to {format_time(max(offsets))} apart, drift up to {max(drifts):.1f} ppm;"
        f" after correction ends differ by {format_time(max(residuals))} or less."
    )


# ---------------------------------------------------------------------------------------------------- options

Condition = tuple[str, "Callable[[FleetReport], bool]"]


def _conditions(text: str) -> tuple[Condition, ...]:
    parts = [part.strip().replace(" ", "") for part in text.split(",") if part.strip()]
    return tuple(_condition(part) for part in parts)


def _condition(text: str) -> Condition:
    match = _CONDITION.match(text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no condition; expected straggler, missing, skew>5% or exposed>30%, separated by commas"
        )
    if match[1] == "straggler":
        return text, lambda report: report.verdict.straggler is not None
    if match[1] == "missing":
        return text, lambda report: bool(report.missing)
    limit = share(match[3])
    if match[2] == "skew":
        return text, lambda report: report.skew_share > limit
    return text, lambda report: report.exposed_share > limit


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes; expected 1 or more")
    return int(text)


__all__: Sequence[str] = (
    "add_files",
    "prepare_parser",
    "print_notes",
    "print_ranks",
    "print_sentences",
    "read_job",
    "run",
)
