"""Metadata of device events: a trace file's texts in, named and typed values out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple


class EventMetadata(NamedTuple):
    """What a device says of a kernel, a copy or a collective; None where it says nothing."""

    registers_per_thread: int | None
    shared_memory: int | None
    grid: list[int] | None
    block: list[int] | None
    priority: int | None
    blocks_per_sm: float | None
    warps_per_sm: float | None
    occupancy: dict[str, object] | None
    est_occupancy_pct: float | None
    queued: int | None
    graph_id: int | None
    graph_node_id: int | None
    stream: int | None
    context: int | None
    channel: int | None
    channel_type: int | None
    bytes: int | None
    bandwidth_gb_s: float | None
    collective_name: str | None
    dtype: str | None
    in_msg_nelems: int | None
    out_msg_nelems: int | None
    in_split_size: str | None
    out_split_size: str | None
    global_rank_start: int | None
    global_rank_stride: int | None
    group_size: int | None
    process_group_name: str | None
    process_group_desc: str | None
    group_ranks: str | None
    rank: int | None
    src_rank: int | None
    dst_rank: int | None
    seq: int | None
    is_async: bool | None


# fields whose name in a trace file is not the field's name with spaces
_NAMES = {
    "blocks_per_sm": "blocks per SM",
    "warps_per_sm": "warps per SM",
    "est_occupancy_pct": "est. achieved occupancy %",
    "channel_type": "channel_type",
    "bandwidth_gb_s": "memory bandwidth (GB/s)",
    "collective_name": "Collective name",
    "in_msg_nelems": "In msg nelems",
    "out_msg_nelems": "Out msg nelems",
    "in_split_size": "In split size",
    "out_split_size": "Out split size",
    "global_rank_start": "Global rank start",
    "global_rank_stride": "Global rank stride",
    "group_size": "Group size",
    "process_group_name": "Process Group Name",
    "process_group_desc": "Process Group Description",
    "group_ranks": "Process Group Ranks",
    "rank": "Rank",
    "src_rank": "Src Rank",
    "dst_rank": "Dst Rank",
    "seq": "Seq",
    "is_async": "Is asynchronized op",
}


def _text(value: str) -> str:
    return value.strip('"')


def _truth(value: str) -> bool:
    return value in ("true", "1")


def _reader(annotation: str) -> Callable[[str], object]:
    readers: dict[str, Callable[[str], object]] = {"int": int, "float": float, "str": _text, "bool": _truth}
    return readers.get(annotation.partition(" | ")[0], json.loads)


_READERS = {
    _NAMES.get(field, field.replace("_", " ")): (field, _reader(getattr(annotation, "__forward_arg__", "")))
    for field, annotation in EventMetadata.__annotations__.items()
}


def event_metadata(texts: dict[str, str] | None) -> EventMetadata | None:
    """The values of texts by their names in a trace file; None where no name is known."""
    values: dict[str, object] = {}
    for name, text in (texts or {}).items():
        if name in _READERS:
            field, read = _READERS[name]
            values[field] = read(text)
    return EventMetadata._make(map(values.get, EventMetadata._fields)) if values else None
