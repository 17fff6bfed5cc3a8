"""`mindtorch-prof diff`: its text and formats, its exit codes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from trace_file_builder import repeated_ops, training

from mindtorch_prof import cli


def test_the_command_prints_what_differs_and_fails_only_when_asked_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = training(6).dump(tmp_path / "a.json"), training(6, slow=2, extra=True).dump(tmp_path / "b.json.gz")
    assert cli.main(["diff", a, b]) == 0
    text = capsys.readouterr().out
    assert "per step: 6 steps in A, 6 in B" in text
    assert "noise floor:" in text
    assert [line.split()[:2] for line in text.splitlines() if "aten::erf" in line] == [["added", "aten::erf"]]
    assert cli.main(["diff", a, b, "--fail-on-change"]) == 1
    assert cli.main(["diff", a, a, "--fail-on-change"]) == 0
    assert "no differences" in capsys.readouterr().out


def test_the_command_gives_json_csv_and_markdown_with_stable_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = training(6).dump(tmp_path / "a.json"), training(6, extra=True).dump(tmp_path / "b.json")
    cli.main(["diff", a, b, "--format", "json", "--by", "op,shape"])
    data = json.loads(capsys.readouterr().out)
    assert data["differences"] == len(data["rows"])
    added = [row for row in data["rows"] if row["op"] == "aten::erf"]
    assert [(row["status"], row["count_a"], row["count_b"]) for row in added] == [("added", 0, 1)]
    cli.main(["diff", a, b, "--format", "csv", "--top", "1"])
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith("status,op,count_a,count_b,count_delta,self_cpu_a")
    assert len(rows) == 1
    cli.main(["diff", a, a, "--format", "md"])
    assert "no differences" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--by", "colour"], ["--threshold", "much"], ["--per", "step"]])
def test_the_command_refuses_what_it_cannot_do(arguments: list[str], tmp_path: Path) -> None:
    a = repeated_ops([("mm", 1, 5)]).dump(tmp_path / "a.json")
    try:
        code = cli.main(["diff", a, a, *arguments])
    except SystemExit as ended:
        code = ended.code
    assert code == 2


def test_a_file_that_is_no_trace_ends_the_command_with_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text("hello")
    assert cli.main(["diff", str(tmp_path / "a.json"), str(tmp_path / "a.json")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
