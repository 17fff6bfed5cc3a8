"""aten::_grouped_mm: products of groups of rows or columns, beside the products of the groups one by one."""

from __future__ import annotations

from typing import Any

import pytest

import mindtorch_v2 as torch


def _by_group(a: Any, b: Any, ends: list[int]) -> Any:
    starts = [0, *ends[:-1]]
    if a.dim() == 2 and b.dim() == 3:
        return torch.cat([a[s:e] @ b[i] for i, (s, e) in enumerate(zip(starts, ends))])
    if a.dim() == 3 and b.dim() == 2:
        return torch.cat([a[i] @ b[:, s:e] for i, (s, e) in enumerate(zip(starts, ends))], 1)
    return torch.stack([a[:, s:e] @ b[s:e] for s, e in zip(starts, ends)])


@pytest.mark.parametrize(
    ("first", "second", "ends"),
    [((8, 4), (2, 4, 8), [2, 8]), ((2, 8, 4), (4, 8), [4, 8]), ((4, 8), (8, 4), [3, 8])],
)
def test_groups_are_multiplied_one_by_one_and_have_gradients(
    first: Any, second: Any, ends: list[int]
) -> None:
    torch.manual_seed(0)
    tensors = [torch.randn(shape, requires_grad=True) for shape in (first, second)]
    results = []
    for product in (
        torch.nn.functional.grouped_mm(*tensors, offs=torch.tensor(ends, dtype=torch.int32)),
        _by_group(*tensors, ends),
    ):
        gradients = torch.autograd.grad(product.square().sum(), tensors)
        results.append((product.detach(), *gradients))
    for ours, expected in zip(*results):
        torch.testing.assert_close(ours, expected)


def test_two_batches_of_matrices_need_no_groups() -> None:
    a, b = torch.randn(2, 3, 4), torch.randn(2, 4, 5)
    torch.testing.assert_close(torch._grouped_mm(a, b), a @ b)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (((8, 4), (2, 4, 8)), "Have to provide offsets if there is a 2d matrix"),
        (((8, 4), (2, 4, 8), torch.tensor([2, 8])), "Offsets have to be int32"),
        (((8, 4), (2, 4, 8), torch.tensor([8], dtype=torch.int32)), "matrix batch sizes have to match"),
        (((8, 8), (2, 4, 8), torch.tensor([2, 8], dtype=torch.int32)), "contraction dimension of mat_a"),
        (((8,), (2, 4, 8)), "mat_a has to be 2 or 3d"),
    ],
)  # fmt: skip
def test_wrong_groups_are_refused_in_the_words_of_torch(arguments: Any, text: str) -> None:
    first, second, *rest = arguments
    with pytest.raises(RuntimeError, match=text):
        torch._grouped_mm(torch.ones(first), torch.ones(second), *rest)
