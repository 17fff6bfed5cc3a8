"""Fake quantisation: values on the grid, gradients inside it, and what is refused."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch


def test_fake_quantisation_rounds_to_the_grid_and_passes_gradients_inside_it() -> None:
    x = torch.linspace(-1, 1, 7, requires_grad=True)
    y = torch.fake_quantize_per_tensor_affine(x, 0.1, 2, 0, 15)
    assert torch.allclose(y, torch.tensor([-0.2, -0.2, -0.2, 0.0, 0.3, 0.7, 1.0]))
    assert type(y.grad_fn).__name__ == "FakeQuantizePerTensorAffineCachemaskBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0, 1, 1, 1, 1]
    same = torch.fake_quantize_per_tensor_affine(x, torch.tensor(0.1), torch.tensor(2), 0, 15)
    assert torch.equal(same, y)
    w = torch.linspace(-1, 1, 6).view(2, 3)
    scale, zero = torch.tensor([0.1, 0.2]), torch.tensor([0, 3], dtype=torch.int32)
    made = torch.fake_quantize_per_channel_affine(w, scale, zero, 0, -4, 7)
    assert torch.allclose(made, torch.tensor([[-0.4, -0.4, -0.2], [0.2, 0.6, 0.8]]))
    with pytest.raises(RuntimeError, match="`zero_point` must be between `quant_min` and `quant_max`"):
        torch.fake_quantize_per_tensor_affine(x, 0.1, 300, 0, 255)
    with pytest.raises(RuntimeError, match="Zero-point must be Int32, Float or Half, found Long"):
        torch.fake_quantize_per_channel_affine(w, scale, zero.long(), 0, -4, 7)
