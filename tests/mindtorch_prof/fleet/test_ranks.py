"""Stragglers: the rank that waits least is the slow one."""

from __future__ import annotations

from pathlib import Path

import pytest
from trace_file_builder import TraceFileBuilder, rank_steps

from mindtorch_prof.fleet.ranks import rank_report
from mindtorch_prof.rewrite.merge import merge_traces


def test_the_rank_that_waits_least_is_the_slow_one(tmp_path: Path) -> None:
    paths = [
        rank_steps(rank, work).dump(tmp_path / f"{rank}.json") for rank, work in enumerate([90, 100, 160, 95])
    ]
    report = rank_report(paths)
    assert [row.label for row in report.slow] == ["rank 2"]
    assert {round(row.step_us) for row in report.rows} == {199}
    slow = report.rows[2]
    assert slow.slowest == 6
    assert slow.work_us == pytest.approx(161)
    assert slow.communication_us == slow.exposed_us == pytest.approx(38)
    merge_traces(paths, tmp_path / "all.json.gz")
    again = rank_report([tmp_path / "all.json.gz"])
    assert again.to_dicts() == report.to_dicts()


def test_equal_ranks_have_no_slow_one(tmp_path: Path) -> None:
    paths = [rank_steps(rank, 100).dump(tmp_path / f"{rank}.json") for rank in range(3)]
    report = rank_report(paths)
    assert not report.slow
    assert report.skew_us == 0


def test_files_without_steps_are_compared_as_a_whole_and_a_note_says_so(tmp_path: Path) -> None:
    paths = []
    for rank, length in enumerate((100, 150)):
        trace = TraceFileBuilder(rank)
        trace.op("aten::mm", 1, length)
        paths.append(trace.close(length + 10).dump(tmp_path / f"{rank}.json"))
    report = rank_report(paths)
    assert report.steps == ()
    assert [row.step_us for row in report.rows] == [100.0, 150.0]
    assert report.notes == (
        "no steps (ProfilerStep#N): whole traces are compared",
        "no collectives in the traces: ranks are compared by step time",
    )


def test_no_files_are_no_ranks() -> None:
    with pytest.raises(ValueError, match="expected one trace file per rank"):
        rank_report([])
