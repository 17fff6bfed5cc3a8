"""Intervals of time: starts and ends in, as columns; their union, and how much of other intervals it covers, out."""

from __future__ import annotations

import numpy as np

from ..arrays import BoolArray, IntArray, distinct_values

Intervals = tuple[IntArray, IntArray]  # starts and ends


def union(start: IntArray, end: IntArray) -> Intervals:
    """Intervals that cover the same time, in the order of time, with gaps between them."""
    if not len(start):
        return start[:0], end[:0]
    if (start[1:] < start[:-1]).any():  # most are in the order of time already
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    latest_end = np.maximum.accumulate(end)
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


def common(intervals: Intervals, others: Intervals) -> Intervals:
    """The times that are in both; both are unions."""
    return without(intervals, without(intervals, others))


def without(intervals: Intervals, removed: Intervals) -> Intervals:
    """The times of intervals that are in none of the removed ones; both are unions."""
    intervals, removed = ((start[end > start], end[end > start]) for start, end in (intervals, removed))
    if not len(removed[0]):
        return intervals
    (start, end), (removed_start, removed_end) = intervals, removed
    # what is left begins where an interval begins or a removed one ends, and ends at the next end or removed start
    begins = np.concatenate([start, removed_end])
    stops = np.concatenate([end, removed_start])
    begins = distinct_values(begins[_inside(intervals, begins) & ~_inside(removed, begins)])
    stops = distinct_values(stops[_up_to(intervals, stops) & ~_up_to(removed, stops)])
    return begins, stops


def _inside(intervals: Intervals, times: IntArray) -> BoolArray:
    """Whether each time is in an interval, whose start counts and whose end does not."""
    place = np.searchsorted(intervals[0], times, side="right") - 1
    return (place >= 0) & (times < np.append(intervals[1], 0)[place])


def _up_to(intervals: Intervals, times: IntArray) -> BoolArray:
    """Whether each time is in an interval, whose end counts and whose start does not."""
    place = np.searchsorted(intervals[0], times, side="left") - 1
    return (place >= 0) & (times <= np.append(intervals[1], 0)[place])
