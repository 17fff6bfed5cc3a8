"""Merged files: the Trace of a file in; one Trace per rank in it out. A file of one rank gives one."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from ..arrays import BoolArray
from ..json_types import JSONValue, whole_number
from ..trace import Device, Memory, Trace

_Table = TypeVar("_Table", Device, Memory)
_EVENT_COLUMNS = (
    "name", "start_ns", "end_ns", "thread", "kind", "scope", "sequence", "forward_thread", "inputs", "flops", "stack",
)  # fmt: skip


def ranks_in(trace: Trace) -> list[Trace]:
    """The trace itself; of a file that `merge` wrote, the part of each rank, in the order of the file's list."""
    merged = trace.settings.metadata.get("merged")
    entries = [entry for entry in merged if isinstance(entry, dict)] if isinstance(merged, list) else []
    parts = []
    for entry in entries:
        pids = entry.get("pids")
        if isinstance(pids, list):
            parts.append(_part(trace, pids, entry))
    return [part for part in parts if len(part) or len(part.device)] or [trace]


def _part(trace: Trace, pids: list[JSONValue], entry: dict[str, JSONValue]) -> Trace:
    """The events of some processes, with the rank and host that the list names."""
    wanted = {repr(pid) for pid in pids}
    by_thread = {thread: repr(pid) in wanted for thread, pid in trace.settings.thread_pids.items()}
    threads, place = np.unique(trace.thread, return_inverse=True)
    is_wanted = np.array([by_thread.get(thread, False) for thread in threads.tolist()] or [False])
    kept = is_wanted[place.reshape(-1)]
    numbers = np.array([pid for pid in map(whole_number, pids) if pid is not None], np.int64)
    device = trace.device
    launched_here = (device.launch >= 0) & kept[device.launch] if len(trace) else np.zeros(len(device), bool)
    on_device = np.isin(device.device, numbers) | launched_here
    rank, host = entry.get("rank"), entry.get("host_name")
    return replace(
        _of_events(trace, kept, on_device),
        settings=replace(
            trace.settings,
            rank=whole_number(rank),
            host_name=host if isinstance(host, str) else "",
        ),
    )


def _of_events(trace: Trace, kept: BoolArray, on_device: BoolArray) -> Trace:
    rows = np.flatnonzero(kept)
    new_row = np.full(len(trace), -1, np.int64)
    new_row[rows] = np.arange(len(rows))
    device = _chosen(trace.device, on_device).moved(new_row)
    in_memory = np.isin(trace.memory.thread, np.unique(trace.thread[rows]))
    empty = Trace(trace.names, trace.overloads, *(getattr(trace, each)[rows] for each in _EVENT_COLUMNS))
    return replace(
        empty,
        input_table=trace.input_table,
        stacks=trace.stacks,
        memory=_chosen(trace.memory, in_memory),
        device=device,
        extra=None if trace.extra is None else trace.extra[rows],
        extra_table=trace.extra_table,
        health=trace.health,
        origin_ns=trace.origin_ns,
        window_ns=trace.window_ns,
        synthetic=None if trace.synthetic is None else trace.synthetic[rows],
    )


def _chosen(table: _Table, rows: BoolArray) -> _Table:
    """The rows of a table of columns."""
    arrays = {
        name: value[rows]
        for name, value in vars(table).items()
        if isinstance(value, np.ndarray) and len(value) == len(rows)
    }
    return replace(table, **arrays)  # type: ignore[arg-type]  # fields that are no arrays stay
