"""Fields of event trees: one class per kind of event, read-only."""

from __future__ import annotations

import pytest
from event_trees import tree_of, walk

import mindtorch_v2 as torch
from mindtorch_v2._C import _profiler as C
from mindtorch_v2.profiler import profile

ALL = {"record_shapes": True, "profile_memory": True, "with_stack": True}
TRACKED = {"record_shapes": True, "profile_memory": True}


def test_each_kind_of_event_has_its_own_fields() -> None:
    with profile(**ALL) as prof:
        torch.ones(2, 3).sum()
        len(())
    kinds = {event.tag for event in walk(tree_of(prof))}
    assert kinds == {
        C._EventType.TorchOp,
        C._EventType.Allocation,
        C._EventType.PyCall,
        C._EventType.PyCCall,
    }
    for event in walk(tree_of(prof)):
        tag, fields = event.typed
        assert tag is event.tag
        assert fields is event.extra_fields
        assert type(fields).__name__ == f"_ExtraFields_{tag.name}"
    (call,) = (e for e in walk(tree_of(prof)) if "own_fields" in e.name)
    assert call.extra_fields.callsite.function_name == "test_each_kind_of_event_has_its_own_fields"
    assert call.extra_fields.callsite.file_name.endswith("test_event_tree_fields.py")
    assert call.extra_fields.module is None


def test_fields_are_read_only_and_nobody_else_makes_events() -> None:
    with profile(**TRACKED) as prof:
        torch.ones(2)
    (event, *_) = tree_of(prof)
    with pytest.raises(AttributeError, match=r"has no setter|can't set attribute 'name'"):  # 3.11 on, 3.10
        event.extra_fields.name = "x"
    with pytest.raises(TypeError, match=r"torch._C._profiler._ProfilerEvent: No constructor defined!"):
        C._ProfilerEvent()
    with pytest.raises(TypeError, match=r"torch._C._profiler._TensorMetadata: No constructor defined!"):
        C._TensorMetadata()
