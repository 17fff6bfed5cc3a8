"""Padding gives torch's numbers, gradients and errors.

The facts are recorded with `python facts/record_expressions.py padding`.
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


@pytest.mark.parametrize(("setup", "line", "fact"), recorded_rows.recorded("padding"))
def test_padding_gives_what_torch_gives(setup: str, line: str, fact: Any) -> None:
    recorded_rows.check(torch, setup, line, fact, scaled=True, tolerance=CLOSE)


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x: F.pad(x, (1, -1, 2, 0)), [(2, 3, 3)]),
        (lambda x: F.pad(x, (2, 1), mode="reflect"), [(2, 3)]),
        (lambda x: F.pad(x, (1, 1, 0, 2), mode="replicate"), [(1, 2, 2)]),
        (lambda x: F.pad(x, (2, 1), mode="circular"), [(2, 3)]),
    ],
)
def test_first_and_second_derivatives_are_what_differences_give(function: Any, shapes: list) -> None:
    numeric_gradients.check(function, *shapes)


@settings(max_examples=60)
@given(st.lists(st.integers(0, 3), min_size=4, max_size=4), st.sampled_from(["reflect", "edge", "wrap"]))
def test_padding_agrees_with_numpy(pads: list[int], mode: str) -> None:
    x = np.arange(2 * 4 * 5.0).reshape(1, 2, 4, 5)
    name = {"reflect": "reflect", "edge": "replicate", "wrap": "circular"}[mode]
    left, right, top, bottom = pads
    wanted = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), mode=mode)
    np.testing.assert_array_equal(F.pad(torch.from_numpy(x), pads, mode=name).numpy(), wanted)


@settings(max_examples=60)
@given(st.lists(st.integers(-2, 3), min_size=4, max_size=4), st.sampled_from(["reflect", "replicate"]))
def test_padding_that_cuts_off_is_a_cut_of_the_padding_that_does_not(pads: list[int], mode: str) -> None:
    x = torch.arange(40.0).reshape(1, 2, 4, 5)
    whole = F.pad(x, [max(p, 0) for p in pads], mode=mode)
    left, right, top, bottom = [max(-p, 0) for p in pads]
    wanted = whole[..., top : whole.shape[2] - bottom, left : whole.shape[3] - right]
    assert torch.equal(F.pad(x, pads, mode=mode), wanted)


def test_a_profile_shows_the_ops_that_torch_shows(op_names: Any) -> None:
    x = torch.ones(2, 3, 4, 5)
    narrow = ["narrow", "slice", "as_strided"]
    assert op_names(lambda: F.pad(x, (1, 2, 0, -1))) == [
        "pad", "constant_pad_nd", *narrow, "empty", "fill_", *narrow, *narrow, "copy_",
    ]  # fmt: skip
    assert op_names(lambda: F.pad(x, (1, 1, 1, 1), mode="reflect"))[:2] == ["pad", "reflection_pad2d"]


def test_backward_runs_the_backward_op_of_each_mode(op_names: Any) -> None:
    x = torch.ones(1, 4, 4, 4, requires_grad=True)
    for options, name in (
        ({"value": 1.0}, "constant_pad_nd"),
        ({"mode": "reflect"}, "reflection_pad2d_backward"),
        ({"mode": "replicate"}, "replication_pad2d_backward"),
    ):
        y = F.pad(x, (1, 1, 1, 1), **options)
        assert op_names(y.sum().backward).count(name) == 1
