"""Compare two traces: what changed, and what is only noise.

Reports ops that were added or removed, got slower or faster, or are called
more or less often. Values are per step if both traces have steps
(ProfilerStep#N), else per run. A change in time is reported if a rank test
over the steps (or calls) finds it significant and it is larger than the noise
floor and than --threshold. The exit code is 0; with --fail-on-change it is 1
if anything differs. Where ops have other names (two devices, fused and unfused),
--by tree compares them at the lowest op or module that both traces have.

example:
  mindtorch-prof diff before.json.gz after.json.gz --by op,shape --top 20
  mindtorch-prof diff before.json.gz after.json.gz --by kernel
  mindtorch-prof diff before.json.gz after.json.gz --as-recorded
  mindtorch-prof diff cuda.json.gz rocm.json.gz --by tree
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

from ..analysis.diff import ADDED, GONE, SAME, Diff, Row, as_dict, diff
from ..analysis.repeats import BY
from ..number_formats import counted, format_memory, format_time
from . import _diff_tree
from ._common import CommandError, add_file, add_output, open_trace, phase, print_rows, say
from ._options import names, number, share

TREE = "tree"
_UNITS = {
    "calls_a": "count",
    "calls_b": "count",
    "a": "us",
    "b": "us",
    "delta": "us",
    "relative": "text",
    "noise": "us",
}
_TITLES = {
    "status": "Change",
    "op": "Name",
    "kernel": "Kernel",
    "shape": "Input Shapes",
    "stack": "Source Location",
    "module": "Module",
    "what": "Time",
    "calls_a": "Calls A",
    "calls_b": "Calls B",
    "a": "A",
    "b": "B",
    "delta": "B - A",
    "relative": "%",
    "noise": "Noise ±",
    "p": "p",
}


_LEAST_IMPORTANT = (
    "p",
    "noise",
    "what",
    "calls_a",
    "calls_b",
    "a",
    "b",
    "relative",
    "stack",
    "shape",
    "module",
    "delta",
)


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `diff`."""
    add_file(parser, "a", help="the first trace: before")
    add_file(parser, "b", help="the second trace: after")
    parser.add_argument(
        "--by",
        type=names((*BY, "kernel", TREE)),
        default=("op",),
        metavar="WHAT",
        help="what to group rows by: op, shape, stack, module, separated by commas (op); kernel: kernels by name; "
        "tree: where the trees of ops part, for traces whose ops have other names",
    )
    parser.add_argument(
        "--per",
        choices=("auto", "step", "call", "total"),
        default="auto",
        help="what to normalise values by: auto uses steps if both traces have them, else totals",
    )
    parser.add_argument(
        "--threshold",
        type=share,
        default=0.05,
        metavar="PCT",
        help="ignore smaller changes in time (5%%)",
    )
    parser.add_argument(
        "--min-us",
        type=number,
        default=1.0,
        metavar="US",
        help="ignore changes of fewer microseconds (1)",
    )
    parser.add_argument("--all", action="store_true", help="also show rows without a change")
    parser.add_argument("--fail-on-change", action="store_true", help="exit with code 1 if anything differs")
    add_output(parser, top=20)


def run(options: argparse.Namespace) -> int:
    """Print what differs."""
    if TREE in options.by and len(options.by) > 1:
        raise CommandError("--by tree stands alone; expected tree, or some of " + ", ".join(BY))
    a, b = (open_trace(path, options) for path in (options.a, options.b))
    if TREE in options.by:
        return _diff_tree.run(a, b, options)
    try:
        with phase("comparing"):
            comparison = diff(
                a, b, options.by, per=options.per, threshold=options.threshold, min_us=options.min_us
            )
    except ValueError as error:
        raise CommandError(str(error)) from error
    rows = comparison.rows if options.all else comparison.findings
    if options.format in ("json", "csv"):
        print_rows(
            [as_dict(row, comparison) for row in rows],
            options.format,
            keys=_keys(comparison),
            top=options.top,
            about=about(comparison, options),
        )
    else:
        _print_text(comparison, rows, options)
    return 1 if options.fail_on_change and comparison else 0


def _keys(comparison: Diff) -> list[str]:
    keys = ["status", *comparison.by]
    for name in ("count", "self_cpu", "cpu", "self_device", "device", "memory", "flops", "kernels"):
        if comparison.device or name not in ("self_device", "device", "kernels"):
            keys += [f"{name}_a", f"{name}_b", f"{name}_delta"]
    return [*keys, "typical_delta", "relative", "p", "noise"]


def about(comparison: Diff, options: argparse.Namespace) -> dict[str, object]:
    """The keys of the JSON object besides the rows."""
    return {
        "a": options.a,
        "b": options.b,
        "by": list(comparison.by),
        "per": comparison.per,
        "steps": list(comparison.steps),
        "differences": len(comparison.findings),
        "noise_floor": None if math.isnan(comparison.floor) else comparison.floor,
        "shift": comparison.shift,
        "total": {name: {"a": c.a, "b": c.b, "delta": c.delta} for name, c in comparison.total.items()},
        "notes": list(comparison.notes),
    }


def _print_text(comparison: Diff, rows: Sequence[Row], options: argparse.Namespace) -> None:
    say(f"A: {options.a}")
    say(f"B: {options.b}")
    for line in summary(comparison):
        say(line)
    print()
    if not rows:
        print("no differences")
    else:
        shown = [_cells(row, comparison) for row in rows]
        keys = ["status", *comparison.by, "calls_a", "calls_b", *(["what"] if comparison.device else [])]
        keys += ["a", "b", "delta", "relative", "noise", "p"]
        print_rows(
            shown,
            options.format,
            keys=keys,
            top=options.top,
            units=_UNITS,
            titles=_TITLES,
            names=comparison.by[:1],
            least_important=_LEAST_IMPORTANT,
        )
        if options.top and len(rows) > options.top:
            print(f"\n{len(rows) - options.top:,} more rows; --top 0 shows all")
    for note in comparison.notes:
        say(f"\nnote: {note}" if note == comparison.notes[0] else f"note: {note}")


def summary(comparison: Diff) -> list[str]:
    """A few lines about the comparison: what values are per, totals, noise."""
    lines = []
    if comparison.per == "step":
        lines.append(
            f"per step: {counted(comparison.steps[0], 'step')} in A, {comparison.steps[1]} in B; A, B and B - A are medians"
        )
    elif comparison.per == "call":
        lines.append("per call")
    else:
        lines.append("per run (steps are not compared)")
    parts = []
    mean = "mean " if comparison.per == "step" else ""
    for name, title in (
        ("step", "median step"),
        ("self_cpu", f"{mean}self CPU"),
        ("self_device", f"{mean}self device"),
    ):
        change = comparison.total.get(name)
        if change is not None and (change.a or change.b):
            a, b = (change.a, change.b) if change.test is None else (change.test.a, change.test.b)
            parts.append(f"{title} {format_time(a)} -> {format_time(b)} ({percent(change.relative)})")
    for name, title in (("count", "calls"), ("kernels", "kernels")):
        change = comparison.total[name]
        if change.a or change.b:
            parts.append(f"{title} {change.a:,.6g} -> {change.b:,.6g}")
    peak = comparison.total.get("peak_memory")
    if peak is not None:
        parts.append(f"peak memory {format_memory(int(peak.a))} -> {format_memory(int(peak.b))}")
    lines.append("total: " + ", ".join(parts) if parts else "total: nothing was recorded")
    noise = (
        "unknown (too few repeats)"
        if math.isnan(comparison.floor)
        else f"{comparison.floor:.1%} of a typical row"
    )
    shifted = abs(math.log(comparison.shift)) > math.log(1.02)
    across = f"; overall shift of B: {percent(comparison.shift - 1)}" if shifted else ""
    lines.append(f"noise floor: {noise}{across}")
    return lines


def percent(value: float | None) -> str:
    """A relative change as text."""
    return "new" if value is None else f"{value:+.1%}"


def _cells(row: Row, comparison: Diff) -> dict[str, object]:
    time = row.time
    a, b = (
        (time.test.a, time.test.b) if comparison.per == "step" and time.test is not None else (time.a, time.b)
    )
    cells: dict[str, object] = {
        "status": "" if row.status == SAME else row.status,
        **dict(zip(comparison.by, row.key)),
    }
    cells["calls_a"], cells["calls_b"] = (_without_fraction(v) for v in (row.count.a, row.count.b))
    cells["what"] = "device" if time is row.self_device else "CPU"
    cells.update(a=a, b=b, delta=b - a, relative=percent((b - a) / a if a else None if b else 0.0))
    test = None if row.status in (ADDED, GONE) else time.test
    cells["noise"] = test.floor if test is not None and comparison.per != "total" else None
    cells["p"] = f"{test.p:.2g}" if test is not None and test.p is not None else None
    return cells


def _without_fraction(value: float) -> float | int:
    return int(value) if value == int(value) else value
