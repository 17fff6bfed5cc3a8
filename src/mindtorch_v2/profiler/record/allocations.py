"""Rows of memory: births and ends as they were noted in; in the order of time, ends with the bytes of their births, out.

Memory that is still there when a recording stops is known to the next ones: its end is an event of theirs.
"""

from __future__ import annotations

import numpy as np

from ... import _storage

# By identity of a storage: bytes that earlier recordings saw allocated and that have not been freed since. Data, not a hook: it outlives
# recordings on purpose.
_still_allocated: dict[int, int] = {}


def forget_freed(row: tuple[int, int, int, int]) -> None:
    """Listens to frees while nothing records."""
    if row[1] == _storage.FREED:
        _still_allocated.pop(row[2], None)


def with_freed_bytes(rows: np.ndarray) -> tuple[np.ndarray, int]:
    """Rows (time, bytes or FREED, identity, thread, number) in order of time, the ends with the bytes of the birth before them; ends of
    what no recording saw taken are left out, and empty memory too. And the bytes that were there before the first of them."""
    order = np.lexsort((np.arange(len(rows)), rows[:, 0], rows[:, 2]))
    rows = rows[order]
    ends = rows[:, 1] == _storage.FREED
    same = np.zeros(len(rows), bool)  # as the row before
    same[1:] = rows[1:, 2] == rows[:-1, 2]
    before = np.roll(rows, 1, axis=0)
    known = ends & same & (before[:, 1] > 0)
    rows[ends, 1] = 0
    rows[known, 1], rows[known, 4] = -before[known, 1], before[known, 4]
    held = _meet_earlier(rows, ~same) if _still_allocated else 0
    staying = np.roll(~same, -1) & (rows[:, 1] > 0)
    _still_allocated.update(zip(rows[staying, 2].tolist(), rows[staying, 1].tolist()))
    order = order[rows[:, 1] != 0]
    rows = rows[rows[:, 1] != 0]
    # memory that grows ends when its successor is there: both are noted with one time
    return rows[np.lexsort((order, rows[:, 1] < 0, rows[:, 0]))], held


def _meet_earlier(rows: np.ndarray, first: np.ndarray) -> int:
    """Give the ends of what earlier recordings saw taken their bytes; the bytes of all that. first: of rows with one identity."""
    held = sum(_still_allocated.values())
    for row in np.flatnonzero(first).tolist():
        nbytes = _still_allocated.pop(int(rows[row, 2]), 0)
        if rows[row, 1] > 0:
            held -= nbytes  # this recording's own, when it was stopped before
        else:
            rows[row, 1] = -nbytes
    return held
