"""Shared by commands: formats have the same rows, names are printed as text, a bad file is one sentence."""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import kineto_documents as documents
import pytest
from kineto_documents import HOSTILE_NAME
from spilled_recording import spill
from synthetic_traces import linear_with_synthetic_ops

from mindtorch_prof import cli
from mindtorch_prof.export.chrome import export_chrome_trace
from mindtorch_prof.text_escaping import terminal_text


def test_every_format_has_the_same_rows(three_steps_path: str, printed: Callable[..., str]) -> None:
    words = ["show", three_steps_path, "--group-by", "category", "--no-name", "--sort-by", "self_cpu"]
    data = json.loads(printed(*words, "--format", "json"))
    rows = list(csv.DictReader(io.StringIO(printed(*words, "--format", "csv"))))
    assert [row["category"] for row in rows] == [row["category"] for row in data["rows"]]
    assert [float(row["self_cpu_time_total"]) for row in rows] == [
        row["self_cpu_time_total"] for row in data["rows"]
    ]
    assert list(rows[0]) == list(data["rows"][0])
    assert data["rows_in_all"] == len(rows)
    lines = printed(*words, "--format", "md").splitlines()
    assert [line.split(" | ")[0][2:] for line in lines[2:]] == [row["category"] for row in rows]
    assert len(printed(*words).splitlines()) == len(rows) + 2
    assert printed(*words) == printed(*words)


@pytest.mark.parametrize("format", ["table", "md", "csv", "json"])
@pytest.mark.parametrize("command", ["show", "tree", "summary"])
def test_hostile_names_reach_the_terminal_as_text(
    three_steps_path: str, command: str, format: str, printed: Callable[..., str]
) -> None:
    text = printed(command, three_steps_path, "--format", format)
    assert "\x1b" not in text
    if format == "md":
        assert "<img>" not in text
    if format == "csv":
        cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
        assert any(terminal_text(HOSTILE_NAME) in cell for cell in cells)


@pytest.mark.parametrize("command", ["show", "tree", "summary", "doctor", "stacks"])
def test_a_file_that_is_no_trace_is_one_sentence_and_code_2(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.json"
    other.write_text("not json at all")
    for name in (other, tmp_path / "missing.json", tmp_path):
        assert cli.main([command, str(name)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        assert str(name) in err


def test_strict_refuses_what_would_have_to_be_repaired(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut.json"
    cut.write_bytes(
        documents.write(tmp_path / "whole.json", documents.training_step(1, 0.0)).read_bytes()[:-40]
    )
    assert cli.main(["show", str(cut)]) == 0
    assert "Incomplete: " in capsys.readouterr().out
    assert cli.main(["show", str(cut), "--strict"]) == 2
    assert cli.main(["doctor", str(cut)]) == 1


@pytest.fixture(scope="module")
def synthetic_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file with synthetic events."""
    path = tmp_path_factory.mktemp("synthetic") / "trace.json"
    export_chrome_trace(linear_with_synthetic_ops(), path)
    return str(path)


COMMANDS = {
    "show {0} --format json": '"synthetic_count"',
    "tree {0} --min 0": "aten::transpose",
    "summary {0}": "6 synthetic",
    "diff {0} {0} --all --top 0": "aten::addmm",
    "check {0} --baseline {0} --write-baseline {1}/out": "aten::addmm",
    "slice {0} -o {1}/out": "aten::addmm",
    "merge {0} -o {1}/out": "aten::addmm",
    "convert {0} --to chrome -o {1}/out": "aten::addmm",
    "convert {0} --to csv -o {1}/out": "aten::addmm",
    "query {0} --tables --format csv": "events,10,",
    "report {0} -o {1}/out": "",
    "doctor {0}": "",
    "advise {0}": "",
    "stacks {0}": "",
    "device {0}": "",
    "roofline {0}": "",
    "critical-path {0}": "",
    "recover {2} -o {1}/out": "",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_opens_a_trace_can_leave_synthetic_events_out(
    command: str, synthetic_path: str, printed: Callable[..., str], tmp_path: Path
) -> None:
    words, mark = (
        command.format(synthetic_path, tmp_path, spill(tmp_path / "p", 3)).split(),
        COMMANDS[command],
    )
    output = tmp_path / "out"
    shown = printed(*words) + (output.read_text() if mark and output.exists() else "")
    ran = printed(*words, "--as-recorded") + (output.read_text() if mark and output.exists() else "")
    if mark:
        assert mark in shown
        assert mark not in ran


def test_every_command_that_takes_strict_takes_as_recorded() -> None:
    (commands,) = (a for a in cli.make_parser()._actions if isinstance(a, argparse._SubParsersAction))
    tested = {command.split()[0] for command in COMMANDS}
    for name, parser in commands.choices.items():
        # ranks are always compared by what ran; recover takes a folder that a program spilled
        if name in ("ranks", "fleet", "recover"):
            continue
        options = {option for action in parser._actions for option in action.option_strings}
        assert ("--strict" in options) == ("--as-recorded" in options) == (name in tested)
