"""Lists of events made by hand: nesting, and the folded files of their stacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindtorch_v2.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg


def test_events_can_be_nested_without_dropping_any():
    events = EventList(
        FunctionEvent(id=i, node_id=0, name="", thread=0, start_us=start, end_us=end)
        for i, (start, end) in enumerate([(0, 2), (1, 2), (1, 3)])
    )
    events._populate_cpu_children()
    assert [[child.id for child in event.cpu_children] for event in events] == [[], [], [1]]


def row(stack: list[str], cpu: float = 0.0, device: float = 0.0) -> FunctionEventAvg:
    made = FunctionEventAvg()
    made.key, made.stack, made.self_cpu_time_total, made.self_device_time_total = "x", stack, cpu, device
    return made


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
