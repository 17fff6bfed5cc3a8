"""Paths of Python calls: each call's callers, equal paths once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trace_builder import make_frames

from mindtorch_prof import call_paths
from mindtorch_prof.call_paths import innermost_frames, paths, stacks_with


def test_calls_of_the_same_function_by_the_same_callers_share_a_path() -> None:
    frames = make_frames(
        ("main", 0, 100, -1), ("step", 10, 40, 0), ("step", 50, 90, 0), ("log", 60, 70, 2), ("log", 95, 99, 0)
    )
    number, table = paths(frames)
    assert number[1] == number[2]
    assert number[3] != number[4]
    assert set(table) == {("main",), ("step", "main"), ("log", "main"), ("log", "step", "main")}
    assert len(table) == 4


calls = st.lists(st.tuples(st.sampled_from("abc"), st.integers(-1, 30)), max_size=30).map(
    lambda rows: [(name, 0, 0, min(parent, row - 1)) for row, (name, parent) in enumerate(rows)]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@pytest.mark.parametrize("few", [0, 4, 1000], ids=["by sorting", "by both", "by a dict"])
@given(calls=calls)
def test_a_path_leads_from_a_call_to_its_outermost_caller(
    calls: list[tuple[str, int, int, int]], few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_paths, "_FEW", few)
    number, table = paths(make_frames(*calls))
    assert len(set(table)) == len(table)
    for row, path in enumerate(number.tolist()):
        callers, at = [], row
        while at >= 0:
            callers.append(calls[at][0])
            at = calls[at][3]
        assert table[path] == tuple(callers)


def test_the_innermost_frames_are_the_first_of_a_stack_or_path() -> None:
    number, table = paths(make_frames(("main", 0, 9, -1), ("step", 1, 8, 0), ("loss", 2, 7, 1)))
    for stacks, index in ((table, int(number[2])), ([("loss", "step", "main")], 0)):
        assert innermost_frames(stacks, index, 2) == ("loss", "step")


def test_a_path_contains_the_calls_around_it() -> None:
    _, stacks = call_paths.call_paths(
        ("train", "zero_grad", "fill"), np.array([0, 1, 2, 2]), np.array([-1, 0, 1, 0])
    )
    wanted = [" ".join(reversed(stack)) for stack in stacks]
    contains = dict(zip(wanted, stacks_with(stacks, lambda name: name == "zero_grad")))
    assert contains == {
        "train": False,
        "train zero_grad": True,
        "train zero_grad fill": True,
        "train fill": False,
    }
    assert stacks_with(list(stacks), lambda name: name == "zero_grad") == list(contains.values())
