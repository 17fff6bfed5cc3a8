"""Factories: sizes, dtypes and devices that they take, and what they refuse by name."""

from __future__ import annotations

import pytest

import mindtorch_v2
import mindtorch_v2 as torch


def test_sizes_that_are_no_integers_are_refused_by_name() -> None:
    refused = {
        "zeros: Dimension size must be non-negative.": lambda: torch.zeros(2, -3),
        "ones(): argument 'size' (position 1) must be tuple of ints, not float": lambda: torch.ones(2.5),
        "randn(): argument 'size' (position 1) must be tuple of ints, "
        "but found element of type float at pos 0": lambda: torch.randn(4 / 2, 3),
        "empty(): argument 'size' failed to unpack the object at pos 2 with error "
        '"type must be tuple of ints,but got float"': lambda: torch.empty(3, 4 / 2),
        "full(): argument 'fill_value' (position 2) must be Number, not str": lambda: torch.full((2,), "a"),
    }
    for text, call in refused.items():
        with pytest.raises((TypeError, RuntimeError)) as caught:
            call()
        assert str(caught.value) == text


@pytest.mark.parametrize("kind", [float, int, bool, complex])
def test_python_number_types_name_dtypes(kind: type) -> None:
    torch = mindtorch_v2
    expected = {float: torch.float64, int: torch.int64, bool: torch.bool, complex: torch.complex128}[kind]
    x = torch.ones(2)
    made = [
        torch.zeros(2, dtype=kind),
        torch.empty((2,), dtype=kind),
        torch.full((2,), 1, dtype=kind),
        torch.tensor([1, 0], dtype=kind),
        torch.as_tensor([1, 0], dtype=kind),
        torch.ones_like(x, dtype=kind),
        x.new_zeros(2, dtype=kind),
        x.to(kind),
        x.sum(dtype=kind),
        torch.eye(2, dtype=kind),
    ]
    assert [t.dtype for t in made] == [expected] * len(made)


def test_a_dtype_that_is_none_is_refused_by_name() -> None:
    for function, call in {
        "zeros": lambda: mindtorch_v2.zeros(2, dtype="float32"),
        "tensor": lambda: mindtorch_v2.tensor([1], dtype="float32"),
    }.items():
        with pytest.raises(
            TypeError, match=rf"{function}\(\): argument 'dtype' must be torch.dtype, not str"
        ):
            call()


def test_a_device_block_decides_where_tensors_are_made() -> None:
    torch = mindtorch_v2
    with torch.device("meta"):
        made = [torch.ones(2), torch.linspace(0, 1, 3), torch.arange(3), torch.rand(2), torch.tensor([1])]
        layer = torch.nn.Linear(2, 2)
    assert {t.device.type for t in [*made, layer.weight]} == {"meta"}
    assert torch.ones(1).device.type == "cpu"
