"""Threads that ran one after the other under one identity: when each took it over in, a number for each thread out.

Python gives a new thread the identity of one that has ended. What is recorded is noted under identities; here the threads that had the
same one are told apart by time.
"""

from __future__ import annotations

import numpy as np


class ThreadLives:
    """takeovers: rows of (identity, native id before and now, time), when a thread got the identity of one that had ended."""

    def __init__(self, takeovers: np.ndarray) -> None:
        self._takeovers = {
            int(identity): takeovers[takeovers[:, 0] == identity] for identity in np.unique(takeovers[:, 0])
        }

    def numbers(self, identity: np.ndarray, time_ns: np.ndarray) -> np.ndarray:
        """By row, the number of the thread that had this identity at this time.

        The first keeps the identity, the next one has 1 more, and so on: events keep their order, and identities, which are addresses
        of stacks, lie much further apart.
        """
        if not self._takeovers:
            return identity
        numbers = identity.copy()
        for of_ended, rows in self._takeovers.items():
            mine = identity == of_ended
            numbers[mine] += np.searchsorted(rows[:, 3], time_ns[mine], side="right")
        return numbers

    def native_ids(self, native_ids: dict[int, int]) -> dict[int, int]:
        """The native ids by number. native_ids: by identity, that of the last thread which had it."""
        by_number = dict(native_ids)
        for identity, rows in self._takeovers.items():
            natives = [int(rows[0, 1]), *rows[:, 2].tolist()]
            by_number.update((identity + place, native) for place, native in enumerate(natives))
        return by_number
