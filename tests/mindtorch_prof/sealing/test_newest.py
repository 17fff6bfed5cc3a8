"""Tests of mindtorch_prof.sealing.newest: the newest part of a recording."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raw_recordings import MAIN, NamedFunctions, raw_recording

from mindtorch_prof.sealing.logs import Logs
from mindtorch_prof.sealing.newest import n_events, newest, since
from mindtorch_prof.sealing.seal import seal
from mindtorch_prof.settings import Settings

COLUMNS = ("key", "start", "end", "sequence", "calls")


def logs_of(rows: list[tuple[int, ...]], calls: list[int] | None = None) -> Logs:
    return raw_recording({MAIN: rows}, columns=COLUMNS, logs={("calls", MAIN): calls or []}).logs


@given(ends=st.lists(st.integers(1, 50), max_size=30), most=st.integers(1, 40))
def test_at_most_so_many_events_stay_and_none_that_is_older_than_one_that_went(
    ends: list[int], most: int
) -> None:
    logs = logs_of([(0, end - 1, end, -1, 0) for end in sorted(ends)])
    kept, dropped = newest(logs, 5, most)
    left = kept.joined("rows", MAIN, 5)[:, 2].tolist() if ends else []
    assert len(left) <= most
    assert len(left) + dropped == len(ends)
    assert left == sorted(ends)[len(ends) - len(left) :]
    if len(set(ends)) == len(ends):
        assert len(left) == min(most, len(ends))


def test_calls_that_have_not_returned_stay_with_the_stacks_of_later_events() -> None:
    calls = [3, 1, 4, 2, 0, 3, 4, 10, 0, 20]  # outer; inner from 2 to 3; inner from 10 to 20
    rows = [(0, 2, 3, -1, 2), (0, 12, 14, -1, 4), (0, 22, 24, -1, 5)]
    for cut in (8, 11, 21):
        kept, _ = since(logs_of(rows, calls), 5, cut)
        again, _ = since(kept, 5, cut)  # cutting twice is cutting once
        for logs in (kept, again):
            recording = raw_recording({}, columns=COLUMNS, functions=NamedFunctions("outer", "inner"))
            recording.logs, recording.settings = logs, Settings(with_stack=True)
            trace = seal(recording)
            stacks = {
                start: trace.stacks[n] for start, n in zip(trace.start_ns.tolist(), trace.stack.tolist())
            }
            expected = {12: ("inner", "outer"), 22: ("outer",)}
            assert stacks == {start: stack for start, stack in expected.items() if start + 2 >= cut}


def test_an_event_that_began_before_the_cut_keeps_its_stack() -> None:
    calls = [3, 1, 4, 2, 0, 30, 0, 40]
    kept, dropped = since(logs_of([(0, 5, 6, -1, 2), (0, 4, 25, -1, 2)], calls), 5, 20)
    recording = raw_recording({}, columns=COLUMNS, functions=NamedFunctions("outer", "inner"))
    recording.logs, recording.settings = kept, Settings(with_stack=True)
    trace = seal(recording)
    assert ([trace.stacks[n] for n in trace.stack], dropped) == ([("inner", "outer")], 1)


def test_only_tensors_that_are_referred_to_stay() -> None:
    columns = ("key", "start", "end", "sequence", "inputs", "tensors")
    rows = [(0, 1, 2, -1, 0, 0), (0, 11, 12, -1, 0, 1), (0, 21, 22, -1, -1, -1)]
    logs = {("tensors", 0): [5, 6], ("storages", 0): [5, 5, 77, 6, 5, 0]}
    kept, dropped = since(raw_recording({MAIN: rows}, columns=columns, logs=logs).logs, 6, 10)
    assert (kept.joined("tensors").tolist(), kept.joined("storages").tolist()) == ([6], [[6, 5, 0]])
    assert kept.tensor_places(0, np.array([0, 1, -1])).tolist() == [-1, 0, -1]
    assert dropped == 1


@pytest.mark.parametrize("most", [1, 3])
def test_allocations_and_calls_are_events(most: int) -> None:
    logs = logs_of([(0, 1, 2, -1, 0)], [3, 4, 0, 5])
    logs.blocks["memory", 0] = [np.array([6, 64, 6, MAIN])]
    assert n_events(logs, 5) == 3
    kept, dropped = newest(logs, 5, most)
    assert (n_events(kept, 5), dropped) == (most, 3 - most)
