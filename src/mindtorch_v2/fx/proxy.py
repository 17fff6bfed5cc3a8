"""torch.fx.proxy: `Proxy`, a value that records what is done with it, and the base class of tracers."""

from __future__ import annotations

import collections
import copy
import dataclasses
import dis
import enum
import operator
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import mindtorch_v2 as torch

from .. import _overrides
from ..overrides import is_tensor_method_or_property
from ._code_generation import magic_methods, reflectable_magic_methods
from .graph import Graph
from .node import Argument, Node, Target, base_types, map_aggregate

__all__ = [
    "TracerBase",
    "GraphAppendingTracer",
    "TraceError",
    "Proxy",
    "MetaProxy",
    "Attribute",
    "ParameterProxy",
    "Scope",
    "ScopeContextManager",
]

_PACKAGE_FOLDER = str(torch.__path__[0])
_ITERATION_ERROR = (
    "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs function argument. "
    "See the torch.fx docs on pytorch.org for a more detailed explanation of what types of control flow can be traced, and check out the "
    "Proxy docstring for help troubleshooting Proxy iteration errors"
)


class TraceError(ValueError):
    """The program does something with a traced value that a graph cannot express."""


@dataclasses.dataclass
class Scope:
    """The module whose `forward` is being traced: its path and type."""

    module_path: str
    module_type: Any


class ScopeContextManager:
    """Context manager: a tracer's scope is another one."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._before = copy.copy(scope)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type
        self._scope = scope

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *args: Any) -> None:
        self._scope.module_path = self._before.module_path
        self._scope.module_type = self._before.module_type


class TracerBase:
    """Turns operations on proxies into nodes of `graph`."""

    graph: Graph
    record_stack_traces: bool = False
    _record_forward_stack_traces_only: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: collections.OrderedDict[str, Any]
    node_name_to_scope: dict[str, tuple[str, type]]

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Insert a node; its `meta` says in which modules it runs."""
        if kind == "call_function" and self.check_mutable_operations:
            from .operator_schemas import check_for_mutable_operation

            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        if hasattr(self, "node_name_to_scope") and hasattr(self, "scope"):
            self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if getattr(self, "module_stack", None):
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and kind not in ("placeholder", "output"):
            stack = self._user_stack()
            if stack:
                node.stack_trace = stack
        return node

    def _user_stack(self) -> str:
        """The frames of the traced program, outermost first, as Python prints them."""
        frames: list[Any] = []
        frame: Any = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_name == "trace" and frame.f_locals.get("self") is self:
                break  # what called the tracer is not part of the traced program
            if not frame.f_code.co_filename.startswith(_PACKAGE_FOLDER):
                frames.append((frame, frame.f_lineno))
            frame = frame.f_back
        summary = traceback.StackSummary.extract(reversed(frames))
        return "".join(summary.format()).strip()

    def proxy(self, node: Node) -> Proxy:
        """The value that stands for a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any | None = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Insert a node for an operation on proxies and constants, and return its proxy."""
        args_ = self.create_arg(args)
        kwargs_ = self.create_arg(kwargs)
        if not isinstance(args_, tuple) or not isinstance(kwargs_, dict):
            raise AssertionError(f"arguments became {type(args_)} and {type(kwargs_)}")
        node = self.create_node(kind, target, args_, kwargs_, name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def create_arg(self, a: Any) -> Argument:
        """A value of the traced program as an argument of a node."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            if hasattr(a, "_fields"):
                return type(a)(*[self.create_arg(item) for item in a])
            return tuple([self.create_arg(item) for item in a])
        if isinstance(a, list):
            return [self.create_arg(item) for item in a]
        if isinstance(a, dict):
            return {self._create_key(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, (*base_types, enum.Enum)) or a is None or a is ...:
            return a
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            fields = {f.name: self.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), fields)
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _create_key(self, key: Any) -> Any:
        key = self.create_arg(key)

        def refuse(value: Any) -> Any:
            if isinstance(value, Node):
                raise RuntimeError(
                    f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}"
                )
            return value

        map_aggregate(key, refuse)
        return key

    def to_bool(self, obj: Proxy) -> bool:
        """What `if proxy` does: an error, unless a subclass decides."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator:
        """What `for value in proxy` does: an error, unless a subclass decides."""
        raise TraceError(_ITERATION_ERROR)

    def keys(self, obj: Proxy) -> Any:
        """What `**proxy` does with the names."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Appends nodes to an existing graph."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.node_name_to_scope = {}


def assert_fn(x: Any) -> None:
    """The target of traced `assert` statements."""
    if not x:
        raise AssertionError("Assertion failed")


class Proxy:
    """Stands for a value of the traced program: each operation on it becomes a node."""

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node
        _overrides.guard_public_functions()

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Any:
        if k in ("node", "tracer") or (k.startswith("__") and k.endswith("__")):
            raise AttributeError(k)  # not yet set, or a protocol that proxies do not have
        return Attribute(self, k)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        copied = object.__new__(type(self))
        memo[id(self)] = copied
        for name, value in self.__dict__.items():
            copied.__dict__[name] = value if name in ("node", "tracer") else copy.deepcopy(value, memo)
        return copied

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Proxy]:
        n_values = _number_of_unpacked_values(sys._getframe(1))
        if n_values is not None:
            return (self[index] for index in range(n_values))  # type: ignore[index]  # `_add_operators` below
        return self.tracer.iter(self)

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _is_assertion(sys._getframe(1)):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """The names of a mapping: what `**proxy` asks for."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call torch.fx.wrap('len') at "
            "module scope"
        )

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = None, kwargs: Any = None) -> Any:
        args, kwargs = args or (), kwargs or {}
        tracer = _tracer_of((args, kwargs))
        if _overrides.thread_state.in_method or is_tensor_method_or_property(orig_method):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        name = tracer.graph._target_to_str(orig_method)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=name)


def _tracer_of(arguments: Any) -> TracerBase:
    """The one tracer of the proxies inside arguments."""
    tracers: dict[TracerBase, None] = {}

    def note(value: Any) -> Any:
        if isinstance(value, Proxy):
            tracers[value.tracer] = None
        return value

    map_aggregate(arguments, note)
    if len(tracers) > 1:
        raise RuntimeError(
            f"Found multiple different tracers {list(tracers)} while trying to trace operations {arguments}"
        )
    return next(iter(tracers))


def _number_of_unpacked_values(frame: Any) -> int | None:
    """How many values the calling code unpacks (`a, b = proxy`); None if it iterates otherwise."""
    instruction = _current_instruction(frame)
    return instruction.argval if instruction is not None and instruction.opname == "UNPACK_SEQUENCE" else None


def _is_assertion(frame: Any) -> bool:
    """Whether the calling code is testing the condition of an `assert` statement."""
    instructions = list(dis.get_instructions(frame.f_code))
    index = next((i for i, found in enumerate(instructions) if found.offset == frame.f_lasti), None)
    if index is None:
        return False
    following = [found.opname for found in instructions[index + 1 : index + 4]]
    return "LOAD_ASSERTION_ERROR" in following or "LOAD_COMMON_CONSTANT" in following


def _current_instruction(frame: Any) -> Any:
    return next((i for i in dis.get_instructions(frame.f_code) if i.offset == frame.f_lasti), None)


class MetaProxy(Proxy):
    """A proxy that also carries a tensor on the meta device, which operations run on."""

    def __init__(self, node: Node, tracer: TracerBase | None = None, fake_mode: Any = None) -> None:
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self) -> str:
        return f"MetaProxy({self.node.name})"


class Attribute(Proxy):
    """An attribute of a proxy: its node is inserted when it is used; if it is called, a method call is."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A proxy of a parameter whose shape is known: `shape`, `size()` and `dim()` give numbers."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        if not isinstance(param, torch.nn.Parameter):
            raise AssertionError(f"expected a Parameter, got {type(param)}")
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        return self.param.shape

    def size(self, *args: Any) -> Any:
        return self.param.size(*args)

    def dim(self) -> int:
        return self.param.dim()

    @property
    def ndim(self) -> int:
        return self.param.ndim

    def numel(self) -> int:
        return self.param.numel()

    def nelement(self) -> int:
        return self.param.nelement()


def _add_operators() -> None:
    """Give Proxy the operators that generated code can write, and their reflected forms."""

    def operator_method(function: Callable, reflected: bool) -> Callable:
        def method(*args: Any, **kwargs: Any) -> Any:
            tracer = args[0].tracer
            operands = args[::-1] if reflected else args
            return tracer.create_proxy("call_function", function, operands, kwargs)

        return method

    for name in magic_methods:
        if name == "div":
            continue
        function = getattr(operator, name)
        plain = name.strip("_")
        method = operator_method(function, reflected=False)
        method.__name__ = f"__{plain}__"
        setattr(Proxy, f"__{plain}__", method)
        if name in reflectable_magic_methods:
            method = operator_method(function, reflected=True)
            method.__name__ = f"__r{plain}__"
            setattr(Proxy, f"__r{plain}__", method)


_add_operators()
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]  # `__eq__` above records a node
