"""Tests of mindtorch_prof.load.begin_end_events: pairs become slices, by their times."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindtorch_prof.load import begin_end_events
from mindtorch_prof.load.begin_end_events import BeginEndEvents
from mindtorch_prof.load.categories import MOST_KEYS
from mindtorch_prof.load.event_values import Table


def event(phase: str, time: Any, name: str = "a", **args: Any) -> Any:
    return {"ph": phase, "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": time, "args": args}


def test_pairs_are_found_by_time_and_their_arguments_joined() -> None:
    dropped: Counter[str] = Counter()
    repaired: Counter[str] = Counter()
    events = BeginEndEvents(Table(), dropped, repaired)
    events.add([event("E", 9), event("B", 1, "outer", x=1), event("E", 5, y=2), event("B", 2, "inner")])
    events.add([event("B", 7, "open"), event("E", 0), event("B", "never")])
    slices = [each for _, group in events.slices() for each in group]
    assert [(each["name"], each["ts"], each["dur"], each["args"]) for each in slices] == [
        ("inner", 2.0, 3.0, {"y": 2}),
        ("open", 7.0, 2.0, {}),
        ("outer", 1.0, 8.0, {"x": 1, "finished": False}),
    ]
    assert dropped == {"ends without a beginning": 1, "no time": 1}
    assert sum(repaired.values()) == 1


@given(st.lists(st.tuples(st.sampled_from("BBE"), st.integers(0, 9), st.integers(1, 3)), max_size=40))
def test_pairs_are_the_same_however_long_the_pieces_are(drawn: list[tuple[str, int, int]]) -> None:
    answers = []
    for piece in (1, 3, 1000):
        dropped: Counter[str] = Counter()
        repaired: Counter[str] = Counter()
        events = BeginEndEvents(Table(), dropped, repaired)
        events.add(
            [{**event(phase, t, f"op {n}", x=n), "tid": thread} for n, (phase, t, thread) in enumerate(drawn)]
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(begin_end_events, "_PIECE", piece)
            answers.append([[each for _, group in events.slices() for each in group], dropped, repaired])
    assert answers[0] == answers[1] == answers[2]


def test_names_that_are_no_texts_stay_as_they_are() -> None:
    events = BeginEndEvents(Table(), Counter(), Counter())
    begun = [{**event("B", time), "name": name} for time, name in enumerate([None, 7, ["x"], ""])]
    events.add([*begun, *[event("E", 9 - time) for time in range(4)]])
    slices = [each for _, group in events.slices() for each in group]
    assert [each.get("name") for each in slices] == ["", ["x"], 7, None]


def test_categories_beyond_those_that_are_remembered_keep_their_meaning() -> None:
    events = BeginEndEvents(Table(), Counter(), Counter())
    cats = [
        *[f"c{n}" for n in range(MOST_KEYS)],
        "c5",
        "other",
        "another",
        "x_runtime",
        "cuda_runtime",
        "kernel",
    ]
    for time, cat in enumerate(cats):
        events.add([{**event("B", time), "cat": cat, "name": cat}, event("E", time + 0.5)])
    by_name = {each["name"]: cat for cat, group in events.slices() for each in group}
    assert [by_name[cat] for cat in cats[:MOST_KEYS]] == cats[:MOST_KEYS]
    expected = ["c5", "other", "other", "x_runtime", "x_runtime", "kernel"]
    assert [by_name[cat] for cat in cats[MOST_KEYS:]] == expected
