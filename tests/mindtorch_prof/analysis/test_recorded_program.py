"""A recorded program: intervals less others, and the gaps of a device."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_builder import make_device, make_trace

from mindtorch_prof.analysis.intervals import Intervals, union
from mindtorch_prof.analysis.recorded_program import RecordedProgram, without
from mindtorch_prof.torch_api.results import Results
from mindtorch_prof.trace import DEVICE_KERNEL

SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=12)


def united(spans: list[tuple[int, int]]) -> Intervals:
    columns = np.array([(start, start + length) for start, length in spans], np.int64).reshape(-1, 2)
    return union(columns[:, 0], columns[:, 1])


@settings(max_examples=200, deadline=None)
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


def test_gaps_lie_between_the_work_of_all_streams() -> None:
    device = make_device(
        ("a", 100, 200, 7, DEVICE_KERNEL, 0),
        ("c", 400, 500, 7, DEVICE_KERNEL, 0),
        ("b", 150, 300, 9, DEVICE_KERNEL, 0),
    )
    program = RecordedProgram(Results(make_trace(("aten::mm", 0, 600), device=device)))
    gaps = program.gaps(0)
    assert (gaps.begin.tolist(), gaps.end.tolist(), gaps.work.tolist()) == ([300], [400], [1])
    assert len(program.late_gaps(0).begin) == 0  # what launched it is not known
