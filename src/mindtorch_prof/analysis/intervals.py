"""Intervals of time: starts and ends in, as columns; their union, and how much of other intervals it covers, out."""

from __future__ import annotations

import numpy as np

from ..arrays import IntArray

Intervals = tuple[IntArray, IntArray]  # starts and ends


def union(start: IntArray, end: IntArray) -> Intervals:
    """Intervals that cover the same time, in the order of time, with gaps between them."""
    if not len(start):
        return start[:0], end[:0]
    order = np.argsort(start, kind="stable")
    start, latest_end = start[order], np.maximum.accumulate(end[order])
    first = np.flatnonzero(np.append(True, start[1:] > latest_end[:-1]))
    return start[first], latest_end[np.append(first[1:] - 1, len(start) - 1)]


def covered(intervals: Intervals, begin: IntArray, end: IntArray) -> IntArray:
    """How much of each time from `begin` to `end` lies in intervals, which are a union."""
    starts, ends = intervals
    if not len(starts):
        return np.zeros(len(begin), np.int64)
    length_before = np.concatenate(([0], np.cumsum(ends - starts)))

    def covered_until(time: IntArray) -> IntArray:
        place = np.searchsorted(starts, time, side="right")
        beyond = np.where(place > 0, np.maximum(ends[np.maximum(place - 1, 0)] - time, 0), 0)
        return length_before[place] - beyond

    return covered_until(np.asarray(end)) - covered_until(np.asarray(begin))


def union_lengths(group: IntArray, start: IntArray, end: IntArray, n_groups: int) -> IntArray:
    """By group, the length of the union of its intervals; all groups in one pass. `group`: of each interval, from 0."""
    lengths = np.zeros(n_groups, np.int64)
    if not len(start):
        return lengths
    order = np.lexsort((start, group))
    group, start, end = group[order], start[order], end[order]
    first = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
    # groups are laid out one after the other, so that no interval reaches into the next group
    begin, until = start[first], np.maximum.reduceat(end, first)
    offset = np.concatenate(([0], np.cumsum(until - begin)[:-1])) - begin
    shift = np.repeat(offset, np.diff(np.append(first, len(start))))
    start, latest_end = start + shift, np.maximum.accumulate(end + shift)
    covered_before = np.append(start[0], latest_end[:-1])
    added = np.maximum(latest_end - np.maximum(start, covered_before), 0)
    lengths[group[first]] = np.add.reduceat(added, first)
    return lengths
