"""The table of steps: how long each took, and how busy CPU and device were."""

from __future__ import annotations

from typing import Any

import pytest

from mindtorch_prof.analysis.steps_table import steps_table


def test_the_table_of_steps_says_how_busy_cpu_and_device_were(three_steps: Any) -> None:
    sheet = steps_table(three_steps)
    assert sheet["step"].tolist() == [1, 2, 3]
    assert sheet["duration_us"].tolist() == pytest.approx([100, 100, 100])
    assert sheet["busy_us"].tolist() == pytest.approx([60, 60, 60])
    assert sheet["device_busy_us"].tolist() == pytest.approx([30, 30, 30])
    assert sheet["device_events"].tolist() == [2, 2, 2]
