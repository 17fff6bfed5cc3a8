"""What if: the step without what one rank, op or phase takes longer than the median rank."""

from __future__ import annotations

from pathlib import Path

import pytest
from fleet_jobs import GLOO, NCCL, make_job
from trace_file_builder import TraceFileBuilder

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


def test_the_figures_of_a_small_job_are_those_computed_by_hand(tmp_path: Path) -> None:
    # own times in ms: rank 0: 2 + 3, rank 1: 6 + 3, rank 2: 2 + 5; then all wait for rank 1
    for rank, (first, second) in enumerate([(2000, 3000), (6000, 3000), (2000, 5000)]):
        trace = TraceFileBuilder(rank)
        for step in range(4):
            begin = 10_000 * step
            trace.step(step, begin, 10_000)
            trace.op("aten::mm", begin, first)
            trace.op("aten::add", begin + first, second)
            trace.op("c10d::allreduce_", begin + first + second, 10_000 - first - second)
        trace.close(40_000).dump(tmp_path / f"rank{rank}.json")
    what_if = fleet(tmp_path, workers=1).what_if
    assert what_if is not None
    # medians over ranks: 2 + 3; the slowest rank works 9, so a step is 4 shorter
    assert (what_if.step_us, what_if.ideal_step_us, what_if.slowdown) == (
        10_000,
        6_000,
        pytest.approx(10 / 6),
    )
    # rank 1 alone at its medians: then rank 2 works longest, 7
    assert what_if.by_rank == ((1, 2_000),)
    # mm alone at its median: 5, 5, 7; add alone: 5, 9, 5
    assert what_if.by_op == (("aten::mm", 2_000),)


@pytest.mark.parametrize("seed", range(3))
def test_no_change_makes_a_step_longer_or_saves_more_than_the_step(tmp_path: Path, seed: int) -> None:
    make_job(tmp_path, GLOO, 4, 4, f"host:{seed}:2000:data", jitter=0.05, seed=seed)
    what_if = fleet(tmp_path / "*.gz", workers=1).what_if
    assert what_if is not None
    assert 0 < what_if.ideal_step_us <= what_if.step_us
    for _, us in (*what_if.by_rank, *what_if.by_op, *what_if.by_stage):
        assert 0 < us <= what_if.step_us
