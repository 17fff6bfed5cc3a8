"""Diff: two traces in; what was added, went away, got slower, faster, or is called more or less often, out. No text, no files.

    found = diff(load("before.json.gz"), load("after.json.gz"), by=("op", "shape"))
    for row in found.findings: print(row.status, row.key, row.self_cpu.delta)

Every row holds both sides; `findings` are the rows that differ by more than noise. Swapping the sides changes every sign and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray
from .noise import ENOUGH, SINGLE, Comparison, common_shift, compare, exceeds
from .recording import Recording, as_results
from .repeats import TIMES, Key, Measured, measure

PER = ("auto", "step", "call", "total")
ADDED, GONE, CALLS, WORK, SLOWER, FASTER, SAME = "added", "gone", "calls", "work", "slower", "faster", "same"


@dataclass(frozen=True)
class Change:
    """One value on both sides, in microseconds, bytes or pieces: per step, per call or in total, as the Diff says."""

    a: float
    b: float
    test: Comparison | None = None  # of the repeats; None: counted, or on one side only

    @property
    def delta(self) -> float:
        return self.b - self.a

    @property
    def typical(self) -> float:
        """The difference of the medians of the repeats, which a single slow one does not move; `delta` where nothing repeats."""
        return self.delta if self.test is None else self.test.delta

    @property
    def relative(self) -> float | None:
        """The change as a share of the first side: 0.1 is 10 % more; None where the first side is nothing."""
        a, b = (self.a, self.b) if self.test is None else (self.test.a, self.test.b)
        return (b - a) / a if a else None


@dataclass(frozen=True)
class Row:
    """One group of events on both sides."""

    key: Key
    status: str
    by: str  # the time that made it slower or faster: "self_cpu" or "self_device"; else ""
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
        """The time that the status speaks of; the larger change where it speaks of none."""
        if self.by:
            return self.self_cpu if self.by == "self_cpu" else self.self_device
        return max((self.self_cpu, self.self_device), key=lambda change: abs(change.typical))


@dataclass(frozen=True)
class Diff:
    """Rows in the order of what matters: largest change of time first."""

    rows: tuple[Row, ...]
    by: tuple[str, ...]
    per: str  # "step", "call" or "total": what the values of rows are per
    steps: tuple[int, int]  # steps on either side
    repeats: str  # what the rank test compares: "steps" or "calls"
    total: dict[
        str, Change
    ]  # sums over all rows: self_cpu, self_device, count, flops, memory, kernels; step; peak_memory
    shift: float  # how much slower the second side is across the board (median of rows): 1 is not at all
    floor: float  # share of a row's time that is noise here (median of rows, weighted by time); nan: nothing repeats
    device: bool  # whether either side has device times
    notes: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[Row, ...]:
        """The rows that differ by more than noise."""
        return tuple(row for row in self.rows if row.status != SAME)

    def __bool__(self) -> bool:
        return bool(self.findings)

    def to_dicts(self) -> list[dict[str, object]]:
        """The findings as plain dicts with stable keys; times in microseconds."""
        return [as_dict(row, self) for row in self.findings]


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

    by: "op" and any of "shape", "stack", "module"; per: "step", "call", "total", or "auto" (steps where both sides have them);
    threshold, min_us: smaller changes in time are ignored; alpha: significance level of the rank test.
    """
    if per not in PER:
        raise ValueError(f"cannot compare per {per!r}; expected one of {', '.join(PER)}")
    results_a, results_b = as_results(a), as_results(b)
    side_a, side_b = (measure(r, by, use_steps=per in ("auto", "step")) for r in (results_a, results_b))
    if bool(side_a.steps) != bool(side_b.steps):
        if per == "step":
            raise ValueError(
                f"the {'second' if side_a.steps else 'first'} trace has no steps (ProfilerStep#N); expected them for a comparison per step"
            )
        side_a, side_b = (measure(r, by, use_steps=False) for r in (results_a, results_b))
    elif per == "step" and not side_a.steps:
        raise ValueError("neither trace has steps (ProfilerStep#N); expected them for a comparison per step")
    chosen = "step" if side_a.steps else "call" if per == "call" else "total"
    return _diff(side_a, side_b, chosen, threshold, min_us, alpha)


def _diff(a: Measured, b: Measured, per: str, threshold: float, min_us: float, alpha: float) -> Diff:
    keys = [*a.keys, *(key for key in b.keys if key not in a.place)]
    samples = {metric: (a.samples(metric), b.samples(metric)) for metric in ("self_cpu", "self_device")}
    device = "device" in a.has or "device" in b.has
    flops = "flops" in a.has and "flops" in b.has
    shift, scatter = common_shift(*_medians(samples["self_cpu"], a, b, min_us))
    judge = Judge(threshold, min_us, alpha, shift, scatter)
    rows = []
    for key in keys:
        i, j = a.place.get(key), b.place.get(key)
        values = {name: _value(name, a, i, b, j, per) for name in (*TIMES, "memory", "flops", "kernels")}
        values["count"] = Change(_share(a, "count", i, a.runs), _share(b, "count", j, b.runs))
        for metric, (first, second) in samples.items():
            before, after = _repeats(first, i, a), _repeats(second, j, b)
            if len(before) and len(after):
                values[metric] = Change(values[metric].a, values[metric].b, compare(before, after))
        status, decided = _status(values, i, j, a, b, per, flops, device, judge)
        rows.append(Row(key, status, decided, **values))
    rows.sort(key=lambda row: _weight(row, per))
    notes = _notes(a, b, rows, per)
    return Diff(
        tuple(rows),
        a.by,
        per,
        (len(a.steps), len(b.steps)),
        a.repeats,
        _totals(a, b, per),
        shift,
        _floor(rows),
        device,
        tuple(notes),
    )


def _repeats(samples: list[FloatArray], row: int | None, side: Measured) -> FloatArray:
    """The repeats of a row; of one that is not there, no time in every step."""
    return np.zeros(len(side.steps)) if row is None else samples[row]


def _share(side: Measured, name: str, row: int | None, among: int) -> float:
    if row is None:
        return 0.0
    value = int(side.totals[name][row])
    return value / among if name not in TIMES else value / 1000.0 / among


def _value(name: str, a: Measured, i: int | None, b: Measured, j: int | None, per: str) -> Change:
    def one(side: Measured, row: int | None) -> float:
        if row is None:
            return 0.0
        among = int(side.totals["count"][row]) if per == "call" else side.runs
        return _share(side, name, row, among)

    return Change(one(a, i), one(b, j))


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
    """What happened to a row, and the time that says so."""
    if i is None or j is None:
        return (ADDED if i is None else GONE), ""
    if per != "call" and int(a.totals["count"][i]) * b.runs != int(b.totals["count"][j]) * a.runs:
        return CALLS, ""
    changed = [
        (abs(change.delta), metric, change)
        for metric in (("self_cpu", "self_device") if device else ("self_cpu",))
        if (change := values[metric]).test is not None and judge.beyond(change)
    ]
    if changed:
        # equal changes: the CPU's, so that swapping the sides gives the same
        _, metric, change = max(changed, key=lambda entry: (entry[0], entry[1] == "self_cpu"))
        return (SLOWER if change.delta > 0 else FASTER), metric
    if flops and int(a.totals["flops"][i]) * b.runs != int(b.totals["flops"][j]) * a.runs:
        return WORK, ""
    if int(a.totals["kernels"][i]) * b.runs != int(b.totals["kernels"][j]) * a.runs:
        return WORK, ""
    return SAME, ""


@dataclass(frozen=True)
class Judge:
    """When a change of time is one: large enough to matter, surer than chance, and more than the whole machine's being slower."""

    threshold: float
    min_us: float
    alpha: float
    shift: float = 1.0
    scatter: float = 1.0

    def beyond(self, change: Change) -> bool:
        """Whether a change counts; it must be the same way by mean and by median."""
        test = change.test
        assert test is not None
        if abs(change.delta) < self.min_us or change.delta * test.delta <= 0:
            return False
        if not exceeds(test.a, test.b, self.threshold) or not test.significant(self.alpha):
            return False
        if not test.a or not test.b:
            return True
        # a machine is at times a third slower, not twice: what is more than that belongs to the rows
        common = min(max(math.log(self.shift), -_SHIFT), _SHIFT)
        left = math.log(test.b / test.a) - common
        return (
            abs(left) > max(math.log1p(self.threshold), 3 * math.log(self.scatter)) and left * test.delta > 0
        )


_SHIFT = math.log(1.5)


def _weight(row: Row, per: str) -> tuple[float, str]:
    """Rows with the largest change of time first; a single slow repeat does not put a row in front."""
    sizes = []
    for change in (row.self_cpu, row.self_device):
        test = change.test
        if per == "total" and test is not None:  # the test is of calls, the row of all of them
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
    """The typical times of the rows that both sides have, of those long enough to be told."""
    pairs = [
        (float(np.median(samples[0][i])), float(np.median(samples[1][b.place[key]])))
        for key, i in a.place.items()
        if key in b.place
    ]
    found = np.array(pairs or [(0.0, 0.0)], float)
    long = found.min(axis=1) >= min_us
    return found[long, 0], found[long, 1]


def _floor(rows: Sequence[Row]) -> float:
    """The noise of a typical row, as a share of its time."""
    pairs = [
        (test.floor / min(test.a, test.b), row.self_cpu.a + row.self_cpu.b)
        for row in rows
        if (test := row.self_cpu.test) is not None and min(test.a, test.b) > 0 and min(test.repeats) >= ENOUGH
    ]
    if not pairs:
        return math.nan
    found = np.array(sorted(pairs))
    passed = np.cumsum(found[:, 1])
    return float(found[np.searchsorted(passed, passed[-1] / 2), 0])


def _notes(a: Measured, b: Measured, rows: Sequence[Row], per: str) -> list[str]:
    notes = []
    for side, which in ((a, "first"), (b, "second")):
        if not side.steps and not len(side.keys):
            notes.append(f"the {which} trace has no events")
        inside = int(side.totals["self_cpu"].sum())
        if side.outside_ns and side.outside_ns > 0.01 * (inside + side.outside_ns):
            share = side.outside_ns / (inside + side.outside_ns)
            notes.append(f"{share:.0%} of the {which} trace's time is outside of steps and is not compared")
    if a.steps and min(len(a.steps), len(b.steps)) < ENOUGH:
        notes.append(
            f"{len(a.steps)} and {len(b.steps)} steps are too few for a rank test (it needs {ENOUGH} on each side): "
            "times are compared by their spread only"
        )
    single = sum(row.self_cpu.test is not None and sum(row.self_cpu.test.repeats) < 4 for row in rows)
    if single:
        notes.append(f"{single:,} rows were measured only once: changes below {SINGLE:.0%} count as noise")
    lengths = {row.count.b / row.count.a for row in rows if row.count.a and row.count.b}
    if per == "total" and len(lengths) == 1 and lengths != {1.0}:
        notes.append(
            f"the second trace has {lengths.pop():.3g} times as many calls of every op: "
            "compare per call if the runs differ only in length"
        )
    for what, option in (("shapes", "shape"), ("stacks", "stack"), ("modules", "module")):
        if option in a.by:
            lacking = [which for side, which in ((a, "first"), (b, "second")) if what not in side.has]
            if lacking:
                notes.append(f"the {' and the '.join(lacking)} trace was recorded without {what}")
    return notes


def as_dict(row: Row, found: Diff) -> dict[str, object]:
    """A row as a plain dict: keys by what was grouped by, then both sides of each value."""
    made: dict[str, object] = {"status": row.status}
    made.update(zip(found.by, row.key))
    time = row.time
    for name in ("count", "self_cpu", "cpu", "self_device", "device", "memory", "flops", "kernels"):
        if name in ("self_device", "device", "kernels") and not found.device:
            continue
        change: Change = getattr(row, name)
        made[f"{name}_a"], made[f"{name}_b"] = change.a, change.b
        made[f"{name}_delta"] = change.delta
    made["typical_delta"] = time.typical
    made["relative"] = time.relative
    made["p"] = time.test.p if time.test is not None else None
    made["noise"] = time.test.floor if time.test is not None else None
    return made
