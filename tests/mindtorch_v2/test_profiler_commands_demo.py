"""`mindtorch-prof demo`: the run that the README shows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mindtorch_prof import cli

README = Path(__file__).parents[2] / "README.md"


def losses(text: str) -> list[tuple[int, float]]:
    return [
        (int(step), float(loss))
        for step, loss in re.findall(r"^step +(\d+)  loss ([\d.]+)$", text, re.MULTILINE)
    ]


def test_the_demo_prints_the_losses_shown_in_the_readme(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["demo"]) == 0
    printed = losses(capsys.readouterr().out)
    shown = losses(README.read_text())
    assert [step for step, _ in printed] == [step for step, _ in shown] == [1, *range(10, 101, 10)]
    assert [loss for _, loss in printed] == pytest.approx([loss for _, loss in shown], abs=2e-3)


def test_the_demo_ends_with_the_last_step_and_repeats_itself(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["demo", "--steps", "3", "--seed", "7", "--trace", str(tmp_path / "demo.json")]
    assert cli.main(arguments) == 0
    first = losses(capsys.readouterr().out)
    assert [step for step, _ in first] == [1, 3]
    cli.main(arguments)
    assert losses(capsys.readouterr().out) == first


def test_the_demo_shows_where_the_time_went_and_writes_the_trace(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "demo.json"
    assert cli.main(["demo", "--steps", "2", "--rows", "3", "--trace", str(path)]) == 0
    text = capsys.readouterr().out
    assert "Self CPU time total: " in text
    assert str(path) in text
    ops = [e["name"] for e in json.loads(path.read_text())["traceEvents"] if e.get("cat") == "cpu_op"]
    assert ops.count("aten::addmm") == 4  # two layers, two steps


def test_the_demo_says_where_it_could_not_write(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "no such folder" / "demo.json"
    assert cli.main(["demo", "--steps", "1", "--trace", str(path)]) == 2
    assert f"{path}: cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("number", ["0", "many"])
def test_wrong_arguments_end_with_code_2_and_a_usage_line(
    number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["demo", "--steps", number])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: mindtorch-prof demo")
