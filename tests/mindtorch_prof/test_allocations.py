"""Allocations: which free belongs to which allocation, and totals that count what a recording allocated."""

from __future__ import annotations

import numpy as np

from mindtorch_prof.allocations import lifetimes, totals_of_recording


def test_a_free_belongs_to_the_last_allocation_at_its_address() -> None:
    address, nbytes = np.array([1, 2, 1, 1, 2]), np.array([10, 20, -10, 30, -20])
    born, died = lifetimes(address, nbytes)
    assert (born.tolist(), died.tolist()) == ([0, 1, 3], [2, 4, -1])


def test_totals_of_a_recording_leave_out_frees_of_older_memory() -> None:
    address, nbytes = np.array([9, 1, 2, 1, 9]), np.array([-500, 10, 20, -10, -500])
    assert totals_of_recording(address, nbytes).tolist() == [0, 10, 30, 20, 20]
    assert totals_of_recording(address[:0], nbytes[:0]).tolist() == []
