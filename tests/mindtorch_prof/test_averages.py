"""Averages: rows add up to the events and to the total."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recording_cores import use
from trace_builder import make_trace
from trace_strategies import nested_traces

import mindtorch_v2 as torch
from mindtorch_prof.averages import Spread, _dense, averages, merged, spread_columns, spread_rows
from mindtorch_prof.torch_api.results import Results
from mindtorch_prof.trace import ANNOTATION, OP, Trace
from mindtorch_prof.tree import tree
from mindtorch_v2.profiler import profile, record_function
from mindtorch_v2.profiler.record import python_core


@settings(max_examples=60)
@given(nested_traces())
def test_rows_of_averages_sum_up_to_the_events_and_to_the_total(trace: Trace) -> None:
    results = Results(trace)
    rows, events, total = results.key_averages(), results.events, results.total_average()
    assert sum(row.count for row in rows) == len(events) == total.count
    for field in ("cpu_time_total", "self_cpu_time_total"):
        exact = round(1000 * getattr(total, field))
        assert round(sum(1000 * getattr(row, field) for row in rows)) == exact
        assert round(sum(1000 * getattr(one, field) for one in events)) == exact
    assert all(one.self_cpu_time_total >= 0 for one in events)
    for one in events:
        assert all(child.cpu_parent is one for child in one.cpu_children)


def test_a_fake_clock_gives_exact_times(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(1_000_000, 100_000_000, 1000))
    monkeypatch.setattr(python_core, "clock", lambda: next(now))
    use(monkeypatch, python_core)  # the compiled core has no clock that can be replaced
    x = torch.ones(2)
    with profile() as prof:
        with record_function("outer"):
            x + x
            x + x
    rows = {row.key: row for row in prof.key_averages()}
    # every look at the clock is a microsecond later: two inside each op, one at each end of the span
    assert rows["aten::add"].cpu_time_total == 2.0
    assert rows["aten::add"].cpu_time == 1.0
    assert rows["outer"].cpu_time_total == 5.0
    assert rows["outer"].self_cpu_time_total == 3.0


def test_all_steps_are_one_row_and_an_annotation_is_no_op_of_its_name() -> None:
    trace = make_trace(
        ("ProfilerStep#1", 0, 10, 1, ANNOTATION),
        ("ProfilerStep#2", 20, 40, 1, ANNOTATION),
        ("load", 50, 51, 1, ANNOTATION),
        ("load", 60, 63, 1, OP),
    )
    rows = averages(trace, tree(trace), np.ones(4, bool))
    assert rows.names == ("ProfilerStep*", "load", "load")
    assert rows.count.tolist() == [2, 1, 1]
    assert rows.total_ns.tolist() == [30, 1, 3]


def test_the_first_event_of_a_row_is_the_first_in_time_of_all_threads() -> None:
    trace = make_trace(
        ("aten::linear", 10, 40, 1),
        ("aten::matmul", 12, 20, 1),
        ("aten::relu", 50, 60, 1),
        ("aten::matmul", 5, 9, 2),
        ("aten::relu", 45, 48, 2),
    )
    results = Results(trace)
    rows = results.key_averages()
    assert [row.key for row in rows] == ["aten::matmul", "aten::linear", "aten::relu"]
    assert [row.cpu_parent for row in rows] == [None, None, None]
    assert [[child.name for child in row.cpu_children or ()] for row in rows] == [[], ["aten::matmul"], []]


def test_rows_have_the_parent_and_the_children_of_their_first_event() -> None:
    rows = Results(
        make_trace(("aten::linear", 0, 40), ("aten::t", 5, 10), ("aten::addmm", 12, 30), ("aten::t", 50, 60))
    ).key_averages()
    parents = {row.key: row.cpu_parent.name if row.cpu_parent else None for row in rows}
    assert parents == {"aten::linear": None, "aten::t": "aten::linear", "aten::addmm": "aten::linear"}
    assert [child.name for child in rows[0].cpu_children or ()] == ["aten::t", "aten::addmm"]
    shown = rows.table(top_level_events_only=True)  # as torch: by the first event of a row
    assert "aten::linear" in shown
    assert "aten::t" not in shown


def test_total_times_contain_inner_events_and_self_times_do_not() -> None:
    trace = make_trace(("linear", 0, 100), ("mm", 10, 40), ("add", 50, 60))
    rows = averages(trace, tree(trace), np.ones(3, bool))
    assert rows.names == ("linear", "mm", "add")
    assert (rows.total_ns.tolist(), rows.self_ns.tolist()) == ([100, 30, 10], [60, 30, 10])


def test_rows_can_be_split_by_a_number_of_each_event() -> None:
    trace = make_trace(("mm", 0, 10), ("mm", 20, 50), ("mm", 60, 70))
    rows = averages(trace, tree(trace), np.ones(3, bool), by_inputs=np.array([1, 2, 1]))
    assert (rows.count.tolist(), rows.total_ns.tolist()) == ([2, 1], [20, 30])


def test_a_chain_of_only_children_of_one_name_is_one_event() -> None:
    trace = make_trace(("a", 0, 100), ("a", 10, 90), ("a", 20, 80), ("b", 30, 40), ("b", 50, 60))
    assert merged(trace, tree(trace).parent).tolist() == [False, True, True, False, False]


def test_a_spread_is_that_of_the_times_and_first_is_the_time_of_the_earliest_start() -> None:
    times, starts = np.array([10.0, 30.0, 20.0, 40.0]), np.array([7, 3, 9, 5])
    (spread,) = spread_rows(times, starts, np.zeros(4, np.int64), 1)
    assert (spread.min, spread.p50, spread.max, spread.first) == (10.0, 25.0, 40.0, 30.0)
    assert spread.p95 == pytest.approx(38.5)
    assert spread.std == pytest.approx(125**0.5)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 10**9), st.integers(0, 99)), max_size=40))
def test_spreads_of_groups_are_numpys_statistics_of_each_groups_times(
    events: list[tuple[int, int, int]],
) -> None:
    group, times, starts = (np.array(column, np.int64) for column in zip(*[(0, 0, 0), *events]))
    columns = spread_columns(times / 1000, starts, group, 4)
    for number in range(4):
        own = times[group == number] / 1000
        first = own[np.argsort(starts[group == number], kind="stable")][:1]
        expected = (
            [own.min(), *np.percentile(own, [50, 95]), own.max(), own.std(), *first]
            if len(own)
            else [np.nan] * 6
        )
        np.testing.assert_allclose([columns[name][number] for name in Spread._fields], expected)


@given(st.lists(st.one_of(st.integers(-3, 9), st.integers(-(2**60), 2**60)), max_size=30))
def test_values_are_numbered_in_their_order_with_the_first_row_of_each(values: list[int]) -> None:
    number, first = _dense(np.array(values, np.int64))
    distinct = sorted(set(values))
    assert number.tolist() == [distinct.index(value) for value in values]
    assert first.tolist() == [values.index(value) for value in distinct]
