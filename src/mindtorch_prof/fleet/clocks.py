"""Clocks of ranks: matched collectives in; how far each rank's clock is ahead, its drift, and how well that is known, out.

A collective that synchronises ends on all ranks within microseconds. So the ends, each by its rank's own clock, tell the clocks apart.
Offsets are used for skew and waits, and for nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray, IntArray
from .collectives import Collectives

_FEWEST = 3  # collectives that a rank's offset needs
_ROUNDS = 3  # of: ends from offsets, offsets from ends
_FOR_DRIFT = 12  # collectives
_CLEAR_DRIFT = 4.0  # a drift is believed if it adds up to so many residuals over the recording


@dataclass(frozen=True)
class Clocks:
    """By place of a rank. An offset of a rank without enough synchronising collectives is 0, and its residual is nan."""

    offset_ns: FloatArray  # how far the clock is ahead of the first rank's, in the middle of the recording
    drift: FloatArray  # by how much it runs faster: 1e-6 is one part per million
    residual_ns: FloatArray  # median distance of its ends from the common ones, after correction
    ends: IntArray  # how many collectives that is based on
    middle_ns: int  # the time for which the offsets hold

    def correction(self, rank: IntArray, time_ns: IntArray) -> IntArray:
        """What to subtract from times of ranks, in whole nanoseconds."""
        return np.rint(self.offset_ns[rank] + self.drift[rank] * (time_ns - self.middle_ns)).astype(np.int64)

    @property
    def known(self) -> bool:
        """Whether the offset of any rank could be estimated."""
        return bool(np.isfinite(self.residual_ns).any())


def clocks(collectives: Collectives, n_ranks: int) -> Clocks:
    """Estimate offsets and drifts."""
    rows = (
        np.flatnonzero(collectives.synchronises[collectives.collective])
        if len(collectives)
        else np.empty(0, np.int64)
    )
    rank, end = collectives.rank[rows], collectives.end_ns[rows]
    _, which = np.unique(collectives.collective[rows], return_inverse=True)
    which = which.reshape(-1)
    count = np.bincount(rank, minlength=n_ranks)
    known = count >= _FEWEST
    offset: FloatArray = np.zeros(n_ranks)
    drift: FloatArray = np.zeros(n_ranks)
    residual: FloatArray = np.full(n_ranks, np.nan)
    middle = int((int(end.min()) + int(end.max())) // 2) if len(end) else 0
    if not known.any():
        return Clocks(offset, drift, residual, count, middle)
    time = (end - middle).astype(float)
    offset = _first_offsets(rank, which, time, n_ranks)
    for _ in range(_ROUNDS):
        common = _median_by(which, time - offset[rank])
        offset = _median_by(rank, time - common[which], n_ranks)
    drift = _drifts(rank, time, time - common[which] - offset[rank], n_ranks)
    if drift.any():
        corrected = time - offset[rank] - drift[rank] * time
        common = _median_by(which, corrected)
        offset += _median_by(rank, corrected - common[which], n_ranks)
    corrected = time - offset[rank] - drift[rank] * time
    common = _median_by(which, corrected)
    residual = _median_by(rank, np.abs(corrected - common[which]), n_ranks)
    residual[~known] = np.nan
    first = int(np.flatnonzero(known)[0])
    offset, drift = offset - offset[first], drift - drift[first]
    offset[~known] = drift[~known] = 0.0
    return Clocks(offset, drift, residual, count, middle)


def _first_offsets(rank: IntArray, which: IntArray, time: FloatArray, n_ranks: int) -> FloatArray:
    """Offsets from one group to the next: ranks that share no collective with the first one are reached through others."""
    offset, known = np.zeros(n_ranks), np.zeros(n_ranks, bool)
    while True:
        is_known = known[rank]
        reached = np.zeros(int(which.max()) + 1, bool)
        reached[which[is_known]] = True
        candidates = np.flatnonzero(reached[which] & ~is_known)
        if not len(candidates):
            rest = np.flatnonzero(~known[rank])
            if not len(rest):
                return offset
            known[rank[rest].min()] = (
                True  # the first rank of a part of the job that nothing connects with the others
            )
            continue
        common = np.full(len(reached), np.nan)
        common[reached] = _median_by(which[is_known], time[is_known] - offset[rank[is_known]], len(reached))[
            reached
        ]
        estimate = _median_by(rank[candidates], time[candidates] - common[which[candidates]], n_ranks)
        new = np.unique(rank[candidates])
        offset[new], known[new] = estimate[new], True


def _drifts(rank: IntArray, time: FloatArray, rest: FloatArray, n_ranks: int) -> FloatArray:
    """The slope of what remains over time: from the medians of the first and the last third, if it is clear."""
    drift = np.zeros(n_ranks)
    order = np.lexsort((time, rank))
    bounds = np.searchsorted(rank[order], np.arange(n_ranks + 1))
    for place in range(n_ranks):
        own = order[bounds[place] : bounds[place + 1]]
        third = len(own) // 3
        if len(own) < _FOR_DRIFT:
            continue
        early, late = own[:third], own[-third:]
        span = float(np.median(time[late]) - np.median(time[early]))
        change = float(np.median(rest[late]) - np.median(rest[early]))
        line = change / span * time[own] if span > 0 else np.zeros(len(own))
        scatter = float(np.median(np.abs(rest[own] - line - np.median(rest[own] - line))))
        if span > 0 and abs(change) > _CLEAR_DRIFT * max(scatter, 1000.0):
            drift[place] = change / span
    return drift


def _median_by(group: IntArray, values: FloatArray, n_groups: int | None = None) -> FloatArray:
    """Medians by group; 0 for a group without values."""
    count = int(group.max()) + 1 if n_groups is None else n_groups
    order = np.lexsort((values, group))
    group, values = group[order], values[order]
    first = np.searchsorted(group, np.arange(count))
    size = np.searchsorted(group, np.arange(count), side="right") - first
    medians = np.zeros(count)
    some = size > 0
    low, high = first[some] + (size[some] - 1) // 2, first[some] + size[some] // 2
    medians[some] = (values[low] + values[high]) / 2
    return medians
