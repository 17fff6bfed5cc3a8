"""Matrix products of small number types. Expected values and messages are torch's."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch


def test_products_of_bytes_are_summed_in_int32() -> None:
    bytes_ = torch.full((2, 40), 127, dtype=torch.int8)
    product = torch._int_mm(bytes_, bytes_.t())
    assert product.dtype == torch.int32
    assert product.tolist() == [[40 * 127 * 127] * 2] * 2
    unsigned = torch.full((1, 2), 200, dtype=torch.uint8)
    assert torch._int_mm(unsigned, torch.full((2, 1), -3, dtype=torch.int8)).tolist() == [[-1200]]


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ((2, 3, torch.float32), (3, 2, torch.int8), "Expected self dtype to be int8 or uint8 but got float"),
        ((2, 3, torch.int8), (3, 2, torch.float32), "Expected mat2 dtype to be of type int8 but got float"),
        (
            (2, 3, torch.int8),
            (4, 2, torch.int8),
            r"self.size\(1\) needs to match mat2.size\(0\) but got 3 and 4",
        ),
    ],
)
def test_matrices_that_do_not_fit_are_refused(first: tuple, second: tuple, message: str) -> None:
    (*size, dtype), (*other_size, other_dtype) = first, second
    with pytest.raises(RuntimeError, match=message):
        torch._int_mm(torch.ones(size, dtype=dtype), torch.ones(other_size, dtype=other_dtype))


def test_products_of_float8_are_scaled_and_converted() -> None:
    first = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).to(torch.float8_e4m3fn)
    second = torch.tensor([[1.0, 0.5], [0.0, 2.0]]).to(torch.float8_e5m2)
    scales = torch.tensor(2.0), torch.tensor(0.25)
    product = torch._scaled_mm(first, second, *scales, out_dtype=torch.float32)
    assert product.tolist() == [[0.5, 2.25], [1.5, 4.75]]
    assert torch._scaled_mm(first, second, *scales).dtype == torch.float8_e4m3fn
    rows, columns = torch.tensor([[1.0], [10.0]]), torch.tensor([[1.0, 2.0]])
    by_row = torch._scaled_mm(
        first, second, rows, columns, bias=torch.tensor([0.0, 1.0]), out_dtype=torch.bfloat16
    )
    assert by_row.dtype == torch.bfloat16
    assert by_row.tolist() == [[1.0, 10.0], [30.0, 191.0]]
    with pytest.raises(NotImplementedError, match="_scaled_mm"):
        torch._scaled_mm(torch.ones(2, 2), torch.ones(2, 2), *scales)
