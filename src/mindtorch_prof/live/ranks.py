"""Ranks of a job: the environment of a process in; its rank and the number of processes out."""

from __future__ import annotations

import os
from collections.abc import Mapping

# (rank, number of processes) as launchers name them: torchrun and most others, Slurm, Open MPI, MPICH
_NAMES = (
    ("RANK", "WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)


def rank_from_environment(environment: Mapping[str, str] | None = None) -> tuple[int, int] | None:
    """Rank and number of processes of this process; None: no launcher says them."""
    environment = os.environ if environment is None else environment
    for rank_name, size_name in _NAMES:
        rank, size = environment.get(rank_name, ""), environment.get(size_name, "")
        if rank.isdecimal() and size.isdecimal():
            return int(rank), int(size)
    return None


def with_rank(path: str, rank: int) -> str:
    """out.pt.trace.json.gz -> out.rank3.pt.trace.json.gz"""
    return with_part(path, f"rank{rank}")


def with_part(path: str, part: str) -> str:
    """A path with a part added to its name, before the suffixes."""
    folder, name = os.path.split(path)
    stem, dot, suffix = name.partition(".")
    return os.path.join(folder, f"{stem}.{part}{dot}{suffix}")
