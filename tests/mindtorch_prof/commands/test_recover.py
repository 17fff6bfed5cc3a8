"""Tests of mindtorch_prof.commands.recover: trace files from spill folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from spilled_recording import spill

import mindtorch_prof
from mindtorch_prof.cli import main


def test_a_trace_is_written_and_a_line_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spill(tmp_path / "p", 3)
    out = tmp_path / "t.json.gz"
    assert main(["recover", str(tmp_path / "p"), "-o", str(out)]) == 0
    assert len(mindtorch_prof.load(out).trace) == 3
    told = capsys.readouterr().err
    assert "3 events; the recording was not stopped: the process was killed" in told


def test_several_recordings_give_numbered_files(tmp_path: Path) -> None:
    for count in (1, 2):
        spill(tmp_path / "p", count)
    assert main(["recover", str(tmp_path / "p"), "-o", str(tmp_path / "t.json")]) == 0
    assert [len(mindtorch_prof.load(tmp_path / f"t.{n}.json").trace) for n in (1, 2)] == [1, 2]


def test_one_recording_that_cannot_be_read_does_not_stop_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = Path(spill(tmp_path / "p", 1))
    spill(tmp_path / "p", 2)
    (first / "000001.segment").write_bytes(b"")
    assert main(["recover", str(tmp_path / "p"), "-o", str(tmp_path / "t.json")]) == 1
    assert "without a whole chunk" in capsys.readouterr().err
    assert len(mindtorch_prof.load(tmp_path / "t.2.json").trace) == 2


def test_a_folder_without_recordings_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recover", str(tmp_path)]) == 2
    assert "holds no spilled recording" in capsys.readouterr().err


def test_every_command_takes_the_folder_like_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spill(tmp_path / "p", 3)
    for command in ("summary", "show", "tree"):
        assert main([command, str(tmp_path / "p")]) == 0
        assert "aten::add" in capsys.readouterr().out
    assert main(["doctor", str(tmp_path / "p")]) == 1
    assert "was killed" in capsys.readouterr().out
