"""TensorBoard's graph of a module: the ops of one call, under the names of the modules that called them."""

from __future__ import annotations

from typing import Any

from tensorboard.compat.proto.attr_value_pb2 import AttrValue  # type: ignore[import-not-found,unused-ignore]
from tensorboard.compat.proto.graph_pb2 import GraphDef  # type: ignore[import-not-found,unused-ignore]
from tensorboard.compat.proto.node_def_pb2 import NodeDef  # type: ignore[import-not-found,unused-ignore]
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto  # type: ignore[import-not-found,unused-ignore]
from tensorboard.compat.proto.versions_pb2 import VersionDef  # type: ignore[import-not-found,unused-ignore]

import mindtorch_v2 as torch
from mindtorch_v2._C import _get_tracing_state
from mindtorch_v2.jit._trace_graph import Value, _get_trace_graph

__all__ = ["graph"]


def graph(model: Any, args: Any, verbose: bool = False, use_strict_trace: bool = True) -> GraphDef:
    """Call a module once; the graph of its ops."""
    hooks = []
    scopes = {"": type(model).__name__}
    for path, module in model.named_modules():
        parent, _, name = path.rpartition(".")
        if path:
            scopes[path] = f"{scopes[parent]}/{type(module).__name__}[{name}]"
        hooks += _scope_hooks(module, f"{type(module).__name__}[{name}]" if path else scopes[""])
    try:
        with torch.no_grad():
            traced, _ = _get_trace_graph(model, args if isinstance(args, tuple) else (args,))
    finally:
        for hook in hooks:
            hook.remove()
    if verbose:
        print(traced)  # noqa: T201  (asked for)
    return GraphDef(node=_nodes(traced, scopes), versions=VersionDef(producer=22))


def _scope_hooks(module: Any, name: str) -> list[Any]:
    """Name the nodes of a module's calls."""

    def enter(module: Any, inputs: Any) -> None:
        _get_tracing_state().push_scope(name)

    def leave(module: Any, inputs: Any, outputs: Any) -> None:
        _get_tracing_state().pop_scope()

    return [module.register_forward_pre_hook(enter), module.register_forward_hook(leave)]


def _nodes(traced: Any, scopes: dict[str, str]) -> list[NodeDef]:
    names: dict[Value, str] = {}
    rows: list[NodeDef] = []
    used = {value for node in traced.nodes() for value in node.inputs()} | set(traced.outputs())
    for value in traced.inputs():
        if value not in used:
            continue
        path, _, attribute = value.debugName().rpartition(".")
        if path == "input" or path not in scopes:
            names[value] = f"input/{value.debugName()}"
            rows.append(_node(names[value], "IO Node", [], value))
        else:
            names[value] = f"{scopes[path]}/{attribute}/{value.debugName()}"
            rows.append(_node(names[value], "prim::GetAttr", [], value, f"{{ name :  {attribute} }}"))
    for node in traced.nodes():
        for value in node.outputs():
            names[value] = "/".join(part for part in (node.scopeName(), value.debugName()) if part)
        constant = node.output().toIValue() if node.kind() == "prim::Constant" else None
        attributes = "{}" if constant is None else f"{{ value : {constant}}}"
        inputs = [names[value] for value in node.inputs()]
        rows.extend(_node(names[value], node.kind(), inputs, value, attributes) for value in node.outputs())
    for number, value in enumerate(traced.outputs(), 1):
        rows.append(_node(f"output/output.{number}", "IO Node", [names[value]], value))
    return rows


def _node(name: str, kind: str, inputs: list[str], value: Value, attributes: str = "") -> NodeDef:
    content = {"attr": AttrValue(s=attributes.encode())}
    if value.isCompleteTensor():
        dims = [TensorShapeProto.Dim(size=size) for size in value.type().sizes()]
        content["_output_shapes"] = AttrValue(list=AttrValue.ListValue(shape=[TensorShapeProto(dim=dims)]))
    return NodeDef(name=name, op=kind, input=inputs, attr=content)
