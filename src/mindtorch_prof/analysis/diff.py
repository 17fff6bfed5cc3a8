"""Diff: two recordings in; which rows were added or removed, got slower or faster, or are called more or less often, out.

    comparison = diff(load("before.json.gz"), load("after.json.gz"), by=("op", "shape"))
    for row in comparison.findings: print(row.status, row.key, row.self_cpu.delta)

Every row holds both sides; `findings` are the rows that differ by more than noise. Swapping the sides changes every sign and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray
from .kernel_repeats import BY_KERNEL, measure_kernels
from .noise import (
    MIN_REPEATS,
    SINGLE_NOISE,
    Comparison,
    common_shift,
    compare,
    exceeds,
    machine_log_shift,
    weighted_median,
)
from .recording import Recording, as_results
from .repeats import TIMES, Key, Measured, measure

if TYPE_CHECKING:
    from ..torch_api.results import Results

PER = ("auto", "step", "call", "total")
ADDED, GONE, CALLS, WORK, SLOWER, FASTER, SAME = "added", "gone", "calls", "work", "slower", "faster", "same"


@dataclass(frozen=True)
class Change:
    """One value on both sides: microseconds, bytes or a number, per step, per call or in total (`Diff.per`)."""

    a: float
    b: float
    test: Comparison | None = None  # of the repeats; None: a counter, or only one side has the row

    @property
    def delta(self) -> float:
        return self.b - self.a

    @property
    def typical(self) -> float:
        """The difference of the medians of the repeats, which one slow repeat does not change; `delta` without repeats."""
        return self.delta if self.test is None else self.test.delta

    @property
    def relative(self) -> float | None:
        """The change as a share of the first side: 0.1 is 10 % more; None if the first side is 0."""
        a, b = (self.a, self.b) if self.test is None else (self.test.a, self.test.b)
        return (b - a) / a if a else None


@dataclass(frozen=True)
class Row:
    """One group of events on both sides."""

    key: Key
    status: str
    by: str  # if slower or faster, which time decided: "self_cpu" or "self_device"; else ""
    count: Change
    self_cpu: Change
    cpu: Change
    self_device: Change
    device: Change
    memory: Change
    flops: Change
    kernels: Change

    @property
    def name(self) -> str:
        return " | ".join(part for part in self.key if part)

    @property
    def time(self) -> Change:
        """The time that decided the status; if none did, the one that changed more."""
        if self.by:
            return self.self_cpu if self.by == "self_cpu" else self.self_device
        return max((self.self_cpu, self.self_device), key=lambda change: abs(change.typical))


@dataclass(frozen=True)
class Diff:
    """The result of a comparison; the rows with the largest change in time come first."""

    rows: tuple[Row, ...]
    by: tuple[str, ...]
    per: str  # "step", "call" or "total": what the values of rows are per
    steps: tuple[int, int]  # number of steps of each side
    repeats: str  # what the rank test compares: "steps" or "calls"
    # sums over all rows: self_cpu, self_device, count, flops, memory, kernels; step; peak_memory
    total: dict[str, Change]
    shift: float  # by which factor the second side is slower (median of rows); 1: not at all
    floor: float  # noise as a share of a row's time (median of rows, weighted by time); nan: nothing repeats
    device: bool  # whether either side has device times
    notes: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[Row, ...]:
        """The rows that differ by more than noise."""
        return tuple(row for row in self.rows if row.status != SAME)

    def __bool__(self) -> bool:
        return bool(self.findings)


def diff(
    a: Recording,
    b: Recording,
    by: Sequence[str] = ("op",),
    *,
    per: str = "auto",
    threshold: float = 0.05,
    min_us: float = 1.0,
    alpha: float = 0.05,
) -> Diff:
    """Compare two recordings (profiles, Results or Traces).

    by: "op" and any of "shape", "stack", "module", or "kernel" alone; per: "step", "call", "total", or "auto" (steps where both sides have them);
    threshold, min_us: smaller changes in time are ignored; alpha: significance level of the rank test.
    """
    if per not in PER:
        raise ValueError(f"cannot compare per {per!r}; expected one of {', '.join(PER)}")
    results_a, results_b = as_results(a), as_results(b)
    if "kernel" in by and tuple(by) != BY_KERNEL:
        raise ValueError("cannot group by kernel and something else; expected kernel alone")
    side_a, side_b = (_measure(r, by, per in ("auto", "step")) for r in (results_a, results_b))
    if bool(side_a.steps) != bool(side_b.steps):
        if per == "step":
            raise ValueError(
                f"the {'second' if side_a.steps else 'first'} trace has no steps (ProfilerStep#N); expected them for a comparison per step"
            )
        side_a, side_b = (_measure(r, by, use_steps=False) for r in (results_a, results_b))
    elif per == "step" and not side_a.steps:
        raise ValueError("neither trace has steps (ProfilerStep#N); expected them for a comparison per step")
    chosen = "step" if side_a.steps else "call" if per == "call" else "total"
    return _diff(side_a, side_b, chosen, threshold, min_us, alpha)


def _measure(results: Results, by: Sequence[str], use_steps: bool) -> Measured:
    if tuple(by) == BY_KERNEL:
        return measure_kernels(results, use_steps=use_steps)
    return measure(results, by, use_steps=use_steps)


def _diff(a: Measured, b: Measured, per: str, threshold: float, min_us: float, alpha: float) -> Diff:
    keys = [*a.keys, *(key for key in b.keys if key not in a.place)]
    samples = {metric: (a.samples(metric), b.samples(metric)) for metric in ("self_cpu", "self_device")}
    device = "device" in a.has or "device" in b.has
    flops = "flops" in a.has and "flops" in b.has
    main = "self_device" if a.by == BY_KERNEL else "self_cpu"
    shift, scatter = common_shift(*_medians(samples[main], a, b, min_us))
    judge = Judge(threshold, min_us, alpha, shift, scatter)
    rows = []
    for key in keys:
        i, j = a.place.get(key), b.place.get(key)
        values = {name: _change(name, a, i, b, j, per) for name in (*TIMES, "memory", "flops", "kernels")}
        values["count"] = Change(_quotient(a, "count", i, a.runs), _quotient(b, "count", j, b.runs))
        for metric, (first, second) in samples.items():
            before, after = _repeats(first, i, a), _repeats(second, j, b)
            if len(before) and len(after):
                values[metric] = Change(values[metric].a, values[metric].b, compare(before, after))
        status, decided = _status(values, i, j, a, b, per, flops, device, judge)
        rows.append(Row(key, status, decided, **values))
    rows.sort(key=lambda row: _sort_key(row, per))
    notes = _notes(a, b, rows, per)
    return Diff(
        tuple(rows),
        a.by,
        per,
        (len(a.steps), len(b.steps)),
        a.repeats,
        _totals(a, b, per),
        shift,
        _noise_share(rows, main),
        device,
        tuple(notes),
    )


def _repeats(samples: list[FloatArray], row: int | None, side: Measured) -> FloatArray:
    """The repeats of a row; zeros, one per step, if this side does not have it."""
    return np.zeros(len(side.steps)) if row is None else samples[row]


def _quotient(side: Measured, name: str, row: int | None, divisor: int) -> float:
    """A total of a row (in microseconds, of times) divided by the number of steps or calls."""
    if row is None:
        return 0.0
    value = int(side.totals[name][row])
    return value / divisor if name not in TIMES else value / 1000.0 / divisor


def _change(name: str, a: Measured, i: int | None, b: Measured, j: int | None, per: str) -> Change:
    def value(side: Measured, row: int | None) -> float:
        if row is None:
            return 0.0
        calls = side.timed_calls if name in TIMES else side.totals["count"]
        return _quotient(side, name, row, int(calls[row]) if per == "call" else side.runs)

    return Change(value(a, i), value(b, j))


def _status(
    values: dict[str, Change],
    i: int | None,
    j: int | None,
    a: Measured,
    b: Measured,
    per: str,
    flops: bool,
    device: bool,
    judge: Judge,
) -> tuple[str, str]:
    """What happened to a row, and the time that decided it."""
    if i is None or j is None:
        return (ADDED if i is None else GONE), ""
    if per != "call" and int(a.totals["count"][i]) * b.runs != int(b.totals["count"][j]) * a.runs:
        return CALLS, ""
    changed = [
        (abs(change.delta), metric, change)
        for metric in (("self_cpu", "self_device") if device else ("self_cpu",))
        if (change := values[metric]).test is not None and judge.counts(change)
    ]
    if changed:
        # of equal changes the CPU's, so that swapping the sides gives the same result
        _, metric, change = max(changed, key=lambda entry: (entry[0], entry[1] == "self_cpu"))
        return (SLOWER if change.delta > 0 else FASTER), metric
    if flops and int(a.totals["flops"][i]) * b.runs != int(b.totals["flops"][j]) * a.runs:
        return WORK, ""
    if int(a.totals["kernels"][i]) * b.runs != int(b.totals["kernels"][j]) * a.runs:
        return WORK, ""
    return SAME, ""


@dataclass(frozen=True)
class Judge:
    """Decides which changes in time count: large enough, significant, and more than a slower machine explains."""

    threshold: float
    min_us: float
    alpha: float
    shift: float = 1.0
    scatter: float = 1.0

    def counts(self, change: Change) -> bool:
        """Whether a change counts; mean and median must agree on its sign."""
        test = change.test
        assert test is not None
        if abs(change.delta) < self.min_us or change.delta * test.delta <= 0:
            return False
        if not exceeds(test.a, test.b, self.threshold) or not test.significant(self.alpha):
            return False
        if not test.a or not test.b:
            return True
        own_change = math.log(test.b / test.a) - machine_log_shift(self.shift)
        allowed = max(math.log1p(self.threshold), 3 * math.log(self.scatter))
        return abs(own_change) > allowed and own_change * test.delta > 0


def _sort_key(row: Row, per: str) -> tuple[float, str]:
    """Puts rows with the largest typical change in time first: one slow repeat does not move a row up."""
    sizes = []
    for change in (row.self_cpu, row.self_device):
        test = change.test
        if per == "total" and test is not None:  # the test compares single calls, the row totals
            sizes.append(abs(test.b * row.count.b - test.a * row.count.a))
        else:
            sizes.append(abs(change.typical))
    return -max(sizes), "\0".join(row.key)


def _totals(a: Measured, b: Measured, per: str) -> dict[str, Change]:
    totals = {}
    for name in ("self_cpu", "self_device", "count", "flops", "memory", "kernels"):
        scale = 1000.0 if name in TIMES else 1
        first, second = (int(side.totals[name].sum()) / scale / side.runs for side in (a, b))
        totals[name] = Change(first, second)
    if a.steps:
        totals["step"] = Change(
            float(a.step_ns.mean()) / 1000,
            float(b.step_ns.mean()) / 1000,
            compare(a.step_ns / 1000, b.step_ns / 1000),
        )
    if a.peak_memory is not None and b.peak_memory is not None:
        totals["peak_memory"] = Change(a.peak_memory, b.peak_memory)
    return totals


def _medians(
    samples: tuple[list[FloatArray], list[FloatArray]], a: Measured, b: Measured, min_us: float
) -> tuple[FloatArray, FloatArray]:
    """The median times of the rows that both sides have and that take at least `min_us`."""
    pairs = [
        (float(np.median(samples[0][i])), float(np.median(samples[1][b.place[key]])))
        for key, i in a.place.items()
        if key in b.place
    ]
    medians = np.array(pairs or [(0.0, 0.0)], float)
    long = medians.min(axis=1) >= min_us
    return medians[long, 0], medians[long, 1]


def _noise_share(rows: Sequence[Row], metric: str) -> float:
    """The noise of a typical row as a share of its time; nan: nothing repeats."""
    return weighted_median(
        (test.floor / min(test.a, test.b), change.a + change.b)
        for row in rows
        if (test := (change := _time(row, metric)).test) is not None
        and min(test.a, test.b) > 0
        and min(test.repeats) >= MIN_REPEATS
    )


def _time(row: Row, metric: str) -> Change:
    return row.self_device if metric == "self_device" else row.self_cpu


def _notes(a: Measured, b: Measured, rows: Sequence[Row], per: str) -> list[str]:
    notes = []
    for side, which in ((a, "first"), (b, "second")):
        if not side.steps and not len(side.keys):
            notes.append(f"the {which} trace has no events")
        inside = int(side.totals["self_device" if side.by == BY_KERNEL else "self_cpu"].sum())
        if side.outside_ns and side.outside_ns > 0.01 * (inside + side.outside_ns):
            share = side.outside_ns / (inside + side.outside_ns)
            notes.append(f"{share:.0%} of the {which} trace's time is outside of steps and is not compared")
        if side.without_op_share > 0.01:
            share = side.without_op_share
            notes.append(
                f"{share:.0%} of the {which} trace's device time belongs to no op and is not compared"
            )
    if a.steps and min(len(a.steps), len(b.steps)) < MIN_REPEATS:
        notes.append(
            f"{len(a.steps)} and {len(b.steps)} steps are too few for a rank test (it needs {MIN_REPEATS} on each side): "
            "times are compared by their spread only"
        )
    single = sum(row.self_cpu.test is not None and sum(row.self_cpu.test.repeats) < 4 for row in rows)
    if single:
        notes.append(
            f"{single:,} rows were measured only once: changes below {SINGLE_NOISE:.0%} count as noise"
        )
    lengths = {row.count.b / row.count.a for row in rows if row.count.a and row.count.b}
    if per == "total" and len(lengths) == 1 and lengths != {1.0}:
        notes.append(
            f"the second trace has {lengths.pop():.3g} times as many calls of every op: "
            "compare per call if the runs differ only in length"
        )
    for recorded, option in (("shapes", "shape"), ("stacks", "stack"), ("modules", "module")):
        if option in a.by:
            lacking = [which for side, which in ((a, "first"), (b, "second")) if recorded not in side.has]
            if lacking:
                notes.append(f"the {' and the '.join(lacking)} trace was recorded without {recorded}")
    return notes


def as_dict(row: Row, comparison: Diff) -> dict[str, object]:
    """A row as a plain dict: the keys it is grouped by, then both sides of each value."""
    values: dict[str, object] = {"status": row.status}
    values.update(zip(comparison.by, row.key))
    time = row.time
    for name in ("count", "self_cpu", "cpu", "self_device", "device", "memory", "flops", "kernels"):
        if name in ("self_device", "device", "kernels") and not comparison.device:
            continue
        change: Change = getattr(row, name)
        values[f"{name}_a"], values[f"{name}_b"] = change.a, change.b
        values[f"{name}_delta"] = change.delta
    values["typical_delta"] = time.typical
    values["relative"] = time.relative
    values["p"] = time.test.p if time.test is not None else None
    values["noise"] = time.test.floor if time.test is not None else None
    return values
