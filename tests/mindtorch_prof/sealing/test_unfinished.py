"""Ranges that had not ended when the logs were taken."""

from __future__ import annotations

import numpy as np

from mindtorch_prof.sealing.logs import Logs
from mindtorch_prof.sealing.unfinished import end_open

WIDTH = 4  # key, start, end, sequence


def test_an_open_range_ends_now_and_one_that_began_later_is_left_out() -> None:
    logs = Logs()
    rows = np.array([[7, 100, 0, -1], [8, 301, 0, -1]], np.int64).reshape(-1)
    assert end_open(logs, {1: rows}, WIDTH, 300) == 1
    assert logs.blocks["rows", 1][0].tolist() == [7, 100, 300, -1]
