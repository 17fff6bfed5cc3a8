"""`__torch_dispatch__`: an op's call in, the answer of a mode or of its arguments' class out.

Gradients are recorded above the answers, as in torch: whoever is asked sees the ops of the forward pass and of the backward pass, and
runs below autograd. Ops made of other ops are taken apart first. Nothing of this costs anything before the first mode or tensor of
such a class; what a class wraps is its own affair.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

from . import _device, _dispatch, _dtype, _hooks
from ._graph import SavedResult, Switches, grad_state, pack_value
from ._overrides import _RUN_GUARD, disabled_dispatch, guard, here, process, safe

_PACKAGE = __name__.rpartition(".")[0]

# Ops whose body here is made of other ops, while torch knows them as one.
_WHOLE = frozenset(
    "new_empty new_zeros new_ones new_full new_empty_strided lift_fresh allclose detach resize_ resize_as_ _safe_softmax dist conv_tbc "
    "multi_margin_loss masked_scatter_backward".split()
)
# Ops that are one here, and in torch made of others: their body for recordings is run, whose ops are asked about.
_APART = frozenset("isfinite argsort _pack_padded_sequence_backward affine_grid_generator_backward".split())
# Overloads that torch does not have: what it has in their place.
_SHOWN = {
    "pow_.Tensor_Scalar": "Scalar", "pow_.Tensor_Tensor": "Tensor", "sum.sized": "dim_IntList", "sum.of_batch": "dim_IntList",
    "as_strided.ready": "", "resize_.shown": "", "resize_as_.shown": "", "threshold.written": "", "threshold_.written": "",
    "leaky_relu.written": "", "leaky_relu_.written": "", "elu.written": "", "elu_.written": "", "celu.written": "", "celu_.written": "",
}  # fmt: skip
# Number operands: overloads for them always, and those for calls that torch makes itself (people's numbers become tensors).
_SCALAR = frozenset(
    name + end
    for name in (
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "remainder",
        "fmod",
    )
    for end in ("", "_")
)
_SCALAR_INSIDE = frozenset(name + end for name in ("add", "sub", "mul", "div") for end in ("", "_"))

# Overloads with `out`, where it is not "out" or "<overload>_out": the overload, the names of its outputs.
_OUT: dict[str, tuple[str, ...]] = {
    "sum.dim_IntList": ("IntList_out",), "mean": ("dtype_out",), "mean.dim": ("out",), "prod.dim_int": ("int_out",),
    "max": ("unary_out",), "min": ("unary_out",), "max.dim": ("dim_max", "max", "max_values"),
    "min.dim": ("dim_min", "min", "min_indices"), "max.other": ("out",), "min.other": ("out",), "aminmax": ("out", "min", "max"),
    "all": ("all_out",), "any": ("all_out",), "all.dim": ("out",), "any.dim": ("out",), "arange.start_step": ("start_out",),
    "empty.memory_format": ("out",), "div.Tensor_mode": ("out_mode",), "xlogy.Tensor": ("OutTensor",), "bernoulli.p": ("float_out",),
    "linalg_inv_ex": ("inverse", "inverse", "info"), "linalg_solve_ex": ("out", "result", "info"),
    "linalg_cholesky_ex": ("L", "L", "info"), "linalg_qr": ("out", "Q", "R"), "linalg_eig": ("out", "eigenvalues", "eigenvectors"),
    "linalg_svd": ("U", "U", "S", "Vh"), "linalg_lu_factor_ex": ("out", "LU", "pivots", "info"),
    "frexp.Tensor": ("Tensor_out", "mantissa", "exponent"), "sort.stable": ("values_stable", "values", "indices"),
    "sort": ("values", "values", "indices"), "topk": ("values", "values", "indices"), "kthvalue": ("values", "values", "indices"),
    "median.dim": ("dim_values", "values", "indices"), "nanmedian.dim": ("dim_values", "values", "indices"),
    "mode": ("values", "values", "indices"), "cummax": ("out", "values", "indices"), "cummin": ("out", "values", "indices"),
}  # fmt: skip
for _name in (
    "rsub remainder fmod lerp eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift fill bernoulli "
    "index masked_fill clamp searchsorted repeat_interleave"
).split():
    _OUT[_name + ".Tensor"] = ("Tensor_out",)


# ---------------------------------------------------------------------------------------------------- on and off


def route(change: int) -> None:
    """Somebody more, or less, wants to be asked about every op."""
    if not process.routed:
        process.routed = True
        for op in _dispatch.OPS.values():
            op.bodies["run"] = guard(op.run, _RUN_GUARD, dispatched, op)
        _dispatch.see_through_probes()
        _dispatch.call_out = _call_out
    process.dispatch += change
    Switches.asked = asked if process.dispatch else None
    _hooks.route_through_run(change)


def joined_late(op: Any) -> None:
    """An op that is declared while others are guarded already."""
    if process.routed:
        op.bodies["run"] = guard(op.run, _RUN_GUARD, dispatched, op)


def born(tensor: Any) -> Any:
    """A tensor of some class has been made: while it lives, ops ask its class, if that wants to be asked. Gives it back."""
    if process.dispatch_classes and type(tensor).__torch_dispatch__ is not disabled_dispatch:
        route(1)
        weakref.finalize(tensor, route, -1).atexit = False
    return tensor


def push_dispatch_mode(mode: Any) -> None:
    """A mode for ops is on, on this thread."""
    here.dispatch_modes.append(mode)
    route(1)


def pop_dispatch_mode() -> Any:
    """The innermost mode for ops is off."""
    if not here.dispatch_modes:
        raise RuntimeError("trying to pop from empty mode stack")
    route(-1)
    return here.dispatch_modes.pop()


class unasked:
    """A block in which neither modes nor classes are asked about ops."""

    def __enter__(self) -> None:
        self._before, here.dispatch_off = here.dispatch_off, True

    def __exit__(self, *exception: object) -> None:
        here.dispatch_off = self._before


# ---------------------------------------------------------------------------------------------------- who is asked


def _classes(arguments: Any) -> list[type]:
    """The classes of arguments that answer, in the order in which they are asked: from left to right, a class before its bases."""
    kinds: list[type] = []
    for tensor in _dispatch._tensors_in(arguments):
        cls = type(tensor)
        if cls not in safe and cls not in kinds and cls.__torch_dispatch__ is not disabled_dispatch:
            place = next((i for i, kind in enumerate(kinds) if issubclass(cls, kind)), len(kinds))
            kinds.insert(place, cls)
    return kinds


def asked(*tensors: Any) -> bool:
    """Whether somebody would be asked about an op on these tensors, now."""
    if here.dispatch_off:
        return False
    return bool(here.dispatch_modes) or (process.dispatch_classes and bool(_classes(tensors)))


def dispatched(op: Any, plain: Any, arguments: tuple) -> Any:
    """Run an op: the innermost mode answers, or else the arguments' classes, or else the op itself."""
    state = here
    if state.dispatch_off:
        return plain(*arguments)
    if not state.dispatch_modes and not (process.dispatch_classes and _classes(arguments)):
        return plain(*arguments)
    if op.body == "composite":
        whole = op.name in _WHOLE or op.name.startswith("_foreach_")
        if not whole or (op.name != "detach" and _needs_grad(arguments) and not op.name.startswith("new_")):
            return plain(*arguments)
        if op.name == "detach":
            return _detach(op, arguments)
        return ask(op, arguments)
    if op.inner is not None and op.full_name in _APART:
        return op.inner(*arguments)
    instead = _INSTEAD.get(op.name)
    if instead is not None:
        return instead(*arguments)
    above = _ABOVE.get(op.uid)
    if above is None:
        above = _ABOVE[op.uid] = _write_above(op)
    return above(*arguments)


def _one_of_many(grad: Any, dim: int, indices: Any, sizes: Any, keepdim: bool) -> Any:
    """The gradient of what `max`, `sort` and the like have chosen."""
    if not keepdim and sizes:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return grad.new_zeros(sizes).scatter(dim, indices, grad)


# What torch does in the place of an op where somebody is asked: it writes to no memory of its own.
_INSTEAD: dict[str, Any] = {
    "_reshape_alias": lambda self, size, stride: _dispatch.record(_dispatch.OPS["view"], self, size),
    "_index_put_impl_": lambda self, indices, values, accumulate, unsafe: _dispatch.record(
        _dispatch.OPS["index_put"], self, indices, values, accumulate
    ),
    "value_selecting_reduction_backward": _one_of_many,
}


def _needs_grad(arguments: tuple) -> bool:
    return grad_state.enabled and any(t._rg for t in _dispatch._tensors_in(arguments))


def ask(op: Any, arguments: tuple, out: Any = None) -> Any:
    """The answer to an op's call: below autograd, the innermost mode first."""
    modes, grad = here.dispatch_modes, grad_state
    kinds = (
        tuple(_classes((*arguments, out) if out is not None else arguments))
        if process.dispatch_classes
        else ()
    )
    func, args, kwargs = _as_given(op, arguments, out)
    before = grad.enabled, grad.below
    grad.below = 2 if grad.enabled or grad.below == 2 else 1
    grad.enabled = False
    mode = None
    try:
        if modes:
            mode = modes.pop()
            try:
                result = _answer(mode.__torch_dispatch__, "PythonDispatchMode", func, kinds, args, kwargs)
            finally:
                modes.append(mode)
            if result is not NotImplemented:
                return result
        for cls in kinds:
            result = _answer(cls.__torch_dispatch__, "PythonSubclass", func, kinds, args, kwargs)
            if result is not NotImplemented:
                return result
    finally:
        grad.enabled, grad.below = before
    lines = [f"  - tensor subclass {kind!r}\n" for kind in kinds]
    if mode is not None:
        lines.insert(0, f"  - mode object {mode!r}\n")
    raise TypeError(
        f"Multiple dispatch failed for 'torch._ops.{func}'; all __torch_dispatch__ handlers returned NotImplemented:\n\n{''.join(lines)}\n"
        "For more information, try re-running with TORCH_LOGS=not_implemented"
    )


def _answer(handler: Any, name: str, func: Any, kinds: tuple, args: tuple, kwargs: dict) -> Any:
    ranges = _dispatch.ranges
    if ranges is None:
        return handler(func, kinds, args, kwargs)
    token = ranges.enter(name, 0, -1, 0, ())
    calls = _dispatch.calls
    try:
        if calls is not None:
            return calls.seen(handler, func, kinds, args, kwargs)
        return handler(func, kinds, args, kwargs)
    finally:
        ranges.exit(token)


def _detach(op: Any, arguments: tuple) -> Any:
    """`detach`: a profile shows a second event of the same name above the answer."""
    ranges = _dispatch.ranges
    token = None if ranges is None or grad_state.below else ranges.enter("detach", 0, -1, 0, ())
    try:
        return ask(op, arguments)
    finally:
        if token is not None:
            ranges.exit(token)


def detached(tensor: Any) -> Any:
    """A tensor without its history, as autograd keeps one: whoever is asked sees `detach`."""
    if not asked(tensor):
        return _dispatch.OPS["detach"].kernel(tensor)
    func = overload(_dispatch.OPS["detach"])
    modes, before, grad_state.below = here.dispatch_modes, grad_state.below, 0
    try:
        if not modes:
            return type(tensor).__torch_dispatch__(func, (type(tensor),), (tensor,), {})
        mode = modes.pop()
        try:
            return mode.__torch_dispatch__(func, (type(tensor),), (tensor,), {})
        finally:
            modes.append(mode)
    finally:
        grad_state.below = before


def data_of(tensor: Any) -> Any:
    """`tensor.data`."""
    made = ask(_dispatch.OPS["detach"], (tensor,))
    if isinstance(made, _dispatch.Tensor) and not made._array_missing:
        made._storage = _dispatch.storage_of(made)._alias()
    return made


# ---------------------------------------------------------------------------------------------------- autograd, above the answers


_ABOVE: dict[int, Any] = {}


def _write_above(op: Any) -> Any:
    """A function of an op's arguments: asks, and makes the answer's history as the op itself would."""
    from . import _codegen as c

    if not hasattr(op, "source"):
        op.build()
    plan, w = c.Plan(op), c.Writer()
    w(0, f"def above({plan.call()}):")
    for argument, name in zip(plan.arguments, plan.names):
        if argument.kind == "ints":
            w(1, f"if {name}.__class__ is not tuple: {name} = ints({name}, {argument.length})")
        if argument.kind == "Tensor" and plan.may_be_number(argument):
            w(1, f"t_{name} = isinstance({name}, Tensor)")
    given = f"({plan.call()},)"
    if op.inplace_of is not None:
        _write_inplace(c, plan, w, given)
    elif op.nondifferentiable or not plan.returns_tensors or not plan.has_node:
        if not op.nondifferentiable and plan.returns_tensors and plan.tensors:
            asks = " or ".join(plan.requires(a) for a in plan.tensors)
            w(1, f"if ({asks}) and grad_state.enabled: no_derivative(OP)")
        w(1, f"return returned(OP, ask(OP, {given}), {given})" if op.is_view else f"return ask(OP, {given})")
    else:
        _write_fresh(c, plan, w, given)
    space = _dispatch._GLOBALS
    made = {
        "OP": op, "ask": ask, "returned": _returned, "save_output": _save_output, "written": _written,
        "pack_results": _pack_results,
    }  # fmt: skip
    names = ", ".join(made)
    lines = [f"def make({names}):", *("    " + line for line in w.lines), "    return above"]
    found: dict[str, Any] = {}
    exec(compile("\n".join(lines), f"<op above {op.full_name}>", "exec"), space, found)  # noqa: S102  (text written above)
    return found["make"](**made)


def _history(c: Any, plan: Any, depth: int) -> tuple[list[str], list[str], list[str]]:
    """The lines that make a node and keep what went in, those that need to know the results, and those that save results, which come
    after the results know the node."""
    w = c.Writer()
    c.write_node(w, plan, depth, True)
    saves = [line.replace("save_result(", "save_output(node, ") for line in w.lines if "save_result(" in line]
    rest = [line for line in w.lines if "save_result(" not in line]
    late = ("node.shapes", "node.dtypes", "node.n_outputs")
    return (
        [x for x in rest if not any(t in x for t in late)],
        [x for x in rest if any(t in x for t in late)],
        saves,
    )


def _write_fresh(c: Any, plan: Any, w: Any, given: str) -> None:
    asks = " or ".join(plan.requires(a) for a in plan.differentiable)
    before, after, saves = _history(c, plan, 1)
    w(1, f"needs = ({asks}) and grad_state.enabled")
    w(1, "if needs:")
    w.lines += ["    " + line for line in before]
    w(2, "if Switches.saved_hooks: pack_saved(node)")
    w(1, f"t = ask(OP, {given})")
    if plan.op.is_view:
        w(1, f"returned(OP, t, {given})")
    kind = "not isinstance(t, (tuple, list))" if plan.multiple or plan.listed else "not isinstance(t, Tensor)"
    w(1, f"if not needs or {kind}: return t")
    w(1, "answer = t")
    c.write_unwrap(w, plan, 1)
    if not (plan.multiple or plan.listed):
        w(1, "if r.dtype.num in INTEGRAL_NUMS: return t")
    w.lines += after
    c.write_attach(w, plan, 1)
    w.lines += saves
    if saves:
        names = tuple(name for name in plan.saved if plan.out_number(name) is not None)
        w(1, f"if Switches.saved_hooks: pack_results(node, {names!r})")
    w(1, "return answer")


def _write_inplace(c: Any, plan: Any, w: Any, given: str) -> None:
    w(1, "grads = None")
    if plan.has_node:
        asks = [plan.requires(a) for a in plan.differentiable]
        if plan.arguments[0] not in plan.differentiable:
            asks.insert(0, "input._rg")
        w(1, f"if ({' or '.join(asks)}) and grad_state.enabled:")
        w(2, "check_inplace(input)", "grads = True")
        w(2, f"edges = ({', '.join(plan.edge(a) for a in plan.differentiable)},)")
        if "self" in plan.saved:
            needed = [plan.requires(a) for a in plan.differentiable if a.name in plan.saved["self"]]
            w(2, f"kept = keep_before_write(input) if {' or '.join(needed) or 'True'} else None")
    else:
        w(1, "if input._rg and grad_state.enabled: check_inplace(input)")
    w(1, "version = version_of(input)")
    w(1, f"ask(OP, {given})", "written(input, version)")
    if plan.has_node:
        w(1, "if grads:")
        w(2, "r = input._array")
        before, after, _ = _history(c, plan, 2)
        w.lines += before + after
        w(2, "rebase(input, node)")
        for name in plan.saved:
            if plan.out_number(name) is not None:
                w(2, f"node.s_{name} = save_output(node, input)")
        w(2, "if Switches.saved_hooks: pack_saved(node)")
    w(1, "return input")


def _save_output(node: Any, tensor: Any, number: int = 0) -> SavedResult:
    """An output as its own node keeps it."""
    if Switches.saved_hooks and grad_state.saved_hooks and not tensor._array_missing:
        return _dispatch.save_result(tensor, number)  # the hook sees it
    if number < node.n_outputs and tensor._array.dtype.num not in _dtype.INTEGRAL_NUMS:
        alias = detached(tensor)
    else:  # it has no history to leave behind
        alias = tensor
        _dispatch.storage_of(tensor)
    return SavedResult(alias, _dispatch.version_of(alias), number)


def _pack_results(node: Any, names: tuple[str, ...]) -> None:
    """Send the results that a node keeps through the hooks."""
    hooks = grad_state.saved_hooks
    for name in names if hooks else ():
        setattr(node, "s_" + name, pack_value(node, getattr(node, "s_" + name), *hooks[-1]))


def _written(tensor: Any, version: int) -> None:
    """An op has written to a tensor: counted, unless the op that was run in its place counted it."""
    if _dispatch.version_of(tensor) == version:
        _dispatch.storage_of(tensor)._version += 1


def _returned(op: Any, result: Any, arguments: tuple) -> Any:
    """Views: what was answered belongs to the tensor that it is a view of."""
    several, base = isinstance(result, (tuple, list)), arguments[0]
    for place, view in enumerate(result if several else (result,)):
        if not isinstance(view, _dispatch.Tensor) or view is base:
            continue
        if view._base is None and view._array_missing:
            view._storage = _dispatch.storage_of(base)
            view._base = base if base._base is None else base._base
            view._seen_version = _dispatch.version_of(base)
            view.__dict__["_replay"] = (
                *base.__dict__.get("_replay", ()),
                (op, arguments[1:], place if several else None),
            )
            if several:
                view._multi_view = True
        if base._rg and not grad_state.enabled and view._base is not None:
            _dispatch.mark_view(view)
    return result


def replay(steps: tuple, base: Any) -> Any:
    """The view of `base` that these steps made of another tensor: for classes whose memory nobody can see."""
    for op, arguments, place in steps:
        base = _dispatch.record(op, base, *arguments)
        base = base if place is None else base[place]
    return base


# ---------------------------------------------------------------------------------------------------- what they are shown


def overload(op: Any, name: str | None = None) -> Any:
    """The op, or another overload of it, as `torch.ops` has it."""
    from . import ops

    packet = getattr(getattr(ops, op.namespace), op.name)
    return packet._of(op, (op.overload or "default") if name is None else name or "default")


def _as_given(op: Any, arguments: tuple, out: Any = None) -> tuple[Any, tuple, dict[str, Any]]:
    """The overload, positional and keyword arguments that torch shows for a call."""
    args, kwargs = _given(op, arguments)
    if out is not None:
        name, outs = out_names(op)
        values = out if isinstance(out, (tuple, list)) else (out,)
        return overload(op, name), args, {**kwargs, **dict(zip(outs, values))}
    inside, node = _inside()
    names = {a.name for a in op.schema.arguments}
    if "pin_memory" in names and "dtype" in names:
        of_index = op.name == "new_zeros" and node is not None and node.op.name == "index"
        kwargs = _options(op, args, kwargs, "engine" if of_index else inside)
    chosen = _SHOWN.get(op.full_name)
    if (
        op.overload == "Tensor"
        and len(args) > 1
        and not isinstance(args[1], _dispatch.Tensor)
        and (op.name in _SCALAR or (inside and op.name in _SCALAR_INSIDE and not _is_operand(node, args[1])))
    ):
        chosen = "Scalar"
    order = [a.name for a in op.schema.arguments]
    return overload(op, chosen), args, dict(sorted(kwargs.items(), key=lambda item: order.index(item[0])))


def _is_operand(node: Any, number: Any) -> bool:
    """Whether a number was an operand in the forward pass, where people gave it and it became a tensor."""
    return node is not None and getattr(node, "s_other", None) is number


def out_names(op: Any) -> tuple[str, tuple[str, ...]]:
    """The overload of an op that writes to `out`, and the names of what it writes to."""
    found = _OUT.get(op.full_name)
    if found is None:
        found = ("out",) if op.overload in ("", "Tensor") else (op.overload + "_out",)
    outs = found[1:] or (
        ("out",) if len(op.schema.returns) == 1 else tuple(f"out{i}" for i in range(len(op.schema.returns)))
    )
    return found[0], outs


def _options(op: Any, args: tuple, kwargs: dict[str, Any], inside: str) -> dict[str, Any]:
    """Keyword arguments of an op that makes tensors: people's calls say where, torch's own say everything."""
    kwargs = dict(kwargs)
    alike = bool(args) and isinstance(args[0], _dispatch.Tensor)
    if inside:
        if inside == "engine" and alike:
            kwargs.setdefault("dtype", args[0].dtype)
        if "dtype" in kwargs and (inside == "engine" or op.name != "_to_copy"):
            kwargs.setdefault("layout", _dtype.strided)
            kwargs.setdefault("device", _device.CPU)
        return kwargs
    if op.name in ("arange", "randint") and kwargs.get("dtype") is _dtype.int64:
        del kwargs["dtype"]  # what nobody said
    if not alike:
        kwargs.setdefault("device", _device.CPU)
    if op.name != "_to_copy":
        kwargs.setdefault("pin_memory", False)
    return kwargs


_OWN = frozenset(_PACKAGE + "." + name for name in ("_dispatch", "_overrides", "_torch_dispatch", "_hooks"))
_BODIES = (_PACKAGE + "._ops.", _PACKAGE + ".autograd.inplace")
_PASSED = (*_BODIES, _PACKAGE + "._overrides", _PACKAGE + "._hooks", _PACKAGE + ".profiler.", __name__)
_ENGINE = _PACKAGE + ".autograd.engine"


def _inside() -> tuple[str, Any]:
    """Where torch itself calls the op that is asked about, if it does: the body of another op, a node, or the backward pass's "engine"."""
    frame: Any = sys._getframe(3)
    while frame is not None and (frame.f_globals.get("__name__") in _OWN or _is_recorder(frame)):
        frame = frame.f_back
    if frame is None or not frame.f_globals.get("__name__", "").startswith((*_BODIES, _ENGINE)):
        return "", None
    if frame.f_globals["__name__"] == _ENGINE:
        return "engine", None
    of_node = False
    while frame is not None and (
        frame.f_code.co_filename == "<op guard>" or frame.f_globals.get("__name__", "").startswith(_PASSED)
    ):
        of_node = of_node or frame.f_globals.get("__name__") == _BODIES[1]
        frame = frame.f_back
    if frame is None:
        return "", None
    if frame.f_globals.get("__name__") == _ENGINE:
        return "node" if of_node else "engine", None
    if not frame.f_code.co_filename.startswith("<op "):
        return "", None
    return ("node", frame.f_locals.get("node")) if frame.f_code.co_name == "apply" else ("body", None)


def _is_recorder(frame: Any) -> bool:
    return frame.f_globals.get("__name__", "").startswith(_PACKAGE + ".profiler.")


def _given(op: Any, arguments: tuple) -> tuple[tuple, dict[str, Any]]:
    """Arguments in the order of the schema as a caller would give them: defaults left out, keyword-only ones by name."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    kept = 0
    for argument, value in zip(op.schema.arguments, arguments):
        default = not argument.required and _same(value, argument)
        if argument.kind == "ints" and value is not None:
            value = list(_dispatch.ints(value, argument.length))
        elif value.__class__ is tuple:
            value = list(value)
        if argument.keyword_only:
            if not default:
                kwargs[argument.name] = value
        else:
            args.append(value)
            if not default:
                kept = len(args)
    return tuple(args[:kept]), kwargs


def _same(value: Any, argument: Any) -> bool:
    default = argument.default
    if value is None or default is None or isinstance(value, _dispatch.Tensor):
        return value is default
    if argument.kind == "ints":
        return _dispatch.ints(value, argument.length) == _dispatch.ints(default, argument.length)
    return value.__class__ is default.__class__ and value == default


_plain_out = _dispatch.call_out


def _call_out(op: Any, out: Any, arguments: tuple) -> Any:
    """`out=`: asked about as the overload that writes."""
    if _dispatch.calls is not None:
        _dispatch.calls.reopen()
    outs = out if isinstance(out, (tuple, list)) else (out,)
    tensors = all(isinstance(t, _dispatch.Tensor) for t in outs)
    if not tensors or not asked(*outs, *_dispatch._tensors_in(arguments)) or op.body == "composite":
        return _plain_out(op, out, arguments)
    if grad_state.enabled and any(t._rg for t in (*_dispatch._tensors_in(arguments), *outs)):
        return _plain_out(op, out, arguments)  # an error
    return ask(op, arguments, out)


# ---------------------------------------------------------------------------------------------------- tensors without memory


def wrapper(cls: type, size: Any, strides: Any, dtype: Any, device: Any, requires_grad: bool) -> Any:
    """A tensor of class `cls` that has a shape, a dtype and a device but no memory: what holds the elements is the class's affair."""
    from ._meta import MetaArray
    from .storage import _MetaStorage

    if cls.__torch_dispatch__ is disabled_dispatch:  # type: ignore[attr-defined]
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    wanted = _dtype.Default.dtype if dtype is None else dtype
    steps = None if strides is None else tuple(int(s) * wanted.itemsize for s in strides)
    made: Any = object.__new__(cls)
    made._array_missing = True
    made._array = made._meta = MetaArray(tuple(size), wanted._np, steps)
    made._storage = _MetaStorage._sized(made._meta.size * wanted.itemsize)
    made.__dict__["_shown_device"] = _device.CPU if device is None else _device.device(device)
    if requires_grad:
        made._rg = True
    return born(made)


def twin(tensor: Any) -> Any:
    """Another tensor of the same class that wraps the same things, without history."""
    made = object.__new__(type(tensor))
    made.__dict__.update(tensor.__dict__)
    made._grad_fn, made._output_nr, made._grad, made._accumulator = None, 0, None, None
    return born(made)


def copied(tensor: Any, memo: dict) -> Any:
    """A deep copy of such a tensor: its class makes it, by `clone`."""
    import copy

    enabled, grad_state.enabled = grad_state.enabled, False
    try:
        made = tensor.clone()
    finally:
        grad_state.enabled = enabled
    if type(made) is not type(tensor):
        raise RuntimeError(
            "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types that implement clone() and "
            "for which cloning returns another instance of the same subclass. You should either properly implement clone() for your "
            "subclass or override __deepcopy__() if it is intended behavior for clone() to return an instance of a different type."
        )
    memo[id(tensor)] = made
    if tensor._rg:
        made.requires_grad_()
    if tensor._grad is not None:
        made._grad = copy.deepcopy(tensor._grad, memo)
    return made
