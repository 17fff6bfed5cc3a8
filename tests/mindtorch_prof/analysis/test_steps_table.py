"""The table of steps: how long each took, and how busy CPU and device were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindtorch_prof.analysis.steps_table import covered, steps_table, union


def test_the_table_of_steps_says_how_busy_cpu_and_device_were(three_steps: Any) -> None:
    sheet = steps_table(three_steps)
    assert sheet["step"].tolist() == [1, 2, 3]
    assert sheet["duration_us"].tolist() == pytest.approx([100, 100, 100])
    assert sheet["busy_us"].tolist() == pytest.approx([60, 60, 60])
    assert sheet["device_busy_us"].tolist() == pytest.approx([30, 30, 30])
    assert sheet["device_events"].tolist() == [2, 2, 2]


spans = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 10)), max_size=12)


@given(spans, spans)
def test_unions_and_covered_times_are_those_counted_point_by_point(
    first: list[tuple[int, int]], second: list[tuple[int, int]]
) -> None:
    start, length = np.array(first, np.int64).reshape(-1, 2).T
    begin, size = np.array(second, np.int64).reshape(-1, 2).T
    busy = {t for s, n in first for t in range(s, s + n)}
    merged = union(start, start + length)
    assert int((merged[1] - merged[0]).sum()) == len(busy)
    inside = [len(busy & set(range(b, b + n))) for b, n in second]
    assert covered(merged, begin, begin + size).tolist() == inside
