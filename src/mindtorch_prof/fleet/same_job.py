"""Whether trace files are of one job: the facts of each file in; one sentence that says why they cannot be, or nothing, out.

Ranks are compared with each other only if their files may be of one job: one world size and backend, each rank once, the same process
groups and collectives, and recordings of one time. What a file does not say is no reason.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .. import communication
from ..json_types import JSONObject
from ..rewrite.raw_events import NONE, EventColumns

_EPOCH_NS = 10**18  # in 2001: smaller times count from another beginning, such as a machine's start
_APART_NS = 60 * 10**9  # clocks of machines that work on one job differ by less


@dataclass(frozen=True)
class JobFacts:
    """What a file says about its job."""

    file: str
    rank: int | None
    world_size: int | None
    backend: str
    groups: frozenset[str]  # process groups and their ranks; empty: not known
    collectives: frozenset[str]  # names of the file's communication; empty: it has none
    window_ns: tuple[int, int] | None  # first start and last end since 1970; None: not known


def job_facts(columns: EventColumns, path: str | os.PathLike[str]) -> JobFacts:
    """The facts of a file."""
    info = columns.head.top.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    world_size, backend = info.get("world_size"), info.get("backend")
    return JobFacts(
        os.path.basename(os.fspath(path)),
        columns.head.rank,
        world_size if isinstance(world_size, int) else None,
        backend if isinstance(backend, str) else "",
        _groups(info),
        _collectives(columns),
        _window(columns),
    )


def unrelated(files: Sequence[JobFacts]) -> str:
    """Why files cannot be the ranks of one job, as a part of a sentence; empty: they may be."""
    for one, other in pairwise(files):
        reason = _difference(one, other)
        if reason:
            return reason
    seen: dict[int, str] = {}
    for file in files:
        if file.rank is not None and file.rank in seen:
            return f"{seen[file.rank]} and {file.file} are both of rank {file.rank}"
        if file.rank is not None:
            seen[file.rank] = file.file
    return ""


def _difference(one: JobFacts, other: JobFacts) -> str:
    names = f"{one.file} and {other.file}"
    if None not in (one.world_size, other.world_size) and one.world_size != other.world_size:
        return f"the world sizes of {names} are {one.world_size} and {other.world_size}"
    if one.backend and other.backend and one.backend != other.backend:
        return f"the backends of {names} are {one.backend} and {other.backend}"
    if one.groups and other.groups and not one.groups & other.groups:
        return f"{names} have no process group in common"
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


def _groups(info: JSONObject) -> frozenset[str]:
    groups = info.get("pg_config")
    if not isinstance(groups, list):
        return frozenset()
    described = (group for group in groups if isinstance(group, dict))
    return frozenset(
        f"{group.get('pg_name')}: {group.get('ranks')} of {group.get('pg_size')}" for group in described
    )


def _collectives(columns: EventColumns) -> frozenset[str]:
    is_collective = communication.on_device(columns.names) | communication.on_host(columns.names)
    used = np.unique(columns.name[(columns.phase == ord("X")) & columns.by_name(is_collective.tolist())])
    return frozenset(columns.names[number] for number in used.tolist())


def _window(columns: EventColumns) -> tuple[int, int] | None:
    timed = (columns.phase == ord("X")) & (columns.start_ns != NONE)
    if not timed.any():
        return None
    base = columns.head.base_ns
    start, end = int(columns.start_ns[timed].min()) + base, int(columns.end_ns[timed].max()) + base
    return (start, end) if start > _EPOCH_NS else None


def _first(names: frozenset[str]) -> str:
    first = min(names)
    return first if len(first) <= 48 else first[:45] + "..."


def _duration(ns: int) -> str:
    seconds = ns / 1e9
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"
