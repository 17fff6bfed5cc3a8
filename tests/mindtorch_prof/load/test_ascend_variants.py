"""Ascend captures as other versions write them: the same device time, whatever things are called."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ascend_levels
import pytest

from mindtorch_prof import cli, load
from mindtorch_prof.analysis.device_breakdown import device_breakdown

Events = list[dict[str, Any]]
FIGURES = (136_581.009, 8_873.734, 101_963.207, 105_991.878)  # of rank 0, as its own step table has them


def named(events: Events, *names: str) -> set[Any]:
    """The processes of these names."""
    return {e["pid"] for e in events if e["name"] == "process_name" and e["args"]["name"] in names}


def communication_process(events: Events) -> Events:
    for event in events:
        if event["name"] == "process_name" and event["args"]["name"] == "HCCL":
            event["args"]["name"] = "Communication"
    return events


def capital_keys(events: Events) -> Events:
    keys = {"stream id": "Stream Id", "task id": "Task Id", "Physic Stream Id": "Stream Id"}
    for event in events:
        if event["ph"] == "X" and "args" in event:
            event["args"] = {keys.get(key, key): value for key, value in event["args"].items()}
    return events


def texts_as_processes(events: Events) -> Events:
    (pid,) = named(events, "HCCL")
    return [
        {**event, "pid": "HCCL", "tid": f"272_{event['tid']}"} if event["pid"] == pid else event
        for event in events
    ]


def garbage_collections(events: Events) -> Events:
    op = next(event for event in events if event.get("cat") == "cpu_op")
    about = {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "args": {"name": "Python GC"}}
    collected = {"ph": "X", "name": "GC", "pid": 7, "tid": op["tid"], "ts": op["ts"], "dur": 50.0, "args": {}}
    return [*events, about, collected]


def without_framework(events: Events) -> Events:
    python, flows = named(events, "Python"), ("async_npu", "async_task_queue", "fwdbwd")
    return [event for event in events if event["pid"] not in python and event.get("cat") not in flows]


def two_devices(events: Events) -> Events:
    device = named(events, "Ascend Hardware", "HCCL", "Overlap Analysis")
    more = [{**event, "pid": event["pid"] | 1} for event in events if event["pid"] in device]
    return [*events, *(event for event in more if event["ph"] in "XM")]


EDITS: dict[str, Callable[[Events], Events]] = {
    "a process Communication": communication_process,
    "keys in capitals": capital_keys,
    "texts as processes": texts_as_processes,
    "garbage collections": garbage_collections,
    "no framework": without_framework,
    "two devices": two_devices,
}
TEXTS: dict[str, Callable[[str], str]] = {
    "a list that was not closed": lambda text: text.rstrip()[:-1],
    "an object around the list": lambda text: f'{{"traceEvents": {text}}}',
}


@pytest.fixture
def folder(ecosystem: Path, tmp_path: Path) -> Path:
    capture = ecosystem / "ascend" / "text_level1" / "rank0_ascend_pt"
    return ascend_levels.copied(capture, tmp_path / "dp0_tp0_rank0_20260305161834123_ascend_pt")


def figures(folder: Path) -> list[tuple[float, ...]]:
    return [
        (each.span_us, each.computation_us, each.exposed_communication_us, each.communication_us)
        for each in device_breakdown(load(folder).trace)
    ]


@pytest.mark.parametrize("name", [*EDITS, *TEXTS])
def test_device_time_is_the_same(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / ascend_levels.OUTPUT / "trace_view.json"
    text = path.read_text()
    edited = json.dumps(EDITS[name](json.loads(text))) if name in EDITS else TEXTS[name](text)
    path.write_text(edited)
    expected = [pytest.approx(FIGURES, abs=0.05)] * (2 if name == "two devices" else 1)
    assert figures(folder) == expected
    assert cli.main(["doctor", str(folder)]) in (0, 1)
    assert "Traceback" not in capsys.readouterr().err


def test_columns_of_kernel_details_may_have_other_names_and_be_fewer(folder: Path) -> None:
    path = folder / ascend_levels.OUTPUT / "kernel_details.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    others = {"Block Dim": "Block Num", "Mix Block Dim": "Mix Block Num"}
    left_out = ("Step Id", "Model ID", "Task ID", "Stream ID")
    keys = ["Device_id", *(others.get(key, key) for key in rows[0] if key not in left_out)]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, keys, extrasaction="ignore")
        writer.writeheader()
        writer.writerows({"Device_id": 0, **{others.get(k, k): v for k, v in row.items()}} for row in rows)
    assert figures(folder) == [pytest.approx(FIGURES, abs=0.05)]
    table = load(folder).trace.device.extra_table
    assert any("Block Num" in fields and "Input Shapes" in fields for fields in table)


def test_a_capture_without_any_table_is_read(folder: Path) -> None:
    for path in (folder / ascend_levels.OUTPUT).iterdir():
        if path.name != "trace_view.json":
            path.unlink()
    assert figures(folder) == [pytest.approx(FIGURES, abs=0.05)]
