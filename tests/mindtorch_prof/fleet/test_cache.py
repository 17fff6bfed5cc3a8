"""The cache: a content is read once, wherever it lies; damaged and foreign entries are read again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fleet_jobs import GLOO, NCCL

from mindtorch_prof.fleet import task as task_module
from mindtorch_prof.fleet.cache import digest_of
from mindtorch_prof.fleet.task import Task


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are loaded."""
    paths: list[str] = []
    load = task_module.load

    def counted(path: str, **more: bool) -> object:
        paths.append(Path(path).name)
        return load(path, **more)

    monkeypatch.setattr(task_module, "load", counted)
    return paths


def test_a_second_run_reads_only_what_is_new(tmp_path: Path, reads: list[str]) -> None:
    task = Task(cache=str(tmp_path / "cache"))
    first = task(str(GLOO))
    assert task(str(GLOO)) == first == Task()(str(GLOO))
    task(str(NCCL))
    assert reads == ["gloo_rank.json.gz", "gloo_rank.json.gz", "nccl_rank.json.gz"]


def test_a_file_that_was_moved_keeps_its_sketch_and_shows_its_new_place(
    tmp_path: Path, reads: list[str]
) -> None:
    task = Task(cache=str(tmp_path / "cache"))
    task(str(GLOO))
    shutil.copy(GLOO, tmp_path / "moved.json.gz")
    assert task.sketch(str(tmp_path / "moved.json.gz")).ranks[0].files == (str(tmp_path / "moved.json.gz"),)
    assert reads == ["gloo_rank.json.gz"]


def test_a_damaged_entry_is_read_again_and_replaced(tmp_path: Path, reads: list[str]) -> None:
    task = Task(cache=str(tmp_path))
    first = task(str(GLOO))
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(entry.read_bytes()[:50])
    assert task(str(GLOO)) == task(str(GLOO)) == first
    assert len(reads) == 2


def test_the_digest_of_a_recording_is_that_of_its_results(tmp_path: Path) -> None:
    folder = tmp_path / "x_ascend_pt"
    (folder / "ASCEND_PROFILER_OUTPUT").mkdir(parents=True)
    (folder / "PROF_1").mkdir()
    (folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").write_text("[]")
    (folder / "PROF_1" / "raw.bin").write_text("raw")
    before = digest_of(str(folder))
    (folder / "PROF_1" / "raw.bin").write_text("other")
    assert digest_of(str(folder)) == before
    (folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").write_text("[1]")
    assert digest_of(str(folder)) != before
