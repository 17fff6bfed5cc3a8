"""Nodes of the graph and hooks on what they save, against what torch showed."""

from __future__ import annotations

import pytest
from autograd_steps import RECORDED, shown, steps

import mindtorch_v2 as torch
from mindtorch_v2.autograd import anomaly_mode, graph


def leaf(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize(("program", "label"), steps("graph"))
def test_a_step_shows_what_torch_showed(program: str, label: str) -> None:
    assert shown(program)[label] == RECORDED[program][label]


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


def test_hooks_of_saved_tensors_can_be_pushed_and_popped_by_hand():
    seen = []
    torch.autograd._push_saved_tensors_default_hooks(lambda t: seen.append(t.shape) or t, lambda t: t)
    x = torch.ones(3, requires_grad=True)
    y = x * x
    torch.autograd._pop_saved_tensors_default_hooks()
    (x * x).sum()
    assert len(seen) == 2
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
