"""torch.fx: what is traced, printed, generated, run, changed and refused."""

from __future__ import annotations

import collections
import copy
import enum
import io
import math
import operator
import pickle
from typing import Any

Point = collections.namedtuple("Point", "x y")  # noqa: PYI024  (a plain one)


class Color(enum.Enum):
    RED = 1


def _shown(torch: Any, show: Any, function: Any, **options: Any) -> Any:
    try:
        module = torch.fx.symbolic_trace(function, **options)
    except Exception as error:
        show(f"{type(error).__name__}: {error}")
        return None
    show(module.code)
    show(module.graph)
    return module


def _network(torch: Any) -> Any:
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.layers = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
            self.scale = nn.Parameter(torch.ones(4))
            self.register_buffer("offset", torch.arange(4.0))
            self.constant = torch.full((4,), 0.5)

        def forward(self, x, factor=2.0):
            y = self.layers(self.linear(x)) * self.scale + self.offset
            z = self.offset + y - self.constant
            z = F.relu(z) + F.dropout(z, 0.5, self.training)
            return torch.cat([y, z], dim=1) * factor, z.shape[0]

    torch.manual_seed(0)
    return Block()


def functions(torch: Any, show: Any) -> None:
    _shown(torch, show, lambda x: x + 1)

    def operators(x):
        return (
            abs(x),
            -x,
            ~x,
            +x,
            2 - x,
            x @ x,
            2**x,
            x // 2,
            3 // x,
            x % 2,
            x << 1,
            x & 1,
            x | 1,
            x ^ 1,
            x == 1,
            x < 2,
        )

    def items(x):
        a, b = x
        return a[1:, ..., None], b[[1, 2]], x["key"], x.shape, x.T, x.size(1), x.inner.method(2)

    def containers(x):
        return (
            {"a": x, "b": [x, (x,)]},
            slice(x, None),
            x.to(torch.float16),
            math.inf,
            None,
            ...,
            1.5,
            True,
            'q"',
            1j,
        )

    def parameters(x, *args, key=3, **options):
        return x, args, key, options

    def annotated(x: torch.Tensor, y: int = 3, z: float | None = None) -> torch.Tensor:
        return x

    def builtin_names(input, max, from_=torch.float32, d=torch.device("cpu")):
        return input + max

    def wrapped_math(x):
        return math.sqrt(x), math.floor(x)

    def values(x):
        return x.f(
            Color.RED, Point(x, 2), torch.contiguous_format, torch.strided, range(3), [1.0, float("nan")]
        )

    for function in (
        operators,
        items,
        containers,
        parameters,
        annotated,
        builtin_names,
        wrapped_math,
        values,
    ):
        _shown(torch, show, function)


def library_functions(torch: Any, show: Any) -> None:
    F = torch.nn.functional

    def activations(x):
        return (
            F.relu(x), F.gelu(x), F.silu(x), F.leaky_relu(x, 0.1), F.elu(x), F.hardtanh(x), F.softplus(x), F.logsigmoid(x),
            F.softmax(x, dim=-1), F.log_softmax(x, 1), F.glu(x), F.hardswish(x, inplace=True), torch.relu(x), torch.sigmoid(x), torch.tanh(x),
        )  # fmt: skip

    def layers(x, w, b):
        return (
            F.linear(x, w, b), F.conv2d(x, w, b, stride=2), F.conv_transpose2d(x, w), F.batch_norm(x, w, b), F.layer_norm(x, [4], w, b),
            F.group_norm(x, 2), F.embedding(x, w), F.dropout(x), F.max_pool2d(x, 2), F.max_pool2d(x, 2, return_indices=True),
            F.avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool1d(x, 1), F.interpolate(x, scale_factor=2), F.pad(x, [1, 1]),
            F.scaled_dot_product_attention(x, x, x), F.one_hot(x), F.normalize(x), F.unfold(x, 2), F.pixel_shuffle(x, 2), F.prelu(x, w),
        )  # fmt: skip

    def losses(x, y):
        return (
            F.cross_entropy(x, y),
            F.mse_loss(x, y),
            F.nll_loss(x, y),
            F.binary_cross_entropy(x, y),
            F.kl_div(x, y),
            F.smooth_l1_loss(x, y),
        )

    def torch_functions(x, y):
        return (
            torch.add(x, y, alpha=2), torch.max(x), torch.sum(x, dim=1), torch.cat((x, y), 1), torch.stack([x, y]), torch.flatten(x, 1),
            torch.einsum("ij,jk->ik", x, y), torch.einsum("i,i", [x, y]), torch.split(x, 2), torch.norm(x), torch.meshgrid(x, y), torch.linalg.norm(x), torch.fft.fft(x),
            torch.special.expit(x), torch.matmul(x, y), torch.where(x, y, 0), torch.zeros(2, device=x.device), torch.arange(x.shape[0]),
            torch.full((2,), x), torch.unique(x), torch.tensordot(x, y), torch.ops.aten.relu(x), torch.ops.aten.add.Tensor(x, 1),
        )  # fmt: skip

    for function in (activations, layers, losses, torch_functions):
        _shown(torch, show, function)


def modules(torch: Any, show: Any) -> None:
    network = _network(torch)
    module = _shown(torch, show, network)
    show(module)
    show(list(module.state_dict()))
    show(type(module).__name__, module.training, module.meta)
    module.eval()
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    show(module(x)[1], [round(v, 4) for v in module(x)[0].flatten().tolist()])
    show(module.print_readable(print_output=False))
    leaves = type("Leaves", (torch.fx.Tracer,), {"is_leaf_module": lambda self, m, name: name == "layers"})
    show(torch.fx.GraphModule(network, leaves().trace(network), "WithLeaf").code)
    none = type("NoLeaves", (torch.fx.Tracer,), {"is_leaf_module": lambda self, m, name: False})
    show(torch.fx.GraphModule(network, none().trace(network)).code)


def concrete_arguments(torch: Any, show: Any) -> None:
    def flags(x, flag=True, y=None, n=3):
        return x + n if flag else x

    _shown(torch, show, flags, concrete_args={"flag": True})
    _shown(torch, show, flags, concrete_args={"flag": False, "y": None, "n": 4})
    _shown(torch, show, flags)

    def nested(x, y):
        return x["a"] + x["b"][0], {"q": y}

    ph = torch.fx._symbolic_trace.PH
    module = _shown(torch, show, nested, concrete_args={"x": {"a": ph, "b": [ph]}})
    show(module({"a": 1, "b": [2]}, 5))


def refusals(torch: Any, show: Any) -> None:
    def branch(x):
        return x if x.sum() > 0 else -x

    def loop(x):
        return [i + 1 for i in x]

    def length(x):
        return len(x)

    def membership(x):
        return 1 in x

    def key(x):
        return x.f({x: 1})

    def unknown(x):
        return x.f(object)

    def assignment(x):
        x[0] = 1

    class Fresh(torch.nn.Module):
        def forward(self, x):
            return torch.nn.Linear(1, 1)(x)

    for function in (branch, loop, length, membership, key, unknown, assignment, Fresh()):
        _shown(torch, show, function)
    show.raises(torch.fx.wrap, 3)
    show.raises(torch.fx.wrap, "name")


def graphs_by_hand(torch: Any, show: Any) -> None:
    g = torch.fx.Graph()
    x = g.placeholder("x", torch.Tensor, 3)
    n = g.call_function(operator.getitem, (x, 0), type_expr=int)
    m = g.call_method("foo", (n,), {"k": [x, 1]})
    a = g.get_attr("q.1", type_expr=int)
    c = g.call_module("a.0.b", (m,), {"other": a})
    g.call_function(operator.setitem, (x, 0, 1))
    g.call_function(operator.iadd, (x, 1))
    unused = g.call_function(torch.add, (x, 1))
    g.output((c, a), type_expr=torch.Tensor)
    show(g.python_code("self").src)
    show(g)
    show(
        [
            (node.name, node.op, node.args, dict(node.kwargs), list(node.users), node.all_input_nodes)
            for node in g.nodes
        ]
    )
    show(unused.format_node(), unused.next, unused.prev, unused.is_impure(), x < n, c > a)
    show(
        g.find_nodes(op="placeholder"),
        g.find_nodes(op="call_function", target=torch.add),
        g.output_node(),
        len(g.nodes),
    )
    show(list(reversed(g.nodes)))
    show.raises(g.find_nodes, op="call_function")
    show.raises(g.erase_node, n)
    g.erase_node(unused)
    show.raises(g.eliminate_dead_code)
    g.erase_node(next(n for n in g.nodes if n.target is operator.iadd))
    show.raises(g.create_node, "foo", "x")
    show.raises(x.args.__getattribute__, "append")
    show.raises(m.kwargs["k"].append, 1)
    show.raises(m.kwargs.update, {})
    other = torch.fx.Graph()
    y = other.placeholder("y")
    show.raises(g.erase_node, y)
    show.raises(g.inserting_before, y)
    show.raises(g.inserting_after, y)
    show.raises(n.prepend, y)
    show.raises(other.output_node)
    show.raises(torch.fx.GraphModule, {}, g)
    show.raises(torch.fx.GraphModule, 3, g)
    foreign = other.call_function(torch.add, (x, 1))
    show.raises(other.lint)
    other.erase_node(foreign)
    show(
        [
            g._target_to_str(t)
            for t in ("MaxPool2d", "__add__", torch.add, operator.add, torch.ops.aten.add.Tensor)
        ]
    )


def changes(torch: Any, show: Any) -> None:
    module = torch.fx.symbolic_trace(lambda x, y: torch.relu(x + y) * 2)
    for node in list(module.graph.nodes):
        if node.target is torch.relu:
            with module.graph.inserting_after(node):
                new = module.graph.call_function(torch.sigmoid, (node.args[0],))
            show(node.replace_all_uses_with(new))
            module.graph.erase_node(node)
        elif node.target is operator.mul:
            node.update_arg(1, 3)
            node.insert_arg(0, 5)
            node.args = node.args[1:]
    module.graph.lint()
    module.recompile()
    show(module.code)
    show(module(torch.zeros(2), torch.zeros(2)))
    random = torch.fx.symbolic_trace(lambda x: (torch.rand_like(x), torch.add(x, 1), x.mul_(2), x)[-1])
    show(random.graph.eliminate_dead_code(), random.graph.eliminate_dead_code())
    show(random.graph)
    new_graph = torch.fx.Graph()
    values: dict[Any, Any] = {}
    new_graph.output(new_graph.graph_copy(module.graph, values))
    show(new_graph, {str(k): str(v) for k, v in values.items()})
    inputs = [n for n in module.graph.nodes if n.op == "placeholder"]
    add = next(n for n in module.graph.nodes if n.target is operator.add)
    add.replace_input_with(inputs[1], inputs[0])
    show(add.args, inputs[0].users, inputs[1].users)
    inputs[0].append(inputs[1])
    add.prepend(inputs[0])
    show([n.name for n in module.graph.nodes])
    show(torch.fx.node.map_arg({"a": [add, (1, add)]}, lambda n: n.name))
    show(torch.fx.node.map_aggregate((1, [2, {"a": 3}], slice(1, 2)), lambda v: v and v + 1))


def copies(torch: Any, show: Any) -> None:
    network = _network(torch).eval()
    module = torch.fx.symbolic_trace(network)
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    expected = module(x)[0]
    copied = copy.deepcopy(module)
    show(
        copied.code == module.code,
        torch.equal(copied(x)[0], expected),
        copied.linear is module.linear,
        type(copied).__name__,
    )
    loaded = pickle.loads(pickle.dumps(module))
    show(
        loaded.code == module.code,
        torch.equal(loaded(x)[0], expected),
        str(loaded.graph) == str(module.graph),
    )
    buffer = io.BytesIO()
    torch.save(module, buffer)
    buffer.seek(0)
    show(torch.equal(torch.load(buffer, weights_only=False)(x)[0], expected))
    retraced = torch.fx.symbolic_trace(module)
    show(retraced.code == module.code)
    show(module.add_submodule("new.inner", torch.nn.ReLU()), module.delete_submodule("nothing.here"))
    show([name for name, _ in module.named_modules()])
    module.delete_all_unused_submodules()
    show([name for name, _ in module.named_modules()])


def running(torch: Any, show: Any) -> None:
    module = torch.fx.symbolic_trace(_network(torch).eval())
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    show(torch.equal(torch.fx.Interpreter(module).run(x)[0], module(x)[0]))

    class Negated(torch.fx.Interpreter):
        def call_function(self, target, args, kwargs):
            if target is torch.nn.functional.relu:
                return -super().call_function(target, args, kwargs)
            return super().call_function(target, args, kwargs)

    show(torch.equal(Negated(module).run(x)[0], module(x)[0]))

    class Sigmoids(torch.fx.Transformer):
        def call_function(self, target, args, kwargs):
            if target is torch.nn.functional.relu:
                return torch.sigmoid(*args)
            return super().call_function(target, args, kwargs)

    show(Sigmoids(module).transform().code)
    try:
        torch.fx.Interpreter(module).run()
    except RuntimeError as error:
        show(str(error).split("Original traceback")[0])
    from importlib import import_module

    shape_prop = import_module(torch.__name__ + ".fx.passes.shape_prop")
    shape_prop.ShapeProp(module).propagate(x)
    for node in module.graph.nodes:
        show(node, node.meta.get("tensor_meta"), node.meta.get("type"))
    show(module.print_readable(print_output=False))


def patterns(torch: Any, show: Any) -> None:
    def program(x, w1, w2):
        m1 = torch.cat([w1, w2]).sum()
        m2 = torch.cat([w1, w2]).sum()
        return x + torch.max(m1) + torch.max(m2)

    module = torch.fx.symbolic_trace(program)
    matches = torch.fx.replace_pattern(
        module, lambda a, b: torch.cat([a, b]).sum(), lambda a, b: torch.stack([a, b])
    )
    show(len(matches), [m.anchor for m in matches])
    show(module.code)
    module = torch.fx.symbolic_trace(lambda x: torch.relu(torch.relu(x + 1) + 2) * 3)
    show(len(torch.fx.replace_pattern(module, lambda x: torch.relu(x + 2), lambda x: torch.sigmoid(x - 1))))
    show(module.code)
    module = torch.fx.symbolic_trace(lambda x: (torch.relu(x).neg(), torch.relu(x)))
    show(len(torch.fx.replace_pattern(module, lambda x: torch.relu(x).neg(), lambda x: x)))
    show(module.code)
    show(module(torch.tensor([1.0, -2.0])))


def hooks_of_a_tracer(torch: Any, show: Any) -> None:
    class Custom(torch.fx.Tracer):
        def to_bool(self, obj):
            return True

        def iter(self, obj):
            return iter([obj[0], obj[1]])

    def program(x):
        total = 0
        for item in x:
            total = total + item
        return total if x.sum() > 0 else x

    show(Custom().trace(program))
    tracer = torch.fx.Tracer()
    network = _network(torch)
    graph = tracer.trace(network)
    show({n.name: [(k, v[0]) for k, v in n.meta.get("nn_module_stack", {}).items()] for n in graph.nodes})
    show(tracer.path_of_module(network.layers), tracer.node_name_to_scope.get("linear", ("",))[0])
    buffers = type("Buffers", (torch.fx.Tracer,), {"proxy_buffer_attributes": True})
    show(buffers().trace(network))
    constant_shapes = torch.fx.Tracer(param_shapes_constant=True)
    show([n.name for n in constant_shapes.trace(network).nodes])
    proxy = torch.fx.Proxy(graph.output_node())
    show(proxy)
    show.raises(bool, proxy)
