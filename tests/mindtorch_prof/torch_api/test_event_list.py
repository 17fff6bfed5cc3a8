"""EventList: lists of events and averages as data frames."""

from __future__ import annotations

from typing import Any

import pytest


def test_events_and_averages_become_data_frames(three_steps: Any) -> None:
    pytest.importorskip("pandas", reason="runs with the extra `pandas`")
    from mindtorch_prof.analysis.groups import groups

    frame = three_steps.events().to_pandas()
    assert len(frame) == len(three_steps.events())
    assert frame["self_cpu_time_total"].dtype.kind == "f"
    assert frame["device_time_total"].dtype.kind == "f"
    averages = three_steps.key_averages().to_pandas()
    assert averages.set_index("key").loc["aten::addmm", "count"] == 3
    assert averages["cpu_time_total"].sum() == pytest.approx(
        sum(row.cpu_time_total for row in three_steps.key_averages())
    )
    assert (
        three_steps.key_averages(group_by_input_shape=True)
        .to_pandas()["input_shapes"]
        .str.startswith("[")
        .any()
    )
    assert len(groups(three_steps, "name,step", stats=True).to_pandas()) > 0
    assert list(type(three_steps.events())([]).to_pandas().columns)
