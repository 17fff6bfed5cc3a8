"""Allocations: the recorder's memory rows in; rows in order of time, frees with the bytes of their allocation, out.

Memory that is still allocated when a recording stops is remembered, so that a later recording can show when it is freed.
"""

from __future__ import annotations

import numpy as np

from ... import _storage

# By allocation id: bytes that earlier recordings saw allocated and that have not been freed since. Data, not a hook: it outlives
# recordings on purpose.
_still_allocated: dict[int, int] = {}


def forget_freed(row: tuple[int, int, int, int]) -> None:
    """The free listener while nothing records."""
    if row[1] == _storage.FREED:
        _still_allocated.pop(row[2], None)


def with_freed_bytes(rows: np.ndarray) -> tuple[np.ndarray, int]:
    """Rows (time, bytes or FREED, allocation id, thread, storage id) in order of time, and the bytes that were allocated before the
    first of them. Frees get the negative bytes of their allocation. Frees of memory that no recording saw allocated are left out, as
    are allocations of 0 bytes."""
    order = np.lexsort((np.arange(len(rows)), rows[:, 0], rows[:, 2]))
    rows = rows[order]
    frees = rows[:, 1] == _storage.FREED
    same_id = np.zeros(len(rows), bool)  # whether the row before has the same allocation id
    same_id[1:] = rows[1:, 2] == rows[:-1, 2]
    before = np.roll(rows, 1, axis=0)
    matched = frees & same_id & (before[:, 1] > 0)
    rows[frees, 1] = 0
    rows[matched, 1], rows[matched, 4] = -before[matched, 1], before[matched, 4]
    allocated_before = _match_earlier(rows, ~same_id) if _still_allocated else 0
    not_freed = np.roll(~same_id, -1) & (rows[:, 1] > 0)
    _still_allocated.update(zip(rows[not_freed, 2].tolist(), rows[not_freed, 1].tolist()))
    order = order[rows[:, 1] != 0]
    rows = rows[rows[:, 1] != 0]
    # a resize frees the old memory after it has allocated the new; both rows have the same time
    return rows[np.lexsort((order, rows[:, 1] < 0, rows[:, 0]))], allocated_before


def _match_earlier(rows: np.ndarray, first_of_id: np.ndarray) -> int:
    """Give frees of memory that earlier recordings saw allocated their bytes. Returns the bytes that were allocated before this
    recording. first_of_id: whether a row is the first with its allocation id."""
    allocated = sum(_still_allocated.values())
    for row in np.flatnonzero(first_of_id).tolist():
        nbytes = _still_allocated.pop(int(rows[row, 2]), 0)
        if rows[row, 1] > 0:
            allocated -= nbytes  # allocated in this recording, in a window that was sealed before
        else:
            rows[row, 1] = -nbytes
    return allocated
