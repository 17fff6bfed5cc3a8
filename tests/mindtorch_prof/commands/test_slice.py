"""`mindtorch-prof slice`: selections on the command line, and what it refuses."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from trace_file_builder import read_trace, training

from mindtorch_prof import cli


def counts(events: list[dict[str, Any]], phase: str = "X") -> Counter[str]:
    return Counter(event["name"] for event in events if event["ph"] == phase)


def test_the_command_writes_a_slice_and_says_what_is_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = training(4).dump(tmp_path / "a.json.gz"), tmp_path / "b.json"
    assert (
        cli.main(
            [
                "slice",
                path,
                "-o",
                str(out),
                "--steps",
                "0,2-3",
                "--drop",
                "memory,flows",
                "--time",
                "0us..0.35ms",
            ]
        )
        == 0
    )
    assert capsys.readouterr().out.startswith(f"{out}: ")
    assert counts(read_trace(out)["traceEvents"])["aten::relu"] == 3
    assert cli.main(["slice", path, "-o", str(out), "--name", "relu", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["kept"] == len(read_trace(out)["traceEvents"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["--steps", "5-3"],
        ["--steps", "x"],
        ["--time", "3"],
        ["--time", "2s..1s"],
        ["--name", "("],
        ["--steps", "77"],
        ["--min-us", "-1"],
    ],
)
def test_the_command_refuses_bad_selections_and_keeps_the_old_file(
    arguments: list[str], tmp_path: Path
) -> None:
    path, out = training(2).dump(tmp_path / "a.json"), tmp_path / "b.json"
    out.write_text("old")
    try:
        code = cli.main(["slice", path, "-o", str(out), *arguments])
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert out.read_text() == "old"


def test_a_damaged_file_is_cut_with_a_note_and_refused_when_strict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.json"
    training(3).dump(path)
    path.write_text(path.read_text()[:-200])
    assert cli.main(["slice", str(path), "-o", str(tmp_path / "b.json"), "--steps", "1"]) == 0
    assert "note: the end of the file is missing" in capsys.readouterr().out
    assert cli.main(["slice", str(path), "-o", str(tmp_path / "c.json"), "--steps", "1", "--strict"]) == 2
    assert not (tmp_path / "c.json").exists()


def test_the_range_asked_for_is_reported_and_what_it_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = training(4).dump(tmp_path / "a.json"), str(tmp_path / "b.json")
    # the kernel of the first step is launched at 5 us and runs from 60 to 90 us
    arguments = ["slice", path, "-o", out, "--time", "0..50us"]
    assert cli.main(arguments) == 0
    assert "; 0.000us to 50.000us (its events: 0.000us to 90.000us);" in capsys.readouterr().out
    assert cli.main([*arguments, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["from_us"], data["to_us"]) == (0, 50)
    assert (data["kept_from_us"], data["kept_to_us"]) == (0, 90)
    assert cli.main(["slice", path, "-o", out, "--time", "0..1s", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["to_us"] < 500  # the trace is no longer than that
