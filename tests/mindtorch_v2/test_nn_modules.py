"""Every layer of nn and function of nn.functional gives what torch was recorded to give.

Text (repr, errors, warnings), state, seeded weights, results and gradients; rows and recorder are in facts/.
"""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import fact_files
import nn_rows
import pytest

import mindtorch_v2 as torch

RECORDED = fact_files.read("nn_layers.json.gz")

TEXTS = list(RECORDED["texts"].items())

GROUP = 40


@pytest.mark.parametrize("row", RECORDED["layers"])
def test_a_layer_has_torchs_repr_weights_results_and_gradients(row: str) -> None:
    nn_rows.assert_same(nn_rows.run_layer(torch, row), RECORDED["layers"][row], row)


@pytest.mark.parametrize("first", range(0, len(TEXTS), GROUP))
def test_errors_warnings_and_reprs_read_as_torchs(first: int) -> None:
    differing = {
        row: (ours, theirs)
        for row, theirs in TEXTS[first : first + GROUP]
        if (ours := nn_rows.run_text(torch, row)) != theirs
    }
    assert not differing


def test_every_public_layer_has_a_row() -> None:
    rows = "\n".join(RECORDED["layers"])
    bases = {"Module", "RNNBase", "RNNCellBase", "Container", "NLLLoss2d", "LinearCrossEntropyOptions"}
    containers = {"ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"}
    missing = [n for n in torch.nn.modules.__all__ if n not in bases | containers and f"nn.{n}" not in rows]
    assert missing == []


@pytest.mark.parametrize(
    "make",
    [
        lambda nn: nn.LSTM(3, 4, num_layers=2, bidirectional=True),
        lambda nn: nn.MultiheadAttention(4, 2),
        lambda nn: nn.BatchNorm1d(3),
        lambda nn: nn.Transformer(4, 2, 1, 1, 4, batch_first=True),
    ],
)
def test_a_layer_survives_deepcopy_and_pickle(make: Any) -> None:
    layer = make(torch.nn)
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert repr(twin) == repr(layer)
        theirs = dict(layer.named_parameters())
        for name, parameter in twin.named_parameters():
            assert parameter is not theirs[name]
            assert torch.equal(parameter, theirs[name])


def test_a_recurrent_layer_uses_weights_that_were_replaced() -> None:
    lstm = torch.nn.LSTM(3, 4)
    x = torch.ones(2, 1, 3)
    before = lstm(x)[0]
    lstm.weight_ih_l0 = torch.nn.Parameter(torch.zeros(16, 3))
    assert not torch.equal(lstm(x)[0], before)
    lstm.double()
    assert lstm(x.double())[0].dtype == torch.float64
    twin = copy.deepcopy(lstm)
    with torch.no_grad():
        twin.weight_hh_l0.add_(1.0)
    assert not torch.equal(twin(x.double())[0], lstm(x.double())[0])


def test_signatures_of_layers_take_the_arguments_by_torchs_names() -> None:
    parameters = inspect.signature(torch.nn.Conv2d).parameters
    assert list(parameters) == [
        "in_channels",
        "out_channels",
        "kernel_size",
        "stride",
        "padding",
        "dilation",
        "groups",
        "bias",
        "padding_mode",
        "device",
        "dtype",
    ]
    assert list(inspect.signature(torch.nn.BatchNorm1d).parameters)[-1] == "bias"
