"""The ops of networks, from activations to recurrent layers, against rows recorded from torch.

Modules of _ops: activation, attention, convolution, distances, embedding, embedding_bag, loss, margin_loss,
normalization, pooling, rnn, softmax, transformer.
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
