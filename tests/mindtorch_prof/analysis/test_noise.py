"""Noise: the rank test is scipy's, comparisons are symmetric, and chance is rarely taken for a difference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindtorch_prof.analysis import noise
from mindtorch_prof.analysis.noise import common_shift, compare, exceeds, quantiles, rank_test

floats = st.lists(st.floats(1, 100), min_size=1, max_size=25).map(np.array)


@given(a=floats, b=floats)
def test_comparing_repeats_is_symmetric_and_equal_ones_never_differ(a: np.ndarray, b: np.ndarray) -> None:
    forth, back = compare(a, b), compare(b, a)
    assert forth.delta == -back.delta
    assert replace(forth, a=0, b=0, delta=0, repeats=(0, 0)) == replace(
        back, a=0, b=0, delta=0, repeats=(0, 0)
    )
    assert not compare(a, a).significant()
    assert forth.p is None or 0 <= forth.p <= 1


@given(a=floats, b=floats)
@settings(max_examples=25)
def test_the_rank_test_gives_scipys_p_value(a: np.ndarray, b: np.ndarray) -> None:
    from scipy import stats  # a dependency of the package

    tied = len(np.unique(np.concatenate([a, b]))) < len(a) + len(b)
    if len(np.unique(np.concatenate([a, b]))) == 1:
        assert rank_test(a, b) == 1
        return
    exact = not tied and max(len(a), len(b)) <= 20
    expected = stats.mannwhitneyu(a, b, method="exact" if exact else "asymptotic").pvalue
    assert rank_test(a, b) == pytest.approx(expected, rel=1e-6)


def test_equal_programs_are_told_apart_once_in_a_hundred_times_at_most() -> None:
    random = np.random.default_rng(0)
    told = sum(compare(random.gamma(9, 10, 8), random.gamma(9, 10, 8)).significant() for _ in range(1000))
    assert told <= 10


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 8, 30, 31, 998, 999])
def test_the_noise_floor_uses_students_distribution(freedom: int) -> None:
    from scipy import special  # a dependency of the package

    assert noise._t_quantile(freedom) == pytest.approx(special.stdtrit(freedom, 0.9995), rel=1e-9)


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 2))
def test_a_difference_beyond_a_share_is_one_whichever_side_comes_first(
    a: float, b: float, share: float
) -> None:
    assert exceeds(a, b, share) == exceeds(b, a, share)


def test_a_slower_machine_is_told_from_a_slower_row_by_all_rows_together() -> None:
    before = np.arange(10, 20, dtype=float)
    after = before * 1.25
    after[3] *= 4
    shift, scatter = common_shift(before, after)
    assert (shift, scatter) == (pytest.approx(1.25), pytest.approx(1.0))
    assert common_shift(before[:7], after[:7]) == (1.0, 1.0)


@given(st.lists(st.floats(1, 100), min_size=1, max_size=60).map(np.array))
def test_few_values_stand_for_many_and_keep_their_range(values: np.ndarray) -> None:
    kept = quantiles(values, most=25)
    assert len(kept) == min(len(values), 25)
    assert set(kept.tolist()) <= set(values.tolist())
    assert (np.diff(kept) >= 0).all()
