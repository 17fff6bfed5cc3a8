"""Anomaly mode: which forward call is behind a NaN."""

from __future__ import annotations

from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.autograd import anomaly_mode


def leaf(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


class _Nan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        return g * float("nan")


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_anomaly_mode_shows_the_forward_call_behind_a_nan() -> None:
    with torch.autograd.detect_anomaly():
        y = _Nan.apply(leaf(1, 2))  # the line that the warning shows
        with (
            pytest.warns(UserWarning, match="Error detected in _NanBackward") as caught,
            pytest.raises(
                RuntimeError, match="Function '_NanBackward' returned nan values in its 0th output"
            ),
        ):
            y.sum().backward()
    assert "the line that the warning shows" in str(caught[0].message)
    assert not torch.is_anomaly_enabled()


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_anomaly_mode_says_when_forward_was_not_watched() -> None:
    y = _Nan.apply(leaf(1, 2))
    with (
        torch.autograd.detect_anomaly(),
        pytest.warns(UserWarning, match="No forward pass information available"),
        pytest.raises(RuntimeError, match="nan values"),
    ):
        y.sum().backward()


def test_nan_may_pass_when_only_errors_are_looked_for() -> None:
    x = leaf(1, 2)
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        _Nan.apply(x).sum().backward()
    assert x.grad.isnan().all()
    assert anomaly_mode.Switches.saved_hooks == 0
