"""Tests of mindtorch_prof.sealing.raw: numbers that must not be mistaken for one another."""

from __future__ import annotations

import numpy as np

from mindtorch_prof.sealing import raw


def test_numbers_of_variants_fit_into_the_column_of_inputs() -> None:
    assert np.iinfo(np.int32).max >= raw.VARIANTS + (1 << 20)


def test_keys_of_ranges_are_above_those_of_ops_and_fit_into_a_row() -> None:
    assert (1 << 32) < raw.RANGES < np.iinfo(np.int64).max
