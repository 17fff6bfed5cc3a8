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
