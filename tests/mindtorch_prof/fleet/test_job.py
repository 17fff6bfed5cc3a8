"""The job: ranks in order, files of one rank joined, and everything that is missing named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from trace_file_builder import TraceFileBuilder, rank_steps

from mindtorch_prof.fleet.job import Job, job_of
from mindtorch_prof.fleet.phases import Cell
from mindtorch_prof.fleet.sketch import Missing, Sketch, merge_all, sketch_of
from mindtorch_prof.load import load


def sketch(trace: TraceFileBuilder, path: Path) -> Sketch:
    return sketch_of(load(trace.dump(path)).trace, path.name, str(path))


def job(tmp_path: Path, *ranks: int, world: int = 0) -> Job:
    parts = []
    for rank in ranks:
        trace = rank_steps(rank, 100)
        trace.top["distributedInfo"]["world_size"] = world or len(ranks)
        parts.append(sketch(trace, tmp_path / f"{rank}.json"))
    return job_of(merge_all(parts))


def test_ranks_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    ranks = job(tmp_path, 10, 2, 0, 1, world=11)
    assert [rank.label for rank in ranks.ranks] == ["rank 0", "rank 1", "rank 2", "rank 10"]
    assert ranks.steps == (0, 1, 2, 3, 4, 5)
    assert ranks.step_ns.shape == (4, 6)


def test_ranks_without_a_file_are_named_unless_most_are(tmp_path: Path) -> None:
    assert job(tmp_path, 0, 1, 3, world=4).missing == (Missing(None, 2, "no file of this rank"),)
    assert job(tmp_path, 0, 1, world=128).missing == (
        Missing(None, None, "2 of 128 ranks of the job are here"),
    )


def test_the_same_content_counts_once_and_its_copy_is_named(tmp_path: Path) -> None:
    one = sketch(rank_steps(0, 100), tmp_path / "a.json")
    copy = Sketch((replace(one.ranks[0], files=("b.json",)),))
    joined = job_of(merge_all([one, copy]))
    assert len(joined) == 1
    assert Missing("b.json", 0, f"the same content as {tmp_path / 'a.json'}") in joined.missing


def later(rank: int, shift_us: float, first: int) -> TraceFileBuilder:
    trace = rank_steps(rank, 100)
    for event in trace.events:
        event["ts"] += shift_us
        if str(event["name"]).startswith("ProfilerStep#"):
            event["name"] = f"ProfilerStep#{int(event['name'].partition('#')[2]) + first}"
    return trace


def test_recordings_of_one_rank_that_follow_each_other_are_joined(tmp_path: Path) -> None:
    parts = [sketch(later(0, 1e6, 6), tmp_path / "b.json"), sketch(rank_steps(0, 100), tmp_path / "a.json")]
    (rank,) = job_of(merge_all(parts)).ranks
    assert rank.steps == tuple(range(12))
    assert (rank.step_start_ns[1:] > rank.step_start_ns[:-1]).all()
    cells, values = job_of(merge_all(parts)).cells(on_device=True)
    assert cells == (Cell("", "", "gemm"),)
    assert values.shape == (1, 12, 1)


def test_a_second_recording_of_a_rank_at_the_same_time_is_left_out(tmp_path: Path) -> None:
    parts = [sketch(later(0, 100, 0), tmp_path / "b.json"), sketch(rank_steps(0, 100), tmp_path / "a.json")]
    joined = job_of(merge_all(parts))
    assert [rank.file for rank in joined.ranks] == [str(tmp_path / "a.json")]
    assert any("a second recording of rank 0" in each.reason for each in joined.missing)


@pytest.mark.parametrize("steps", [(0, 1, 2), (4, 5)])
def test_only_steps_that_all_ranks_have_are_compared(tmp_path: Path, steps: tuple[int, ...]) -> None:
    short = later(1, 0, 0)
    short.events = [
        e
        for e in short.events
        if not str(e["name"]).startswith("ProfilerStep#") or int(e["name"].partition("#")[2]) in steps
    ]
    joined = job_of(
        merge_all([sketch(rank_steps(0, 100), tmp_path / "0.json"), sketch(short, tmp_path / "1.json")])
    )
    assert joined.steps == steps
    assert joined.step_ns.shape == (2, len(steps))
