"""The order of work on streams."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mindtorch_prof.analysis.stream_order import StreamOrder, sync_arguments
from mindtorch_prof.trace import DEVICE_SYNC, Device

# (stream, start, end, launched, correlation)
ROWS = [(7, 10, 20, 1, 101), (7, 20, 30, 2, 102), (20, 25, 60, 3, 103), (7, 35, 40, 30, 105)]


def order_of(rows: list[tuple[int, int, int, int, int]]) -> StreamOrder:
    stream, start, end, launched, correlation = (np.array(column, np.int64) for column in zip(*rows))
    return StreamOrder(0 * stream, stream, start, end, launched, correlation)


def one(*values: int) -> list[np.ndarray]:
    return [np.array([value], np.int64) for value in values]


def test_work_follows_the_work_of_its_stream_that_ended_before() -> None:
    assert order_of(ROWS).before().tolist() == [-1, 0, -1, 1]


def test_the_last_work_before_a_call_is_found_by_time_and_by_correlation() -> None:
    order = order_of(ROWS)
    device, stream, time = one(0, 7, 30)
    assert order.last_with(device, stream, launched=time).tolist() == [1]
    assert order.last_with(device, stream, correlation=one(106)[0]).tolist() == [3]
    assert order.last_with(device, one(9)[0], launched=time).tolist() == [-1]
    assert order.next_after(device, stream, one(102)[0]).tolist() == [3]


def test_the_next_work_that_a_thread_launches() -> None:
    threads = np.array([1, 2, 1, 2])
    found = order_of(ROWS).next_on_thread(threads, np.array([1, 2, 3]), np.array([2, 2, 0]))
    assert found.tolist() == [2, 3, -1]


def test_work_without_a_launch_is_followed_by_the_next_that_has_one() -> None:
    chosen = np.array([False, False, True, True])
    assert order_of(ROWS).next_of(chosen).tolist() == [3, 3, 2, 3]
    assert order_of(ROWS).next_of(np.array([True, False, False, False])).tolist() == [0, -1, -1, -1]


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9), st.integers(0, 4)), min_size=1, max_size=12))
def test_what_comes_before_is_what_a_search_over_all_finds(rows: list[tuple[int, int, int]]) -> None:
    work = sorted((start, start + length, stream) for stream, start, length in rows)
    order = order_of([(stream, start, end, start, i) for i, (start, end, stream) in enumerate(work)])
    for i, place in enumerate(order.before().tolist()):
        start, end, stream = work[i]
        ended = [(e, j) for j, (_, e, s) in enumerate(work[:i]) if s == stream and e <= start]
        assert place < i
        assert place < 0 or (work[place][1], place) in ended
        if end > start:  # of work without length at one time, any may come first
            assert (work[place][1] if place >= 0 else None) == (max(ended)[0] if ended else None)


def test_the_rows_of_synchronisation_name_the_stream_and_the_record_they_wait_for() -> None:
    extra = [{"wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": "55"}, {}]
    column = np.array([0, 1], np.int64)
    device = Device(
        ("Stream Wait Event", "Context Sync"),
        column,
        column,
        column,
        0 * column,
        column + 20,
        np.full(2, DEVICE_SYNC),
        column + 60,
        column - 1,
        column - 1,
        column,
        extra,
    )
    sync = sync_arguments(device, column)
    assert sync.is_stream_wait.tolist() == [True, False]
    assert sync.is_context.tolist() == [False, True]
    assert sync.wait_on_stream.tolist() == [7, -1]
    assert sync.record.tolist() == [55, -1]
