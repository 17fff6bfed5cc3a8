"""autograd.functional: Jacobians, Hessians and products, against what torch showed and against each other."""

from __future__ import annotations

import pytest
from autograd_steps import RECORDED, shown, steps

import mindtorch_v2 as torch
from mindtorch_v2.autograd import functional


@pytest.mark.parametrize(("program", "label"), steps("functional"))
def test_a_step_shows_what_torch_showed(program: str, label: str) -> None:
    assert shown(program)[label] == RECORDED[program][label]


def test_products_agree_with_the_whole_matrices() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([(x**3).sum(), x.prod(), x[0].sin()])

    x, v = torch.randn(3, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    jacobian = functional.jacobian(f, x)
    torch.testing.assert_close(functional.jvp(f, x, v)[1], jacobian @ v)
    torch.testing.assert_close(functional.vjp(f, x, v)[1], v @ jacobian)
    torch.testing.assert_close(functional.jacobian(f, x, vectorize=True, strategy="forward-mode"), jacobian)
    hessian = functional.hessian(lambda x: f(x).sum(), x)
    torch.testing.assert_close(functional.hvp(lambda x: f(x).sum(), x, v)[1], hessian @ v)
    torch.testing.assert_close(functional.vhp(lambda x: f(x).sum(), x, v)[1], v @ hessian)
    torch.testing.assert_close(hessian, hessian.T)


def test_no_grad_outside_does_not_hide_the_derivative() -> None:
    with torch.no_grad():
        assert functional.jacobian(lambda x: x * x, torch.tensor([3.0])).tolist() == [[6.0]]
