"""Data flow: sizes, keys and edges of the memory that ops touch."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_prof.torch_api import data_flow
from mindtorch_prof.torch_api.data_flow import TensorKey
from mindtorch_v2.profiler import profile

ALL = {"record_shapes": True, "profile_memory": True, "with_stack": True}


def test_the_memory_profilers_tree_is_sorted_by_time() -> None:
    with profile(**ALL) as prof:
        torch.ones(2).add(torch.ones(2))
    tree = data_flow.OpTree(prof.profiler.kineto_results)
    times = [event.start_time_ns for event in tree.sorted_nodes]
    assert times == sorted(times)
    assert set(tree.dfs()) == set(tree.sorted_nodes)


def test_gradients_and_parameters_are_taken_from_modules_optimizers_and_autograd() -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profile(**ALL) as prof:
        model(torch.ones(4, 3)).sum().backward()
        optimizer.step()
    tree = data_flow.OpTree(prof.profiler.kineto_results)
    parameters = {p.storage.ptr for e in tree.dfs() for p in data_flow.extract_parameters(e)}
    assert parameters == {p.untyped_storage().data_ptr() for p in model.parameters()}
    gradients = {g.storage.ptr for e in tree.dfs() for _, g in data_flow.extract_gradients(e)}
    assert gradients == {p.grad.untyped_storage().data_ptr() for p in model.parameters()}


def test_sizes_are_those_of_the_memory_not_of_the_view() -> None:
    x = torch.ones(10, 4)
    with profile(**ALL) as prof:
        x[2:4].add(x[2:4])
        y = torch.ones(5)
        y[:2].add_(y[:2])
    sizes = data_flow.SizeMap(data_flow.OpTree(prof.profiler.kineto_results))
    assert sorted(sizes._values.values())[:2] == [20, 160]
    with pytest.raises(KeyError):
        _ = sizes[TensorKey(torch.device("cpu"), 99, data_flow._Storage(1, 2))]


def test_keys_are_told_apart_by_allocation_and_sorted_by_id() -> None:
    cpu = torch.device("cpu")
    one, other = (TensorKey(cpu, number, data_flow._Storage(1 << 40, number + 1)) for number in (0, 1))
    assert one < other
    assert one != other
    assert one == TensorKey(cpu, 0, data_flow._Storage(1 << 40, 1))
    assert repr(one) == "id=0:      0x10000000000 (1)   (cpu)"
    assert TensorKey._make(None, 1, 1, cpu) is None


def test_edges_say_what_is_taken_and_given_back() -> None:
    assert data_flow.DataFlowEdge().is_allocation
    assert not data_flow.DataFlowEdge(0).is_allocation
    assert data_flow.DataFlowEdge(0, None).is_deletion
