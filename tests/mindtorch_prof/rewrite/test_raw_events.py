"""Raw events: whatever stands in a file, it is cut and merged, or refused with one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_file_builder import read_trace, training

from mindtorch_prof.analysis.diff import diff
from mindtorch_prof.load import load
from mindtorch_prof.rewrite.merge import merge_traces
from mindtorch_prof.rewrite.raw_events import nanoseconds
from mindtorch_prof.rewrite.slice import Selection, slice_trace


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("slice")


odd = st.sampled_from([None, -1, 0, 1e308, "x", "", [], {}, [[1]], True, 2**63, 2**70, 1.5, "NaN", {"a": 1}])


changes = st.lists(
    st.tuples(
        st.integers(0, 10**6),
        st.sampled_from(["ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args"]),
        odd,
        st.booleans(),
    ),
    max_size=10,
)


@settings(max_examples=40)
@given(
    changed=changes,
    wanted=st.sampled_from(
        [
            {},
            {"steps": ((1, 1),)},
            {"time_us": (50, 150)},
            {"name": "addmm"},
            {"threads": ("4242",)},
            {"ranks": (0,)},
        ]
    ),
)
def test_odd_events_are_cut_merged_and_compared_or_refused_with_a_sentence(
    folder: Path, changed: list[tuple[int, str, Any, bool]], wanted: dict[str, Any]
) -> None:
    trace = training(3, rank=0)
    for place, key, value, in_args in changed:
        event = trace.events[place % len(trace.events)]
        inner = event.get("args")
        if in_args and isinstance(inner, dict) and inner:
            inner[sorted(inner)[place % len(inner)]] = value
        else:
            event[key] = value
    path = trace.dump(folder / "odd.json")
    other = training(2, rank=1).dump(folder / "even.json")
    for work in (
        lambda: slice_trace(path, folder / "out.json", Selection(**wanted)),
        lambda: merge_traces([other, path], folder / "out.json"),
        lambda: diff(load(path), load(other)),
    ):
        problem = ""
        try:
            work()
        except ValueError as error:
            problem = str(error)
        assert len(problem.splitlines()) <= 1
        if not problem:
            read_trace(folder / "out.json")


def test_begins_and_ends_without_a_time_are_no_pair(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    place = {"pid": 1, "tid": 1, "name": "x"}
    events = [
        {"ph": "B", **place},
        {"ph": "B", "ts": 1, **place},
        {"ph": "E", "ts": 9, **place},
        {"ph": "E", **place},
    ]
    path.write_text(json.dumps({"traceEvents": events}))
    assert slice_trace(path, tmp_path / "out.json", Selection()).events == 4


def test_times_that_are_lists_are_missing() -> None:
    assert nanoseconds([[1], [2]], -1).tolist() == [-1, -1]
    assert nanoseconds([[1, 2]], -1).tolist() == [-1]
    assert nanoseconds([1.5, [2], None, "3"], -1).tolist() == [1500, -1, -1, 3000]
