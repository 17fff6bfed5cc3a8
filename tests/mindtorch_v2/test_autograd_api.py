"""backward, grad, hooks and modes: the rules a user meets, and side by side with what torch showed."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.autograd import anomaly_mode, forward_ad, graph

sys.path.insert(0, str(Path(__file__).parent / "facts"))
from autograd_steps import RECORDED, shown, steps


def leaf(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize(("program", "label"), steps("api", "graph"))
def test_a_step_shows_what_torch_showed(program: str, label: str) -> None:
    assert shown(program)[label] == RECORDED[program][label]


# ------------------------------------------------------------------------------- backward and grad


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


def test_batched_gradients_are_refused_clearly() -> None:
    x = leaf(1, 2)
    with pytest.raises(RuntimeError, match="is_grads_batched=True"):
        torch.autograd.grad(x * 2, x, torch.eye(2, dtype=torch.float64), is_grads_batched=True)


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


# ------------------------------------------------------------------------------- anomaly mode


class _Nan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        return g * float("nan")


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_anomaly_mode_shows_the_forward_call_behind_a_nan() -> None:
    with torch.autograd.detect_anomaly():
        y = _Nan.apply(leaf(1, 2))  # the line that the warning shows
        with (
            pytest.warns(UserWarning, match="Error detected in _NanBackward") as caught,
            pytest.raises(
                RuntimeError, match="Function '_NanBackward' returned nan values in its 0th output"
            ),
        ):
            y.sum().backward()
    assert "the line that the warning shows" in str(caught[0].message)
    assert not torch.is_anomaly_enabled()


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_anomaly_mode_says_when_forward_was_not_watched() -> None:
    y = _Nan.apply(leaf(1, 2))
    with (
        torch.autograd.detect_anomaly(),
        pytest.warns(UserWarning, match="No forward pass information available"),
        pytest.raises(RuntimeError, match="nan values"),
    ):
        y.sum().backward()


def test_nan_may_pass_when_only_errors_are_looked_for() -> None:
    x = leaf(1, 2)
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        _Nan.apply(x).sum().backward()
    assert x.grad.isnan().all()
    assert anomaly_mode.Switches.saved_hooks == 0


# ------------------------------------------------------------------------------- forward mode


def test_tangents_travel_forward() -> None:
    primal, tangent = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0])
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(primal, tangent)
        out, moved = forward_ad.unpack_dual(dual * dual)
    torch.testing.assert_close(out, primal * primal)
    torch.testing.assert_close(moved, 2 * primal * tangent)
    assert forward_ad.unpack_dual(primal).tangent is None


def test_turning_gradients_off_inside_a_dual_level_is_refused() -> None:
    with forward_ad.dual_level():
        with pytest.raises(RuntimeError, match="inside a dual level"), torch.no_grad():
            pass
        with pytest.raises(RuntimeError, match="Nested forward mode AD"):
            forward_ad.enter_dual_level()


# ------------------------------------------------------------------------------- saved tensors


def test_hooks_on_saved_tensors_stop_costing_when_nobody_uses_them() -> None:
    x = leaf(1, 2)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x * x
    assert anomaly_mode.Switches.saved_hooks == 0
    y.sum().backward()
    assert x.grad.tolist() == [2, 4]


def test_lists_of_saved_tensors_go_through_the_hooks_too() -> None:
    packed = []
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    index = torch.tensor([0, 2])
    with graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        y = x[index]
    assert any(t is index for t in packed)
    y.sum().backward()
    assert x.grad.sum().item() == 8
