"""torch.nn.attention: which kernels are allowed, and causal biases."""

from __future__ import annotations

from importlib import import_module

import pytest

import mindtorch_v2 as torch


def test_causal_biases_start_or_end_at_the_corner() -> None:
    bias = import_module(
        "mindtorch_v2.nn.attention.bias"
    )  # late: its class answers for functions from then on
    attend = torch.nn.functional.scaled_dot_product_attention
    q, k = torch.arange(64.0).sin().view(2, 1, 4, 8), torch.arange(96.0).cos().view(2, 1, 6, 8)
    first, last = bias.causal_upper_left(4, 6), bias.causal_lower_right(4, 6)
    assert repr(last) == repr(torch.ones(4, 6, dtype=torch.bool).tril(2))
    assert torch.allclose(attend(q, k, k, first), attend(q, k, k, is_causal=True))
    mask = torch.ones(4, 6, dtype=torch.bool).tril(2)
    assert torch.allclose(attend(q, k, k, attn_mask=last), attend(q, k, k, attn_mask=mask))
    with pytest.raises(ValueError, match="CausalBias should not be used with causal=True"):
        attend(q, k, k, first, is_causal=True)
    with pytest.warns(UserWarning, match="Lower right causal bias will produce NaNs"):
        bias.causal_lower_right(6, 4)


def test_sdpa_kernel_restores_what_was_allowed() -> None:
    attention = torch.nn.attention
    before = attention._cur_sdpa_kernel_backends()
    with attention.sdpa_kernel(attention.SDPBackend.MATH):
        assert not torch.backends.cuda.flash_sdp_enabled()
        assert torch.backends.cuda.math_sdp_enabled()
    assert attention._cur_sdpa_kernel_backends() == before
