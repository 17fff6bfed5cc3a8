"""Summaries: what took the time and what looks wrong, on at most 60 lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kineto_documents as documents
import pytest

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
