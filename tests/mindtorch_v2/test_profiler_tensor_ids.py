"""Ids of tensors and their memory in a recording: what shares one, what gets a new one."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mindtorch_v2 as torch
from mindtorch_prof.torch_api import basic_evaluation as _utils
from mindtorch_v2._C import _profiler as C
from mindtorch_v2.profiler import profile

ALL = {"record_shapes": True, "profile_memory": True, "with_stack": True}
TRACKED = {"record_shapes": True, "profile_memory": True}


def walk(events: Any) -> Iterator[Any]:
    return _utils.traverse_dfs(events)


def tree_of(prof: Any) -> list[Any]:
    return prof.profiler.kineto_results.experimental_event_tree()


def ops(prof: Any, name: str) -> list[Any]:
    return [event for event in walk(tree_of(prof)) if event.name == name]


def test_tensors_and_addresses_are_those_that_the_program_saw_while_recording():
    from mindtorch_prof.torch_api.basic_evaluation import traverse_dfs

    seen = []
    with profile(profile_memory=True, record_shapes=True) as prof:
        for size in (3, 4, 5):
            x = torch.ones(size)
            seen.append((x._cdata, x.untyped_storage().data_ptr()))
            x.sin()
            x.resize_(9)
            seen.append((x._cdata, x.data_ptr()))
            x.sin()
            del x
    nodes = traverse_dfs(prof.profiler.kineto_results.experimental_event_tree())
    met = [node.extra_fields.inputs[0] for node in nodes if node.name == "aten::sin"]
    assert [(tensor.impl_ptr, tensor.storage_data_ptr) for tensor in met] == seen
    assert seen[0][0] == seen[1][0] != seen[2][0]


def test_an_id_follows_a_tensor_through_views_and_writes() -> None:
    with profile(**TRACKED) as prof:
        x = torch.ones(4, 3)
        y = x.view(12)
        y.add_(y)
        x.t().mul_(x.t())
    met = {
        t.id
        for e in walk(tree_of(prof))
        if e.tag.name == "TorchOp"
        for t in e.extra_fields.inputs
        if getattr(t, "id", None) is not None  # synthetic ops know no tensors
    }
    assert met == {0}
    births = [
        e.extra_fields
        for e in walk(tree_of(prof))
        if e.tag.name == "Allocation" and e.extra_fields.alloc_size > 0
    ]
    assert births[0].id == 0
    assert births[0].ptr == x.untyped_storage().data_ptr()


def test_memory_that_is_used_again_gets_a_new_id() -> None:
    with profile(**TRACKED) as prof:
        for _ in range(100):
            torch.ones(1).neg_()
            gc.collect(0)
    inputs = [e.extra_fields.inputs[0] for e in ops(prof, "aten::neg_")]
    for field in ("id", "allocation_id", "impl_ptr"):
        assert len({getattr(t, field) for t in inputs}) == 100


def test_set_and_resize_join_the_memory_before_and_after() -> None:
    with profile(**TRACKED) as prof:
        x, y = torch.ones(4, 3), torch.ones(4, 3)
        x.mul_(x)
        x.set_(y)
        x.add_(x)
        z = torch.ones(2).neg_()
        z.resize_(40)
        z.zero_()
    (before,), (after,), (add,) = (ops(prof, f"aten::{name}_") for name in ("mul", "zero", "add"))
    one, other = before.extra_fields.inputs[0], add.extra_fields.inputs[0]
    assert one.id == other.id
    assert one.allocation_id != other.allocation_id
    assert other.storage_data_ptr == y.untyped_storage().data_ptr()
    assert one.impl_ptr == other.impl_ptr
    first, last = ops(prof, "aten::neg_")[0].extra_fields.inputs[0], after.extra_fields.inputs[0]
    assert first.id == last.id != one.id
    assert first.allocation_id != last.allocation_id


def test_addresses_of_what_is_there_are_the_tensors_own() -> None:
    x, y = torch.ones(1), torch.ones(1)
    with profile(**ALL) as prof:
        torch.stack((x, y))
    (stack,) = ops(prof, "aten::stack")
    assert [t.storage_data_ptr for t in stack.extra_fields.inputs[0]] == [
        x.untyped_storage().data_ptr(),
        y.untyped_storage().data_ptr(),
    ]


def test_ids_are_unique_over_several_recordings() -> None:
    x = torch.ones(3)
    found = []
    for _ in range(2):
        with profile(**TRACKED) as prof:
            x.add(x)
        tensor = ops(prof, "aten::add")[0].extra_fields.inputs[0]
        found.append((tensor.id, tensor.allocation_id, tensor.storage_data_ptr))
    assert found == [(0, 1, x.data_ptr())] * 2


def test_one_recording_inside_another_keeps_both_right() -> None:
    with profile(**TRACKED) as outer:
        x = torch.ones(3)
        x.mul_(x)
        with profile(**TRACKED) as inner:
            y = x.add(x)
            y.mul_(y)
        x.mul_(x)
        y.sub_(y)
    first, last = (e.extra_fields.inputs[0] for e in ops(outer, "aten::mul_"))
    assert first.id == last.id
    assert ops(outer, "aten::sub_")[0].extra_fields.inputs[0].id != first.id
    assert (
        ops(inner, "aten::mul_")[0].extra_fields.inputs[0].id
        != ops(inner, "aten::add")[0].extra_fields.inputs[0].id
    )


def test_nothing_recorded_keeps_a_tensor_or_a_module_alive() -> None:
    with profile(**ALL) as prof:
        model = torch.nn.Linear(2, 2)
        y = model(torch.ones(1, 2))
        gone = [weakref.ref(model), weakref.ref(y), weakref.ref(y.untyped_storage())]
        del model, y
        gc.collect()
        assert [reference() for reference in gone] == [None] * 3
    assert ops(prof, "aten::linear")


def test_numbers_do_not_leave_with_a_copy_or_a_file(tmp_path: Path) -> None:
    import copy
    import pickle

    x = torch.ones(3)
    with profile(**TRACKED):
        x.add(x)
    assert x._tensor_id
    for twin in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert twin._tensor_id == 0
    torch.save(x, tmp_path / "x.pt")
    assert torch.load(tmp_path / "x.pt")._tensor_id == 0


def test_all_threads_are_told_apart() -> None:
    settings = {"experimental_config": C._ExperimentalConfig(profile_all_threads=True), **TRACKED}
    with profile(**settings) as prof:
        x = torch.ones(3)
        worker = threading.Thread(target=lambda: x.mul_(x))
        worker.start()
        worker.join()
        x.add_(x)
    (mul,), (add,) = ops(prof, "aten::mul_"), ops(prof, "aten::add_")
    assert mul.start_tid != add.start_tid
    assert mul.extra_fields.inputs[0].id == add.extra_fields.inputs[0].id


def test_shapes_alone_tell_tensors_and_addresses_apart() -> None:
    x = torch.ones(3)
    with profile(record_shapes=True) as prof:
        y = x + x
        y.reshape(3, 1) * 2
    tensors = [
        [tensor for tensor in event.extra_fields.inputs if hasattr(tensor, "impl_ptr")]
        for event in prof.profiler.kineto_results.experimental_event_tree()
    ]
    (first, second), (added,), (viewed, _) = tensors
    assert first.impl_ptr == second.impl_ptr
    assert first.storage_data_ptr == x.data_ptr()
    assert added.storage_data_ptr == viewed.storage_data_ptr == y.data_ptr()
    assert len({first.impl_ptr, added.impl_ptr, viewed.impl_ptr}) == 3


def test_memory_at_a_reused_address_is_other_memory() -> None:
    with profile(record_shapes=True) as prof:
        for _ in range(20):  # NumPy allocates each array where the one before was
            torch.from_numpy(np.ones(4)) + 1
    first = [
        event.extra_fields.inputs[0]
        for event in prof.profiler.kineto_results.experimental_event_tree()
        if event.name == "aten::add"
    ]
    assert len({tensor.impl_ptr for tensor in first}) == 20
    storages = prof.profiler._results.trace.tensor_ids.storages
    assert len(np.unique(storages[:, 1])) >= 20
