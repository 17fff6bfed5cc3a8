"""Every function of nn.functional gives what torch was recorded to give; rows and recorder are in facts/."""

from __future__ import annotations

import pickle

import fact_files
import nn_rows
import pytest

import mindtorch_v2 as torch

RECORDED = fact_files.read("nn_layers.json.gz")


@pytest.mark.parametrize("row", RECORDED["functions"])
def test_a_function_gives_torchs_results_and_gradients(row: str) -> None:
    nn_rows.assert_same(nn_rows.run_function(torch, row), RECORDED["functions"][row], row)


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


def test_a_chunked_linear_cross_entropy_refuses_a_second_backward() -> None:
    options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    x, w = torch.ones(5, 3, requires_grad=True), torch.ones(4, 3, requires_grad=True)
    loss = torch.nn.functional.linear_cross_entropy(x, w, torch.tensor([0, 1, 2, 3, 0]), options=options)
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="chunked backward called twice"):
        loss.backward()


def test_a_maximum_is_never_in_the_padding():
    image = torch.full((1, 1, 4, 4), -float("inf"))
    places = torch.nn.functional.max_pool2d(image, 3, 2, 1, return_indices=True)[1]
    assert places.tolist() == [[[[0, 1], [4, 5]]]]


def test_a_pool_names_the_last_of_several_nan():
    image = torch.tensor([[[[float("nan"), 1.0], [float("nan"), 2.0]]]])
    assert torch.nn.functional.max_pool2d(image, 2, return_indices=True)[1].item() == 2
    assert torch.nn.functional.adaptive_max_pool2d(image, 1, return_indices=True)[1].item() == 2


def test_an_average_of_negative_zeros_is_zero():
    image = -torch.zeros(1, 1, 2, 2)
    assert not torch.signbit(torch.nn.functional.avg_pool2d(image, 1)).any()
    assert not torch.signbit(torch.nn.functional.adaptive_avg_pool2d(image, 2)).any()
