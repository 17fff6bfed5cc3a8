"""Health findings: what is missing or inconsistent in a trace is named, a sound one has none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kineto_documents as documents
import pytest
from trace_builder import make_trace

from mindtorch_prof.analysis.doctor import doctor
from mindtorch_prof.load import load
from mindtorch_prof.trace import Health


def codes(path: Path, events: list[dict[str, Any]]) -> set[str]:
    return {finding.code for finding in doctor(load(documents.write(path, events)))}


def test_a_sound_trace_has_no_findings(three_steps: Any) -> None:
    assert [finding for finding in doctor(three_steps) if finding.severity != "info"] == []


def test_missing_steps_and_steps_without_device_events_are_found(tmp_path: Path) -> None:
    events = [
        *documents.training_step(1, 1000.0),
        *documents.training_step(3, 2000.0),
        documents.event("ProfilerStep#4", 2200, 10, "user_annotation"),
    ]
    findings = {
        finding.code: finding for finding in doctor(load(documents.write(tmp_path / "t.json", events)))
    }
    assert findings["missing_steps"].where == "2"
    assert findings["steps_without_device_events"].where == "4"
    assert findings["steps_without_events"].count == 1


def test_lost_launches_and_overlapping_kernels_are_found(tmp_path: Path) -> None:
    events = [
        documents.event("aten::mm", 0, 50),
        documents.kernel("a", 10, 20, correlation=77),
        documents.kernel("b", 15, 20, correlation=78),
    ]
    assert {"device_alone", "device_overlap"} <= codes(tmp_path / "t.json", events)


def test_overlaps_duplicates_and_empty_traces_are_found(tmp_path: Path) -> None:
    overlapping = [
        documents.event("aten::a", 0, 50),
        documents.event("aten::b", 25, 50),
        documents.event("aten::c", 200, 9),
        documents.event("aten::c", 200, 9),
    ]
    assert {"overlap", "duplicate"} <= codes(tmp_path / "t.json", overlapping)
    assert codes(tmp_path / "e.json", []) == {"empty"}


def test_nested_calls_that_begin_and_end_together_are_no_duplicates(tmp_path: Path) -> None:
    # whole microseconds, as files of 2021 have them
    nested = [documents.event("aten::zeros", 5, 3, **{"External id": number}) for number in (7, 8)]
    assert "duplicate" not in codes(tmp_path / "t.json", nested)


def test_recorded_traces_have_no_duplicates(ecosystem: Path) -> None:
    for path in (
        "traces/v100_resnet50_train_2021.pt.trace.json.gz",
        "traces/nvidia_ddp_train_nccl.json.gz",
        "critical_path/alexnet.json.gz",
    ):
        assert "duplicate" not in {finding.code for finding in doctor(load(ecosystem / path))}, path


@pytest.mark.parametrize(
    ("count", "message"), [(1, "1 event was dropped"), (1_200, "1,200 events were dropped")]
)
def test_dropped_events_are_counted_in_the_singular_and_plural(count: int, message: str) -> None:
    trace = make_trace(("a", 0, 10, 1), health=Health(dropped=count))
    assert [finding.message for finding in doctor(trace) if finding.code == "dropped"] == [message]
