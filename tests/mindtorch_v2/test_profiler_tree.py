"""Nesting on columns: whatever nests in whatever way on however many threads, the sums are right."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import mindtorch_v2 as torch
from mindtorch_prof.torch_api.results import Results
from mindtorch_prof.trace import OP, Memory, Trace
from mindtorch_prof.tree import levels, tree
from mindtorch_v2.profiler import profile, record_function
from mindtorch_v2.profiler.record import recorder

NAMES = ("a", "b", "c")

# a span: (time before it, its children, time after them, its name)
spans = st.recursive(
    st.tuples(st.integers(0, 3), st.just([]), st.integers(0, 5), st.integers(0, 2)),
    lambda inner: st.tuples(
        st.integers(0, 3), st.lists(inner, max_size=4), st.integers(0, 5), st.integers(0, 2)
    ),
    max_leaves=25,
)
threads = st.lists(st.lists(spans, max_size=4), min_size=1, max_size=3)


def make_trace(rows: list[tuple], memory: Memory | None = None) -> Trace:
    """A trace of (thread, name, start, end) rows, each parent before its children."""
    order = sorted(range(len(rows)), key=lambda i: (rows[i][0], rows[i][2], i))
    columns = np.array([rows[i] for i in order], np.int64).reshape(-1, 4)
    count = len(columns)

    def full(value: int, kind: Any = np.int64) -> np.ndarray:
        return np.full(count, value, kind)

    return Trace(
        names=NAMES,
        overloads=("", "", ""),
        name=columns[:, 1].astype(np.int32),
        start_ns=columns[:, 2],
        end_ns=columns[:, 3],
        thread=columns[:, 0],
        kind=full(OP, np.int8),
        scope=full(0, np.int8),
        sequence=full(-1),
        forward_thread=full(0),
        inputs=full(-1, np.int32),
        flops=full(0),
        stack=full(-1, np.int32),
        memory=memory or Memory.none(),
    )


def lay_out(members: list[tuple], now: int, thread: int, rows: list[tuple]) -> int:
    """Rows of spans one after the other, parents first."""
    for before, children, after, name in members:
        start = now + before
        place = len(rows)
        rows.append(())
        now = lay_out(children, start, thread, rows) + after
        rows[place] = (thread, name, start, now)
    return now


def busy(rows: list[tuple]) -> int:
    """How much time any row of one thread covers."""
    covered, until = 0, -1
    for _, _, start, end in sorted(rows, key=lambda r: r[2]):
        covered += max(0, end - max(start, until))
        until = max(until, end)
    return covered


@settings(max_examples=60, deadline=None)
@given(threads)
def test_self_times_are_never_negative_and_sum_up_to_the_busy_time(program: list[list[tuple]]) -> None:
    rows: list[tuple] = []
    by_thread = defaultdict(list)
    for thread, members in enumerate(program, start=1):
        own: list[tuple] = []
        lay_out(members, 0, thread, own)
        by_thread[thread] = own
        rows += own
    trace = make_trace(rows)
    result = tree(trace)
    assert (result.self_ns >= 0).all()
    for thread, own in by_thread.items():
        assert result.self_ns[trace.thread == thread].sum() == busy(own)
    inner = result.parent >= 0
    parent = result.parent[inner]
    assert (trace.thread[inner] == trace.thread[parent]).all()
    assert (trace.start_ns[inner] >= trace.start_ns[parent]).all()
    assert (trace.end_ns[inner] <= trace.end_ns[parent]).all()


@settings(max_examples=60, deadline=None)
@given(threads)
def test_rows_of_averages_sum_up_to_the_events_and_to_the_total(program: list[list[tuple]]) -> None:
    rows: list[tuple] = []
    for thread, members in enumerate(program, start=1):
        lay_out(members, 0, thread, rows)
    results = Results(make_trace(rows))
    averages, events, total = results.key_averages(), results.events, results.total_average()
    assert sum(row.count for row in averages) == len(events) == total.count
    for field in ("cpu_time_total", "self_cpu_time_total"):
        exact = round(1000 * getattr(total, field))
        assert round(sum(1000 * getattr(row, field) for row in averages)) == exact
        assert round(sum(1000 * getattr(one, field) for one in events)) == exact
    assert all(one.self_cpu_time_total >= 0 for one in events)
    for one in events:
        assert all(child.cpu_parent is one for child in one.cpu_children)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 2)), max_size=12))
def test_spans_that_overlap_without_nesting_have_no_negative_self_time(spans: list[tuple]) -> None:
    rows = sorted(
        ((1, name, start, start + length) for start, length, name in spans), key=lambda r: (r[2], -r[3])
    )
    trace = make_trace(rows)
    result = tree(trace)
    assert (result.self_ns >= 0).all()
    inner = result.parent >= 0
    assert (trace.end_ns[inner] <= trace.end_ns[result.parent[inner]]).all()


def test_memory_belongs_to_the_innermost_event_and_to_nobody_outside() -> None:
    at = np.array([1, 5, 12], np.int64)
    memory = Memory(at, np.array([100, 20, -7]), at, np.ones(3, np.int64), np.cumsum([100, 20, -7]))
    result = tree(make_trace([(1, 0, 0, 10), (1, 1, 4, 6)], memory))
    assert result.self_memory.tolist() == [100, 20]
    assert result.memory.tolist() == [120, 20]
    assert result.loose.tolist() == [2]


def test_a_fake_clock_gives_exact_times(monkeypatch: Any) -> None:
    now = iter(range(1_000_000, 100_000_000, 1000))
    monkeypatch.setattr(recorder, "clock", lambda: next(now))
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


@given(st.lists(st.integers(0, 6), max_size=40))
def test_levels_are_the_rows_of_each_depth_in_order(depths: list[int]) -> None:
    found = levels(np.array(depths, np.int64))
    assert len(found) == max(depths, default=-1) + 1
    assert [rows.tolist() for rows in found] == [
        [row for row, depth in enumerate(depths) if depth == level] for level in range(len(found))
    ]
