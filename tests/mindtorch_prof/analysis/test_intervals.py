"""Unions of intervals: they cover the same time without overlap."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mindtorch_prof.analysis.intervals import common, covered, union, union_lengths, without

lengths = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 10)), max_size=12)


@given(lengths, lengths)
def test_unions_and_covered_times_are_those_counted_point_by_point(
    work: list[tuple[int, int]], windows: list[tuple[int, int]]
) -> None:
    start, length = np.array(work, np.int64).reshape(-1, 2).T
    busy = {time for begin, size in work for time in range(begin, begin + size)}
    starts, ends = union(start, start + length)
    assert (starts[1:] > ends[:-1]).all()
    assert {time for begin, end in zip(starts, ends) for time in range(begin, end)} == busy
    begin, size = np.array(windows, np.int64).reshape(-1, 2).T
    inside = [len(busy & set(range(b, b + n))) for b, n in windows]
    assert covered((starts, ends), begin, begin + size).tolist() == inside


@given(lengths, lengths)
def test_differences_and_common_times_are_those_counted_point_by_point(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    unions, points = [], []
    for work in (one, other):
        start, length = np.array(work, np.int64).reshape(-1, 2).T
        unions.append(union(start, start + length))
        points.append({time for begin, size in work for time in range(begin, begin + size)})
    for combined, expected in (
        (without(*unions), points[0] - points[1]),
        (common(*unions), points[0] & points[1]),
    ):
        assert {t for begin, end in zip(*combined) for t in range(begin, end)} == expected
        assert (combined[0] < combined[1]).all()
        assert (combined[0][1:] >= combined[1][:-1]).all()


def test_lengths_of_unions_by_group_count_overlaps_once() -> None:
    group = np.array([2, 0, 2, 0])
    start, end = np.array([5, 0, 0, 100]), np.array([9, 10, 6, 101])
    assert union_lengths(group, start, end, 4).tolist() == [11, 0, 9, 0]
