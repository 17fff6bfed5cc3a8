"""Ranks as launchers say them, and in the names of files."""

from __future__ import annotations

from mindtorch_prof.live.ranks import rank_from_environment, with_part, with_rank


def test_ranks_are_read_as_each_launcher_names_them() -> None:
    assert rank_from_environment({"RANK": "3", "WORLD_SIZE": "8"}) == (3, 8)
    assert rank_from_environment({"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}) == (1, 2)
    assert rank_from_environment({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4"}) == (0, 4)
    assert rank_from_environment({"RANK": "3"}) is None
    assert rank_from_environment({}) is None


def test_a_part_stands_before_all_suffixes() -> None:
    assert with_rank("/a/out.pt.trace.json.gz", 3) == "/a/out.rank3.pt.trace.json.gz"
    assert with_part("out", "2") == "out.2"
