"""Evidence: per rank and step, own times or waits in; which rank differs from the others beyond noise out.

Machines are noisy: a step of any rank may be hit by another process. So nothing is decided by sums. A rank is different if its values lie
above those of the others in nearly every step (probability of superiority, 0.5 where there is no difference), if a rank test finds that
significant, corrected for the number of ranks and phases, and if the difference is worth naming. Steps of one rank resemble each other where
another process sits on its core; so the ranges of the values must not overlap either, but for a tenth at each end.

A rank test of a few steps of a few ranks cannot be significant. There a rank is different only if its values and those of the others lie
far apart, measured by the range of any rank's values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..analysis.noise import rank_test
from ..arrays import FloatArray, IntArray

SUPERIORITY = 0.95  # share of pairs (a step of this rank, a step of another) in which this rank takes longer
_WORST_SUPERIORITY = 0.85  # the same, against the rank that is next to it
_CERTAIN = 0.5  # share of the threshold by which nine tenths of the steps must differ
SIGNIFICANT = 0.01  # after correction for the number of ranks and columns
_SPIKE = 2.0  # a value beyond so many medians of its own rank is a spike: another process, not the op
_SPIKE_NS = 50_000.0
_MANY_RANKS = 6  # from here on, one other rank may be as slow
MIN_STEPS = 4  # of a rank test
# Few steps, by their number: how many times the largest range of a rank's values its values must lie above those of the others, where a
# rank test cannot be significant. So chosen that noise alone accuses a rank in about 1 % of jobs at most (at most 1.2 % for every kind of
# noise, 2 to 8 ranks and 2 to 8 steps in benchmarks/false_accusations.py).
_APART = {2: 16.0, 3: 2.5, 4: 1.0, 5: 0.6, 6: 0.4}
_APART_OF_OPS = 5.0  # times that, where there are many columns, of ops: some lie far apart by chance
_FEWEST_PERMUTATIONS, _MOST_SHUFFLED = 150, 20_000_000  # of ranks within units, for a test of waits


def without_spikes(values: IntArray) -> FloatArray:
    """rank x step x cell: values that exceed twice the median of their rank and cell are cut there."""
    middle = np.median(values, axis=1, keepdims=True) if values.size else values
    return np.asarray(np.minimum(values, _SPIKE * middle + _SPIKE_NS))


@dataclass(frozen=True)
class Difference:
    """How much longer one rank takes for something than the others."""

    place: int  # of the rank
    column: int  # of the phase or cell
    shift: float  # of the medians, in the unit of the values
    certain: (
        float  # what nine tenths of this rank's steps exceed nine tenths of the others' steps by; 0 or more
    )
    superiority: float  # 0 to 1
    p: float  # of a rank test, one-sided, corrected


def shifts(values: FloatArray) -> FloatArray:
    """rank x column: the median over steps less the median of the other ranks' medians. values: rank x step x column."""
    medians = np.median(values, axis=1)
    return medians - _median_of_others(medians)


def _median_of_others(medians: FloatArray) -> FloatArray:
    """By rank and column the median over all other ranks: from the sorted values, without one loop per rank."""
    n = len(medians)
    if n < 2:
        return medians.copy()
    order = np.argsort(medians, axis=0, kind="stable")
    ordered = np.take_along_axis(medians, order, axis=0)
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.arange(n)[:, None] + np.zeros_like(order), axis=0)
    low, high = (n - 2) // 2, (n - 1) // 2  # of n - 1 values
    # without the value at `place`, the k-th is at k or k + 1
    first = np.take_along_axis(ordered, low + (place <= low), axis=0)
    second = np.take_along_axis(ordered, high + (place <= high), axis=0)
    return (first + second) / 2


def certain_excess(values: FloatArray, place: int) -> FloatArray:
    """By column what nine tenths of a rank's steps exceed nine tenths of the others' steps by; 0 if they do not.

    Of too few steps for tenths: what all exceed all others by, beyond the range of a rank's values.
    """
    if values.shape[1] < MIN_STEPS:
        lowest, highest = values.min(axis=1), values.max(axis=1)
        gap = lowest[place] - np.delete(highest, place, axis=0).max(axis=0)
        return np.asarray(np.maximum(gap - (highest - lowest).max(axis=0), 0.0))
    own = np.quantile(values[place], 0.1, axis=0)
    others = np.delete(values, place, axis=0)
    if len(values) >= _MANY_RANKS:
        highest = np.median(others, axis=1).argmax(axis=0)
        kept = np.arange(len(others))[:, None] != highest
        others = np.where(kept[:, None, :], others, others.min(axis=(0, 1)))
    return np.asarray(np.maximum(own - np.quantile(others.reshape(-1, values.shape[2]), 0.9, axis=0), 0.0))


def differences(values: FloatArray, threshold: float, *, of_ops: bool = False) -> list[Difference]:
    """The ranks and columns that differ beyond noise by more than a threshold, the largest difference first.

    values: rank x step x column. of_ops: columns are many and small, and some lie far apart by chance.
    """
    n_ranks, n_steps, _ = values.shape
    if n_ranks < 2:
        return []
    found: dict[tuple[int, int], Difference] = {}
    if n_steps in _APART:
        for each in _far_apart(values, threshold, _APART[n_steps] * (_APART_OF_OPS if of_ops else 1.0)):
            found[each.place, each.column] = each
    if n_steps >= MIN_STEPS:
        for each in _ranked_above(values, threshold):
            found[each.place, each.column] = each
    return sorted(found.values(), key=lambda each: (-each.shift, each.place, each.column))


def _ranked_above(values: FloatArray, threshold: float) -> list[Difference]:
    """Those that a rank test finds. Columns that never reach the threshold are not tested, and do not count in its correction."""
    n_ranks = len(values)
    shift = shifts(values)
    correction = n_ranks * int((values.max(axis=(0, 1)) > threshold).sum())
    found = []
    for place, column in np.argwhere(shift > threshold).tolist():
        own, others = values[place, :, column], np.delete(values[:, :, column], place, axis=0)
        if n_ranks >= _MANY_RANKS:
            others = np.delete(others, int(np.argmax(np.median(others, axis=1))), axis=0)
        by_rank = [superiority(own, other) for other in others]
        overall = float(np.mean(by_rank))
        if overall < SUPERIORITY or min(by_rank) < _WORST_SUPERIORITY:
            continue
        certain = float(certain_excess(values[:, :, [column]], place)[0])
        p = _above_by_chance(own, others.reshape(-1)) * correction
        if p <= SIGNIFICANT and certain >= _CERTAIN * threshold:
            found.append(Difference(place, column, float(shift[place, column]), certain, overall, p))
    return found


def _above_by_chance(own: FloatArray, others: FloatArray) -> float:
    """The probability that equal ranks are so far above others by chance: exact where all values are above all others."""
    if own.min() > others.max():
        return 1 / math.comb(len(own) + len(others), len(own))
    return rank_test(others, own) / 2


def _far_apart(values: FloatArray, threshold: float, factor: float) -> list[Difference]:
    """Those whose distance from the others is so many times the range of a rank's values."""
    n_ranks, n_steps, n_columns = values.shape
    lowest, highest = values.min(axis=1), values.max(axis=1)
    spread = (highest - lowest).max(axis=0)
    place = lowest.argmax(axis=0)  # by column: only this rank can be above all others
    columns = np.arange(n_columns)
    of_others = highest.copy()
    of_others[place, columns] = -np.inf
    gap = lowest[place, columns] - of_others.max(axis=0)
    shift = shifts(values)[place, columns]
    clear = (gap >= factor * spread) & (gap >= _CERTAIN * threshold) & (gap > 0) & (shift > threshold)
    p = (
        n_ranks * n_columns / math.comb(n_ranks * n_steps, n_steps)
    )  # that a rank is above all others by chance
    return [
        Difference(int(place[n]), n, float(shift[n]), float(gap[n]), 1.0, min(p, 1.0))
        for n in np.flatnonzero(clear).tolist()
    ]


def superiority(own: FloatArray, other: FloatArray) -> float:
    """The share of pairs in which the first is larger; equal values count half."""
    ordered = np.sort(other)
    below = np.searchsorted(ordered, own, side="left")
    equal = np.searchsorted(ordered, own, side="right") - below
    return float((below + equal / 2).mean() / max(len(other), 1))


def least_total_by_chance(waits: FloatArray, permutations: int = 400) -> float:
    """The probability that some rank waits as little in all as the one that waits least does, if each unit gave its waits to ranks at
    random. waits: rank x unit. Ranks are shuffled within units by a generator with a fixed seed: equal waits give equal answers."""
    n_ranks, n_units = waits.shape
    random = np.random.default_rng(20_260_301)
    observed = float(waits.sum(axis=1).min())
    count = max(_FEWEST_PERMUTATIONS, min(permutations, _MOST_SHUFFLED // max(n_ranks * n_units, 1)))
    as_low = 0
    for _ in range(count):
        shuffled = random.permuted(waits, axis=0)
        as_low += bool(shuffled.sum(axis=1).min() <= observed)
    return float((as_low + 1) / (count + 1))


def at_least(times: int, of: int, chance: float) -> float:
    """The probability that something of this chance happens at least so many times."""
    return min(
        1.0, math.fsum(math.comb(of, k) * chance**k * (1 - chance) ** (of - k) for k in range(times, of + 1))
    )
