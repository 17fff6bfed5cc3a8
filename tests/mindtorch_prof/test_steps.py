"""Steps: names in, numbers out; and which events each step holds."""

from __future__ import annotations

import pytest
from trace_builder import make_trace

from mindtorch_prof.settings import Settings
from mindtorch_prof.steps import step_name, step_number, step_rows, steps_of
from mindtorch_prof.trace import ANNOTATION


@pytest.mark.parametrize(
    ("name", "number"),
    [
        (step_name(12), 12),
        ("ProfilerStep#0", 0),
        ("ProfilerStep#", -1),
        ("ProfilerStep#1 again", -1),
        ("my ProfilerStep#1", -1),
        ("ProfilerStep*", -1),
        ("ProfilerStep#99999999999999999999", -1),
    ],
)
def test_only_whole_names_of_torchs_steps_are_steps(name: str, number: int) -> None:
    assert step_number(name) == number


def test_an_event_belongs_to_the_step_in_which_it_began() -> None:
    trace = make_trace(
        ("before", 0, 5),
        ("ProfilerStep#4", 10, 20, 1, ANNOTATION),
        ("inside", 11, 12),
        ("runs over", 19, 35),
        ("between", 22, 23),
        ("ProfilerStep#5", 30, 50, 1, ANNOTATION),
        ("on another thread", 31, 32, 2),
    )
    numbers, step, lengths = steps_of(trace)
    assert (numbers, lengths.tolist()) == ((4, 5), [10, 20])
    assert step.tolist() == [-1, 0, 0, 0, -1, 1, 1]


def test_events_of_a_process_belong_to_its_own_steps() -> None:
    trace = make_trace(
        ("ProfilerStep#1", 0, 100, 1, ANNOTATION),
        ("aten::mm", 10, 20, 1),
        ("ProfilerStep#2", 0, 50, 2, ANNOTATION),
        ("aten::mm", 10, 20, 2),
        ("aten::mm", 60, 70, 2),
        settings=Settings(thread_pids={1: 41, 2: 42}),
    )
    numbers, step, _ = steps_of(trace)
    assert numbers == (1, 2)
    assert step.tolist() == [0, 0, 1, 1, -1]


def test_rows_of_steps_stand_in_the_order_of_time() -> None:
    trace = make_trace(("ProfilerStep#1", 50, 60, 1), ("ProfilerStep#0", 10, 20, 2))
    assert step_rows(trace).tolist() == [1, 0]


def test_a_trace_without_steps_has_none() -> None:
    numbers, step, lengths = steps_of(make_trace(("aten::mm", 0, 5)))
    assert (numbers, step.tolist(), lengths.tolist()) == ((), [-1], [])
