"""Repeated measurements: per step where a trace has steps, else per call."""

from __future__ import annotations

import json
from typing import Any

from trace_builder import make_trace

from mindtorch_prof import load
from mindtorch_prof.analysis.repeats import measure, modules_of
from mindtorch_prof.trace import ANNOTATION

CALLS = [("mm", 1_000, 3_000), ("mm", 5_000, 6_000), ("mm", 21_000, 25_000), ("add", 40_000, 41_000)]
STEPS = [("ProfilerStep#7", 0, 10_000, 1, ANNOTATION), ("ProfilerStep#8", 20_000, 30_000, 1, ANNOTATION)]


def test_with_steps_a_repeat_is_the_sum_over_a_step() -> None:
    measured = measure(make_trace(*STEPS, *CALLS))
    assert (measured.repeats, measured.steps, measured.runs) == ("steps", (7, 8), 2)
    assert measured.samples("self_cpu")[measured.place["mm",]].tolist() == [3.0, 4.0]
    assert measured.totals["count"][measured.place["mm",]] == 3


def test_with_steps_what_lies_outside_is_left_out_and_its_time_is_told() -> None:
    measured = measure(make_trace(*STEPS, *CALLS))
    assert ("add",) not in measured.place
    assert measured.outside_ns == 1_000


def test_without_steps_a_repeat_is_a_call() -> None:
    measured = measure(make_trace(*CALLS))
    assert (measured.repeats, measured.runs) == ("calls", 1)
    assert measured.samples("cpu")[measured.place["mm",]].tolist() == [2.0, 1.0, 4.0]
    assert measured.samples("cpu")[measured.place["add",]].tolist() == [1.0]


def test_groups_of_shapes_and_modules_hold_the_same_time_as_ops(three_steps: Any) -> None:
    whole = measure(three_steps).totals["self_cpu"].sum()
    assert whole > 0
    for by in (("op", "shape"), ("op", "module"), ("stack", "op")):
        assert measure(three_steps, by).totals["self_cpu"].sum() == whole


def test_what_a_trace_can_tell_is_listed(three_steps: Any) -> None:
    assert measure(three_steps).has == {"shapes", "device", "stacks", "modules"}
    assert measure(make_trace(*CALLS)).has == frozenset()


def test_a_module_whose_caller_is_on_another_thread_has_the_path_of_both() -> None:
    def call(number: int, parent: int | None, tid: int, start: int) -> dict[str, Any]:
        args = {"Python id": number, "Python parent id": parent, "Python module id": 0}
        place = {"pid": 1, "tid": tid, "ts": start, "dur": 50, "args": args}
        return {"ph": "X", "cat": "python_function", "name": f"nn.Module: M{number}_0", **place}

    op = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 2, "ts": 90, "dur": 5}
    late = {**op, "ts": 400}
    calls = [call(0, None, 1, 0), call(1, None, 1, 100), call(2, 1, 2, 110), call(3, 0, 2, 80)]
    trace = load(json.dumps({"schemaVersion": 1, "traceEvents": [*calls, op, late]}).encode()).trace
    number, paths = modules_of(trace)
    assert [paths[i] for i in number.tolist()] == ["M0_0.M3_0", ""]
