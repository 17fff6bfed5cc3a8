"""Calls of the report: events and Python frames as one nesting."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from trace_builder import make_frames, make_trace

from mindtorch_prof.export.html.calls import (
    CATEGORIES,
    Calls,
    calls,
    event_categories,
    forward_of,
    kept_parents,
    modules_at,
)
from mindtorch_prof.torch_api.results import Results
from mindtorch_prof.trace import ANNOTATION, NODE, OP, RUNTIME, Trace
from mindtorch_prof.tree import tree


def nested_trace() -> Trace:
    """A step around a module's call, which calls a function that runs an op."""
    frames = make_frames(
        ("main.py(1): <module>", 0, 1000, -1), ("nn.Module: Linear_0", 20, 80, 0), ("linear", 30, 70, 1)
    )
    return make_trace(
        ("ProfilerStep#1", 10, 90, 1, ANNOTATION),
        ("aten::linear", 40, 60),
        ("aten::mm", 45, 55),
        frames=frames,
    )


def path(calls: Calls, name: str) -> list[str]:
    """The names from a call to the outermost one around it."""
    at = [calls.names[number] for number in calls.name].index(name)
    names = []
    while at >= 0:
        names.append(calls.names[calls.name[at]])
        at = calls.parent[at]
    return names


def test_a_call_lies_in_whichever_of_event_and_frame_began_last() -> None:
    with_all = calls(Results(nested_trace()), python=True)
    assert path(with_all, "aten::mm") == [
        "aten::mm", "aten::linear", "linear", "Linear_0", "ProfilerStep*", "main.py(1): <module>"
    ]  # fmt: skip


def test_a_trace_of_python_calls_alone_has_calls() -> None:
    frames = make_frames(("main.py(1): <module>", 0, 1000, -1), ("main.py(5): work", 20, 80, 0))
    alone = calls(Results(make_trace(frames=frames)), python=True)
    assert [alone.names[number] for number in alone.name.tolist()] == [
        "main.py(1): <module>",
        "main.py(5): work",
    ]
    assert alone.parent.tolist() == [-1, 0]


def test_without_python_functions_only_modules_stand_among_events() -> None:
    with_modules = calls(Results(nested_trace()), python=False)
    assert path(with_modules, "aten::mm") == ["aten::mm", "aten::linear", "Linear_0", "ProfilerStep*"]
    assert with_modules.events == 3


def test_modules_of_one_class_have_one_name_where_that_is_asked_for() -> None:
    frames = make_frames(("nn.Module: Linear_0", 0, 10, -1), ("nn.Module: Linear_1", 20, 30, -1))
    merged = calls(Results(make_trace(("aten::mm", 5, 6), frames=frames)), python=False, by_class=True)
    assert [merged.names[number] for number in merged.name] == ["aten::mm", "Linear", "Linear"]


def test_the_innermost_module_at_a_time_is_found_through_plain_functions() -> None:
    trace = nested_trace()
    times = np.array([5, 25, 50, 85])
    assert modules_at(trace, times, np.ones(4, np.int64)).tolist() == [-1, 1, 1, -1]


def test_an_event_has_the_category_of_its_kind_or_of_its_name() -> None:
    trace = make_trace(
        ("aten::mm", 0, 1, 1, OP),
        ("MmBackward0", 1, 2, 1, NODE),
        ("Optimizer.step#SGD.step", 2, 3, 1, ANNOTATION),
        ("enumerate(DataLoader)#_Iter.__next__", 3, 4, 1, ANNOTATION),
        ("my loop", 4, 5, 1, ANNOTATION),
        ("cudaLaunchKernel", 5, 6, 1, RUNTIME),
        ("ProfilerStep#1", 6, 7, 1, OP),  # as in files of 2021
    )
    assert [CATEGORIES[number] for number in event_categories(trace)] == [
        "Operators", "Autograd", "Optimizer", "Data loading", "Annotations", "Runtime", "Annotations"
    ]  # fmt: skip


def test_a_node_leads_to_the_outermost_op_of_its_number() -> None:
    trace = make_trace(
        ("aten::linear", 0, 100, 1, OP, 3),
        ("aten::addmm", 10, 90, 1, OP, 3),
        ("AddmmBackward0", 200, 210, 1, NODE, 3),
    )
    nodes, ops = forward_of(trace, tree(trace).parent)
    assert (nodes.tolist(), ops.tolist()) == ([2], [0])


forests = st.lists(st.tuples(st.integers(-1, 20), st.booleans()), max_size=20).map(
    lambda rows: [(min(parent, row - 1), keep) for row, (parent, keep) in enumerate(rows)]
)


@given(forests)
def test_kept_parents_are_those_found_one_by_one(forest: list[tuple[int, bool]]) -> None:
    parent = np.array([above for above, _ in forest], np.int64)
    keep = np.array([kept for _, kept in forest], bool)
    above = [[] for _ in forest]
    for row, (up, _) in enumerate(forest):
        above[row] = [up, *above[up]] if up >= 0 else []
    assert kept_parents(parent, keep).tolist() == [
        next((up for up in rows if keep[up]), -1) for rows in above
    ]
