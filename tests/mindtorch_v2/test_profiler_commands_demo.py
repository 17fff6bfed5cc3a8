"""`mindtorch-prof demo`: the run that the README shows."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest

from mindtorch_prof import cli, load
from mindtorch_prof.kernel_names import short_name

README = Path(__file__).parents[2] / "README.md"


def losses(text: str) -> list[tuple[int, float]]:
    return [
        (int(step), float(loss))
        for step, loss in re.findall(r"^step +(\d+)  loss ([\d.]+)$", text, re.MULTILINE)
    ]


class Terminal(io.StringIO):
    """Standard output as a terminal."""

    def isatty(self) -> bool:
        return True


def parts(text: str) -> tuple[list[str], list[str], list[str], str]:
    """What the demo prints: the words of the table's head, the names of its rows, the titles that do not fit,
    and the end without times."""
    before, _, after = text.partition("\nnot shown: ")
    table = before.partition("\n\n")[2].splitlines()
    rule = next(place for place, line in enumerate(table) if line.startswith("---"))
    names = [re.split(r"  +", line)[0] for line in table[rule + 1 :]]
    left_out, _, end = after.partition("\n\n")
    titles = " ".join(left_out.split()).partition(";")[0].split(", ")
    return sorted(" ".join(table[:rule]).split()), names, titles, re.sub(r"[\d.]+(ms|us|s)\b", "TIME", end)


def test_the_demo_prints_what_the_readme_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", screen := Terminal())
    assert cli.main(["demo"]) == 0
    printed = screen.getvalue()
    (shown,) = re.findall(r"^```text\n(step +1 .*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    assert (
        [step for step, _ in losses(printed)]
        == [step for step, _ in losses(shown)]
        == [1, *range(10, 101, 10)]
    )
    assert [loss for _, loss in losses(printed)] == pytest.approx(
        [loss for _, loss in losses(shown)], abs=2e-3
    )
    assert max(map(len, [*printed.splitlines(), *shown.splitlines()])) <= 80
    # which op is slowest differs from run to run, and with the times how many columns fit
    head, names, titles, end = parts(printed)
    shown_head, shown_names, shown_titles, shown_end = parts(shown)
    assert sorted([*head, *" ".join(titles).split()]) == sorted(
        [*shown_head, *" ".join(shown_titles).split()]
    )
    assert len(names) == len(shown_names) == 12
    keys = {str(row.key) for row in load("mindtorch-demo.pt.trace.json").key_averages()}
    keys |= {short_name(key) for key in keys}
    for name in {*names, *shown_names}:
        start, _, tail = name.partition("…")
        assert any(key.startswith(start) and key.endswith(tail) for key in keys), name
    assert end == shown_end
    assert "mindtorch-prof summary mindtorch-demo.pt.trace.json" in end


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
