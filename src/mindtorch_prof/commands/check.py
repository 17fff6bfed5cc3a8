"""Fail the build on a regression: compare traces with a baseline.

Counters, which have no noise, are compared first, then times. Several files,
and the steps in them, are repeats of one program. A counter (ops, calls,
shapes, flops, bytes, kernels, peak memory) fails if it is above the baseline.
A time fails if it is above the baseline by more than --max-regression and by
more than the noise of the repeats, and a rank test finds the difference
significant. A baseline is a file written by --write-baseline, or one or more
traces.

example:
  mindtorch-prof check run1.json run2.json run3.json run4.json --baseline baseline.json --max-regression 10%
  mindtorch-prof check run1.json --baseline baseline.json --as-recorded
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

from ..analysis.baseline import Baseline, is_baseline, make_baseline, read_baseline, write_baseline
from ..analysis.check import COUNTED, DEFAULT, FAIL, METRICS, CheckReport, Finding, check
from ..analysis.repeats import BY, TIMES
from ..text_escaping import terminal_text, workflow_message, workflow_property
from ._common import (
    CommandError,
    add_file,
    add_output,
    open_trace,
    phase,
    print_rows,
    say,
    trace_files,
    writing,
)
from ._options import names, number, share

_KEYS = ("verdict", "metric", "name", "detail", "before", "after", "change", "limit", "noise", "p")
_TITLES = {
    "verdict": "Verdict",
    "metric": "Metric",
    "name": "Row",
    "before": "Baseline",
    "after": "Current",
    "change": "%",
    "limit": "Limit",
    "noise": "Noise ±",
    "p": "p",
}


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `check`."""
    add_file(parser, "files", nargs="+", metavar="FILE")
    parser.add_argument(
        "--baseline", nargs="+", metavar="B", help="the baseline to compare with: a baseline file, or traces"
    )
    parser.add_argument("--write-baseline", metavar="B", help="write a baseline file from the given traces")
    parser.add_argument(
        "--max-regression",
        type=share,
        default=0.05,
        metavar="PCT",
        help="how much slower a time may get (5%%)",
    )
    parser.add_argument(
        "--on",
        type=names(METRICS),
        default=DEFAULT,
        metavar="WHAT",
        help=f"metrics to check, separated by commas: {', '.join(METRICS)} (all but cpu and device)",
    )
    parser.add_argument(
        "--tolerance",
        action="append",
        default=[],
        metavar="PCT",
        help="how much counters may grow (0%%); for one counter: count=2%%",
    )
    parser.add_argument(
        "--min-us",
        type=number,
        default=50.0,
        metavar="US",
        help="do not check the times of rows that take less (50)",
    )
    parser.add_argument(
        "--by", type=names(BY), metavar="WHAT", help="what to group rows by: op, shape, stack, module (op)"
    )
    parser.add_argument(
        "--exact", action="store_true", help="also fail if a counter decreases or an op disappears"
    )
    parser.add_argument(
        "--github", action="store_true", help="also print failures as GitHub Actions annotations"
    )
    parser.add_argument("--junit", metavar="FILE", help="also write the result as JUnit XML")
    add_output(parser, top=20)


def run(options: argparse.Namespace) -> int:
    """Compare and print; the exit code is 1 on a regression."""
    if not options.baseline and not options.write_baseline:
        raise CommandError("no baseline; expected --baseline B, or --write-baseline B to write one")
    tolerance = _tolerance(options.tolerance)
    options.files = trace_files(options.files)
    base = _open_baseline(options.baseline, options) if options.baseline else None
    by = options.by or (base.by if base is not None else ("op",))
    try:
        recordings = [open_trace(path, options) for path in options.files]
        use_steps = base is None or base.per == "step"
        with phase("aggregating"):
            now = make_baseline(recordings, by, use_steps=use_steps, source=options.files[0])
        code = 0
        if base is not None:
            report = check(
                now,
                base,
                on=options.on,
                max_regression=options.max_regression,
                tolerance=tolerance,
                min_us=options.min_us,
                exact=options.exact,
            )
            _print_report(report, now, base, options)
            code = 0 if report else 1
    except ValueError as error:
        raise CommandError(terminal_text(str(error))) from error
    if options.write_baseline:
        with writing(options.write_baseline):
            write_baseline(now, options.write_baseline)
        if options.format not in ("json", "csv") or base is None:
            files = "file" if now.runs == 1 else "files"
            per = f"{now.steps} steps" if now.per == "step" else "whole runs"
            print(
                f"{terminal_text(options.write_baseline)}: {len(now.rows):,} rows of {now.runs} {files}, {per}"
            )
    return code


def _open_baseline(paths: Sequence[str], options: argparse.Namespace) -> Baseline:
    if len(paths) == 1 and is_baseline(paths[0]):
        try:
            return read_baseline(paths[0])
        except (OSError, ValueError) as error:
            raise CommandError(terminal_text(str(error))) from error
    recordings = [open_trace(path, options) for path in trace_files(paths)]
    try:
        return make_baseline(recordings, options.by or ("op",), source=paths[0])
    except ValueError as error:
        raise CommandError(terminal_text(str(error))) from error


def _tolerance(options: Sequence[str]) -> dict[str, float]:
    """The tolerance of each counter from the values of --tolerance."""
    tolerance = dict.fromkeys(COUNTED, 0.0)
    for text in options:
        name, equals, value = text.rpartition("=")
        try:
            if equals and name not in COUNTED:
                raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(COUNTED)}")
            tolerance |= {name: share(value)} if equals else dict.fromkeys(COUNTED, share(value))
        except argparse.ArgumentTypeError as error:
            raise CommandError(f"--tolerance: {error}") from error
    return tolerance


# ---------------------------------------------------------------------------------------------------- printing


def _print_report(report: CheckReport, now: Baseline, base: Baseline, options: argparse.Namespace) -> None:
    if options.junit:
        with writing(options.junit):
            _write_junit(report, options)
    if options.format in ("json", "csv"):
        rows = [{**_values(f), "change": f.change} for f in report.findings]
        print_rows(
            rows, options.format, keys=_KEYS, top=options.top, about=_about(report, now, base, options)
        )
    else:
        _print_text(report, options)
    if options.github:
        for line in github_annotations(report, options.files[0], options.top):
            print(line)


def _values(finding: Finding) -> dict[str, object]:
    return {key: getattr(finding, key) for key in _KEYS}


def _about(
    report: CheckReport, now: Baseline, base: Baseline, options: argparse.Namespace
) -> dict[str, object]:
    return {
        "ok": bool(report),
        "failures": len(report.failures),
        "files": list(options.files),
        "baseline": list(options.baseline),
        "per": base.per,
        "runs": [now.runs, base.runs],
        "steps": [now.steps, base.steps],
        "checked": report.checked,
        "skipped": report.skipped,
        "noise_floor": None if math.isnan(report.floor) else report.floor,
        "shift": report.shift,
        "notes": list(report.notes),
    }


def _print_text(report: CheckReport, options: argparse.Namespace) -> None:
    failed = {f.metric for f in report.failures}
    for title, group in (("counters", COUNTED), ("times", TIMES)):
        parts = [f"{m} {'FAILED' if m in failed else 'ok'}" for m in group if m in report.checked]
        if parts:
            more = ""
            if title == "times" and report.repeats:
                floor = "unknown" if math.isnan(report.floor) else f"{report.floor:.1%} of a typical row"
                more = f" ({report.repeats}; noise floor {floor})"
            say(f"{title}: {', '.join(parts)}{more}")
    for metric, why in report.skipped.items():
        say(f"not checked: {metric} ({why})")
    shown = [f for f in report.findings if f.verdict == FAIL]
    if shown:
        print()
        rows = [_cells(f) for f in shown]
        keys = ["verdict", "metric", "name", "before", "after", "change", "limit", "noise", "p"]
        print_rows(
            rows,
            options.format,
            keys=keys,
            top=options.top,
            titles=_TITLES,
            units=dict.fromkeys(keys, "text"),
            least_important=("p", "noise", "limit", "verdict", "before", "after"),
        )
        if options.top and len(shown) > options.top:
            print(f"\n{len(shown) - options.top:,} more; --top 0 shows all")
    better = sum(f.verdict != FAIL for f in report.findings)
    print()
    if better:
        say(f"improved or removed: {better:,} (--write-baseline updates the baseline)")
    for note in report.notes:
        say(f"note: {note}")
    print(f"FAILED: {len(shown):,} above the baseline" if shown else "ok: nothing above the baseline")


def _cells(finding: Finding) -> dict[str, object]:
    from ..analysis.columns import formatted

    unit = (
        "us"
        if finding.metric in TIMES
        else "bytes"
        if finding.metric in ("memory", "peak_memory")
        else "count"
    )
    cells: dict[str, object] = {"verdict": finding.verdict, "metric": finding.metric}
    cells["name"] = f"{finding.name} {finding.detail}".strip()
    for key in ("before", "after", "limit", "noise"):
        cells[key] = formatted(getattr(finding, key), unit)
    cells["change"] = "new" if finding.change is None else f"{finding.change:+.1%}"
    cells["p"] = "" if finding.p is None else f"{finding.p:.2g}"
    return cells


def github_annotations(report: CheckReport, file: str, top: int = 0) -> list[str]:
    """Failures as GitHub Actions annotations."""
    failures = report.failures[:top] if top else report.failures
    return [
        f"::error title={workflow_property(f'{f.metric} above the baseline')}::{workflow_message(f'{file}: {f.sentence()}')}"
        for f in failures
    ]


def _write_junit(report: CheckReport, options: argparse.Namespace) -> None:
    from xml.etree import ElementTree as ET

    from ..files import open_for_export

    cases = [m for m in METRICS if m in report.checked or m in report.skipped]
    suite = ET.Element(
        "testsuite",
        name="mindtorch-prof check",
        tests=str(len(cases)),
        failures=str(len({f.metric for f in report.failures})),
        skipped=str(len(report.skipped)),
        errors="0",
    )
    for metric in cases:
        case = ET.SubElement(suite, "testcase", classname=terminal_text(options.files[0]), name=metric)
        failed = [f for f in report.failures if f.metric == metric]
        if metric in report.skipped:
            ET.SubElement(case, "skipped", message=report.skipped[metric])
        elif failed:
            failure = ET.SubElement(
                case, "failure", message=terminal_text(failed[0].sentence()), type="regression"
            )
            failure.text = "\n".join(terminal_text(f.sentence()) for f in failed)
    with open_for_export(options.junit) as out:
        out.write(ET.tostring(suite, encoding="utf-8", xml_declaration=True) + b"\n")
