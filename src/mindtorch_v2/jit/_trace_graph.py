"""The graph of a traced call: a module and its inputs in, the ops that it called out, as nodes and values with TorchScript's questions.

The call runs once, watched by an `ExecutionTraceObserver`; the outermost ops that it notes are the nodes. Sizes are plain numbers: a
graph has no nodes for questions about them (`aten::size`, `aten::Int`), unlike torch's.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from typing import Any

from .. import nn
from .._tensor import Tensor
from ..profiler import ExecutionTraceObserver, record_function
from ..utils._pytree import tree_leaves

_SCOPE, _NAMED = "torch.jit scope ", "torch.jit value "  # names of ranges in the execution trace
_CONVOLUTIONS = {f"aten::conv{kind}{dims}d" for kind in ("", "_transpose") for dims in (1, 2, 3)}
_COLUMNS = ("values", "types", "shapes", "strides")  # of the inputs and outputs of a row
_BACK_END_FLAGS = (
    False,
    False,
    True,
    True,
)  # of aten::_convolution: benchmark, deterministic, cudnn_enabled, allow_tf32
_SCALAR_TYPES = {
    "float": "Float", "double": "Double", "long int": "Long", "int": "Int", "short int": "Short", "signed char": "Char",
    "unsigned char": "Byte", "bool": "Bool", "c10::Half": "Half", "c10::BFloat16": "BFloat16",
}  # fmt: skip


class TensorType:
    """The type of a traced tensor."""

    def __init__(self, element: str, sizes: list[int], strides: list[int]) -> None:
        self._element, self._sizes, self._strides = element, sizes, strides

    def sizes(self) -> list[int]:
        """Its sizes."""
        return list(self._sizes)

    def strides(self) -> list[int]:
        """Its strides, in elements."""
        return list(self._strides)

    def scalarType(self) -> str:
        """The name of its dtype: Float, Long ..."""
        return _SCALAR_TYPES.get(self._element, self._element)

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self._sizes)

    def kind(self) -> str:
        """The kind of type."""
        return "TensorType"

    def __str__(self) -> str:
        sizes = ", ".join(map(str, self._sizes))
        return f"{self.scalarType()}({sizes}, strides={self._strides}, device=cpu)"


class PlainType:
    """The type of a number, text, list or None."""

    def __init__(self, name: str) -> None:
        self._name = name

    def kind(self) -> str:
        """The kind of type."""
        return {"None": "NoneType", "Tensor[]": "ListType", "Any[]": "ListType"}.get(
            self._name, f"{self._name.title()}Type"
        )

    def __str__(self) -> str:
        return self._name


class Value:
    """A tensor, number or list in a graph: made by one node, read by others."""

    def __init__(self, name: str, node: Node, type: TensorType | PlainType, constant: Any = None) -> None:
        self._name, self._node, self._type, self._constant = name, node, type, constant

    def debugName(self) -> str:
        """Its name in the text of the graph."""
        return self._name

    def node(self) -> Node:
        """The node that made it."""
        return self._node

    def type(self) -> Any:
        """Its type."""
        return self._type

    def isCompleteTensor(self) -> bool:
        """Whether it is a tensor of known sizes."""
        return isinstance(self._type, TensorType)

    def toIValue(self) -> Any:
        """The Python value of a constant; None for others."""
        return self._constant


class Node:
    """One op in a graph."""

    def __init__(self, kind: str, scope: str) -> None:
        self._kind, self._scope = kind, scope
        self._inputs: list[Value] = []
        self._outputs: list[Value] = []

    def kind(self) -> str:
        """The name of the op."""
        return self._kind

    def scopeName(self) -> str:
        """The scopes that were open, outermost first, with / between them."""
        return self._scope

    def inputs(self) -> Iterator[Value]:
        """What it reads."""
        return iter(self._inputs)

    def outputs(self) -> Iterator[Value]:
        """What it makes."""
        return iter(self._outputs)

    def inputsSize(self) -> int:
        """How many values it reads."""
        return len(self._inputs)

    def outputsSize(self) -> int:
        """How many values it makes."""
        return len(self._outputs)

    def output(self) -> Value:
        """The only value that it makes."""
        (only,) = self._outputs
        return only

    def __str__(self) -> str:
        outputs = ", ".join(f"%{v.debugName()} : {v.type()}" for v in self._outputs)
        constant = self._outputs[0].toIValue() if self._kind == "prim::Constant" else None
        value = "" if constant is None else f"[value={json.dumps(constant)}]"
        return f"{outputs} = {self._kind}{value}({', '.join('%' + v.debugName() for v in self._inputs)})"


class Graph:
    """The ops of a traced call in the order of their calls, and the tensors that existed before."""

    def __init__(self) -> None:
        self._parameters = Node("prim::Param", "")
        self._nodes: list[Node] = []
        self._results: list[Value] = []
        self._count = 0

    def inputs(self) -> Iterator[Value]:
        """The inputs, parameters and buffers."""
        return self._parameters.outputs()

    def outputs(self) -> Iterator[Value]:
        """The tensors that the call returned."""
        return iter(self._results)

    def nodes(self) -> Iterator[Node]:
        """The nodes."""
        return iter(self._nodes)

    def param_node(self) -> Node:
        """The node that all inputs come from."""
        return self._parameters

    def __str__(self) -> str:
        inputs = ",\n      ".join(f"%{v.debugName()} : {v.type()}" for v in self.inputs())
        lines = [f"  {node}" for node in self._nodes]
        results = ", ".join("%" + v.debugName() for v in self._results)
        return f"graph({inputs}):\n" + "\n".join(lines) + f"\n  return ({results})\n"

    def _made(
        self, node: Node, type: TensorType | PlainType, constant: Any = None, name: str | None = None
    ) -> Value:
        value = Value(str(self._count) if name is None else name, node, type, constant)
        self._count += 1
        node._outputs.append(value)
        return value


class _TracingState:
    """What `torch._C._get_tracing_state()` gives while a call is traced."""

    def __init__(self) -> None:
        self._ranges: list[record_function] = []

    def push_scope(self, name: str) -> None:
        """Begin a scope: nodes made until `pop_scope` have it in their names."""
        self._ranges.append(record_function(_SCOPE + name))
        self._ranges[-1].__enter__()

    def pop_scope(self) -> None:
        """End the scope begun last."""
        self._ranges.pop().__exit__(None, None, None)


state: _TracingState | None = None


def _get_trace_graph(
    f: Any,
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    strict: bool = True,
    _force_outplace: bool = False,
    return_inputs: bool = False,
    _return_inputs_states: bool = False,
) -> tuple[Graph, Any]:
    """Call a module or function once; the graph of its ops, and its result."""
    global state
    if return_inputs or _return_inputs_states:
        raise NotImplementedError(
            "torch.jit._get_trace_graph: return_inputs is not supported by this library"
        )
    args = args if isinstance(args, tuple) else (args,)
    named = [
        (f"input.{i + 1}", t) for i, t in enumerate(tree_leaves((args, kwargs))) if isinstance(t, Tensor)
    ]
    if isinstance(f, nn.Module):
        named += list(f.state_dict(keep_vars=True).items())
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        observer = ExecutionTraceObserver().register_callback(path)
        before, state = state, _TracingState()
        observer.start()
        try:
            for name, tensor in named:
                _mark(name, tensor)
            result = f(*args, **(kwargs or {}))
            for tensor in tree_leaves(result):
                if isinstance(tensor, Tensor):
                    _mark("", tensor)
        finally:
            observer.stop()
            observer.unregister_callback()
            state = before
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)["nodes"]
    return _Builder(rows).graph, result


def _mark(name: str, tensor: Tensor) -> None:
    """Let the trace say which tensor has this name: by a view of it in a range of that name."""
    with record_function(_NAMED + name):
        tensor.detach()


class _Builder:
    """Makes a graph of the rows of an execution trace."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.graph = Graph()
        self.values: dict[int, Value] = {}  # by the id of a tensor: the value it has now
        self.rows = {row["id"]: row for row in rows}
        for row in sorted(rows, key=lambda row: row["id"]):
            parent = self.rows[row["ctrl_deps"]]["name"]
            if "::" not in row["name"] or self._is_inside_op(row):
                continue
            if parent.startswith(_NAMED):
                self._name(parent.removeprefix(_NAMED), row["inputs"])
            else:
                self._add(row)

    def _is_inside_op(self, row: dict[str, Any]) -> bool:
        parent = self.rows[row["ctrl_deps"]]
        return "::" in parent["name"] and "|" not in parent["name"]

    def _scope(self, row: dict[str, Any]) -> str:
        names: list[str] = []
        while row["ctrl_deps"] != row["id"]:
            row = self.rows[row["ctrl_deps"]]
            if row["name"].startswith(_SCOPE):
                names.append(row["name"].removeprefix(_SCOPE))
        return "/".join(reversed(names))

    def _name(self, name: str, inputs: dict[str, list[Any]]) -> None:
        value = self._tensor(
            inputs["values"][0], inputs["types"][0], inputs["shapes"][0], inputs["strides"][0], name
        )
        if not name:
            self.graph._results.append(value)

    def _add(self, row: dict[str, Any]) -> None:
        kind, inputs = row["name"], row["inputs"]
        if kind in _CONVOLUTIONS:  # torch's tracer is below these
            inner = next(
                (
                    r
                    for r in self.rows.values()
                    if r["ctrl_deps"] == row["id"] and r["name"] == "aten::convolution"
                ),
                None,
            )
            if inner is not None:
                kind, inputs = "aten::_convolution", inner["inputs"]
        node = Node(kind, self._scope(row))
        node._inputs = [
            self._argument(value, type, shape, stride, node.scopeName())
            for value, type, shape, stride in zip(*[inputs[key] for key in _COLUMNS])
        ]
        if kind == "aten::_convolution":
            node._inputs += [self._constant(flag, "Bool", node.scopeName()) for flag in _BACK_END_FLAGS]
        self.graph._nodes.append(node)
        outputs = row["outputs"]
        for value, type, shape, stride in zip(*[outputs[key] for key in _COLUMNS]):
            if type.startswith("Tensor("):
                self.values[value[0]] = self.graph._made(node, TensorType(_element(type), shape, stride))
            elif type.startswith("GenericList[Tensor("):
                self._unpack(self.graph._made(node, PlainType("Tensor[]")), value, type, shape, stride)

    def _unpack(self, whole: Value, values: Any, type: str, shapes: Any, strides: Any) -> None:
        """The tensors of a list that a node returned."""
        node = Node("prim::ListUnpack", whole.node().scopeName())
        node._inputs = [whole]
        self.graph._nodes.append(node)
        for value, kind, shape, stride in zip(values, _element_types(type), shapes, strides):
            self.values[value[0]] = self.graph._made(node, TensorType(_element(kind), shape, stride))

    def _argument(self, value: Any, type: str, shape: Any, stride: Any, scope: str) -> Value:
        if type.startswith("Tensor("):
            return self._tensor(value, type, shape, stride)
        if not type.startswith("GenericList["):
            return self._constant(value, type, scope)
        node = Node("prim::ListConstruct", scope)
        kinds = _element_types(type) if value else []
        elements = zip(value, kinds, shape, stride)
        node._inputs = [self._argument(one, kind, size, step, scope) for one, kind, size, step in elements]
        self.graph._nodes.append(node)
        tensors = bool(kinds) and kinds[0].startswith("Tensor(")
        return self.graph._made(node, PlainType("Tensor[]" if tensors else "Any[]"))

    def _tensor(self, value: list[Any], type: str, shape: Any, stride: Any, name: str | None = None) -> Value:
        if value[0] not in self.values:
            kind = TensorType(_element(type), shape, stride)
            self.values[value[0]] = self.graph._made(self.graph._parameters, kind, name=name)
        return self.values[value[0]]

    def _constant(self, value: Any, type: str, scope: str) -> Value:
        node = Node("prim::Constant", scope)
        self.graph._nodes.append(node)
        absent = type == "None"
        return self.graph._made(
            node, PlainType("None" if absent else type.lower()), None if absent else value
        )


def _element(type: str) -> str:
    return type.removeprefix("Tensor(").removesuffix(")")


def _element_types(type: str) -> list[str]:
    """The types of the elements of a list, which all have names without commas."""
    return type.removeprefix("GenericList[").removesuffix("]").split(",")
