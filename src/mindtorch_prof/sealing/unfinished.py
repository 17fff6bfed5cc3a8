"""Ranges and Python calls that had not ended: Logs in; the same Logs, in which they end at a time, out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..arrays import IntArray
from .logs import Logs
from .python_calls import matched
from .raw import RETURN


def begun_until(now: int, ranges: Mapping[int, IntArray], width: int) -> dict[int, IntArray]:
    """The ranges (by thread, rows of this width) that began until then."""
    parts = {thread: rows.reshape(-1, width) for thread, rows in ranges.items()}
    return {thread: rows[rows[:, 1] <= now].reshape(-1) for thread, rows in parts.items()}


def end_open(logs: Logs, ranges: Mapping[int, IntArray], width: int, now: int) -> int:
    """Let the ranges (by thread, rows of this width) and the calls that were open end now; how many ranges there were. A range that began
    later is left out: it began while the logs were taken, and refers to calls and tensors that are not in them."""
    count = 0
    for thread, rows in begun_until(now, ranges, width).items():
        rows = rows.reshape(-1, width).copy()
        rows[:, 2] = now
        logs.blocks.setdefault(("rows", thread), []).append(rows.reshape(-1))
        count += len(rows)
    for thread in logs.threads("calls"):
        log = logs.joined("calls", thread)
        n_open = int(np.count_nonzero(matched(log[:, 0] != RETURN)[1] < 0))
        if n_open:
            logs.blocks["calls", thread].append(np.array([(RETURN, now)] * n_open, np.int64).reshape(-1))
    return count
