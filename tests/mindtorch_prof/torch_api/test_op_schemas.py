"""Schemas of ops: which inputs an op may write to."""

from __future__ import annotations

from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_prof.torch_api.basic_evaluation import traverse_dfs
from mindtorch_prof.torch_api.data_flow import OpTree
from mindtorch_prof.torch_api.op_schemas import SchemaMatcher, mutable
from mindtorch_v2.profiler import profile


def test_schemas_say_what_an_op_may_write_to() -> None:
    with profile(record_shapes=True, profile_memory=True) as prof:
        x = torch.ones(3)
        x.add_(x)
        x.copy_(x)
        torch.cat([x, x])
        x.mul(2.0)
        x.gt(1)
        torch.empty(0).sub(torch.empty(0))
    matcher = SchemaMatcher
    mutable_inputs = {
        event.name: matcher.inputs_are_mutable(event.extra_fields)
        for event in OpTree(prof.profiler.kineto_results).sorted_nodes
        if event.name.startswith("aten::")
    }
    assert mutable_inputs["aten::add_"] == (True, False, False)
    assert mutable_inputs["aten::copy_"] == (True, False, False)
    assert mutable_inputs["aten::cat"] == (False, False)
    assert mutable_inputs["aten::mul"] == mutable_inputs["aten::gt"] == (False, False)
    assert mutable_inputs["aten::sub"] == (None, None, None)  # as in torch, what has no memory fits no schema
    with profile(record_shapes=True) as prof:
        x.add_(x)
    (add_,) = OpTree(prof.profiler.kineto_results).sorted_nodes
    assert matcher.inputs_are_mutable(add_.extra_fields) == (None, None, None)
    assert matcher.lookup_schemas("forward") is None
    assert matcher.lookup_schemas("aten::nothing") == ()
    add, *_ = matcher.lookup_schemas("aten::add_") or ()
    assert repr(add) == "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)"
    assert (add.name, add.overload_name, add.is_mutable) == ("aten::add_", "Tensor", True)
    own, other, alpha = add.arguments
    assert own.alias_info is not None
    assert own.alias_info.is_write
    assert (other.alias_info, alpha.name, alpha.kwarg_only, alpha.default_value) == (None, "alpha", True, 1)
    mul_out = next(schema for schema in matcher.lookup_schemas("aten::mul") or () if "out" in repr(schema))
    assert [a.alias_info and a.alias_info.is_write for a in mul_out.arguments] == [None, None, True]
    assert matcher._types_match(2, "Scalar")
    assert not matcher._types_match(2, "Tensor")


@pytest.mark.parametrize(
    ("name", "kinds", "written"),
    [
        ("aten::add_", ("T", "T", "S"), (True, False, False)),
        ("aten::add", ("T", "T", "S"), (False, False, False)),
        ("aten::add", ("L", "T", "S"), (None, None, None)),
        ("aten::gt", ("T", "S"), (False, False)),
        ("aten::nothing", ("T",), (None,)),
        ("forward", ("T",), (None,)),
    ],
)
def test_inputs_of_these_kinds_are_written_to_as_the_schemas_that_fit_say(
    name: str, kinds: tuple[str, ...], written: tuple[bool | None, ...]
) -> None:
    assert mutable(name, kinds) == written


def test_schemas_are_torchs_and_say_that_a_result_is_written() -> None:
    x = torch.ones(2)
    with profile(record_shapes=True, profile_memory=True) as prof:
        torch.sin(x, out=torch.empty_like(x))
        x.mul(x)
        (x.requires_grad_() * 2).sum().backward()
    fields: dict[str, Any] = {}
    for node in traverse_dfs(prof.profiler.kineto_results.experimental_event_tree()):
        if node.name in ("aten::sin", "aten::mul", "detach"):
            fields.setdefault(node.name, node.extra_fields)
    overloads = {
        name: [s.overload_name for s in SchemaMatcher.match_schemas(f)] for name, f in fields.items()
    }
    assert overloads == {"aten::sin": ["out"], "aten::mul": ["Tensor"], "detach": []}
    assert SchemaMatcher.inputs_are_mutable(fields["aten::sin"]) == (False, True)
    assert SchemaMatcher.inputs_are_mutable(fields["detach"]) == (None,)
