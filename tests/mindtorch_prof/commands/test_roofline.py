"""`mindtorch-prof roofline`: its table, its JSON and CSV, and what it says of peaks and gaps."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import kineto_documents as documents
import pytest

from mindtorch_prof import cli

KEYS = {
    *("name", "input_shapes", "dtypes", "count", "flop", "bytes", "kernel_us", "tflops", "tbps", "bound"),
    *("category", "intensity", "own_kernel_us", "peak_tflops", "roof_us", "share_of_peak"),
}
Printed = Callable[..., str]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A linear layer of one product of 100 us, and a kernel of 25 us that no op launched."""
    shapes = {"Input Dims": [[512, 256], [256, 128]], "Input type": ["c10::BFloat16"] * 2}
    linear = {"Input Dims": [[512, 256], [128, 256], []], "Input type": ["c10::BFloat16"] * 2 + [""]}
    events = [
        documents.event("aten::linear", 90, 40, **{"External id": 1, **linear}),
        documents.event("aten::mm", 100, 10, **{"External id": 2, **shapes}),
        documents.launch(101, 2),
        documents.kernel("gemm", 200, 100, correlation=2),
        documents.kernel("lost", 400, 25, correlation=99),
    ]
    device = {"id": 0, "name": "NVIDIA H100 80GB HBM3"}
    return str(documents.write(tmp_path / "t.json", events, deviceProperties=[device]))


def test_the_table_shows_each_kernel_once(path: str, printed: Printed) -> None:
    lines = printed("roofline", path).splitlines()
    assert lines[0].split() == [
        "Kernels",
        "TFLOP/s",
        "TB/s",
        "Bound",
        "Of",
        "peak",
        "Calls",
        "Op,",
        "dtype",
        "Shapes",
    ]
    assert lines[2].split() == "100.000us 0.336 0.005 memory 0.1% 1 aten::mm bf16 512x256 256x128".split()
    assert lines[4] == (
        "models explain 80 % of kernel time; 20 % was launched under no op in the trace, "
        "of the rest they explain 100 %"
    )
    assert lines[5] == "  not explained:  25.000us  (no op): the op that launched them is not in the trace"
    assert lines[6].startswith("peaks of NVIDIA H100 SXM: 3.35 TB/s; TFLOP/s: ")
    assert "aten::linear" in printed("roofline", path, "--all")


def test_json_has_every_row_and_stable_keys(path: str, printed: Printed) -> None:
    document = json.loads(printed("roofline", path, "--format", "json"))
    assert [row["name"] for row in document["rows"]] == ["aten::linear", "aten::mm"]
    assert all(set(row) == KEYS for row in document["rows"])
    row = document["rows"][1]
    assert (row["flop"], row["bytes"], row["count"]) == (
        2 * 512 * 256 * 128,
        2 * (512 * 256 + 256 * 128 + 512 * 128),
        1,
    )
    assert (row["input_shapes"], row["dtypes"]) == ([[512, 256], [256, 128]], ["c10::BFloat16"] * 2)
    assert (row["kernel_us"], row["bound"]) == (100, "memory")
    assert document["coverage"] == 0.8
    assert document["peaks"]["name"] == "NVIDIA H100 SXM"
    assert [each["kernel_us"] for each in document["not_covered"]] == [25]


def test_csv_has_the_same_rows(path: str, printed: Printed) -> None:
    rows = list(csv.DictReader(io.StringIO(printed("roofline", path, "--format", "csv"))))
    assert [(row["name"], row["kernel_us"]) for row in rows] == [
        ("aten::linear", "100.0"),
        ("aten::mm", "100.0"),
    ]
    assert set(rows[0]) == KEYS


def test_peaks_may_be_given(path: str, printed: Printed) -> None:
    document = json.loads(printed("roofline", path, "--format", "json", "--peaks", "memory_tbps=100,bf16=1"))
    assert {row["bound"] for row in document["rows"]} == {"compute"}
    assert document["rows"][0]["share_of_peak"] == pytest.approx(0.3355, abs=0.001)


def test_wrong_peaks_are_an_error_of_one_sentence(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["roofline", path, "--peaks", "H999"]) == 2
    assert "neither a file nor a known device" in capsys.readouterr().err


def test_a_trace_without_a_device_says_so(three_steps_path: str, tmp_path: Path, printed: Printed) -> None:
    events = [documents.event("aten::mm", 1, 2)]
    assert "has no kernels" in printed("roofline", str(documents.write(tmp_path / "cpu.json", events)))
    assert "were not recorded" in printed("roofline", three_steps_path)
