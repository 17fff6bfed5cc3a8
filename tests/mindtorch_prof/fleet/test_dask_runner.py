"""The runner on Dask: a real cluster, the bytes of every other runner, and workers that die in the middle."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet_jobs import GLOO, make_job
from slow_task import Slow

from mindtorch_prof import fleet
from mindtorch_prof.fleet import dask_runner
from mindtorch_prof.fleet.dask_runner import DaskError, WorkersLostError, on_dask, run_on
from mindtorch_prof.fleet.runners import in_process
from mindtorch_prof.fleet.task import Task

SOURCE = Path(__file__).parents[3] / "src"

distributed = pytest.importorskip("distributed", reason="runs with the extra `dask`")


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("job")
    make_job(folder, GLOO, 20, 1)
    (folder / "rank20.json.gz").write_bytes(b"hello")
    return sorted(map(str, folder.glob("*.gz")))


@pytest.fixture(scope="module")
def client() -> Iterator[object]:
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit="2GiB"
    )
    with cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=600)
        yield client


def test_a_cluster_gives_the_bytes_of_this_process(client: object, paths: list[str]) -> None:
    progress: list[int] = []
    sketch = run_on(client, paths, Task(), lambda done, total: progress.append(done))  # type: ignore[arg-type]
    assert sketch.to_bytes() == in_process(paths, Task()).to_bytes()
    assert progress == list(range(1, len(paths) + 1))


def test_a_worker_that_is_killed_in_the_middle_costs_nothing(
    client: object, paths: list[str], tmp_path: Path
) -> None:
    killed: list[int] = []

    def kill_one() -> None:
        deadline = time.monotonic() + 300
        while not (begun := list(tmp_path.iterdir())) and time.monotonic() < deadline:
            time.sleep(0.01)
        killed.append(int(begun[0].name.rpartition("-")[2]))
        os.kill(killed[0], 9)

    killer = threading.Thread(target=kill_one)
    killer.start()
    sketch = run_on(client, paths, Slow(tmp_path))  # type: ignore[arg-type]
    killer.join()
    assert sketch.to_bytes() == in_process(paths, Task()).to_bytes()
    assert len({path.name.rpartition("-")[2] for path in tmp_path.iterdir()} - {str(killed[0])}) >= 1


def test_a_file_that_kills_every_worker_costs_its_rank_alone(
    monkeypatch: pytest.MonkeyPatch, paths: list[str], tmp_path: Path
) -> None:
    import dask

    # a worker that dies before Dask has noted its start is not started again: then the cluster may have none
    monkeypatch.setattr(dask_runner, "_NO_WORKER_S", 10.0)
    with dask.config.set({"distributed.scheduler.allowed-failures": 2}):
        sketch = on_dask(paths, Slow(tmp_path, deadly="rank3.json.gz"), workers=2)
    assert len(sketch.ranks) == 19
    reasons = {Path(each.file or "").name: each.reason for each in sketch.missing}
    assert reasons["rank3.json.gz"] in (
        "the workers that read it died, probably for want of memory",
        "the process that read it ended: exit code 1",
    )
    assert set(reasons) == {"rank3.json.gz", "rank20.json.gz"}


def test_a_result_that_is_lost_after_its_file_was_read_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, client: object, paths: list[str]
) -> None:
    # as after the death of a worker: what had been done is under way again when it is looked at
    monkeypatch.setattr(dask_runner, "_completed", lambda futures, workers: futures)
    sketch = run_on(client, paths, Task())  # type: ignore[arg-type]
    assert len(sketch.ranks) == 20
    assert [Path(each.file or "").name for each in sketch.missing] == ["rank20.json.gz"]


def test_the_cluster_of_an_address_gives_the_same_report(client: object, paths: list[str]) -> None:
    address: str = client.scheduler.address  # type: ignore[attr-defined]
    report = fleet(paths, scheduler=address)
    assert report.to_dict() == fleet(paths, workers=1).to_dict()


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_runner, "_START_TIMEOUT", "1s")
    with pytest.raises(DaskError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        fleet([str(GLOO)], scheduler="tcp://127.0.0.1:9")


@pytest.fixture
def without_workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    monkeypatch.setattr(dask_runner, "_NO_WORKER_S", 0.5)
    cluster = distributed.LocalCluster(n_workers=0, dashboard_address=":0")
    with cluster, distributed.Client(cluster) as client:
        yield client


def test_a_cluster_without_workers_is_given_up(without_workers: object, paths: list[str]) -> None:
    address: str = without_workers.scheduler.address  # type: ignore[attr-defined]
    with pytest.raises(DaskError, match=r"no worker for 0\.5 seconds; 21 files are not read"):
        on_dask(paths, Task(), scheduler=address)


def test_the_files_of_a_cluster_of_this_machine_that_lost_its_workers_are_read_without_it(
    without_workers: object, monkeypatch: pytest.MonkeyPatch, paths: list[str]
) -> None:
    monkeypatch.setattr(dask_runner, "_client", lambda *_: contextlib.nullcontext(without_workers))
    progress: list[tuple[int, int]] = []
    sketch = on_dask(paths, Task(), lambda done, total: progress.append((done, total)), workers=1)
    assert sketch.to_bytes() == in_process(paths, Task()).to_bytes()
    assert progress == [(n, len(paths)) for n in range(1, len(paths) + 1)]


def test_results_that_are_lost_with_the_last_worker_are_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, paths: list[str]
) -> None:
    monkeypatch.setattr(dask_runner, "_NO_WORKER_S", 0.5)
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0")

    def leave(done: int, total: int) -> None:
        if done == total:  # all files are read, no result is here
            cluster.scale(0)
            deadline = time.monotonic() + 300
            while client.scheduler_info(n_workers=1)["workers"] and time.monotonic() < deadline:
                time.sleep(0.05)

    with cluster, distributed.Client(cluster) as client, pytest.raises(WorkersLostError) as lost:
        run_on(client, paths[:3], Task(), leave)
    assert len(lost.value.sketches) + len(lost.value.paths) == 3
    assert lost.value.paths


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see processes")
def test_an_interrupt_while_a_cluster_starts_ends_it_with_one_line(paths: list[str]) -> None:
    command = [sys.executable, "-m", "mindtorch_prof", "fleet", *paths, "--dask", "--workers", "2"]
    process = subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,  # a terminal sends Ctrl-C to all processes of the group
    )
    try:
        deadline = time.monotonic() + 300
        while len(_in_session(process.pid)) < 3 and time.monotonic() < deadline:  # workers are being started
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=600)
        deadline = time.monotonic() + 300
        while (left := _in_session(process.pid)) and time.monotonic() < deadline:
            time.sleep(0.01)  # multiprocessing's resource tracker ends when it sees that its parent has
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert left == []
    assert errors == b"mindtorch-prof: interrupted\n"


def _in_session(leader: int) -> list[int]:
    """The processes of a session that run."""
    running = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader and fields[0] != "Z":
                running.append(int(entry.name))
    return running
