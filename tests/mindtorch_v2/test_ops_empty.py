"""Tensors without elements: batches of none, sizes of 0, matrices of 0 by 0. Expected values are torch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import mindtorch_v2 as torch

F = torch.nn.functional


def _zeros(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, requires_grad=True)


def _ones(*shape: int) -> torch.Tensor:
    return torch.ones(shape, requires_grad=True)


INDEX = torch.zeros(0, dtype=torch.uint8)
# a call with its tensors, the shapes of its results
ROWS: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...], list[tuple[int, ...]]]] = {
    "group_norm": (
        lambda x, w, b: F.group_norm(x, 2, w, b),
        (_zeros(0, 4, 3), _ones(4), _ones(4)),
        [(0, 4, 3)],
    ),
    "bilinear": (F.bilinear, (_zeros(0, 3), _zeros(0, 4), _ones(2, 3, 4)), [(0, 2)]),
    "conv1d": (lambda x, w: F.conv1d(x, w, groups=2), (_zeros(0, 2, 4), _ones(2, 1, 2)), [(0, 2, 3)]),
    "conv2d": (
        lambda x, w: F.conv2d(x, w, groups=2),
        (_zeros(0, 2, 4, 4), _ones(2, 1, 2, 2)),
        [(0, 2, 3, 3)],
    ),
    "conv2d by strides": (
        lambda x, w: F.conv2d(x, w, stride=2),
        (_zeros(0, 2, 4, 4), _ones(3, 2, 2, 2)),
        [(0, 3, 2, 2)],
    ),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), (_zeros(0, 2, 4, 4),), [(0, 2, 2, 2)]),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, 2), (_zeros(0, 2, 4, 4),), [(0, 2, 2, 2)]),
    "einsum": (lambda a, b: torch.einsum("ij,jk->ik", a, b), (_zeros(0, 2), _ones(2, 3)), [(0, 3)]),
    "gather": (lambda x: x.gather(0, INDEX), (_ones(5),), [(0,)]),
    "scatter_add": (lambda x, y: x.scatter_add(0, INDEX, y), (_ones(5), _zeros(0)), [(5,)]),
    "lu of no columns": (torch.linalg.lu, (_zeros(3, 0),), [(3, 3), (3, 0), (0, 0)]),
    "lu_factor of no rows": (torch.linalg.lu_factor, (_zeros(0, 3),), [(0, 3), (0,)]),
    "geqrf": (torch.geqrf, (torch.zeros(5, 0),), [(5, 0), (0,)]),
    "householder_product": (torch.linalg.householder_product, (_zeros(3, 0), _zeros(0)), [(3, 0)]),
    "ldl_factor": (torch.linalg.ldl_factor, (torch.zeros(3, 0, 0),), [(3, 0, 0), (3, 0)]),
    "searchsorted": (torch.searchsorted, (torch.zeros(0, 3), torch.zeros(0, 2)), [(0, 2)]),
    "searchsorted in nothing": (torch.searchsorted, (torch.zeros(2, 0), torch.zeros(2, 3)), [(2, 3)]),
    "unique_consecutive": (
        lambda x: torch.unique_consecutive(x, return_inverse=True, dim=1),
        (torch.zeros(0, 3),),
        [(0, 1), (3,)],
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_an_op_takes_tensors_without_elements(name: str) -> None:
    function, tensors, shapes = ROWS[name]
    results = function(*tensors)
    results = [results] if isinstance(results, torch.Tensor) else list(results)
    assert [tuple(result.shape) for result in results] == shapes
    roots, leaves = [r for r in results if r.requires_grad], [t for t in tensors if t.requires_grad]
    if roots and leaves:
        gradients = torch.autograd.grad([r.sum() for r in roots], leaves, allow_unused=True)
        for leaf, gradient in zip(leaves, gradients):
            assert gradient is None or gradient.shape == leaf.shape


def test_a_batch_of_none_leaves_running_statistics_alone() -> None:
    mean, variance = torch.zeros(3), torch.ones(3)
    F.batch_norm(torch.zeros(0, 3, 2), mean, variance, training=True)
    assert (mean.tolist(), variance.tolist()) == ([0.0] * 3, [1.0] * 3)


def test_the_mean_of_no_losses_is_nan() -> None:
    scores = _zeros(0, 3)
    loss = F.soft_margin_loss(scores, torch.zeros(0, 3))
    assert math.isnan(loss.item())
    loss.backward()
    assert scores.grad.shape == (0, 3)


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 3), (2, 0, 0)])
def test_rank_and_condition_of_matrices_without_elements_are_0(shape: tuple[int, ...]) -> None:
    assert torch.equal(
        torch.linalg.matrix_rank(torch.zeros(shape)), torch.zeros(shape[:-2], dtype=torch.int64)
    )
    hermitian = torch.zeros((*shape[:-2], 0, 0))
    rank = torch.linalg.matrix_rank(hermitian, hermitian=True)
    assert torch.equal(rank, torch.zeros(shape[:-2], dtype=torch.int64))
    assert torch.equal(torch.linalg.cond(torch.zeros(shape)), torch.zeros(shape[:-2]))


def test_reflections_of_no_columns_are_an_identity() -> None:
    product = torch.linalg.householder_product(torch.ones(3, 2), torch.zeros(0))
    assert product.tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segments_of_elements_without_numbers_have_none_either(reduce: str) -> None:
    data = torch.ones(3, 0, requires_grad=True)
    result = torch.segment_reduce(data, reduce, lengths=torch.tensor([1, 0, 2]))
    assert result.shape == (3, 0)
    assert torch.autograd.grad(result.sum(), data)[0].shape == (3, 0)
