"""Ops at NaN, infinities, zeros and ties, in mixed dtypes, with `out=`, against rows recorded from torch."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest
import recorded_rows

import mindtorch_v2 as torch


@pytest.mark.parametrize(("setup", "line", "fact"), recorded_rows.recorded("edge_value"))
def test_an_op_gives_what_torch_gives_at_its_edges(setup: str, line: str, fact: Any) -> None:
    recorded_rows.check(torch, setup, line, fact)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: torch.cdist(x, 1), "cdist(): argument 'x2' (position 2) must be Tensor, not int"),
        (lambda x: torch.cdist(0.5, x), "cdist(): argument 'x1' (position 1) must be Tensor, not float"),
        (lambda x: torch.cross(x, True), "cross(): argument 'other' (position 2) must be Tensor, not bool"),
        (lambda x: torch.dist(x, -1), "dist(): argument 'other' (position 2) must be Tensor, not int"),
    ],
)
def test_a_number_in_the_place_of_a_tensor_is_refused(call: Any, text: str) -> None:
    with pytest.raises(TypeError) as error:
        call(torch.ones(3, 3))
    assert str(error.value) == text


def test_roll_without_dimensions_takes_none() -> None:
    assert torch.arange(6).view(2, 3).roll(2, None).tolist() == [[4, 5, 0], [1, 2, 3]]


def test_the_mean_of_no_complex_numbers_is_nan_in_both_parts() -> None:
    mean = torch.ones(0, dtype=torch.complex64).mean()
    assert math.isnan(mean.real.item())
    assert math.isnan(mean.imag.item())


def test_a_mean_into_an_output_is_taken_in_the_dtype_of_the_output() -> None:
    x = torch.tensor([1.0, 1.0078125, 1.0], dtype=torch.bfloat16)
    out = torch.empty((), dtype=torch.float64)
    assert torch.mean(x, out=out).item() == (1.0 + 1.0078125 + 1.0) / 3


def test_numbers_wrap_around_in_unsigned_integers() -> None:
    x = torch.tensor([0, 1, 255], dtype=torch.uint8)
    assert torch.sub(-1, x).tolist() == [255, 254, 0]
    assert torch.addcmul(x, x, x, value=-2).tolist() == [0, 255, 253]


@pytest.mark.parametrize("name", ["mT", "mH", "H", "T"])
def test_numbers_are_their_own_transposes(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert getattr(torch.tensor(2.0), name).item() == 2.0
        assert torch.tensor(1 + 2j).adjoint().item() == 1 - 2j


def test_batch_norm_of_a_transposed_tensor_is_contiguous() -> None:
    for shape in ((4, 3), (4, 3, 2)):
        x = torch.randn(*shape).transpose(0, 1)
        for training in (True, False):
            statistics = (None, None) if training else (torch.zeros(4), torch.ones(4))
            assert torch.nn.functional.batch_norm(x, *statistics, training=training).is_contiguous()
    images = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    normalized = torch.nn.functional.batch_norm(images, None, None, training=True)
    assert normalized.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "name", ["neg_", "sigmoid_", "abs_", "sqrt_", "reciprocal_", "floor_", "exp_", "log_"]
)
def test_functions_in_place_on_views_with_gaps_of_any_size(name: str, dtype: Any) -> None:
    for step in range(1, 11):
        base = torch.arange(1, 121, dtype=dtype).view(3, 40)
        expected = getattr(base[:, ::step].clone(), name)()
        getattr(base[:, ::step], name)()
        assert torch.equal(base[:, ::step], expected)
