"""Half precision is computed in float32 and rounded once: within one rounding of the same call in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional as F


def _random(*shape: int) -> Any:
    return torch.from_numpy(np.random.default_rng(len(shape)).standard_normal(shape))


CALLS: dict[str, Callable[..., Any]] = {
    "avg_pool2d": lambda x: F.avg_pool2d(x, 7, 1, 3),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 3),
    "area": lambda x: F.interpolate(x, 5, mode="area"),
    "bilinear": lambda x: F.bilinear(x[0, 0], x[0, 1], x[1, :, :9].reshape(3, 9, 9).repeat(1, 1, 1)),
    "addbmm": lambda x: torch.addbmm(x[0, 0], x[0], x[1], beta=0.6, alpha=0.2),
    "addr": lambda x: torch.addr(x[0, 0], x[0, 0, 0], x[0, 0, 1], beta=0.6, alpha=0.2),
    "matrix_exp": lambda x: torch.matrix_exp(x[0] / 4),
    "embedding_bag": lambda x: F.embedding_bag(torch.arange(9).repeat(4).reshape(4, 9), x[0, 0], mode="sum"),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", CALLS)
def test_a_result_in_half_precision_is_rounded_once(name: str, dtype: Any) -> None:
    x = _random(2, 3, 9, 9).to(dtype)
    result, exact = CALLS[name](x), CALLS[name](x.double())
    assert result.dtype is dtype
    step = torch.finfo(dtype).eps
    np.testing.assert_allclose(result.double().numpy(), exact.numpy(), step, step / 4)


def test_the_gradient_of_a_bias_is_summed_in_float32() -> None:
    x, w = _random(1, 2, 40, 40).bfloat16(), _random(2, 1, 1, 1).bfloat16()
    bias = torch.zeros(1, dtype=torch.bfloat16, requires_grad=True)
    F.conv_transpose2d(x, w, bias).sum().backward()
    assert bias.grad.item() == 1600


def test_statistics_have_the_dtype_of_the_input_unless_the_weight_is_float32() -> None:
    x = _random(2, 4).bfloat16()
    assert {part.dtype for part in torch.native_layer_norm(x, (4,), None, None, 1e-5)} == {torch.bfloat16}
    mixed = torch.native_layer_norm(x, (4,), torch.ones(4), torch.zeros(4), 1e-5)
    assert [part.dtype for part in mixed] == [torch.bfloat16, torch.float32, torch.float32]
