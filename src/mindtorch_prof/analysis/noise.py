"""Noise: repeated measurements of two versions in; how likely chance alone explains their difference, and how large a difference
chance makes, out. Knows nothing of traces."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from ..arrays import FloatArray

ENOUGH = 4  # repeats on each side from which a rank test can say anything: 4 against 4 gives 2/70 at best
SINGLE = 0.5  # how far a measurement that was not repeated is trusted: within 50 %
_EXACT = (
    20  # up to so many repeats a side the distribution of ranks is counted out, beyond it is nearly normal
)


@dataclass(frozen=True)
class Comparison:
    """Two sets of repeats side by side; `delta` is the second's median less the first's."""

    a: float
    b: float
    delta: float
    floor: float  # differences below this are what chance makes
    p: float | None  # two-sided, of a rank test; None: too few repeats
    repeats: tuple[int, int]

    @property
    def ratio(self) -> float:
        """The second as a multiple of the first; inf where the first is nothing."""
        return ratio(self.a, self.b)

    def significant(self, alpha: float = 0.05) -> bool:
        """Whether the difference is more than chance makes."""
        return abs(self.delta) > self.floor and (self.p is None or self.p <= alpha)


def ratio(a: float, b: float) -> float:
    """b / a, with 1 for two nothings."""
    return b / a if a else (1.0 if not b else math.inf)


def exceeds(a: float, b: float, share: float) -> bool:
    """Whether a and b differ by more than a share of the smaller one: the same whichever comes first."""
    low, high = sorted((abs(a), abs(b)))
    return high > low * (1 + share) if a * b >= 0 else True


def compare(a: FloatArray, b: FloatArray) -> Comparison:
    """Compare repeats of one measurement. Swapping a and b changes the sign of `delta` and nothing else."""
    middle_a, middle_b = _median(a), _median(b)
    enough = len(a) >= ENOUGH and len(b) >= ENOUGH
    return Comparison(
        middle_a,
        middle_b,
        middle_b - middle_a,
        noise_floor(a, b),
        rank_test(a, b) if enough else None,
        (len(a), len(b)),
    )


def _median(values: FloatArray) -> float:
    return float(np.median(values)) if len(values) else 0.0


def noise_floor(a: FloatArray, b: FloatArray) -> float:
    """How far two medians of repeats like these lie apart by chance (once in a thousand times farther).

    The spread is the median distance of a repeat from its own side's median, so that one slow repeat does not widen it.
    """
    if not len(a) or not len(b):
        return 0.0
    freedom = len(a) + len(b) - 2
    if freedom < 2:
        return SINGLE * min(_median(a), _median(b))
    away = np.abs(np.concatenate([a - _median(a), b - _median(b)]))
    # 1.4826: the median distance of a normal distribution in standard deviations; few repeats make it too small
    spread = 1.4826 * float(np.median(away)) * (len(away) / freedom)
    error_of_medians = 1.2533 * spread * math.sqrt(1 / len(a) + 1 / len(b))
    return _t_quantile(freedom) * error_of_medians


_ALMOST_NORMAL = (
    10_000  # degrees of freedom: from here on Student's distribution is the normal one to four digits
)
_TAIL = 0.001  # both sides together


@cache
def _t_quantile(freedom: int) -> float:
    """How many standard errors Student's distribution exceeds, to either side, once in a thousand times."""
    freedom = min(freedom, _ALMOST_NORMAL)
    low, high = 3.0, 700.0  # the normal distribution's is 3.29; that of one degree of freedom 637
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_within(middle, freedom) < 1 - _TAIL else (low, middle)
    return high


def _t_within(t: float, freedom: int) -> float:
    """The probability that Student's distribution lies within -t and t: a finite sum for whole degrees of freedom."""
    angle = math.atan(t / math.sqrt(freedom))
    odd = freedom % 2
    # sin * (cos + 2/3 cos^3 + 2*4/(3*5) cos^5 ...) for odd degrees of freedom, sin * (1 + 1/2 cos^2 + 1*3/(2*4) cos^4 ...) for even ones
    first, count = (math.cos(angle), (freedom - 1) // 2) if odd else (1.0, freedom // 2)
    steps = np.arange(1, count)
    ratios = (2 * steps / (2 * steps + 1) if odd else (2 * steps - 1) / (2 * steps)) * math.cos(angle) ** 2
    total = math.sin(angle) * first * float(1 + np.cumprod(ratios).sum()) if count else 0.0
    return 2 / math.pi * (angle + total) if odd else total


def rank_test(a: FloatArray, b: FloatArray) -> float:
    """Two-sided p value of Mann and Whitney's test: counted out for few repeats without ties, else by the normal approximation."""
    m, n = len(a), len(b)
    ordered = np.sort(a)
    below = np.searchsorted(ordered, b, side="left")
    equal = np.searchsorted(ordered, b, side="right") - below
    u = float(below.sum() + equal.sum() / 2)
    values, counts = np.unique(np.concatenate([a, b]), return_counts=True)
    if len(values) == 1:
        return 1.0
    if m <= _EXACT and n <= _EXACT and len(values) == m + n:
        least = int(min(u, m * n - u))
        return min(1.0, 2 * float(_rank_counts(m, n)[: least + 1].sum()) / math.comb(m + n, m))
    total = m + n
    ties = float((counts.astype(float) ** 3 - counts).sum())
    variance = m * n / 12 * (total + 1 - ties / (total * (total - 1)))
    distance = max(abs(u - m * n / 2) - 0.5, 0.0)
    return math.erfc(distance / math.sqrt(variance) / math.sqrt(2))


@cache
def _rank_counts(m: int, n: int) -> FloatArray:
    """How many of the arrangements of m and n values have each rank sum U from 0 to m*n."""
    # U of one arrangement is a partition into at most m parts of at most n each: multiply out the Gaussian binomial
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
    """At most `most` values that stand for all of them, in order."""
    ordered = np.sort(values)
    if len(ordered) <= most:
        return ordered
    return np.quantile(ordered, (np.arange(most) + 0.5) / most, method="nearest")


def common_shift(a: FloatArray, b: FloatArray) -> tuple[float, float]:
    """How much slower all of b is than a (1: not at all), and how far single rows scatter about that by chance, both as factors.

    A machine that is busy slows every row by about as much. Fewer than 8 rows cannot tell that from a change of their own.
    """
    known = (a > 0) & (b > 0)
    if known.sum() < 8:
        return 1.0, 1.0
    logs = np.log(b[known]) - np.log(a[known])
    middle = float(np.median(logs))
    scatter = 1.4826 * float(np.median(np.abs(logs - middle)))
    return math.exp(middle), math.exp(scatter)
