"""Sparse COO tensors show, compute, refuse and differentiate as torch's; other sparse layouts are refused.

The facts are recorded with `python facts/record_cases.py sparse_cases`.
"""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest
import recorded_cases
from hypothesis import given, settings
from hypothesis import strategies as st

import mindtorch_v2 as torch


@pytest.mark.parametrize(("module", "case"), recorded_cases.recorded("sparse_cases"))
def test_sparse_tensors_show_what_torch_shows(module: str, case: str) -> None:
    recorded_cases.check(module, case)


def scattered(seed: int, count: int, shape: tuple[int, ...] = (4, 5)) -> torch.Tensor:
    draw = np.random.RandomState(seed)
    places = np.stack([draw.randint(0, n, count) for n in shape])
    values = torch.from_numpy(draw.standard_normal(count))
    return torch.sparse_coo_tensor(torch.from_numpy(places), values, shape)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 999), st.integers(0, 12), st.integers(0, 12))
def test_sparse_sums_and_products_are_those_of_dense_tensors(seed: int, left: int, right: int) -> None:
    a, b = scattered(seed, left), scattered(seed + 1, right)
    dense = torch.from_numpy(np.random.RandomState(seed).standard_normal((5, 3)))
    torch.testing.assert_close((a + b).to_dense(), a.to_dense() + b.to_dense())
    torch.testing.assert_close((a * b).to_dense(), a.to_dense() * b.to_dense())
    torch.testing.assert_close(torch.sparse.mm(a, dense), a.to_dense() @ dense)
    torch.testing.assert_close(torch.sparse.mm(a, b.t()).to_dense(), a.to_dense() @ b.to_dense().t())
    torch.testing.assert_close(a.coalesce().to_dense(), a.to_dense())
    torch.testing.assert_close(a.sum(1).to_dense(), a.to_dense().sum(1))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 999), st.integers(1, 12))
def test_gradients_of_sparse_products_are_those_of_dense_ones(seed: int, count: int) -> None:
    a = scattered(seed, count).coalesce()
    dense = torch.from_numpy(np.random.RandomState(seed).standard_normal((5, 3))).requires_grad_()
    weight = torch.from_numpy(np.random.RandomState(seed + 1).standard_normal((4, 3)))
    values = a.values().clone().requires_grad_()
    made = torch.sparse.mm(torch.sparse_coo_tensor(a.indices(), values, a.shape, is_coalesced=True), dense)
    got = torch.autograd.grad((made * weight).sum(), (values, dense))
    full = a.to_dense().requires_grad_()
    want_full, want_dense = torch.autograd.grad(((full @ dense) * weight).sum(), (full, dense))
    torch.testing.assert_close(got[0], want_full[tuple(a.indices())])
    torch.testing.assert_close(got[1], want_dense)


def test_an_op_without_a_sparse_form_names_itself() -> None:
    with pytest.raises(
        NotImplementedError, match=r"Could not run 'aten::exp' with arguments from the 'SparseCPU' backend"
    ):
        scattered(0, 3).exp()


@pytest.mark.parametrize("name", ["csr", "csc", "bsr", "bsc"])
def test_other_sparse_layouts_are_refused_by_name(name: str) -> None:
    with pytest.raises(NotImplementedError, match=f"sparse_{name} tensors are not supported"):
        getattr(torch.eye(2), f"to_sparse_{name}")()
    with pytest.raises(NotImplementedError, match=f"sparse_{name} tensors are not supported"):
        getattr(torch, f"sparse_{name}_tensor")([0, 1], [0], [1.0])


def test_sparse_tensors_are_copied_pickled_and_saved() -> None:
    a = scattered(0, 6)
    file = io.BytesIO()
    torch.save({"a": a}, file)
    file.seek(0)
    for again in (copy.deepcopy(a), pickle.loads(pickle.dumps(a)), torch.load(file)["a"]):
        assert again.is_sparse
        assert again.is_coalesced() == a.is_coalesced()
        assert torch.equal(again._indices(), a._indices())
        assert torch.equal(again._values(), a._values())


def test_a_profile_shows_products_of_sparse_tensors() -> None:
    left, right = scattered(0, 3), torch.ones(5, 2, dtype=torch.float64)
    with torch.profiler.profile(record_shapes=True) as recorded:
        torch.mm(left, right)
    first, *inside = recorded.events()
    assert (first.name, first.input_shapes) == ("aten::mm", [[4, 5], [5, 2]])
    assert [e.name for e in inside if e.cpu_parent is first] == ["aten::zeros", "aten::_sparse_addmm"]


def test_products_that_give_sparse_results_hold_what_the_dense_product_holds() -> None:
    sparse = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2))
    dense = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    product = sparse.to_dense() @ dense
    assert torch.equal(torch.smm(sparse, dense).to_dense(), product)
    assert torch.equal(torch.hspmm(sparse, dense).to_dense(), product)
    assert torch.equal(torch.sspaddmm(sparse, sparse, dense).to_dense(), sparse.to_dense() + product)
