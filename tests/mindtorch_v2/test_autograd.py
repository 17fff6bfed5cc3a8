"""backward, grad and hooks on tensors: the rules a user meets, and what torch showed."""

from __future__ import annotations

import gc
import sys
import threading
import weakref

import pytest
from autograd_steps import RECORDED, shown, steps

import mindtorch_v2 as torch


def leaf(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize(("program", "label"), steps("api"))
def test_a_step_shows_what_torch_showed(program: str, label: str) -> None:
    assert shown(program)[label] == RECORDED[program][label]


def test_backward_of_a_non_scalar_raises() -> None:
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (leaf(1, 2) * 2).backward()


def test_the_default_gradient_of_a_scalar_is_one() -> None:
    x = leaf(3)
    (x * x).sum().backward()
    assert x.grad.tolist() == [6]


def test_a_graph_can_be_walked_twice_only_when_it_is_retained() -> None:
    x = leaf(1, 2)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4, 8]
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_retain_grad_keeps_the_gradient_of_a_non_leaf() -> None:
    x = leaf(1, 2)
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward()
    assert y.grad.tolist() == [4, 8]
    assert y.retains_grad
    assert not y.is_leaf


def test_detach_shares_memory_without_history_and_detach_forgets_in_place() -> None:
    x = leaf(1, 2)
    y = x * 2
    alone = y.detach()
    assert not alone.requires_grad
    assert alone.data_ptr() == y.data_ptr()
    assert y.detach_() is y
    assert y.is_leaf
    assert not y.requires_grad


def test_a_tensor_hook_replaces_the_gradient_until_it_is_removed() -> None:
    x = leaf(1, 2)
    handle = x.register_hook(lambda g: g * 10)
    x.sum().backward()
    handle.remove()
    x.sum().backward()
    assert x.grad.tolist() == [11, 11]


def test_grad_touches_no_leaf_and_refuses_unused_inputs_unless_allowed() -> None:
    x, other = leaf(1, 2), leaf(3)
    (found,) = torch.autograd.grad((x * x).sum(), x)
    assert found.tolist() == [2, 4]
    assert x.grad is None
    with pytest.raises(
        RuntimeError, match="The differentiated Tensor at index 1 appears to not have been used in the graph"
    ):
        torch.autograd.grad(x.sum(), [x, other])
    assert torch.autograd.grad(x.sum(), [x, other], allow_unused=True)[1] is None
    assert torch.autograd.grad(x.sum(), [x, other], materialize_grads=True)[1].tolist() == [0]


@pytest.mark.parametrize("depth", [10_000, 100_000])
def test_deep_graphs_run_and_are_freed_without_recursion(depth: int) -> None:
    x = leaf(1)
    y = x
    for _ in range(depth):
        y = y + 1
    (gradient,) = torch.autograd.grad(y.sum(), x, retain_graph=True)
    assert gradient.tolist() == [1]
    del y


def test_threads_differentiate_at_once() -> None:
    x = leaf(1, 2)
    found: list[list[float]] = []

    def work() -> None:
        found.extend(torch.autograd.grad((x * x).sum(), x)[0].tolist() for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[2, 4]] * 80


def test_gradients_share_memory_neither_with_each_other_nor_with_what_was_passed() -> None:
    x, y = leaf(1, 2), leaf(3, 4)
    given = torch.ones(2, dtype=torch.float64)
    (x + y).backward(given)
    x.grad.add_(1)
    assert y.grad.tolist() == [1, 1]
    assert given.tolist() == [1, 1]


def test_results_die_with_their_last_reference_even_without_the_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        x = leaf(1, 2)
        y = x.exp()
        z = (y * y).sigmoid()
        watched = [weakref.ref(y), weakref.ref(z), weakref.ref(z.grad_fn)]
        z.sum().backward()
        del y, z
        assert [reference() for reference in watched] == [None, None, None]
    finally:
        gc.enable()


def test_a_raising_hook_leaves_the_modes_as_they_were() -> None:
    x = leaf(1, 2)
    y = x * 2
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()
    assert torch.is_grad_enabled()
    assert torch.autograd._current_graph_task_id() == -1


def test_a_profile_function_changes_no_gradient_from_in_place_to_copied() -> None:
    def ops() -> list[str]:
        x, w = leaf(1, 2), leaf(3, 4)
        y = x * w
        with torch.profiler.profile() as prof:
            (y * y + y.exp()).sum().backward()
        return [event.name for event in prof.events()]

    plain = ops()
    sys.setprofile(lambda *_: None)
    try:
        profiled = ops()
    finally:
        sys.setprofile(None)
    assert "aten::add_" in plain
    assert profiled == plain


def test_batched_gradients_are_the_rows_of_a_jacobian() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    unused = torch.ones(2, requires_grad=True)
    y = x * x
    rows = torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True, create_graph=True)[0]
    assert rows.tolist() == [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 6.0]]
    assert torch.autograd.grad(rows.sum(), x)[0].tolist() == [2.0, 2.0, 2.0]
    both = torch.autograd.grad(
        (y, y.sum()), (x, unused), (torch.eye(3), torch.ones(3)), is_grads_batched=True, allow_unused=True
    )
    assert both[0].tolist() == [[4.0, 4.0, 6.0], [2.0, 8.0, 6.0], [2.0, 4.0, 12.0]]
    assert both[1] is None


def test_batches_of_gradients_fit_their_outputs_and_each_other() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * x
    with pytest.raises(RuntimeError, match="a mismatch was detected"):
        torch.autograd.grad(y, x, torch.ones(2, 4), is_grads_batched=True)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        torch.autograd.grad(y, x, is_grads_batched=True)
    with pytest.raises(ValueError, match=r"same size in the mapped dimension, got sizes \[3, 2\]"):
        torch.autograd.grad((y, y.sum()), x, (torch.eye(3), torch.ones(2)), is_grads_batched=True)


@pytest.mark.parametrize("leaf", ["expanded", "with gaps", "transposed"])
def test_each_element_of_a_leaf_has_its_own_gradient_whatever_its_layout(leaf: str) -> None:
    values = {
        "expanded": torch.arange(3.0).expand(2, 3),
        "with gaps": torch.arange(12.0).view(2, 6)[:, ::2],
        "transposed": torch.arange(6.0).view(3, 2).t(),
    }[leaf]
    parameter = torch.nn.Parameter(values)
    assert parameter.stride() == values.stride()
    factors = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    for times in (1, 2):
        (parameter * factors).sum().backward()
        assert torch.equal(parameter.grad, times * factors)
    # as torch's: that of a leaf without gaps and repeats, else contiguous
    assert parameter.grad.stride() == ((1, 2) if leaf == "transposed" else (3, 1))
