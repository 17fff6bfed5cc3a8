"""Noise: repeated measurements of two versions in; how likely chance alone explains their difference, and how large a difference
chance alone makes, out. Does not use traces."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from ..arrays import FloatArray

MIN_REPEATS = 4  # on each side, for a rank test: with 4 against 4, the smallest p value is 2/70
SINGLE_NOISE = 0.5  # the noise of a measurement that was not repeated, as a share of it
_EXACT_REPEATS = 20  # up to so many on each side, p values are exact; for more, the rank sum is nearly normal
_MAX_LOG_SHIFT = math.log(1.5)  # of a whole machine: it is at times a third slower, not twice


@dataclass(frozen=True)
class Comparison:
    """Two sets of repeats; `a` and `b` are their medians, `delta` is b - a."""

    a: float
    b: float
    delta: float
    floor: float  # the noise floor: smaller differences can be chance
    p: float | None  # two-sided, of a rank test; None: too few repeats
    repeats: tuple[int, int]

    @property
    def ratio(self) -> float:
        """b / a; inf if only a is 0."""
        return ratio(self.a, self.b)

    def significant(self, alpha: float = 0.05) -> bool:
        """Whether the difference is larger than the noise floor and the rank test finds it significant."""
        return abs(self.delta) > self.floor and (self.p is None or self.p <= alpha)


def ratio(a: float, b: float) -> float:
    """b / a; 1 if both are 0, inf if only a is."""
    return b / a if a else (1.0 if not b else math.inf)


def exceeds(a: float, b: float, share: float) -> bool:
    """Whether a and b differ by more than a share of the smaller one; symmetric."""
    low, high = sorted((abs(a), abs(b)))
    return high > low * (1 + share) if a * b >= 0 else True


def compare(a: FloatArray, b: FloatArray) -> Comparison:
    """Compare repeats of one measurement. Swapping a and b changes the sign of `delta` and nothing else."""
    median_a, median_b = _median(a), _median(b)
    enough = len(a) >= MIN_REPEATS and len(b) >= MIN_REPEATS
    return Comparison(
        median_a,
        median_b,
        median_b - median_a,
        noise_floor(a, b),
        rank_test(a, b) if enough else None,
        (len(a), len(b)),
    )


def _median(values: FloatArray) -> float:
    return float(np.median(values)) if len(values) else 0.0


def noise_floor(a: FloatArray, b: FloatArray) -> float:
    """How far apart the medians of two such sets are by chance; they are farther apart once in a thousand times.

    The spread is the median absolute deviation, so that one slow repeat does not widen it.
    """
    if not len(a) or not len(b):
        return 0.0
    freedom = len(a) + len(b) - 2
    if freedom < 2:
        return SINGLE_NOISE * min(_median(a), _median(b))
    deviations = np.abs(np.concatenate([a - _median(a), b - _median(b)]))
    # 1.4826 median absolute deviations are a standard deviation of a normal distribution; with few repeats that is too small
    spread = 1.4826 * float(np.median(deviations)) * (len(deviations) / freedom)
    error_of_medians = 1.2533 * spread * math.sqrt(1 / len(a) + 1 / len(b))
    return _t_quantile(freedom) * error_of_medians


_ALMOST_NORMAL = (
    10_000  # degrees of freedom from which on Student's t is the normal distribution, to four digits
)
_TAIL = 0.001  # both sides together


@cache
def _t_quantile(freedom: int) -> float:
    """The number of standard errors that Student's t exceeds, on either side, once in a thousand times."""
    freedom = min(freedom, _ALMOST_NORMAL)
    low, high = 3.0, 700.0  # 3.29 for the normal distribution, 637 for one degree of freedom
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_within(middle, freedom) < 1 - _TAIL else (low, middle)
    return high


def _t_within(t: float, freedom: int) -> float:
    """The probability that Student's t is between -t and t: a finite sum for integral degrees of freedom."""
    angle = math.atan(t / math.sqrt(freedom))
    odd = freedom % 2
    # sin * (cos + 2/3 cos^3 + 2*4/(3*5) cos^5 ...) for odd degrees of freedom, sin * (1 + 1/2 cos^2 + 1*3/(2*4) cos^4 ...) for even ones
    first, count = (math.cos(angle), (freedom - 1) // 2) if odd else (1.0, freedom // 2)
    steps = np.arange(1, count)
    ratios = (2 * steps / (2 * steps + 1) if odd else (2 * steps - 1) / (2 * steps)) * math.cos(angle) ** 2
    total = math.sin(angle) * first * float(1 + np.cumprod(ratios).sum()) if count else 0.0
    return 2 / math.pi * (angle + total) if odd else total


def rank_test(a: FloatArray, b: FloatArray) -> float:
    """Two-sided p value of the Mann-Whitney test: exact for few repeats without ties, else by the normal approximation."""
    m, n = len(a), len(b)
    ordered = np.sort(a)
    below = np.searchsorted(ordered, b, side="left")
    equal = np.searchsorted(ordered, b, side="right") - below
    u = float(below.sum() + equal.sum() / 2)
    values, counts = np.unique(np.concatenate([a, b]), return_counts=True)
    if len(values) == 1:
        return 1.0
    if m <= _EXACT_REPEATS and n <= _EXACT_REPEATS and len(values) == m + n:
        least = int(min(u, m * n - u))
        return min(1.0, 2 * float(_rank_counts(m, n)[: least + 1].sum()) / math.comb(m + n, m))
    total = m + n
    ties = float((counts.astype(float) ** 3 - counts).sum())
    variance = m * n / 12 * (total + 1 - ties / (total * (total - 1)))
    distance = max(abs(u - m * n / 2) - 0.5, 0.0)
    return math.erfc(distance / math.sqrt(variance) / math.sqrt(2))


@cache
def _rank_counts(m: int, n: int) -> FloatArray:
    """For each U from 0 to m*n, how many arrangements of m and n values have it."""
    # U of an arrangement is a partition into at most m parts of at most n each: the coefficients of the Gaussian binomial
    counts = np.zeros(m * n + 1)
    counts[0] = 1.0
    for i in range(1, m + 1):
        raised = counts.copy()
        step = n + i
        raised[step:] -= counts[: max(len(counts) - step, 0)]
        for k in range(i, len(raised)):
            raised[k] += raised[k - i]
        counts = raised
    return counts


def quantiles(values: FloatArray, most: int = 25) -> FloatArray:
    """At most `most` values that represent all of them, in ascending order."""
    ordered = np.sort(values)
    if len(ordered) <= most:
        return ordered
    return np.quantile(ordered, (np.arange(most) + 0.5) / most, method="nearest")


def common_shift(a: FloatArray, b: FloatArray) -> tuple[float, float]:
    """How much slower all of b is than a (1: not at all), and how far rows scatter around that by chance, both as factors.

    A busy machine slows all rows by about the same factor. With fewer than 8 rows it cannot be told from changes of single rows.
    """
    known = (a > 0) & (b > 0)
    if known.sum() < 8:
        return 1.0, 1.0
    logs = np.log(b[known]) - np.log(a[known])
    median = float(np.median(logs))
    scatter = 1.4826 * float(np.median(np.abs(logs - median)))
    return math.exp(median), math.exp(scatter)


def machine_log_shift(shift: float) -> float:
    """The logarithm of the part of a common shift that the machine can explain; the rest belongs to the rows."""
    return min(max(math.log(shift), -_MAX_LOG_SHIFT), _MAX_LOG_SHIFT)


def weighted_median(pairs: Iterable[tuple[float, float]]) -> float:
    """The median of values, from pairs of value and weight; nan without any."""
    ordered = np.array(sorted(pairs))
    if not len(ordered):
        return math.nan
    weight_so_far = np.cumsum(ordered[:, 1])
    return float(ordered[np.searchsorted(weight_so_far, weight_so_far[-1] / 2), 0])
