"""Sparse tensors in compressed layouts: CSR, CSC, BSR, BSC. Texts and messages are torch's."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest

import mindtorch_v2 as torch

LAYOUTS = ("csr", "csc", "bsr", "bsc")


def matrix(seed: int = 0, rows: int = 4, columns: int = 6) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(rows, columns, generator=generator)
    return values * (torch.rand(rows, columns, generator=generator) < 0.4)


def compressed(dense: torch.Tensor, name: str) -> torch.Tensor:
    method = getattr(dense, f"to_sparse_{name}")
    return method((2, 3)) if name.startswith("b") else method()


def small() -> torch.Tensor:
    return torch.sparse_csr_tensor([0, 2, 3, 3], [0, 2, 1], torch.tensor([1.0, 2.0, 3.0]), size=(3, 4))


def test_a_tensor_prints_as_in_torch() -> None:
    assert repr(small()) == (
        "tensor(crow_indices=tensor([0, 2, 3, 3]),\n       col_indices=tensor([0, 2, 1]),\n"
        "       values=tensor([1., 2., 3.]), size=(3, 4), nnz=3,\n       layout=torch.sparse_csr)"
    )
    assert repr(small().t()) == (
        "tensor(ccol_indices=tensor([0, 2, 3, 3]),\n       row_indices=tensor([0, 2, 1]),\n"
        "       values=tensor([1., 2., 3.]), size=(4, 3), nnz=3,\n       layout=torch.sparse_csc)"
    )


def test_a_tensor_says_what_it_is() -> None:
    a = small()
    assert (a.layout, a.is_sparse, a.is_sparse_csr) == (torch.sparse_csr, False, True)
    assert (a.shape, a._nnz(), a.sparse_dim(), a.dense_dim(), a.numel()) == ((3, 4), 3, 2, 0, 12)
    assert not a.to_sparse_csc().is_sparse_csr


@pytest.mark.parametrize("name", LAYOUTS)
def test_conversions_keep_all_elements(name: str) -> None:
    dense = matrix()
    a = compressed(dense, name)
    assert a.layout is getattr(torch, f"sparse_{name}")
    assert a.to_dense().equal(dense)
    assert a.to_sparse().to_dense().equal(dense)
    assert compressed(dense.to_sparse(), name).values().equal(a.values())
    for other in LAYOUTS:
        assert compressed(a, other).to_dense().equal(dense)


def test_the_size_is_inferred_from_the_indices() -> None:
    assert torch.sparse_csr_tensor([0, 1, 2], [0, 3], [1, 2]).shape == (2, 4)
    assert torch.sparse_csc_tensor([0, 1, 2], [0, 3], [1, 2]).shape == (4, 2)
    assert torch.sparse_bsr_tensor([0, 1, 2], [0, 1], torch.ones(2, 2, 3)).shape == (4, 6)


def test_matrices_of_a_batch() -> None:
    a = torch.sparse_csr_tensor([[0, 1, 2], [0, 1, 2]], [[0, 1], [1, 0]], [[1.0, 2.0], [3.0, 4.0]])
    assert a.shape == (2, 2, 2)
    assert a.to_dense().tolist() == [[[1, 0], [0, 2]], [[0, 3], [4, 0]]]
    assert a.to_dense().to_sparse_csr().col_indices().equal(a.col_indices())


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (([0, 2, 1], [0, 1], [1.0, 2.0], (2, 2)), "`crow_indices[..., -1] == nnz` is not satisfied."),
        (([0, 1, 2], [0, 5], [1.0, 2.0], (2, 2)), "`0 <= col_indices < ncols` is not satisfied."),
        (([0, 1, 2], [0, -1], [1.0, 2.0], (2, 2)), "`0 <= col_indices < ncols` is not satisfied."),
        (([1, 1, 2], [0, 1], [1.0, 2.0], (2, 2)), "`crow_indices[..., 0] == 0` is not satisfied."),
        (
            ([0, 1, 2], [0], [1.0, 2.0], (2, 2)),
            "col_indices.shape[-1] must be equal to nnz (=2) as defined by values.shape[0], but got 1",
        ),
        (
            ([0, 1, 2], [0, 0], [1.0, 2.0], (3, 2)),
            "crow_indices.shape[-1] must be equal to the number of rows + 1 (=4), but got 3",
        ),
    ],
)
@pytest.mark.parametrize("check", [True, False, None])
def test_indices_that_point_outside_are_refused(parts: tuple, text: str, check: Any) -> None:
    with pytest.raises(RuntimeError) as error:
        torch.sparse_csr_tensor(*parts, check_invariants=check)
    assert str(error.value) == text


def test_the_order_of_indices_is_checked_on_request() -> None:
    parts = ([0, 2, 2], [1, 0], [1.0, 2.0], (2, 2))
    with pytest.raises(RuntimeError, match="are sorted and distinct"):
        torch.sparse_csr_tensor(*parts, check_invariants=True)
    assert torch.sparse_csr_tensor(*parts).to_dense().tolist() == [[2, 1], [0, 0]]


@pytest.mark.parametrize("name", LAYOUTS)
def test_products(name: str) -> None:
    dense, other = matrix(), matrix(1, 6, 3)
    a = compressed(dense, name)
    vector = torch.arange(6.0)
    torch.testing.assert_close(a @ other, dense @ other)
    torch.testing.assert_close(torch.sparse.mm(a, other), dense @ other)
    torch.testing.assert_close(a @ vector, dense @ vector)
    torch.testing.assert_close(other.mT @ a.t(), other.mT @ dense.mT)
    torch.testing.assert_close(
        torch.addmm(torch.ones(4, 3), a, other, beta=2, alpha=3), 2 + 3 * (dense @ other)
    )


def test_a_product_of_sparse_matrices_is_sparse() -> None:
    dense = matrix()
    product = dense.to_sparse_csr() @ dense.mT.to_sparse_csr()
    assert product.layout is torch.sparse_csr
    torch.testing.assert_close(product.to_dense(), dense @ dense.mT)


def test_arithmetic_keeps_the_layout() -> None:
    dense, a = matrix(), matrix().to_sparse_csr()
    other = matrix(2)
    results = {
        "a * 2": 2 * dense,
        "2 * a": 2 * dense,
        "-a": -dense,
        "a + b": dense + other,
        "a * b": dense * other,
    }
    results |= {
        "a * d": dense * other,
        "a.abs()": dense.abs(),
        "a.sin()": dense.sin(),
        "a.double()": dense.double(),
    }
    for text, expected in results.items():
        result = eval(text, {"a": a, "b": other.to_sparse_csr(), "d": other})
        assert result.layout is torch.sparse_csr, text
        torch.testing.assert_close(result.to_dense(), expected)
    torch.testing.assert_close(dense + a, dense + dense)
    torch.testing.assert_close(a.sum(), dense.sum())


@pytest.mark.parametrize("name", ["csr", "csc"])
def test_gradients_of_products(name: str) -> None:
    dense, other = matrix().requires_grad_(), matrix(1, 6, 3).requires_grad_()
    a = compressed(matrix(), name).requires_grad_()
    weight = torch.arange(12.0).reshape(4, 3)
    expected = torch.autograd.grad(((dense @ other) * weight).sum(), (dense, other))
    to_a, to_other = torch.autograd.grad((torch.sparse.mm(a, other) * weight).sum(), (a, other))
    assert to_a.layout is a.layout
    torch.testing.assert_close(to_a.to_dense(), expected[0] * (dense != 0))
    torch.testing.assert_close(to_other, expected[1])


def test_gradients_reach_the_values_and_a_dense_tensor() -> None:
    values = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    a = torch.sparse_csr_tensor(torch.tensor([0, 2, 3, 3]), torch.tensor([0, 2, 1]), values, size=(3, 4))
    (a @ torch.arange(4.0)).sum().backward()
    assert values.grad.tolist() == [0, 2, 1]
    dense = torch.tensor([[1.0, 0], [2, 3]], requires_grad=True)
    (dense.to_sparse_csr() * 2).to_dense().sum().backward()
    assert dense.grad.tolist() == [[2, 0], [2, 2]]


def test_gradients_of_a_leaf_add_up() -> None:
    a = small().requires_grad_()
    for _ in range(2):
        (a * 3).values().sum().backward()
    assert a.grad.values().tolist() == [6, 6, 6]


def test_reduced_products_and_sampled_products() -> None:
    a, ones = small(), torch.ones(4, 2)
    assert torch.sparse.mm(a, ones, "mean").tolist() == [[1.5, 1.5], [3, 3], [0, 0]]
    assert torch.sparse.mm(a, ones, "amax").tolist() == [[2, 2], [3, 3], [0, 0]]
    sampled = torch.sparse.sampled_addmm(a, torch.ones(3, 2), torch.ones(2, 4))
    assert sampled.values().tolist() == [3, 4, 5]


def test_tensors_are_copied_pickled_and_saved() -> None:
    a, file = small(), io.BytesIO()
    torch.save(a, file)
    file.seek(0)
    for other in (copy.deepcopy(a), pickle.loads(pickle.dumps(a)), torch.load(file), a.clone()):
        assert repr(other) == repr(a)


def test_zeros_have_the_layout_that_is_asked_for() -> None:
    assert torch.zeros(2, 3, layout=torch.sparse_csr).crow_indices().tolist() == [0, 0, 0]
    assert torch.zeros(2, 3, layout=torch.sparse_coo).layout is torch.sparse_coo
    assert torch.zeros_like(small())._nnz() == 0
    with pytest.raises(RuntimeError, match=r"layout torch.sparse_csr is not supported"):
        torch.ones(2, 3, layout=torch.sparse_csr)


def test_an_op_without_a_compressed_form_names_itself_and_the_layout() -> None:
    with pytest.raises(NotImplementedError, match=r"'aten::exp'.*unsupported tensor layout: SparseCsr"):
        small().exp()
    with pytest.raises(RuntimeError, match="indices expected sparse coordinate tensor layout"):
        small().indices()
    with pytest.raises(RuntimeError, match="crow_indices expected sparse row compressed"):
        torch.ones(2).crow_indices()


def test_a_recording_sees_ops_on_compressed_tensors() -> None:
    a = small()
    with torch.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True) as recording:
        result = a @ torch.ones(4, 2)
    assert result.equal(a @ torch.ones(4, 2))
    assert "aten::mm" in {event.name for event in recording.events()}


def test_row_indices_are_compressed_and_expanded() -> None:
    compressed = torch._convert_indices_from_coo_to_csr(torch.tensor([0, 0, 1, 3]), 5)
    assert compressed.tolist() == [0, 2, 3, 3, 4, 4]
    assert compressed.dtype == torch.int64
    assert torch._convert_indices_from_coo_to_csr(torch.tensor([1]), 2, out_int32=True).dtype == torch.int32
    expand = torch._convert_indices_from_csr_to_coo
    columns = torch.tensor([0, 1, 1, 2])
    assert expand(torch.tensor([0, 2, 3, 3, 4]), columns).tolist() == [[0, 0, 1, 3], [0, 1, 1, 2]]
    assert expand(torch.tensor([0, 2, 4]), columns, transpose=True).tolist() == [[0, 1, 1, 2], [0, 0, 1, 1]]
    batch = expand(torch.tensor([[0, 2, 3], [0, 1, 3]]), torch.tensor([[0, 1, 1], [0, 2, 1]]))
    assert batch.tolist() == [[0, 0, 0, 1, 1, 1], [0, 0, 1, 0, 1, 1], [0, 1, 1, 0, 2, 1]]
