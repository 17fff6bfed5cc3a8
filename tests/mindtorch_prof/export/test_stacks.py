"""Folded stacks of events: the same lines from columns and from event objects."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from trace_builder import make_trace

from mindtorch_prof.export.stacks import METRICS, export_stacks
from mindtorch_prof.settings import Settings
from mindtorch_prof.torch_api.event_list import EventList
from mindtorch_prof.torch_api.function_events import FunctionEventAvg
from mindtorch_prof.torch_api.results import Results

TRACE = make_trace(
    ("aten::linear", 0, 9_000),
    ("aten::mm", 1_000, 4_500),
    ("aten::t", 4_600, 4_900),
    ("aten::add", 20_000, 22_000),
    stack=np.array([0, 1, 1, -1], np.int32),
    stacks=(("main.py(9): <module>",), ("a;b.py(3): f", "main.py(9): <module>")),
    settings=Settings(with_stack=True),
)


def test_a_line_has_the_outermost_frame_first_and_whole_microseconds_of_self_time(tmp_path: Path) -> None:
    Results(TRACE).export_stacks(str(tmp_path / "s.txt"), "self_cpu_time_total")
    assert (tmp_path / "s.txt").read_text().splitlines() == [
        "main.py(9):_<module> 5",
        "main.py(9):_<module>;a_b.py(3):_f 3",
    ]


@pytest.mark.parametrize("metric", METRICS)
def test_columns_and_event_objects_give_the_same_file(metric: str, tmp_path: Path) -> None:
    results = Results(TRACE)
    results.export_stacks(str(tmp_path / "columns.txt"), metric)
    export_stacks(list(results.events), tmp_path / "events.txt", metric)
    assert (tmp_path / "columns.txt").read_text() == (tmp_path / "events.txt").read_text()


def test_what_is_no_metric_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"metric should be one of: .*self_xpu_time_total"):
        export_stacks([], tmp_path / "s.txt", "cpu_time")
    assert not (tmp_path / "s.txt").exists()


def row(stack: list[str], cpu: float = 0.0, device: float = 0.0) -> FunctionEventAvg:
    average = FunctionEventAvg()
    average.key, average.stack = "x", stack
    average.self_cpu_time_total, average.self_device_time_total = cpu, device
    return average


def test_stacks_are_written_outermost_first_with_whole_microseconds(tmp_path: Path) -> None:
    rows = EventList(
        [
            row(["b.py(2): g x", "a.py(1): <module>;\t"], cpu=8.9),
            row([], cpu=5),
            row(["c.py(1): h"], cpu=0.9),
            row(["d\ne"], 1),
        ]
    )
    rows.export_stacks(str(tmp_path / "s.txt"), "self_cpu_time_total")
    assert (tmp_path / "s.txt").read_text() == "a.py(1):_<module>__;b.py(2):_g_x 8\nd_e 1\n"


@pytest.mark.parametrize(
    "metric", ["self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]
)
def test_device_metrics_read_the_device_column(tmp_path: Path, metric: str) -> None:
    EventList([row(["f"], cpu=1, device=7)]).export_stacks(str(tmp_path / "s.txt"), metric)
    assert (tmp_path / "s.txt").read_text() == "f 7\n"


def test_an_unknown_metric_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ValueError) as raised:
        EventList([]).export_stacks(str(tmp_path / "s.txt"), "count")
    assert str(raised.value) == (
        "metric should be one of: ['self_cpu_time_total', 'self_cuda_time_total', 'self_xpu_time_total', "
        "'self_privateuse1_time_total']"
    )
    assert list(tmp_path.iterdir()) == []
