"""Joining: cat, stack and their kin give torch's shapes, dtypes, layouts, errors and gradients."""

from __future__ import annotations

from typing import Any

import expression_rows
import numeric_gradients
import numpy as np
import pytest
import recorded_rows
from hypothesis import given, settings
from hypothesis import strategies as st

import mindtorch_v2 as torch


@pytest.mark.parametrize(("setup", "line", "fact"), recorded_rows.recorded("join"))
def test_joining_gives_what_torch_gives(setup: str, line: str, fact: Any) -> None:
    assert expression_rows.run(torch, setup, line) == fact


@settings(max_examples=80)
@given(
    st.integers(0, 2),
    st.lists(st.integers(0, 3), min_size=1, max_size=4),
    st.lists(
        st.sampled_from(["float32", "float64", "int64", "uint8", "bool", "float16"]), min_size=4, max_size=4
    ),
)
def test_cat_agrees_with_numpy_and_promotes(dim: int, lengths: list[int], kinds: list[str]) -> None:
    arrays = []
    for length, kind in zip(lengths, kinds):
        shape = [2, 3, 2]
        shape[dim] = length
        arrays.append(np.arange(int(np.prod(shape))).reshape(shape).astype(kind))
    tensors = [torch.from_numpy(a) for a in arrays]
    found = torch.cat(tensors, dim)
    np.testing.assert_array_equal(
        found.double().numpy(), np.concatenate([a.astype(np.float64) for a in arrays], dim)
    )
    wanted = tensors[0].dtype
    for tensor in tensors[1:]:
        wanted = torch.promote_types(wanted, tensor.dtype)
    assert found.dtype is wanted
    assert found.is_contiguous()


@settings(max_examples=40)
@given(st.integers(-4, 3), st.integers(1, 3))
def test_stack_puts_a_new_dimension_anywhere_and_unbind_takes_it_out_again(dim: int, count: int) -> None:
    arrays = [np.random.RandomState(i).rand(2, 3, 4) for i in range(count)]
    found = torch.stack([torch.from_numpy(a) for a in arrays], dim)
    np.testing.assert_array_equal(found.numpy(), np.stack(arrays, dim))
    for piece, array in zip(found.unbind(dim), arrays, strict=True):
        np.testing.assert_array_equal(piece.numpy(), array)


def test_empty_vectors_are_skipped_whatever_the_shape_of_the_others() -> None:
    assert torch.cat([torch.ones(0), torch.ones(2, 3)], 1).shape == (2, 3)


def test_cat_writes_into_out_without_making_it_longer() -> None:
    out = torch.empty(2, 2)
    assert torch.cat([torch.ones(1, 2), torch.zeros(1, 2)], out=out) is out
    assert out.tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x, y: torch.cat([x, y], 1), [(3, 4), (3, 2)]),
        (lambda x, y: torch.cat([x, y, x]), [(2, 2), (1, 2)]),
        (lambda x, y: torch.stack([x, y], 1), [(3, 4), (3, 4)]),
        (lambda x, y: torch.stack([x, y], -1), [(3, 2), (3, 2)]),
        (lambda x, y: torch.hstack([x, y]), [(3, 4), (3, 2)]),
        (lambda x, y: torch.dstack([x, y]), [(3,), (3,)]),
        (lambda x, y: torch.column_stack([x, y]), [(3,), (3, 2)]),
        (torch.block_diag, [(3, 2), (2,)]),
        (lambda x, y: torch.meshgrid(x, y, indexing="xy"), [(2,), (3,)]),
        (torch.cartesian_prod, [(2,), (3,)]),
        (torch.combinations, [(4,)]),
    ],
)
def test_first_and_second_derivatives_are_what_differences_give(function: Any, shapes: list) -> None:
    numeric_gradients.check(function, *shapes)
