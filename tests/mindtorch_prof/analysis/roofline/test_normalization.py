"""Normalizations and softmax: operations per element, and bytes of activations and parameters."""

from __future__ import annotations

import pytest
from roofline_inputs import T, work

BF16 = "c10::BFloat16"
X = T((10, 64, 56, 56), BF16)
E, C = 10 * 64 * 56 * 56, 64
P = T((C,), BF16)


@pytest.mark.parametrize(("training", "per_element", "vectors"), [(True, 5, 6), (False, 2, 4)])
def test_batch_norm_computes_statistics_only_in_training(
    training: bool, per_element: int, vectors: int
) -> None:
    done = work("aten::native_batch_norm", X, P, P, P, P, training, 0.1, 1e-5)
    assert (done.flop, done.nbytes) == (per_element * E + 6 * C, 2 * (2 * E + vectors * C))


def test_batch_norm_backward_reads_two_activations_and_writes_one() -> None:
    saved = T((C,))
    done = work(
        "aten::native_batch_norm_backward", X, X, P, P, P, saved, saved, True, 1e-5, [True, True, True]
    )
    assert (done.flop, done.nbytes) == (9 * E, 2 * (3 * E + 3 * C) + 2 * 4 * C)


def test_cudnn_s_backward_has_the_input_first_and_the_same_work() -> None:
    saved = T((C,))
    native = work("aten::native_batch_norm_backward", X, X, P, P, P, saved, saved, True, 1e-5, [True] * 3)
    assert work("aten::cudnn_batch_norm_backward", X, X, P, P, P, saved, saved, 1e-5, T((0,))) == native


def test_layer_norm_writes_mean_and_deviation_of_each_row() -> None:
    done = work("aten::native_layer_norm", T((8, 16, 32)), [32], T((32,)), T((32,)), 1e-5)
    assert (done.flop, done.nbytes) == (5 * 4096 + 6 * 32, 4 * (2 * 4096 + 2 * 32 + 2 * 128))


def test_layer_norm_without_a_weight_takes_its_size_from_the_shape() -> None:
    done = work("aten::native_layer_norm", T((8, 16, 32)), [16, 32], None, None, 1e-5)
    assert (done.flop, done.nbytes) == (5 * 4096 + 6 * 512, 4 * (2 * 4096 + 2 * 8))


def test_rms_norm_has_no_mean() -> None:
    done = work("aten::_fused_rms_norm", T((8, 16, 32), BF16), [32], T((32,), BF16), 1e-5)
    assert (done.flop, done.nbytes) == (4 * 4096 + 3 * 128, 2 * (2 * 4096 + 32))


def test_group_norm_has_statistics_per_group() -> None:
    done = work("aten::native_group_norm", T((4, 8, 6, 6)), T((8,)), T((8,)), 4, 8, 36, 2, 1e-5)
    assert done.nbytes == 4 * (2 * 4 * 8 * 36 + 2 * 8 + 2 * 4 * 2)


def test_softmax_reads_and_writes_once_and_backward_reads_two() -> None:
    x = T((128, 1000))
    assert work("aten::_softmax", x, -1, False).nbytes == 4 * 2 * 128_000
    assert work("aten::_softmax_backward_data", x, x, -1, 6).nbytes == 4 * 3 * 128_000
