"""`mindtorch-prof device`: the breakdown as tables and as data."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import kineto_documents as documents
import pytest

Printed = Callable[..., str]


@pytest.fixture
def gpu(tmp_path: Path) -> str:
    path = tmp_path / "gpu.json"
    path.write_bytes(documents.as_bytes(documents.gpu()))
    return str(path)


def test_the_tables_show_parts_that_add_up(gpu: str, printed: Printed) -> None:
    text = printed("device", gpu)
    assert "Device 0" in text
    assert "span" in text
    for title in ("Streams", "Idle time by cause", "Kernels by type", "Kernels by op", "Copies"):
        assert f"\n{title}" in text
    assert "device work belongs to" in text
    assert max(map(len, text.splitlines())) <= 100


def test_json_has_stable_keys_and_figures_that_add_up(gpu: str, printed: Printed) -> None:
    (device,) = json.loads(printed("device", gpu, "--format", "json"))["devices"]
    assert device["device"] == 0
    parts = [
        device[f"{part}_us"] for part in ("computation", "exposed_communication", "exposed_copy", "idle")
    ]
    assert sum(parts) == pytest.approx(device["span_us"])
    assert {"communication_us", "overlap", "steps", "streams", "without_op_share"} <= set(device)
    assert device["idle"]["idle_us"] == device["idle_us"]
    assert sum(cause["time_us"] for cause in device["idle"]["causes"]) == pytest.approx(device["idle_us"])


def test_csv_has_one_row_per_device_step_and_stream(gpu: str, printed: Printed) -> None:
    rows = list(csv.DictReader(io.StringIO(printed("device", gpu, "--format", "csv"))))
    (device,) = json.loads(printed("device", gpu, "--format", "json"))["devices"]
    assert len(rows) == 1 + len(device["steps"]) + len(device["streams"])
    assert float(rows[0]["span_us"]) == device["span_us"]


def test_a_trace_without_a_device_says_so(tmp_path: Path, printed: Printed) -> None:
    path = tmp_path / "cpu.json"
    path.write_bytes(documents.as_bytes(documents.cpu()))
    assert printed("device", str(path)) == "No work of a device in this trace.\n"
    assert json.loads(printed("device", str(path), "--format", "json"))["devices"] == []


def test_capture_says_how_many_kernels_matched(ecosystem: Path, printed: Printed) -> None:
    folder = ecosystem / "graphs/vllm_piecewise"
    replay = str(folder / "graph_execution.json.gz")
    assert "96.0% of the device work belongs to no op" in printed("device", replay)
    words = ("device", replay, "--capture", str(folder / "graph_capture.json.gz"))
    assert "361 of 361 kernels of 25 graph replays are attributed" in printed(*words)
    data = json.loads(printed(*words, "--format", "json"))
    assert data["capture"]["matched"] == data["capture"]["kernels"] == 361
    assert data["devices"][0]["without_op_us"] == 0
    assert data["devices"][0]["kernels_by_op"][0]["op"] == "vllm::moe_forward"


def test_a_capture_that_cannot_be_read_is_named(gpu: str, capsys: pytest.CaptureFixture[str]) -> None:
    from mindtorch_prof import cli

    assert cli.main(["device", gpu, "--capture", "missing.json"]) == 2
    assert "missing.json" in capsys.readouterr().err


def test_devices_are_separated_by_an_empty_line(tmp_path: Path, printed: Printed) -> None:
    work = [documents.event("k", 10.0, 30, "kernel", 7, device=number, stream=7) for number in (0, 1)]
    text = printed("device", str(documents.write(tmp_path / "t.json", work)))
    assert "\n\nDevice 1" in text


def test_copies_that_the_times_of_an_ascend_device_leave_out_are_told(
    ecosystem: Path, printed: Printed
) -> None:
    text = printed("device", str(ecosystem / "ascend" / "text_level1" / "rank0_ascend_pt"))
    assert "left out of these times: copies before the first and after the last" in text
    copies = text[text.index("\nCopies and memory fills") :]
    assert next(line.split() for line in copies.splitlines() if "MEMCPY" in line)[1:] == ["24", "878.857us"]
