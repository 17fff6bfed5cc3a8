"""torch.fx.graph: `Graph`, a list of nodes that can be changed, printed and turned into Python source."""

from __future__ import annotations

import contextlib
import copy
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import mindtorch_v2 as torch

from .._function_names import qualified_names
from ._code_generation import (
    CodeGen,
    PythonCode,
    _BoxedCodeGen,
    _format_target,
    _is_from_torch,
    _PyTreeCodeGen,
    _PyTreeInfo,
    inplace_methods,
    magic_methods,
    reflectable_magic_methods,
)
from ._namespace import CustomBuiltin as _CustomBuiltin
from ._namespace import _custom_builtins, _is_magic, _Namespace, _snake_case
from .node import Argument, Node, Target, _type_repr, map_arg

if TYPE_CHECKING:
    from .graph_module import GraphModule

__all__ = ["PythonCode", "CodeGen", "Graph"]

_exported = (
    _BoxedCodeGen, _CustomBuiltin, _PyTreeCodeGen, _PyTreeInfo, _format_target, _is_from_torch, _type_repr, inplace_methods,
    magic_methods, reflectable_magic_methods,
)  # fmt: skip  # torch has these names here


def _register_custom_builtin(name: str, import_str: str, obj: Any) -> None:
    """Let generated code name an object without an import."""
    _custom_builtins[name] = _CustomBuiltin(import_str, obj)


_OPS = (torch.ops.OpOverload, torch.ops.OpOverloadPacket)  # their names contain a dot


class _InsertPoint:
    """Context manager: new nodes are inserted at another place."""

    def __init__(self, graph: Graph, new_insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.orig_insert, graph._insert = graph._insert, new_insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, type: Any, value: Any, tb: Any) -> None:
        self.graph._insert = self.orig_insert


class _node_list:
    """The nodes of a graph, in order or reversed."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        if direction not in ("_next", "_prev"):
            raise AssertionError(f"direction must be '_next' or '_prev', got {direction}")
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root, direction = self.graph._root, self.direction
        current = getattr(root, direction)
        while current is not root:
            if not current._erased:
                yield current
            current = getattr(current, direction)

    def __reversed__(self) -> _node_list:
        return _node_list(self.graph, "_next" if self.direction == "_prev" else "_prev")


class Graph:
    """Nodes in the order in which they run: placeholders first, one output last."""

    def __init__(
        self,
        owning_module: GraphModule | None = None,
        tracer_cls: type[Any] | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._root: Node = Node(self, "", "root", "", (), {})
        self._used_names: dict[str, int] = {}
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._numbered = True
        self._graph_namespace = _Namespace()
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls if tracer_cls and "<locals>" not in tracer_cls.__qualname__ else None
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}

    # ------------------------------------------------------------------------------ order

    def _order_changed(self) -> None:
        self._numbered = False

    def _number_nodes(self) -> None:
        """Give each node its position, which comparisons of nodes read."""
        if not self._numbered:
            for position, node in enumerate(self.nodes, 1):
                node._sort_key = position
            self._numbered = True

    @property
    def nodes(self) -> _node_list:
        """The nodes in order; changes of the graph show in it."""
        return _node_list(self)

    @property
    def owning_module(self) -> GraphModule | None:
        """The module whose graph this is; None if there are none or several."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: GraphModule | None) -> None:
        self._owning_module = mod

    def output_node(self) -> Node:
        """The output."""
        last = self._root._prev
        if last.op != "output":
            raise AssertionError(f"Expected output node, got op={last.op}")
        return last

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes with this operation and target."""
        if op == "call_function" and target is None:
            raise AssertionError("target must not be None for call_function op")
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    # ------------------------------------------------------------------------------ new nodes

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Insert a node of any kind."""
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        if not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        candidate = name if name is not None else self._target_to_str(target)
        unique = self._graph_namespace.create_name(candidate, None)
        node = Node(self, unique, op, target, args, kwargs, type_expr)
        self._graph_namespace.associate_name_with_obj(unique, node)
        self._insert(node)
        self._len += 1
        for hook in getattr(self.owning_module, "_create_node_hooks", ()):
            hook(node)
        return node

    def placeholder(
        self, name: str, type_expr: Any | None = None, default_value: Any = inspect.Signature.empty
    ) -> Node:
        """Insert an input."""
        args = () if default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any | None = None) -> Node:
        """Insert the reading of an attribute of the root module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Insert a call of a submodule."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Insert a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any | None = None,
        name: str | None = None,
    ) -> Node:
        """Insert a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any | None = None) -> Node:
        """Insert the output."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x) -> Node:
        """Insert a copy of a node of another graph; `arg_transform` maps its inputs to nodes of this one."""
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        result = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        result.meta = copy.copy(node.meta)
        return result

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Argument | None:
        """Insert copies of all nodes of a graph but its output, whose value is returned; `val_map` maps nodes already copied."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], lambda n: val_map[n])
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        memo = memo or {}
        g = Graph(tracer_cls=self._tracer_cls)
        copies: dict[Node, Node] = {}
        result = g.graph_copy(self, copies, return_output_node=True)
        g._codegen = copy.deepcopy(self._codegen)
        if result is not None:
            value, old = result
            new = g.output(value, type_expr=old.type)
            new.meta = copy.copy(old.meta)
            new._rename(old.name)
        for old, new in copies.items():
            memo[id(old)] = new
        return g

    # ------------------------------------------------------------------------------ changes

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Context manager: new nodes are inserted before `n`, or at the beginning."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Context manager: new nodes are inserted behind `n`, or at the end."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nothing uses."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", ()):
            hook(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._update_args_kwargs((), {})

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove nodes whose value nothing uses and that do nothing else; whether there were any."""
        self.lint()
        impure = is_impure_node or (lambda node: node.is_impure())
        changed = False
        for node in reversed(list(self.nodes)):
            if not impure(node) and not node.users:
                self.erase_node(node)
                changed = True
        return changed

    def _clear_nodes(self) -> None:
        for node in reversed(list(self.nodes)):
            node.users = {}
            self.erase_node(node)

    def lint(self) -> None:
        """Check that the graph is well formed: order, ownership, unique names, targets that exist."""
        seen_names: set[str] = set()
        seen: set[Node] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for argument in node.all_input_nodes:
                if argument.graph is not self:
                    raise RuntimeError(
                        f"Argument '{argument}' of Node '{node}' does not belong to this Graph, but was used as an argument! If you are "
                        "copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() to remap values"
                        f"\n{self}"
                    )
                if argument not in seen:
                    raise RuntimeError(
                        f"Argument '{argument}' of Node '{node}' was used before it has been defined! Please check that Nodes in the graph "
                        f"are topologically ordered\n{self}"
                    )
            seen.add(node)
            if node.name in seen_names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen_names.add(node.name)
        self._check_targets()

    def _check_targets(self) -> None:
        """That attributes and submodules exist in the owning module."""
        if self.owning_module is None:
            return
        for node in self.nodes:
            if node.op not in ("get_attr", "call_module"):
                continue
            value: Any = self.owning_module
            for depth, part in enumerate(node.target.split(".")):
                if not hasattr(value, part):
                    path = ".".join(node.target.split(".")[:depth]) or node.target
                    raise RuntimeError(
                        f"Node {node} target {node.target} references nonexistent attribute {part} of {path}"
                    )
                value = getattr(value, part)
            if node.op == "call_module" and not callable(value):
                raise RuntimeError(
                    f"Node {node} target {node.target} {part} of {node.target} does not reference an nn.Module"
                )

    # ------------------------------------------------------------------------------ code and text

    def _target_to_str(self, target: Target | None) -> str:
        if callable(target):
            name = qualified_names().get(
                id(target), getattr(target, "__name__", None) or type(target).__name__
            )
            name = name if isinstance(target, _OPS) else name.rpartition(".")[2]
            name = name[2:-2] if _is_magic(name) else name
        else:
            if not isinstance(target, str):
                raise AssertionError(f"target must be a str, got {type(target)}")
            name = target[2:-2] if _is_magic(target) else target
        return _snake_case(name)

    def python_code(
        self,
        root_module: str,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        record_func: bool = False,
        additional_meta: list[str] | None = None,
    ) -> PythonCode:
        """The source of a function that does what the graph says. `root_module` is the name of its module in it."""
        namespace = _Namespace()

        def node_repr(node: Node) -> str:
            return namespace.create_name(node.name, node)

        nodes = list(self.nodes)
        before = [node._repr_fn for node in nodes]
        for node in nodes:
            node._repr_fn = node_repr
        try:
            return self._python_code(
                root_module,
                namespace,
                verbose=verbose,
                include_stride=include_stride,
                include_device=include_device,
                colored=colored,
                expanded_def=expanded_def,
                record_func=record_func,
                additional_meta=additional_meta,
            )
        finally:
            for node, old in zip(nodes, before):
                node._repr_fn = old

    def _python_code(self, root_module: str, namespace: _Namespace, **options: Any) -> PythonCode:
        return self._codegen._gen_python_code(self.nodes, root_module, namespace, **options)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Use another writer of source code."""
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders for the arguments of a call."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """The result of a call for the value of the output node."""
        return self._codegen.process_outputs(out)

    @contextlib.contextmanager
    def on_generate_code(self, make_transformer: Callable[[Any], Any]) -> Iterator[None]:
        """Context manager: the lines of the generated body go through a function."""
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)
        try:
            yield
        finally:
            self._codegen._body_transformer = before

    def __str__(self) -> str:
        return_typename = [""]
        names: list[str] = []
        lines = [node.format_node(names, return_typename) for node in self.nodes]
        return "graph():" + "".join(f"\n    {line}" for line in lines if line)

    def print_tabular(self) -> None:
        """Print the nodes as a table; needs the package tabulate."""
        try:
            from tabulate import tabulate
        except ImportError:
            print(  # noqa: T201  (asked for)
                "`print_tabular` relies on the library `tabulate`, which could not be found on this machine. Run `pip install tabulate` to "
                "install the library."
            )
            raise
        rows = [[node.op, node.name, node.target, node.args, node.kwargs] for node in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))  # noqa: T201

    def create_size_node(self, tensor_node: Node, dim: int) -> Node:
        """Insert the reading of one size of a tensor."""
        return self.call_method("size", (tensor_node, dim))

    def create_stride_node(self, tensor_node: Node, dim: int) -> Node:
        """Insert the reading of one stride of a tensor."""
        return self.call_method("stride", (tensor_node, dim))

    def create_storage_offset_node(self, tensor_node: Node) -> Node:
        """Insert the reading of a tensor's storage offset."""
        return self.call_method("storage_offset", (tensor_node,))
