"""Ids of tensors in event trees: sparse tensors and their parts."""

from __future__ import annotations

from event_trees import ops

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile

TRACKED = {"record_shapes": True, "profile_memory": True}


def test_sparse_tensors_have_a_shape_and_no_memory_of_their_own() -> None:
    s = torch.eye(2, 3).to_sparse()
    with profile(**TRACKED) as prof:
        _ = s + s
    one, other, alpha = ops(prof, "aten::add")[0].extra_fields.inputs
    assert (one.sizes, one.strides, one.layout, one.dtype) == ([2, 3], [], torch.sparse_coo, torch.float32)
    assert one.storage_data_ptr is None
    assert one.impl_ptr == other.impl_ptr
    assert one.id == other.id is not None
    assert alpha == 1


def test_parts_of_a_sparse_tensor_keep_their_ids() -> None:
    s = torch.eye(2, 3).to_sparse()
    with profile(**TRACKED) as prof:
        s.values().mul_(s.values())
        s.values().relu()
        s.indices().add(s.indices())
        s.indices().neg()
    (mul,), (relu,), (add,), (neg,) = (ops(prof, f"aten::{name}") for name in ("mul_", "relu", "add", "neg"))
    values = {t.id for op in (mul, relu) for t in op.extra_fields.inputs}
    indices = {t.id for op in (add, neg) for t in op.extra_fields.inputs[:2]}
    assert len(values) == len(indices) == 1
    assert values != indices
