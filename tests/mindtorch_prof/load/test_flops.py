"""Flops of the ops in a file: torch's formulas over the recorded inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mindtorch_prof.inputs import Inputs, TensorInput
from mindtorch_prof.load.flops import flops_of


def tensor(*shape: int) -> TensorInput:
    return TensorInput(shape, (1,) * len(shape), "float")


def flops(name: str, *arguments: Any) -> int:
    (value,) = flops_of(np.array([0]), [name], np.array([0]), [Inputs(arguments)]).tolist()
    return value


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("aten::mm", (tensor(2, 3), tensor(3, 5)), 2 * 2 * 3 * 5),
        ("aten::addmm", (tensor(5), tensor(2, 3), tensor(3, 5)), 2 * 2 * 3 * 5),
        ("aten::bmm", (tensor(4, 2, 3), tensor(4, 3, 5)), 2 * 4 * 2 * 3 * 5),
        ("aten::add", (tensor(2, 3), tensor(1), 1), 6),
        (
            "aten::conv2d",
            (tensor(2, 3, 8, 8), tensor(4, 3, 3, 3), None, (2, 2), (1, 1), (1, 1), 1),
            2 * 2 * 4 * 4 * 3 * 3 * 3 * 4,
        ),
    ],
)
def test_an_op_has_the_flops_of_its_formula(name: str, arguments: tuple[Any, ...], expected: int) -> None:
    assert flops(name, *arguments) == expected


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("aten::relu", (tensor(2, 3),)),
        ("aten::mm", ()),
        ("aten::mm", (1, 2)),
        ("aten::bmm", (tensor(2, 3), tensor(3, 5))),
        ("aten::conv2d", (tensor(2, 3), tensor(3, 5), None, (1,), (0,), (1,), 0)),
    ],
)
def test_what_has_no_formula_or_unfit_inputs_has_no_flops(name: str, arguments: tuple[Any, ...]) -> None:
    assert flops(name, *arguments) == 0


def test_events_without_inputs_have_no_flops() -> None:
    table = [Inputs((tensor(2, 3), tensor(3, 5)))]
    counted = flops_of(np.array([0, 0, 1]), ["aten::mm", "aten::t"], np.array([0, -1, 0]), table)
    assert counted.tolist() == [60, 0, 0]


def test_texts_in_the_place_of_sizes_are_no_sizes() -> None:
    # as a product, the text would be repeated 10 ** 15 times
    inputs = Inputs.from_json(b'[["", ""], ["float", "float"], [[], []], [["a", 1000000000], [1000000, 1]]]')
    assert flops_of(np.array([0]), ["aten::mm"], np.array([0]), [inputs]).tolist() == [0]


def test_sizes_below_zero_give_no_flops() -> None:
    assert flops("aten::mm", tensor(-(10**15), 10**6), tensor(10**6, 10**6)) == 0
