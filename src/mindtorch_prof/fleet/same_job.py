"""Whether ranks are of one job: the facts of each in; one sentence that says why they cannot be, or nothing, out.

Ranks are compared with each other only if their files may be of one job: one world size and backend, collectives in common, and
recordings of one time. What a file does not say is no reason.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from .job import JobRank

_EPOCH_NS = 10**18  # in 2001: smaller times count from another beginning, such as a machine's start
_APART_NS = 60 * 10**9  # clocks of machines that work on one job differ by less


@dataclass(frozen=True)
class JobFacts:
    """What a rank's files say about its job."""

    file: str
    world_size: int | None
    backend: str
    collectives: frozenset[str]  # types of the rank's collectives; empty: it has none
    window_ns: tuple[int, int] | None  # first start and last end since 1970; None: not known


def job_facts(rank: JobRank) -> JobFacts:
    """The facts of a rank: of its first file, but for the time, which is from the first to the last of its files."""
    first, last = rank.sketches[0], rank.sketches[-1]
    known = [collectives for each in rank.sketches if len(collectives := each.collectives)]
    is_since_epoch = first.base_ns > _EPOCH_NS
    return JobFacts(
        os.path.basename(first.file),
        first.world_size,
        first.backend,
        frozenset(kind for collectives in known for kind in collectives.types),
        (first.base_ns, last.base_ns + last.length_ns) if is_since_epoch else None,
    )


def unrelated_ranks(ranks: Sequence[JobRank]) -> str:
    """Why ranks cannot be of one job, or the files of one rank: as a part of a sentence; empty: they may be."""
    for rank in ranks:
        # times are no reason here: one rank may be recorded again and again
        files = [
            JobFacts(os.path.basename(each.file), each.world_size, each.backend, frozenset(), None)
            for each in rank.sketches
        ]
        if reason := unrelated(files):
            return reason
    return unrelated([job_facts(rank) for rank in ranks])


def unrelated(files: Sequence[JobFacts]) -> str:
    """Why files cannot be the ranks of one job, as a part of a sentence; empty: they may be."""
    for one, other in pairwise(files):
        reason = _difference(one, other)
        if reason:
            return reason
    return ""


def _difference(one: JobFacts, other: JobFacts) -> str:
    names = f"{one.file} and {other.file}"
    if None not in (one.world_size, other.world_size) and one.world_size != other.world_size:
        return f"the world sizes of {names} are {one.world_size} and {other.world_size}"
    if one.backend and other.backend and one.backend != other.backend:
        return f"the backends of {names} are {one.backend} and {other.backend}"
    if one.window_ns and other.window_ns:
        apart = max(one.window_ns[0], other.window_ns[0]) - min(one.window_ns[1], other.window_ns[1])
        if apart > _APART_NS:
            return f"{names} were recorded {_duration(apart)} apart"
        if one.world_size is not None and one.world_size == other.world_size:
            return ""  # a short recording of one job may hold other collectives on one rank than on another
    if one.collectives and other.collectives and not one.collectives & other.collectives:
        return (
            f"{names} have no collective in common "
            f"({_first(one.collectives)} in one, {_first(other.collectives)} in the other)"
        )
    if bool(one.collectives) != bool(other.collectives):
        has, lacks = (one, other) if one.collectives else (other, one)
        return f"{has.file} has collectives ({_first(has.collectives)}) and {lacks.file} has none"
    return ""


def _first(names: frozenset[str]) -> str:
    first = min(names)
    return first if len(first) <= 48 else first[:45] + "..."


def _duration(ns: int) -> str:
    seconds = ns / 1e9
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"
