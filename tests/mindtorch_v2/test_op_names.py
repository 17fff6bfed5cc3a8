"""Ops are searchable: each `aten::<name>` stands literally in a declaration under `_ops`."""

from __future__ import annotations

import ast
import collections
import pathlib
import re
from collections.abc import Iterator
from typing import TypeGuard

import mindtorch_v2
from mindtorch_v2 import _dispatch

OPS_FOLDER = pathlib.Path(mindtorch_v2.__file__).parent / "_ops"
# A string that starts with `aten::name` or `aten::name.overload`, alone or before the arguments of a schema.
DECLARATION = re.compile(r"(aten|mindtorch)::(\w+)(\.\w+)?(\(|$)")


def declarations() -> Iterator[tuple[str, str, str]]:
    """Qualified name, overload and place of every declaration."""
    for path in sorted(OPS_FOLDER.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        children = {id(call.args[0]) for call in ast.walk(tree) if _is_child(call)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in children:
                match = DECLARATION.match(node.value)
                if match:
                    namespace, name, overload, _ = match.groups(default="")
                    yield f"{namespace}::{name}", overload, f"{path.name}:{node.lineno}"


def _is_child(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether this is `child("aten::name", ...)`, which names an op that is declared elsewhere."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "child"


def test_every_op_name_stands_literally_in_a_declaration() -> None:
    declared = {name for name, _, _ in declarations()}
    registered = {
        f"{op.namespace}::{op.name}" for op in _dispatch.BY_UID if op.namespace in ("aten", "mindtorch")
    }
    assert len(registered) > 1000
    assert sorted(registered - declared) == []


def test_no_overload_is_declared_twice() -> None:
    places = collections.defaultdict(list)
    for name, overload, place in declarations():
        # forms that write to `out` have no name of their own: several ops declare the one that they call
        if not overload.endswith("out"):
            places[name + overload].append(place)
    assert {name: twice for name, twice in places.items() if len(twice) > 1} == {}
