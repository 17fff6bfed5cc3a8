"""EventList: lists of events and averages as data frames, and the statistics of their durations."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic_traces import linear_with_synthetic_ops

from mindtorch_prof import load
from mindtorch_prof.averages import Spread
from mindtorch_prof.torch_api.enums import DeviceType
from mindtorch_prof.torch_api.event_list import EventList
from mindtorch_prof.torch_api.function_events import FunctionEvent
from mindtorch_prof.torch_api.results import Results


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


def test_averages_of_chosen_events_have_the_statistics_of_these_events() -> None:
    names, ends = ["mm", "add", "mm", "mm", "mm"], [9.0, 1.0, 25.0, 37.5, 44.0]
    events = EventList(
        FunctionEvent(i, name, 1, i * 1.0, end) for i, (name, end) in enumerate(zip(names, ends))
    )
    events.reverse()
    rows = {row.key: row for row in events.key_averages(stats=True)}
    times = np.array([end - i for i, (name, end) in enumerate(zip(names, ends)) if name == "mm"])
    p50, p95 = np.percentile(times, [50, 95])
    expected = (times.min(), p50, p95, times.max(), times.std(), 9.0)
    assert rows["mm"].stats == pytest.approx(expected)
    assert rows["add"].stats == (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert "p95" in events.key_averages(stats=True).table()
    assert "p95" not in events.key_averages().table()


def test_statistics_leave_out_synthetic_calls_also_of_chosen_events() -> None:
    chosen = EventList([e for e in Results(linear_with_synthetic_ops()).events if e.name == "aten::t"])
    (row,) = chosen.key_averages()
    assert (row.count, row.synthetic_count, row.stats) == (3, 2, Spread(2.0, 2.0, 2.0, 2.0, 0.0, 2.0))


def test_averages_of_averages_and_memory_outside_events_have_no_statistics(three_steps: Any) -> None:
    again = three_steps.key_averages().key_averages(stats=True)
    assert {row.stats for row in again} == {None}
    memory = FunctionEvent(1, "[memory]", 1, 0.0, 0.0, cpu_memory_usage=8)
    assert EventList([memory]).key_averages()[0].stats is None


@pytest.mark.parametrize("name", ["h100_qwen_infer_stack_memory", "v100_resnet50_train_2021.pt.trace"])
def test_statistics_of_kernels_are_numpys_of_the_durations_in_the_file(ecosystem: Path, name: str) -> None:
    path = ecosystem / "traces" / f"{name}.json.gz"
    kinds = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}
    durations: dict[str, list[float]] = {}
    for event in sorted(
        json.loads(gzip.decompress(path.read_bytes()))["traceEvents"], key=lambda e: e.get("ts", 0)
    ):
        if event.get("cat", "").lower() in kinds and event["ph"] == "X":
            durations.setdefault(event["name"], []).append(event["dur"])
    rows = {
        row.key: row
        for row in load(path).key_averages(stats=True)
        if row.device_type != DeviceType.CPU and not row.is_user_annotation
    }
    assert rows.keys() == durations.keys()
    for key, times in durations.items():
        p50, p95 = np.percentile(times, [50, 95])
        expected = (min(times), p50, p95, max(times), np.std(times), times[0])
        assert rows[key].stats == pytest.approx(expected, abs=2e-3), key
