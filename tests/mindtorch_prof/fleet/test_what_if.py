"""What if: the step without what one rank, op or phase takes longer than the median rank."""

from __future__ import annotations

from pathlib import Path

import pytest
from fleet_jobs import GLOO, NCCL, make_job

from mindtorch_prof import fleet


def test_the_excess_of_one_rank_is_what_the_step_would_be_shorter(tmp_path: Path) -> None:
    make_job(tmp_path, GLOO, 8, 5, "host:3:4000:optimizer", jitter=0.0)
    what_if = fleet(tmp_path / "*.gz", workers=1).what_if
    assert what_if is not None
    assert what_if.step_us - what_if.ideal_step_us == pytest.approx(4000, rel=0.02)
    assert what_if.by_rank == ((3, pytest.approx(4000, rel=0.02)),)
    assert what_if.by_stage[0] == ("optimizer", pytest.approx(4000, rel=0.02))
    assert what_if.by_op[0][1] == pytest.approx(4000, rel=0.02)
    assert what_if.slowdown == pytest.approx(what_if.step_us / (what_if.step_us - 4000), rel=0.01)


def test_equal_ranks_have_nothing_to_gain(tmp_path: Path) -> None:
    make_job(tmp_path, GLOO, 4, 5, jitter=0.0)
    what_if = fleet(tmp_path / "*.gz", workers=1).what_if
    assert what_if is not None
    assert what_if.slowdown == pytest.approx(1.0, abs=1e-6)
    assert sum(us for _, us in what_if.by_op) < 0.1


def test_a_slow_device_is_found_in_its_kernels(tmp_path: Path) -> None:
    make_job(tmp_path, NCCL, 4, 5, "device:2:3000:backward", jitter=0.0)
    what_if = fleet(tmp_path / "*.gz", workers=1).what_if
    assert what_if is not None
    assert what_if.by_rank[0][0] == 2
    assert what_if.by_stage[0][0] == "computation"
    assert what_if.by_stage[0][1] == pytest.approx(3000, rel=0.05)


def test_one_rank_has_no_what_if() -> None:
    assert fleet(GLOO).what_if is None
