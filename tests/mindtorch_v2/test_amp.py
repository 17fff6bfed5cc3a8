"""Autocast and gradient scaling: what is cast and scaled, refused and said, against torch."""

from __future__ import annotations

from typing import Any

import pytest
import recorded_cases

import mindtorch_v2 as torch
from mindtorch_v2 import _dispatch


@pytest.mark.parametrize(("module", "case"), recorded_cases.recorded("amp_cases"))
def test_a_case_shows_what_torch_showed(module: str, case: str) -> None:
    recorded_cases.check(module, case)


def test_gradient_of_a_sum_of_one_number_can_be_written() -> None:
    p = torch.nn.Parameter(torch.ones(1))
    p.sum().backward()
    torch.add(p.grad, 1, out=p.grad)
    assert p.grad.tolist() == [2.0]
    p.grad = None
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale(p.sum()).backward()
    scaler.unscale_(torch.optim.SGD([p], lr=0.1))
    assert p.grad.tolist() == [1.0]


def test_the_dispatcher_is_not_asked_to_cast_when_autocast_is_off() -> None:
    assert _dispatch.autocast is None
    with torch.autocast("cpu"):
        assert _dispatch.autocast is not None
    assert _dispatch.autocast is None


def test_the_same_autocast_object_can_be_entered_twice() -> None:
    block = torch.autocast("cpu")
    with block, block:
        assert torch.is_autocast_enabled("cpu")
    assert not torch.is_autocast_enabled("cpu")


def test_an_optimizer_that_unscales_itself_is_given_the_scale() -> None:
    class Own(torch.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure: Any = None) -> Any:
            seen.append((self.grad_scale.item(), self.found_inf.item()))

    seen: list[tuple[float, float]] = []
    p = torch.ones(2, requires_grad=True)
    optimizer = Own([p], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale(p.sum()).backward()
    scaler.step(optimizer)
    assert seen == [(8.0, 0.0)]
    assert p.grad.tolist() == [8.0, 8.0]
    assert not hasattr(optimizer, "grad_scale")
