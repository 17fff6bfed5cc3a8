"""aten::_grouped_mm: products of groups of rows or columns, beside the products of the groups one by one."""

from __future__ import annotations

import itertools
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


def _integers(shape: Any, seed: int) -> Any:
    torch.manual_seed(seed)
    return torch.randint(-3, 4, shape).float().requires_grad_()


def _exact_slopes(function: Any, tensors: list[Any]) -> list[Any]:
    """The derivative of a number by each element of tensors of integers.

    The number is linear in each tensor: a step of 1 to either side gives it without error, also in float32.
    """
    slopes = []
    for tensor in tensors:
        slope = torch.empty(tensor.shape)
        for place in itertools.product(*map(range, tensor.shape)):
            with torch.no_grad():
                step = torch.zeros(tensor.shape)
                step[place] = 1
            up, down = (
                function(
                    *[(t + sign * step if t is tensor else t).detach().requires_grad_() for t in tensors]
                )
                for sign in (1, -1)
            )
            slope[place] = (up - down).item() / 2
        slopes.append(slope)
    return slopes


@pytest.mark.parametrize(
    ("first", "second", "ends"),
    [
        ((5, 4), (2, 4, 4), [2, 5]),
        ((2, 3, 4), (4, 5), [4, 5]),
        ((4, 5), (5, 4), [3, 5]),
        ((2, 3, 4), (2, 4, 5), None),
        ((5, 4), (3, 4, 4), [0, 5, 5]),  # two groups without rows
    ],
)
def test_first_and_second_derivatives_are_the_slopes_of_the_function(
    first: Any, second: Any, ends: list[int] | None
) -> None:
    offs = None if ends is None else torch.tensor(ends, dtype=torch.int32)
    a, b = _integers(first, 0), _integers(second, 1)
    weight = _integers(torch._grouped_mm(a, b, offs).shape, 2).detach()
    weights = [_integers(tensor.shape, 3 + i).detach() for i, tensor in enumerate((a, b))]

    def value(a: Any, b: Any) -> Any:
        return (torch._grouped_mm(a, b, offs) * weight).sum()

    def slope(a: Any, b: Any, which: int) -> Any:
        gradient = torch.autograd.grad(value(a, b), (a, b), create_graph=True)[which]
        return (gradient * weights[which]).sum()

    for ours, expected in zip(torch.autograd.grad(value(a, b), (a, b)), _exact_slopes(value, [a, b])):
        assert torch.equal(ours, expected)
    for which, other in ((0, b), (1, a)):  # the slope along one matrix is a function of the other one
        (ours,) = torch.autograd.grad(slope(a, b, which), other)

        def of_other(t: Any, which: int = which) -> Any:
            return slope(*((a, t) if which == 0 else (t, b)), which)

        assert torch.equal(ours, _exact_slopes(of_other, [other])[0])


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
