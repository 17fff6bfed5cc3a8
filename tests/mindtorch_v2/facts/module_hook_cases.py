"""Cases of nn.Module's hooks: forward, backward, global, registration."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import module_net


def forward_pre_hooks_may_change_the_input(torch: Any, show: Any) -> None:
    class Add(torch.nn.Module):
        def forward(self, a: Any, b: Any = 0) -> Any:
            return a + b

    m = Add()
    seen = []
    first = m.register_forward_pre_hook(lambda mod, args: seen.append(("first", args)))
    second = m.register_forward_pre_hook(lambda mod, args: (args[0] * 2,) + args[1:])
    show(m(3), seen)
    third = m.register_forward_pre_hook(lambda mod, args: args[0] + 1)
    show(m(3))
    m.register_forward_pre_hook(lambda mod, args: seen.append(("prepended", args)), prepend=True)
    seen.clear()
    show(m(3), seen)
    for handle in (first, second, third):
        handle.remove()
    seen.clear()
    show(m(3, b=4), seen)
    kw = m.register_forward_pre_hook(lambda mod, args, kwargs: ((args[0] + 1,), {"b": 10}), with_kwargs=True)
    show(m(3, b=4))
    kw.remove()
    m.register_forward_pre_hook(lambda mod, args, kwargs: None, with_kwargs=True)
    show(m(3, b=4))
    m.register_forward_pre_hook(lambda mod, args, kwargs: (args,), with_kwargs=True)
    show.raises(m, 3, b=4)
    show(len(m._forward_pre_hooks), len(m._forward_pre_hooks_with_kwargs))


def forward_hooks_may_change_the_result(torch: Any, show: Any) -> None:
    class Add(torch.nn.Module):
        def forward(self, a: Any, b: Any = 0) -> Any:
            if a == "fail":
                raise ValueError("bad input")
            return a + b

    m = Add()
    seen: list[Any] = []
    h1 = m.register_forward_hook(lambda mod, args, out: seen.append((args, out)))
    show(m(3, b=1), seen)
    m.register_forward_hook(lambda mod, args, out: out * 2)
    show(m(3, b=1))
    m.register_forward_hook(lambda mod, args, kwargs, out: out + kwargs["b"], with_kwargs=True)
    show(m(3, b=1))
    m.register_forward_hook(lambda mod, args, out: seen.append("early"), prepend=True)
    seen.clear()
    m(1, b=1)
    show(seen)
    h1.remove()
    m.register_forward_hook(lambda mod, args, out: seen.append(("always", out)), always_call=True)
    seen.clear()
    show.raises(m, "fail", b=1)
    show(seen)
    show(len(m._forward_hooks), len(m._forward_hooks_with_kwargs), len(m._forward_hooks_always_called))


def an_always_called_hook_that_fails_warns(torch: Any, show: Any) -> None:
    class A(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("forward failed")

    def bad(mod: Any, args: Any, out: Any) -> None:
        raise KeyError("hook failed")

    m = A()
    m.register_forward_hook(bad, always_call=True)

    def call() -> None:
        show.raises(m, 1)

    show.warns(call)
    seen: list[Any] = []
    n = A()
    n.register_forward_pre_hook(lambda mod, args: 1 / 0)
    n.register_forward_hook(lambda mod, args, out: seen.append(out), always_call=True)
    show.raises(n, 1)
    show(seen)
    k = torch.nn.Identity()
    k.register_forward_hook(lambda mod, args, out: 1 / 0)
    k.register_forward_hook(lambda mod, args, out: seen.append(("second", out)), always_call=True)
    show.raises(k, 1)
    show(seen)


def global_module_hooks_run_for_every_module(torch: Any, show: Any) -> None:
    module = torch.nn.modules.module
    m = torch.nn.Sequential(torch.nn.Identity(), torch.nn.ReLU())
    seen: list[Any] = []
    handles = [
        module.register_module_forward_pre_hook(lambda mod, args: seen.append(("pre", type(mod).__name__))),
        module.register_module_forward_hook(lambda mod, args, out: seen.append(("post", type(mod).__name__))),
        module.register_module_forward_hook(
            lambda mod, args, kwargs, out: seen.append(("kw", kwargs)), with_kwargs=True, always_call=True
        ),
    ]
    m(torch.ones(1))
    show(seen)
    for h in handles:
        h.remove()
    seen.clear()
    m(torch.ones(1))
    show(seen)
    h = module.register_module_full_backward_hook(
        lambda mod, gi, go: seen.append((type(mod).__name__, gi[0].tolist(), go[0].tolist()))
    )
    h2 = module.register_module_full_backward_pre_hook(
        lambda mod, go: seen.append((type(mod).__name__, "pre"))
    )
    x = torch.ones(1, requires_grad=True)
    m(x * 2).sum().backward()
    h.remove()
    h2.remove()
    show(seen)
    show.raises(module.register_module_backward_hook, lambda mod, gi, go: None)


def registration_hooks_see_and_replace_new_members(torch: Any, show: Any) -> None:
    module, nn = torch.nn.modules.module, torch.nn
    seen: list[Any] = []
    handles = [
        module.register_module_parameter_registration_hook(lambda m, n, p: seen.append(("param", n))),
        module.register_module_buffer_registration_hook(lambda m, n, b: seen.append(("buffer", n))),
        module.register_module_module_registration_hook(lambda m, n, c: seen.append(("module", n))),
    ]
    module_net.make_net(torch)
    m = nn.Module()
    m.x = None
    m.p = nn.Parameter(torch.ones(1))
    m.p = None
    m.b = nn.Buffer(torch.ones(1))
    m.b = torch.zeros(1)
    m.c = nn.ReLU()
    m.c = None
    show(seen)
    for h in handles:
        h.remove()
    h = module.register_module_module_registration_hook(lambda m, n, c: nn.Tanh())
    h2 = module.register_module_buffer_registration_hook(lambda m, n, b: torch.full((1,), 7.0))
    h3 = module.register_module_parameter_registration_hook(
        lambda m, n, b: nn.Parameter(torch.full((1,), 8.0))
    )
    m.d = nn.ReLU()
    m.add_module("e", nn.ReLU())
    m.register_buffer("f", torch.ones(1))
    m.register_parameter("g", nn.Parameter(torch.ones(1)))
    for handle in (h, h2, h3):
        handle.remove()
    show(m, m.f, m.g)


def full_backward_hooks_see_gradients_of_inputs_and_outputs(torch: Any, show: Any) -> None:
    lin = torch.nn.Linear(2, 1)
    with torch.no_grad():
        lin.weight.copy_(torch.tensor([[2.0, 3.0]]))
        lin.bias.zero_()
    seen: list[Any] = []
    lin.register_full_backward_hook(
        lambda m, gi, go: seen.append((type(gi).__name__, gi, type(go).__name__, go))
    )
    x = torch.ones(1, 2, requires_grad=True)
    y = lin(x)
    show(type(y.grad_fn).__name__, y.grad_fn.name())
    y.sum().backward()
    show(seen, x.grad)
    seen.clear()
    lin(torch.ones(1, 2)).sum().backward()
    show(seen)
    seen.clear()
    with torch.no_grad():
        lin(torch.ones(1, 2))
    show(seen)
    m = torch.nn.Linear(2, 1)
    m.load_state_dict(lin.state_dict())
    m.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,))
    m.register_full_backward_pre_hook(lambda m, go: (go[0] * 3,))
    x.grad = None
    m(x).sum().backward()
    show(x.grad, m.weight.grad)
    k = torch.nn.Linear(2, 1)
    k.register_full_backward_hook(lambda m, gi, go: gi)
    show.raises(lambda: show.warns(lambda: k(torch.ones(1, 2)).sum().backward()))
    k.register_full_backward_hook(lambda m, gi, go: (torch.ones(1),))
    show.raises(lambda: k(torch.ones(1, 2)).sum().backward())
    order: list[str] = []
    j = torch.nn.Identity()
    j.register_full_backward_hook(lambda *a: order.append("b"))
    j.register_full_backward_hook(lambda *a: order.append("a"), prepend=True)
    j.register_full_backward_pre_hook(lambda *a: order.append("d"))
    j.register_full_backward_pre_hook(lambda *a: order.append("c"), prepend=True)
    j(x).sum().backward()
    show(order)


def backward_hooks_complain_about_bad_results(torch: Any, show: Any) -> None:
    def run(kind: str, hook: Any, module: Any = None) -> None:
        m = module or torch.nn.Identity()
        getattr(m, kind)(hook)
        x = torch.ones(2, requires_grad=True)
        show.raises(lambda: m(x).sum().backward())

    run("register_full_backward_hook", lambda m, gi, go: (gi[0], gi[0]))
    run("register_full_backward_pre_hook", lambda m, go: (go[0], go[0]))
    run("register_full_backward_hook", lambda m, gi, go: ())

    class Two(torch.nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            return {"x": a * b}

    t = Two()
    seen: list[Any] = []
    t.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
    x = torch.ones(1, requires_grad=True)

    def call() -> Any:
        return t(x, torch.ones(1))

    show.warns(call)["x"].sum().backward()
    show(seen)

    class Many(torch.nn.Module):
        def forward(self, a: Any, b: Any, c: Any = None) -> Any:
            return a * 2, None, b * 3

    many = Many()
    many.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
    y = torch.full((1,), 2.0)
    seen.clear()
    a, _, b = many(x, y, None)
    (a + b).sum().backward()
    show(seen)
    seen.clear()
    y = torch.full((1,), 2.0, requires_grad=True)
    a, _, b = many(x, y)
    a.sum().backward()
    show(seen)


def old_and_full_backward_hooks_cannot_be_mixed(torch: Any, show: Any) -> None:
    m = torch.nn.Identity()
    h = m.register_backward_hook(lambda mod, gi, go: None)
    show(m._is_full_backward_hook)
    show.raises(m.register_full_backward_hook, lambda mod, gi, go: None)
    h.remove()
    m = torch.nn.Identity()
    m.register_full_backward_hook(lambda mod, gi, go: None)
    show.raises(m.register_backward_hook, lambda mod, gi, go: None)


def old_backward_hooks_sit_on_the_last_node(torch: Any, show: Any) -> None:
    lin = torch.nn.Linear(2, 1)
    with torch.no_grad():
        lin.weight.copy_(torch.tensor([[2.0, 3.0]]))
        lin.bias.zero_()
    seen: list[Any] = []
    lin.register_backward_hook(
        lambda m, gi, go: seen.append(([g if g is None else g.tolist() for g in gi], go))
    )
    x = torch.ones(1, 2, requires_grad=True)
    y = show.warns(lambda: lin(x))
    y.sum().backward()
    show(seen)
    m = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.ReLU())
    m.register_backward_hook(lambda mod, gi, go: None)
    show.warns(lambda: m(x))

    class Out(torch.nn.Module):
        def forward(self, a: Any) -> Any:
            return [a] if isinstance(a, list) else (a * 2, a * 3)

    o = Out()
    o.register_backward_hook(lambda mod, gi, go: None)
    show.warns(lambda: o(x))
    show.warns(lambda: o([x * 2]))

    class In(torch.nn.Module):
        def forward(self, a: Any) -> Any:
            return a[0] * 2 if isinstance(a, list) else a["k"] * 3

    i = In()
    i.register_backward_hook(lambda mod, gi, go: None)
    show.warns(lambda: i([x]))
    show.warns(lambda: i({"k": x}))
    plain = torch.nn.Identity()
    plain.register_backward_hook(lambda mod, gi, go: (gi[0] * 2, *gi[1:]))
    y = x * 1
    show.warns(lambda: plain(y)).sum().backward()
    show(x.grad)

    class Dicts(torch.nn.Module):
        def forward(self, a: Any) -> Any:
            return {"out": a * 2}

    d = Dicts()
    seen.clear()
    d.register_backward_hook(lambda mod, gi, go: seen.append((len(gi), go)))
    show.warns(lambda: d(x))["out"].sum().backward()
    show(seen)


def hook_handles_remove_once_and_work_as_contexts(torch: Any, show: Any) -> None:
    m = torch.nn.Identity()
    h = m.register_forward_hook(lambda *a: None)
    show(type(h).__name__, len(m._forward_hooks), list(m._forward_hooks) == [h.id])
    h.remove()
    h.remove()
    show(len(m._forward_hooks))
    with m.register_forward_hook(lambda *a: None) as h:
        show(len(m._forward_hooks))
    show(len(m._forward_hooks))


def hooks_survive_deepcopy_and_pickle_of_handles(torch: Any, show: Any) -> None:
    m = torch.nn.Identity()
    m.register_forward_hook(_double)
    m.register_forward_pre_hook(_add_one)
    show(m(3), copy.deepcopy(m)(3), pickle.loads(pickle.dumps(m))(3))


def _double(mod: Any, args: Any, out: Any) -> Any:
    return out * 2


def _add_one(mod: Any, args: Any) -> Any:
    return args[0] + 1


def state_dict_hooks_run_in_torchs_order(torch: Any, show: Any) -> None:
    net = module_net.make_net(torch)
    seen: list[Any] = []
    net.first.register_state_dict_pre_hook(lambda m, prefix, keep: seen.append(("pre", prefix, keep)))
    net.first.register_state_dict_post_hook(lambda m, sd, prefix, meta: seen.append((len(sd), prefix, meta)))
    net.state_dict()
    show(seen)
    net.register_state_dict_post_hook(lambda m, sd, prefix, meta: sd.__delitem__("first.scale"))
    show(list(net.state_dict()))
    net2 = module_net.make_net(torch)
    net2._register_state_dict_hook(lambda m, sd, prefix, meta: {"only": 1})
    show(net2.state_dict())
    net3 = module_net.make_net(torch)
    net3.register_state_dict_post_hook(lambda m, sd, prefix, meta: {"only": 1})
    show.raises(net3.state_dict)
    net4 = module_net.make_net(torch)
    f = lambda m, sd, prefix, meta: None
    net4._register_state_dict_hook(f)
    show.raises(net4.register_state_dict_post_hook, f)
    net5 = module_net.make_net(torch)
    net5.register_state_dict_post_hook(f)
    show.raises(net5._register_state_dict_hook, f)


def load_state_dict_hooks_run_in_torchs_order(torch: Any, show: Any) -> None:
    net = module_net.make_net(torch)
    seen: list[Any] = []
    net.first._register_load_state_dict_pre_hook(
        lambda sd, prefix, meta, strict, missing, unexpected, errors: seen.append(
            (prefix, meta, strict, len(sd))
        )
    )
    net.first.register_load_state_dict_pre_hook(
        lambda m, sd, prefix, *a: seen.append((type(m).__name__, prefix))
    )
    net.register_load_state_dict_post_hook(
        lambda m, keys: seen.append(("post", type(m).__name__, list(keys.missing_keys)))
    )
    net.first.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    sd = net.state_dict()
    del sd["first.scale"]
    show(net.load_state_dict(sd), seen)
    net.register_load_state_dict_post_hook(lambda m, keys: 3)
    show.raises(net.load_state_dict, sd)
    h = net.first._register_load_state_dict_pre_hook(lambda *a: 1 / 0)
    show.raises(net.load_state_dict, sd)
    h.remove()
