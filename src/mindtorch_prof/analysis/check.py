"""Check: recordings and a baseline in, what got worse out. Counters first, which have no noise; then times, with theirs. No text layout.

A counter fails when it is above the baseline's (`exact`: when it differs). A time fails when it is above by more than the limit, by more
than the noise of its repeats, and surer than chance by a rank test; where either side is a single recording, a slower machine (all rows
together) does not count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray
from .baseline import Baseline, BaseRow, Range, make_baseline
from .noise import ENOUGH, SINGLE, Comparison, common_shift, compare
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
_SHIFT = math.log(1.5)  # a machine is at times a third slower, not twice


@dataclass(frozen=True)
class Finding:
    """One row that differs from the baseline."""

    verdict: str  # "fail" or "better"
    metric: str
    key: Key  # () is the whole
    before: float
    after: float
    limit: float  # what `after` may be at most
    noise: float | None = None  # of times: differences below this are chance
    p: float | None = None
    detail: str = ""  # of shapes: which

    @property
    def name(self) -> str:
        return " | ".join(part for part in self.key if part) if self.key else "(all)"

    @property
    def change(self) -> float | None:
        """The change as a share of the baseline; None where that is nothing."""
        return (self.after - self.before) / self.before if self.before else None

    def sentence(self) -> str:
        """The finding in words."""
        from ..formats import format_memory, format_time

        def text(value: float) -> str:
            if self.metric in TIMES:
                return format_time(value)
            if self.metric in ("memory", "peak_memory"):
                return format_memory(int(value))
            return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"

        what = f"{self.metric} {self.detail}".strip()
        share = "new" if self.change is None else f"{self.change:+.1%}"
        noise = "" if self.noise is None else f", noise {text(self.noise)}"
        return f"{self.name}: {what} {text(self.before)} -> {text(self.after)} ({share}; limit {text(self.limit)}{noise})"


@dataclass(frozen=True)
class CheckReport:
    """What a check found; true when nothing got worse."""

    findings: tuple[Finding, ...]
    checked: dict[str, int]  # metric -> rows that were looked at
    skipped: dict[str, str]  # metric -> why it was not looked at
    floor: float  # noise of a typical row as a share of its time; nan: no time was compared
    repeats: str  # what was compared: "10 steps vs 12"
    shift: float  # how much slower everything is together
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
        found, checked[metric] = _counters(metric, now, base, allowed[metric], exact)
        findings += found
    times = [
        m
        for m in TIMES
        if m in on and m not in skipped and (_NEEDS.get(m) is None or _NEEDS[m] in now.has & base.has)
    ]
    found, floor, shift, repeats, notes = _times(times, now, base, max_regression, min_us, alpha, checked)
    return CheckReport(tuple(findings + found), checked, skipped, floor, repeats, shift, tuple(notes))


# ---------------------------------------------------------------------------------------------------- counters


def _counters(
    metric: str, now: Baseline, base: Baseline, allowed: float, exact: bool
) -> tuple[list[Finding], int]:
    if metric == "peak_memory":
        pair = base.total.counters.get(metric), now.total.counters.get(metric)
        if pair[0] is None or pair[1] is None:
            return [], 0
        return [f for f in [_counted(metric, (), pair[0], pair[1], allowed, exact)] if f], 1
    keys = sorted({*now.rows, *base.rows})
    if metric == "ops":
        return _ops(now, base, keys, exact), len(keys)
    both = [key for key in keys if key in now.rows and key in base.rows]
    findings: list[Finding] = []
    for key in both:
        before, after = base.rows[key], now.rows[key]
        if metric == "shapes":
            findings += _shapes(key, before, after, allowed, exact)
            continue
        found = _counted(metric, key, before.counters[metric], after.counters[metric], allowed, exact)
        if found is not None:
            findings.append(found)
    findings.sort(key=lambda f: (f.verdict != FAIL, -abs(f.after - f.before), f.key))
    return findings, len(both)


def _ops(now: Baseline, base: Baseline, keys: list[Key], exact: bool) -> list[Finding]:
    made = []
    for key in keys:
        if key not in base.rows:
            calls = now.rows[key].counters["count"][1]
            made.append(Finding(FAIL, "ops", key, 0, calls, 0, detail="(new row; number of calls)"))
        elif key not in now.rows:
            calls = base.rows[key].counters["count"][0]
            verdict = FAIL if exact else BETTER
            made.append(
                Finding(verdict, "ops", key, calls, 0, calls, detail="(removed row; number of calls)")
            )
    return sorted(made, key=lambda f: (f.verdict != FAIL, f.key))


def _counted(
    metric: str, key: Key, before: Range, after: Range, allowed: float, exact: bool, detail: str = ""
) -> Finding | None:
    """A finding where a counter lies outside of what the baseline saw and the tolerance adds."""
    limit = before[1] + allowed * abs(before[1]) if allowed else before[1]
    least = before[0] - allowed * abs(before[0]) if allowed else before[0]
    if after[1] > limit + 1e-6 * abs(limit):
        return Finding(FAIL, metric, key, before[1], after[1], limit, detail=detail)
    if after[0] < least - 1e-6 * abs(least):
        return Finding(FAIL if exact else BETTER, metric, key, before[0], after[0], limit, detail=detail)
    return None


def _shapes(key: Key, before: BaseRow, after: BaseRow, allowed: float, exact: bool) -> list[Finding]:
    made = []
    for shape in sorted({*before.shapes, *after.shapes}):
        none: Range = (0, 0)
        found = _counted(
            "shapes",
            key,
            before.shapes.get(shape, none),
            after.shapes.get(shape, none),
            allowed,
            exact,
            shape or "(none)",
        )
        # calls that moved from one shape to another are told at the new one
        if found is not None:
            made.append(found)
    return made


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
        middles: list[tuple[float, float]] = []
        for key in both:
            pair = _samples(base.rows[key], now.rows[key], metric)
            if pair is None:
                continue
            unit, before, after = pair
            scale = now.rows[key].counters["count"][1] if unit == "calls" else 1.0
            middle = float(np.median(before)), float(np.median(after))
            if min(middle) * scale >= 1.0:
                middles.append(middle)
            if max(middle) * scale >= min_us:
                tests.append((key, compare(before, after), float(scale)))
        checked[metric] = len(tests)
        # between single recordings everything may be slower together; repeats of whole runs have that in their spread
        shift, scatter = 1.0, 1.0
        if unit != "runs" and min(now.runs, base.runs) < ENOUGH:
            shift, scatter = common_shift(*np.array(middles or [(0.0, 0.0)]).T)
        first_shift = shift if metric == metrics[0] else first_shift
        for key, test, scale in tests:
            finding = _judged(metric, key, test, scale, max_regression, alpha, shift, scatter)
            if finding is not None:
                findings.append(finding)
            if min(test.a, test.b) > 0 and min(test.repeats) > 1:
                floors.append((test.floor / min(test.a, test.b), test.a * scale))
        total = _total(metric, now, base, max_regression, min_us, alpha)
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
        notes.append(f"{single:,} times were measured only once: they fail only above {SINGLE:.0%}")
    order = {metric: place for place, metric in enumerate(metrics)}
    findings.sort(key=lambda f: (order[f.metric], f.verdict != FAIL, -abs(f.after - f.before), f.key))
    return findings, _typical(floors), first_shift, _described(unit, now, base) if metrics else "", notes


def shift_matters(shift: float) -> bool:
    """Whether everything together is slower or faster by more than a rounding."""
    return abs(math.log(shift)) > math.log(1.03)


def _samples(before: BaseRow, after: BaseRow, metric: str) -> tuple[str, FloatArray, FloatArray] | None:
    """The repeats to compare: recordings where there are enough, as only they have the noise between runs; else steps, else calls."""
    a, b = before.times.get(metric, {}), after.times.get(metric, {})
    units = [unit for unit in ("runs", "steps", "calls") if a.get(unit) and b.get(unit)]
    if units[:1] == ["runs"] and len(units) > 1 and min(len(a["runs"]), len(b["runs"])) < ENOUGH:
        del units[0]
    return (units[0], np.array(a[units[0]]), np.array(b[units[0]])) if units else None


def _judged(
    metric: str,
    key: Key,
    test: Comparison,
    scale: float,
    most: float,
    alpha: float,
    shift: float,
    scatter: float,
) -> Finding | None:
    if not test.a or not test.b or not test.significant(alpha):
        return None
    common = min(max(math.log(shift), -_SHIFT), _SHIFT)
    left = math.log(test.b / test.a) - common
    beyond = max(math.log1p(most), 3 * math.log(scatter))
    limit = test.a * math.exp(beyond + max(common, 0.0))
    values = (test.a * scale, test.b * scale, limit * scale, test.floor * scale)
    if left > beyond and test.b > test.a:
        return Finding(FAIL, metric, key, *values, test.p)
    if left < -beyond and test.b < test.a:
        return Finding(BETTER, metric, key, *values, test.p)
    return None


def _total(
    metric: str, now: Baseline, base: Baseline, most: float, min_us: float, alpha: float
) -> Finding | None:
    """The whole: with few recordings their difference is trusted as far as any single measurement."""
    if metric not in base.total.times or metric not in now.total.times:
        return None
    pair = _samples(base.total, now.total, metric)
    if pair is None:
        return None
    test = compare(pair[1], pair[2])
    if max(test.a, test.b) < min_us or not test.a:
        return None
    few = min(now.runs, base.runs) < ENOUGH
    floor = max(test.floor, SINGLE * test.a) if few else test.floor
    if abs(test.delta) <= floor or (test.p is not None and test.p > alpha):
        return None
    limit = test.a * (1 + most)
    if test.b > limit:
        return Finding(FAIL, metric, (), test.a, test.b, limit, floor, test.p)
    return (
        Finding(BETTER, metric, (), test.a, test.b, limit, floor, test.p)
        if test.b < test.a / (1 + most)
        else None
    )


def _typical(floors: list[tuple[float, float]]) -> float:
    if not floors:
        return math.nan
    found = np.array(sorted(floors))
    passed = np.cumsum(found[:, 1])
    return float(found[np.searchsorted(passed, passed[-1] / 2), 0])


def _described(unit: str, now: Baseline, base: Baseline) -> str:
    if unit == "steps":
        return f"{now.steps} steps vs {base.steps}"
    if unit == "runs":
        return f"{now.runs} runs vs {base.runs}"
    return "single calls" if unit == "calls" else ""
