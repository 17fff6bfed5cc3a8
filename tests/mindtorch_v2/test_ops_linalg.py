"""Products, decompositions, einsum, transforms and factories against rows recorded from torch.

Modules of _ops: linalg, linalg_more, linalg_names, matmul, einsum, fourier, ranges, creation, diagonals.
"""

from __future__ import annotations

from typing import Any

import pytest
import recorded_rows

import mindtorch_v2 as torch


@pytest.mark.parametrize(("setup", "line", "fact"), recorded_rows.recorded("linear_algebra"))
def test_an_op_of_linear_algebra_gives_what_torch_gives(setup: str, line: str, fact: Any) -> None:
    recorded_rows.check(torch, setup, line, fact, scaled=True)


def test_cross_product_of_two_vectors() -> None:
    x, y = torch.tensor([1.0, 0, 0], requires_grad=True), torch.tensor([0.0, 1, 0])
    made = torch.cross(x, y, dim=0)
    assert made.tolist() == torch.linalg.cross(x, y).tolist() == [0, 0, 1]
    made[2].backward()
    assert x.grad.tolist() == [1, 0, 0]
