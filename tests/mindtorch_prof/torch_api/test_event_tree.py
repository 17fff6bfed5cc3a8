"""Event trees: what torch's tools read below events(), against torch's own."""

from __future__ import annotations

import functools
import importlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import fact_files
import numpy as np
import pytest
import tree_programs as programs
from event_trees import ops, tree_of, walk
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_builder import make_trace
from trace_file_builder import training

import mindtorch_v2 as torch
from mindtorch_prof import load
from mindtorch_prof.settings import Settings
from mindtorch_prof.torch_api import basic_evaluation as _utils
from mindtorch_prof.torch_api.event_tree import EventTree
from mindtorch_prof.trace import Frames, Memory, Trace
from mindtorch_v2._C import _profiler as C
from mindtorch_v2.profiler import DeviceType, profile, record_function

ALL = {"record_shapes": True, "profile_memory": True, "with_stack": True}
TRACKED = {"record_shapes": True, "profile_memory": True}


@functools.cache
def recorded() -> dict[str, Any]:
    return fact_files.read("event_trees.json.gz")


def walk_by_children(events: Any) -> Iterator[Any]:
    return _utils.traverse_dfs(events, children_fn=lambda event: event.children)


# ---------------------------------------------------------------- against torch


@pytest.mark.parametrize("name", list(programs.FIXED))
def test_the_programs_own_ops_meet_the_tensors_that_they_meet_in_torch(name: str) -> None:
    prof, _ = programs.run(torch, programs.SETUP, programs.FIXED[name])
    assert _relative(programs.shown(prof)) == _relative(recorded()["trees"][name])


def _relative(rows: list[Any]) -> list[Any]:
    """Sequence numbers count from the first: how many graphs were made before is no matter of the program."""
    base = min((row[3] for row in rows if row[3] >= 0), default=0)
    return [[*row[:3], row[3] - base if row[3] >= 0 else -1, row[4]] for row in rows]


@pytest.mark.parametrize(
    "name", ["forward and backward", "sgd", "momentum", "adam", "buffers", "functions and a step"]
)
def test_modules_and_optimizers_are_seen_with_what_torch_sees_of_them(name: str) -> None:
    prof, _ = programs.run(torch, programs.SETUP, programs.FIXED[name])
    assert programs.held(prof) == recorded()["held"][name]


def test_torch_itself_still_shows_the_recorded_trees(torch_reference: ModuleType) -> None:
    memory = importlib.import_module("torch.profiler._memory_profiler")
    for name in ("set_", "adam", "ranges"):
        prof, error = programs.run(torch_reference, programs.SETUP, programs.FIXED[name])
        assert {**programs.leaves(prof, memory), "error": error} == recorded()["fixed"][name]


# ---------------------------------------------------------------- the tree


def test_events_nest_and_know_their_parents() -> None:
    with profile(**ALL) as prof, record_function("outer"):
        torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3))
    for event in walk(tree_of(prof)):
        for child in event.children:
            assert child.parent is event
            if event.duration_time_ns:  # a synthetic event has no time; what it allocates is recorded later
                assert event.start_time_ns <= child.start_time_ns <= child.end_time_ns <= event.end_time_ns
        assert event.duration_time_ns == event.end_time_ns - event.start_time_ns
    (linear,) = ops(prof, "aten::linear")
    names = [linear.name]
    while (linear := linear.parent) is not None:
        names.append(linear.name)
    assert names[1] == "outer"
    assert "test_events_nest_and_know_their_parents" in names[2]


def test_roots_and_children_stand_in_the_order_of_time() -> None:
    with profile(**TRACKED) as prof:
        for _ in range(5):
            torch.ones(3).add(torch.ones(3))
    for events in [tree_of(prof), *[event.children for event in walk(tree_of(prof))]]:
        assert [e.start_time_ns for e in events] == sorted(e.start_time_ns for e in events)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6))
def test_events_calls_and_allocations_lie_in_the_shortest_span_around_them(seed: int) -> None:
    choose = random.Random(seed)
    spans: list[tuple[int, int, int, bool]] = []  # thread, start, end, whether it is a call
    allocations: list[tuple[int, int]] = []
    for thread in (7, 3):
        opened: list[int] = []
        for at in range(choose.randint(0, 30)):
            kind = choose.random()
            if kind < 0.4:
                opened.append(at)
            elif kind < 0.8 and opened:
                spans.append((thread, opened.pop(), at, choose.random() < 0.4))
            else:
                allocations.append((thread, at))
        spans += [(thread, begun, 31 + place, False) for place, begun in enumerate(reversed(opened))]
    tree = EventTree(trace_of(spans, allocations))
    span_around = {}
    for event in walk(tree.roots()):
        around = None if event.parent is None else (event.parent.start_time_ns, event.parent.duration_time_ns)
        span_around[event.start_tid, event.start_time_ns, event.end_time_ns] = around
        starts = [child.start_time_ns for child in event.children]
        assert starts == sorted(starts)
        assert all(child.parent is event for child in event.children)
    assert len(span_around) == len(spans) + len(allocations)
    assert list(walk(tree.roots())) == list(walk_by_children(tree.roots()))
    by_level = _utils.traverse_bfs(tree.roots(), children_fn=lambda event: event.children)
    assert list(_utils.traverse_bfs(tree.roots())) == list(by_level)
    for (number, start, end), around in span_around.items():
        thread = (3, 7)[number - 1]  # the main one comes first
        others = [(e - s, s) for t, s, e, _ in spans if t == thread and s <= start and end <= e]
        others = sorted(other for other in others if other != (end - start, start))
        assert around == (others[0][::-1] if others else None)


def trace_of(spans: list[tuple[int, int, int, bool]], allocations: list[tuple[int, int]]) -> Trace:
    """A trace of events and calls (thread, start, end, whether a call) and allocations (thread, time)."""
    events, calls = (
        sorted((thread, start, -end) for thread, start, end, is_call in spans if is_call is wanted)
        for wanted in (False, True)
    )
    thread, start, end = np.array(calls, np.int64).reshape(-1, 3).T
    none = np.full(len(calls), -1, np.int64)
    at = np.array(sorted((time, thread) for thread, time in allocations), np.int64).reshape(-1, 2)
    ones = np.ones(len(at), np.int64)
    return make_trace(
        *[("op", start, -end, thread) for thread, start, end in events],
        frames=Frames(("f",), np.zeros(len(calls), np.int64), start, -end, thread, none, none),
        memory=Memory(at[:, 0], ones, ones, at[:, 1], ones),
        settings=Settings(thread=3),
    )


def test_inputs_are_tensors_lists_of_tensors_and_numbers() -> None:
    with profile(record_shapes=True) as prof:
        torch.cat([torch.ones(2, 3), torch.ones(1, 3)], 0).transpose(0, 1)
    (cat,) = ops(prof, "aten::cat")
    assert [
        [t.sizes for t in value] if isinstance(value, list) else value for value in cat.extra_fields.inputs
    ] == [
        [[2, 3], [1, 3]],
        0,
    ]
    tensor, *numbers = ops(prof, "aten::transpose")[0].extra_fields.inputs
    assert (tensor.sizes, tensor.strides, tensor.dim, tensor.dtype, tensor.device, tensor.layout) == (
        [3, 3],
        [3, 1],
        2,
        torch.float32,
        torch.device("cpu"),
        torch.strided,
    )
    assert numbers == [0, 1]
    assert (tensor.id, tensor.allocation_id) == (None, None)  # memory was not recorded


def test_the_tree_of_nothing_is_empty() -> None:
    with profile(**ALL) as prof:
        pass
    assert [event for event in walk(tree_of(prof)) if event.tag is not C._EventType.PyCall] == []


def test_kineto_results_give_events_as_methods(tmp_path: Path) -> None:
    with profile(record_shapes=True) as prof:
        torch.ones(2, 3)
    results = prof.profiler.kineto_results
    first = results.events()[0]
    assert (first.name(), first.device_type(), first.shapes()) == (
        "aten::ones",
        DeviceType.CPU,
        [[], [], [], [], []],
    )
    assert first.duration_ns() == tree_of(prof)[0].duration_time_ns
    assert first.start_ns() == tree_of(prof)[0].start_time_ns
    results.save(str(tmp_path / "trace.json"))
    assert "aten::ones" in (tmp_path / "trace.json").read_text()
    with pytest.raises(AttributeError, match="_KinetoEvent"):
        _ = first.nothing


def test_modules_and_optimizers_show_names_gradients_and_state() -> None:
    model = torch.nn.Linear(2, 3)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    with profile(with_stack=True, profile_memory=True) as prof:
        model(torch.ones(1, 2))
        optimizer.step()
    calls = [e.extra_fields for e in walk(tree_of(prof)) if e.tag is C._EventType.PyCall]
    (module,) = [c.module for c in calls if c.module]
    assert (module.cls_name, module.self_ptr, module.cls_ptr) == ("Linear", id(model), id(torch.nn.Linear))
    assert model.weight.grad is not None
    weight, gradient = module.parameters[0][1:]
    assert module.parameters[0][0] == "weight"
    assert weight.storage_data_ptr == model.weight.untyped_storage().data_ptr()
    assert gradient.storage_data_ptr == model.weight.grad.untyped_storage().data_ptr()
    (stepped,) = [c.optimizer for c in calls if c.optimizer]
    assert stepped.self_ptr == id(optimizer)
    states = optimizer.state[model.weight]
    assert [(name, t.storage_data_ptr) for name, t in stepped.parameters[0][2]] == [
        (name, value.untyped_storage().data_ptr()) for name, value in states.items()
    ]


# ---------------------------------------------------------------- saved traces


def looks(events: list[Any]) -> list[Any]:
    """Names, kinds, shapes and numbers of a tree, without ids."""

    def one(value: Any) -> Any:
        if isinstance(value, list):
            return [one(item) for item in value]
        return (value.sizes, value.strides) if hasattr(value, "sizes") else value

    rows = []
    for event in walk(events):
        fields = event.extra_fields
        about: Any = None
        if event.tag is C._EventType.TorchOp:
            about = (fields.scope, fields.sequence_number, [one(value) for value in fields.inputs])
        elif event.tag is C._EventType.Allocation:
            about = fields.alloc_size
        rows.append((event.name, event.tag, about, event.parent.name if event.parent else None))
    return rows


def own_roots(roots: list[Any]) -> list[Any]:
    """The roots of the thread that ran ops: other threads of the process have calls too."""
    (thread,) = {event.start_tid for event in walk(roots) if event.tag is C._EventType.TorchOp}
    return [root for root in roots if root.start_tid == thread]


def test_a_saved_trace_gives_the_tree_of_the_recording(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
    with profile(**ALL) as prof, record_function("training"):
        model(torch.ones(4, 3)).sum().backward()
    prof.export_chrome_trace(str(tmp_path / "t.json.gz"))
    saved = load(tmp_path / "t.json.gz").experimental_event_tree()
    live, loaded = (
        [row for row in looks(own_roots(roots)) if row[1] is not C._EventType.Allocation]
        for roots in (tree_of(prof), saved)
    )
    assert [row[0] for row in loaded] == [row[0] for row in live]
    assert loaded == live


def test_kernels_of_a_file_are_walked_where_they_lie(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    training(steps=2).dump(path)
    roots = load(path).experimental_event_tree()
    events = list(walk(roots))
    assert {event.tag for event in events} >= {C._EventType.TorchOp, C._EventType.Kineto}
    assert events == list(walk_by_children(roots))
    assert any(event.tag is C._EventType.Kineto and event.parent is not None for event in events)


def test_inputs_of_a_file_are_read_as_far_as_it_tells(tmp_path: Path) -> None:
    arguments = {
        "Input Dims": [[2, 3], [[1], [2]], [], []],
        "Input type": ["float", "TensorList", "Scalar", "ScalarList"],
        "Input Strides": [[3, 1], [[1], [1]], [], []],
        "Concrete Inputs": ["", "", "7", "[1, 2]"],
    }
    event = {
        "ph": "X",
        "cat": "cpu_op",
        "name": "aten::f",
        "pid": 1,
        "tid": 1,
        "ts": 1.0,
        "dur": 2.0,
        "args": arguments,
    }
    (tmp_path / "t.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
    (root,) = load(tmp_path / "t.json").experimental_event_tree()
    tensor, tensors, number, numbers = root.extra_fields.inputs
    assert (tensor.sizes, tensor.strides, tensor.dtype, tensor.id) == ([2, 3], [3, 1], torch.float32, None)
    assert [(t.sizes, t.strides, t.dtype) for t in tensors] == [([1], [1], None), ([2], [1], None)]
    assert (number, numbers) == (7, None)
