"""Summaries: what took the time and what looks wrong, on at most 60 lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kineto_documents as documents
import pytest

from mindtorch_prof.analysis.device_breakdown import device_breakdown
from mindtorch_prof.analysis.summary import summary, summary_text
from mindtorch_prof.load import load


def test_the_summary_is_short_and_says_what_took_the_time(three_steps: Any) -> None:
    data = summary(three_steps)
    assert data["steps"]["p50_us"] == pytest.approx(100)
    assert data["recorded"]["device_events"] == 6
    assert data["kernels"][0]["name"] == "ampere_sgemm"
    assert data["categories"][0]["category"] == "matmul"
    assert any("the device is idle" in text for text in data["looks_wrong"])
    for markdown in (False, True):
        assert len(summary_text(data, markdown=markdown).splitlines()) <= 60


def test_the_summary_tells_of_a_slow_first_step(tmp_path: Path) -> None:
    events = [
        documents.event(f"ProfilerStep#{i}", 1000.0 * i, 500 if i == 0 else 50, "user_annotation")
        for i in range(4)
    ]
    data = summary(load(documents.write(tmp_path / "t.json", events)))
    assert data["looks_wrong"][0].startswith("step 0 takes 10.0 × the median")


def test_the_summary_of_nothing_is_a_page_too(tmp_path: Path) -> None:
    data = summary(load(documents.write(tmp_path / "t.json", [])))
    assert "the trace has no events" in summary_text(data)


def test_one_step_is_told_in_one_line(tmp_path: Path) -> None:
    events = [
        documents.event("ProfilerStep#6", 0.0, 50, "user_annotation"),
        documents.event("aten::add", 10.0, 20),
    ]
    text = summary_text(summary(load(documents.write(tmp_path / "t.json", events))))
    assert "  step 6: 50.000us; 1 event, CPU busy 40.0%\n" in text
    assert "median" not in text


def test_several_devices_are_told_as_several(tmp_path: Path) -> None:
    work = [
        documents.event("k", start, length, "kernel", 7, device=number, stream=7)
        for number in (0, 1)
        for start, length in ((10.0, 30), (60.0, 10))
    ]
    text = summary_text(summary(load(documents.write(tmp_path / "t.json", work))))
    assert "; 2 devices busy 66.7% of their 120.000us together\n" in text


def test_work_that_was_launched_before_the_recording_is_told_apart(ecosystem: Path) -> None:
    recording = load(ecosystem / "traces" / "mi300_resnet_ddp_act_checkpoint.json.gz")
    (device,) = device_breakdown(recording)
    text = summary_text(summary(recording))
    assert device.launched_before_events == 968
    assert "device busy 99.5% of its 56.518ms, without the 968 events launched before the recording\n" in text
