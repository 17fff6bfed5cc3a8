"""Products, decompositions, einsum, transforms and factories against rows recorded from torch.

Modules of _ops: linalg, linalg_composite, linalg_eigen, linalg_legacy, matmul, einsum, fourier,
ranges, creation, diagonals.
"""

from __future__ import annotations

from typing import Any

import pytest
import recorded_rows

import mindtorch_v2 as torch


@pytest.mark.parametrize(("setup", "line", "fact"), recorded_rows.recorded("linear_algebra"))
def test_an_op_of_linear_algebra_gives_what_torch_gives(setup: str, line: str, fact: Any) -> None:
    recorded_rows.check(torch, setup, line, fact, scaled=True)


def test_cross_product_of_two_vectors() -> None:
    x, y = torch.tensor([1.0, 0, 0], requires_grad=True), torch.tensor([0.0, 1, 0])
    made = torch.cross(x, y, dim=0)
    assert made.tolist() == torch.linalg.cross(x, y).tolist() == [0, 0, 1]
    made[2].backward()
    assert x.grad.tolist() == [1, 0, 0]


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_a_large_batch_is_factored_and_solved_as_its_matrices_alone(
    dtype: Any, left: bool, adjoint: bool
) -> None:
    a, b = torch.randn(50, 5, 5, dtype=dtype), torch.randn(50, 5, 5, dtype=dtype)
    a[7] = torch.eye(5, dtype=dtype).flip(0)
    factors, pivots = torch.linalg.lu_factor(a)
    solution = torch.linalg.lu_solve(factors, pivots, b, left=left, adjoint=adjoint)
    for i in range(50):
        one, swaps = torch.linalg.lu_factor(a[i])
        assert torch.equal(pivots[i], swaps)
        torch.testing.assert_close(factors[i], one)
        expected = torch.linalg.lu_solve(one, swaps, b[i], left=left, adjoint=adjoint)
        torch.testing.assert_close(solution[i], expected, rtol=1e-6, atol=1e-8)


def test_a_singular_matrix_in_a_large_batch_is_named() -> None:
    a = torch.randn(40, 3, 3, dtype=torch.float64)
    a[5, :, 1] = 0
    info = torch.linalg.lu_factor_ex(a).info
    assert info.nonzero().tolist() == [[5]]
    assert info[5] == 2


@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("wrong", [[0, 1, 2], [4, 4, 4], [-5, 1, 1], [10**6] * 3, [1, 2]])
def test_pivots_are_checked_before_lapack_gets_them(wrong: list[int], batch: tuple[int, ...]) -> None:
    factors = torch.eye(3).expand(*batch, 3, 3)
    pivots = torch.tensor(wrong, dtype=torch.int32).expand(*batch, len(wrong))
    with pytest.raises(RuntimeError, match="ivots"):
        torch.linalg.lu_solve(factors, pivots, torch.ones(3, 1))
    with pytest.raises(RuntimeError, match="ivots"):
        torch.lu_unpack(factors, pivots)
    with pytest.raises(RuntimeError, match="ivots"):
        torch.linalg.ldl_solve(factors, pivots, torch.ones(3, 1))


def test_ldl_pivots_are_counted_from_one_and_are_negative_for_blocks_of_two() -> None:
    matrix = torch.tensor([[0.0, 2.0, 4.0], [2.0, 0.0, 6.0], [4.0, 6.0, 0.0]])
    LD, pivots = torch.linalg.ldl_factor(matrix)
    assert pivots.tolist() == [-3, -3, 3]
    right = torch.tensor([[1.0], [2.0], [3.0]])
    assert torch.allclose(matrix @ torch.linalg.ldl_solve(LD, pivots, right), right)


def test_a_singular_triangle_gives_infinities():
    right = torch.tensor([[1.0, 2.0], [0.0, 0.0]])
    solution = torch.linalg.solve_triangular(right, torch.ones(2, 1), upper=True)
    assert solution.tolist() == [[-float("inf")], [float("inf")]]
    left = torch.tensor([[2.0, 0.0], [3.0, 0.0]])
    solution = torch.linalg.solve_triangular(left, torch.ones(3, 1, 2), upper=False, left=False)
    assert solution.tolist() == [[[-float("inf"), float("inf")]]] * 3


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_triangles_are_solved_for_all_broadcast_batches(left: bool, upper: bool, dtype: Any):
    torch.manual_seed(0)
    for batch, other in (((), ()), ((3,), ()), ((), (2, 3)), ((2, 1), (3,)), ((0,), (1,))):
        a = torch.randn(*batch, 4, 4, dtype=dtype) + 4 * torch.eye(4, dtype=dtype)
        b = torch.randn(*other, *((4, 5) if left else (5, 4)), dtype=dtype)
        for unit in (False, True):
            x = torch.linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit)
            shift = int(unit)
            triangle = torch.triu(a, shift) if upper else torch.tril(a, -shift)
            triangle = triangle + shift * torch.eye(4, dtype=dtype)
            product = triangle @ x if left else x @ triangle
            torch.testing.assert_close(product, b.expand_as(product))
            assert x.mT.is_contiguous()
