"""Ops are searchable: each `aten::<name>` stands literally in a declaration under `_ops`."""

from __future__ import annotations

import ast
import collections
import pathlib
import re
from collections.abc import Iterator

import mindtorch_v2
from mindtorch_v2 import _dispatch

OPS_FOLDER = pathlib.Path(mindtorch_v2.__file__).parent / "_ops"
# A string that starts with `aten::name` or `aten::name.overload`, alone or before the arguments of a schema.
DECLARATION = re.compile(r"(aten|mindtorch)::(\w+)(\.\w+)?(\(|$)")


def declarations() -> Iterator[tuple[str, str, str, bool]]:
    """Qualified name, overload and place of every declaration, and whether it is a schema.

    Other texts name in-place forms and aliases, which their op declares, or the children of an op.
    """
    for path in sorted(OPS_FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                match = DECLARATION.match(node.value)
                if match:
                    namespace, name, overload, end = match.groups(default="")
                    yield f"{namespace}::{name}", overload, f"{path.name}:{node.lineno}", end == "("


def test_every_op_name_stands_literally_in_a_declaration() -> None:
    declared = {name for name, _, _, _ in declarations()}
    registered = {
        f"{op.namespace}::{op.name}" for op in _dispatch.BY_UID if op.namespace in ("aten", "mindtorch")
    }
    assert len(registered) > 1000
    assert sorted(registered - declared) == []


def test_no_overload_is_declared_twice() -> None:
    places = collections.defaultdict(list)
    for name, overload, place, is_schema in declarations():
        # forms that write to `out` have no name of their own: several ops declare the one that they call
        if is_schema and not overload.endswith("out"):
            places[name + overload].append(place)
    assert {name: twice for name, twice in places.items() if len(twice) > 1} == {}
