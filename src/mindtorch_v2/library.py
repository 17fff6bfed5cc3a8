"""torch.library: custom ops. A Python function or a schema in, `torch.ops.<namespace>.<name>` out, visible to
profilers and modes.
"""

from __future__ import annotations

import collections.abc
import inspect
import threading
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import mindtorch_v2 as torch

from . import _autocast, _device, _dispatch, _dtype, _schema, _torch_dispatch
from ._graph import Switches, grad_state, storage_of
from ._meta import is_meta
from .ops import OpOverload

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "impl",
    "impl_abstract",
    "infer_schema",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "triton_op",
    "wrap_triton",
]

_COMPOSITE = "CompositeImplicitAutograd"
_KEYS = frozenset(
    "CPU CUDA Meta MPS XPU Autograd AutogradCPU AutogradCUDA CompositeExplicitAutograd CompositeImplicitAutograd BackendSelect "
    "ADInplaceOrView AutocastCPU AutocastCUDA AutocastXPU".split()
)
_DEVICE_KEYS = {
    "cpu": "CPU",
    "cuda": "CUDA",
    "meta": "Meta",
    "mps": "MPS",
    "xpu": "XPU",
    "default": "CompositeExplicitAutograd",
}


class _PendingCalls(threading.local):
    """Per thread: the arguments of custom-op calls whose autograd function is about to run."""

    def __init__(self) -> None:
        self.calls: list[tuple] = []


_pending = _PendingCalls()


# ---------------------------------------------------------------------------------------------------- a custom op


class _CustomOp:
    """A custom op: its schema, implementations and gradient."""

    def __init__(self, namespace: str, schema: str) -> None:
        text = f"{namespace}::{schema}"
        parsed = _schema.parse(text)
        self.qualname = f"{namespace}::{parsed.name}"
        self.full_name = parsed.name + ("." + parsed.overload if parsed.overload else "")
        self.key = f"{namespace}::{self.full_name}"
        self.kernels: dict[str, Callable] = {}
        self.fake: Callable | None = None
        self.backward: Callable | None = None
        self.setup_context: Callable | None = None
        self.opaque = False  # the op has a gradient of its own; the ops it calls are not differentiated
        self.may_alias = True
        self.error_name: Any = self.key  # the name in error messages
        self._function: Any = None
        before = _dispatch.OPS.get(self.full_name)
        self.op = _dispatch.Op(text, self._run, "composite", {"expose": "no"})
        del _dispatch.OPS[self.full_name]  # `_dispatch.OPS` has aten's ops under their bare names
        if before is not None:
            _dispatch.OPS[self.full_name] = before
        _dispatch.OPS[self.key] = self.op
        _torch_dispatch.guard_late_op(self.op)
        arguments = self.op.schema.arguments
        self.tensors = [i for i, a in enumerate(arguments) if a.kind.startswith("Tensor")]
        self.written = [i for i, a in enumerate(arguments) if a.written]
        self.keyword_only = [a.name for a in arguments if a.keyword_only]

    def add_kernel(self, key: str, kernel: Callable) -> None:
        """Use a function for a dispatch key."""
        if key == "Meta":
            self.fake = kernel
        self.kernels[key] = kernel

    @property
    def _returns_list(self) -> bool:
        return self.op.schema.returns[:1] == ("Tensor[]",)

    @property
    def overload(self) -> OpOverload:
        """The op's overload in torch.ops."""
        return _torch_dispatch.overload(self.op)

    def _run(self, *arguments: Any) -> Any:
        tensors = list(_dispatch._tensors_in(arguments))
        self._check(arguments)
        if _autocast.switches.on and "AutocastCPU" in self.kernels:
            return self.kernels["AutocastCPU"](*arguments)
        if self.opaque and grad_state.enabled and any(t._rg for t in tensors) and not self.written:
            return self._with_gradient(arguments)
        return self._run_below_autograd(arguments, tensors)

    def _check(self, arguments: tuple) -> None:
        for place in self.tensors:
            argument, value = self.op.schema.arguments[place], arguments[place]
            if argument.kind == "Tensor" and not isinstance(value, torch.Tensor):
                kind = type(value).__name__
                raise RuntimeError(
                    f"{self.qualname}() Expected a value of type 'Tensor' for argument '{argument.name}' but instead found type '{kind}'.\n"
                    f"Position: {place}\nValue: {value}\nDeclaration: {self.overload._schema}\n"
                    f"Cast error details: Unable to cast {value} to Tensor"
                )

    def _run_below_autograd(self, arguments: tuple, tensors: list) -> Any:
        """Run below autograd: `__torch_dispatch__` handlers first, then the implementation."""
        if _COMPOSITE not in self.kernels and Switches.asked is not None and Switches.asked(*tensors):
            return _torch_dispatch.call_handlers(self.op, arguments)
        kernel = self._kernel(tensors)
        first = len(arguments) - len(self.keyword_only)
        before = grad_state.below
        if self.opaque:
            grad_state.below = before or 1 + grad_state.enabled
        try:
            named = dict(zip(self.keyword_only, arguments[first:]))
            result = _dispatch.call_user(kernel, *arguments[:first], **named)
        finally:
            grad_state.below = before
        for index in self.written:
            if self.opaque and isinstance(arguments[index], torch.Tensor):
                storage_of(arguments[index])._version += 1
        if not self.may_alias:
            self._refuse_aliases(result, tensors)
        return result

    def _kernel(self, tensors: list) -> Callable:
        if any(is_meta(t) for t in tensors):
            if self.fake is None:
                raise RuntimeError(
                    f"There was no fake impl registered for {self.error_name}. This is necessary for torch.compile/export/fx tracing to work. "
                    f"Please use `{self.full_name}.register_fake` to add an fake impl."
                )
            return self.fake
        for key in ("CPU", "CompositeExplicitAutograd", _COMPOSITE, "Autograd", "AutogradCPU"):
            if key in self.kernels:
                return self.kernels[key]
        raise NotImplementedError(
            f"Could not run '{self.key}' with arguments from the 'CPU' backend. This could be because the operator doesn't exist for this "
            f"backend, or was omitted during the selective/custom build process (if using custom build). '{self.key}' is only available for "
            f"these backends: [{', '.join(self.kernels)}]."
        )

    def _refuse_aliases(self, result: Any, tensors: list) -> None:
        storage_ids = {id(storage_of(t)) for t in tensors if not t._array_missing}
        for tensor in _dispatch._tensors_in(result if isinstance(result, (tuple, list)) else (result,)):
            if tensor._array_missing:
                continue
            if id(storage_of(tensor)) in storage_ids:
                raise RuntimeError(
                    f"{self.full_name} (with implementation in {inspect.getmodule(self.kernels.get('CPU'))}): The output of this custom "
                    "operator (1) must not also be an input to this custom operator and (2) may not alias any inputs to this custom operator "
                    "or other returns. The most common way to trigger this error is if we have y = custom_op(x) and y and x are the same "
                    "Tensor. Please instead return a clone of the offending output tensor(s) (e.g. return x.clone()) or refactor the custom "
                    "operator to not return y."
                )
            storage_ids.add(id(storage_of(tensor)))

    # -- gradients

    def _with_gradient(self, arguments: tuple) -> Any:
        if self._function is None:
            self._function = self._make_function()
        _pending.calls.append(arguments)
        result = self._function.apply(*_dispatch._tensors_in(arguments))
        return list(result) if self._returns_list else result

    def _make_function(self) -> Any:
        """The autograd function of this op. It takes only the tensors; the other arguments are passed through
        `_pending`.
        """
        custom = self

        def forward(ctx: Any, *tensors: Any) -> Any:
            arguments = _pending.calls.pop()
            result = custom._run_below_autograd(arguments, list(tensors))
            custom._set_up(ctx, arguments, result)
            ctx._arguments_of_op = tuple([_tensor_mask(value) for value in arguments])
            return tuple(result) if isinstance(result, list) else result

        def backward(ctx: Any, *grads: Any) -> Any:
            if custom.backward is None:
                raise RuntimeError(
                    f"Trying to backward through {custom.overload} but no autograd formula was registered. Please use register_autograd "
                    "to add one."
                )
            input_grads = custom.backward(ctx, *((list(grads),) if custom._returns_list else grads))
            input_grads = input_grads if isinstance(input_grads, tuple) else (input_grads,)
            flat: list[Any] = []
            for value, is_tensor_argument in zip(input_grads, ctx._arguments_of_op):
                if is_tensor_argument is True:
                    flat.append(value)
                elif is_tensor_argument:
                    flat += [
                        v
                        for v, is_tensor in zip(value or [None] * len(is_tensor_argument), is_tensor_argument)
                        if is_tensor
                    ]
            return tuple(flat)

        name = f"GeneratedBackwardFor_{self.op.namespace}_{self.op.name}_{self.op.overload or 'default'}"
        body = {"forward": staticmethod(forward), "backward": staticmethod(backward), "__module__": __name__}
        return type(torch.autograd.Function)(name, (torch.autograd.Function,), body)

    def _set_up(self, ctx: Any, arguments: tuple, result: Any) -> None:
        if self.setup_context is None:
            return
        first = len(arguments) - len(self.keyword_only)
        named = (
            {"keyword_only_inputs": dict(zip(self.keyword_only, arguments[first:]))}
            if self.keyword_only
            else {}
        )
        self.setup_context(ctx=ctx, inputs=arguments[:first], output=result, **named)


def _tensor_mask(value: Any) -> Any:
    """Whether an argument is a tensor; for a list, which of its items are."""
    if isinstance(value, (list, tuple)):
        return [isinstance(item, torch.Tensor) for item in value]
    return isinstance(value, torch.Tensor)


_custom_ops: dict[str, _CustomOp] = {}
# of ops that are not defined yet: full name -> kernels by dispatch key
_early_kernels: dict[str, dict[str, Callable]] = {}


def _define(namespace: str, schema: str) -> _CustomOp:
    custom = _CustomOp(namespace, schema)
    op_namespace = getattr(torch.ops, namespace)
    vars(op_namespace).pop(custom.op.name, None)  # drops the cached overloads
    _custom_ops[custom.key] = custom
    for key, kernel in _early_kernels.pop(custom.key, {}).items():
        custom.add_kernel(key, kernel)
    return custom


def _split(qualname: str) -> tuple[str, str]:
    parts = qualname.split("::")
    if len(parts) != 2:
        raise ValueError(
            f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. The qualname passed to the torch.library APIs '
            "must consist of a namespace and a name, e.g. aten::sin"
        )
    return parts[0], parts[1]


def _lookup(op: Any) -> _CustomOp:
    """The custom op for a name, an overload or a CustomOpDef."""
    if isinstance(op, CustomOpDef):
        return op._custom
    name = op.name() if isinstance(op, OpOverload) else op
    namespace, op_name = _split(name)
    custom = _custom_ops.get(f"{namespace}::{op_name}")
    if custom is None:
        # raises torch's error if there is no such op
        getattr(getattr(torch.ops, namespace), op_name.partition(".")[0])
        raise RuntimeError(
            f"{name} is an op of the library itself: only ops that were defined by programs can be changed"
        )
    return custom


# ---------------------------------------------------------------------------------------------------- schemas


def _types() -> dict[Any, str]:
    """The schema type of each Python type."""
    number = int | float | bool
    plain = {
        torch.Tensor: "Tensor",
        int: "SymInt",
        float: "float",
        bool: "bool",
        str: "str",
        number: "Scalar",
    }
    plain |= {_dtype.dtype: "ScalarType", _device.device: "Device"}
    schema_types: dict[Any, str] = {}
    for python_type, text in plain.items():
        schema_types[python_type] = text
        schema_types[typing.Optional[python_type]] = text + "?"  # noqa: UP045  (the key that annotations have)
        for list_type in _lists(python_type):
            schema_types[list_type] = text + "[]"
            schema_types[typing.Optional[list_type]] = text + "[]?"  # noqa: UP045
        for list_type in _lists(typing.Optional[python_type]) if python_type is torch.Tensor else ():  # noqa: UP045
            schema_types[list_type] = "Tensor?[]"
    for list_type in _lists(torch.Tensor):
        del schema_types[typing.Optional[list_type]]  # noqa: UP045
    return schema_types


def _lists(kind: Any) -> tuple[Any, ...]:
    return typing.Sequence[kind], typing.List[kind], collections.abc.Sequence[kind], list[kind]  # noqa: UP006


def _default_text(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, float):
        return f"{int(value)}." if value.is_integer() else repr(value)
    return repr(value) if value is None or isinstance(value, (bool, int)) else str(value).rpartition(".")[2]


def infer_schema(
    prototype_function: Callable,
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
    tags: Sequence[Any] = (),
) -> str:
    """The schema of an op, inferred from a function's annotations. `mutates_args` names the arguments it
    writes to, or is "unknown".
    """
    signature = inspect.signature(prototype_function)

    def refuse(reason: str) -> None:
        raise ValueError(f"infer_schema(func): {reason} Got func with signature {signature})")

    schema_types, parts, star, names = _types(), [], False, set()
    hints = _hints(prototype_function)
    for index, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            refuse("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        if parameter.annotation is parameter.empty:
            refuse(f"Parameter {name} must have a type annotation.")
        kind = schema_types.get(hints[name])
        if kind is None:
            refuse(
                f"Parameter {name} has unsupported type {hints[name]}. The valid types are: {schema_types.keys()}."
            )
            raise AssertionError
        names.add(name)
        written = mutates_args == "unknown" if isinstance(mutates_args, str) else name in mutates_args
        if written and kind.startswith("Tensor"):
            kind = kind.replace("Tensor", f"Tensor(a{index}!)", 1)
        elif written and not isinstance(mutates_args, str):
            refuse(
                f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated"
            )
        default = "" if parameter.default is parameter.empty else "=" + _default_text(parameter.default)
        parts.append(f"{kind} {name}{default}")
    if not isinstance(mutates_args, str) and set(mutates_args) - names:
        refuse(
            f"{set(mutates_args) - names} in mutates_args were not found in the custom op's signature. mutates_args should contain the names "
            "of all args that the custom op mutates, or just the string 'unknown' if you don't know."
        )
    if signature.return_annotation is inspect.Signature.empty:
        refuse("No return type annotation was provided. Please add one.")
    returns = _return_text(hints["return"], refuse)
    return f"{op_name or ''}({', '.join(parts)}) -> {returns}"


def _hints(function: Callable) -> dict[str, Any]:
    """Annotations as types, with strings resolved."""
    try:
        return typing.get_type_hints(function)
    except (NameError, TypeError):
        return dict(getattr(function, "__annotations__", {}))


def _return_text(kind: Any, refuse: Callable[[str], None]) -> str:
    single = {
        torch.Tensor: "Tensor",
        int: "SymInt",
        float: "float",
        bool: "bool",
        int | float | bool: "Scalar",
    }
    single |= dict.fromkeys(_lists(torch.Tensor), "Tensor[]")
    if kind is None or kind is type(None):
        return "()"
    if kind in single:
        return single[kind]
    if typing.get_origin(kind) is not tuple:
        refuse(f"Return has unsupported type {kind}. The valid types are: {single}.")
    parts = []
    for item in typing.get_args(kind):
        if item not in single:
            refuse(f"Return has unsupported type {kind}. The valid types are: {single}.")
        parts.append(single[item])
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


# ---------------------------------------------------------------------------------------------------- custom ops


class CustomOpDef:
    """A custom op made from a Python function: called like it, and recorded as `<namespace>::<name>`."""

    def __init__(
        self, namespace: str, name: str, schema: str, fn: Callable, tags: Sequence[Any] | None = None
    ) -> None:
        self._namespace, self._name, self._schema = namespace, name, schema
        self._init_fn = fn
        self._custom = _define(namespace, name + schema)
        self._custom.opaque, self._custom.may_alias, self._custom.error_name = True, False, self
        self._qualname = self._custom.qualname
        self._opoverload = self._custom.overload

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def register_kernel(
        self, device_types: str | Sequence[str] | None, fn: Callable | None = None, /
    ) -> Callable:
        """Use another function on these devices (None: on all)."""

        def declare(function: Callable) -> Callable:
            for kind in (
                (device_types,) if device_types is None or isinstance(device_types, str) else device_types
            ):
                self._custom.kernels["CPU" if kind is None else _DEVICE_KEYS.get(kind, kind.upper())] = (
                    function
                )
            return function

        return declare if fn is None else declare(fn)

    def register_fake(self, fn: Callable, /) -> Callable:
        """Use a function that creates results of the right shapes for meta tensors."""
        self._custom.fake = fn
        return fn

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """Use `backward(ctx, *grads)` for gradients; `setup_context(ctx, inputs, output)` saves what it
        needs.
        """
        self._custom.backward, self._custom.setup_context = backward, setup_context

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """Context manager: with `enabled=False`, the op's first function runs instead of the one registered
        for a device.
        """
        key = _DEVICE_KEYS.get(device_type, device_type.upper())
        kernels = self._custom.kernels
        before = kernels.get(key)
        if not enabled:
            kernels[key] = self._init_fn
        try:
            yield
        finally:
            if before is not None:
                kernels[key] = before


def custom_op(
    name: str,
    fn: Callable | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Sequence[Any] | None = None,
) -> Any:
    """Make an op from a function whose inner ops autograd and modes do not see. Without `fn`, a decorator."""

    def declare(function: Callable) -> CustomOpDef:
        text = schema
        if text is None:
            text = infer_schema(function, mutates_args=mutates_args)
        namespace, op_name = name.split("::")
        op = CustomOpDef(namespace, op_name, text, function, tags)
        if device_types is not None:
            op.register_kernel(device_types)(function)
        else:
            op._custom.kernels["CPU"] = function
        return op

    return declare if fn is None else declare(fn)


def triton_op(
    name: str,
    fn: Callable | None = None,
    /,
    *,
    mutates_args: Any,
    schema: str | None = None,
) -> Any:
    """Define an op whose implementation calls kernels of Triton. There is no compiler that looks into it: it is a custom op."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: Callable, /) -> Any:
    """The kernel itself: outside of compilation nothing is added to it."""
    return triton_kernel


# ---------------------------------------------------------------------------------------------------- libraries


class Library:
    """Ops of one namespace: definitions ("DEF", "FRAGMENT") or implementations ("IMPL")."""

    _open: typing.ClassVar[dict[str, Library]] = {}  # namespaces whose single DEF library exists

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if kind == "DEF" and (ns in ("aten", "prim", "prims") or ns in Library._open):
            raise RuntimeError(
                f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; please put all of your definitions in a single "
                "TORCH_LIBRARY block.  If you were trying to specify implementations, consider using TORCH_LIBRARY_IMPL (which can be "
                "duplicated).  If you really intended to define operators for a single namespace in a distributed way, you can use "
                "TORCH_LIBRARY_FRAGMENT to explicitly indicate this"
            )
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._op_keys: list[str] = []
        if kind == "DEF":
            Library._open[ns] = self

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an op; returns its name."""
        if "(" not in schema:
            raise RuntimeError("Tried to parse a function schema but only the operator name was given")
        name = schema[: schema.index("(")].strip()
        if f"{self.ns}::{name}" in _custom_ops:
            raise RuntimeError(
                f"Tried to register an operator ({self.ns}::{schema}) with the same name and overload name multiple times. Each overload's "
                "schema should only be registered with a single call to def()."
            )
        self._op_keys.append(_define(self.ns, schema).key)
        return name

    def impl(
        self,
        op_name: Any,
        fn: Callable,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """Implement an op for a dispatch key: "CPU", or "CompositeImplicitAutograd" for a composite of other
        ops.
        """
        key = dispatch_key or self.dispatch_key or _COMPOSITE
        if key not in _KEYS:
            raise RuntimeError(f"could not parse dispatch key: {key}")
        name = op_name._opname if isinstance(op_name, OpOverload) else op_name.rpartition("::")[2]
        full_name = f"{self.ns}::{name}"
        if full_name in _custom_ops:
            _custom_ops[full_name].add_kernel(key, fn)
        elif self.ns != "aten":
            _early_kernels.setdefault(full_name, {})[key] = fn

    def _destroy(self) -> None:
        for key in self._op_keys:
            custom = _custom_ops.pop(key)
            _dispatch.OPS.pop(key, None)
            vars(getattr(torch.ops, self.ns)).pop(custom.op.name, None)
        self._op_keys.clear()
        if Library._open.get(self.ns) is self:
            del Library._open[self.ns]


@contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """Context manager: a library whose ops are removed at the end."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


def fallthrough_kernel() -> None:
    """Represents a missing implementation."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def define(qualname: Any, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """Define the op `<namespace>::<name>`; the schema starts with the argument list."""
    namespace, name = _split(qualname)
    (lib or Library(namespace, "FRAGMENT")).define(name + schema)


def impl(qualname: str, types: Any, func: Callable | None = None, *, lib: Library | None = None) -> Any:
    """Implement an op for devices ("cpu", "default") or dispatch keys. Without `func`, a decorator."""
    namespace, name = _split(qualname)
    if namespace == "aten":
        _lookup(qualname)  # raises: ops of the library itself cannot be changed

    def declare(function: Callable) -> Callable:
        for kind in (types,) if isinstance(types, str) else types:
            key = _DEVICE_KEYS.get(kind, kind)
            (lib or Library(namespace, "IMPL")).impl(name, function, key)
        return function

    return declare if func is None else declare(func)


def register_kernel(
    op: Any, device_types: Any, func: Callable | None = None, /, *, lib: Library | None = None
) -> Any:
    """Implement an op for devices."""
    if isinstance(op, CustomOpDef):
        return op.register_kernel(device_types, func)
    name = op.name() if isinstance(op, OpOverload) else op
    return impl(name, "default" if device_types is None else device_types, func, lib=lib)


def register_fake(
    op: Any,
    func: Callable | None = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:
    """Use a function that creates results of the right shapes for meta tensors."""

    def declare(function: Callable) -> Callable:
        _lookup(op).fake = function
        return function

    return declare if func is None else declare(func)


def get_ctx() -> Any:
    """Raises: a fake implementation that asks for a size that depends on data needs torch's compiler."""
    raise NotImplementedError(
        "torch.library.get_ctx(): the result's size depends on data, which a tensor of the meta device does not have"
    )


def impl_abstract(
    qualname: Any, func: Callable | None = None, *, lib: Library | None = None, _stacklevel: int = 1
) -> Any:
    """The former name of `register_fake`."""
    return register_fake(qualname, func, lib=lib)


def register_autograd(
    op: Any, backward: Callable, /, *, setup_context: Callable | None = None, lib: Library | None = None
) -> None:
    """Use `backward(ctx, *grads)` for gradients of an op; `setup_context(ctx, inputs, output)` saves what it
    needs.
    """
    custom = _lookup(op)
    custom.backward, custom.setup_context, custom.opaque = backward, setup_context, True
    custom._function = None
