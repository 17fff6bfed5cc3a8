"""`__torch_dispatch__`: overrides of single ops by modes and by argument classes.

The first dispatch mode, or the first tensor whose class defines `__torch_dispatch__`, installs a guard in
each op's `run` (see `_overrides`); before that nothing here costs anything. As in torch, autograd runs above
the handlers: for each op a wrapper is generated that builds the node, calls the handlers below autograd and
attaches the node to the result they return. Composite ops are not shown; the ops that they call are, in the
forward and in the backward pass. A handler gets the `torch.ops` overload and the arguments that torch would
pass, so calls are translated from this library's overloads and bodies to torch's. Wrapper subclasses, at the
end of this file, are tensors with a shape and a dtype but no memory of their own.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

from . import _device, _dispatch, _dtype
from . import _recording_hooks as _hooks
from ._graph import SavedResult, Switches, grad_state, pack_value
from ._overrides import RUN_GUARD, disabled_torch_dispatch, guard, plain_types, process_state, thread_state
from ._tensor_slots import copy_fields

_PACKAGE = __name__.rpartition(".")[0]

# Composite ops here that are single ops in torch.
_DISPATCHED_COMPOSITES = frozenset(
    "new_empty new_zeros new_ones new_full new_empty_strided lift_fresh allclose detach resize_ resize_as_ _safe_softmax dist conv_tbc "
    "multi_margin_loss masked_scatter_backward".split()
)
# Single ops here that are composites in torch: handlers see the ops that their bodies call.
_DECOMPOSED = frozenset(("_pack_padded_sequence_backward", "affine_grid_generator_backward"))
# Overloads that torch does not have, and the overload name that handlers see instead.
_SHOWN_OVERLOADS = {
    "pow_.Tensor_Scalar": "Scalar", "pow_.Tensor_Tensor": "Tensor", "threshold.written": "", "threshold_.written": "",
    "leaky_relu.written": "", "leaky_relu_.written": "", "elu.written": "", "elu_.written": "", "celu.written": "", "celu_.written": "",
}  # fmt: skip
# Ops shown with overload "Scalar" for a number operand: always, and only in calls that torch makes inside
# other ops and nodes (a number that a program passes is converted to a tensor first).
_SCALAR_OPS = frozenset(
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
_INNER_SCALAR_OPS = frozenset(name + end for name in ("add", "sub", "mul", "div") for end in ("", "_"))

# Names of the overload with `out` where it is neither "out" nor "<overload>_out", then the names of its outputs.
_OUT_OVERLOADS: dict[str, tuple[str, ...]] = {
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
    _OUT_OVERLOADS[_name + ".Tensor"] = ("Tensor_out",)


# ---------------------------------------------------------------------------------------------------- on and off


def change_dispatch_users(change: int) -> None:
    """Count one more (1) or one less (-1) mode or tensor with `__torch_dispatch__`; the first installs the guards."""
    if not process_state.ops_guarded:
        process_state.ops_guarded = True
        for op in _dispatch.OPS.values():
            op.bodies["run"] = guard(op.run, RUN_GUARD, dispatch_op, op)
        _dispatch.call_out = _call_out
    process_state.n_dispatch_users += change
    Switches.asked = would_dispatch if process_state.n_dispatch_users else None
    _hooks.route_through_run(change)


def guard_late_op(op: Any) -> None:
    """Guard an op that is declared after the guards were installed."""
    if process_state.ops_guarded:
        op.bodies["run"] = guard(op.run, RUN_GUARD, dispatch_op, op)


def track_tensor(tensor: Any) -> Any:
    """Count a new tensor as a dispatch user while it lives, if its class overrides ops. Returns the tensor."""
    if process_state.has_dispatch_classes and type(tensor).__torch_dispatch__ is not disabled_torch_dispatch:
        change_dispatch_users(1)
        weakref.finalize(tensor, change_dispatch_users, -1).atexit = False
    return tensor


def push_dispatch_mode(mode: Any) -> None:
    """Activate a `__torch_dispatch__` mode on this thread."""
    thread_state.dispatch_modes.append(mode)
    change_dispatch_users(1)


def pop_dispatch_mode() -> Any:
    """Deactivate the innermost `__torch_dispatch__` mode."""
    if not thread_state.dispatch_modes:
        raise RuntimeError("trying to pop from empty mode stack")
    change_dispatch_users(-1)
    return thread_state.dispatch_modes.pop()


class no_dispatch:
    """Context manager: ops run without `__torch_dispatch__` handlers."""

    def __enter__(self) -> None:
        self._before, thread_state.dispatch_disabled = thread_state.dispatch_disabled, True

    def __exit__(self, *exception: object) -> None:
        thread_state.dispatch_disabled = self._before


# ---------------------------------------------------------------------------------------------------- calling handlers


def _overriding_classes(arguments: Any) -> list[type]:
    """The arguments' classes with overrides, in calling order: left to right, a class before its bases."""
    classes: list[type] = []
    for tensor in _dispatch._tensors_in(arguments):
        cls = type(tensor)
        if (
            cls not in plain_types
            and cls not in classes
            and cls.__torch_dispatch__ is not disabled_torch_dispatch
        ):
            index = next((i for i, earlier in enumerate(classes) if issubclass(cls, earlier)), len(classes))
            classes.insert(index, cls)
    return classes


def would_dispatch(*tensors: Any) -> bool:
    """Whether an op on these tensors would go to a handler now."""
    if thread_state.dispatch_disabled:
        return False
    return bool(thread_state.dispatch_modes) or (
        process_state.has_dispatch_classes and bool(_overriding_classes(tensors))
    )


def dispatch_op(op: Any, original: Any, arguments: tuple) -> Any:
    """Run an op through its handlers; `original`, the unguarded `run`, where there are none or it is a composite."""
    state = thread_state
    if state.dispatch_disabled:
        return original(*arguments)
    if not state.dispatch_modes and not (
        process_state.has_dispatch_classes and _overriding_classes(arguments)
    ):
        return original(*arguments)
    replacement = _REPLACEMENTS.get(op.name)
    if replacement is not None:
        return replacement(*arguments)
    if op.body == "composite":
        single = op.name in _DISPATCHED_COMPOSITES or op.name.startswith("_foreach_")
        if not single or (op.name != "detach" and _needs_grad(arguments) and not op.name.startswith("new_")):
            return original(*arguments)
        if op.name == "detach":
            return _detach(op, arguments)
        return call_handlers(op, arguments)
    if op.body == "tensors" and op.full_name in _DECOMPOSED:
        return op.kernel(*arguments)
    wrapper = _AUTOGRAD_WRAPPERS.get(op.uid)
    if wrapper is None:
        wrapper = _AUTOGRAD_WRAPPERS[op.uid] = _build_autograd_wrapper(op)
    return wrapper(*arguments)


def _selecting_reduction_backward(grad: Any, dim: int, indices: Any, sizes: Any, keepdim: bool) -> Any:
    """Gradient of ops that select elements along a dimension: `max`, `sort`, `topk`."""
    if not keepdim and sizes:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return grad.new_zeros(sizes).scatter(dim, indices, grad)


# Ops that torch replaces by another one under `__torch_dispatch__`: out of place instead of in place.
_REPLACEMENTS: dict[str, Any] = {
    "_reshape_alias": lambda self, size, stride: _dispatch.record(_dispatch.OPS["view"], self, size),
    "_index_put_impl_": lambda self, indices, values, accumulate, unsafe: _dispatch.record(
        _dispatch.OPS["index_put"], self, indices, values, accumulate
    ),
    "value_selecting_reduction_backward": _selecting_reduction_backward,
}


def _needs_grad(arguments: tuple) -> bool:
    return grad_state.enabled and any(t._rg for t in _dispatch._tensors_in(arguments))


def call_handlers(op: Any, arguments: tuple, out: Any = None) -> Any:
    """Call the innermost mode's handler, then those of the arguments' classes, with autograd off."""
    modes, grad = thread_state.dispatch_modes, grad_state
    classes = (
        tuple(_overriding_classes((*arguments, out) if out is not None else arguments))
        if process_state.has_dispatch_classes
        else ()
    )
    func, args, kwargs = _shown_call(op, arguments, out)
    handled = func, classes, args, kwargs
    before = grad.enabled, grad.below
    grad.below = 2 if grad.enabled or grad.below == 2 else 1
    grad.enabled = False
    mode = None
    try:
        if modes:
            mode = modes.pop()
            try:
                handler = mode.__torch_dispatch__, "PythonDispatchMode"
                result = _dispatch.in_range(_handler_range, _call_handler, handler, handled)
            finally:
                modes.append(mode)
            if result is not NotImplemented:
                return result
        for cls in classes:
            handler = cls.__torch_dispatch__, "PythonSubclass"
            result = _dispatch.in_range(_handler_range, _call_handler, handler, handled)
            if result is not NotImplemented:
                return result
    finally:
        grad.enabled, grad.below = before
    lines = [f"  - tensor subclass {cls!r}\n" for cls in classes]
    if mode is not None:
        lines.insert(0, f"  - mode object {mode!r}\n")
    raise TypeError(
        f"Multiple dispatch failed for 'torch._ops.{func}'; all __torch_dispatch__ handlers returned NotImplemented:\n\n{''.join(lines)}\n"
        "For more information, try re-running with TORCH_LOGS=not_implemented"
    )


def _call_handler(handler: tuple[Any, str], arguments: tuple) -> Any:
    """Call one handler: (the function, the name of its event in a profile)."""
    return _dispatch.call_user(handler[0], *arguments)


def _handler_range(handler: tuple[Any, str], arguments: tuple) -> tuple:
    return handler[1], _dispatch.FUNCTION_SCOPE, -1, 0, ()


def _detach(op: Any, arguments: tuple) -> Any:
    """`detach`: torch records a second event of the same name around the handler."""
    if grad_state.below:
        return call_handlers(op, arguments)
    return _dispatch.in_range(_detach_range, call_handlers, op, arguments)


def _detach_range(op: Any, arguments: tuple) -> tuple:
    return "detach", _dispatch.FUNCTION_SCOPE, -1, 0, ()


def detach_for_saving(tensor: Any) -> Any:
    """A detached alias for autograd to save; handlers see `detach`."""
    if not would_dispatch(tensor):
        return _dispatch.OPS["detach"].kernel(tensor)
    func = overload(_dispatch.OPS["detach"])
    modes, before, grad_state.below = thread_state.dispatch_modes, grad_state.below, 0
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


def data_attribute(tensor: Any) -> Any:
    """`tensor.data`: `detach` through the handlers, with a version counter of its own."""
    from ._tensor import _alias_for

    data = call_handlers(_dispatch.OPS["detach"], (tensor,))
    if isinstance(data, _dispatch.Tensor) and not data._array_missing:
        data._storage = _alias_for(data, data)
    return data


# ---------------------------------------------------------------------------------------------------- autograd above the handlers


_AUTOGRAD_WRAPPERS: dict[int, Any] = {}  # by the op's uid


def _build_autograd_wrapper(op: Any) -> Any:
    """Generate a function of an op's arguments that calls the handlers and records the op's node for the result."""
    from . import _codegen as c

    if not hasattr(op, "source"):
        op.build()
    plan, w = c.Plan(op), c.Writer()
    w(0, f"def wrapper({plan.call()}):")
    for argument, name in zip(plan.arguments, plan.names):
        if argument.kind == "ints":
            w(1, f"if {name}.__class__ is not tuple: {name} = ints({name}, {argument.length})")
        if argument.kind == "Tensor" and plan.may_be_number(argument):
            w(1, f"t_{name} = isinstance({name}, Tensor)")
    arguments = f"({plan.call()},)"
    if op.inplace_of is not None:
        _write_inplace(c, plan, w, arguments)
    elif op.nondifferentiable or not plan.returns_tensors or not plan.has_node:
        if not op.nondifferentiable and plan.returns_tensors and plan.tensors:
            requires = " or ".join(plan.requires(a) for a in plan.tensors)
            w(1, f"if ({requires}) and grad_state.enabled: no_derivative(OP)")
        call = f"call_handlers(OP, {arguments})"
        w(1, f"return link_views(OP, {call}, {arguments})" if op.is_view else f"return {call}")
    else:
        _write_out_of_place(c, plan, w, arguments)
    helpers = {
        "OP": op, "call_handlers": call_handlers, "link_views": _link_views, "save_output": _save_output,
        "count_write": _count_write, "pack_results": _pack_results,
    }  # fmt: skip
    source = [f"def make({', '.join(helpers)}):", *("    " + line for line in w.lines), "    return wrapper"]
    namespace: dict[str, Any] = {}
    code = compile("\n".join(source), f"<op autograd {op.full_name}>", "exec")
    exec(code, _dispatch._GLOBALS, namespace)  # noqa: S102  (text written above)
    return namespace["make"](**helpers)


def _node_lines(c: Any, plan: Any, depth: int) -> tuple[list[str], list[str], list[str]]:
    """Source lines that build a node, in three groups: before the handlers run, once the result is known, and
    those that save results, which run after the node was attached to them.
    """
    w = c.Writer()
    c.write_node(w, plan, depth, True)
    saves = [line.replace("save_result(", "save_output(node, ") for line in w.lines if "save_result(" in line]
    others = [line for line in w.lines if "save_result(" not in line]
    result_attributes = ("node.shapes", "node.dtypes", "node.n_outputs")
    return (
        [line for line in others if not any(name in line for name in result_attributes)],
        [line for line in others if any(name in line for name in result_attributes)],
        saves,
    )


def _write_out_of_place(c: Any, plan: Any, w: Any, arguments: str) -> None:
    """Write the wrapper's body for an op that returns new tensors or views; `arguments` is source text."""
    requires = " or ".join(plan.requires(a) for a in plan.differentiable)
    before, after, saves = _node_lines(c, plan, 1)
    w(1, f"needs = ({requires}) and grad_state.enabled")
    w(1, "if needs:")
    w.lines += ["    " + line for line in before]
    w(2, "if Switches.saved_hooks: pack_saved(node)")
    w(1, f"t = call_handlers(OP, {arguments})")
    if plan.op.is_view:
        w(1, f"link_views(OP, t, {arguments})")
    result_types = "(tuple, list)" if plan.multiple or plan.listed else "Tensor"
    w(1, f"if not needs or not isinstance(t, {result_types}): return t")
    w(1, "result = t")
    c.write_unwrap(w, plan, 1)
    if not (plan.multiple or plan.listed):
        w(1, "if r.dtype.num in INTEGRAL_NUMS: return t")
    w.lines += after
    c.write_attach(w, plan, 1)
    w.lines += saves
    if saves:
        names = tuple(name for name in plan.saved if plan.out_number(name) is not None)
        w(1, f"if Switches.saved_hooks: pack_results(node, {names!r})")
    w(1, "return result")


def _write_inplace(c: Any, plan: Any, w: Any, arguments: str) -> None:
    """Write the wrapper's body for an op that writes to its first argument; `arguments` is source text."""
    w(1, "grads = None")
    if plan.has_node:
        requires = [plan.requires(a) for a in plan.differentiable]
        if plan.arguments[0] not in plan.differentiable:
            requires.insert(0, "input._rg")
        w(1, f"if ({' or '.join(requires)}) and grad_state.enabled:")
        w(2, "check_inplace(input)", "grads = True")
        w(2, f"edges = ({', '.join(plan.edge(a) for a in plan.differentiable)},)")
        if "self" in plan.saved:
            needed = [plan.requires(a) for a in plan.differentiable if a.name in plan.saved["self"]]
            w(2, f"kept = keep_before_write(input) if {' or '.join(needed) or 'True'} else None")
    else:
        w(1, "if input._rg and grad_state.enabled: check_inplace(input)")
    w(1, "version = version_of(input)")
    w(1, f"call_handlers(OP, {arguments})", "count_write(input, version)")
    if plan.has_node:
        w(1, "if grads:")
        w(2, "r = input._array")
        before, after, _ = _node_lines(c, plan, 2)
        w.lines += before + after
        w(2, "rebase(input, node)")
        for name in plan.saved:
            if plan.out_number(name) is not None:
                w(2, f"node.s_{name} = save_output(node, input)")
        w(2, "if Switches.saved_hooks: pack_saved(node)")
    w(1, "return input")


def _save_output(node: Any, tensor: Any, number: int = 0) -> SavedResult:
    """An output in the form in which its own node saves it."""
    if Switches.saved_hooks and grad_state.saved_hooks and not tensor._array_missing:
        return _dispatch.save_result(tensor, number)  # the pack hook gets the tensor itself
    if number < node.n_outputs and tensor._array.dtype.num not in _dtype.INTEGRAL_NUMS:
        alias = detach_for_saving(tensor)
    else:  # not differentiable: there is no history to detach from
        alias = tensor
        _dispatch.storage_of(tensor)
    return SavedResult(alias, _dispatch.version_of(alias), number)


def _pack_results(node: Any, names: tuple[str, ...]) -> None:
    """Pass the results that a node saved to the innermost pack hook."""
    hooks = grad_state.saved_hooks
    for name in names if hooks else ():
        setattr(node, "s_" + name, pack_value(node, getattr(node, "s_" + name), *hooks[-1]))


def _count_write(tensor: Any, version: int) -> None:
    """Increase a tensor's version after a write, unless an op that the handler ran has done so."""
    if _dispatch.version_of(tensor) == version:
        _dispatch.storage_of(tensor)._version += 1


def _link_views(op: Any, result: Any, arguments: tuple) -> Any:
    """Mark the views that a handler returned as views of the op's first argument. Returns the result."""
    is_sequence, base = isinstance(result, (tuple, list)), arguments[0]
    for index, view in enumerate(result if is_sequence else (result,)):
        if not isinstance(view, _dispatch.Tensor) or view is base:
            continue
        if view._base is None and view._array_missing:
            view._storage = _dispatch.storage_of(base)
            view._base = base if base._base is None else base._base
            view._seen_version = _dispatch.version_of(base)
            _dispatch.add_view(view._base, view)
            if not view._base._rg and not view._rg:
                view._rg = view._base._views_rg
            view._replay = (
                *(base._replay or ()),
                (op, arguments[1:], index if is_sequence else None),
            )
            if is_sequence:
                view._multi_view = True
        if base._rg and not grad_state.enabled and view._base is not None:
            _dispatch.mark_view(view)
    return result


def replay_view(steps: tuple, base: Any) -> Any:
    """Apply recorded view ops to another base: for wrapper subclasses, where `as_strided` is not possible."""
    for op, arguments, index in steps:
        base = _dispatch.record(op, base, *arguments)
        base = base if index is None else base[index]
    return base


# ------------------------------------------------------------------------- the overload and arguments that handlers get


def overload(op: Any, name: str | None = None) -> Any:
    """The `torch.ops` overload of an op, or its overload called `name`."""
    from . import ops

    packet = getattr(getattr(ops, op.namespace), op.name)
    return packet._get_overload(op, (op.overload or "default") if name is None else name or "default")


def _shown_call(op: Any, arguments: tuple, out: Any = None) -> tuple[Any, tuple, dict[str, Any]]:
    """The overload, positional and keyword arguments that torch passes to handlers for a call."""
    args, kwargs = _split_arguments(op, arguments)
    if out is not None:
        out_name, outs = out_names(op)
        values = out if isinstance(out, (tuple, list)) else (out,)
        return overload(op, out_name), args, {**kwargs, **dict(zip(outs, values))}
    caller, node = _calling_context()
    order = [a.name for a in op.schema.arguments]
    if "pin_memory" in order and "dtype" in order:
        index_backward = op.name == "new_zeros" and node is not None and node.op.name == "index"
        kwargs = _factory_options(op, args, kwargs, "engine" if index_backward else caller)
    name = _SHOWN_OVERLOADS.get(op.full_name)
    if (
        op.overload == "Tensor"
        and len(args) > 1
        and not isinstance(args[1], _dispatch.Tensor)
        and (
            op.name in _SCALAR_OPS
            or (caller and op.name in _INNER_SCALAR_OPS and not _is_operand(node, args[1]))
        )
    ):
        name = "Scalar"
    return overload(op, name), args, dict(sorted(kwargs.items(), key=lambda item: order.index(item[0])))


def _is_operand(node: Any, number: Any) -> bool:
    """Whether a number is the forward op's own operand, which torch converted to a tensor there."""
    return node is not None and getattr(node, "s_other", None) is number


def out_names(op: Any) -> tuple[str, tuple[str, ...]]:
    """The name of the overload that writes to `out`, and the names of its output arguments."""
    names = _OUT_OVERLOADS.get(op.full_name)
    if names is None:
        names = ("out",) if op.overload in ("", "Tensor") else (op.overload + "_out",)
    n_outputs = len(op.schema.returns)
    outs = names[1:] or (("out",) if n_outputs == 1 else tuple(f"out{i}" for i in range(n_outputs)))
    return names[0], outs


def _factory_options(op: Any, args: tuple, kwargs: dict[str, Any], caller: str) -> dict[str, Any]:
    """Keyword arguments of an op that creates tensors: torch adds `device` and `pin_memory` to a program's
    calls, and dtype, layout and device to its own calls.
    """
    kwargs = dict(kwargs)
    from_tensor = bool(args) and isinstance(args[0], _dispatch.Tensor)
    if caller:
        if caller == "engine" and from_tensor:
            kwargs.setdefault("dtype", args[0].dtype)
        if "dtype" in kwargs and (caller == "engine" or op.name != "_to_copy"):
            kwargs.setdefault("layout", _dtype.strided)
            kwargs.setdefault("device", _device.CPU)
        return kwargs
    if op.name in ("arange", "randint") and kwargs.get("dtype") is _dtype.int64:
        del kwargs["dtype"]  # the default of these two; the program did not pass it
    if not from_tensor:
        kwargs.setdefault("device", _device.CPU)
    if op.name != "_to_copy":
        kwargs.setdefault("pin_memory", False)
    return kwargs


_DISPATCH_MODULES = frozenset(
    _PACKAGE + "." + name for name in ("_dispatch", "_overrides", "_torch_dispatch", "_recording_hooks")
)
_OP_BODY_MODULES = (_PACKAGE + "._ops.", _PACKAGE + ".autograd.inplace")
_SKIPPED_MODULES = (
    *_OP_BODY_MODULES,
    _PACKAGE + "._overrides",
    _PACKAGE + "._recording_hooks",
    _PACKAGE + ".profiler.",
    __name__,
)
_ENGINE_MODULE = _PACKAGE + ".autograd.engine"


def _calling_context() -> tuple[str, Any]:
    """What calls the op, if it is not the program: "body" of another op, "node", or the backward pass's "engine".

    With it the node, where that is known. Walks up the frames, over those of the dispatcher.
    """
    frame: Any = sys._getframe(3)
    while frame is not None and (
        frame.f_globals.get("__name__") in _DISPATCH_MODULES or _is_profiler_frame(frame)
    ):
        frame = frame.f_back
    if frame is None or not frame.f_globals.get("__name__", "").startswith(
        (*_OP_BODY_MODULES, _ENGINE_MODULE)
    ):
        return "", None
    if frame.f_globals["__name__"] == _ENGINE_MODULE:
        return "engine", None
    in_node = False
    while frame is not None and (
        frame.f_code.co_filename == "<op guard>"
        or frame.f_globals.get("__name__", "").startswith(_SKIPPED_MODULES)
    ):
        in_node = in_node or frame.f_globals.get("__name__") == _OP_BODY_MODULES[1]
        frame = frame.f_back
    if frame is None:
        return "", None
    if frame.f_globals.get("__name__") == _ENGINE_MODULE:
        return "node" if in_node else "engine", None
    if not frame.f_code.co_filename.startswith("<op "):
        return "", None
    return ("node", frame.f_locals.get("node")) if frame.f_code.co_name == "apply" else ("body", None)


def _is_profiler_frame(frame: Any) -> bool:
    return frame.f_globals.get("__name__", "").startswith(_PACKAGE + ".profiler.")


def _split_arguments(op: Any, arguments: tuple) -> tuple[tuple, dict[str, Any]]:
    """Arguments in schema order as args and kwargs: defaults left out, keyword-only ones by name."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    n_args = 0
    for argument, value in zip(op.schema.arguments, arguments):
        default = not argument.required and _equals_default(value, argument)
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
                n_args = len(args)
    return tuple(args[:n_args]), kwargs


def _equals_default(value: Any, argument: Any) -> bool:
    default = argument.default
    if value is None or default is None or isinstance(value, _dispatch.Tensor):
        return value is default
    if argument.kind == "ints":
        return _dispatch.ints(value, argument.length) == _dispatch.ints(default, argument.length)
    return value.__class__ is default.__class__ and value == default


_original_call_out = _dispatch.call_out


def _call_out(op: Any, out: Any, arguments: tuple) -> Any:
    """Replaces `_dispatch.call_out`: handlers see a call with `out=` as the overload that writes to it."""
    outs = out if isinstance(out, (tuple, list)) else (out,)
    tensors = all(isinstance(t, _dispatch.Tensor) for t in outs)
    if not tensors or not would_dispatch(*outs, *_dispatch._tensors_in(arguments)) or op.body == "composite":
        return _original_call_out(op, out, arguments)
    if grad_state.enabled and any(t._rg for t in (*_dispatch._tensors_in(arguments), *outs)):
        return _original_call_out(op, out, arguments)  # raises: `out=` does not support gradients
    return call_handlers(op, arguments, out)


# ---------------------------------------------------------------------------------------------------- wrapper subclasses


def make_wrapper_subclass(
    cls: type, size: Any, strides: Any, dtype: Any, device: Any, requires_grad: bool
) -> Any:
    """A tensor of class `cls` with a shape, a dtype and a device but no memory; the class keeps the elements."""
    from ._meta import MetaArray
    from .storage import _MetaStorage

    if cls.__torch_dispatch__ is disabled_torch_dispatch:  # type: ignore[attr-defined]
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    dtype = _dtype.Default.dtype if dtype is None else dtype
    byte_strides = None if strides is None else tuple(int(s) * dtype.itemsize for s in strides)
    tensor = _dispatch.new_tensor(cls)
    tensor._array_missing = True
    tensor._array = tensor._array_description = MetaArray(tuple(size), dtype._np, byte_strides)
    tensor._storage = _MetaStorage._sized(tensor._array_description.size * dtype.itemsize)
    tensor._shown_device = _device.CPU if device is None else _device.device(device)
    if requires_grad:
        tensor._rg = True
    return track_tensor(tensor)


def shallow_copy(tensor: Any) -> Any:
    """Another tensor of the same class that shares the wrapped objects, without history."""
    copy = _dispatch.new_tensor(type(tensor))
    copy_fields(tensor, copy)
    copy.__dict__.update(tensor.__dict__)
    copy._grad_fn, copy._output_nr, copy._grad, copy._accumulator = None, 0, None, None
    copy._views_rg = copy._views = copy._view_link = None
    return track_tensor(copy)


def deep_copy(tensor: Any, memo: dict) -> Any:
    """A deep copy of a wrapper subclass: its class makes the copy, through `clone`."""
    import copy

    enabled, grad_state.enabled = grad_state.enabled, False
    try:
        clone = tensor.clone()
    finally:
        grad_state.enabled = enabled
    if type(clone) is not type(tensor):
        raise RuntimeError(
            "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types that implement clone() and "
            "for which cloning returns another instance of the same subclass. You should either properly implement clone() for your "
            "subclass or override __deepcopy__() if it is intended behavior for clone() to return an instance of a different type."
        )
    memo[id(tensor)] = clone
    if tensor._rg:
        clone.requires_grad_()
    if tensor._grad is not None:
        clone._grad = copy.deepcopy(tensor._grad, memo)
    return clone
