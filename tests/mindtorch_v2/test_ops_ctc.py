"""ctc_loss gives torch's losses, gradients and errors. Facts: `python facts/record_expressions.py ctc`."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import recorded_rows

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F

TOLERANCE = {"torch.float64": (1e-11, 1e-11), "torch.float32": (2e-6, 2e-6)}


@pytest.mark.parametrize(("setup", "line", "fact"), recorded_rows.recorded("ctc"))
def test_ctc_loss_gives_what_torch_gives(setup: str, line: str, fact: Any) -> None:
    recorded_rows.check(torch, setup, line, fact, tolerance=TOLERANCE)


def test_the_loss_is_that_of_all_alignments_counted_one_by_one() -> None:
    steps, labels, target = 5, 3, [1, 2]
    log_probs = torch.from_numpy(np.random.RandomState(0).randn(steps, 1, labels)).log_softmax(2)
    total = 0.0
    for path in itertools.product(range(labels), repeat=steps):
        merged = [label for label, _ in itertools.groupby(path) if label != 0]
        if merged == target:
            total += float(np.exp(sum(log_probs[t, 0, label].item() for t, label in enumerate(path))))
    found = F.ctc_loss(log_probs, torch.tensor([target]), (steps,), (2,), reduction="sum")
    assert found.item() == pytest.approx(-np.log(total), rel=1e-12)


def test_a_second_derivative_is_refused_when_it_is_asked_for() -> None:
    x = torch.zeros(4, 1, 3, requires_grad=True)
    loss = F.ctc_loss(x, torch.tensor([[1, 2]]), (4,), (2,))
    (first,) = torch.autograd.grad(loss, x, create_graph=True)
    with pytest.raises(RuntimeError, match="derivative for aten::_ctc_loss_backward is not implemented"):
        first.sum().backward()
