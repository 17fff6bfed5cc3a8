"""The report's timeline: lanes without overlap, arrows, and the longest events beyond a limit."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
from html_report import blocks
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_builder import make_trace, op_with_a_kernel

from mindtorch_prof.export.html import export_html, timeline
from mindtorch_prof.torch_api.results import Results


def test_the_timeline_has_every_shown_event_and_lanes_do_not_overlap(
    recorded_training: Results, report_page: Path
) -> None:
    values, columns = blocks(report_page)["timeline-0"]
    start, first = columns["start_ns"], columns["lane.first"].astype(int)
    end = start + columns["duration_ns"]
    for low, high in itertools.pairwise(first):
        assert (np.diff(start[low:high]) >= 0).all()
        assert (end[low : high - 1] <= start[low + 1 : high]).all()
    shown = np.flatnonzero(recorded_training.shown)
    assert values["spans"] == values["of"] == len(shown) + len(recorded_training.trace.frames)
    names = [values["names"][i] for i in columns["name"]]
    at = names.index("ProfilerStep#2")
    row = next(
        i for i in shown if recorded_training.trace.names[recorded_training.trace.name[i]] == "ProfilerStep#2"
    )
    assert values["begin_ns"] + start[at] == recorded_training.trace.start_ns[row]


def test_arrows_lead_from_a_forward_op_to_its_node(report_page: Path) -> None:
    values, columns = blocks(report_page)["timeline-0"]
    names = [values["names"][i] for i in columns["name"]]
    pairs = {
        (names[int(a)], names[int(b)])
        for a, b, kind in zip(columns["arrow.from"], columns["arrow.to"], columns["arrow.kind"])
        if kind == 0
    }
    assert ("aten::relu", "ReluBackward0") in pairs
    assert ("aten::addmm", "AddmmBackward0") in pairs or ("aten::linear", "AddmmBackward0") in pairs


def test_a_launch_leads_to_its_kernel(tmp_path: Path) -> None:
    export_html(Results(op_with_a_kernel()), tmp_path / "r.html")
    data = blocks(tmp_path / "r.html")
    values, columns = data["timeline-0"]
    names = [values["names"][i] for i in columns["name"]]
    arrows = zip(columns["arrow.from"], columns["arrow.to"], columns["arrow.kind"])
    assert [(names[int(a)], names[int(b)]) for a, b, kind in arrows if kind == 1] == [
        ("cudaLaunchKernel", "gemm")
    ]
    assert [track["label"] for track in values["tracks"]] == ["thread 1", "GPU 0 stream 7"]
    shares = data["summary-0"][0]["shares"]
    parts = [["Computation", 250], ["Exposed communication", 0], ["Exposed copies", 0], ["Idle", 0]]
    assert shares[1] == {"label": "GPU 0", "parts": parts}


def test_beyond_a_number_of_events_the_longest_stay_and_the_page_says_so() -> None:
    events = [("outer", 0, 10_000, 1), *[(f"e{i}", 100 * i, 100 * i + i + 1, 1) for i in range(90)]]
    values = timeline.timeline_block(Results(make_trace(*events)), 40).values
    assert (values["of"], values["spans"]) == (91, 40)
    assert "outer" in values["names"]
    assert values["least_ns"] == 52
    assert "e89" in values["names"]
    assert "e0" not in values["names"]


def test_events_of_equal_length_are_thinned_as_well() -> None:
    values = timeline.timeline_block(
        Results(make_trace(*[("e", 10 * i, 10 * i + 5, 1) for i in range(20)])), 8
    ).values
    assert (values["of"], values["spans"]) == (20, 8)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 30), st.integers(0, 2)), max_size=30))
def test_any_spans_find_lanes_without_overlap(spans: list[tuple[int, int, int]]) -> None:
    start = np.array([s for s, _, _ in spans], np.int64)
    end = start + np.array([d for _, d, _ in spans], np.int64)
    track = np.array([t for _, _, t in spans], np.int64)
    lane = timeline.apart(track, np.zeros(len(spans), np.int64), start, end)
    for key in set(zip(track.tolist(), lane.tolist())):
        rows = np.flatnonzero((track == key[0]) & (lane == key[1]))
        rows = rows[np.lexsort((-end[rows], start[rows]))]
        assert (end[rows][:-1] <= start[rows][1:]).all()
