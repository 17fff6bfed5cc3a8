"""Options of `run`: what they make of the command line. Programs that run are in live/test_run_torch.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindtorch_prof import cli
from mindtorch_prof.commands import run
from mindtorch_prof.live.window import Window


def options_of(*words: str) -> object:
    return cli.make_parser(["run"]).parse_args(["run", *words, "train.py"])


@pytest.mark.parametrize(
    ("words", "window"),
    [
        ([], Window(repeat=1)),
        (["--steps", "5-10"], Window(5, 10, repeat=1)),
        (["--steps", "5-"], Window(5, None, repeat=1)),
        (["--steps", "4"], Window(0, 3, repeat=1)),
        (["--steps", "5-10", "--every", "1000"], Window(5, 10, 1000)),
        (["--every", "1000"], Window(1000, 1000, 1000)),
        (["--schedule", "1,2,3"], Window(3, 5, 6, 1, 2)),
        (["--schedule", "0,1,1,0"], Window(1, 1, 2, 0, 1)),
        (["--seconds", "20"], Window(seconds=20.0)),
        (["--on-signal", "USR2", "--seconds", "3"], Window(seconds=3.0, signal="USR2")),
    ],
)
def test_options_say_what_is_recorded(words: list[str], window: Window) -> None:
    assert run.window_of(options_of(*words)) == window  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "words",
    [
        ["--seconds", "5", "--steps", "3"],
        ["--on-signal", "USR2", "--every", "3"],
        ["--steps", "5-", "--every", "10"],
        ["--steps", "5-10", "--every", "6"],
        ["--schedule", "1,1,1", "--every", "6"],
    ],
)
def test_options_that_exclude_each_other_are_refused(words: list[str]) -> None:
    with pytest.raises(run.CommandError, match="expected"):
        run.window_of(options_of(*words))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "words",
    [["--seconds", "0"], ["--on-signal", "TERM"], ["--every", "0"], ["--steps", "9-3"], ["--torch", "x"]],
)
def test_wrong_values_end_with_code_2_and_a_usage_line(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        options_of(*words)
    assert ended.value.code == 2
    assert "usage: mindtorch-prof run" in capsys.readouterr().err


def test_launchers_are_told_to_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "-m", "torch.distributed.run", "train.py"]) == 2
    assert "torchrun ... -m mindtorch_prof run --rank-from-env train.py" in capsys.readouterr().err


def test_a_rank_must_be_there_if_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
        monkeypatch.delenv(name, raising=False)
    assert cli.main(["run", "--rank-from-env", "train.py"]) == 2
    assert "the environment has no rank" in capsys.readouterr().err


def test_the_folder_is_looked_at_before_the_program_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text("raise SystemExit('started')")
    output = tmp_path / "no" / "out.json"
    assert cli.main(["run", "-o", str(output), str(tmp_path / "train.py")]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_what_needs_real_torch_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    assert cli.main(["run", "--torch", "mindtorch", "--seconds", "3", "train.py"]) == 2
    assert "--seconds needs real torch" in capsys.readouterr().err
    monkeypatch.setenv(run.CHOICE, "nothing")
    assert cli.main(["run", "train.py"]) == 2
    assert "MINDTORCH_PROF_TORCH=nothing: expected real or mindtorch" in capsys.readouterr().err
