"""Walks over event trees and evaluations of a device's queue, against torch's own."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import fact_files
import pytest
import tree_cases
from event_trees import ops, tree_of

import mindtorch_v2 as torch
from mindtorch_prof.torch_api import basic_evaluation as _utils
from mindtorch_v2.profiler import DeviceType, profile

ALL = {"record_shapes": True, "profile_memory": True, "with_stack": True}


@functools.cache
def recorded() -> dict[str, Any]:
    return fact_files.read("event_trees.json.gz")


def test_evaluations_of_made_up_queues_are_torchs() -> None:
    facts = recorded()
    queues = [tree_cases.queue(_utils, DeviceType, seed) for seed in range(tree_cases.COUNT)]
    assert [i for i, (ours, theirs) in enumerate(zip(queues, facts["queues"])) if ours != theirs] == []
    assert [tree_cases.overlap(_utils, seed) for seed in range(tree_cases.COUNT)] == facts["overlaps"]
    assert tree_cases.locations(_utils) == facts["locations"]


def test_trees_are_walked_deep_and_broad() -> None:
    event = tree_cases.Event
    tree = [
        event(1, "a", 0, 9, event(2, "b", 1, 3, event(3, "c", 1, 2)), event(4, "d", 4, 5)),
        event(5, "e", 10, 12),
    ]
    assert [e.id for e in _utils.traverse_dfs(tree)] == [1, 2, 3, 4, 5]
    assert [e.id for e in _utils.traverse_bfs(tree)] == [1, 5, 2, 4, 3]
    assert [e.id for e in _utils.traverse_dfs(tree, children_fn=lambda e: e.children[:1])] == [1, 2, 3, 5]


def test_positions_of_first_matches_and_maxima() -> None:
    values = [5, 2, 9, 4, 9]
    assert _utils.index_of_first_match(values, lambda v: v > 5) == 2
    assert _utils.index_of_first_match(values, lambda v: v > 5, start=3) == 4
    assert _utils.index_of_first_match(values, lambda v: v > 5, start=3, end=4) is None
    assert _utils.argmax(values) == 2
    assert _utils.argmax(values, key=lambda v: -v) == 1
    assert _utils.argmax(values, start=3) == 4
    assert _utils.argmax([]) is None


def test_self_times_of_a_recording_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    with profile(**ALL) as prof:
        torch.ones(50, 50).mm(torch.ones(50, 50)).sum()
    evaluation = _utils.BasicEvaluation(prof.profiler)
    roots = sum(event.duration_time_ns for event in tree_of(prof))
    assert sum(m.self_time_ns for m in evaluation.metrics.values()) == roots
    assert evaluation.queue_depth_list == []
    assert evaluation.get_optimizable_events(2) == []
    assert capsys.readouterr().out == "No events to optimize\n\n"
    (mm,) = ops(prof, "aten::mm")
    assert "test_self_times_of_a_recording_add_up" in _utils.source_code_location(mm)
    key = _utils.EventKey(mm)
    assert key == _utils.EventKey(mm)
    assert repr(key) == "aten::mm"
    assert (
        key.intervals_overlap([_utils.Interval(mm.start_time_ns, mm.end_time_ns)] * 2) == mm.duration_time_ns
    )


def test_graph_marks_tell_where_nodes_came_from() -> None:
    events = [
        {"ph": "X", "name": "## graph.py ##", "cat": "user_annotation", "ts": 0, "dur": 20, "tid": 1},
        {"ph": "X", "name": "## 3 ##", "cat": "user_annotation", "ts": 1, "dur": 10, "tid": 1},
        {"ph": "X", "name": "aten::add", "cat": "cpu_op", "ts": 2, "dur": 2, "tid": 1, "args": {}},
        {"ph": "X", "name": "aten::mul", "cat": "cpu_op", "ts": 12, "dur": 2, "tid": 1, "args": {}},
    ]
    _utils.GRAPHS["graph.py"] = {"nodes": {3: {"name": "add", "stack_trace": "model.py line 3"}}}
    try:
        _utils.map_recorded_events_to_aten_ops_with_stack_trace({"traceEvents": events})
    finally:
        del _utils.GRAPHS["graph.py"]
    assert events[2]["args"] == {"node name": "add", "stack_trace": "model.py line 3"}
    assert events[3]["args"] == {}


def test_evaluations_take_events_that_are_made_by_hand() -> None:
    def on_device(name, start_us, number, device):
        return SimpleNamespace(
            name=name, start_ns=lambda: start_us * 1000, duration_ns=lambda: 100_000,
            linked_correlation_id=lambda: number, device_type=lambda: device,
        )  # fmt: skip

    class Op:
        def __init__(self, name, number, start, children=()):
            self.name, self.id, self.start_time_ns, self.duration_time_ns = name, number, start, 100_000
            self.end_time_ns = start + 100_000
            self.children, self.parent, self.correlation_id = list(children), None, 0

    prof = Mock()
    prof.kineto_results.events = Mock(
        return_value=[
            on_device("cudaLaunchKernel", 100, 1, DeviceType.CPU),
            on_device("cudaLaunchKernel", 200, 2, DeviceType.CPU),
            on_device("kernel", 400, 1, DeviceType.CUDA),
            on_device("kernel", 500, 2, DeviceType.CUDA),
        ]
    )
    ops = [Op(f"op{i}", i, i * 100_000) for i in range(5)]
    prof.kineto_results.experimental_event_tree = Mock(return_value=ops)
    evaluation = _utils.BasicEvaluation(prof)
    assert [depth.queue_depth for depth in evaluation.queue_depth_list] == [1, 2, 1, 0]
    assert [evaluation.metrics[key].queue_depth for key in evaluation.event_keys] == [0, 1, 2, 2, 1]
