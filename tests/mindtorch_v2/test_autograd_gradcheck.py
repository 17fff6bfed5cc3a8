"""gradcheck and gradgradcheck: what they accept, find and say, against what torch showed."""

from __future__ import annotations

from typing import Any

import pytest
from autograd_steps import RECORDED, shown, steps

import mindtorch_v2 as torch
from mindtorch_v2.autograd import gradcheck, gradgradcheck
from mindtorch_v2.autograd.gradcheck import GradcheckError


@pytest.mark.parametrize(("program", "label"), steps("gradcheck"))
def test_a_step_shows_what_torch_showed(program: str, label: str) -> None:
    assert shown(program)[label] == RECORDED[program][label]


class _WrongTwice(torch.autograd.Function):
    """Right once; its backward has a wrong derivative of its own."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return g * 3 * (x * x.detach())


@pytest.mark.parametrize("fast_mode", [False, True])
def test_a_wrong_second_derivative_is_found(fast_mode: bool) -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert gradcheck(_WrongTwice.apply, (x,), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradgradcheck(_WrongTwice.apply, (x,), fast_mode=fast_mode)
    assert not gradgradcheck(_WrongTwice.apply, (x,), fast_mode=fast_mode, raise_exception=False)


def test_inputs_are_as_they_were_even_when_the_function_raises() -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    calls = []

    def failing(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        if len(calls) == 3:
            raise KeyError("third")
        return x * x

    with pytest.raises(KeyError):
        gradcheck(failing, (x,))
    assert x.tolist() == [1, 2]


def test_inputs_that_are_not_contiguous_are_checked_element_by_element() -> None:
    x = torch.randn(3, 4, dtype=torch.float64).t()[1:].requires_grad_()
    assert gradcheck(lambda x: (x * x).t(), (x,))
    assert gradcheck(lambda x: x.view_as(x), (x,))


def test_forward_mode_is_checked_and_batched_gradients_are_refused() -> None:
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: x.sin() * x, (x,), check_forward_ad=True)
    with pytest.raises(NotImplementedError, match="batched gradients"):
        gradcheck(lambda x: x * 2, (x,), check_batched_grad=True)


def test_gradgradcheck_draws_torchs_gradients() -> None:
    x = torch.tensor([0.5, 1.0], dtype=torch.double, requires_grad=True)
    torch.manual_seed(0)
    assert torch.autograd.gradgradcheck(torch.exp, (x,))
    assert torch.rand(1).item() == pytest.approx(0.307423, abs=1e-6)
