"""Findings: what slows a job besides one straggler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fleet_jobs import GLOO, NCCL, make_job
from trace_file_builder import TraceFileBuilder

from mindtorch_prof import fleet
from mindtorch_prof.fleet.findings import Finding
from mindtorch_prof.fleet.report import FleetReport


def kinds(report: FleetReport) -> list[str]:
    return [finding.kind for finding in report.findings]


def one(report: FleetReport, kind: str) -> Finding:
    (finding,) = (each for each in report.findings if each.kind == kind)
    return finding


def test_two_stragglers_at_different_times_are_both_named(tmp_path: Path) -> None:
    make_job(tmp_path, GLOO, 6, 12, "host:1:3000:data:0-5", "host:4:3000:forward:6-11")
    report = fleet(tmp_path / "*.gz", workers=1)
    finding = one(report, "stragglers_at_different_times")
    assert report.verdict.straggler is None
    assert (finding.ranks, finding.steps) == ((1, 4), (106,))


def test_one_bad_step_is_named_with_the_rank_that_came_last(tmp_path: Path) -> None:
    make_job(tmp_path, GLOO, 6, 12, "host:3:60000:data:7-7")
    report = fleet(tmp_path / "*.gz", workers=1)
    finding = one(report, "bad_step")
    assert (finding.ranks, finding.steps) == ((3,), (107,))
    assert report.verdict.straggler is None


def test_a_slow_link_is_named_by_its_ranks_and_hosts(tmp_path: Path) -> None:
    make_job(tmp_path, NCCL, 8, 4, "link:2:4", group_size=2, ranks_per_host=4)
    report = fleet(tmp_path / "*.gz", workers=1)
    finding = one(report, "slow_link")
    assert finding.ranks == (4, 5)
    assert "rank 4, rank 5 (node1)" in finding.sentence
    assert "4.0 times as long" in finding.sentence


def test_ranks_that_are_late_because_of_a_slow_link_are_not_accused(tmp_path: Path) -> None:
    make_job(tmp_path, NCCL, 8, 4, "link:1:4", tensor_parallel=2, ranks_per_host=1, clock_us=20_000)
    report = fleet(tmp_path / "*.gz", workers=1)
    assert report.verdict.straggler is None
    assert report.verdict.sentence.startswith("no rank holds the others up by itself: a slow link does")
    finding = one(report, "slow_link")
    assert finding.ranks == (2, 3)
    assert "rank 2, rank 3 (node2 and node3)" in finding.sentence


def test_equal_links_are_not_mentioned(tmp_path: Path) -> None:
    make_job(tmp_path, NCCL, 8, 4, group_size=2)
    assert "slow_link" not in kinds(fleet(tmp_path / "*.gz", workers=1))


def write_rank(
    folder: Path, rank: int, calls: list[tuple[float, float, dict[str, Any]]], steps: int = 4
) -> None:
    """Steps of 1000 us with kernels of NCCL."""
    trace = TraceFileBuilder(rank)
    for step in range(steps):
        trace.step(step, 1000 * step, 990)
        op = trace.op("aten::mm", 1000 * step, 5)
        trace.launch(op, 1000 * step + 1, 1000 * step + 10, 50)
        for start, end, arguments in calls:
            trace.launch(op, 1000 * step + 2, 1000 * step + start, end - start, name="ncclDevKernel_SendRecv")
            trace.events[-2]["args"] |= {"dtype": "Float", **arguments}
    trace.close(1000 * steps).dump(folder / f"rank{rank}.json")


def test_an_unbalanced_all_to_all_names_the_rank_with_most(tmp_path: Path) -> None:
    for rank, received in enumerate([100, 100, 400, 100]):
        arguments = {"Collective name": "all_to_allv", "In msg nelems": 175, "Out msg nelems": received}
        write_rank(tmp_path, rank, [(100, 200, arguments)])
    finding = one(fleet(tmp_path, workers=1), "unbalanced_all_to_all")
    assert finding.ranks == (2,)
    assert "2.29 times the mean" in finding.sentence


def test_a_generated_job_with_an_unbalanced_all_to_all_names_it_and_no_straggler(tmp_path: Path) -> None:
    make_job(tmp_path / "unbalanced", NCCL, 6, 4, "all_to_all:3:3")
    make_job(tmp_path / "slightly", NCCL, 6, 4, "all_to_all:3:1.1")
    report = fleet(tmp_path / "unbalanced" / "*.gz", workers=1)
    assert report.verdict.straggler is None
    assert one(report, "unbalanced_all_to_all").ranks == (3,)
    assert "unbalanced_all_to_all" not in kinds(fleet(tmp_path / "slightly" / "*.gz", workers=1))


def test_the_stages_of_a_pipeline_are_no_stragglers_and_its_bubble_is_named(tmp_path: Path) -> None:
    make_job(tmp_path / "long", NCCL, 8, 4, "pipeline:4:3000", clock_us=20_000)
    make_job(tmp_path / "short", NCCL, 8, 4, "pipeline:4:20", clock_us=20_000)
    report = fleet(tmp_path / "long" / "*.gz", workers=1)
    assert report.verdict.straggler is None
    # the last stage waits for three others, 9 ms of steps of 21
    assert set(one(report, "pipeline_bubble").ranks) <= {3, 7}
    assert len(report.collectives) == 4 * (2 * 3 + 5)  # messages of two pipelines, and collectives of all
    quiet = fleet(tmp_path / "short" / "*.gz", workers=1)
    assert quiet.verdict.straggler is None
    assert "pipeline_bubble" not in kinds(quiet)


def test_a_pipeline_bubble_is_the_time_that_stages_wait_for_messages(tmp_path: Path) -> None:
    def message(kind: str, peer: int, start: float, end: float) -> tuple[float, float, dict[str, Any]]:
        other = "Dst Rank" if kind == "send" else "Src Rank"
        return start, end, {"Collective name": kind, other: peer, "In msg nelems": 8}

    write_rank(tmp_path, 0, [message("send", 1, 300, 310), message("recv", 1, 400, 810)])
    write_rank(tmp_path, 1, [message("recv", 0, 50, 310), message("send", 0, 800, 810)])
    finding = one(fleet(tmp_path, workers=1), "pipeline_bubble")
    assert finding.ranks == (0,)
    assert "rank 0 40%" in finding.sentence


def test_ranks_that_are_slow_together_are_said_to_communicate_or_to_idle(tmp_path: Path) -> None:
    arguments = {"Collective name": "allreduce", "In msg nelems": 8}
    for rank in range(3):
        write_rank(tmp_path, rank, [(100, 700, arguments)])
    report = fleet(tmp_path, workers=1)
    (finding,) = (each for each in report.findings if "communication is exposed" in each.sentence)
    assert "for 61% of the step, 61% without waiting" in finding.sentence


def test_communication_that_is_waiting_for_a_late_rank_is_not_all_ranks_together(tmp_path: Path) -> None:
    arguments = {"Collective name": "allreduce", "In msg nelems": 8}
    for rank, starts in enumerate([100, 100, 690]):
        write_rank(tmp_path, rank, [(starts, 700, arguments)])
    report = fleet(tmp_path, workers=1, threshold=0.9)  # so that nobody is named
    assert not [each for each in report.findings if "communication is exposed" in each.sentence]
