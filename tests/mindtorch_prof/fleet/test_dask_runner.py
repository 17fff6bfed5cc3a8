"""The runner on Dask: a real cluster, the bytes of every other runner, and workers that die in the middle."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet_jobs import GLOO, make_job
from slow_task import Slow

from mindtorch_prof import fleet
from mindtorch_prof.fleet import dask_runner
from mindtorch_prof.fleet.dask_runner import DaskError, run_on
from mindtorch_prof.fleet.runners import in_process
from mindtorch_prof.fleet.task import Task

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("job")
    make_job(folder, GLOO, 20, 1)
    (folder / "rank20.json.gz").write_bytes(b"hello")
    return sorted(map(str, folder.glob("*.gz")))


@pytest.fixture(scope="module")
def client() -> Iterator[object]:
    import dask

    with dask.config.set({"distributed.scheduler.allowed-failures": 2}):
        cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit="2GiB"
        )
        with cluster, distributed.Client(cluster) as client:
            client.wait_for_workers(2, timeout=60)
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
        deadline = time.monotonic() + 60
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
    client: object, paths: list[str], tmp_path: Path
) -> None:
    sketch = run_on(client, paths, Slow(tmp_path, deadly="rank3.json.gz"))  # type: ignore[arg-type]
    assert len(sketch.ranks) == 19
    reasons = {Path(each.file or "").name: each.reason for each in sketch.missing}
    assert reasons["rank3.json.gz"] == "the workers that read it died, probably for want of memory"
    assert set(reasons) == {"rank3.json.gz", "rank20.json.gz"}


def test_the_cluster_of_an_address_gives_the_same_report(client: object, paths: list[str]) -> None:
    address: str = client.scheduler.address  # type: ignore[attr-defined]
    report = fleet(paths, scheduler=address)
    assert report.to_dict() == fleet(paths, workers=1).to_dict()


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_runner, "_START_TIMEOUT", "1s")
    with pytest.raises(DaskError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        fleet([str(GLOO)], scheduler="tcp://127.0.0.1:9")


def test_a_cluster_without_workers_is_given_up(monkeypatch: pytest.MonkeyPatch, paths: list[str]) -> None:
    monkeypatch.setattr(dask_runner, "_NO_WORKER_S", 0.5)
    cluster = distributed.LocalCluster(n_workers=0, dashboard_address=":0")
    with (
        cluster,
        distributed.Client(cluster) as client,
        pytest.raises(DaskError, match=r"no worker for 0\.5 seconds; 21 files are not read"),
    ):
        run_on(client, paths, Task())
