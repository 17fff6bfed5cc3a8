"""The HTML report as a whole: what goes into the page agrees with the recording."""

from __future__ import annotations

from pathlib import Path

import pytest
from html_report import blocks
from synthetic_traces import linear_with_synthetic_ops
from trace_builder import make_trace

import mindtorch_v2 as torch
from mindtorch_prof.export import chrome
from mindtorch_prof.export.html import export_html
from mindtorch_prof.export.html.pack import Block
from mindtorch_prof.load import load
from mindtorch_prof.synthetic_rows import as_recorded
from mindtorch_prof.torch_api.results import Results
from mindtorch_prof.trace import Health
from mindtorch_v2.profiler import profile


def test_an_empty_recording_has_a_page_too(tmp_path: Path) -> None:
    export_html(Results(make_trace()), tmp_path / "r.html")
    values, _ = blocks(tmp_path / "r.html")["summary-0"]
    assert values["span_ns"] == 0


def test_the_page_says_what_the_recording_lacks(tmp_path: Path) -> None:
    trace = make_trace(("a", 0, 10, 1), health=Health(dropped=3))
    export_html(Results(trace), tmp_path / "r.html")
    values, _ = blocks(tmp_path / "r.html")["summary-0"]
    assert values["complete"] is False
    assert values["health"] == [{"severity": "warning", "message": "3 events were dropped"}]


def test_a_small_report_is_small(report_page: Path) -> None:
    assert report_page.stat().st_size < 400_000


def test_a_failed_report_leaves_the_old_file(
    recorded_training: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.html"
    path.write_text("old")
    monkeypatch.setattr(Block, "text", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        recorded_training.export_html(path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]


def test_a_profile_exports_its_report(tmp_path: Path) -> None:
    with profile() as prof:
        torch.ones(2) + 1
    prof.export_html(str(tmp_path / "r.html"))
    assert "aten::add" in blocks(tmp_path / "r.html")["summary-0"][0]["groups"]["name"]["names"]


def test_a_profile_that_runs_has_no_report_yet(tmp_path: Path) -> None:
    prof = profile()
    with pytest.raises(AssertionError, match="initialized before exporting a report"):
        prof.export_html(str(tmp_path / "r.html"))


def test_a_trace_file_gives_the_numbers_of_the_recording_it_came_from(
    recorded_training: Results, tmp_path: Path
) -> None:
    chrome.export_chrome_trace(recorded_training.trace, tmp_path / "t.json.gz")
    load(tmp_path / "t.json.gz").export_html(tmp_path / "r.html")
    values, columns = blocks(tmp_path / "r.html")["summary-0"]
    names = values["groups"]["name"]["names"]
    counts = {names[i]: int(n) for i, n in zip(columns["name.name"], columns["name.count"])}
    assert counts == {row.key: row.count for row in recorded_training.key_averages()}
    assert values["label"] == "t.json.gz"


def test_a_page_holds_what_counts_events_with_and_without_synthetic_ones(tmp_path: Path) -> None:
    trace = linear_with_synthetic_ops()
    export_html(Results(trace), tmp_path / "r.html", Results(as_recorded(trace)))
    page = blocks(tmp_path / "r.html")
    again = {name.removesuffix("-recorded") for name in page if name.endswith("-recorded")}
    assert again == {"summary-0", "operators-0", "flame-0", "memory-0", "compare-0"}
    for name in ("summary", "flame", "memory"):  # what ran is the second recording
        with_first, with_second = page[f"{name}-0-recorded"], page[f"{name}-1"]
        assert {**with_first[0], "label": ""} == {**with_second[0], "label": ""}
        assert {key: column.tolist() for key, column in with_first[1].items()} == {
            key: column.tolist() for key, column in with_second[1].items()
        }
    assert page["timeline-0"][1]["synthetic"].sum() == 6
    assert "synthetic" not in page["timeline-1"][1]
    assert page["summary-0"][1]["name.synthetic"].tolist() == [0, 0, 2, 2, 2]
    assert page["flame-0"][1]["calls.synthetic"].sum() == 6
