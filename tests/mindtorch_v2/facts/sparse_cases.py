"""Cases of sparse COO tensors: making, printing, arithmetic, products with gradients, gradients of embeddings, optimisers."""

from __future__ import annotations

from typing import Any


def _matrix(torch: Any, **options: Any) -> Any:
    return torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 4), **options)


def _unordered(torch: Any) -> Any:
    return torch.sparse_coo_tensor([[1, 0, 1, 1], [2, 3, 2, 0]], [1.0, 2.0, 3.0, 4.0], (2, 4))


def constructors_check_their_parts(torch: Any, show: Any) -> None:
    places, values = torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.tensor([3.0, 4.0, 5.0])
    make = torch.sparse_coo_tensor
    show(make(places, values, (2, 4)))
    show(make([[0, 1]], [1, 2]))
    show(make((2, 3)))
    show(make(torch.zeros(1, 0), [], (2,)))
    show(make(places, values, (2, 4), dtype=torch.int32))
    show(make(places, torch.ones(3, 2), (2, 4, 2)))
    show(make(places, values, (2, 4), requires_grad=True))
    show.raises(make, places, values, (2,))
    show.raises(make, places, values[:2], (2, 4))
    show.raises(make, places, torch.ones(3, 2), (2, 4, 3))
    show.raises(make, places[0], values, (2, 4))
    show.raises(make, places, values, (1, 4), check_invariants=True)
    show.raises(make, places - 1, values, (2, 4), check_invariants=True)
    with torch.sparse.check_sparse_tensor_invariants():
        show(torch.sparse.check_sparse_tensor_invariants.is_enabled())
        show.raises(make, places, values, (2, 2))
    show(torch.sparse.check_sparse_tensor_invariants.is_enabled())


def a_sparse_tensor_tells_what_it_is(torch: Any, show: Any) -> None:
    s = _unordered(torch)
    show(s.is_sparse, s.layout, s.shape, s.ndim, s.numel(), s.dtype, s.stride(), s.is_contiguous(), len(s))
    show(s.sparse_dim(), s.dense_dim(), s._nnz(), s.is_coalesced(), s.type(), s.size(1), s.is_leaf)
    show(s._indices(), s._values())
    show.raises(s.indices)
    show.raises(s.values)
    c = s.coalesce()
    show(c, c.is_coalesced(), c.indices(), c.values())
    for call in (s.numpy, s.tolist, s.data_ptr, s.untyped_storage, s.contiguous, s.item, s.__bool__):
        show.raises(call)


def conversions_keep_the_elements(torch: Any, show: Any) -> None:
    s = _unordered(torch)
    show(s.to_dense())
    for made in (
        s.double(),
        s.to(torch.int64),
        s.half(),
        s.clone(),
        s.detach(),
        s.cpu(),
        s.coalesce().float(),
    ):
        show(made)
    show(s.float() is s, s.cpu() is s)
    show(torch.eye(2).to_sparse(), torch.ones(2, 2).to_sparse(1), torch.eye(2).to_sparse().to_sparse())
    show.raises(torch.eye(2).to_sparse, 3)
    show(torch.arange(8.0).reshape(2, 4).sparse_mask(s.coalesce()))
    show(torch.zeros_like(s), torch.empty_like(s))


def shapes_change(torch: Any, show: Any) -> None:
    s = _unordered(torch)
    show(s.t(), s.T.shape, s.transpose(0, 1).is_coalesced(), s.permute(1, 0))
    show(s[0], s[1, 2], s.coalesce().index_select(0, torch.tensor([1, 1])))
    show(torch.cat([s, s]), torch.stack([s, s], 1), s.unsqueeze(0))


def arithmetic_follows_torch(torch: Any, show: Any) -> None:
    s, c = _matrix(torch), _unordered(torch).coalesce()
    show(s + s, c + _matrix(torch).coalesce(), s - s, s.add(s, alpha=3))
    show(torch.ones(2, 4) + s, torch.ones(2, 4) - s, torch.ones(2, 4).add(s, alpha=2))
    show(s * 2, 2 * s, s / 2, -s, s * s, s * torch.ones(2, 4), s * torch.tensor(2.0), s * torch.ones(4))
    show.raises(lambda: s + torch.ones(2, 4))
    show.raises(lambda: s + 1)
    show.raises(lambda: s * torch.ones(3, 1))
    show.raises(lambda: torch.zeros(2, 3).add_(s))
    show.raises(lambda: torch.zeros(2, 4).copy_(s))
    show(torch.zeros(2, 4).add_(s, alpha=2), torch.zeros(2, 4).sub_(s))
    for name in ("abs", "sin", "sqrt", "relu", "sgn", "tanh", "isnan", "square"):
        show(name, getattr(s, name)())
    show(s.pow(2), s.norm(), s.any())
    t = s.clone()
    show(t.mul_(2), t.add_(s), t.neg_(), t.div_(2), t.zero_(), t.copy_(s))


def sums_are_dense_or_sparse(torch: Any, show: Any) -> None:
    s = _unordered(torch)
    h = torch.sparse_coo_tensor([[0, 2, 0]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], (3, 2))
    show(
        s.sum(),
        torch.sparse.sum(s),
        torch.sparse.sum(s, 0),
        torch.sparse.sum(s, [0, 1]),
        s.sum(1),
        s.sum(0, keepdim=True),
    )
    show(torch.sparse.sum(h, 1), torch.sparse.sum(h, 0), torch.sparse.sum(s, dtype=torch.float64))
    show(torch.sparse.softmax(s, 1), torch.sparse.log_softmax(s, 0))
    show(torch.sparse.spdiags(torch.ones(2, 3), torch.tensor([0, 1]), (3, 3)))


def products_follow_torch(torch: Any, show: Any) -> None:
    s, d = _unordered(torch), torch.arange(8.0).reshape(4, 2)
    show(torch.sparse.mm(s, d), s @ d, torch.mm(s, d), s.mm(d), torch.spmm(s, d), torch.hspmm(s, d))
    show(torch.sparse.addmm(torch.ones(2, 2), s, d), torch.addmm(torch.ones(2, 2), s, d, beta=0.5, alpha=2))
    show(
        torch.smm(s, d),
        torch.sparse.mm(s, s.t()),
        d.t() @ s.t(),
        s @ torch.ones(4),
        torch.mv(s, torch.ones(4)),
    )
    show(torch.bmm(torch.stack([s, s]), torch.ones(2, 4, 1)))
    show.raises(torch.sparse.mm, s, torch.ones(3, 2))


def gradients_go_through_sparse_products(torch: Any, show: Any) -> None:
    s, d = _matrix(torch, requires_grad=True), torch.arange(8.0).reshape(4, 2).requires_grad_()
    y = torch.sparse.mm(s, d)
    show(y)
    (y * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    show(s.grad, d.grad)
    values = torch.tensor([3.0, 4.0, 5.0], requires_grad=True)
    made = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], values, (2, 4))
    show(made, made.coalesce(), made.coalesce().values(), made.to_dense(), made + made, made * 2)
    (made.to_dense() ** 2).sum().backward()
    show(values.grad)
    values.grad = None
    (torch.sparse.mm(made, d.detach()) ** 2).sum().backward()
    show(values.grad)
    values.grad = None
    (torch.sparse.sum(made, 0).to_dense() * torch.arange(4.0)).sum().backward()
    show(values.grad)
    dense = torch.eye(3).requires_grad_()
    show(dense.to_sparse())
    dense.to_sparse().coalesce().values().sum().backward()
    show(dense.grad)


def embeddings_have_sparse_gradients(torch: Any, show: Any) -> None:
    table = torch.nn.Embedding(5, 2, sparse=True)
    with torch.no_grad():
        table.weight.fill_(1.0)
    picked = torch.tensor([1, 3, 1])
    (table(picked) ** 2).sum().backward()
    show(table.weight.grad)
    (table(picked) ** 2).sum().backward()
    show(table.weight.grad.coalesce())
    table.weight.sum().backward()
    show(table.weight.grad)
    table.zero_grad()
    ((table(picked) ** 2).sum() + table.weight.sum()).backward()
    show(table.weight.grad)
    padded = torch.nn.Embedding(5, 2, sparse=True, padding_idx=1)
    padded(picked).sum().backward()
    show(padded.weight.grad)
    padded.zero_grad(set_to_none=False)
    show(padded.weight.grad)


def optimisers_take_sparse_gradients(torch: Any, show: Any) -> None:
    def plain(p: Any) -> Any:
        return torch.optim.SGD(p, lr=0.1)

    def momentum(p: Any) -> Any:
        return torch.optim.SGD(p, lr=0.1, momentum=0.9)

    def decay(p: Any) -> Any:
        return torch.optim.SGD(p, lr=0.1, weight_decay=0.1)

    def adagrad(p: Any) -> Any:
        return torch.optim.Adagrad(p, lr=0.1)

    def sparse_adam(p: Any) -> Any:
        return torch.optim.SparseAdam(p, lr=0.1)

    def train(make: Any) -> Any:
        table = torch.nn.Embedding(5, 2, sparse=True)
        with torch.no_grad():
            table.weight.copy_(torch.arange(10.0).view(5, 2))
        optimiser = make(table.parameters())
        for k in range(3):
            optimiser.zero_grad()
            (table(torch.tensor([1, 3, 1 + k])) ** 2).sum().backward()
            optimiser.step()
        return table.weight.data

    for make in (plain, momentum, adagrad, sparse_adam):
        show(train(make))
    show.raises(train, decay)
    show.raises(train, torch.optim.Adam)
