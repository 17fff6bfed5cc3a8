"""Evidence: a steady difference is found, spikes and a noisy rank are not mistaken for one."""

from __future__ import annotations

import numpy as np
import pytest

from mindtorch_prof.fleet.evidence import (
    at_least,
    certain_excess,
    differences,
    least_total_by_chance,
    shifts,
    superiority,
    without_spikes,
)


def noise(ranks: int, steps: int, seed: int = 0) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Times with the long tail of a busy machine: mostly 2 ms, at times 10."""
    random = np.random.default_rng(seed)
    return 1e6 * (
        2 + random.exponential(1.0, (ranks, steps, 1)) + 8 * (random.random((ranks, steps, 1)) < 0.2)
    )


def test_a_steady_difference_is_found_beside_spikes() -> None:
    values = np.full((4, 10, 2), 1e5)
    values[:, :, 1:] = noise(4, 10)
    values[2, :, 0] += 4e6
    values[0, 3, 0] = 9e6  # a spike of another rank
    (found,) = differences(values, 5e5)
    assert (found.place, found.column) == (2, 0)
    assert found.shift == pytest.approx(4e6)
    assert found.certain == pytest.approx(4e6)


def test_noise_accuses_nobody() -> None:
    assert [seed for seed in range(300) if differences(noise(4, 10, seed), 3e5)] == []


def test_a_rank_that_is_slow_in_half_of_the_steps_does_not_differ_steadily() -> None:
    values = np.full((4, 10, 1), 1e6)
    values[1, ::2] += 5e6
    assert differences(values, 1e5) == []


def test_one_step_decides_nothing() -> None:
    values = np.full((4, 1, 1), 1e6)
    values[1] += 5e6
    assert differences(values, 1e5) == []


@pytest.mark.parametrize(
    ("steps", "spread", "is_clear"), [(3, 2e6, True), (3, 3e6, False), (2, 3e5, True), (2, 4e5, False)]
)
def test_in_two_or_three_steps_values_must_lie_much_farther_apart_than_they_vary(
    steps: int, spread: float, is_clear: bool
) -> None:
    values = np.full((4, steps, 2), 1e6)
    values[2, :, 1] += 5e6
    values[0, 0, 1] -= spread  # another rank varies
    found = differences(values, 1e5)
    assert [(each.place, each.column, each.shift, each.certain) for each in found] == (
        [(2, 1, 5e6, 5e6)] if is_clear else []
    )


@pytest.mark.parametrize("steps", [2, 3])
def test_noise_in_few_steps_hardly_ever_accuses_a_rank(steps: int) -> None:
    accused = [seed for seed in range(500) if differences(noise(4, steps, seed), 3e5)]
    assert len(accused) <= 5


@pytest.mark.parametrize(("ranks", "steps"), [(2, 5), (3, 4), (6, 4)])
def test_skewed_noise_in_five_phases_hardly_ever_accuses_a_rank(ranks: int, steps: int) -> None:
    random = np.random.default_rng(0)
    jobs = [1e6 * (2 + random.exponential(1.0, (ranks, steps, 5))) for _ in range(400)]
    assert sum(bool(differences(values, 3e5)) for values in jobs) <= 8


def test_an_op_among_many_must_lie_even_farther_apart_in_few_steps() -> None:
    values = np.full((3, 3, 1), 1e6)
    values[1] += 5e6
    values[0, 0] += 8e5  # the gap is 5 times the range
    assert len(differences(values, 1e5)) == 1
    assert differences(values, 1e5, of_ops=True) == []


def test_the_certain_excess_of_few_steps_is_beyond_the_range_of_values() -> None:
    values = np.array([[[10.0], [12.0]], [[4.0], [5.0]]])
    assert certain_excess(values, 0).tolist() == [3.0]
    assert certain_excess(values, 1).tolist() == [0.0]


def test_of_two_equally_slow_ranks_among_many_both_are_found() -> None:
    values = np.full((8, 10, 1), 1e6)
    values[[2, 5]] += 3e6
    assert [each.place for each in differences(values, 1e5)] == [2, 5]


def test_shifts_compare_with_the_median_of_the_other_ranks() -> None:
    values = np.array([[[1.0]], [[2.0]], [[6.0]], [[10.0]]])
    assert shifts(values).ravel().tolist() == [1 - 6, 2 - 6, 6 - 2, 10 - 2]
    assert shifts(values[:1]).tolist() == [[0.0]]


def test_the_certain_excess_is_that_of_nine_tenths_of_the_steps() -> None:
    values = np.array([[[10.0]] * 11, [[4.0]] * 10 + [[50.0]]]).reshape(2, 11, 1)
    assert certain_excess(values, 0).tolist() == [6.0]
    assert certain_excess(values, 1).tolist() == [0.0]


def test_spikes_are_cut_at_twice_the_median_of_their_rank() -> None:
    values = np.array([[[1_000_000]] * 4 + [[9_000_000]]])
    assert without_spikes(values).ravel().tolist() == [1e6] * 4 + [2_050_000]


def test_superiority_and_chance_are_what_they_say() -> None:
    assert superiority(np.array([1.0, 3.0]), np.array([2.0, 1.0])) == pytest.approx((0.5 + 2) / 4)
    assert at_least(5, 8, 1 / 8) == pytest.approx(0.00123, abs=1e-5)
    assert at_least(0, 8, 0.5) == 1.0


def test_one_rank_that_never_waits_is_no_chance_and_equal_ranks_are() -> None:
    waits = np.full((6, 4), 2500.0)
    waits[3] = 0
    assert least_total_by_chance(waits) < 0.01
    random = np.random.default_rng(0).exponential(1.0, (6, 8))
    assert least_total_by_chance(random) > 0.1
    assert least_total_by_chance(random) == least_total_by_chance(random)
