"""The newest part of a recording: Logs in, the Logs without what ended before a time, and how many events that were, out."""

from __future__ import annotations

import numpy as np

from ..arrays import IntArray
from .logs import OF_ALL, Logs
from .python_calls import matched
from .raw import RETURN

_TIME_OF = {
    "calls": 1,
    "memory": 0,
    "steps": 0,
    "collections": 1,
}  # the column that tells when a row was written


def n_events(logs: Logs, width: int) -> int:
    """How many events logs hold: ops, ranges, Python calls that returned, allocations and frees. width: integers per row."""
    n_returns = sum(int((block[::2] == RETURN).sum()) for (kind, _), block in logs if kind == "calls")
    return logs.count("rows", width) + n_returns + logs.count("memory", 4)


def newest(logs: Logs, width: int, most: int) -> tuple[Logs, int]:
    """The newest events, at most so many, and how many others there were."""
    ends = [logs.joined("rows", thread, width)[:, 2] for thread in logs.threads("rows")]
    for thread in logs.threads("calls"):
        log = logs.joined("calls", thread)
        ends.append(log[log[:, 0] == RETURN, 1])
    ends.append(logs.joined("memory")[:, 0])
    times = np.concatenate(ends)
    if len(times) <= most:
        return logs, 0
    times = np.partition(times, len(times) - most - 1)
    # of events that end together with the last one to go, none stays: there are at most as many as were asked for
    return since(logs, width, int(times[len(times) - most - 1]) + 1)


def since(logs: Logs, width: int, time_ns: int) -> tuple[Logs, int]:
    """The events that ended at this time or later, and how many others there were."""
    kept = Logs(natives=logs.natives)
    kept.dropped, kept.kept_calls = dict(logs.dropped), dict(logs.kept_calls)
    before = n_events(logs, width)
    for thread in logs.threads("rows"):
        rows = logs.joined("rows", thread, width)
        _put(kept, "rows", thread, rows[rows[:, 2] >= time_ns])
    for thread in logs.threads("calls"):
        _keep_calls(logs, kept, thread, time_ns)
    for kind in ("memory", "steps", "collections"):
        rows = logs.joined(kind)
        _put(kept, kind, OF_ALL, rows[rows[:, _TIME_OF[kind]] >= time_ns])
    earlier_ids = logs.joined("earlier_ids")
    _put(kept, "earlier_ids", OF_ALL, earlier_ids[earlier_ids[:, 0] >= time_ns])
    _put(kept, "takeovers", OF_ALL, logs.joined("takeovers"))
    _keep_tensors(logs, kept, width, time_ns)
    return kept, before - n_events(kept, width)


def _put(logs: Logs, kind: str, thread: int, rows: IntArray) -> None:
    if len(rows):
        logs.blocks[kind, thread] = [np.ascontiguousarray(rows).reshape(-1)]


def _keep_calls(logs: Logs, kept: Logs, thread: int, time_ns: int) -> None:
    """Keep the rows of calls from a time on, and before them those of the calls that had not returned then."""
    log = logs.joined("calls", thread)
    n_before = int(np.searchsorted(log[:, 1], time_ns))
    began, ended, _, _ = matched(log[:n_before, 0] != RETURN)
    is_open = began[ended < 0]
    first = logs.kept_calls.get(thread, np.empty(0, np.int64))
    dropped = logs.dropped.get(("calls", thread), 0)
    # the places of all rows, counted from the beginning of the recording
    place = np.concatenate([first, np.arange(dropped, dropped + len(log) - len(first))])
    kept.kept_calls[thread] = place[is_open]
    kept.dropped["calls", thread] = (
        int(place[n_before]) if n_before < len(log) else dropped + len(log) - len(first)
    )
    _put(kept, "calls", thread, np.concatenate([log[is_open], log[n_before:]]))


def _keep_tensors(logs: Logs, kept: Logs, width: int, time_ns: int) -> None:
    """Keep the tensors that the events which are kept refer to, and the storages of those. Numbers of tensors are times."""
    is_shared = logs.threads("tensors") == [OF_ALL]
    used = []
    for thread in logs.threads("tensors"):
        log = logs.joined("tensors", thread)
        dropped = logs.dropped.get(("tensors", thread), 0)
        places = [
            kept.joined("rows", each, width)[:, -1]
            for each in kept.threads("rows")
            if is_shared or each == thread
        ]
        place = np.concatenate(places) if places else np.empty(0, np.int64)
        place = place[place >= dropped]
        first = int(place.min()) if len(place) else dropped + len(log)
        kept.dropped["tensors", thread] = first
        _put(kept, "tensors", thread, log[first - dropped :])
        used.append(log[first - dropped :])
    storages = logs.joined("storages")
    if len(storages):
        is_used = np.isin(storages[:, 0], np.concatenate(used)) if used else np.zeros(len(storages), bool)
        _put(kept, "storages", OF_ALL, storages[is_used | (storages[:, 0] >= time_ns)])
