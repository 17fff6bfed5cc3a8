"""Memory that forked processes share."""

from __future__ import annotations

import os

import pytest

import mindtorch_v2 as torch


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_writes_to_shared_memory() -> None:
    model = torch.nn.Linear(2, 2)
    view, alias = model.weight.detach().view(-1), model.weight.data
    before = view.tolist()
    model.share_memory()
    assert model.weight.is_shared()
    assert view.tolist() == before
    pid = os.fork()
    if not pid:
        with torch.no_grad():
            model.weight.fill_(7.0)
        os._exit(0)
    os.waitpid(pid, 0)
    assert model.weight.tolist() == [[7.0, 7.0], [7.0, 7.0]]
    assert view.tolist() == [7.0] * 4
    assert alias.tolist() == model.weight.tolist()


def test_shared_memory_stays_as_it_was_for_work_in_this_process() -> None:
    x = torch.arange(6.0).view(2, 3).t().share_memory_()
    assert x.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    x.add_(1)
    assert (x + x).sum().item() == 42.0
    assert torch.empty(0).share_memory_().is_shared()
