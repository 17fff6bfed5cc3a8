"""Synthetic events: they add rows and nothing else, and can be left out again."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from hypothesis import given
from synthetic_traces import linear_with_synthetic_ops, synthetic_traces
from trace_builder import make_frames, make_trace

from mindtorch_prof.python_rows import with_calls
from mindtorch_prof.synthetic_rows import as_recorded
from mindtorch_prof.torch_api.results import Results
from mindtorch_prof.trace import Trace
from mindtorch_prof.tree import tree

COLUMNS = (
    "start_ns",
    "end_ns",
    "thread",
    "kind",
    "scope",
    "sequence",
    "forward_thread",
    "inputs",
    "flops",
    "stack",
)


def names(trace: Trace) -> list[str]:
    return [trace.names[number] for number in trace.name.tolist()]


@given(synthetic_traces())
def test_leaving_out_what_was_inserted_gives_the_trace_back(traces: tuple[Trace, Trace]) -> None:
    recorded, shown = traces
    again = as_recorded(shown)
    assert names(again) == names(recorded)
    for column in COLUMNS:
        assert getattr(again, column).tolist() == getattr(recorded, column).tolist()
    assert again.synthetic is None
    assert again.memory is shown.memory
    assert {each.name for each in fields(Trace)} >= {*COLUMNS}


@given(synthetic_traces())
def test_synthetic_events_change_no_time_and_no_sum_of_memory(traces: tuple[Trace, Trace]) -> None:
    recorded, shown = traces
    kept = np.ones(len(shown), bool) if shown.synthetic is None else shown.synthetic == 0
    before, after = tree(recorded), tree(shown)
    new_row = np.cumsum(kept) - 1
    parent = after.parent[kept]
    assert np.where(parent < 0, -1, new_row[parent]).tolist() == before.parent.tolist()
    assert after.self_ns[kept].tolist() == before.self_ns.tolist()
    assert not after.self_ns[~kept].any()
    assert after.depth[kept].tolist() == before.depth.tolist()
    assert after.memory[kept].tolist() == before.memory.tolist()
    assert after.self_memory.sum() == before.self_memory.sum()
    assert after.loose.tolist() == before.loose.tolist()


@given(synthetic_traces())
def test_totals_are_the_same_with_and_without_synthetic_events(traces: tuple[Trace, Trace]) -> None:
    recorded, shown = (Results(trace) for trace in traces)
    for field in ("self_cpu_time_total", "self_cpu_memory_usage", "flops"):
        assert getattr(shown.total_average(), field) == getattr(recorded.total_average(), field)


def test_a_synthetic_event_stands_after_its_recorded_one_among_python_calls() -> None:
    """Also where a call and a recorded op inside begin at the same nanosecond."""
    recorded = make_trace(("aten::linear", 1_000, 11_000), ("aten::mm", 1_000, 9_000))
    shown = replace(
        make_trace(("aten::linear", 1_000, 11_000), ("aten::t", 1_000, 1_000), ("aten::mm", 1_000, 9_000)),
        synthetic=np.array([0, 1, 0], np.int8),
        frames=make_frames(("a.py(1): f", 1_000, 12_000, -1), ("a.py(2): g", 1_000, 10_000, 0)),
    )
    merged = with_calls(shown)
    assert names(merged) == ["a.py(1): f", "aten::linear", "aten::t", "a.py(2): g", "aten::mm"]
    assert tree(merged).parent.tolist() == [-1, 0, 1, 1, 3]
    assert names(as_recorded(shown)) == names(recorded)


def test_memory_is_shown_as_that_of_the_synthetic_op_that_allocates() -> None:
    trace = linear_with_synthetic_ops()
    assert names(trace) == [
        "forward", "aten::linear", "aten::t", "aten::transpose", "aten::addmm", "aten::t",
        "aten::linear", "aten::t", "aten::transpose", "aten::addmm",
    ]  # fmt: skip
    result = tree(trace)
    assert result.self_memory.tolist() == [0, 0, 0, 0, 64, 0, 0, 0, 0, -32]
    assert result.memory.tolist()[:2] == [64, 64]
