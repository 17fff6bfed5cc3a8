"""Cases of torch.func: grad, vjp, jvp, jacobians, vmap and rearrange."""

from __future__ import annotations

from typing import Any


def grad_gives_gradients_of_scalar_functions(torch: Any, show: Any) -> None:
    func = torch.func
    x = torch.tensor([1.0, 2.0, 3.0])
    show(func.grad(lambda t: (t**2).sum())(x), x.requires_grad)
    show(func.grad(func.grad(lambda t: t.sin()))(torch.tensor(1.0)))
    show(func.grad(lambda a, b: (a * b).sum(), argnums=1)(x, x * 2))
    show(func.grad(lambda a, b: (a * b).sum(), argnums=(0, 1))(x, x * 2))
    show(func.grad(lambda a, b: (a * b).sum(), argnums=-1)(x, x * 2))
    show(func.grad(lambda t: ((t**2).sum(), {"y": t * 2}), has_aux=True)(x))
    show(func.grad_and_value(lambda t: (t**2).sum())(x))
    show(func.grad_and_value(lambda t: ((t**2).sum(), t + 1), has_aux=True)(x))
    show.raises(func.grad(lambda t: (t.sum(), "aux"), has_aux=True), x)
    show(func.grad(lambda d: (d["a"] * d["b"][0]).sum())({"a": x, "b": [x]}))
    show(func.grad(lambda t, k=1: (t * k).sum())(x, k=5))
    show(func.grad(lambda t: torch.tensor(3.0))(x))
    show(func.grad(lambda t: (t * t.detach()).sum())(x))
    y = x.clone().requires_grad_()
    out = func.grad(lambda t: (t**3).sum())(y)
    show(out.requires_grad)
    out.sum().backward()
    show(y.grad)
    w = torch.tensor(2.0, requires_grad=True)
    out = func.grad(lambda t: (w * t**2).sum())(x)
    out.sum().backward()
    show(w.grad)
    show.raises(func.grad(lambda t: t), x)
    show.raises(func.grad(lambda t: 3.0), x)
    show.raises(func.grad(lambda t: (t.sum(), 1)), x)
    show.raises(func.grad(lambda t: t.sum(), has_aux=True), x)
    show.raises(func.grad(lambda t: t.sum(), argnums=2), x)
    show.raises(func.grad(lambda t: t.sum(), argnums="a"), x)
    show.raises(func.grad(lambda t: t.sum(), argnums=()), x)
    show.raises(func.grad(lambda t: t.sum()), 3.0)
    show.raises(func.grad(lambda t: t.sum()), torch.tensor([1, 2]))


def vjp_and_jvp_multiply_by_the_jacobian(torch: Any, show: Any) -> None:
    func = torch.func
    x = torch.tensor([1.0, 2.0])
    out, vjp_fn = func.vjp(lambda t: t.sin(), x)
    show(out, vjp_fn(torch.ones(2)), vjp_fn(torch.tensor([1.0, 0.0])))
    out, vjp_fn = func.vjp(lambda a, b: {"p": a * b, "s": a + b}, x, x * 3)
    show(out, vjp_fn({"p": torch.ones(2), "s": torch.zeros(2)}))
    out, vjp_fn, aux = func.vjp(lambda t: (t * 2, t + 1), x, has_aux=True)
    show(out, vjp_fn(torch.ones(2)), aux)
    show(func.jvp(lambda t: t.sin(), (x,), (torch.ones(2),)))
    show(func.jvp(lambda a, b: a * b, (x, x), (torch.ones(2), torch.zeros(2))))
    show(func.jvp(lambda t: (t * 2, t + 1), (x,), (torch.ones(2),), has_aux=True))
    out, jvp_fn = func.linearize(lambda t: t**2, x)
    show(out, jvp_fn(torch.ones(2)))
    show.raises(func.vjp, lambda t: 3, x)
    show.raises(vjp_fn, torch.ones(3))
    show.raises(func.jvp, lambda t: t, x, x)
    show.raises(func.jvp, lambda t: t, (x,), (x, x))
    show.raises(func.jvp, lambda t: t, (x,), (torch.ones(3),))
    show.raises(func.jvp, lambda t: 3, (x,), (x,))


def jacobians_and_hessians_have_torchs_shapes(torch: Any, show: Any) -> None:
    func = torch.func
    x = torch.tensor([1.0, 2.0])
    show(func.jacrev(lambda t: t**2)(x), func.jacfwd(lambda t: t**2)(x))
    show(func.jacrev(lambda t: (t**2).sum())(x), func.hessian(lambda t: (t**3).sum())(x))
    show(func.jacrev(lambda a, b: a * b, argnums=(0, 1))(x, x))
    show(func.jacfwd(lambda a, b: a * b, argnums=1)(x, x + 1))
    show(func.jacrev(lambda t: (t * 2, t.sum()))(x))
    show(func.jacrev(lambda t: (t * 2, t), has_aux=True)(x))
    show(func.jacfwd(lambda t: (t * 2, t), has_aux=True)(x))
    show(func.jacrev(lambda d: d["a"] * 2)({"a": x}))
    show(func.jacrev(lambda t: t.reshape(2, 1) * torch.ones(1, 3))(x).shape)
    show(func.jacrev(lambda t: t**2, chunk_size=1)(x))
    show.raises(func.jacrev(lambda t: 3), x)
    show.raises(func.jacrev, lambda t: t, chunk_size=0)


def vmap_maps_over_a_dimension(torch: Any, show: Any) -> None:
    func = torch.func
    x = torch.arange(6.0).reshape(2, 3)
    show(func.vmap(lambda t: t.sum())(x), func.vmap(lambda t: t.sum(), in_dims=1)(x))
    show(func.vmap(lambda a, b: a * b, in_dims=(0, None))(x, torch.tensor([1.0, 2.0, 3.0])))
    show(func.vmap(torch.dot)(x, x), func.vmap(lambda t: t * 2, out_dims=1)(x))
    show(func.vmap(lambda t: (t, t.sum()), out_dims=(1, 0))(x))
    show(func.vmap(lambda d: {"s": d["a"].sum()})({"a": x}))
    show(func.vmap(lambda d, k: d["a"] * k, in_dims=({"a": 0}, None))({"a": x}, 2))
    show(func.vmap(func.vmap(lambda t: t * 2))(x), func.vmap(lambda t: t, chunk_size=1)(x))
    show(func.vmap(lambda t: torch.ones(2))(x), func.vmap(lambda t, *, k: t * k)(x, k=3))
    show(func.vmap(func.grad(lambda t: (t**2).sum()))(x))
    show(torch.vmap(lambda t: t + 1, in_dims=-1, out_dims=-1)(x))
    y = x.clone().requires_grad_()
    func.vmap(lambda t: t**2)(y).sum().backward()
    show(y.grad)
    lin = torch.nn.Linear(3, 1)
    params = dict(lin.named_parameters())

    def loss(p: Any, one: Any) -> Any:
        return func.functional_call(lin, p, (one,)).sum()

    per_sample = func.vmap(func.grad(loss), in_dims=(None, 0))(params, x)
    show(per_sample, sorted(per_sample))
    show.raises(func.vmap(lambda t: t), 3)
    show.raises(func.vmap(lambda a, b: a), x, torch.ones(3))
    show.raises(func.vmap(lambda t: t, in_dims=5), x)
    show.raises(func.vmap(lambda t: t, in_dims=(0, 0)), x)
    show.raises(func.vmap(lambda t: t, in_dims=None), x)
    show.raises(func.vmap(lambda t: 3), x)
    show.raises(func.vmap(lambda t: t, out_dims=(0, 0)), x)
    show.raises(func.vmap(lambda t: t, out_dims="a"), x)
    show.raises(func.vmap(lambda t: t, in_dims="a"), x)
    show.raises(func.vmap(lambda: 3))
    show.raises(func.vmap, lambda t: t, randomness="bad")
    show.raises(func.vmap, lambda t: t, chunk_size=0)
    show.raises(func.vmap(lambda t: t), torch.tensor(1.0))
    show(func.vmap(lambda t: torch.rand(1), randomness="same")(x).unique().numel())


def rearrange_reshapes_by_a_pattern(torch: Any, show: Any) -> None:
    rearrange = torch.func.rearrange
    x = torch.arange(12).reshape(3, 4)
    show(rearrange(x, "a b -> b a"), rearrange(x, "a b -> (a b)"), rearrange(x, "a (b c) -> a b c", c=2))
    show(rearrange(x, "(a1 a2) b -> a2 a1 b", a1=3).shape, rearrange(x, "a b -> a 1 b").shape)
    show(rearrange(x, "... b -> b ...").shape, rearrange(x.reshape(2, 3, 2), "a ... -> ... a").shape)
    show(rearrange(x.reshape(1, 3, 4), "1 b c -> b c").shape, rearrange([x, x], "n a b -> a n b").shape)
    show(rearrange(x.reshape(3, 2, 2), "a ... -> (...) a").shape, rearrange(x, "a b -> a b").shape)
    show.raises(rearrange, x, "a b -> a b c")
    show.raises(rearrange, x, "a -> a")
    show.raises(rearrange, x, "a b")
    show.raises(rearrange, x, "a (b c) -> a b c", c=3)
