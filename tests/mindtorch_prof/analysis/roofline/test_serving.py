"""Ops of serving libraries: bytes and operations by their shapes, as they are in a trace of vLLM."""

from __future__ import annotations

import pytest
from roofline_inputs import T, work

from mindtorch_prof.analysis.roofline.work import NotModelled

BF16, FP8 = "c10::BFloat16", "c10::Float8_e4m3fn"
ROWS, SIZE = 8192, 2880
X, WEIGHT = T((ROWS, SIZE), BF16), T((SIZE,), BF16)
ELEMENTS = ROWS * SIZE


def test_a_gated_activation_reads_two_halves_and_writes_one() -> None:
    done = work("_C::silu_and_mul", T((8, 16), BF16), T((8, 32), BF16))
    assert (done.flop, done.nbytes) == (5 * 128, 2 * (128 + 256))
    assert work("npu::npu_swiglu", T((8, 32), BF16)).nbytes == done.nbytes
    with pytest.raises(NotModelled):
        work("_C::silu_and_mul", T((8, 16), BF16), T((8, 16), BF16))


def test_a_rotary_embedding_changes_query_and_key_in_place() -> None:
    positions, cache = T((ROWS,), "long int"), T((131072, 64), BF16)
    query, key = T((ROWS, 4096), BF16), T((ROWS, 512), BF16)
    done = work("_C::rotary_embedding", positions, query, key, 64, cache, True)
    assert done.nbytes == 8 * ROWS + 2 * ROWS * 64 + 2 * 2 * ROWS * (4096 + 512)
    assert done.flop == 3 * ROWS * (4096 + 512)


def test_a_write_to_the_cache_moves_key_and_value_and_not_the_cache() -> None:
    key, cache = T((ROWS, 8, 64), BF16), T((224304, 32, 8, 64), FP8)
    done = work("_C_cache_ops::reshape_and_cache_flash", key, key, cache, cache, T((ROWS,), "long int"))
    assert done.nbytes == 2 * ROWS * 512 * (2 + 1) + 8 * ROWS


def test_norms_of_aiter_have_the_work_of_vllm_s() -> None:
    plain = work("_C::rms_norm", X, X, WEIGHT)
    assert work("aiter::rms_norm", X, WEIGHT, 1e-5) == plain
    added = work("_C::fused_add_rms_norm", X, X, WEIGHT)
    assert work("aiter::rmsnorm2d_fwd_with_add_ck", X, X, X, X, WEIGHT, 1e-5) == added
    assert (plain.nbytes, added.nbytes) == (2 * (2 * ELEMENTS + SIZE), 2 * (4 * ELEMENTS + SIZE))


def test_quantisation_reads_16_bits_and_writes_8() -> None:
    done = work("_C::dynamic_scaled_fp8_quant", T((ROWS, SIZE), FP8), X, T((1,)))
    assert done.nbytes == 3 * ELEMENTS + 4


def test_a_product_of_8_bit_factors_is_written_in_16() -> None:
    left, weight = T((64, 128), FP8), T((32, 128), FP8)
    done = work("fbgemm::f8f8bf16_rowwise", left, weight, T((64,)), T((32,)))
    assert (done.flop, done.nbytes) == (2 * 64 * 32 * 128, 64 * 128 + 32 * 128 + 2 * 64 * 32 + 4 * (64 + 32))


@pytest.mark.parametrize("name", ["vllm::moe_forward", "vllm::unified_attention_with_output"])
def test_what_no_input_tells_is_not_guessed(name: str) -> None:
    with pytest.raises(NotModelled):
        work(name, X, X, X, X)
