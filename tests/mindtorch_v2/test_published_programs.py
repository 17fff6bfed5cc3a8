"""What published programs were found to need: one short excerpt a test, with what torch gives."""

from __future__ import annotations

import mindtorch_v2 as torch


def test_gradient_of_a_sum_of_one_number_can_be_written() -> None:
    p = torch.nn.Parameter(torch.ones(1))
    p.sum().backward()
    torch.add(p.grad, 1, out=p.grad)
    assert p.grad.tolist() == [2.0]
    p.grad = None
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale(p.sum()).backward()
    scaler.unscale_(torch.optim.SGD([p], lr=0.1))
    assert p.grad.tolist() == [1.0]
