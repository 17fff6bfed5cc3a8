"""Captures of levels 0 and 2, and with other settings: the same device time, and what is missing is said."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import ascend_levels
import pytest

from mindtorch_prof import cli, load
from mindtorch_prof.analysis.device_breakdown import device_breakdown
from mindtorch_prof.trace import DEVICE_KERNEL

VARIANTS = ascend_levels.VARIANTS
COMMANDS = ("device", "roofline", "critical-path", "advise", "doctor")
LACKS = {
    "text level 0": [
        "how long collectives transferred and waited is not known",
        "the shapes and types of kernels are not known",
    ],
    "db level 0": [
        "how long collectives transferred and waited is not known",
        "the shapes and types of kernels are not known",
    ],
    "text level 2": [],
    "db level 2": [],
    "text without shapes, stacks and memory": ["shapes of inputs", "call stacks", "memory was not recorded"],
    "db without shapes, stacks and memory": ["shapes of inputs", "call stacks", "memory was not recorded"],
    "text of the device alone": ["no ops of the framework were recorded"],
    "db of the device alone": ["no ops of the framework were recorded"],
}


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest, ecosystem: Path, tmp_path: Path) -> tuple[str, Path]:
    form, make = VARIANTS[request.param]
    return request.param, make(
        ecosystem / "ascend" / f"{form}_level1" / "rank0_ascend_pt", tmp_path / "rank0_ascend_pt"
    )


def test_device_time_is_that_of_the_captures_own_tables(variant: tuple[str, Path]) -> None:
    name, folder = variant
    (device,) = device_breakdown(load(folder).trace)
    output = folder / ascend_levels.OUTPUT
    if name.startswith("text"):
        with (output / "step_trace_time.csv").open() as file:
            (row,) = csv.DictReader(file)
        expected = [
            float(row[key]) for key in ("Computing", "Communication(Not Overlapped)", "Communication", "Free")
        ]
    else:
        with sqlite3.connect(output / "ascend_pytorch_profiler_0.db") as file:
            rows = file.execute(
                "SELECT type, SUM(endNs - startNs) / 1000.0 FROM OVERLAP_ANALYSIS GROUP BY type"
            ).fetchall()
        file.close()
        times = dict(rows)  # 0: computing, 1: communication, 2: not overlapped, 3: free
        expected = [times[0], times[2], times[1], times[3]]
    free = device.idle_us + device.exposed_copy_us
    assert [
        device.computation_us,
        device.exposed_communication_us,
        device.communication_us,
        free,
    ] == pytest.approx(expected, abs=0.05)


def test_every_command_works_and_doctor_says_what_is_missing(
    variant: tuple[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, folder = variant
    for command in COMMANDS:
        assert cli.main([command, str(folder)]) in (0, 1), command
        assert "Traceback" not in capsys.readouterr().err
    assert cli.main(["report", str(folder), "-o", str(tmp_path / "report.html")]) == 0
    said = " ".join(load(folder).health.lacks)
    for words in LACKS[name]:
        assert words in said
    assert ("recorded with Level0" in said) is ("level 0" in name)
    has_shapes = bool((load(folder).trace.inputs >= 0).any())
    assert ("inputs have shapes and types" in said) is has_shapes


def test_collectives_that_only_kernel_details_has_are_counted(ecosystem: Path, tmp_path: Path) -> None:
    capture = ecosystem / "ascend" / "text_level1" / "rank0_ascend_pt"
    folder = ascend_levels.text_level0(capture, tmp_path / "rank0_ascend_pt")
    path = folder / ascend_levels.OUTPUT / "trace_view.json"
    events = json.loads(path.read_text())
    hccl = {e["pid"] for e in events if e["name"] == "process_name" and e["args"]["name"] == "HCCL"}
    path.write_text(json.dumps([e for e in events if e["pid"] not in hccl]))
    (device,), (whole,) = device_breakdown(load(folder).trace), device_breakdown(load(capture).trace)
    assert device.communication_us == pytest.approx(whole.communication_us, abs=0.01)
    (path.parent / "kernel_details.csv").unlink()
    loaded = load(folder)
    assert any("communication counts as idle time" in words for words in loaded.health.lacks)
    assert device_breakdown(loaded.trace)[0].communication_us == 0


@pytest.mark.parametrize("form", ["text", "db"])
def test_kernels_of_every_level_have_the_names_and_times_of_level_1(
    form: str, ecosystem: Path, tmp_path: Path
) -> None:
    capture = ecosystem / "ascend" / f"{form}_level1" / "rank1_ascend_pt"
    kernels = []
    makers: list[Callable[[Path, Path], Path]] = [make for own, make in VARIANTS.values() if own == form]
    for number, make in enumerate(makers):
        device = load(make(capture, tmp_path / str(number))).trace.device
        rows = (device.kind == DEVICE_KERNEL).nonzero()[0]
        kernels.append(
            sorted((device.names[device.name[i]], int(device.end_ns[i] - device.start_ns[i])) for i in rows)
        )
    assert len(kernels[0]) > 150
    assert all(each == kernels[0] for each in kernels)


@pytest.mark.parametrize(("ending", "module"), [("pt", "torch_npu"), ("ms", "mindspore")])
def test_a_capture_that_was_not_analysed_is_refused_in_one_sentence(
    ending: str, module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / f"host_1_20250101000000_ascend_{ending}"
    (folder / "PROF_000001" / "device_0").mkdir(parents=True)
    (folder / "profiler_info_0.json").write_text("{}")
    assert cli.main(["device", str(folder)]) == 2
    assert (
        f"a capture without ASCEND_PROFILER_OUTPUT; {module}.profiler.profiler.analyse"
        in capsys.readouterr().err
    )


def test_a_capture_of_mindspore_is_read_where_its_files_are_the_same(ecosystem: Path, tmp_path: Path) -> None:
    folder = ascend_levels.text_plain(
        ecosystem / "ascend" / "text_level1" / "rank0_ascend_pt",
        tmp_path / "node7_123_20250109152403_ascend_ms",
    )
    path = folder / ascend_levels.OUTPUT / "trace_view.json"
    path.write_text(path.read_text().replace('{"name": "Python"}', '{"name": "MindSpore"}'))
    loaded = load(folder)
    assert device_breakdown(loaded.trace)[0].communication_us == pytest.approx(105_991.878, abs=0.01)
    assert loaded.trace.settings.host_name == "node7"
