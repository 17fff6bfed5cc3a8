"""Shapes and values where torch does what one would not expect."""

from __future__ import annotations

import functools
import io
import pickle
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch


@pytest.mark.parametrize(
    ("bounds", "dtype", "expected"),
    [
        ((0, 2.5), torch.int64, [0, 1]),
        ((0, 2.5), torch.int32, [0, 1, 2]),
        ((-1.5, 1.5), torch.int64, [-1, 0]),
        ((5.5, 0.2, -1.5), torch.int64, [5, 4, 3, 2, 1]),
        ((5.5, 0.2, -1.5), torch.int16, [5, 4, 3, 2]),
        ((0, 5.5, 2.9), torch.int64, [0, 2, 4]),
    ],
)
def test_int64_ranges_count_with_whole_numbers(bounds: tuple, dtype: Any, expected: list[int]) -> None:
    assert torch.arange(*bounds, dtype=dtype).tolist() == expected


def test_an_int64_range_has_a_step_of_at_least_1() -> None:
    with pytest.raises(ValueError, match="step must be nonzero"):
        torch.arange(0.0, 1.0, 0.3, dtype=torch.int64)


def test_no_differences_are_the_tensor_without_what_was_to_be_added() -> None:
    x = torch.tensor([1.0, 4.0])
    assert torch.diff(x, n=0, prepend=torch.zeros(2), append=torch.zeros(1)).tolist() == [1.0, 4.0]


@pytest.mark.parametrize("name", ["addmv", "addmm", "addbmm", "baddbmm"])
def test_products_of_integers_have_whole_factors(name: str) -> None:
    x, y = torch.ones(2, 2, dtype=torch.int64), torch.full((2, 2), 3)
    operands = {
        "addmv": (x[0], y, y[0]),
        "addmm": (x, y, y),
        "addbmm": (x, y[None], y[None]),
        "baddbmm": (x[None], y[None], y[None]),
    }[name]
    assert getattr(torch, name)(*operands, beta=0.6, alpha=0.2).eq(0).all()
    assert getattr(torch, name)(*operands, beta=1.9, alpha=0.2).eq(1).all()


def test_written_tensors_keep_their_gradients() -> None:
    x = torch.tensor([[0.1, 0.2], [0.4, 0.5]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: (x * 1).renorm_(2, 0, 0.5), (x,))
    assert torch.autograd.gradcheck(lambda x: (x * 1).polygamma_(1), (x,))


@pytest.mark.parametrize(("stride", "dilation", "padding"), [(1, 2, 0), (2, 3, 2)])
def test_output_padding_from_the_stride_on_has_gradients(stride: int, dilation: int, padding: int) -> None:
    x = torch.randn(1, 2, 3, 3, dtype=torch.float64, requires_grad=True)
    w = torch.randn(2, 1, 2, 2, dtype=torch.float64, requires_grad=True)
    convolve = functools.partial(
        torch.nn.functional.conv_transpose2d,
        stride=stride,
        dilation=dilation,
        padding=padding,
        output_padding=stride,
    )
    assert torch.autograd.gradcheck(convolve, (x, w))


def test_a_vandermonde_matrix_of_one_number_has_one_row() -> None:
    assert torch.linalg.vander(torch.tensor(3.0), N=3).tolist() == [[1.0, 3.0, 9.0]]


def test_arrays_with_an_equal_but_other_dtype_object_are_taken() -> None:
    array = pickle.load(io.BytesIO(pickle.dumps(np.array([True, False]))))
    assert array.dtype is not np.dtype(bool)
    tensor = torch.from_numpy(array)
    assert torch.sign(tensor).tolist() == [True, False]
    tensor[1] = True
    assert array.tolist() == [True, True]
