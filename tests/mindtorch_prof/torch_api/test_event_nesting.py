"""Nesting of event objects that people make themselves."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from trace_strategies import nested_traces

from mindtorch_prof.torch_api.enums import DeviceType
from mindtorch_prof.torch_api.event_list import EventList
from mindtorch_prof.torch_api.event_nesting import backward_stacks, drop_repeated, nest
from mindtorch_prof.torch_api.function_events import FunctionEvent
from mindtorch_prof.torch_api.results import Results
from mindtorch_prof.trace import Trace


def event(name: str, start: float, end: float, thread: int = 1, **fields: Any) -> FunctionEvent:
    return FunctionEvent(name, name, thread, start, end, **fields)


def test_an_event_lies_in_the_shortest_one_of_its_thread_that_contains_it() -> None:
    outer, inner, innermost = event("outer", 0, 100), event("inner", 10, 50), event("innermost", 20, 50)
    later, elsewhere = event("later", 50, 60), event("elsewhere", 20, 30, thread=2)
    nest([innermost, later, elsewhere, inner, outer])
    assert [e.cpu_parent for e in (outer, inner, innermost, later, elsewhere)] == [
        None,
        outer,
        inner,
        outer,
        None,
    ]
    assert outer.cpu_children == [inner, later]


def test_an_event_that_runs_past_the_end_of_another_one_is_not_inside_it() -> None:
    outer, first, overlapping = event("outer", 0, 100), event("first", 10, 50), event("overlapping", 40, 60)
    nest([outer, first, overlapping])
    assert (first.cpu_parent, overlapping.cpu_parent) == (outer, outer)


def test_kernels_and_asynchronous_events_are_not_nested() -> None:
    outer = event("outer", 0, 100)
    kernel = event("gemm", 10, 20, device_type=DeviceType.CUDA)
    waiting = event("waiting", 10, 20, is_async=True)
    nest([outer, kernel, waiting])
    assert outer.cpu_children == []


@given(nested_traces())
def test_self_times_of_nested_objects_are_those_of_the_columns(trace: Trace) -> None:
    rows = Results(trace)
    objects = [
        event(trace.names[name], start / 1000, end / 1000, thread)
        for name, start, end, thread in zip(
            trace.name.tolist(), trace.start_ns.tolist(), trace.end_ns.tolist(), trace.thread.tolist()
        )
    ]
    nest(objects)
    drop_repeated(objects)
    total = sum(round(1000 * e.self_cpu_time_total) for e in objects)
    assert total == sum(round(1000 * e.self_cpu_time_total) for e in rows.events)


def test_an_only_child_of_its_parents_name_goes_and_leaves_its_children() -> None:
    chain = [event("aten::to", 0, 100), event("aten::to", 10, 90), event("aten::to", 20, 80)]
    copy = event("aten::copy_", 30, 40)
    events = [*chain, copy]
    nest(events)
    drop_repeated(events)
    assert events == [chain[0], copy]
    assert copy.cpu_parent is chain[0]
    assert chain[0].cpu_children == [copy]


def test_a_backward_event_gets_the_stack_of_its_forward_op_on_the_thread_that_ran_it() -> None:
    forward = event("aten::mm", 0, 10, stack=["model.py(3): forward"], sequence_nr=5)
    other = event("aten::mul", 0, 10, thread=2, stack=["other.py(1): f"], sequence_nr=5)
    backward = event("MmBackward0", 20, 30, scope=1, fwd_thread=1, sequence_nr=5)
    lost = event("LostBackward0", 40, 50, scope=1, fwd_thread=1, sequence_nr=6)
    backward_stacks([forward, other, backward, lost])
    assert (backward.stack, lost.stack) == (["model.py(3): forward"], [])


def test_events_can_be_nested_without_dropping_any() -> None:
    events = EventList(
        FunctionEvent(id=i, node_id=0, name="", thread=0, start_us=start, end_us=end)
        for i, (start, end) in enumerate([(0, 2), (1, 2), (1, 3)])
    )
    events._populate_cpu_children()
    assert [[child.id for child in event.cpu_children] for event in events] == [[], [], [1]]
