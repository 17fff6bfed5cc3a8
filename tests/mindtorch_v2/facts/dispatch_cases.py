"""What `__torch_dispatch__` sees of forward and backward passes: tensors that wrap others, modes, the programs people write with them."""

from __future__ import annotations

import copy
import functools
import importlib
from pathlib import Path
from typing import Any

ROWS = Path(__file__).parent / "dispatch_rows.txt"


def _part(torch: Any, path: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.{path}")


def _text(torch: Any, value: Any) -> str:
    """An argument in short: a tensor's shape, `g` if it needs gradients, its dtype if it is not float32."""
    if isinstance(value, torch.Tensor):
        kind = "" if value.dtype == torch.float32 else str(value.dtype).rpartition(".")[2]
        return f"T{list(value.shape)}" + ("g" if value.requires_grad else "") + kind
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_text(torch, v) for v in value) + "]"
    return f"{value:.6g}f" if isinstance(value, float) else repr(value)


def _logging_mode(torch: Any, seen: list[str]) -> Any:
    class Log(_part(torch, "utils._python_dispatch").TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            given = [_text(torch, a) for a in args] + [
                f"{k}={_text(torch, v)}" for k, v in sorted(kwargs.items())
            ]
            seen.append(f"{func}({', '.join(given)})")
            return func(*args, **kwargs)

    return Log()


def modes_see(torch: Any, show: Any) -> None:
    seen: list[str] = []
    for line in ROWS.read_text().splitlines():
        before, _, code = line.rpartition("||")
        torch.manual_seed(0)
        space = {"torch": torch, "F": torch.nn.functional, "nn": torch.nn}
        exec(SETUP + before, space)
        seen.clear()
        with _logging_mode(torch, seen):
            exec(code, space)
        show(line, *("\n  " + entry for entry in seen))


SETUP = """
x = torch.randn(3, 4, requires_grad=True); y = torch.randn(3, 4); w = torch.randn(4, 5, requires_grad=True); i = torch.tensor([0, 2])
v = torch.randn(4); b = torch.rand(3, 4) > .5; img = torch.randn(2, 3, 8, 8, requires_grad=True); s = torch.tensor(2.0)
n = torch.arange(6).reshape(2, 3); seq = torch.randn(5, 2, 4, requires_grad=True)
"""


def _wrapping(torch: Any, show: Any = None) -> Any:
    """A class that wraps one tensor, shows what it sees, runs it on the wrapped tensors and wraps the results."""
    tree = _part(torch, "utils._pytree")

    class Wrapped(torch.Tensor):
        @staticmethod
        def __new__(cls: Any, elem: Any, *, requires_grad: bool = False) -> Any:
            made = torch.Tensor._make_wrapper_subclass(
                cls,
                elem.size(),
                strides=elem.stride(),
                storage_offset=elem.storage_offset(),
                dtype=elem.dtype,
                layout=elem.layout,
                device=elem.device,
                requires_grad=requires_grad,
            )
            made.elem = elem
            return made

        def __repr__(self) -> str:
            return f"Wrapped({self.elem})"

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if show is not None:
                needs = [a.requires_grad for a in args if isinstance(a, torch.Tensor)]
                show("  ", func, [t.__name__ for t in types], needs, sorted(kwargs or {}))
            inner = tree.tree_map_only(cls, lambda t: t.elem, (args, kwargs or {}))
            return tree.tree_map_only(torch.Tensor, cls, func(*inner[0], **inner[1]))

    return Wrapped


def gradients_through_wrappers(torch: Any, show: Any) -> None:
    cls = _wrapping(torch, show)
    x = cls(torch.ones(2, 3), requires_grad=True)
    y = x * 2
    show(y.requires_grad, type(y.grad_fn).__name__, y.is_leaf, y._version)
    z = y.exp()
    v = z.view(6)
    show(v._is_view(), v._base is z)
    v.sum().backward()
    show(type(x.grad).__name__, x.grad)
    show("once more")
    (x * x).sum().backward()
    show(x.grad)
    show("broadcast")
    b, p = cls(torch.ones(3), requires_grad=True), torch.ones(3, requires_grad=True)
    (x * p + b).sum().backward()
    show(b.grad, type(p.grad).__name__)
    show("in place")
    q = x * 1
    q.add_(1).mul_(3)
    show(q._version, type(q.grad_fn).__name__)
    q.sum().backward()
    show("through a view")
    q = x * 1
    q[0] = 5.0
    q.sum().backward()
    show("used twice")
    q = x * 1
    (q + q * 2 + q.exp()).sum().backward()
    show(x.grad)
    show.raises(lambda: x.add_(1))
    show("second order")
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    g.sum().backward()
    show(g.requires_grad, x.grad)
    with torch.no_grad():
        show((x * 2).requires_grad, x.view(6).requires_grad)


def functions_of_wrappers(torch: Any, show: Any) -> None:
    F, cls = torch.nn.functional, _wrapping(torch)
    x = cls(torch.arange(6.0).reshape(2, 3))
    for call in (
        lambda: x.new_zeros(2), lambda: torch.zeros_like(x), lambda: x.to("cpu") is x, lambda: x.float() is x,
        lambda: x.contiguous() is x, lambda: x.reshape(6), lambda: x.t().reshape(6), lambda: list(x), lambda: x == x,
        lambda: bool(x.sum() > 0), x.half, lambda: (x.is_meta, x.is_cpu, x.numel(), x.nbytes, x.layout), lambda: x[0, 1],
        lambda: x[..., None].shape, lambda: F.layer_norm(x, (3,)), lambda: F.softmax(x, 1), lambda: torch.cat([x, x]),
        lambda: F.cross_entropy(x, torch.tensor([0, 1])).shape, lambda: F.conv1d(x[None], torch.ones(1, 2, 1)), lambda: x.split(1),
        lambda: x.max(1), x.std, lambda: x.clamp(0, 1), lambda: torch.where(x > 0, x, x), lambda: x @ x.T,
        lambda: torch.einsum("ij,kj->ik", x, x), lambda: x.matmul(torch.ones(3)), lambda: torch.stack([x, x]).shape,
        lambda: copy.deepcopy(x), x.tolist, x.numpy, x.item, lambda: x.sum().item(), lambda: len(x),
        lambda: isinstance(torch.nn.Parameter(x), torch.nn.Parameter), lambda: x.data, x.detach, x.stride,
    ):  # fmt: skip
        show.raises(call)


def layers_on_wrappers(torch: Any, show: Any) -> None:
    nn, F, cls = torch.nn, torch.nn.functional, _wrapping(torch)

    def filled(module: Any) -> Any:
        for p in module.parameters():
            p.data.fill_(0.1)
        return module

    def leaf(*shape: int) -> Any:
        return cls(torch.ones(*shape), requires_grad=True)

    x, names = leaf(3), []
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: names.append(type(g).__name__))
    x.register_hook(lambda g: g * 10)
    y.exp().sum().backward()
    show(names, y.grad, x.grad)
    x, names = leaf(3), []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: names.append(type(t).__name__) or t, lambda t: t):
        y = (x * x).exp()
    y.sum().backward()
    show(names, x.grad)
    for kind, options in (("SGD", {"lr": 0.1, "momentum": 0.9}), ("Adam", {"lr": 0.1})):
        linear = filled(nn.Linear(3, 2))
        linear.weight = nn.Parameter(cls(linear.weight.detach()))
        optimizer = getattr(torch.optim, kind)(linear.parameters(), foreach=False, **options)
        for _ in range(2):
            optimizer.zero_grad()
            linear(torch.ones(1, 3)).sum().backward()
            optimizer.step()
        show(kind, linear.weight, list(linear.state_dict()), linear.bias)
    net = filled(nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.GELU(), nn.Dropout(0.0), nn.Linear(4, 1)))
    x = leaf(2, 3)
    net(x).sum().backward()
    show(x.grad.shape, type(net[0].weight.grad).__name__)
    conv, norm, x = filled(nn.Conv2d(2, 3, 3)), nn.BatchNorm2d(3), leaf(1, 2, 6, 6)
    F.max_pool2d(F.relu(norm(conv(x))), 2).flatten(1).sum().backward()
    show(x.grad.shape, type(x.grad).__name__, type(conv.weight.grad).__name__)
    for module, shape in ((nn.LSTM(3, 4), (2, 1, 3)), (nn.MultiheadAttention(4, 2), (3, 1, 4))):
        x = leaf(*shape)
        out = module(x)[0] if isinstance(module, nn.LSTM) else module(x, x, x)[0]
        out.sum().backward()
        show(type(out).__name__, x.grad.shape)
    table = nn.Embedding(5, 3)
    table.weight = nn.Parameter(leaf(5, 3))
    table(torch.tensor([1, 1, 2])).sum().backward()
    show(table.weight.grad)
    x = leaf(4)
    x[torch.tensor([0, 0, 2])].sum().backward()
    show(x.grad)
    x = leaf(2, 3)
    a, b, c = x.unbind(1)
    torch.cat([a * b, c]).sum().backward()
    show(x.grad)


def classes_that_may_not_wrap(torch: Any, show: Any) -> None:
    class Plain(torch.Tensor):
        pass

    show.raises(torch.Tensor._make_wrapper_subclass, Plain, (2,))

    class Asked(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            show("  ", func)
            return super().__torch_dispatch__(func, types, args, kwargs)

    show(Asked.__torch_function__ is torch._C._disabled_torch_function_impl)
    a = torch.ones(2).as_subclass(Asked).requires_grad_()
    result = a * 2
    show(type(result).__name__, result.requires_grad, type(result.grad_fn).__name__)
    result.sum().backward()
    show(type(a.grad).__name__, a.grad)
    with torch._C._DisableTorchDispatch():
        show(type(a * 2).__name__)

    class Refusing(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    show.raises(torch.neg, torch.ones(2).as_subclass(Refusing))


def training_with_a_logging_tensor(torch: Any, show: Any) -> None:
    nn, cls = torch.nn, _wrapping(torch, show)
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, target = cls(torch.randn(5, 4)), torch.tensor([0, 1, 0, 1, 1])
    for _ in range(2):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), target)
        loss.backward()
        show(type(loss).__name__, type(model[0].weight.grad).__name__, model[0].weight.grad)
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad.elem


def a_quantised_weight(torch: Any, show: Any) -> None:
    tree = _part(torch, "utils._pytree")

    class Int8(torch.Tensor):
        @staticmethod
        def __new__(cls: Any, data: Any, scale: Any) -> Any:
            return torch.Tensor._make_wrapper_subclass(cls, data.size(), dtype=scale.dtype)

        def __init__(self, data: Any, scale: Any) -> None:
            self.data_, self.scale = data, scale

        @classmethod
        def of(cls, x: Any) -> Any:
            scale = x.abs().amax() / 127
            return cls((x / scale).round().to(torch.int8), scale)

        def full(self) -> Any:
            return self.data_.to(self.scale.dtype) * self.scale

        def __repr__(self) -> str:
            return f"Int8(shape={tuple(self.shape)})"

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            show("  ", func)
            if func is torch.ops.aten.detach.default:
                return cls(args[0].data_, args[0].scale)
            if func is torch.ops.aten.t.default:
                return cls(args[0].data_.t(), args[0].scale)
            args, kwargs = tree.tree_map_only(cls, lambda t: t.full(), (args, kwargs or {}))
            return func(*args, **kwargs)

    linear = torch.nn.Linear(4, 3)
    full = linear.weight.detach().clone()
    linear.weight = torch.nn.Parameter(Int8.of(full), requires_grad=False)
    x = torch.randn(2, 4, requires_grad=True)
    y = linear(x)
    y.square().sum().backward()
    plain = torch.nn.functional.linear(x.detach(), full, linear.bias.detach())
    show(type(y).__name__, bool(((y - plain).abs() < 0.05).all()), x.grad.shape, linear.bias.grad)
    show(linear.weight, isinstance(linear.weight, torch.nn.Parameter))


def a_mode_that_traces(torch: Any, show: Any) -> None:
    dispatch, tree = _part(torch, "utils._python_dispatch"), _part(torch, "utils._pytree")

    class Trace(dispatch.TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.names: dict[int, str] = {}
            self.kept: list[Any] = []

        def name(self, value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            self.kept.append(value)
            return self.names.setdefault(id(value), f"%{len(self.names)}")

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            given = tree.tree_map(self.name, args)
            result = func(*args, **(kwargs or {}))
            show(tree.tree_map(self.name, result), "=", func.__name__, given)
            return result

    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    x = torch.ones(2, 3)
    with Trace():
        model(x).mean()


def modes_in_modes(torch: Any, show: Any) -> None:
    dispatch = _part(torch, "utils._python_dispatch")

    class Named(dispatch.TorchDispatchMode):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            show(self.name, func)
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, requires_grad=True)
    with Named("outer") as outer, Named("inner") as inner:
        (x * 2).sum().backward()
        with dispatch._pop_mode_temporarily() as popped:
            show(popped is inner)
            torch.neg(x)
        with dispatch._disable_current_modes() as off:
            show([mode.name for mode in off], dispatch._get_current_dispatch_mode())
            torch.neg(x)
        show([mode.name for mode in dispatch._get_current_dispatch_mode_stack()])
    y = x.exp().sum()
    show("backward alone")
    with outer:
        y.backward()
    show(x.grad)

    class Refusing(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

        def __repr__(self) -> str:
            return "Refusing()"

    def refused() -> None:
        with Refusing():
            torch.ones(2)

    def unwritten() -> None:
        with dispatch.TorchDispatchMode():
            torch.ones(2)

    show.raises(refused)
    show.raises(unwritten)
    show.raises(dispatch._pop_mode)


def classes_that_take_themselves_apart(torch: Any, show: Any) -> None:
    dispatch, tree = _part(torch, "utils._python_dispatch"), _part(torch, "utils._pytree")

    class Pair(torch.Tensor):
        @staticmethod
        def __new__(cls: Any, a: Any, b: Any) -> Any:
            return torch.Tensor._make_wrapper_subclass(cls, a.size(), dtype=a.dtype)

        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

        def __repr__(self) -> str:
            return f"Pair({self.a}, {self.b})"

        def __tensor_flatten__(self) -> Any:
            return ["a", "b"], "context"

        @staticmethod
        def __tensor_unflatten__(inner: Any, context: Any, size: Any, stride: Any) -> Any:
            show(sorted(inner), context, size, stride)
            return Pair(inner["a"], inner["b"])

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            both = [
                func(*x, **k)
                for side in ("a", "b")
                for x, k in [tree.tree_map_only(Pair, lambda p, side=side: getattr(p, side), (args, kwargs))]
            ]
            if not isinstance(both[0], torch.Tensor):
                return both[0]
            return dispatch.return_and_correct_aliasing(func, args, kwargs, Pair(*both))

    x = Pair(torch.ones(2, 2), torch.zeros(2, 2))
    show(dispatch.is_traceable_wrapper_subclass(x), dispatch.is_traceable_wrapper_subclass(torch.ones(1)))
    show(dispatch.is_traceable_wrapper_subclass_type(Pair), dispatch.is_traceable_wrapper_subclass(3))
    show(dispatch.transform_subclass(x, lambda name, t: t + len(name)))
    y = x.view(4)
    show(y, y._base is x, y.untyped_storage()._cdata == x.untyped_storage()._cdata)
    show(x.add_(1) is x, x, torch.ops.aten.add_.Tensor(x, 1) is x)
    out = Pair(torch.empty(2, 2), torch.empty(2, 2))
    show(torch.add(x, x, out=out) is out, out)


def functions_of_ones_own_on_wrappers(torch: Any, show: Any) -> None:
    cls = _wrapping(torch, show)

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * x * x * g

    x = cls(torch.tensor([1.0, 2.0]), requires_grad=True)
    y = Cube.apply(x)
    show(type(y).__name__, type(y.grad_fn).__name__)
    y.sum().backward()
    show(x.grad)


def checkpoints_that_keep_some_results(torch: Any, show: Any) -> None:
    points = _part(torch, "utils.checkpoint")
    contexts = points.create_selective_checkpoint_contexts
    w, x = torch.ones(3, 3, requires_grad=True), torch.ones(2, 3, requires_grad=True)

    def run(choice: Any, function: Any = lambda t: (t @ w).sin().exp(), **options: Any) -> Any:
        made = functools.partial(contexts, choice, **options)
        return points.checkpoint(function, x, use_reentrant=False, context_fn=made).sum()

    for policy in (points.CheckpointPolicy.MUST_SAVE, points.CheckpointPolicy.PREFER_RECOMPUTE):

        def chosen(ctx: Any, op: Any, *args: Any, policy: Any = policy, **kwargs: Any) -> Any:
            show(ctx.is_recompute, op, len(args), kwargs)
            return policy

        x.grad = w.grad = None
        run(chosen).backward()
        show(policy, x.grad, w.grad)
    mm = torch.ops.aten.mm.default
    result = run([mm])
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        result.backward(retain_graph=True)
    show(*("\n" + line for line in _tree(prof)))
    show.raises(result.backward)

    def writes(t: Any) -> Any:
        z = t @ w
        q = z.sin()
        return q.exp() * z.mul_(2)

    show.raises(lambda: run([mm], writes).backward())
    run([mm], writes, allow_cache_entry_mutation=True).backward()
    show.raises(contexts, 3)
    show.raises(contexts, ["a"])
    show([(policy.name, policy.value) for policy in points.CheckpointPolicy])


def schemas(torch: Any, show: Any) -> None:
    for name in ("add.Tensor", "add_.Tensor", "add.out", "div_.Scalar", "eq.Scalar", "max.dim", "view.default", "zeros.default",
                 "split.Tensor", "index.Tensor", "clamp.default", "max.dim_max"):  # fmt: skip
        packet, _, overload = name.partition(".")
        op = getattr(getattr(torch.ops.aten, packet), overload)
        schema = op._schema
        show(
            schema, schema.name, schema.overload_name, schema.is_mutable, op.is_view, op, repr(op), op.name()
        )
        for a in schema.arguments:
            default = a.default_value if a.has_default_value() else "-"
            show(
                "  ", a.name, a.type, default, a.kwarg_only, a.is_out, a.alias_info and a.alias_info.is_write
            )
        show("  ", [(r.name, str(r.type)) for r in schema.returns])
    show.raises(torch.ops.aten.add.Tensor, torch.ones(1))
    show.raises(getattr, torch.ops.aten.add, "nonsense")
    show.raises(getattr, torch.ops.aten, "nonsense")


def flop_counts(torch: Any, show: Any) -> None:
    nn, F = torch.nn, torch.nn.functional
    flops = _part(torch, "utils.flop_counter")

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3, padding=1)
            self.body = nn.Sequential(nn.Conv2d(4, 4, 3, stride=2), nn.BatchNorm2d(4))
            self.head = nn.Linear(4, 2)

        def forward(self, x: Any) -> Any:
            return self.head(self.body(F.relu(self.conv(x))).mean((2, 3)))

    def counts(counter: Any) -> list[Any]:
        found = counter.get_flop_counts().items()
        return sorted((name, [(str(op), n) for op, n in ops.items()]) for name, ops in found)

    mlp, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), torch.randn(3, 4)
    with flops.FlopCounterMode(display=False) as counter:
        mlp(x).sum().backward()
    show(counter.get_total_flops(), counts(counter))
    with flops.FlopCounterMode(display=False) as counter:
        Net()(torch.randn(2, 3, 16, 16)).sum().backward()
    show(counter.get_total_flops(), counts(counter))
    a = torch.randn(2, 3, 4)
    with flops.FlopCounterMode(display=False) as counter:
        torch.bmm(a, a.transpose(1, 2))
        torch.baddbmm(torch.zeros(2, 3, 3), a, a.transpose(1, 2))
        F.conv1d(torch.randn(1, 2, 9), torch.randn(4, 2, 3))
        F.conv_transpose2d(torch.randn(2, 3, 4, 4), torch.randn(3, 2, 3, 3), stride=2)
    show(counts(counter))
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    with flops.FlopCounterMode(display=False) as counter:
        layer(torch.randn(2, 5, 8)).sum().backward()
    show(counts(counter))
    mapping = {
        torch.ops.aten.add: lambda a, b, *args, out_shape=None, **k: show(a, b, args, out_shape, k) or 7
    }
    with flops.FlopCounterMode(display=False, custom_mapping=mapping) as counter:
        x + x
        x + 1
    show(counts(counter))
    show.raises(flops.register_flop_formula(torch.ops.aten.mm), lambda: 1)
    show.warns(flops.FlopCounterMode, mlp, display=False)
    show([flops.get_suffix_str(10**k) for k in range(0, 18, 2)], flops.convert_num_with_suffix(1234567, "M"))
    show(flops.convert_to_percent_str(1, 3), flops.convert_to_percent_str(1, 0))
    show(flops.sdpa_flop_count((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 6)))
    show(flops.sdpa_backward_flop_count((1, 2, 3, 6), (1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 6)))


def modules_that_run(torch: Any, show: Any) -> None:
    tracker = _part(torch, "utils.module_tracker").ModuleTracker()

    class Twice(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            show(sorted(tracker.parents), tracker.is_bw)
            return x * 2

    model, y = torch.nn.Sequential(Twice(), torch.nn.Sequential(Twice())), torch.ones(2, requires_grad=True)
    with tracker:
        out = model(y)
        out.register_hook(lambda g: show(sorted(tracker.parents), tracker.is_bw))
        y.register_hook(lambda g: show(sorted(tracker.parents), tracker.is_bw))
        show(sorted(tracker.parents))
        out.sum().backward()
        show(sorted(tracker.parents))


def _tree(prof: Any) -> list[str]:
    """Names of events, indented; what torch's kernels show of their own bookkeeping is left out."""
    hidden = {"aten::to": ("aten::mul",), "aten::as_strided": ("aten::sum",), "aten::fill_": ("aten::sum",)}
    hidden |= {"aten::resolve_conj": ("aten::mm",)}
    lines: list[str] = []

    def walk(event: Any, depth: int) -> None:
        if event.cpu_parent is not None and event.cpu_parent.name in hidden.get(event.name, ()):
            return
        lines.append("  " * depth + event.name)
        for child in event.cpu_children:
            walk(child, depth + 1)

    for event in prof.events():
        if event.cpu_parent is None:
            walk(event, 0)
    return lines


def profiles_of_answers(torch: Any, show: Any) -> None:
    cls, base = _wrapping(torch), _part(torch, "utils._python_dispatch").BaseTorchDispatchMode
    F = torch.nn.functional
    x, t = cls(torch.ones(2, 3), requires_grad=True), torch.ones(2, 3, requires_grad=True)
    y = (x * 2).exp().sum()

    def with_mode(*calls: Any) -> None:
        with base():
            for call in calls:
                call()

    def in_two() -> None:
        with base(), base():
            t.view(-1)

    for run in (
        lambda: x * 2,
        y.backward,
        lambda: with_mode(lambda: (t * 2).exp().sum().backward()),
        in_two,
        lambda: with_mode(lambda: F.linear(t, torch.ones(4, 3)), lambda: x * 2),
        lambda: with_mode(lambda: torch.zeros(2), t.t, lambda: t[0], lambda: t.to(torch.float64), lambda: torch.tensor([1.0])),
        lambda: with_mode(lambda: t.sum().item(), t.detach),
    ):  # fmt: skip
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
            run()
        show(*("\n" + line for line in _tree(prof)))
