"""torch.fx.node: `Node`, one step of a graph, and the helpers that walk its arguments."""

from __future__ import annotations

import builtins
import inspect
import operator
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import mindtorch_v2 as torch

from .. import _function_names
from .immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Node", "map_arg", "map_aggregate", "has_side_effect"]

BaseArgumentTypes = Any
Argument = Any
Target = Any
base_types = (
    str, int, float, bool, complex, torch.dtype, torch.Tensor, torch.device, torch.memory_format, torch.layout,
    torch.ops.OpOverload,
)  # fmt: skip
_legal_ops = dict.fromkeys(
    ["call_function", "call_method", "get_attr", "call_module", "placeholder", "output", "root"]
)
_side_effectful_functions: set[Callable] = {operator.setitem}
_F = TypeVar("_F", bound=Callable)


def has_side_effect(fn: _F) -> _F:
    """Register a function whose calls dead code elimination keeps."""
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """`a` with every element of its tuples, lists, dicts and slices replaced by `fn(element)`; lists and dicts become immutable."""
    if isinstance(a, tuple):
        items = [map_aggregate(item, fn) for item in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(item, fn) for item in a])
    if isinstance(a, dict):
        return immutable_dict((key, map_aggregate(value, fn)) for key, value in a.items())
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """`a` with every node inside it replaced by `fn(node)`."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


# ---------------------------------------------------------------------------------------------------- names


def _find_module_of_method(orig_method: Callable) -> str:
    """The module of a function that does not know it."""
    guesses: dict[str, Any] = {"torch": torch, "torch.nn.functional": torch.nn.functional}
    for name, guess in guesses.items():
        if getattr(guess, orig_method.__name__, None) is orig_method:
            return name
    raise RuntimeError(f"cannot find module for {orig_method}")


def _get_qualified_name(func: Any) -> str:
    """The name under which generated code calls a function: torch's for this package's functions."""
    name: str = getattr(func, "__name__", "")
    if getattr(builtins, name, None) is func:
        return name
    if isinstance(func, (torch.ops.OpOverload, torch.ops.OpOverloadPacket)):
        return f"torch.ops.{func}"
    known = _function_names.qualified_names().get(id(func))
    if known is not None:
        return known
    if name == "<lambda>":
        try:
            name = inspect.getsource(func).split("=")[0].strip()
        except Exception as error:
            raise RuntimeError("Unable to represent lambda") from error
    module = getattr(func, "__module__", None) or _find_module_of_method(func)
    return f"{_function_names.torch_module_name(module)}.{name}"


def _type_repr(obj: object) -> str:
    """A type as source text."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        if obj.__module__ == "builtins":
            return obj.__qualname__
        return f"{_function_names.torch_module_name(obj.__module__)}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    return repr(obj).replace(f"{_function_names._PACKAGE}.", "torch.")


def _format_arg(arg: object, max_list_len: float = float("inf")) -> str:
    """An argument as a graph's text shows it."""
    custom = getattr(arg, "_custom_fx_repr_fn", None)
    if custom is not None:
        return custom()
    if isinstance(arg, list):
        return f"[{_format_items(arg, max_list_len)}]"
    if isinstance(arg, tuple):
        return f"({_format_items(arg, max_list_len)}{',' if len(arg) == 1 else ''})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{key}: {_format_arg(value)}" for key, value in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


def _format_items(items: Sequence[Any], max_list_len: float) -> str:
    shown = [_format_arg(item) for index, item in enumerate(items) if index < max_list_len]
    more = "" if len(items) < max_list_len + 1 else f", ...[total_len={len(items)}]"
    return ", ".join(shown) + more


# ---------------------------------------------------------------------------------------------------- nodes


class Node:
    """One step of a graph: an operation, what it is applied to, its arguments and its users."""

    graph: Graph
    name: str
    op: str
    target: Target
    users: dict[Node, None]
    type: Any
    meta: dict[str, Any]

    __slots__ = (
        "__dict__", "_args", "_erased", "_input_nodes", "_kwargs", "_next", "_prev", "_repr_fn", "_sort_key", "graph", "meta", "name",
        "op", "target", "type", "users",
    )  # fmt: skip

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any | None = None,
    ) -> None:
        if op not in _legal_ops:
            raise AssertionError(f"op {op!r} is not in _legal_ops")
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type {torch.typename(target)} "
                    "but a Callable is expected"
                )
        elif not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {torch.typename(target)} but a str is expected"
            )
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self._input_nodes: dict[Node, None] = {}
        self.users = {}
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = {}
        self._repr_fn: Callable[[Node], str] | None = None
        self._prev = self._next = self
        self._erased = False
        self._sort_key: float = 0.0
        self.meta = {}
        self._update_args_kwargs(args, kwargs)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in Node.__slots__ if name != "__dict__"} | self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    # ------------------------------------------------------------------------------ order

    def __lt__(self, other: Node) -> bool:
        return self._position() < other._position()

    def __gt__(self, other: Node) -> bool:
        return self._position() > other._position()

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or self > other

    def _position(self) -> float:
        """The place in the graph's list, as a number that grows along it."""
        self.graph._number_nodes()
        return self._sort_key

    @property
    def next(self) -> Node:
        """The following node of the graph."""
        return self._next

    @property
    def prev(self) -> Node:
        """The preceding node of the graph."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move `x` in front of this node."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x
        self.graph._order_changed()

    _prepend = prepend

    def append(self, x: Node) -> None:
        """Move `x` behind this node."""
        self._next.prepend(x)

    def _remove_from_list(self) -> None:
        before, after = self._prev, self._next
        before._next, after._prev = after, before
        self.graph._order_changed()

    # ------------------------------------------------------------------------------ arguments

    @property
    def args(self) -> tuple[Argument, ...]:
        """The positional arguments: nodes and constants, possibly nested."""
        return self._args

    @args.setter
    def args(self, a: tuple[Argument, ...]) -> None:
        self._update_args_kwargs(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """The keyword arguments."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Argument]) -> None:
        self._update_args_kwargs(self._args, k)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once, in order."""
        return list(self._input_nodes)

    def _update_args_kwargs(self, args: Any, kwargs: Any) -> None:
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}

        def note(value: Any) -> Any:
            if isinstance(value, Node):
                self._input_nodes.setdefault(value)
                value.users.setdefault(self)
            return value

        self._args = map_aggregate(tuple(args), note)
        self._kwargs = map_aggregate(dict(kwargs), note)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace one positional argument."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Insert a positional argument."""
        if not 0 <= idx <= len(self._args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Set one keyword argument."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Use `new_input` wherever `old_input` is among the arguments."""
        self._replace_input_with(old_input, new_input)

    def _replace_input_with(self, old_input: Node, new_input: Any) -> None:
        module = self.graph.owning_module
        for hook in getattr(module, "_replace_hooks", ()):
            hook(old=old_input, new=getattr(new_input, "name", new_input), user=self)

        def replaced(node: Node) -> Any:
            return new_input if node is old_input else node

        self._update_args_kwargs(map_arg(self._args, replaced), map_arg(self._kwargs, replaced))

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Use another node wherever this one is used; the changed nodes."""
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        for user in changed:
            user._replace_input_with(self, replace_with)
        return changed

    # ------------------------------------------------------------------------------ questions

    @property
    def stack_trace(self) -> str | None:
        """The program's stack where the node was recorded, if the tracer keeps it."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node does more than return a value: dead code elimination keeps it."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return _is_impure_function(self, impure_random)
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            module = owner.get_submodule(self.target)
            return getattr(module, "_is_impure", False)
        return False

    def normalized_arguments(
        self,
        root: Any,
        arg_types: tuple[Any] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> Any:
        """The arguments by the signature of the function or module, or None if it has none."""
        from .operator_schemas import normalize_function, normalize_module

        if self.op == "call_function":
            return normalize_function(
                self.target,
                self.args,
                dict(self.kwargs),
                arg_types,
                kwarg_types,
                normalize_to_only_use_kwargs,
            )
        if self.op == "call_module":
            return normalize_module(
                root, self.target, self.args, dict(self.kwargs), normalize_to_only_use_kwargs
            )
        return None

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)

    # ------------------------------------------------------------------------------ text

    def _pretty_print_target(self, target: object) -> str:
        if isinstance(target, str):
            return target
        if hasattr(target, "__module__"):
            name = getattr(target, "__name__", None)
            if name is None:
                return _get_qualified_name(target)
            if target.__module__ == "builtins":
                return f"builtins.{name}"
            if target.__module__ == "_operator":
                return f"operator.{name}"
        return _get_qualified_name(target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """The node as one line of a graph's text. Inside a graph, names of placeholders and the return type go into the lists."""
        typename = f"{_type_repr(self.type)} " if self.type else ""
        head = f"%{self.name} : {typename}[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            default = f"(default={self.args[0]})" if self.args else ""
            if placeholder_names is not None:
                placeholder_names.append(
                    f"{self.target}: {_type_repr(self.type)}" if self.type else self.target
                )
            return f"{head}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"{head}[target={self._pretty_print_target(self.target)}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        target = self._pretty_print_target(self.target)
        return (
            f"{head}[target={target}](args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"
        )


def _is_impure_function(node: Node, impure_random: bool) -> bool:
    target = node.target
    name = _function_names.qualified_names().get(id(target), "")
    if target in _side_effectful_functions or name in ("torch._assert", "torch._assert_async"):
        return True
    if isinstance(target, torch.ops.OpOverload):
        if target._schema.is_mutable:
            return True
        return impure_random and "nondeterministic_seeded" in str(getattr(target, "tags", ()))
    return impure_random and name in _RANDOM_FUNCTIONS


# Functions that advance the random generator: torch keeps their calls, since the numbers after them depend on it.
_RANDOM_FUNCTIONS = frozenset(
    f"torch.{name}"
    for name in "rand randn randint randperm rand_like randn_like randint_like bernoulli multinomial normal poisson".split()
)
