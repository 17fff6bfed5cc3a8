"""Folding, unfolding, shuffling and one_hot give torch's numbers, gradients and errors.

The facts are recorded with `python facts/record_expressions.py folding`.
"""

from __future__ import annotations

from typing import Any

import numeric_gradients
import pytest
import recorded_rows
from row_comparison import CLOSE

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F


@pytest.mark.parametrize(("setup", "line", "fact"), recorded_rows.recorded("folding"))
def test_folding_gives_what_torch_gives(setup: str, line: str, fact: Any) -> None:
    recorded_rows.check(torch, setup, line, fact, scaled=True, tolerance=CLOSE)


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x: F.unfold(x, 2, padding=1, stride=2), [(1, 1, 3, 4)]),
        (lambda x: F.fold(x, (3, 3), 2), [(1, 4, 4)]),
        (lambda x: F.pixel_shuffle(x, 2), [(4, 1, 2)]),
        (lambda x: F.pixel_unshuffle(x, 2), [(1, 2, 4)]),
        (lambda x: F.channel_shuffle(x, 2), [(1, 4, 2)]),
    ],
)
def test_first_and_second_derivatives_are_what_differences_give(function: Any, shapes: list) -> None:
    numeric_gradients.check(function, *shapes)


def test_fold_sums_what_unfold_took_as_often_as_it_took_it() -> None:
    x = torch.arange(60.0).reshape(1, 3, 4, 5)
    taken = F.fold(F.unfold(torch.ones_like(x), 2), (4, 5), 2)
    assert torch.equal(F.fold(F.unfold(x, 2), (4, 5), 2), x * taken)


def test_shuffles_are_undone_by_their_counterparts() -> None:
    x = torch.arange(2 * 8 * 4 * 6.0).reshape(2, 8, 4, 6)
    assert torch.equal(F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2), x)
    assert torch.equal(F.channel_shuffle(F.channel_shuffle(x, 2), 4), x)


def test_a_profile_shows_the_ops_that_torch_shows(op_names: Any) -> None:
    plain, x = torch.ones(2, 3, 4, 5), torch.ones(1, 4, 4, 4, requires_grad=True)
    shown = op_names(lambda: F.channel_shuffle(plain, 3))
    assert shown == ["channel_shuffle", "native_channel_shuffle"]
    for y, name in ((F.unfold(x, 2), "col2im"), (F.pixel_shuffle(x, 2), "pixel_unshuffle")):
        assert op_names(y.sum().backward).count(name) == 1
