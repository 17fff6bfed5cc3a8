"""Attention: causal masks, layouts, packed sequences and bytes. test_models compares FLOP with torch's."""

from __future__ import annotations

import pytest
from roofline_inputs import T, work

from mindtorch_prof.analysis.roofline.work import NotModelled

BF16 = "c10::BFloat16"
B, H, S, D = 2, 4, 64, 32
FULL = 4 * B * H * S * S * D
Q = T((B, H, S, D), BF16)
INNER = T((B, S, H, D), BF16)
ELEMENTS = B * H * S * D


def test_a_causal_mask_halves_the_work_of_equal_lengths() -> None:
    for causal, flop in ((False, FULL), (True, FULL // 2)):
        done = work("aten::_scaled_dot_product_flash_attention", Q, Q, Q, 0.0, causal, False, 0.125)
        assert (done.flop, done.nbytes) == (flop, 2 * 4 * ELEMENTS)


def test_the_op_inside_has_another_layout_and_the_same_work() -> None:
    outer = work("aten::_scaled_dot_product_flash_attention", Q, Q, Q, 0.0, True, False, 0.125)
    inner = work("aten::_flash_attention_forward", INNER, INNER, INNER, None, None, S, S, 0.0, True, False)
    library = work("flash_attn::_flash_attn_forward", INNER, INNER, INNER, 0.0, 0.125, True)
    assert outer == inner == library


def test_backward_takes_five_products_and_moves_seven_tensors() -> None:
    lse = T((B, H, S))
    done = work(
        "aten::_scaled_dot_product_flash_attention_backward",
        Q,
        Q,
        Q,
        Q,
        Q,
        lse,
        None,
        None,
        S,
        S,
        0.0,
        True,
        lse,
        lse,
    )
    assert (done.flop, done.nbytes) == (FULL // 2 * 5 // 2, 2 * 7 * ELEMENTS)


def test_torch_s_causal_mask_of_unequal_lengths_is_aligned_to_the_first_query() -> None:
    keys = T((B, H, 2 * S, D), BF16)
    done = work("aten::scaled_dot_product_attention", Q, keys, keys, None, 0.0, True)
    assert done.flop == 4 * B * H * D * (S * S // 2)


def test_flash_attn_s_causal_mask_of_unequal_lengths_is_aligned_to_the_last() -> None:
    keys = T((B, 2 * S, H, D), BF16)
    done = work("flash_attn::_flash_attn_forward", INNER, keys, keys, 0.0, 0.125, True)
    assert done.flop == 4 * B * H * D * (S * S // 2 + S * S)


def test_fewer_heads_of_keys_are_read_and_not_less_computed() -> None:
    keys = T((B, 1, S, D), BF16)
    done = work("aten::_scaled_dot_product_flash_attention", Q, keys, keys, 0.0, False, False, 0.125)
    assert (done.flop, done.nbytes) == (FULL, 2 * (2 * ELEMENTS + 2 * B * S * D))


def test_a_mask_is_read_once_however_it_is_expanded() -> None:
    mask = T((B, H, S, S), BF16, (0, 0, S, 1))
    plain = work("aten::_scaled_dot_product_efficient_attention", Q, Q, Q, None, True, 0.0, False)
    masked = work("aten::_scaled_dot_product_efficient_attention", Q, Q, Q, mask, True, 0.0, False)
    assert masked.nbytes - plain.nbytes == 2 * S * S


def test_packed_sequences_of_equal_lengths_take_as_much_as_a_batch() -> None:
    tokens, starts = T((B * S, H, D), BF16), T((B + 1,), "int")
    done = work(
        "flash_attn::_flash_attn_varlen_forward",
        tokens,
        tokens,
        tokens,
        starts,
        starts,
        S,
        S,
        0.0,
        0.125,
        False,
    )
    assert (done.flop, done.nbytes) == (FULL, 2 * 4 * ELEMENTS)


@pytest.mark.parametrize("name", ["aiter::mha_varlen_fwd", "aiter::fmha_v3_varlen_fwd"])
@pytest.mark.parametrize("causal", [False, True])
def test_packed_attention_of_aiter_says_whether_it_is_causal_after_another_flag(
    name: str, causal: bool
) -> None:
    tokens, starts = T((B * S, H, D), BF16), T((B + 1,), "int")
    numbers = (S, S, 0, 0.0, 0.125, 0.0, False, causal, -1, -1, True, False)
    done = work(name, tokens, tokens, tokens, starts, starts, *numbers)
    assert (done.flop, done.nbytes) == (FULL // 2 if causal else FULL, 2 * 4 * ELEMENTS)
    log_sums = T((B * S, H))
    backward = work(
        name.replace("_fwd", "_bwd"),
        *(tokens, tokens, tokens, tokens, tokens, log_sums, starts, starts),
        *(S, S, 0.0, 0.125, False, causal, -1, -1, False),
    )
    assert backward.flop == 5 * done.flop // 2


def test_whether_it_is_causal_must_be_recorded() -> None:
    with pytest.raises(NotModelled, match="not recorded"):
        work("aten::_scaled_dot_product_flash_attention", Q, Q, Q)
