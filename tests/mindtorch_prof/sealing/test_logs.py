"""Tests of mindtorch_prof.sealing.logs: blocks of integers."""

from __future__ import annotations

import numpy as np

from mindtorch_prof.sealing.logs import Logs


def logs(**blocks: list[int]) -> Logs:
    return Logs({(kind, 0): [np.array(integers, np.int64)] for kind, integers in blocks.items()}.items())


def test_blocks_are_joined_in_the_order_in_which_they_came() -> None:
    all_of_it = logs(memory=[1, 2, 3, 4])
    all_of_it.add(logs(memory=[5, 6, 7, 8], steps=[1, 2, 3]))
    assert all_of_it.joined("memory").tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert all_of_it.joined("memory").tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert (all_of_it.count("memory", 4), all_of_it.nbytes) == (2, 88)


def test_a_log_that_is_missing_is_empty() -> None:
    assert logs().joined("memory").shape == (0, 4)
    assert logs().joined("tensors").shape == (0,)


def test_places_are_counted_anew_where_the_beginning_was_dropped() -> None:
    cut = logs()
    cut.dropped["calls", 5], cut.kept_calls[5] = 10, np.array([2, 7])
    assert cut.call_places(5, np.array([0, 3, 8, 10, 12])).tolist() == [0, 1, 2, 2, 4]
    cut.dropped["tensors", 0] = 10
    assert cut.tensor_places(0, np.array([-1, 3, 10, 15])).tolist() == [-1, -1, 0, 5]
