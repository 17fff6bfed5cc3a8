"""Programs for event trees and memory profiles, and what is noted of them. Runs on torch and on this library alike: both are given.

A program is a list of statements over named tensors; random ones are made from a number. What only torch's C++ kernels do inside themselves
(numbers wrapped into tensors, copies) has no counterpart here, so what is noted is what the program's own ops meet.
"""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

# name: statements. `t` is the library; `x`, `w`, `model`, `optimizer` ... are made before the recording by SETUP.
SETUP = """
t.manual_seed(0)
x = t.ones(4, 3)
target = t.zeros(4, 2)
w = t.nn.Parameter(t.ones(2, 3))
b = t.nn.Parameter(t.zeros(2))
model = t.nn.Sequential(t.nn.Linear(3, 5), t.nn.ReLU(), t.nn.Linear(5, 2))
sgd = t.optim.SGD(model.parameters(), lr=0.1)
momentum = t.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
adam = t.optim.Adam(model.parameters())
by_hand = t.optim.SGD([w, b], lr=0.1)
F = t.nn.functional
"""

FIXED = {
    "nothing": "pass",
    "a view and a write": "y = t.ones(3, 4)\nz = y.view(12)\nz.add_(z)\nq = y.mul(y)",
    "freed and taken again": "for _ in range(3):\n    y = t.ones(5)\n    z = y.add(y)\n    del y, z",
    "a list": "y = t.ones(2, 2)\nz = t.cat([y, y, x[:2, :2]])\nq = t.stack([y, y])\nz.sum()",
    "set_": "y = t.ones(4, 3)\nz = t.ones(4, 3)\ny.set_(z)\ny.add_(x)\ndel z\ny.mul_(x)",
    "data": "y = t.ones(4, 3)\ny.mul_(x)\ny.data = x\ny.add_(x)",
    "resize_": "y = t.ones(4, 3)\ny.resize_(4, 4)\ny.zero_()\ny.resize_(2, 2)\ny.mul_(y)",
    "detach and clone": "y = x.detach()\nz = y.clone()\nz.add_(y)\nq = z.clone().detach()\nq.add_(z)",
    "in place on what was there": "x.add_(x)\nx.mul_(x)\ny = x.add(x)",
    "several outputs": "y = t.ones(6, 2)\na, c = y.split(3)\na.add_(c)\nv, i = y.max(1)\nv.add_(v)",
    "forward only": "y = model(x)\nz = y.sum()",
    "no grad": "with t.no_grad():\n    y = model(x)\nz = y.add(y)",
    "forward and backward": "model(x).sum().backward()",
    "backward twice": "model(x).sum().backward()\nmodel(x).sum().backward()",
    "zeroed gradients": "model(x).sum().backward()\nmodel.zero_grad(set_to_none=False)\nmodel(x).sum().backward()",
    "dropped gradients": "model(x).sum().backward()\nmodel.zero_grad()\nmodel(x).sum().backward()",
    "sgd": "model(x).sum().backward()\nsgd.step()",
    "sgd, two steps": "for _ in range(2):\n    sgd.zero_grad()\n    model(x).sum().backward()\n    sgd.step()",
    "momentum": "for _ in range(2):\n    momentum.zero_grad()\n    F.mse_loss(model(x), target).backward()\n    momentum.step()",
    "adam": "for _ in range(2):\n    adam.zero_grad()\n    F.mse_loss(model(x), target).backward()\n    adam.step()",
    "functions": "F.linear(x, w, b).sum().backward()",
    "functions and a step": "F.linear(x, w, b).sum().backward()\nby_hand.step()",
    "by hand": "y = x.matmul(w.t()).add(b)\nz = y.mul(y).sum()\nz.backward()\n"
    "with t.no_grad():\n    w.sub_(w.grad)\n    b.sub_(b.grad)",
    "a step by hand, twice": "for _ in range(2):\n    w.grad = b.grad = None\n    F.linear(x, w, b).sum().backward()\n"
    "    with t.no_grad():\n        w.sub_(w.grad)\n        b.sub_(b.grad)",
    "inputs made inside": "y = t.ones(4, 3)\nz = y.mul(x)\nmodel(z).sum().backward()\nsgd.step()",
    "loss": "F.cross_entropy(model(x), t.zeros(4, dtype=t.long)).backward()\nsgd.step()",
    "grad": "g = t.autograd.grad(model(x).sum(), list(model.parameters()))\nh = g[0].add(g[0])",
    "a module of one's own": "l = t.nn.Linear(3, 3)\ny = l(x)\ny.sum().backward()",
    "buffers": "n = t.nn.BatchNorm1d(3)\nn(x).sum().backward()",
    "a new parameter": "p = t.nn.Parameter(t.ones(3))\nx.mul(p).sum().backward()\nwith t.no_grad():\n    p.sub_(p.grad)",
    "ranges": "with t.profiler.record_function('outer'):\n    y = x.add(x)\n    with t.profiler.record_function('inner'):\n        z = y.mul(y)\n    del y",
}


def random_program(seed: int) -> str:
    """Statements that create, view, write, free, differentiate and step, in some order."""
    choose = random.Random(seed)
    names = ["x"]  # all of them 4 x 3
    lines: list[str] = []
    loss = False
    for number in range(choose.randint(4, 14)):
        kind = choose.choice(
            (
                "new",
                "op",
                "op",
                "op",
                "view",
                "write",
                "write",
                "free",
                "loss",
                "backward",
                "step",
                "zero",
                "model",
            )
        )
        a, b = choose.choice(names), choose.choice(names)
        fresh = f"v{number}"
        if kind == "new":
            lines.append(f"{fresh} = t.{choose.choice(('ones', 'zeros'))}(4, 3)")
            names.append(fresh)
        elif kind == "op":
            how = choose.choice(
                (
                    "{a}.add({b})",
                    "{a}.mul({b})",
                    "{a}.relu()",
                    "{a}.sub({b})",
                    "{a}.clone()",
                    "F.linear({a}, s)",
                )
            )
            lines.append(f"{fresh} = {how.format(a=a, b=b)}")
            names.append(fresh)
        elif kind == "model":
            lines.append(f"{fresh} = square({a})")
            names.append(fresh)
        elif kind == "view":
            lines.append(
                f"{fresh} = {a}.view(3, 4).t()" if choose.random() < 0.3 else f"{fresh} = {a}.detach()"
            )
            if "detach" in lines[-1]:
                names.append(fresh)
        elif kind == "write":
            own = choose.choice(names)
            lines.append(f"with t.no_grad():\n    {own}.{choose.choice(('add_', 'mul_'))}({b}.detach())")
        elif kind == "free" and len(names) > 1:
            names.remove(gone := choose.choice(names[1:]))
            lines.append(f"del {gone}")
        elif kind == "loss":
            lines.append(f"loss = square({a}).mul({b}.detach()).sum()")
            loss = True
        elif kind == "backward" and loss:
            lines.append("loss.backward()")
            loss = False
        elif kind == "step":
            lines.append(f"{choose.choice(('plain', 'heavy'))}.step()")
            loss = False  # what it saved may have been written to
        elif kind == "zero":
            lines.append(f"plain.zero_grad(set_to_none={choose.random() < 0.6})")
    return "\n".join(lines)


def wide_program(seed: int) -> tuple[str, str]:
    """What runs before the recording and in it: as above, and tensors that get other memory, parameters and gradients that are replaced,
    sparse tensors and their parts, several optimizers. The recording begins somewhere in the middle."""
    choose = random.Random(seed)
    names = ["x", "u"]  # all of them 4 x 3
    lines: list[str] = []
    loss = False
    for number in range(choose.randint(5, 18)):
        kind = choose.choice(_WIDE)
        a, b, own = choose.choice(names), choose.choice(names), choose.choice(names)
        fresh = f"v{number}"
        if kind == "op":
            lines.append(f"{fresh} = {choose.choice(_OPS).format(a=a, b=b)}")
            names.append(fresh)
        elif kind == "view":
            lines.append(f"{fresh} = {choose.choice(_VIEWS).format(a=a)}")
            names.append(fresh)
        elif kind == "write":
            lines.append(f"with t.no_grad():\n    {own}.{choose.choice(_WRITES).format(b=b + '.detach()')}")
        elif kind == "part":
            lines.append(
                f"with t.no_grad():\n    {own}.detach()[:2].{choose.choice(('zero_()', 'add_(q)', 'copy_(q)'))}"
            )
        elif kind == "memory":
            how = choose.choice(_MEMORY)
            if how == "resize" and len(names) > 2:
                own = choose.choice(names[2:])
                names.remove(own)
                lines.append(
                    f"r = {own}.detach().clone()\nr.resize_({choose.choice((2, 4, 30))}, 3)\nr.zero_()"
                )
            elif how != "resize":
                lines.append(how.format(own=own, b=b, fresh=fresh))
                if fresh in lines[-1]:
                    names.append(fresh)
        elif kind == "free" and len(names) > 2:
            names.remove(gone := choose.choice(names[2:]))
            lines.append(f"del {gone}")
        elif kind == "sparse":
            lines.append(choose.choice(_SPARSE))
        elif kind == "loss":
            lines.append(f"loss = {choose.choice(('square', 'other'))}({a}).mul({b}.detach()).sum()")
            loss = True
        elif kind == "backward" and loss:
            lines.append("loss.backward()")
            loss = False
        elif kind == "step":
            lines.append(f"{choose.choice(_STEPPERS)}.step()")
            loss = False  # what it saved may have been written to
        elif kind == "zero":
            lines.append(choose.choice(_ZEROS))
        elif kind == "swap":
            lines.append(choose.choice(_SWAPS))
            loss = False
    cut = choose.randint(0, len(lines) // 2)
    return "\n".join(lines[:cut]), "\n".join(lines[cut:])


_WIDE = (
    "op op op op view view write write part memory memory free loss loss backward backward step step zero swap sparse"
).split()
_OPS = (
    "{a}.add({b})",
    "{a}.mul({b})",
    "{a}.relu()",
    "{a}.clone()",
    "F.linear({a}, s)",
    "square({a})",
    "other({a})",
    "t.cat([{a}, {b}])[:4]",
    "t.stack([{a}, {b}]).sum(0)",
    "t.where({a} > {b}, {a}, {b})",
    "t.ones(4, 3)",
    "t.zeros_like({a})",
)
_VIEWS = (
    "{a}.detach()",
    "{a}.view(4, 3)",
    "{a}.reshape(3, 4).view(4, 3)",
    "{a}[:]",
    "{a}.t().t()",
    "{a}.unsqueeze(0)[0]",
)
_WRITES = ("add_({b})", "mul_({b})", "copy_({b})", "zero_()", "relu_()", "sub_({b})")
_MEMORY = (
    "{own}.data = {b}.detach().clone()",
    "{own}.data = {b}.detach()",
    "{fresh} = t.ones(4, 3)\n{fresh}.set_({b}.detach())",
    "{fresh} = t.empty(0)\n{fresh}.set_({b}.detach().clone())",
    "resize",
)
_SPARSE = (
    "n = sparse + sparse",
    "n = sparse.to_dense()",
    "values.mul_(values)",
    "p = values.view(3, 4).add(values.view(3, 4))",
    "j = indices.add(indices)",
)
_STEPPERS = "plain heavy nesterov both adam adagrad rms".split()
_ZEROS = (
    "plain.zero_grad()",
    "plain.zero_grad(set_to_none=False)",
    "square.zero_grad()",
    "square.weight.grad = None",
    "s.grad = None",
    "other.bias.grad = t.ones(3)",
)
_SWAPS = (
    "square.weight, other.weight = other.weight, square.weight",
    "square.bias = t.nn.Parameter(t.ones(3))",
    "square.weight.data = t.ones(3, 3)",
    "other.weight.data = square.weight.data",
    "square.requires_grad_(False)\nsquare.requires_grad_(True)",
)

WIDE_SETUP = """
t.manual_seed(0)
F = t.nn.functional
x, u, q = t.ones(4, 3), t.full((4, 3), 2.0), t.ones(2, 3)
sparse = t.ones(4, 3).to_sparse()
values, indices = sparse.values(), sparse.indices()
s = t.nn.Parameter(t.ones(3, 3))
square, other = t.nn.Linear(3, 3), t.nn.Linear(3, 3)
plain = t.optim.SGD([*square.parameters(), s], lr=0.1)
heavy = t.optim.SGD(square.parameters(), lr=0.1, momentum=0.9)
nesterov = t.optim.SGD(other.parameters(), lr=0.1, momentum=0.9, nesterov=True)
both = t.optim.SGD([*square.parameters(), *other.parameters()], lr=0.1, foreach=True)
adam = t.optim.Adam(square.parameters())
adagrad = t.optim.Adagrad([s])
rms = t.optim.RMSprop([*other.parameters(), s], momentum=0.5)
loss = (square(x) + other(x)).sum()
loss.backward()
loss = None
"""

RANDOM_SETUP = """
t.manual_seed(0)
F = t.nn.functional
x = t.ones(4, 3)
s = t.nn.Parameter(t.ones(3, 3))
square = t.nn.Linear(3, 3)
plain = t.optim.SGD([*square.parameters(), s], lr=0.1)
heavy = t.optim.SGD(square.parameters(), lr=0.1, momentum=0.9)
loss = square(x).sum()
loss.backward()
loss = None
"""


def run(library: ModuleType, setup: str, program: str, **settings: Any) -> tuple[Any, str]:
    """The profile of a program, and what it raised."""
    space: dict[str, Any] = {"t": library}
    exec(setup, space)
    settings = {"record_shapes": True, "profile_memory": True, "with_stack": True, **settings}
    error = ""
    with library.profiler.profile(activities=[library.profiler.ProfilerActivity.CPU], **settings) as prof:
        try:
            exec(program, space)
        except RuntimeError as raised:
            error = str(raised).split(".")[0].split("\n")[0]
    prof.kept = space
    return prof, error


# ---------------------------------------------------------------------------------------------------- what is noted


# Ops on sparse tensors, which have no memory of their own: here most of them are no ops, and torch shows what happens inside.
_SPARSE_OPS = frozenset(
    f"aten::{name}"
    for name in "to_sparse to_dense coalesce values indices _values _indices _sparse_mm".split()
)


def _is_own(event: Any) -> bool:
    """Whether an event is no part of an op."""
    around = event.parent
    while around is not None and not around.name.startswith("aten::"):
        around = around.parent
    return around is None and event.name not in _SPARSE_OPS


def leaves(prof: Any, memory: ModuleType) -> dict[str, Any]:
    """Of each of the program's own ops: its name and the memory that goes in, as (number in the order of appearance, version, what it is for)."""
    profile = prof._memory_profile()
    graph, categories = profile._data_flow_graph, profile._categories
    ids: dict[int, int] = {}
    found = []
    for node in graph.flow_nodes:
        event = node._event
        if event.tag.name != "TorchOp" or not _is_own(event):
            continue
        inputs = node.inputs
        met = []
        for tensor in _tensors(event.extra_fields.inputs):
            key = memory.TensorKey.from_tensor(tensor)
            if key not in inputs or _wrapped(tensor):
                continue
            written, version = inputs[key]
            said, after = categories.get(key, version), categories.get(key, version + 1) if written else None
            met.append(
                [
                    ids.setdefault(key.id, len(ids)),
                    version,
                    bool(written),
                    said.name if said else None,
                    after.name if after else None,
                ]
            )
        scopes = [scope.name for scope in memory.get_scopes(event)]
        found.append([event.name, scopes.count("BACKWARD_FUNCTION") > 0, met])
    return {"ops": found, "sizes": _lasting(profile)}


def flow(prof: Any, memory: ModuleType) -> list[Any]:
    """Of each of the program's own ops: its name, and its edges to memory that some own op is given: [number in the order of appearance,
    version that it meets (None: it takes the memory itself), whether it writes to what was there, whether it gives it back]."""
    graph = prof._memory_profile()._data_flow_graph
    own = [node for node in graph.flow_nodes if node._event.tag.name == "TorchOp" and _is_own(node._event)]
    numbers: dict[Any, int] = {}
    for node in own:
        for tensor in _tensors(node._event.extra_fields.inputs):
            key = memory.TensorKey.from_tensor(tensor)
            if key is not None and not _wrapped(tensor):
                numbers.setdefault(key, len(numbers))
    found = []
    for node in own:
        edges = [
            [
                numbers[key],
                edge.input_version,
                bool(edge.mutated) and not edge.is_allocation,
                edge.is_deletion,
            ]
            for key, edge in node._edges.items()
            if key in numbers
        ]
        found.append([node._event.name, sorted(edges, key=lambda edge: edge[0])])
    return found


def _lasting(profile: Any) -> dict[str, int]:
    """The bytes of parameters, gradients and optimizer state that were there before, and of those that were made and stay."""
    found: dict[str, int] = {}
    gone = {key for _, action, (key, _), _ in profile.timeline if action.name == "DESTROY"}
    for _, action, (key, version), size in profile.timeline:
        said = profile._categories.get(key, version)
        stays = action.name in ("PREEXISTING", "CREATE") and key not in gone
        if stays and said is not None and said.name in ("PARAMETER", "GRADIENT", "OPTIMIZER_STATE"):
            name = f"{action.name} {said.name}"
            found[name] = found.get(name, 0) + size
    return dict(sorted(found.items()))


def _tensors(inputs: list[Any]) -> list[Any]:
    flat = []
    for value in inputs:
        flat += value if isinstance(value, list) else [value]
    return [value for value in flat if hasattr(value, "storage_data_ptr")]


def _wrapped(tensor: Any) -> bool:
    """Whether a tensor is a Python number that torch wrapped."""
    return not tensor.sizes and str(tensor.dtype) in ("torch.float64", "torch.int64")


def shown(prof: Any) -> list[Any]:
    """The program's own ops, and backward functions with theirs: [level, name, scope, sequence number, tensors that go in]; a tensor is
    [shape, strides, dtype, layout, number in the order of appearance]."""
    ids: dict[int, int] = {}
    found: list[Any] = []

    def walk(events: list[Any], level: int) -> None:
        for event in events:
            if event.tag.name != "TorchOp":
                walk(event.children, level)
                continue
            fields = event.extra_fields
            tensors = [
                [t.sizes, t.strides, str(t.dtype), str(t.layout), ids.setdefault(t.id, len(ids))]
                for t in _tensors(fields.inputs)
                if t.id is not None and not _wrapped(t)
            ]
            found.append([level, event.name, fields.scope.name, fields.sequence_number, tensors])
            if "aten::" not in event.name:
                # with stacks, torch shows an annotation inside the call that opens it and what it contains beside it
                walk(event.children, level + (fields.scope.name != "USER_SCOPE"))

    walk(prof.profiler.kineto_results.experimental_event_tree(), 0)
    return found


def held(prof: Any) -> list[Any]:
    """What modules and optimizers held: class, names and shapes, whether there are gradients, and whether addresses are the tensors' own."""
    found: list[Any] = []
    seen: set[int] = set()

    def walk(events: list[Any]) -> None:
        for event in events:
            if event.tag.name == "PyCall":
                fields = event.extra_fields
                for info in (fields.module, fields.optimizer):
                    if info is not None and info.self_ptr not in seen:
                        seen.add(info.self_ptr)
                        found.append(_about(info))
            walk(event.children)

    walk(prof.profiler.kineto_results.experimental_event_tree())
    return found


def _about(info: Any) -> list[Any]:
    if hasattr(info, "cls_name"):
        return [
            info.cls_name,
            [[name, p.sizes, str(p.dtype), g is not None] for name, p, g in info.parameters],
        ]
    return [
        "optimizer",
        [[p.sizes, g is not None, [[n, s.sizes] for n, s in states]] for p, g, states in info.parameters],
    ]


# ---------------------------------------------------------------------------------------------------- more programs

OPTIMIZERS = (
    "SGD(own, lr=0.1, weight_decay=0.1)",
    "SGD(own, lr=0.1, momentum=0.9, nesterov=True)",
    "SGD(own, lr=0.1, fused=True)",
    "Adam(own)",
    "Adam(own, amsgrad=True)",
    "Adam(own, foreach=True)",
    "Adam(own, fused=True)",
    "AdamW(own)",
    "RMSprop(own, momentum=0.9, centered=True)",
    "Adagrad(own)",
    "Adadelta(own)",
    "NAdam(own)",
    "RAdam(own)",
    "ASGD(own)",
    "Rprop(own)",
)

# tensors that get other memory: v, and those whose memory it gets, made in this order; then statements
JOINS = {
    "v a b": ("v.set_(a)", "v.set_(b)"),
    "v b a": ("v.set_(a)", "v.set_(b)"),
    "a v b": ("v.set_(a)", "v.set_(b)"),
    "b v a": ("v.set_(a)", "v.set_(b)"),
    "a b v": ("v.set_(a)", "v.set_(b)"),
    "b a v": ("v.set_(a)", "v.set_(b)"),
    "a b c v": ("v.set_(a)", "v.set_(b)", "v.set_(c)"),
    "v a b c": ("v.set_(c)", "v.set_(b)", "v.data = a"),
    "a v w": ("v.set_(a)", "w.set_(a)"),
    "v w a": ("v.set_(a)", "w.set_(a)"),
    "v a b c d": ("v.set_(a)", "a.set_(b)", "c.data = d"),
    "a b v c": ("v.set_(b)", "b.set_(a)", "c.resize_(70)"),
    "v b a c": ("v.set_(b)", "b.set_(a)", "c.resize_(70)", "c.set_(v)"),
    "v a c": ("v.resize_(30)", "v.resize_(300)"),
    "a v c": ("v.resize_(30)", "v.set_(a)"),
    "c a v": ("w = v.detach()", "v.set_(a)", "v.set_(w)"),
}


def joined(library: ModuleType, names: str, statements: tuple[str, ...]) -> dict[str, list[int]]:
    """By allocation id, of all tensors that recorded ops were given: the ids that they have."""
    space: dict[str, Any] = {"t": library}
    with library.profiler.profile(record_shapes=True, profile_memory=True) as prof:
        for size, name in enumerate(names.split(), 3):
            exec(f"{name} = t.ones({size}).neg_()", space)
        for statement in statements:
            exec(f"{statement}\n{statement[0]}.relu()", space)
    found: dict[str, set[int]] = {}

    def walk(events: list[Any]) -> None:
        for event in events:
            if event.tag.name == "TorchOp":
                for tensor in _tensors(event.extra_fields.inputs):
                    if tensor.id is None:  # of a synthetic event
                        continue
                    found.setdefault(str(tensor.allocation_id), set()).add(tensor.id)
            walk(event.children)

    walk(prof.profiler.kineto_results.experimental_event_tree())
    return {number: sorted(ids) for number, ids in sorted(found.items())}


def wide(library: ModuleType, memory: ModuleType, seed: int) -> dict[str, Any]:
    """What is noted of a wide program."""
    before, program = wide_program(seed)
    prof, error = run(
        library,
        WIDE_SETUP + (f"try:\n{indented(before)}\nexcept RuntimeError:\n    pass" if before else ""),
        program,
    )
    return {**leaves(prof, memory), "flow": flow(prof, memory), "error": error}


def indented(text: str) -> str:
    """A block of statements inside another."""
    return "\n".join("    " + line for line in text.split("\n"))


def stepped(library: ModuleType, memory: ModuleType, optimizer: str) -> dict[str, Any]:
    """What is noted of two steps of an optimizer, after one before the recording."""
    setup = (
        f"own = list(model.parameters())\nopt = t.optim.{optimizer}\nmodel(x).sum().backward()\nopt.step()\n"
    )
    body = "opt.zero_grad()\nF.mse_loss(model(x), target).backward()\nopt.step()\n"
    prof, error = run(library, SETUP + setup, body + body)
    return {**leaves(prof, memory), "flow": flow(prof, memory), "error": error}


def observe(library: ModuleType, memory: ModuleType) -> dict[str, Any]:
    """All facts."""
    made: dict[str, Any] = {"fixed": {}, "random": {}, "trees": {}, "held": {}}
    made["joined"] = {name: joined(library, name, statements) for name, statements in JOINS.items()}
    made["optimizers"] = {name: stepped(library, memory, name) for name in OPTIMIZERS}
    made["wide"] = {str(seed): wide(library, memory, seed) for seed in range(WIDE)}
    for name, program in FIXED.items():
        prof, error = run(library, SETUP, program)
        made["fixed"][name] = {**leaves(prof, memory), "error": error}
        made["trees"][name] = shown(prof)
        made["held"][name] = held(prof)
    for seed in range(RANDOM):
        prof, error = run(library, RANDOM_SETUP, random_program(seed))
        made["random"][str(seed)] = {**leaves(prof, memory), "error": error}
    return made


RANDOM = 100
WIDE = 60
