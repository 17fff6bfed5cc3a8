"""Merged files: a file of one rank is that rank; the parts of a merged one have their own events and rank."""

from __future__ import annotations

from pathlib import Path

from fleet_jobs import GLOO
from trace_file_builder import rank_steps

from mindtorch_prof.fleet.merged_files import ranks_in
from mindtorch_prof.load import load
from mindtorch_prof.rewrite.merge import merge_traces


def test_a_file_of_one_rank_is_that_rank() -> None:
    trace = load(GLOO).trace
    assert ranks_in(trace) == [trace]


def test_the_parts_of_a_merged_file_share_nothing(tmp_path: Path) -> None:
    paths = [rank_steps(rank, 90).dump(tmp_path / f"{rank}.json") for rank in (4, 2)]
    merge_traces(paths, tmp_path / "all.json")
    whole = load(tmp_path / "all.json").trace
    parts = ranks_in(whole)
    assert [part.settings.rank for part in parts] == [4, 2]
    assert sum(map(len, parts)) == len(whole)
    assert sum(len(part.device) for part in parts) == len(whole.device)
    for part in parts:
        launches = part.device.launch
        assert (launches >= 0).all()
        assert {part.names[n] for n in part.name[launches].tolist()} == {"cudaLaunchKernel"}
