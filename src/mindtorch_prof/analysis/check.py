"""Check: recordings and a baseline in, what got worse out. First counters, which have no noise; then times, which have.

A counter fails if it is above the baseline (with `exact`: if it differs). A time fails if it is above the baseline by more than the limit
and by more than the noise of its repeats, and a rank test finds the difference significant. If either side is a single recording, a slower
machine (all rows slower by the same factor) is not a regression.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray
from ..number_formats import counted, format_memory, format_time
from .baseline import Baseline, BaseRow, Range, make_baseline
from .noise import (
    MIN_REPEATS,
    SINGLE_NOISE,
    Comparison,
    common_shift,
    compare,
    machine_log_shift,
    weighted_median,
)
from .recording import Recording
from .repeats import TIMES, Key

COUNTED = ("ops", "count", "shapes", "flops", "memory", "kernels", "peak_memory")
METRICS = (*COUNTED, *TIMES)
DEFAULT = (*COUNTED, "self_cpu", "self_device")
FAIL, BETTER = "fail", "better"
_NEEDS = {
    "flops": "flops",
    "memory": "memory",
    "peak_memory": "memory",
    "kernels": "device",
    "shapes": "shapes",
}
_NEEDS |= {"self_device": "device", "device": "device"}


@dataclass(frozen=True)
class Finding:
    """One row that differs from the baseline."""

    verdict: str  # "fail" or "better"
    metric: str
    key: Key  # () is the sum over all rows
    before: float
    after: float
    limit: float  # the highest value that `after` may have
    noise: float | None = None  # of times: the noise floor
    p: float | None = None
    detail: str = ""  # the shapes, or a remark

    @property
    def name(self) -> str:
        return " | ".join(part for part in self.key if part) if self.key else "(all)"

    @property
    def change(self) -> float | None:
        """The change as a share of the baseline; None if that is 0."""
        return (self.after - self.before) / self.before if self.before else None

    def sentence(self) -> str:
        """The finding in words."""

        def text(value: float) -> str:
            if self.metric in TIMES:
                return format_time(value)
            if self.metric in ("memory", "peak_memory"):
                return format_memory(int(value))
            return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"

        metric = f"{self.metric} {self.detail}".strip()
        share = "new" if self.change is None else f"{self.change:+.1%}"
        noise = "" if self.noise is None else f", noise {text(self.noise)}"
        return f"{self.name}: {metric} {text(self.before)} -> {text(self.after)} ({share}; limit {text(self.limit)}{noise})"


@dataclass(frozen=True)
class CheckReport:
    """The result of a check; true if nothing got worse."""

    findings: tuple[Finding, ...]
    checked: dict[str, int]  # metric -> number of rows that were compared
    skipped: dict[str, str]  # metric -> why it was not compared
    floor: float  # noise of a typical row as a share of its time; nan: no time was compared
    repeats: str  # what was compared: "10 steps vs 12"
    shift: float  # by which factor all rows together are slower
    notes: tuple[str, ...] = ()

    @property
    def failures(self) -> tuple[Finding, ...]:
        """What got worse, in the order of METRICS, the largest change first."""
        return tuple(f for f in self.findings if f.verdict == FAIL)

    def __bool__(self) -> bool:
        return not self.failures


def check(
    recordings: Sequence[Recording] | Baseline,
    baseline: Baseline | Sequence[Recording],
    *,
    on: Sequence[str] = DEFAULT,
    max_regression: float = 0.05,
    tolerance: float | Mapping[str, float] = 0.0,
    min_us: float = 50.0,
    alpha: float = 0.05,
    exact: bool = False,
) -> CheckReport:
    """Compare recordings (profiles, Results, Traces; several are repeats) with a baseline or with other recordings.

    on: the METRICS to check; max_regression: how much slower a time may get; tolerance: how much a counter may grow, one share or one per
    metric; min_us: the times of rows that take less are not checked; exact: a counter that decreases fails as well.
    """
    wrong = [name for name in on if name not in METRICS]
    if wrong:
        raise ValueError(f"cannot check {wrong[0]!r}; expected some of {', '.join(METRICS)}")
    if not isinstance(baseline, Baseline):
        baseline = make_baseline(baseline)
    if not isinstance(recordings, Baseline):
        recordings = make_baseline(recordings, baseline.by, use_steps=baseline.per == "step")
    now, base = recordings, baseline
    if now.per != base.per:
        raise ValueError(
            f"the baseline is per {base.per}, the recording is not: "
            + ("it has no steps (ProfilerStep#N)" if base.per == "step" else "write the baseline again")
        )
    if now.by != base.by:
        raise ValueError(
            f"the baseline is grouped by {', '.join(base.by)}, the recording by {', '.join(now.by)}"
        )
    allowed = {
        name: tolerance if isinstance(tolerance, (int, float)) else tolerance.get(name, 0.0)
        for name in COUNTED
    }
    findings: list[Finding] = []
    checked: dict[str, int] = {}
    skipped: dict[str, str] = {}
    for metric in [m for m in METRICS if m in on]:
        need = _NEEDS.get(metric)
        if need and not (need in now.has and need in base.has):
            if need in base.has or need in now.has:
                side = "the recording" if need in base.has else "the baseline"
                skipped[metric] = f"not recorded in {side}"
            continue
        if metric in TIMES:
            continue
        of_metric, checked[metric] = _counters(metric, now, base, allowed[metric], exact)
        findings += of_metric
    times = [
        m
        for m in TIMES
        if m in on and m not in skipped and (_NEEDS.get(m) is None or _NEEDS[m] in now.has & base.has)
    ]
    of_times, floor, shift, repeats, notes = _times(times, now, base, max_regression, min_us, alpha, checked)
    return CheckReport(tuple(findings + of_times), checked, skipped, floor, repeats, shift, tuple(notes))


# ---------------------------------------------------------------------------------------------------- counters


def _counters(
    metric: str, now: Baseline, base: Baseline, allowed: float, exact: bool
) -> tuple[list[Finding], int]:
    if metric == "peak_memory":
        pair = base.total.counters.get(metric), now.total.counters.get(metric)
        if pair[0] is None or pair[1] is None:
            return [], 0
        return [f for f in [_counter_finding(metric, (), pair[0], pair[1], allowed, exact)] if f], 1
    keys = sorted({*now.rows, *base.rows})
    if metric == "ops":
        return _op_findings(now, base, keys, exact), len(keys)
    both = [key for key in keys if key in now.rows and key in base.rows]
    findings: list[Finding] = []
    for key in both:
        before, after = base.rows[key], now.rows[key]
        if metric == "shapes":
            findings += _shape_findings(key, before, after, allowed, exact)
            continue
        finding = _counter_finding(
            metric, key, before.counters[metric], after.counters[metric], allowed, exact
        )
        if finding is not None:
            findings.append(finding)
    findings.sort(key=lambda f: (f.verdict != FAIL, -abs(f.after - f.before), f.key))
    return findings, len(both)


def _op_findings(now: Baseline, base: Baseline, keys: list[Key], exact: bool) -> list[Finding]:
    """Rows that only one side has."""
    findings = []
    for key in keys:
        if key not in base.rows:
            calls = now.rows[key].counters["count"][1]
            findings.append(Finding(FAIL, "ops", key, 0, calls, 0, detail="(new row; number of calls)"))
        elif key not in now.rows:
            calls = base.rows[key].counters["count"][0]
            verdict = FAIL if exact else BETTER
            findings.append(
                Finding(verdict, "ops", key, calls, 0, calls, detail="(removed row; number of calls)")
            )
    return sorted(findings, key=lambda f: (f.verdict != FAIL, f.key))


def _counter_finding(
    metric: str, key: Key, before: Range, after: Range, allowed: float, exact: bool, detail: str = ""
) -> Finding | None:
    """A finding if a counter is outside the range of the baseline, widened by the tolerance."""
    limit = before[1] + allowed * abs(before[1]) if allowed else before[1]
    least = before[0] - allowed * abs(before[0]) if allowed else before[0]
    if after[1] > limit + 1e-6 * abs(limit):
        return Finding(FAIL, metric, key, before[1], after[1], limit, detail=detail)
    if after[0] < least - 1e-6 * abs(least):
        return Finding(FAIL if exact else BETTER, metric, key, before[0], after[0], limit, detail=detail)
    return None


def _shape_findings(key: Key, before: BaseRow, after: BaseRow, allowed: float, exact: bool) -> list[Finding]:
    """Numbers of calls by input shapes that changed."""
    findings = []
    for shape in sorted({*before.shapes, *after.shapes}):
        none: Range = (0, 0)
        finding = _counter_finding(
            "shapes",
            key,
            before.shapes.get(shape, none),
            after.shapes.get(shape, none),
            allowed,
            exact,
            shape or "(none)",
        )
        if finding is not None:
            findings.append(finding)
    return findings


# ---------------------------------------------------------------------------------------------------- times


def _times(
    metrics: list[str],
    now: Baseline,
    base: Baseline,
    max_regression: float,
    min_us: float,
    alpha: float,
    checked: dict[str, int],
) -> tuple[list[Finding], float, float, str, list[str]]:
    findings: list[Finding] = []
    notes: list[str] = []
    floors: list[tuple[float, float]] = []
    unit = ""
    first_shift = 1.0
    both = sorted(key for key in now.rows if key in base.rows)
    for metric in metrics:
        tests: list[tuple[Key, Comparison, float]] = []
        medians: list[tuple[float, float]] = []
        for key in both:
            pair = _samples(base.rows[key], now.rows[key], metric)
            if pair is None:
                continue
            unit, before, after = pair
            scale = now.rows[key].counters["count"][1] if unit == "calls" else 1.0
            median = float(np.median(before)), float(np.median(after))
            if min(median) * scale >= 1.0:
                medians.append(median)
            if max(median) * scale >= min_us:
                tests.append((key, compare(before, after), float(scale)))
        checked[metric] = len(tests)
        # between single recordings, the machine may be slower; with repeated runs, that is part of their spread
        shift, scatter = 1.0, 1.0
        if unit != "runs" and min(now.runs, base.runs) < MIN_REPEATS:
            shift, scatter = common_shift(*np.array(medians or [(0.0, 0.0)]).T)
        first_shift = shift if metric == metrics[0] else first_shift
        for key, test, scale in tests:
            finding = _time_finding(metric, key, test, scale, max_regression, alpha, shift, scatter)
            if finding is not None:
                findings.append(finding)
            if min(test.a, test.b) > 0 and min(test.repeats) > 1:
                floors.append((test.floor / min(test.a, test.b), test.a * scale))
        total = _total_finding(metric, now, base, max_regression, min_us, alpha)
        if total is not None:
            findings.append(total)
    if shift_matters(first_shift):
        notes.append(
            f"all rows together take {first_shift:.3g} times as long; one recording cannot tell a slow machine from a slow program: "
            "pass several files"
        )
    single = sum(
        min(len(v) for v in pair[1:]) < 2
        for key in both
        for m in metrics
        if (pair := _samples(base.rows[key], now.rows[key], m))
    )
    if single:
        notes.append(f"{single:,} times were measured only once: they fail only above {SINGLE_NOISE:.0%}")
    order = {metric: place for place, metric in enumerate(metrics)}
    findings.sort(key=lambda f: (order[f.metric], f.verdict != FAIL, -abs(f.after - f.before), f.key))
    repeats = _compared_repeats(unit, now, base) if metrics else ""
    return findings, weighted_median(floors), first_shift, repeats, notes


def shift_matters(shift: float) -> bool:
    """Whether all rows together are slower or faster by more than 3 %."""
    return abs(math.log(shift)) > math.log(1.03)


def _samples(before: BaseRow, after: BaseRow, metric: str) -> tuple[str, FloatArray, FloatArray] | None:
    """The repeats to compare: runs if there are enough, because only they show the noise between runs; else steps, else calls."""
    a, b = before.times.get(metric, {}), after.times.get(metric, {})
    units = [unit for unit in ("runs", "steps", "calls") if a.get(unit) and b.get(unit)]
    if units[:1] == ["runs"] and len(units) > 1 and min(len(a["runs"]), len(b["runs"])) < MIN_REPEATS:
        del units[0]
    return (units[0], np.array(a[units[0]]), np.array(b[units[0]])) if units else None


def _time_finding(
    metric: str,
    key: Key,
    test: Comparison,
    scale: float,
    max_regression: float,
    alpha: float,
    shift: float,
    scatter: float,
) -> Finding | None:
    if not test.a or not test.b or not test.significant(alpha):
        return None
    common = machine_log_shift(shift)
    own_change = math.log(test.b / test.a) - common
    allowed = max(math.log1p(max_regression), 3 * math.log(scatter))
    limit = test.a * math.exp(allowed + max(common, 0.0))
    values = (test.a * scale, test.b * scale, limit * scale, test.floor * scale)
    if own_change > allowed and test.b > test.a:
        return Finding(FAIL, metric, key, *values, test.p)
    if own_change < -allowed and test.b < test.a:
        return Finding(BETTER, metric, key, *values, test.p)
    return None


def _total_finding(
    metric: str, now: Baseline, base: Baseline, max_regression: float, min_us: float, alpha: float
) -> Finding | None:
    """A finding about the sum over all rows; with few recordings, its noise is that of a single measurement."""
    if metric not in base.total.times or metric not in now.total.times:
        return None
    pair = _samples(base.total, now.total, metric)
    if pair is None:
        return None
    test = compare(pair[1], pair[2])
    if max(test.a, test.b) < min_us or not test.a:
        return None
    few = min(now.runs, base.runs) < MIN_REPEATS
    floor = max(test.floor, SINGLE_NOISE * test.a) if few else test.floor
    if abs(test.delta) <= floor or (test.p is not None and test.p > alpha):
        return None
    limit = test.a * (1 + max_regression)
    if test.b > limit:
        return Finding(FAIL, metric, (), test.a, test.b, limit, floor, test.p)
    return (
        Finding(BETTER, metric, (), test.a, test.b, limit, floor, test.p)
        if test.b < test.a / (1 + max_regression)
        else None
    )


def _compared_repeats(unit: str, now: Baseline, base: Baseline) -> str:
    if unit == "steps":
        return f"{counted(now.steps, 'step')} vs {base.steps}"
    if unit == "runs":
        return f"{counted(now.runs, 'run')} vs {base.runs}"
    return "single calls" if unit == "calls" else ""
