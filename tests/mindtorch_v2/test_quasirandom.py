"""Sobol points are torch's."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.quasirandom import SobolEngine


def test_sobol_points_are_torchs() -> None:
    engine = SobolEngine(3)
    assert engine.draw(5).tolist() == [
        [0.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75], [0.375, 0.375, 0.625]
    ]  # fmt: skip
    engine.reset().fast_forward(5)
    assert engine.draw(2).tolist() == [[0.875, 0.875, 0.125], [0.625, 0.125, 0.875]]
    scrambled = SobolEngine(2, scramble=True, seed=7)
    assert repr(scrambled) == "SobolEngine(dimension=2, scramble=True, seed=7)"
    expected = torch.tensor([[0.1995, 0.1709], [0.9454, 0.8953], [0.6495, 0.4836], [0.4036, 0.7080]])
    assert torch.allclose(scrambled.draw(4), expected, atol=1e-4)
    with pytest.raises(ValueError, match=r"require n to be a power of 2\. 7 points"):
        engine.draw_base2(3)
