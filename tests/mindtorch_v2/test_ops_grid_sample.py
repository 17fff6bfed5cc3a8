"""Grids, and sampling of images at their points, give torch's numbers, gradients and errors.

The facts are recorded with `python facts/record_expressions.py grid`.
"""

from __future__ import annotations

from typing import Any

import numeric_gradients
import pytest
import recorded_rows
from row_comparison import CLOSE

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F


@pytest.mark.parametrize(("setup", "line", "fact"), recorded_rows.recorded("grid"))
def test_a_grid_gives_what_torch_gives(setup: str, line: str, fact: Any) -> None:
    recorded_rows.check(torch, setup, line, fact, scaled=True, tolerance=CLOSE)


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x, y: F.grid_sample(x, y, align_corners=False), [(1, 2, 3, 3), (1, 2, 2, 2)]),
        (
            lambda x, y: F.grid_sample(x, y, mode="bicubic", padding_mode="border", align_corners=True),
            [(1, 1, 3, 3), (1, 1, 2, 2)],
        ),
        (
            lambda x, y: F.grid_sample(x, y, padding_mode="reflection", align_corners=False),
            [(1, 1, 2, 3, 2), (1, 1, 1, 2, 3)],
        ),
        (lambda x: F.affine_grid(x, (1, 1, 2, 3), align_corners=False), [(1, 2, 3)]),
    ],
)
def test_first_and_second_derivatives_are_what_differences_give(function: Any, shapes: list) -> None:
    numeric_gradients.check(function, *shapes)


def test_sampling_at_the_pixels_gives_the_image() -> None:
    x = torch.arange(24.0).reshape(1, 2, 3, 4)
    grid = F.affine_grid(torch.eye(2, 3).unsqueeze(0), (1, 2, 3, 4), align_corners=True)
    for mode in ("bilinear", "nearest", "bicubic"):
        found = F.grid_sample(x, grid, mode=mode, align_corners=True)
        torch.testing.assert_close(found, x, rtol=0, atol=1e-4)


def test_a_third_derivative_of_grid_sample_is_refused() -> None:
    x, grid = torch.rand(1, 1, 2, 2, requires_grad=True), torch.rand(1, 1, 1, 2, requires_grad=True)
    y = F.grid_sample(x, grid, align_corners=False)
    (first,) = torch.autograd.grad(y.sum(), grid, create_graph=True)
    with pytest.raises(RuntimeError, match=r"derivative for .* is not implemented"):
        torch.autograd.grad(first.sum(), grid, create_graph=True)


def test_a_profile_shows_the_ops_that_torch_shows(op_names: Any) -> None:
    x, grid = torch.ones(2, 3, 4, 5), torch.zeros(2, 1, 1, 2)
    shown = op_names(lambda: F.grid_sample(x, grid, align_corners=False))
    assert shown == ["grid_sampler", "grid_sampler_2d", "empty"]
