"""Resizing gives torch's numbers, gradients and errors.

The facts are recorded with `python facts/record_expressions.py resampling`.
"""

from __future__ import annotations

from typing import Any

import numeric_gradients
import numpy as np
import pytest
import recorded_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from row_comparison import CLOSE

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F


@pytest.mark.parametrize(("setup", "line", "fact"), recorded_rows.recorded("resampling"))
def test_resizing_gives_what_torch_gives(setup: str, line: str, fact: Any) -> None:
    recorded_rows.check(torch, setup, line, fact, scaled=True, tolerance=CLOSE)


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x: F.interpolate(x, size=5), [(1, 2, 3)]),
        (lambda x: F.interpolate(x, scale_factor=1.7, mode="nearest-exact"), [(1, 1, 2, 3)]),
        (lambda x: F.interpolate(x, size=(3, 4), mode="bilinear"), [(1, 1, 2, 3)]),
        (lambda x: F.interpolate(x, scale_factor=1.6, mode="bicubic"), [(1, 1, 2, 3)]),
        (lambda x: F.interpolate(x, size=(2, 3), mode="bilinear", antialias=True), [(1, 1, 4, 5)]),
        (lambda x: F.interpolate(x, size=(2, 3, 3), mode="trilinear", align_corners=True), [(1, 1, 2, 2, 2)]),
    ],
)
def test_first_and_second_derivatives_are_what_differences_give(function: Any, shapes: list) -> None:
    numeric_gradients.check(function, *shapes)


@settings(max_examples=40)
@given(st.integers(1, 90), st.integers(1, 90), st.sampled_from(["nearest", "linear"]))
def test_a_resize_and_its_gradient_are_transposed_maps(n: int, out: int, mode: str) -> None:
    random = np.random.RandomState(n * 100 + out)
    x = torch.tensor(random.randn(1, 1, n), requires_grad=True)
    y = F.interpolate(x, size=out, mode=mode)
    g = torch.tensor(random.randn(1, 1, out))
    (back,) = torch.autograd.grad(y, x, g)
    np.testing.assert_allclose((y * g).sum().item(), (back * x).sum().item(), rtol=1e-9, atol=1e-9)


def test_an_infinite_pixel_reaches_only_its_neighbours() -> None:
    x = torch.zeros(1, 1, 8, 8)
    x[0, 0, 4, 4] = float("inf")
    for mode in ("bilinear", "bicubic"):
        found = F.interpolate(x, scale_factor=2, mode=mode)
        assert (found[..., :4, :] == 0).all()
        assert (found[..., :4] == 0).all()
        assert not found.isfinite().all()


def test_bytes_are_resized_as_whole_numbers() -> None:
    x = torch.tensor([[[[0, 255], [255, 0]]]], dtype=torch.uint8)
    found = F.interpolate(x, size=(3, 3), mode="bilinear")
    assert found.dtype is torch.uint8
    assert found.tolist() == [[[[0, 128, 255], [128, 128, 128], [255, 128, 0]]]]


def test_a_profile_shows_the_ops_that_torch_shows(op_names: Any) -> None:
    x = torch.ones(1, 4, 4, 4, requires_grad=True)
    for mode, name in (("nearest", "upsample_nearest2d"), ("bilinear", "upsample_bilinear2d")):
        assert op_names(lambda mode=mode: F.interpolate(x, scale_factor=2, mode=mode))[0] == name
        y = F.interpolate(x, scale_factor=2, mode=mode)
        assert op_names(y.sum().backward).count(f"{name}_backward") == 1
