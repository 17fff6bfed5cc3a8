"""The verdict: real jobs and planted faults, on host and device, in every phase; and nobody if nobody is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from fleet_jobs import GLOO, NCCL, make_job
from free_ports import free_port

from mindtorch_prof import fleet

PHASES = ["data", "forward", "backward", "optimizer"]


def test_the_straggler_of_a_real_job_is_named_and_no_cause_is_made_up(ecosystem: Path) -> None:
    verdict = fleet(ecosystem / "ranks" / "dlrm_8", workers=1).verdict
    assert verdict.straggler == 7
    assert (verdict.phase, verdict.where) == (None, None)
    assert verdict.late_us == pytest.approx(4507, abs=10)  # the median rank waits 6.0 ms, this one 1.5
    assert "cause not in the trace" in verdict.sentence


@pytest.mark.parametrize("phase", PHASES)
def test_a_late_host_of_a_job_on_devices_is_named_with_its_phase(tmp_path: Path, phase: str) -> None:
    make_job(tmp_path, NCCL, 6, 5, f"host:4:2500:{phase}", clock_us=20_000)
    verdict = fleet(tmp_path / "*.gz", workers=1).verdict
    assert (verdict.straggler, verdict.phase, verdict.where) == (4, phase, "host")
    assert verdict.explained > 0.8
    assert verdict.late_us == pytest.approx(2500, rel=0.1)


@pytest.mark.parametrize("phase", ["forward", "backward"])
def test_a_slow_device_is_named_with_the_phase_that_launched_its_kernels(tmp_path: Path, phase: str) -> None:
    make_job(tmp_path, NCCL, 6, 5, f"device:0:2000:{phase}", clock_us=20_000)
    verdict = fleet(tmp_path / "*.gz", workers=1).verdict
    assert (verdict.straggler, verdict.phase, verdict.where) == (0, phase, "device")


@pytest.mark.parametrize(
    ("fault", "where", "numbers"),
    [("host:5:2500:forward", "host", False), ("device:5:2000:backward", "device", True)],
)
def test_a_rank_of_a_job_with_tensor_and_data_parallel_groups_is_named(
    tmp_path: Path, fault: str, where: str, numbers: bool
) -> None:
    more = {"tensor_parallel": 2, "sequence_numbers": numbers, "clock_us": 20_000}
    make_job(tmp_path, NCCL, 8, 6, fault, "window:3:2", **more)
    report = fleet(tmp_path / "*.gz", workers=1)
    verdict = report.verdict
    assert (verdict.straggler, verdict.phase, verdict.where) == (5, fault.rpartition(":")[2], where)
    assert report.collectives.matched_by == ("sequence number" if numbers else "order within steps",)
    assert not {each.kind for each in report.findings} - {"all_slow_together"}


def test_of_two_ranks_on_devices_that_are_late_at_once_both_are_named(tmp_path: Path) -> None:
    make_job(tmp_path, NCCL, 8, 5, "host:3:3000:forward", "host:6:3000:forward")
    verdict = fleet(tmp_path / "*.gz", workers=1).verdict
    assert (verdict.straggler, verdict.also) == (3, (6,))
    assert "also late: rank 6" in verdict.sentence


@pytest.mark.parametrize("phase", PHASES)
def test_one_of_64_ranks_on_gloo_is_named_with_its_phase(tmp_path: Path, phase: str) -> None:
    faults = f"host:41:2500:{phase}", "missing:7", "truncated:9", "window:11:1"
    make_job(tmp_path, GLOO, 64, 6, *faults, clock_us=50_000, jitter=0.01)
    report = fleet(tmp_path / "*.gz", workers=1)
    verdict = report.verdict
    assert (verdict.straggler, verdict.phase, verdict.where) == (41, phase, "host")
    assert [(each.rank, each.reason[:9]) for each in report.missing] == [(7, "no file o"), (9, "truncated")]
    assert len(report.job) == 62


@pytest.mark.parametrize("base", [GLOO, NCCL])
@pytest.mark.parametrize("seed", range(3))
def test_nobody_is_accused_where_all_are_late_by_chance(tmp_path: Path, base: Path, seed: int) -> None:
    make_job(tmp_path, base, 8, 5, clock_us=5000, jitter=0.05, seed=seed)
    verdict = fleet(tmp_path / "*.gz", workers=1).verdict
    assert verdict.straggler is None
    assert (verdict.phase, verdict.where, verdict.explained) == (None, None, 0.0)


@pytest.mark.parametrize("base", [GLOO, NCCL])
@pytest.mark.parametrize("steps", [2, 3])
def test_a_clear_straggler_is_named_in_few_steps_and_noise_is_not(
    tmp_path: Path, base: Path, steps: int
) -> None:
    make_job(tmp_path / "slow", base, 3, steps, "host:2:9000:forward", clock_us=5000)
    make_job(tmp_path / "equal", base, 3, steps, clock_us=5000, jitter=0.05)
    verdict = fleet(tmp_path / "slow" / "*.gz", workers=1).verdict
    assert (verdict.straggler, verdict.phase, verdict.where) == (2, "forward", "host"), verdict.sentence
    assert verdict.late_us == pytest.approx(9000, rel=0.1)
    assert fleet(tmp_path / "equal" / "*.gz", workers=1).verdict.straggler is None


def test_collectives_that_overlap_on_hosts_are_no_independent_evidence(tmp_path: Path) -> None:
    # one rank is late by chance for each backward pass: 3 times, not 6
    make_job(tmp_path, GLOO, 4, 3, "host:1:400:backward", jitter=0.0)
    report = fleet(tmp_path / "*.gz", workers=1, threshold=0.001)
    assert len(report.collectives) == 6
    assert report.tables.units.shape[1] < 5


def test_one_rank_has_nobody_to_compare_with() -> None:
    assert fleet(GLOO).verdict.sentence.startswith("one rank only")


@pytest.mark.parametrize("phase", [*PHASES, "none"])
def test_a_recorded_gloo_job_is_judged_rightly(
    tmp_path: Path, ecosystem: Path, phase: str, torch_reference: ModuleType
) -> None:
    words = [
        "--phase",
        phase,
        "--slow-rank",
        "1",
        "--slow-ms",
        "6",
        "--world",
        "3",
        "--steps",
        "8",
        "--skew-clock-ms",
        "30",
    ]
    command = [
        sys.executable,
        str(ecosystem / "make_ddp_traces.py"),
        str(tmp_path),
        "--port",
        str(free_port()),
        *words,
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    verdict = fleet(tmp_path / "*.gz", workers=1).verdict
    expected = (None, None) if phase == "none" else (1, phase)
    assert (verdict.straggler, verdict.phase) == expected, verdict.sentence
