"""`mindtorch-prof critical-path`."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import kineto_documents as documents
import pytest
from trace_file_builder import read_trace, training

from mindtorch_prof import cli

Printed = Callable[..., str]


@pytest.fixture
def trace(tmp_path: Path) -> str:
    return training().dump(tmp_path / "trace.json.gz")


def test_text_shows_kinds_ops_and_what_the_step_takes_without_them(printed: Printed, trace: str) -> None:
    text = printed("critical-path", trace, "--step", "1", "--what-if", "gemm")
    lines = text.splitlines()
    assert lines[0] == "critical path of ProfilerStep#1: 99.000us"
    assert lines[2] == "host              99.000us  100.0%  ops and other host code"
    assert any(line.startswith("if gemm took no time: ") for line in lines)
    assert "Path without it" in text


def test_json_adds_up_and_has_stable_keys(printed: Printed, trace: str) -> None:
    document = json.loads(
        printed("critical-path", trace, "--format", "json", "--what-if", "aten::addmm", "--top", "2")
    )
    assert document["step"] == 1  # of three equal ones the middle
    assert sum(document["by_kind"].values()) == pytest.approx(document["length_us"])
    assert {"name", "path_us", "share", "count", "host_us", "kernel_us", "without_us", "saves_us"} <= set(
        document["rows"][0]
    )
    assert len(document["rows"]) == 2
    (answer,) = document["what_if"]
    assert answer["saves_us"] == pytest.approx(document["length_us"] - answer["without_us"])


def test_csv_lists_ops_or_the_stretches_of_the_path(printed: Printed, trace: str) -> None:
    rows = list(csv.DictReader(io.StringIO(printed("critical-path", trace, "--format", "csv", "--top", "0"))))
    length = sum(float(row["path_us"]) for row in rows)
    rows = list(
        csv.DictReader(
            io.StringIO(printed("critical-path", trace, "--format", "csv", "--top", "0", "--segments"))
        )
    )
    assert sum(float(row["duration_us"]) for row in rows) == pytest.approx(length)
    assert set(rows[0]) == {"kind", "name", "event", "start_us", "duration_us", "thread", "device", "stream"}


def test_the_overlay_is_written(printed: Printed, trace: str, tmp_path: Path) -> None:
    out = str(tmp_path / "path.json.gz")
    assert f"written: {out}" in printed("critical-path", trace, "-o", out)
    assert any(event.get("args", {}).get("critical") == 1 for event in read_trace(out)["traceEvents"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--step", "9"), "the trace has no step 9; expected one of 0, 1, 2"),
        (("--what-if", "aten::nothing"), "has the name 'aten::nothing'"),
        (("--annotation", "nothing"), "no event's name contains 'nothing'"),
        (("-o", "/nowhere/path.json"), "cannot be written"),
    ],
)
def test_what_is_not_there_is_named_in_one_sentence(
    words: tuple[str, ...], message: str, trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["critical-path", trace, *words]) == 2
    assert message in capsys.readouterr().err


def test_names_cannot_control_the_terminal(printed: Printed, tmp_path: Path) -> None:
    path = documents.write(tmp_path / "trace.json", [documents.event(documents.HOSTILE_NAME, 0, 5)])
    assert "\x1b" not in printed("critical-path", str(path), "--what-if", documents.HOSTILE_NAME)


def test_a_trace_without_events_is_answered(printed: Printed, tmp_path: Path) -> None:
    path = documents.write(tmp_path / "trace.json", [])
    assert printed("critical-path", str(path)).startswith("critical path of the whole recording")


def test_names_beside_the_path_are_as_short_as_in_the_table(printed: Printed, ecosystem: Path) -> None:
    text = printed("critical-path", str(ecosystem / "traces/mi300_resnet_ddp_act_checkpoint.json.gz"))
    assert "  ncclDevKernel_Generic: 12.913ms of work, may take" in text
    text = printed("critical-path", str(ecosystem / "graphs/vllm_piecewise/graph_execution.json.gz"))
    beside = text.partition("least slack first:\n")[2].partition("\n\n")[0].splitlines()
    assert len(beside) == 3
    assert max(map(len, beside)) < 120
