"""Forward mode: tangents travel with the values."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.autograd import forward_ad


def test_tangents_travel_forward() -> None:
    primal, tangent = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0])
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(primal, tangent)
        out, moved = forward_ad.unpack_dual(dual * dual)
    torch.testing.assert_close(out, primal * primal)
    torch.testing.assert_close(moved, 2 * primal * tangent)
    assert forward_ad.unpack_dual(primal).tangent is None


def test_turning_gradients_off_inside_a_dual_level_is_refused() -> None:
    with forward_ad.dual_level():
        with pytest.raises(RuntimeError, match="inside a dual level"), torch.no_grad():
            pass
        with pytest.raises(RuntimeError, match="Nested forward mode AD"):
            forward_ad.enter_dual_level()
