"""The handler of finished recordings: files from a child process, whole, named after step and rank."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_prof import load, trace_handler
from mindtorch_prof.live import handler as module
from mindtorch_v2.profiler import profile, schedule


def train(handler: Any, cycles: int = 1) -> None:
    plan = schedule(wait=0, warmup=1, active=1, repeat=cycles)
    with profile(schedule=plan, on_trace_ready=handler) as prof:
        for _ in range(2 * cycles):
            torch.ones(2) + 1
            prof.step()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("background", [True, False])
def test_a_recording_becomes_a_trace_a_page_and_a_summary(
    tmp_path: Path, background: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = trace_handler(tmp_path / "runs", worker_name="w", background=background)
    train(handler)
    handler.wait()
    assert names(tmp_path / "runs") == ["w.step2.html", "w.step2.pt.trace.json.gz", "w.step2.summary.txt"]
    assert "aten::add" in load(tmp_path / "runs" / "w.step2.pt.trace.json.gz").trace.names
    assert "aten::add" in (tmp_path / "runs" / "w.step2.summary.txt").read_text()
    assert len(handler.pauses) == 1
    err = capsys.readouterr().err
    assert "step 2: the program was held up for " in err
    assert ("a child process writes it" in err) == background


@pytest.mark.filterwarnings("ignore:.*Profiler clears events")
def test_only_the_last_recordings_are_kept(tmp_path: Path) -> None:
    handler = trace_handler(tmp_path, worker_name="w", keep=2, report=False, quiet=True)
    train(handler, cycles=4)
    handler.wait()
    assert names(tmp_path) == ["w.step6.pt.trace.json.gz", "w.step8.pt.trace.json.gz"]


def test_the_rank_is_in_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    handler = trace_handler(tmp_path, worker_name="w", report=False, quiet=True)
    train(handler)
    handler.wait()
    assert names(tmp_path) == ["w.rank3.step2.pt.trace.json.gz"]


def test_what_a_child_could_not_write_is_written_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here, export = os.getpid(), module.export_trace

    def fails_in_children(prof: Any, path: str) -> None:
        if os.getpid() != here:
            raise OSError("no such luck")
        export(prof, path)

    monkeypatch.setattr(module, "export_trace", fails_in_children)
    handler = trace_handler(tmp_path, worker_name="w", report=False)
    train(handler)
    handler.wait()
    assert names(tmp_path) == ["w.step2.pt.trace.json.gz"]
    assert "failed (1); it is written now" in capsys.readouterr().err


def test_a_trace_that_cannot_be_written_does_not_end_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(prof: Any, path: str) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(module, "export_trace", fails)
    handler = trace_handler(tmp_path, report=False, background=False)
    train(handler)
    assert "cannot be written: disk full" in capsys.readouterr().err


def test_wrong_arguments_are_refused_before_anything_is_recorded(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="keep=0"):
        trace_handler(tmp_path, keep=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError):
        trace_handler(tmp_path / "file")


def test_a_worker_name_with_folders_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a file name without folders"):
        trace_handler(tmp_path, worker_name="../../x")
