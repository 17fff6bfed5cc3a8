"""torch.ops: packets and overloads as objects."""

from __future__ import annotations

import copy
import pickle

import pytest

import mindtorch_v2 as torch


@pytest.mark.parametrize(
    "op", [torch.ops.aten.mm, torch.ops.aten.mm.default, torch.ops.aten.add.Scalar], ids=str
)
def test_a_copy_of_an_op_is_the_op_itself(op: object) -> None:
    assert copy.copy(op) is op
    assert copy.deepcopy({"op": [op]})["op"][0] is op
    assert pickle.loads(pickle.dumps(op)) is op
