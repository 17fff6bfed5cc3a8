"""Tests of mindtorch_prof.sealing.python_calls: calls and returns that belong together."""

from __future__ import annotations

import numpy as np
from raw_recordings import NamedFunctions

from mindtorch_prof.sealing.python_calls import CALL_SITE, Calls, matched


def test_calls_that_never_return_are_told_apart() -> None:
    began, ended, parent, _ = matched(np.array([True, True, False]))
    assert (began.tolist(), ended.tolist(), parent.tolist()) == ([0, 1], [-1, 2], [-1, 0])


def test_returns_of_calls_that_began_before_are_left_out() -> None:
    began, ended, parent, innermost = matched(np.array([False, True, False]))
    assert (began.tolist(), ended.tolist(), parent.tolist()) == ([1], [2], [-1])
    assert innermost.tolist() == [-1, -1, 0, -1]


def test_the_upper_half_of_a_call_is_where_it_was_made() -> None:
    log = np.array([[3 | 5 << CALL_SITE, 1], [0, 2]])
    calls = Calls(NamedFunctions("f"), {1: log})
    assert (calls.rows.number.tolist(), calls.rows.call_site.tolist()) == ([3], [4])
