"""`mindtorch_prof.fleet`: a function beside a package of that name; its answer depends on files alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from fleet_jobs import GLOO, make_job

import mindtorch_prof
from mindtorch_prof.fleet.sketch import Sketch


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    make_job(folder, GLOO, 5, 5, "host:2:3000:forward", "truncated:4", clock_us=1000)
    return folder


def test_the_answer_does_not_depend_on_runner_order_or_cache(job: Path, tmp_path: Path) -> None:
    files = sorted(job.glob("*.gz"))
    alone = mindtorch_prof.fleet(files, workers=1)
    assert alone.verdict.straggler == 2
    for report in (
        mindtorch_prof.fleet(files[::-1], workers=2),
        mindtorch_prof.fleet([*files[3:], *files[:3], files[0]], workers=1, cache=tmp_path),
        mindtorch_prof.fleet(str(job / "*.gz"), workers=1, cache=tmp_path),
    ):
        assert report.sketch.to_bytes() == alone.sketch.to_bytes()
        assert report.to_dict() == alone.to_dict()


def test_the_package_can_be_imported_from_beside_the_function() -> None:
    assert callable(mindtorch_prof.fleet)
    assert Sketch.__module__ == "mindtorch_prof.fleet.sketch"


def test_progress_counts_files(job: Path) -> None:
    calls: list[tuple[int, int]] = []
    mindtorch_prof.fleet(job / "*.gz", workers=1, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(n, 5) for n in range(1, 6)]


def test_the_threshold_decides_what_is_worth_naming(job: Path) -> None:
    assert mindtorch_prof.fleet(job / "*.gz", workers=1, threshold=0.5).verdict.straggler is None
