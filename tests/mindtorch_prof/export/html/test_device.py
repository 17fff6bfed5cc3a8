"""The report's view of devices: the same figures as the analyses."""

from __future__ import annotations

from pathlib import Path

import kineto_documents as documents
import pytest
from html_report import blocks
from kineto_documents import load_document

from mindtorch_prof.analysis.device_breakdown import device_breakdown
from mindtorch_prof.load import load


def test_the_view_has_the_figures_of_the_breakdown(tmp_path: Path) -> None:
    loaded = load_document(documents.gpu())
    loaded.export_html(tmp_path / "report.html")
    (device,), (times,) = (
        blocks(tmp_path / "report.html")["device-0"][0]["devices"],
        device_breakdown(loaded),
    )
    assert {key: device[key] for key in times.figures()} == times.figures()
    assert sum(cause["time_us"] for cause in device["idle"]["causes"]) == pytest.approx(times.idle_us)
    assert [stream["stream"] for stream in device["streams"]] == [stream.stream for stream in times.streams]


def test_a_recording_without_a_device_has_no_such_view(tmp_path: Path) -> None:
    load_document(documents.cpu()).export_html(tmp_path / "report.html")
    assert "device-0" not in blocks(tmp_path / "report.html")


def test_curves_of_queues_reach_the_longest_length(ecosystem: Path, tmp_path: Path) -> None:
    load(ecosystem / "traces/nvidia_ddp_train_nccl.json.gz").export_html(tmp_path / "report.html")
    (device,) = blocks(tmp_path / "report.html")["device-0"][0]["devices"]
    idle = device["idle"]
    longest = {curve["stream"]: max(curve["longest"]) for curve in idle["queue_curves"]}
    assert longest == {queue["stream"]: queue["max_queue_length"] for queue in idle["queues"]}
