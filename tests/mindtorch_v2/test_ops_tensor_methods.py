"""Tensors of a subclass."""

from __future__ import annotations

import mindtorch_v2 as torch


def test_a_subclass_shares_memory_and_history() -> None:
    class Mine(torch.Tensor): ...

    x = torch.ones(3, requires_grad=True)
    made = (x * 2).as_subclass(Mine)
    assert type(made) is Mine
    made.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    plain = torch.ones(3)
    plain.as_subclass(Mine).detach().zero_()
    assert plain.sum() == 0
