"""Matrix products: 2 M N K operations, factors read and product written once, of every form."""

from __future__ import annotations

import pytest
from roofline_inputs import T, work

from mindtorch_prof.analysis.roofline.work import NotModelled

BF16, FP8, INT8 = "c10::BFloat16", "c10::Float8_e4m3fn", "signed char"
M, N, K = 8, 12, 16


def test_mm_reads_both_factors_and_writes_the_product() -> None:
    done = work("aten::mm", T((M, K), BF16), T((K, N), BF16))
    assert (done.flop, done.nbytes) == (2 * M * N * K, 2 * (M * K + K * N + M * N))


def test_the_bias_of_addmm_is_read_as_large_as_it_is() -> None:
    done = work("aten::addmm", T((N,), BF16), T((M, K), BF16), T((K, N), BF16), 1, 1)
    assert (done.flop, done.nbytes) == (2 * M * N * K + M * N, 2 * (M * K + K * N + M * N + N))


@pytest.mark.parametrize(
    ("left", "right", "flop"),
    [
        ((M, K), (K, N), 2 * M * N * K),
        ((5, M, K), (K, N), 5 * 2 * M * N * K),
        ((5, M, K), (5, K, N), 5 * 2 * M * N * K),
        ((3, 1, M, K), (5, K, N), 15 * 2 * M * N * K),
        ((K,), (K,), 2 * K),
        ((M, K), (K,), 2 * M * K),
    ],
)
def test_matmul_broadcasts_batches(left: tuple[int, ...], right: tuple[int, ...], flop: int) -> None:
    assert work("aten::matmul", T(left), T(right)).flop == flop


def test_linear_equals_the_addmm_inside_it() -> None:
    outer = work("aten::linear", T((2, 4, K), BF16), T((N, K), BF16), T((N,), BF16))
    inner = work("aten::addmm", T((N,), BF16), T((8, K), BF16), T((K, N), BF16), 1, 1)
    assert outer == inner


def test_a_scaled_product_is_written_in_the_type_that_is_asked_for() -> None:
    done = work("aten::_scaled_mm", T((M, K), FP8), T((K, N), FP8), T((1,)), T((1,)), None, None, 15, False)
    assert done.nbytes == M * K + K * N + 2 * M * N + 4 + 4
    assert done.dtype == "float8_e4m3fn"


def test_a_product_of_bytes_is_written_in_32_bits() -> None:
    assert work("aten::_int_mm", T((M, K), INT8), T((K, N), INT8)).nbytes == M * K + K * N + 4 * M * N


def test_groups_along_rows_take_as_much_as_one_product() -> None:
    done = work("aten::_grouped_mm", T((M, K), BF16), T((4, K, N), BF16), T((4,), "int"), None, None)
    assert (done.flop, done.nbytes) == (2 * M * N * K, 2 * (M * K + 4 * K * N + M * N))


def test_groups_along_the_inner_dimension_give_one_product_each() -> None:
    done = work("aten::_grouped_mm", T((M, K), BF16), T((K, N), BF16), T((4,), "int"), None, None)
    assert (done.flop, done.nbytes) == (2 * M * N * K, 2 * (M * K + K * N + 4 * M * N))


def test_a_packed_weight_counts_as_the_bytes_it_has() -> None:
    done = work("aten::_weight_int8pack_mm", T((M, K), BF16), T((N, K), INT8), T((N,), BF16))
    assert (done.flop, done.nbytes) == (2 * M * N * K, 2 * M * K + N * K + 2 * N + 2 * M * N)


def test_vllm_s_products_have_the_result_first() -> None:
    done = work(
        "_C::cutlass_scaled_mm", T((M, N), BF16), T((M, K), FP8), T((K, N), FP8), T((M, 1)), T((1, N)), None
    )
    assert (done.flop, done.nbytes) == (2 * M * N * K, 2 * M * N + M * K + K * N + 4 * M + 4 * N)


def test_factors_that_do_not_fit_are_not_modelled() -> None:
    with pytest.raises(NotModelled, match="fit"):
        work("aten::mm", T((2, 3)), T((4, 5)))
