"""`mindtorch-prof advise`: its text, its JSON and its exit code."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from kineto_documents import waiting_device

from mindtorch_prof import cli, load


def test_the_command_tells_and_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(waiting_device(tmp_path / "d.json"))
    assert cli.main(["advise", path]) == 1
    text = capsys.readouterr().out
    assert "[synchronisation]" in text
    assert "next step: wait less often" in text
    assert "2 x  aten::item" in text
    assert "3 suggestions\nnote: the critical path of the whole recording" in text
    assert cli.main(["advise", path, "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["file"] == path
    assert [row["code"] for row in document["rows"]] == ["host_bound", "synchronisation", "launch_bound"]
    assert document["rows"][1]["evidence"][0]["count"] == 2
    assert document["notes"][0] in text.replace("\n  ", " ")
    assert cli.main(["advise", path, "--format", "csv"]) == 1
    header, *rows = csv.reader(capsys.readouterr().out.splitlines())
    assert header == ["code", "share", "at_stake_us", "count", "message", "advice"]
    assert rows
    assert all(float(row[1]) > 0 for row in rows)
    assert cli.main(["advise", path, "--format", "md", "--top", "1"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| Code | Share | At stake |")
    assert len(lines) == 3


def test_the_command_is_silent_about_what_does_not_pay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(waiting_device(tmp_path / "d.json"))
    assert cli.main(["advise", path, "--min-share", "99%"]) == 0
    assert capsys.readouterr().out.startswith("no suggestions\n")
    assert cli.main(["advise", str(tmp_path / "missing.json")]) == 2


def test_the_command_and_the_library_call_print_the_same_suggestions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(waiting_device(tmp_path / "d.json"))
    cli.main(["advise", path])
    suggestions = capsys.readouterr().out.partition("3 suggestions")[0]
    assert str(load(path).advise()).startswith(suggestions)


def test_the_critical_path_of_a_trace_without_steps_is_not_said_to_be_of_a_step(
    ecosystem: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["advise", str(ecosystem / "nsys" / "h100_2gpu_1s.sqlite.gz")])
    text = capsys.readouterr().out
    assert "\n  critical path: 969.448ms, without it 695.184ms\n" in text
    assert "of the step" not in text
