"""Gradients of complex inputs and factors, against numeric ones; and of rectangular LU factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mindtorch_v2 as torch

F = torch.nn.functional
FACTOR = 2 - 3j


def _random(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    return torch.randn(shape, dtype=torch.complex128, generator=generator).requires_grad_()


ROWS: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "add": (lambda x, y: torch.add(x, y, alpha=FACTOR), (_random(3), _random(3))),
    "sub": (lambda x, y: torch.sub(x, y, alpha=FACTOR), (_random(3), _random(3))),
    "rsub": (lambda x, y: torch.rsub(x, y, alpha=FACTOR), (_random(3), _random(3))),
    "addmm": (
        lambda x, a, b: torch.addmm(x, a, b, beta=FACTOR, alpha=1j),
        (_random(2, 3), _random(2, 2), _random(2, 3)),
    ),
    "addmv": (
        lambda x, a, b: torch.addmv(x, a, b, beta=FACTOR, alpha=1j),
        (_random(2), _random(2, 3), _random(3)),
    ),
    "addr": (
        lambda x, a, b: torch.addr(x, a, b, beta=FACTOR, alpha=1j),
        (_random(2, 3), _random(2), _random(3)),
    ),
    "addbmm": (
        lambda x, a, b: torch.addbmm(x, a, b, beta=FACTOR, alpha=1j),
        (_random(2, 3), _random(2, 2, 2), _random(2, 2, 3)),
    ),
    "baddbmm": (
        lambda x, a, b: torch.baddbmm(x, a, b, beta=FACTOR, alpha=1j),
        (_random(2, 2, 3), _random(2, 2, 2), _random(2, 2, 3)),
    ),
    "lerp by a number": (lambda x, y: torch.lerp(x, y, FACTOR), (_random(3), _random(3))),
    "lerp by a tensor": (torch.lerp, (_random(3), _random(3), _random(3))),
    "ldexp": (torch.ldexp, (_random(3), _random(3))),
    "logaddexp": (torch.logaddexp, (_random(3), _random(3))),
    "logsumexp": (lambda x: torch.logsumexp(x, 1), (_random(2, 3),)),
    "logdet": (torch.logdet, (_random(3, 3),)),
    "slogdet": (torch.linalg.slogdet, (_random(3, 3),)),
    "renorm": (lambda x: torch.renorm(x, 2, 0, 0.5), (_random(2, 3),)),
    "conv1d": (lambda x, w: F.conv1d(x, w, stride=2), (_random(1, 2, 5), _random(2, 2, 2))),
    "conv2d": (lambda x, w: F.conv2d(x, w, padding=1), (_random(1, 2, 3, 3), _random(2, 2, 2, 2))),
    "conv_transpose2d": (F.conv_transpose2d, (_random(1, 2, 3, 3), _random(2, 2, 2, 2))),
    "lu of a tall matrix": (torch.linalg.lu, (_random(4, 2),)),
    "lu_factor of a wide matrix": (lambda x: torch.linalg.lu_factor(x)[0], (_random(2, 4),)),
    "triangular_solve": (torch.triangular_solve, (_random(2, 1), _random(2, 2))),
}


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@pytest.mark.parametrize("name", ROWS)
def test_gradients_of_complex_tensors_are_those_of_small_steps(name: str) -> None:
    function, inputs = ROWS[name]
    assert torch.autograd.gradcheck(function, inputs)


@pytest.mark.parametrize("name", ["conv1d", "conv_transpose2d", "logsumexp", "lerp by a tensor", "addmm"])
def test_second_gradients_of_complex_tensors_are_those_of_small_steps(name: str) -> None:
    function, inputs = ROWS[name]
    assert torch.autograd.gradgradcheck(function, inputs)


@pytest.mark.parametrize("rows", [(4, 2), (2, 4)])
def test_gradients_of_rectangular_lu_factors_are_those_of_small_steps(rows: tuple[int, int]) -> None:
    matrix = _random(*rows).real.detach().requires_grad_()
    assert torch.autograd.gradcheck(torch.linalg.lu, (matrix,))
    assert torch.autograd.gradcheck(lambda x: torch.linalg.lu_factor(x)[0], (matrix,))
