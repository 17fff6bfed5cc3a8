"""Generates the functions of an op: its declaration in, compiled code out. Runs once per op, at its first call.

Three functions share their source: `entry` (which users call), `run` (which probes call; it does not test `recorder` again) and
`operator` (`x + y`: returns NotImplemented for unknown operands). A node class for the backward pass is generated with them.
"""

from __future__ import annotations

import re
from typing import Any

from . import _dispatch
from ._autocast import LISTED
from ._deprecated_signatures import call, takes_factors
from ._dispatch import Op
from ._graph import Node
from ._ops._layout import laid_out, unlike
from ._schema import Argument

_KEYWORDS = {"self": "input", "from": "from_", "lambda": "lambd"}
_SUFFIXES = ("_shape", "_dtype", "_ndim", "_shapes", "_requires_grad", "_strides", "_offset")


def python_name(name: str) -> str:
    return _KEYWORDS.get(name, name)


def camel(name: str) -> str:
    """The name of an op in the name of its node: `avg_pool2d_backward` is `AvgPool2DBackward`, also in torch."""
    return "".join(part.title() for part in name.split("_"))


class Writer:
    """Lines with indentation."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, depth: int, *lines: str) -> None:
        self.lines += ["    " * depth + line for line in lines]


class Plan:
    """The facts about an op from which its functions are generated, read from its declaration."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.base = op.inplace_of or op
        self.schema = op.schema
        self.arguments = [a for a in self.schema.arguments if not (a.written and a.name.startswith("out"))]
        self.names = [python_name(a.name) for a in self.arguments]
        self.tensors = [a for a in self.arguments if a.kind.startswith("Tensor")]
        self.plain_tensors = [a for a in self.arguments if a.kind == "Tensor"]
        self.uid = op.uid
        self.multiple = len(self.schema.returns) > 1
        self.listed = self.schema.returns[:1] and self.schema.returns[0].endswith("[]")
        self.tracked = tracked_outputs(op) if self.multiple else 1
        self.returns_tensors = bool(self.schema.returns) and all(
            r.startswith("Tensor") for r in self.schema.returns
        )
        # whether the kernel returns one array that is no view, which `new_result` takes
        self.single_result = (
            op.body == "arrays"
            and self.returns_tensors
            and not (op.is_view or op.inplace_of or self.multiple or self.listed)
        )
        # a number for an op with numbers=False is an error at run time, not here
        self.numbers_allowed = bool(op.promote)
        self.takes_factors = takes_factors(op)
        self.read_rules()

    # -- derivatives

    def read_rules(self) -> None:
        base = self.base
        self.rules: dict[str, Any] = {k: v for k, v in base.rules.items() if v is not None}
        self.joint = base.joint
        by_name = {a.name: a for a in self.arguments}
        for key in base.rules:
            if key not in by_name:
                raise ValueError(f"{base!r} has a derivative for {key!r}, which is no argument of it")
        if self.joint is not None:
            wrt = base.joint_wrt or [a.name for a in self.tensors]
            self.differentiable = [by_name[name] for name in wrt]
        else:
            self.differentiable = [a for a in self.arguments if a.name in self.rules]
        self.saved: dict[str, set[str]] = {}
        for key, rule in self.rules.items():
            for name in parameters(rule):
                if name not in ("g", "grads", "needs", "node") and not re.match(r"g\d$", name):
                    self.saved.setdefault(name, set()).add(key)
        if self.joint is not None:
            for name in parameters(self.joint):
                if name not in ("g", "grads", "needs", "node") and not re.match(r"g\d$", name):
                    self.saved.setdefault(name, set())
        self.has_node = bool(self.differentiable)

    def out_number(self, name: str) -> int | None:
        """The number of the output that a saved name refers to, or None."""
        if name in ("out", "result"):
            return 0
        match = re.match(r"(?:out|result)(\d)$", name)
        if match:
            return int(match[1])
        if (
            self.multiple
            and name in self.schema.return_names
            and name not in [a.name for a in self.arguments]
        ):
            return self.schema.return_names.index(name)
        return None

    def argument(self, name: str) -> Argument | None:
        for argument in self.arguments:
            if argument.name == name:
                return argument
        return None

    def saves_tensor(self, name: str) -> bool:
        argument = self.argument(name)
        return self.out_number(name) is not None or (
            argument is not None and argument.kind.startswith("Tensor")
        )

    # -- parts of the source

    def signature(self) -> str:
        parts, star = [], False
        optional = False
        aliased = any(a.name in ("dim", "keepdim") for a in self.arguments)
        self.aliased = aliased
        for argument, name in zip(self.arguments, self.names):
            if argument.keyword_only and not star:
                parts.append("*more" if self.takes_factors else "*")
                star = True
            if argument.required and not (aliased and name == "dim"):
                if optional and not star:
                    parts.append(f"{name}=MISSING")
                else:
                    parts.append(name)
            elif argument.required:
                parts.append(f"{name}=MISSING")
                optional = True
            else:
                optional = True
                parts.append(f"{name}={default_text(argument.default)}")
        if self.op.has_out:
            if not star:
                parts.append("*")
            parts.append("out=None")
        if aliased:
            parts.append("**aliases")
        return ", ".join(parts)

    def call(self) -> str:
        return ", ".join(self.names)

    def requires(self, argument: Argument) -> str:
        name = python_name(argument.name)
        if argument.kind == "Tensor":
            return f"(t_{name} and {name}._rg)" if self.may_be_number(argument) else f"{name}._rg"
        if argument.kind == "Tensor?":
            return f"({name} is not None and {name}._rg)"
        if argument.kind == "Tensor?[]":
            return f"any([x is not None and x._rg for x in {name}])"
        return f"any([x._rg for x in {name}])"

    def may_be_number(self, argument: Argument) -> bool:
        return (
            self.numbers_allowed
            and argument is not self.plain_tensors[0]
            and len(self.plain_tensors) == 2
            and argument.kind == "Tensor"
        )

    def edge(self, argument: Argument) -> str:
        name = python_name(argument.name)
        if argument.kind == "Tensor":
            return f"edge({name}) if {self.requires(argument)} else None"
        if argument.kind == "Tensor?":
            return f"None if {name} is None else edge({name})"
        if argument.kind == "Tensor?[]":
            return f"*[None if x is None else edge(x) for x in {name}]"
        return f"*[edge(x) for x in {name}]"


def tracked_outputs(op: Op) -> int:
    """How many outputs (the first ones) have gradients: as declared, or those before indices and status codes."""
    names = op.schema.return_names
    if op.outputs:
        return op.outputs
    return next((i for i, name in enumerate(names) if name in ("indices", "info", "pivots")), len(names))


def parameters(rule: Any) -> tuple[str, ...]:
    code = rule.__code__
    return code.co_varnames[: code.co_argcount]


def default_text(value: Any) -> str:
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "float('inf')" if value > 0 else "float('-inf')"
    return repr(value)


# ---------------------------------------------------------------------------------------------------- forward


def write_prepare(w: Writer, plan: Plan, depth: int, operator: bool) -> None:
    """Convert tensors to arrays, ints to tuples, and operands to one dtype."""
    op = plan.op
    for argument, name in zip(plan.arguments, plan.names):
        if argument.kind == "ints":
            w(depth, f"if {name}.__class__ is not tuple: {name} = ints({name}, {argument.length})")
        elif argument.type.startswith("Scalar") and not (
            operator and name in plan.names[2:]
        ):  # there a default
            w(depth, f"if {name}.__class__ not in NUMBERS: {name} = number({name})")
        if op.body != "arrays":
            continue
        if plan.may_be_number(argument):
            continue
        if argument.kind == "Tensor":
            w(depth, f"a_{name} = {name}._array")
        elif argument.kind == "Tensor?":
            w(depth, f"a_{name} = None if {name} is None else {name}._array")
        elif argument.kind == "Tensor[]":
            w(
                depth,
                f"if {name}.__class__ is not list and not isinstance({name}, (tuple, list)): raise TypeError({name!r})",
            )
            w(depth, f"a_{name} = [x._array for x in {name}]")
        elif argument.kind == "Tensor?[]":
            w(depth, f"a_{name} = [None if x is None else x._array for x in {name}]")
    if op.body == "arrays" and op.promote:
        write_promotion(w, plan, depth, operator)


FACTORS = ("mul", "mul_", "div", "div_")


def write_promotion(w: Writer, plan: Plan, depth: int, operator: bool) -> None:
    names = [python_name(a.name) for a in plan.plain_tensors]
    first = names[0]
    floating = plan.op.promote == "float"
    if len(names) == 1:
        if floating:
            w(depth, f"if a_{first}.dtype.num in INTEGRAL_NUMS: a_{first} = to_float(a_{first})")
        return
    if len(names) > 2:
        same = " is ".join(f"a_{n}.dtype" for n in names)
        w(
            depth,
            f"if not ({same}): {', '.join('a_' + n for n in names)} = promote_all({', '.join('a_' + n for n in names)})",
        )
        if floating:
            w(
                depth,
                f"if a_{first}.dtype.num in INTEGRAL_NUMS: "
                + "; ".join(f"a_{n} = to_float(a_{n})" for n in names),
            )
        return
    other = names[1]
    w(depth, f"t_{other} = {other}.__class__ is Tensor or isinstance({other}, Tensor)")
    w(depth, f"if t_{other}:")
    w(depth + 1, f"a_{other} = {other}._array")
    subtracts = "_to_subtract" if plan.op.name in ("sub", "sub_") else ""
    differ = f"a_{first}.dtype is not a_{other}.dtype"
    if plan.op.inplace_of is None and plan.op.pointwise:
        differ = f"unlike(a_{first}, a_{other})"
    w(
        depth + 1,
        f"if {differ}: a_{first}, a_{other} = promote_pair{subtracts}(a_{first}, a_{other})",
    )
    promote = "promote_factor" if plan.op.name in FACTORS else "promote_number" + subtracts
    if plan.op.numbers:
        w(depth, f"elif {other}.__class__ in NUMBERS: a_{first}, a_{other} = {promote}(a_{first}, {other})")
    if operator:
        w(depth, f"else: return unknown_operand(OP, ({first}, {other}))")
    else:
        w(depth, f"else: raise AttributeError({other!r})")
    if floating:
        w(depth, f"if a_{first}.dtype.num in INTEGRAL_NUMS:")
        w(depth + 1, f"a_{first} = to_float(a_{first})")
        w(depth + 1, f"if a_{other}.__class__ is ndarray: a_{other} = to_float(a_{other})")


def kernel_arguments(plan: Plan) -> str:
    if plan.op.body != "arrays":
        return plan.call()
    parts = []
    for argument, name in zip(plan.arguments, plan.names):
        parts.append(f"a_{name}" if argument.kind.startswith("Tensor") else name)
    return ", ".join(parts)


def write_below(w: Writer, plan: Plan, depth: int) -> None:
    """Run a body that takes tensors, with gradients off; its result is in `t`."""
    w(depth, "enabled = grad_state.enabled")
    w(depth, "grad_state.enabled = False")
    w(depth, "try:")
    w(depth + 1, f"t = K_{plan.uid}({plan.call()})")
    w(depth, "finally:")
    w(depth + 1, "grad_state.enabled = enabled")


def write_node(w: Writer, plan: Plan, depth: int, recorded: bool) -> None:
    """Create the node, its edges and the tensors it saves. The outputs' arrays are in `r`, `r0`... or the list `rs`."""
    w(depth, f"node = new_node(NODE_{plan.uid})")
    w(depth, "node.seq = seq = grad_state.seq")
    w(depth, "grad_state.seq = seq + 1")
    if recorded:
        w(depth, "node.forward_thread = get_ident()")
    if not plan.op.inplace_of:
        edges = ", ".join(plan.edge(a) for a in plan.differentiable)
        w(depth, f"node.next = ({edges},)")
    else:
        w(depth, "node.next = edges")
    if plan.multiple and plan.tracked == 1:
        w(depth, "node.shapes = r0.shape", "node.dtypes = r0.dtype")
    elif plan.multiple:
        count = plan.tracked
        w(depth, f"node.n_outputs = {count}")
        w(depth, "node.shapes = (" + ", ".join(f"r{i}.shape" for i in range(count)) + ")")
        w(depth, "node.dtypes = (" + ", ".join(f"r{i}.dtype" for i in range(count)) + ")")
    elif plan.listed:
        w(depth, "node.n_outputs = len(rs)")
        w(depth, "if len(rs) == 1: node.shapes = rs[0].shape; node.dtypes = rs[0].dtype")
        w(depth, "else: node.shapes = [x.shape for x in rs]; node.dtypes = [x.dtype for x in rs]")
    else:
        w(depth, "node.shapes = r.shape", "node.dtypes = r.dtype")
    for name, users in plan.saved.items():
        write_save(w, plan, depth, name, users)


def write_save(w: Writer, plan: Plan, depth: int, name: str, users: set[str]) -> None:
    inplace = plan.op.inplace_of is not None
    number = plan.out_number(name)
    if number is not None:
        if inplace:
            return  # saved after the write
        source = (
            "t" if not (plan.multiple or plan.listed) else f"t{number}" if plan.multiple else f"ts[{number}]"
        )
        w(depth, f"node.s_{name} = save_result({source}, {number})")
        return
    argument = plan.argument(name)
    if argument is None:
        for suffix in _SUFFIXES:
            if name.endswith(suffix) and plan.argument(name[: -len(suffix)]) is not None:
                owner = plan.argument(name[: -len(suffix)])
                assert owner is not None
                w(depth, f"node.s_{name} = {aspect(plan, owner, suffix)}")
                return
        raise ValueError(
            f"{plan.op!r}: a derivative wants {name!r}, which is neither an argument nor an output"
        )
    local = python_name(name)
    if not argument.kind.startswith("Tensor"):
        w(depth, f"node.s_{name} = {local}")
        return
    if argument.kind in ("Tensor[]", "Tensor?[]"):
        w(depth, f"node.s_{name} = tuple({local})")
        w(depth, f"node.v_{name} = [0 if x is None else version_of(x) for x in {local}]")
        return
    if inplace and name == "self":
        w(depth, "node.s_self = kept")
        w(depth, "node.v_self = 0 if kept is None else version_of(kept)")
        return
    needed = [plan.requires(a) for a in plan.differentiable if a.name in users]
    guard = (
        "" if not users or len(needed) == len(plan.differentiable) else f" if {' or '.join(needed)} else None"
    )
    w(depth, f"node.s_{name} = {local}{guard}")
    absent = ""
    if plan.may_be_number(argument):
        absent = f"not t_{local} or "
    elif argument.kind == "Tensor?":
        absent = f"{local} is None or "
    written = f" - ({local}._storage is input._storage)" if inplace else ""  # as it was before this op wrote
    w(depth, f"node.v_{name} = 0 if {absent}{local}._storage is None else {local}._storage._version{written}")


def aspect(plan: Plan, owner: Argument, suffix: str) -> str:
    name = python_name(owner.name)
    if suffix == "_shapes":
        return f"[None if x is None else x._array.shape for x in {name}]"
    if plan.may_be_number(owner):
        none = {
            "_shape": "()",
            "_ndim": "0",
            "_dtype": "None",
            "_requires_grad": "False",
            "_strides": "()",
            "_offset": "0",
        }[suffix]
        prefix = f"{none} if not t_{name} else "
    elif owner.kind == "Tensor?":
        prefix = f"None if {name} is None else "
    else:
        prefix = ""
    return (
        prefix
        + {
            "_shape": f"{name}._array.shape",
            "_ndim": f"{name}._array.ndim",
            "_dtype": f"_dtype.BY_NUM[{name}._array.dtype.num]",
            "_strides": f"{name}.stride()",
            "_offset": f"{name}.storage_offset()",
            "_requires_grad": f"bool({name}._rg)",
        }[suffix]
    )


def write_wrap(w: Writer, plan: Plan, depth: int) -> None:
    """Wrap the kernel's arrays in `r` as tensors `t`, `t0`..., or `ts`."""
    is_view = plan.op.is_view
    if plan.multiple:
        count = len(plan.schema.returns)
        w(depth, ", ".join(f"r{i}" for i in range(count)) + " = r")
        for i in range(count):
            w(depth, f"if r{i}.__class__ is not ndarray: r{i} = asarray(r{i})")
            w(depth, f"t{i} = new(Tensor); t{i}._array = r{i}")
    elif plan.listed:
        if is_view:
            w(depth, "rs = r", "ts = [as_view(input, x) for x in r]")
            w(depth, "for x in ts: x._multi_view = True")
        else:
            w(depth, "rs = r", "ts = [wrap(x) for x in r]")
    elif is_view:
        w(depth, "t = new_view(input, r)")
        w(depth, "storage = input._storage")
        w(depth, "if storage is None: storage = storage_of(input)")
        w(depth, "t._storage = storage")
        w(depth, "if input._base is not None: inherit_view(t, input)")
        w(depth, "if storage._version: t._seen_version = storage._version")


def write_unwrap(w: Writer, plan: Plan, depth: int) -> None:
    """After a body that returns tensors: assign its results and their arrays to the variables that later lines use."""
    if plan.multiple:
        count = len(plan.schema.returns)
        w(depth, ", ".join(f"t{i}" for i in range(count)) + " = t")
        for i in range(count):
            w(depth, f"r{i} = t{i}._array")
    elif plan.listed:
        w(depth, "ts = list(t)", "rs = [x._array for x in ts]")
        if plan.op.is_view:
            w(depth, "for x in ts: x._multi_view = True")
    else:
        w(depth, "r = t._array")


def write_attach(w: Writer, plan: Plan, depth: int) -> None:
    if plan.multiple:
        for i in range(plan.tracked):
            w(
                depth,
                f"if r{i}.dtype.num not in INTEGRAL_NUMS: t{i}._rg = True; t{i}._grad_fn = node; t{i}._output_nr = {i}",
            )
    elif plan.listed:
        w(depth, "for i, x in enumerate(ts): x._rg = True; x._grad_fn = node; x._output_nr = i")
    else:
        w(depth, "t._rg = True", "t._grad_fn = node")


def write_return(w: Writer, plan: Plan, depth: int) -> None:
    if plan.multiple:
        results = ", ".join(f"t{i}" for i in range(len(plan.schema.returns)))
        w(depth, f"return RET_{plan.uid}(({results}))" if plan.op.return_type else f"return ({results})")
    elif plan.listed:
        w(depth, f"return RET_{plan.uid}(ts)" if plan.op.return_type else "return ts")
    else:
        w(depth, "return t")


def write_fresh(w: Writer, plan: Plan, depth: int, recorded: bool, operator: bool) -> None:
    """The body of an op that returns new tensors or views."""
    op = plan.op
    on_tensors = op.body == "tensors"
    w(depth, "try:")
    write_prepare(w, plan, depth + 1, operator)
    if on_tensors:
        write_below(w, plan, depth + 1)
        if plan.returns_tensors:
            write_unwrap(w, plan, depth + 1)  # a meta tensor has no array: `recover` runs the op again
    else:
        w(depth + 1, f"r = K_{plan.uid}({kernel_arguments(plan)})")
        if plan.single_result:
            operands = ["a_" + python_name(a.name) for a in plan.tensors] if op.pointwise else []
            w(depth + 1, f"t = new_result({', '.join(['r', *operands])})")
    w(depth, "except Exception as error:")
    if operator:
        w(depth + 1, f"if not isinstance({plan.names[0]}, Tensor): not_a_method(OP, {plan.names[0]})")
    w(depth + 1, f"return recover(OP, error, ({plan.call()},))")
    if not plan.returns_tensors:
        w(depth, "return t" if on_tensors else "return r")
        return
    if not on_tensors and not plan.single_result:
        write_wrap(w, plan, depth)
    if not op.nondifferentiable:
        write_autograd(w, plan, depth, recorded)
    write_return(w, plan, depth)


def write_autograd(w: Writer, plan: Plan, depth: int, recorded: bool) -> None:
    if not plan.has_node:
        requires_grad = [plan.requires(a) for a in plan.tensors]
        if requires_grad:
            w(depth, f"if ({' or '.join(requires_grad)}) and grad_state.enabled: no_derivative(OP)")
        return
    requires_grad = [plan.requires(a) for a in plan.differentiable]
    array = "(r := t._array)" if plan.single_result else "r"
    integral = "" if plan.multiple or plan.listed else f" and {array}.dtype.num not in INTEGRAL_NUMS"
    if plan.op.is_view and not plan.listed:
        w(depth, "if input._rg and not grad_state.enabled: mark_view(t)")
        w(depth, f"elif ({' or '.join(requires_grad)}){integral}:")
        if plan.op.body == "tensors":
            w(depth + 1, "t._view_made_in = input._view_made_in")  # its body ran with gradients off
    else:
        w(depth, f"if ({' or '.join(requires_grad)}) and grad_state.enabled{integral}:")
    write_node(w, plan, depth + 1, recorded)
    w(depth + 1, "if Switches.saved_hooks: pack_saved(node)")
    write_attach(w, plan, depth + 1)


def write_inplace(w: Writer, plan: Plan, depth: int, recorded: bool, operator: bool) -> None:
    """The body of an op that writes to its first argument."""
    op = plan.op
    on_tensors = op.body == "tensors"
    saves_self = "self" in plan.saved
    w(depth, "grads = None")
    w(depth, "try:")
    w(depth + 1, "if input._spoiled and not grad_state.inference and is_inference(input): refuse_write()")
    write_prepare(w, plan, depth + 1, operator)
    if plan.has_node:
        requires_grad = [plan.requires(a) for a in plan.differentiable]
        if plan.arguments[0] not in plan.differentiable:
            requires_grad.insert(0, "input._rg")
        w(depth + 1, f"if ({' or '.join(requires_grad)}) and grad_state.enabled:")
        w(depth + 2, "check_inplace(input)")
        w(depth + 2, "grads = True")
        w(depth + 2, f"edges = ({', '.join(plan.edge(a) for a in plan.differentiable)},)")
        if saves_self:
            needed = [plan.requires(a) for a in plan.differentiable if a.name in plan.saved["self"]] or [
                "True"
            ]
            w(depth + 2, f"kept = keep_before_write(input) if {' or '.join(needed)} else None")
    else:
        w(depth + 1, "if input._rg and grad_state.enabled: check_inplace(input)")
    read = [f"a_{python_name(a.name)}" for a in plan.tensors[1:] if a.kind in ("Tensor", "Tensor?")]
    if op.body == "arrays" and read and op.name not in _dispatch.UNASKED:
        same_base = " or ".join([f"getattr({x}, 'base', None) is base or {x} is base" for x in read])
        w(depth + 1, "base = a_input.base")
        w(depth + 1, f"if base is not None and ({same_base}): ask_overlap(a_input, {', '.join(read)})")
    if on_tensors:
        write_below(w, plan, depth + 1)
    elif kernel_takes_out(op.kernel):
        w(depth + 1, "target = input._array")
        w(depth + 1, f"if a_input is target: K_{plan.uid}({kernel_arguments(plan)}, out=target)")
        w(depth + 1, f"else: write_inplace(OP, input, asarray(K_{plan.uid}({kernel_arguments(plan)})))")
    else:
        w(depth + 1, f"write_inplace(OP, input, asarray(K_{plan.uid}({kernel_arguments(plan)})))")
    w(depth, "except Exception as error:")
    w(depth + 1, f"return recover(OP, error, ({plan.call()},))")
    if not on_tensors:
        w(depth, "storage = input._storage")
        w(depth, "if storage is None: storage = storage_of(input)")
        w(depth, "storage._version += 1")
    if plan.has_node:
        w(depth, "if grads:")
        w(depth + 1, "r = input._array")
        write_node(w, plan, depth + 1, recorded)
        for name in plan.saved:
            if plan.out_number(name) is not None:
                w(depth + 1, f"node.s_{name} = save_result(input)")
        w(depth + 1, "if Switches.saved_hooks: pack_saved(node)")
        w(depth + 1, "rebase(input, node)")
    w(depth, "return input")


def kernel_takes_out(kernel: Any) -> bool:
    code = getattr(kernel, "__code__", None)
    if code is None:
        return hasattr(kernel, "nin")  # a ufunc
    return "out" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def write_function(w: Writer, plan: Plan, name: str) -> None:
    op = plan.op
    signature = (
        plan.signature() if name == "entry" else plan.call() if name == "run" else ", ".join(plan.names[:2])
    )
    w(1, f"def {name}({signature}):")
    if name == "entry" and plan.aliased:
        given = ", ".join(f"{n}={n}" for n in plan.names)
        w(2, f"if aliases: return unalias(OP.entry, aliases, {given}" + (", out=out)" if op.has_out else ")"))
        if "dim" in plan.names and plan.arguments[plan.names.index("dim")].required:
            w(2, "if dim is MISSING: missing_dim(OP)")
    if name == "entry" and plan.takes_factors:
        first = [n for a, n in zip(plan.arguments, plan.names) if not a.keyword_only]
        named = [f"{n}={n}" for a, n in zip(plan.arguments, plan.names) if a.keyword_only]
        options = ", ".join(named + (["out=out"] if op.has_out else []))
        w(
            2,
            f"if more: return call_with_factors(OP.entry, OP.name, {tuple(first)}, ({', '.join(first)}, *more), {options})",
        )
    if name == "operator":
        for argument, local in zip(plan.arguments[2:], plan.names[2:]):
            w(2, f"{local} = {default_text(argument.default)}")
    if name == "entry" and op.has_out:
        w(2, f"if out is not None: return call_out(OP, out, ({plan.call()},))")
    if name != "run":
        w(2, "probes = recorder", "if probes is not None:")  # a local: another thread may end the recording
        if name == "operator":
            second = plan.names[1]
            w(
                3,
                f"if {second}.__class__ is not Tensor and not ({second}.__class__ in NUMBERS or isinstance({second}, Tensor)): return NotImplemented",
            )
        else:
            for argument, local in zip(plan.arguments, plan.names):
                if argument.type.startswith("Scalar") and not argument.type.startswith("ScalarType"):
                    w(3, f"if isinstance({local}, Tensor): {local} = taken({local})")
        w(3, f"return probes[{plan.uid}]({plan.call()})")
    if op.name in LISTED and op.inplace_of is None:
        w(2, "if autocast is not None:")
        w(3, f"t = autocast(OP, ({plan.call()},))")
        w(3, "if t is not None: return t")
    if op.body == "composite":
        w(2, "if OP is None: return None")
        w(2, f"try: return K_{plan.uid}({plan.call()})")
        w(2, "except AttributeError:")  # of a number, say, in the place of a tensor
        w(3, f"bad_argument(OP, [{plan.call()}])")
        w(3, "raise")
    elif op.inplace_of is not None:
        write_inplace(w, plan, 2, name == "run", name == "operator")
    else:
        write_fresh(w, plan, 2, name == "run", name == "operator")
    w(0, "")


# ---------------------------------------------------------------------------------------------------- backward


def write_apply(w: Writer, plan: Plan) -> None:
    several = plan.multiple or plan.listed
    w(1, "def apply(node, *grads):" if several else "def apply(node, g):")
    w(2, "e = node.next")
    if several:
        w(2, "g = grads[0]")
    listed = [a for a in plan.differentiable if a.kind.endswith("[]")]
    if plan.joint is not None:
        rule_arguments = []
        for name in parameters(plan.joint):
            value = rule_argument(plan, name)
            wanted = plan.base.values_for.get(name)
            if wanted is not None:
                place = [a.name for a in plan.differentiable].index(wanted)
                value = (
                    f"(node.s_{name} if e[{place}] is None and hasattr(node.s_{name}, '_array') else {value})"
                )
            rule_arguments.append(value)
        w(2, f"return RULE_{plan.uid}({', '.join(rule_arguments)})")
        return
    parts, count = {}, len(plan.differentiable)
    for i, argument in enumerate(plan.differentiable):
        call = f"RULE_{plan.uid}_{argument.name}({', '.join(rule_argument(plan, n) for n in parameters(plan.rules[argument.name]))})"
        if argument in listed:
            parts[argument.name] = call
        else:
            before_list = not listed or i < plan.differentiable.index(listed[0])
            index = i if before_list else i - count
            parts[argument.name] = f"{call} if e[{index}] is not None else None"
    # by name, as in torch: the nodes of second derivatives, and so the order in which these are computed, follow from it
    for name in sorted(parts):
        w(2, f"g_{name} = {parts[name]}")
    stars = {argument.name: "*" for argument in listed}
    w(2, f"return ({', '.join([stars.get(name, '') + 'g_' + name for name in parts])},)")


def write_release(w: Writer, node: Any) -> None:
    """Release the saved tensors: what Node.release does, without a loop."""
    names = [f"node.s_{name}" for name in node.saved_tensor_names]
    w(1, "def release(node):")
    w(2, "node.released = True")
    if names:
        w(2, " = ".join(names) + " = RELEASED")


def rule_argument(plan: Plan, name: str) -> str:
    if name in ("g", "grads", "node"):
        return name
    if re.match(r"g\d$", name):
        return f"grads[{name[1:]}]"
    if name == "needs":
        return "tuple([x is not None for x in e])"
    if plan.saves_tensor(name):
        return f"unpack(node, {name!r})"
    return f"node.s_{name}"


def make_node(op: Op, plan: Plan) -> Any:
    base = plan.base
    if base is not op and base.node is None:
        base.build()
    if base.node is not None and base is not op:
        return base.node
    full_name = base.node_name or camel(base.name) + "Backward0"
    name = full_name.rpartition("::")[2]
    tensors = tuple(n for n in plan.saved if plan.saves_tensor(n))
    return type(
        name,
        (Node,),
        {
            "saved_names": tuple(plan.saved),
            "saved_tensor_names": tensors,
            "__module__": "mindtorch_v2.autograd",
            "op": base,
            "full_name": full_name,
        },
    )


def build(op: Op) -> None:
    """Compile `entry`, `run` and `operator` of `op`, and its node's `apply`."""
    plan = Plan(op)
    namespace = _dispatch._GLOBALS
    namespace["call_with_factors"] = call
    namespace["laid_out"], namespace["unlike"] = laid_out, unlike
    uid = plan.uid
    namespace[f"K_{uid}"] = op.kernel
    if op.return_type is not None:
        namespace[f"RET_{uid}"] = op.return_type
    w = Writer()
    w(0, "def make(OP):")
    wanted = ["entry", "run"]
    if len(plan.names) >= 2 and op.promote:
        wanted.append("operator")
    for name in wanted:
        write_function(w, plan, name)
    if plan.has_node:
        if op.inplace_of is None:
            write_apply(w, plan)
        op.node = namespace[f"NODE_{uid}"] = make_node(op, plan)
        if plan.joint is not None:
            namespace[f"RULE_{uid}"] = plan.joint
        for key, rule in plan.rules.items():
            namespace[f"RULE_{uid}_{key}"] = rule
    with_apply = plan.has_node and op.inplace_of is None
    if with_apply:
        write_release(w, op.node)
    w(1, f"return {', '.join(wanted)}{', release, apply' if with_apply else ', None, None'}")
    source = "\n".join(w.lines)
    defined: dict[str, Any] = {}
    exec(compile(source, f"<op {op.full_name}>", "exec"), namespace, defined)  # noqa: S102  (text written above, from declarations)
    functions = defined["make"](op)
    op.source = source  # type: ignore[attr-defined]
    for name, function in zip(wanted, functions):
        target = op.bodies.get(name) or getattr(op, name)
        target.__defaults__, target.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        target.__code__ = function.__code__
    if with_apply:
        op.node.release, op.node.apply = functions[-2:]


# ---------------------------------------------------------------------------------------------------- descriptions of calls


def describe(op: Op, with_ids: bool = False) -> Any:
    """A function that describes a call's arguments: the op's uid, then for a tensor the number of its form, for anything else
    its value. No tensor is kept alive. with_ids: it returns the ids of the tensors too, and raises an AttributeError if there is
    something else in the place of one."""
    plan = Plan(op)
    parts = [str(plan.uid)]
    for argument, name in zip(plan.arguments, plan.names):
        form = f"({name}._form or form_of({name}))"
        if argument.kind == "Tensor" and not plan.may_be_number(argument):
            parts.append(form)
        elif argument.kind in ("Tensor", "Tensor?"):
            # a pair, to distinguish a number from that of a form
            parts.append(
                f"{form} if {name}.__class__ is Tensor or isinstance({name}, Tensor) else ({name}.__class__, {name})"
            )
        elif argument.type.startswith("Scalar[]"):
            parts.append(f"plain_value({name})")
        elif argument.type.startswith("Scalar") and not argument.type.startswith("ScalarType"):
            # a pair, because 1, 1.0 and True are equal
            parts.append(f"{name} if {name}.__class__ is int else ({name}.__class__, {name})")
        else:
            parts.append(f"{name} if {name}.__class__ in PLAIN else plain_value({name})")
    text = f"({', '.join(parts)},)"
    if with_ids:
        ids = [f"{name}._tensor_id, " for name, place in zip(plan.names, op.tensor_places) if place in "TN"]
        text = f"({text}, ({''.join(ids)}))"
    text = f"lambda {plan.call()}: {text}"
    return eval(text, _dispatch._GLOBALS)  # noqa: S307  (text written above)


def described(op: Op, flat: tuple) -> tuple:
    """A flat description with one item per argument: (shape, strides, type number) for a tensor, else the value."""
    items: list[Any] = []
    arguments = [a for a in op.schema.arguments if not (a.written and a.name.startswith("out"))]
    for argument, value in zip(arguments, flat[1:]):
        tensor = argument.kind in ("Tensor", "Tensor?")
        if tensor and value.__class__ is int:
            items.append(_dispatch.FORMS[value])
        elif tensor or (
            value.__class__ is tuple and argument.type.startswith("Scalar") and value[0].__class__ is type
        ):
            number = value[1].item() if isinstance(value[1], _dispatch.np.generic) else value[1]
            number = bool(number) if number.__class__ is _dispatch._dtype.Flag else number
            items.append(_dispatch.plain_value(number))
        else:
            items.append(value)
    return tuple(items)
