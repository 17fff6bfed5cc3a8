"""Rejection samplers: a Generator and arrays of parameters in, arrays of torch's CPU numbers out. Independent
of tensors.

How many uniforms an element takes depends on the draws, so elements cannot be made independently. Where all
elements share their parameters the attempts are vectorised; else a loop walks over uniforms drawn in bulk.
Neither draws more than torch does: each refill is as many uniforms as the missing elements need at least."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._random import Generator
from ._sampling import Array, normal_pairs, unit53

_STIRLING = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
    0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


class _Uniforms:
    """A walk over float64 uniforms; `missing` is how many more are needed at the very least."""

    __slots__ = ("at", "gen", "missing", "values")

    def __init__(self, gen: Generator, missing: int) -> None:
        self.gen, self.missing, self.at = gen, missing, 0
        self.values: list[float] = []

    def next(self) -> float:
        if self.at == len(self.values):
            self.values = unit53(self.gen, max(self.missing, 1)).tolist()
            self.at = 0
        self.at += 1
        self.missing -= 1
        return self.values[self.at - 1]


def _accepted(
    gen: Generator, n: int, attempt: Callable[[Array, Array], tuple[Array, Array]]
) -> NDArray[np.float64]:
    """n accepted values where an attempt takes two uniforms and every element the same parameters."""
    out, done = np.empty(n), 0
    while done < n:
        u = unit53(gen, 2 * (n - done))
        value, ok = attempt(u[0::2], u[1::2])
        value = value[ok]
        out[done : done + value.size] = value
        done += value.size
    return out


# --- Poisson: multiplication of uniforms below 10, transformed rejection (Hörmann's PTRS) from 10 on


def _poisson_attempt(rate: float) -> Callable[[Array, Array], tuple[Array, Array]]:
    log_rate = math.log(rate)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    log_inv_alpha = math.log(1.1239 + 1.1328 / (b - 3.4))
    v_r = 0.9277 - 3.6224 / (b - 2.0)

    def attempt(u: Array, v: Array) -> tuple[Array, Array]:
        from scipy.special import gammaln

        u = u - 0.5
        us = 0.5 - np.abs(u)
        with np.errstate(divide="ignore", invalid="ignore"):
            k = np.floor((2.0 * a / us + b) * u + rate + 0.43)
            ok = (us >= 0.07) & (v <= v_r)
            maybe = np.flatnonzero(~ok & (k >= 0) & ~((us < 0.013) & (v > us)))
            km, um = k[maybe], us[maybe]
            left = np.log(v[maybe]) + log_inv_alpha - np.log(a / (um * um) + b)
            ok[maybe] = left <= -rate + km * log_rate - gammaln(km + 1.0)
        return k, ok

    return attempt


def _poisson_small_equal(gen: Generator, n: int, rate: float) -> NDArray[np.float64]:
    """For every place in the stream: how many uniforms an element beginning there takes; then the walk."""
    limit = math.exp(-rate)
    counts: list[int] = []
    u = unit53(gen, n)
    while True:
        length = np.full(u.size, -1)
        alive = np.arange(u.size)
        product = np.ones(u.size)
        for k in range(u.size):
            alive_in = alive + k < u.size
            alive, product = alive[alive_in], product[alive_in]
            if not alive.size:
                break
            product = product * u[alive + k]
            ends = product <= limit
            length[alive[ends]] = k
            alive, product = alive[~ends], product[~ends]
        steps = length.tolist()
        at = 0
        while at < len(steps) and steps[at] >= 0 and len(counts) < n:
            counts.append(steps[at])
            at += steps[at] + 1
        if len(counts) == n:
            return np.array(counts, np.float64)
        rest = u[at:]  # an element whose draws are not complete yet
        u = np.concatenate((rest, unit53(gen, n - len(counts) - int(rest.size > 0) or 1)))


def _poisson_one(stream: _Uniforms, rate: float) -> float:
    if rate >= 10.0:
        b = 0.931 + 2.53 * math.sqrt(rate)
        a = -0.059 + 0.02483 * b
        v_r = 0.9277 - 3.6224 / (b - 2.0)
        while True:
            u = stream.next() - 0.5
            v = stream.next()
            us = 0.5 - abs(u)
            k = math.floor((2.0 * a / us + b) * u + rate + 0.43) if us else -1
            if us >= 0.07 and v <= v_r:
                return k
            if k < 0 or (us < 0.013 and v > us):
                stream.missing += 2
                continue
            left = math.log(v) + math.log(1.1239 + 1.1328 / (b - 3.4)) - math.log(a / (us * us) + b)
            if left <= -rate + k * math.log(rate) - math.lgamma(k + 1.0):
                return k
            stream.missing += 2
    limit = math.exp(-rate)
    k, product = 0, stream.next()
    while product > limit:
        stream.missing += 1
        product *= stream.next()
        k += 1
    return k


def poisson(gen: Generator, rate: Array) -> Array:
    """One Poisson number for each rate, in the dtype of the rates."""
    if (rate < 0).any() or np.isnan(rate).any():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    wide = rate.astype(np.float64).ravel()
    if not wide.size:
        return rate.copy()
    first = float(wide[0])
    if (wide == first).all():
        if first == 0.0:
            out = np.zeros(wide.size)
        elif first < 10.0:
            out = _poisson_small_equal(gen, wide.size, first)
        else:
            out = _accepted(gen, wide.size, _poisson_attempt(first))
    else:
        stream = _Uniforms(gen, int(np.count_nonzero(wide)) + int(np.count_nonzero(wide >= 10.0)))
        out = np.array([_poisson_one(stream, r) if r else 0.0 for r in wide.tolist()])
    return out.astype(rate.dtype).reshape(rate.shape)


# --- binomial: sums of geometric gaps below a mean of 10, transformed rejection (Hörmann's BTRS) from 10 on


def _stirling_tail(k: Array) -> Array:
    table = np.array(_STIRLING)[np.clip(k, 0, 9).astype(np.intp)]
    square = (k + 1.0) * (k + 1.0)
    return np.where(k <= 9, table, (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / (k + 1.0))


def _binomial_attempt(count: Any, prob: Any) -> Callable[[Array, Array], tuple[Array, Array]]:
    # Products of count and prob alone are rounded to their dtype, as in torch.
    one = type(count)(1.0)
    n, p = float(count), float(prob)
    stddev = float(np.sqrt(count * prob * (one - prob)))
    b = 1.15 + 2.53 * stddev
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = float(count * prob) + 0.5
    v_r = 0.92 - 4.2 / b
    ratio = float(prob / (one - prob))
    alpha = (2.83 + 5.1 / b) * stddev
    m = math.floor((n + 1.0) * p)
    fixed = (m + 0.5) * math.log((m + 1.0) / (ratio * (n - m + 1.0)))
    tail_m = float(_stirling_tail(np.float64(m)))
    tail_rest = float(_stirling_tail(np.float64(n - m)))

    def attempt(u: Array, v: Array) -> tuple[Array, Array]:
        u = u - 0.5
        us = 0.5 - np.abs(u)
        with np.errstate(divide="ignore", invalid="ignore"):
            k = np.floor((2.0 * a / us + b) * u + c)
            ok = (us >= 0.07) & (v <= v_r)
            maybe = np.flatnonzero(~ok & (k >= 0) & (k <= n))
            km, um = k[maybe], us[maybe]
            bound = (
                fixed
                + (n + 1.0) * np.log((n - m + 1.0) / (n - km + 1.0))
                + (km + 0.5) * np.log(ratio * (n - km + 1.0) / (km + 1.0))
                + tail_m
                + tail_rest
                - _stirling_tail(km)
                - _stirling_tail(n - km)
            )
            ok[maybe] = np.log(v[maybe] * alpha / (a / (um * um) + b)) <= bound
        return k, ok

    return attempt


def _binomial_gaps(stream: _Uniforms, count: float, prob: float) -> float:
    log_miss = math.log1p(-prob)
    successes, at = 0, 0.0
    while True:
        u = stream.next()
        at += math.ceil(math.log(u) / log_miss) if u else math.inf
        if at > count:
            return successes
        successes += 1
        stream.missing += 1


def _binomial_run(gen: Generator, n: int, count: Any, prob: Any) -> NDArray[np.float64]:
    """n elements that share count and prob (NumPy scalars of the tensors' dtype)."""
    if np.isnan(prob) or np.isnan(count):
        return np.full(n, np.nan)
    if count <= 0 or prob <= 0:
        return np.zeros(n)
    if prob >= 1:
        return np.full(n, float(count))
    mirrored = prob > 0.5
    if mirrored:
        prob = type(prob)(1.0) - prob
    if count * prob >= 10.0:
        out = _accepted(gen, n, _binomial_attempt(count, prob))
    else:
        stream = _Uniforms(gen, n)
        out = np.array([_binomial_gaps(stream, float(count), float(prob)) for _ in range(n)])
    return float(count) - out if mirrored else out


def binomial(gen: Generator, count: Array, prob: Array) -> Array:
    """One binomial number for each pair of count and probability (same shape and dtype)."""
    counts, probs = count.ravel(), prob.ravel()
    out = np.empty(counts.size)
    # Neighbours with equal parameters are drawn together.
    changes = (counts[1:] != counts[:-1]) | (probs[1:] != probs[:-1])
    starts = [0, *(np.flatnonzero(changes) + 1).tolist(), counts.size]
    for begin, end in pairwise(starts):
        if end > begin:
            out[begin:end] = _binomial_run(gen, end - begin, counts[begin], probs[begin])
    return out.astype(count.dtype).reshape(count.shape)


# --- gamma (Marsaglia and Tsang) and Dirichlet


class _NormalsAndUniforms:
    """A walk that takes uniforms and standard normals in any order; the normals of every place of the stream
    are worked out in bulk when the place is drawn."""

    __slots__ = ("_first", "_second", "_u", "at", "gen", "missing")

    def __init__(self, gen: Generator, missing: int) -> None:
        self.gen, self.missing, self.at = gen, missing, 0
        self._u: list[float] = []
        self._first: list[float] = []
        self._second: list[float] = []

    def _refill(self, n: int) -> None:
        drawn = unit53(self.gen, max(self.missing, n))
        u = np.concatenate((np.array(self._u[self.at :]), drawn))
        pairs = np.empty(2 * u.size)
        pairs[0::2] = u
        pairs[1:-1:2] = u[1:]
        pairs[-1] = 0.0  # the last place has no partner yet; a refill makes it again
        normals = normal_pairs(pairs)
        self._u, self._first, self._second = u.tolist(), normals[0::2].tolist(), normals[1::2].tolist()
        self.at = 0

    def uniform(self) -> float:
        if self.at >= len(self._u):
            self._refill(1)
        self.at += 1
        return self._u[self.at - 1]

    def normal(self) -> float:
        waiting = self.gen.waiting_normal
        if waiting is not None:
            self.gen.waiting_normal = None
            return waiting
        if self.at + 2 > len(self._u):
            self._refill(self.at + 2 - len(self._u))
        self.gen.waiting_normal = self._second[self.at]
        self.at += 2
        return self._first[self.at - 2]


def _gammas(gen: Generator, alpha: Array) -> NDArray[np.float64]:
    """One standard gamma number for each alpha, in float64; what depends on alpha alone has its dtype."""
    kind = alpha.dtype.type
    flat = alpha.ravel()
    boosted = flat < 1
    with np.errstate(divide="ignore"):
        inverse = (kind(1.0) / flat).tolist()
    d_of = np.where(boosted, flat + kind(1.0), flat) - kind(np.float32(1.0) / np.float32(3.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        c_of = (1.0 / np.sqrt(9.0 * d_of.astype(np.float64))).tolist()
    stream = _NormalsAndUniforms(gen, 0)
    out = np.empty(flat.size)
    zero = flat <= 0
    left = flat.size
    for i, (small, none, d, c) in enumerate(zip(boosted.tolist(), zero.tolist(), d_of.tolist(), c_of)):
        stream.missing = left  # each element left takes one uniform at least
        left -= 1
        if none:
            out[i] = 0.0
            continue
        scale = (1.0 - stream.uniform()) ** inverse[i] if small else 1.0
        while True:
            y = 0.0
            while y <= 0.0:
                x = stream.normal()
                y = 1.0 + c * x
            v = y * y * y
            u = 1.0 - stream.uniform()
            xx = x * x
            if u < 1.0 - 0.0331 * xx * xx or math.log(u) < 0.5 * xx + d * (1.0 - v + math.log(v)):
                out[i] = scale * d * v
                break
    return out


def standard_gamma(gen: Generator, alpha: Array) -> Array:
    """One standard gamma number for each alpha, never below the dtype's smallest normal number."""
    out = _gammas(gen, alpha).astype(alpha.dtype)
    return np.maximum(out, np.finfo(alpha.dtype).tiny).reshape(alpha.shape)


def dirichlet(gen: Generator, alpha: Array) -> Array:
    """Points of the simplex: along the last dimension, gamma numbers divided by their sum."""
    gammas = _gammas(gen, alpha.astype(np.float64)).reshape(alpha.shape)
    gammas = np.maximum(gammas, np.finfo(np.float64).tiny)
    total = np.cumsum(gammas, axis=-1)[..., -1:]
    return (gammas / total).astype(alpha.dtype)


# --- multinomial


def multinomial_with_replacement(gen: Generator, weights: Array, n_samples: int) -> NDArray[np.int64]:
    """For each row of weights, n_samples indices by looking uniforms up in the cumulated distribution."""
    out = np.empty((len(weights), n_samples), np.int64)
    for row, to in zip(weights, out):
        if not (row >= 0).all():
            raise RuntimeError("invalid multinomial distribution (encountering probability entry < 0)")
        if np.isinf(row).any():
            raise RuntimeError(
                "invalid multinomial distribution (encountering probability entry = infinity or NaN)"
            )
        cumulated = np.cumsum(row, dtype=np.float64 if row.dtype == np.float64 else np.float32)
        total = cumulated[-1]
        if not total > 0:
            raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
        cumulated = cumulated / total
        cumulated[-1] = 1
        to[:] = np.searchsorted(cumulated.astype(np.float64), unit53(gen, n_samples))
    return out
