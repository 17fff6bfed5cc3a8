"""The ops of networks, from activations to recurrent layers, against rows recorded from torch.

Modules of _ops: attention, average_pooling, convolution, distances, embedding, embedding_bag, loss,
margin_loss, max_pooling, normalization, piecewise_activations, rnn, smooth_activations, softmax, transformer.
"""

from __future__ import annotations

from typing import Any

import pytest
import recorded_rows

import mindtorch_v2 as torch


@pytest.mark.parametrize(("setup", "line", "fact"), recorded_rows.recorded("nn_op"))
def test_an_op_of_a_network_gives_what_torch_gives(setup: str, line: str, fact: Any) -> None:
    recorded_rows.check(torch, setup, line, fact, scaled=True)


@pytest.mark.parametrize("recording", [False, True])
@pytest.mark.parametrize("function", [torch.relu, torch.relu_, torch.nn.functional.hardtanh])
def test_activations_refuse_bools_recorded_or_not(function: Any, recording: bool) -> None:
    context = torch.profiler.profile() if recording else torch.no_grad()
    with context, pytest.raises(RuntimeError, match="not supported"):
        function(torch.ones(3, dtype=torch.bool))


@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False}])
def test_an_lstm_in_float32_can_be_differentiated_twice(options: dict) -> None:
    results = []
    for dtype in (torch.float32, torch.float64):  # in float64 every step is made of ops
        torch.manual_seed(0)
        layer = torch.nn.LSTM(4, 3, **options).to(dtype)
        x = torch.linspace(-1, 1, 40).reshape(5, 2, 4).to(dtype).requires_grad_()
        y, (hidden, cell) = layer(x)
        tensors = [x, *layer.parameters()]
        value = y.square().sum() + hidden.sum() + cell.pow(3).sum()
        first = torch.autograd.grad(value, tensors, create_graph=True)
        second = torch.autograd.grad(sum(g.square().sum() for g in first), tensors)
        results.append([g.detach().double() for g in (*first, *second)])
    for ours, expected in zip(*results):
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-4)


def test_nan_violates_no_margin_of_a_multilabel_loss() -> None:
    scores = torch.tensor([[1.0, float("nan"), 0.3, 0.2], [0.5, 0.1, 0.2, 0.9]])
    labels = torch.tensor([[0, 2, -1, 1], [3, 0, -1, 0]])
    losses = torch.nn.functional.multilabel_margin_loss(scores, labels, reduction="none")
    torch.testing.assert_close(losses, torch.tensor([0.275, 0.45]))  # torch's
