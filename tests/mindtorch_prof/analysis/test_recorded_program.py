"""A recorded program: intervals less others."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mindtorch_prof.analysis.intervals import Intervals, union
from mindtorch_prof.analysis.recorded_program import without

SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=12)


def united(spans: list[tuple[int, int]]) -> Intervals:
    columns = np.array([(start, start + length) for start, length in spans], np.int64).reshape(-1, 2)
    return union(columns[:, 0], columns[:, 1])


@settings(max_examples=200)
@given(SPANS, SPANS)
def test_what_is_left_of_intervals_is_in_them_and_in_no_removed_one(
    spans: list[tuple[int, int]], removed: list[tuple[int, int]]
) -> None:
    def ticks(intervals: list[tuple[int, int]]) -> set[int]:
        return {t for start, length in intervals for t in range(start, start + length)}

    begin, end = without(united(spans), united(removed))
    assert len(begin) == len(end)
    assert (end > begin).all()
    assert {t for b, e in zip(begin, end) for t in range(b, e)} == ticks(spans) - ticks(removed)
