"""Runners: the same bytes from each; a worker that dies costs one file; an interrupt leaves no process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet_jobs import GLOO, make_job

from mindtorch_prof.fleet.runners import in_process, in_processes, worker_count
from mindtorch_prof.fleet.task import Task

SOURCE = Path(__file__).parents[3] / "src"


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("job")
    make_job(folder, GLOO, 6, 2)
    (folder / "rank6.json.gz").write_bytes(b"hello")
    return sorted(map(str, folder.glob("*.gz")))


class Deadly:
    """A task that ends its process at some files, always or once."""

    def __init__(self, folder: Path, always: str, once: str) -> None:
        self.folder, self.always, self.once = str(folder), always, once

    def __call__(self, path: str) -> bytes:
        name = os.path.basename(path)
        mark = os.path.join(self.folder, "died")
        if name == self.always or (name == self.once and not os.path.exists(mark)):
            Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return Task()(path)


def test_workers_give_the_bytes_of_this_process_in_any_order(paths: list[str]) -> None:
    alone = in_process(paths, Task()).to_bytes()
    assert in_processes(paths, Task(), workers=2).to_bytes() == alone
    assert in_processes(paths[::-1], Task(), workers=3).to_bytes() == alone
    assert in_process(paths[::-1], Task()).to_bytes() == alone


def test_a_worker_that_dies_costs_the_file_that_kills_it_alone(paths: list[str], tmp_path: Path) -> None:
    progress: list[tuple[int, int]] = []
    task = Deadly(tmp_path, always="rank2.json.gz", once="rank4.json.gz")
    sketch = in_processes(paths, task, lambda done, total: progress.append((done, total)), workers=2)
    assert sorted(rank.rank or 0 for rank in sketch.ranks) == [0, 1, 3, 4, 5]
    assert [(Path(each.file or "").name, each.reason) for each in sketch.missing] == [
        ("rank2.json.gz", "the process that read it ended: killed (signal 9), probably for want of memory"),
        ("rank6.json.gz", "not a trace (expected JSON that begins with { or [, or the same packed by gzip)"),
    ]
    assert progress[-1] == (7, 7)


def test_an_error_of_this_package_is_raised_and_not_waited_for(paths: list[str]) -> None:
    with pytest.raises(ValueError, match="not a packed sketch"):
        in_processes(paths, str.encode, workers=2)  # bytes that are no sketch


def children(pid: int) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                yield int(entry.name)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see processes")
def test_an_interrupt_ends_promptly_and_leaves_nothing_running(paths: list[str], tmp_path: Path) -> None:
    # a pipe that nobody writes to: reading it takes for ever
    for place in range(4):
        os.mkfifo(tmp_path / f"rank{place}.json")
    command = [
        sys.executable,
        "-m",
        "mindtorch_prof",
        "fleet",
        *map(str, tmp_path.iterdir()),
        "--workers",
        "2",
    ]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(SOURCE)}, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 300
        while len(workers := list(children(process.pid))) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(workers) == 2
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 130
    finally:
        process.kill()
        process.communicate()
    assert [pid for pid in workers if Path(f"/proc/{pid}").exists()] == []


def test_there_are_not_more_workers_than_files_or_memory_allow(
    tmp_path: Path, paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert worker_count(paths[:1]) == 1
    assert worker_count(paths, 3) == 3
    monkeypatch.setattr(os.path, "getsize", lambda path: 1 << 40)
    assert worker_count(paths) == 1
