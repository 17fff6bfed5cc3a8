"""Every layer of nn and function of nn.functional gives what torch was recorded to give.

Text (repr, errors, warnings), state, seeded weights, results and gradients; rows and recorder are in facts/.
"""

from __future__ import annotations

import copy
import gzip
import importlib
import inspect
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch

FACTS = Path(__file__).parent / "facts"
RECORDED = json.loads(gzip.decompress((FACTS / "nn_layers.json.gz").read_bytes()))
TEXTS = list(RECORDED["texts"].items())
GROUP = 40


def _rows() -> Any:
    if str(FACTS) not in sys.path:
        sys.path.insert(0, str(FACTS))
    return importlib.import_module("nn_rows")


def _assert_same(ours: Any, theirs: Any, where: str) -> None:
    """Equal, numbers within float32's rounding of the tensor's size."""
    if isinstance(theirs, dict) and "values" in theirs:
        assert [ours["shape"], ours["dtype"]] == [theirs["shape"], theirs["dtype"]], where
        size = max(1.0, abs(theirs["values"][-2]))
        assert ours["values"] == pytest.approx(theirs["values"], rel=2e-5, abs=3e-6 * size), where
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs), where
        for key, value in theirs.items():
            _assert_same(ours[key], value, f"{where} {key}")
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), where
        for index, value in enumerate(theirs):
            _assert_same(ours[index], value, f"{where}[{index}]")
    else:
        assert ours == theirs, where


@pytest.mark.parametrize("row", RECORDED["layers"])
def test_a_layer_has_torchs_repr_weights_results_and_gradients(row: str) -> None:
    _assert_same(_rows().run_layer(torch, row), RECORDED["layers"][row], row)


@pytest.mark.parametrize("row", RECORDED["functions"])
def test_a_function_gives_torchs_results_and_gradients(row: str) -> None:
    _assert_same(_rows().run_function(torch, row), RECORDED["functions"][row], row)


@pytest.mark.parametrize("first", range(0, len(TEXTS), GROUP))
def test_errors_warnings_and_reprs_read_as_torchs(first: int) -> None:
    run = _rows().run_text
    differing = {
        row: (ours, theirs)
        for row, theirs in TEXTS[first : first + GROUP]
        if (ours := run(torch, row)) != theirs
    }
    assert not differing


def test_every_public_layer_has_a_row() -> None:
    rows = "\n".join(RECORDED["layers"])
    bases = {"Module", "RNNBase", "RNNCellBase", "Container", "NLLLoss2d", "LinearCrossEntropyOptions"}
    containers = {"ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"}
    missing = [n for n in torch.nn.modules.__all__ if n not in bases | containers and f"nn.{n}" not in rows]
    assert missing == []


def test_functions_say_they_live_in_nn_functional() -> None:
    functional = torch.nn.functional
    for name in ("relu", "cross_entropy", "multi_head_attention_forward", "interpolate", "max_pool2d"):
        function = getattr(functional, name)
        assert function.__module__ == "mindtorch_v2.nn.functional"
        assert pickle.loads(pickle.dumps(function)) is function


def test_an_op_is_bound_to_functional_once() -> None:
    assert torch.nn.functional.linear is torch.nn.functional.linear
    assert "linear" in dir(torch.nn.functional)
    with pytest.raises(AttributeError, match="has no attribute 'no_such_function'"):
        _ = torch.nn.functional.no_such_function


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


def test_sdpa_kernel_restores_what_was_allowed() -> None:
    attention = torch.nn.attention
    before = attention._cur_sdpa_kernel_backends()
    with attention.sdpa_kernel(attention.SDPBackend.MATH):
        assert not torch.backends.cuda.flash_sdp_enabled()
        assert torch.backends.cuda.math_sdp_enabled()
    assert attention._cur_sdpa_kernel_backends() == before


def test_a_chunked_linear_cross_entropy_refuses_a_second_backward() -> None:
    options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    x, w = torch.ones(5, 3, requires_grad=True), torch.ones(4, 3, requires_grad=True)
    loss = torch.nn.functional.linear_cross_entropy(x, w, torch.tensor([0, 1, 2, 3, 0]), options=options)
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="chunked backward called twice"):
        loss.backward()
