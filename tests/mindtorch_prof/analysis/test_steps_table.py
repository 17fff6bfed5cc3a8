"""The table of steps: how long each took, and how busy CPU and device were."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import kineto_documents as documents
import numpy as np
import pytest

from mindtorch_prof.analysis.device_breakdown import device_breakdown
from mindtorch_prof.analysis.steps_table import steps_table
from mindtorch_prof.load import load


def test_the_table_of_steps_says_how_busy_cpu_and_device_were(three_steps: Any) -> None:
    sheet = steps_table(three_steps)
    assert sheet["step"].tolist() == [1, 2, 3]
    assert sheet["duration_us"].tolist() == pytest.approx([100, 100, 100])
    assert sheet["busy_us"].tolist() == pytest.approx([60, 60, 60])
    assert sheet["device_busy_us"].tolist() == pytest.approx([30, 30, 30])
    assert sheet["device_events"].tolist() == [2, 2, 2]


def test_the_busy_time_of_several_devices_is_their_mean() -> None:
    events = [
        documents.event("ProfilerStep#1", 0.0, 100, "user_annotation"),
        documents.event("k", 10.0, 30, "kernel", 7, device=0, stream=7),
        documents.event("k", 60.0, 20, "kernel", 7, device=1, stream=7),
    ]
    sheet = steps_table(documents.load_document(documents.document(events)))
    assert sheet["device_busy_us"].tolist() == [25.0]
    assert sheet["device_busy_share"].tolist() == [0.25]


def test_the_steps_of_every_trace_have_the_device_events_that_its_breakdown_has(ecosystem: Path) -> None:
    files = [
        *ecosystem.glob("traces/*_train*.gz"),
        *ecosystem.glob("traces/h100*.gz"),
        *ecosystem.glob("ranks/*/*.gz"),
    ]
    assert files
    for file in files:
        loaded = load(file)
        events: Counter[int] = Counter()
        for device in device_breakdown(loaded):
            events.update({step.step: step.events for step in device.steps})
        sheet = steps_table(loaded)
        counts = sheet["device_events"] if "device_events" in sheet else np.zeros(len(sheet["step"]), int)
        assert dict(zip(sheet["step"].tolist(), counts.tolist())) == {
            step: events[step] for step in sheet["step"].tolist()
        }, file.name
