"""Nesting on columns: however events nest on however many threads, the sums are right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_builder import make_memory, make_trace
from trace_strategies import nested_traces

from mindtorch_prof.core import VARIABLE, compiled
from mindtorch_prof.trace import Trace
from mindtorch_prof.tree import MODULE, depths_below, last_reaching, levels, nearest, parents, tree

with_both_cores = pytest.mark.parametrize("core", ["", "python"], ids=["compiled", "python"])


@contextmanager
def chosen(core: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if core:
            patch.setenv(VARIABLE, core)
        yield


def covered(start: np.ndarray, end: np.ndarray) -> int:
    """How long at least one of these spans lasts."""
    return len({at for begin, until in zip(start.tolist(), end.tolist()) for at in range(begin, until)})


@settings(max_examples=60)
@given(nested_traces())
def test_self_times_are_never_negative_and_sum_up_to_the_busy_time(trace: Trace) -> None:
    result = tree(trace)
    assert (result.self_ns >= 0).all()
    for thread in set(trace.thread.tolist()):
        own = trace.thread == thread
        assert result.self_ns[own].sum() == covered(trace.start_ns[own], trace.end_ns[own])
    inner = result.parent >= 0
    parent = result.parent[inner]
    assert (trace.thread[inner] == trace.thread[parent]).all()
    assert (trace.start_ns[inner] >= trace.start_ns[parent]).all()
    assert (trace.end_ns[inner] <= trace.end_ns[parent]).all()


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.sampled_from("abc")), max_size=12))
def test_spans_that_overlap_without_nesting_have_no_negative_self_time(
    spans: list[tuple[int, int, str]],
) -> None:
    longest_first = sorted(spans, key=lambda span: (span[0], -span[1]))
    trace = make_trace(*[(name, start, start + length) for start, length, name in longest_first])
    result = tree(trace)
    assert (result.self_ns >= 0).all()
    inner = result.parent >= 0
    assert (trace.end_ns[inner] <= trace.end_ns[result.parent[inner]]).all()


def test_memory_belongs_to_the_innermost_event_and_to_nobody_outside() -> None:
    memory = make_memory((1, 100, 1), (5, 20, 5), (12, -7, 12))
    result = tree(make_trace(("outer", 0, 10), ("inner", 4, 6), memory=memory))
    assert result.self_memory.tolist() == [100, 20]
    assert result.memory.tolist() == [120, 20]
    assert result.loose.tolist() == [2]


@given(st.lists(st.integers(0, 6), max_size=40))
def test_levels_are_the_rows_of_each_depth_in_order(depths: list[int]) -> None:
    rows_by_depth = levels(np.array(depths, np.int64))
    assert len(rows_by_depth) == max(depths, default=-1) + 1
    assert [rows.tolist() for rows in rows_by_depth] == [
        [row for row, depth in enumerate(depths) if depth == level] for level in range(len(rows_by_depth))
    ]


forests = st.lists(st.integers(-1, 20), max_size=20).map(
    lambda parents: [min(parent, row - 1) for row, parent in enumerate(parents)]
)


@given(forests)
def test_depths_below_are_those_counted_one_by_one(parents: list[int]) -> None:
    depths: list[int] = []
    for parent in parents:
        depths.append(depths[parent] + 1 if parent >= 0 else 0)
    assert depths_below(np.array(parents, np.int64)).tolist() == depths


events = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 6)), max_size=20).map(
    lambda pairs: sorted(((start, start + length) for start, length in pairs), key=lambda e: (e[0], -e[1]))
)


@with_both_cores
@given(events)
def test_the_last_event_that_reaches_as_far_is_found_for_each(
    core: str, events: list[tuple[int, int]]
) -> None:
    start, end = np.array(events, np.int64).reshape(-1, 2).T
    with chosen(core):
        above, crosses = last_reaching(start, end)
    assert above.tolist() == [
        max((j for j in range(i) if events[j][1] >= until), default=-1) for i, (_, until) in enumerate(events)
    ]
    assert crosses == any(a[0] < b[0] < a[1] < b[1] for a in events for b in events)


@with_both_cores
@given(st.lists(st.integers(0, 4), max_size=20))
def test_a_parent_is_the_last_earlier_row_one_level_up_even_if_levels_are_missing(
    core: str, depths: list[int]
) -> None:
    expected = [
        max((j for j in range(i) if depths[j] == depth - 1), default=-1) for i, depth in enumerate(depths)
    ]
    known = [i for i, depth in enumerate(depths) if depth == 0 or expected[i] >= 0]
    with chosen(core):
        result = parents(np.array(depths, np.int64))
    assert result[known].tolist() == [expected[i] for i in known]


@with_both_cores
@given(forests, st.data())
def test_the_nearest_row_that_stops_is_the_first_met_on_the_way_up(
    core: str, above: list[int], data: st.DataObject
) -> None:
    stop = data.draw(st.lists(st.booleans(), min_size=len(above), max_size=len(above)))

    def climb(row: int) -> int:
        return row if row < 0 or stop[row] else climb(above[row])

    with chosen(core):
        found = nearest(np.array(above, np.int64), np.array(stop, bool))
    assert found.tolist() == [climb(row) for row in range(len(above))]


@with_both_cores
def test_the_nearest_row_that_stops_may_stand_below(core: str) -> None:
    with chosen(core):
        assert nearest(np.array([2, 0, -1]), np.array([False, False, True])).tolist() == [2, 2, 2]


def test_compiled_loops_refuse_columns_of_other_types_and_lengths() -> None:
    module = compiled(MODULE)
    if module is None:
        pytest.skip("the compiled loops were not built, or are not wanted")
    one, two = np.zeros(1, np.int64), np.zeros(2, np.int64)
    assert not module.parents(one, two)
    assert not module.nearest(two, np.zeros(1, bool), two)
    with pytest.raises(IndexError):
        module.last_reaching(one, two, two)
    for loop, count in (("parents", 2), ("last_reaching", 3)):
        with pytest.raises(TypeError):
            getattr(module, loop)(*[one.astype(np.int32)] * count)
