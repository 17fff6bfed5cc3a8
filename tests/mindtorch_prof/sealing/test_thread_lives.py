"""Tests of mindtorch_prof.sealing.thread_lives: threads that had one identity after the other."""

from __future__ import annotations

import numpy as np

from mindtorch_prof.sealing.thread_lives import ThreadLives


def test_the_time_tells_which_thread_had_an_identity() -> None:
    lives = ThreadLives(np.array([[7000, 1, 2, 100], [9000, 5, 6, 150], [7000, 2, 3, 200]]))
    identity = np.array([7000, 7000, 7000, 7000, 8000, 9000, 9000])
    time = np.array([99, 100, 199, 200, 500, 149, 151])
    assert lives.numbers(identity, time).tolist() == [7000, 7001, 7001, 7002, 8000, 9000, 9001]
    assert lives.native_ids({7000: 3, 8000: 4, 9000: 6}) == {
        7000: 1, 7001: 2, 7002: 3, 8000: 4, 9000: 5, 9001: 6,
    }  # fmt: skip
