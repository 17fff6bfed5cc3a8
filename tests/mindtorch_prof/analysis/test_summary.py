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


def _memory_change(at: float, nbytes: int, address: int, total: int, device: int = -1) -> dict[str, Any]:
    args = {"Bytes": nbytes, "Addr": address, "Total Allocated": total}
    where = {"Device Id": device, "Device Type": 0 if device < 0 else 1}
    return {
        **documents.event("[memory]", at, 0, "cpu_instant_event"),
        "ph": "i",
        "s": "t",
        "args": {**args, **where},
    }


def test_memory_that_grows_is_told_of_each_device_by_itself(tmp_path: Path) -> None:
    steps = [documents.event(f"ProfilerStep#{i}", 100.0 * i, 90, "user_annotation") for i in range(4)]
    growing = [
        _memory_change(100.0 * i + 10, 2048, 50 + i, 5000 + 2048 * (i + 1), device=0) for i in range(4)
    ]
    # the CPU's memory is the last to change in some steps, and stays the same
    steady = [
        _memory_change(100.0 * i + at, nbytes, 7, max(nbytes, 0))
        for i in range(0, 4, 2)
        for at, nbytes in ((20, 64), (30, -64))
    ]
    data = summary(load(documents.write(tmp_path / "t.json", [*steps, *growing, *steady])))
    assert [text for text in data["looks_wrong"] if "grows" in text] == [
        "memory of device 0 grows in every step, by 2.00 KB per step: possibly a leak"
    ]


def test_the_peak_of_the_cpu_does_not_count_memory_of_earlier_recordings_of_the_process(
    tmp_path: Path,
) -> None:
    # torch's total goes on from recording to recording, and misses frees between them
    changes = [
        _memory_change(10.0, 1000, 1, 51_000),
        _memory_change(20.0, 500, 2, 51_500),
        _memory_change(30.0, -800, 9, 50_700),  # allocated before
        _memory_change(40.0, -1000, 1, 49_700),
    ]
    (memory,) = summary(load(documents.write(tmp_path / "t.json", changes)))["memory"]["devices"]
    assert (memory["peak_bytes"], memory["end_bytes"]) == (1500, 500)
