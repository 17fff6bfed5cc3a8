"""torch.testing finds the differences torch finds and says them in the same words."""

from __future__ import annotations

import numpy as np
import pytest
import recorded_cases
from hypothesis import given
from hypothesis import strategies as st

import mindtorch_v2 as torch
from mindtorch_v2.testing import assert_close


@pytest.mark.parametrize(("module", "case"), recorded_cases.recorded("testing_cases"))
def test_a_case_shows_what_torch_showed(module: str, case: str) -> None:
    recorded_cases.check(module, case)


_numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20)


@given(_numbers)
def test_a_value_is_close_to_itself(values: list[float]) -> None:
    assert_close(torch.tensor(values), torch.tensor(values), rtol=0, atol=0)


@given(_numbers, _numbers, st.floats(0, 1), st.floats(0, 10))
def test_close_means_within_the_tolerances(a: list[float], b: list[float], rtol: float, atol: float) -> None:
    n = min(len(a), len(b))
    left, right = np.array(a[:n]), np.array(b[:n])
    within = bool((np.abs(left - right) <= atol + rtol * np.abs(right)).all())
    try:
        assert_close(torch.from_numpy(left), torch.from_numpy(right), rtol=rtol, atol=atol)
    except AssertionError:
        assert not within
    else:
        assert within
