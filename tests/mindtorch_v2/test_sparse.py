"""Sparse COO tensors show, compute, refuse and differentiate as torch's; other sparse layouts are refused.

The facts are recorded with `python facts/record_cases.py sparse_cases`.
"""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

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


@settings(max_examples=60)
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


@settings(max_examples=30)
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


# What torch shows at the top level of these calls.
SHOWN = {
    "torch.sparse_coo_tensor(i, v, (2, 3))": "to to sparse_coo_tensor",
    "torch.sparse_coo_tensor(i, v)": "to to sparse_coo_tensor",
    "s.to_dense()": "to_dense",
    "s.coalesce()": "coalesce",
    "s.coalesce().indices(); s.coalesce().values()": "coalesce indices coalesce values",
    "s._indices(); s._values(); s._nnz(); s.is_coalesced()": "_indices _values _nnz is_coalesced",
    "s.sparse_dim(); s.dense_dim()": "sparse_dim dense_dim",
    "s @ x": "matmul",
    "torch.mm(s, x)": "mm",
    "s @ x[:, 0]": "select matmul",
    "torch.sparse.mm(s, x)": "_sparse_mm",
    "torch.sparse.addmm(b, s, x)": "_sparse_addmm",
    "torch.sparse.sum(s); torch.sparse.sum(s, dim=1)": "_sparse_sum _sparse_sum",
    "s + s; y + s; s * 2; s * y; s / 2; -s": "add add mul mul div neg",
    "y.add_(s)": "add_",
    "y.to_sparse(); y.to_sparse(1)": "to_sparse to_sparse",
    "y.sparse_mask(s)": "sparse_mask",
    "s.t(); s.transpose(0, 1); s.permute(1, 0)": "t transpose permute",
    "s.clone(); s.abs(); s.sum(); s.sum(1); s[0]": "clone abs sum sum select",
    "torch.cat([s, s])": "cat",
    "repr(s)": "",
}


@pytest.mark.parametrize("code", SHOWN)
def test_a_profile_shows_the_ops_that_a_program_calls_on_sparse_tensors(code: str) -> None:
    i, v = torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.ones(3)
    names = {"torch": torch, "i": i, "v": v, "s": torch.sparse_coo_tensor(i, v, (2, 3))}
    names |= {"x": torch.ones(3, 4), "y": torch.ones(2, 3), "b": torch.ones(2, 4)}
    with torch.profiler.profile(record_shapes=True, profile_memory=True) as recorded:
        exec(code, names)
    top = [e.name for e in recorded.events() if e.cpu_parent is None and e.name != "[memory]"]
    assert top == [f"aten::{name}" for name in SHOWN[code].split()]


def test_a_profile_shows_the_size_of_a_sparse_tensor() -> None:
    left, right = scattered(0, 3), torch.ones(5, 2, dtype=torch.float64)
    with torch.profiler.profile(record_shapes=True, profile_memory=True) as recorded:
        torch.mm(left, right)
    (event,) = [e for e in recorded.events() if e.name == "aten::mm"]
    assert (event.input_shapes, event.cpu_memory_usage) == ([[4, 5], [5, 2]], 4 * 2 * 8)


def test_a_profile_shows_sparse_gradients_of_an_embedding() -> None:
    embedding = torch.nn.Embedding(6, 3, sparse=True)
    for times in (1, 2):
        with torch.profiler.profile(record_shapes=True) as recorded:
            (embedding(torch.tensor([1, 2, 2])) * 2).sum().backward()
        node, *_ = [e for e in recorded.events() if e.name == "torch::autograd::AccumulateGrad"]
        assert node.input_shapes == [[6, 3]]
        assert [e.name for e in node.cpu_children] == ["aten::add_"] * (times - 1)
        names = [e.name for e in recorded.events()]
        assert names.count("aten::embedding_sparse_backward") == 1


def test_products_that_give_sparse_results_hold_what_the_dense_product_holds() -> None:
    sparse = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2))
    dense = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    product = sparse.to_dense() @ dense
    assert torch.equal(torch.smm(sparse, dense).to_dense(), product)
    assert torch.equal(torch.hspmm(sparse, dense).to_dense(), product)
    assert torch.equal(torch.sspaddmm(sparse, sparse, dense).to_dense(), sparse.to_dense() + product)


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
@pytest.mark.parametrize(
    ("expression", "sparse"),
    [
        (lambda a, b: a @ b, (0,)),
        (lambda a, b: torch.mm(b.T, a.to(b.dtype).transpose(0, 1)), (0,)),
        (lambda a, b: a @ b[:, 0], (0,)),
        (torch.mm, (0, 1)),
        (lambda a, b: torch.addmm(b[:3] * 0 + 1, a, b, alpha=1 + 1j, beta=2j), (0,)),
        (lambda a, b: a * (1 + 2j), (0,)),
        (lambda a, b: a * a, (0,)),
        (lambda a, b: a * (b.sum() * 1j), (0,)),
        (lambda a, b: a * b.transpose(0, 1).repeat(2, 1)[:3], (0,)),
        (lambda a, b: torch.add(a, a * 2, alpha=3j), (0,)),
    ],
)
def test_gradients_of_complex_sparse_tensors_are_those_of_dense_ones(
    expression: Any, sparse: tuple[int, ...], layout: str
) -> None:
    generator = torch.Generator().manual_seed(0)
    parts = [torch.randn(shape, generator=generator, dtype=torch.complex128) for shape in ((3, 4), (4, 2))]
    kind = getattr(torch, layout)

    def gradients(leaves: list[Any]) -> list[Any]:
        leaves = [leaf.requires_grad_() for leaf in leaves]
        result = expression(*leaves)
        dense = result if result.layout is torch.strided else result.to_dense()
        weights = torch.arange(1.0, dense.numel() + 1).reshape(dense.shape) * (1 - 2j)
        grads = torch.autograd.grad((dense * weights).sum().real, leaves, allow_unused=True)
        return [None if g is None else g if g.layout is torch.strided else g.to_dense() for g in grads]

    expected = gradients([part.clone() for part in parts])
    given = gradients([p.to_sparse(layout=kind) if i in sparse else p.clone() for i, p in enumerate(parts)])
    for ours, wanted in zip(given, expected):
        assert (ours is None) == (wanted is None)
        if wanted is not None:
            torch.testing.assert_close(ours, wanted)


def test_gradient_of_a_sparse_tensor_divided_by_a_complex_number_is_conjugated() -> None:
    x = torch.eye(2, dtype=torch.complex128).to_sparse().requires_grad_()
    (gradient,) = torch.autograd.grad((x / (1 + 2j)).to_dense().sum().real, x)
    torch.testing.assert_close(gradient.to_dense()[0, 0], torch.tensor(1 / (1 - 2j), dtype=torch.complex128))
