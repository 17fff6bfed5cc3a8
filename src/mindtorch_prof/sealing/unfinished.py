"""Ranges and Python calls that had not ended: Logs in; the same Logs, in which they end at a time, out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..arrays import IntArray
from .logs import Logs
from .python_calls import matched
from .raw import RETURN


def end_open(logs: Logs, ranges: Mapping[int, IntArray], width: int, now: int) -> int:
    """Let the ranges (by thread, rows of this width) and the calls that were open end now; how many ranges there were."""
    count = 0
    for thread, rows in ranges.items():
        rows = rows.reshape(-1, width).copy()
        rows[:, 2] = np.maximum(now, rows[:, 1])
        logs.blocks.setdefault(("rows", thread), []).append(rows.reshape(-1))
        count += len(rows)
    for thread in logs.threads("calls"):
        log = logs.joined("calls", thread)
        n_open = int(np.count_nonzero(matched(log[:, 0] != RETURN)[1] < 0))
        if n_open:
            logs.blocks["calls", thread].append(np.array([(RETURN, now)] * n_open, np.int64).reshape(-1))
    return count
