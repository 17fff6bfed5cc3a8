"""The fused loops: each gives what the NumPy code of its kernel gives, to the last bit."""

from __future__ import annotations

import contextlib
import itertools
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fused_loops import DTYPES, arrays, assert_same_bits, dtypes, fused_and_twin, values
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mindtorch_v2 as torch
from mindtorch_v2 import _random, _sampling
from mindtorch_v2._dispatch import OPS
from mindtorch_v2._ops import _core, _dims, _exp, convolution

pytestmark = pytest.mark.skipif(
    _core._fused is None, reason="the compiled core is not built, or MINDTORCH_CORE=python"
)

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9)
scalars = st.one_of(st.floats(-2, 2), st.sampled_from([0, 1, 1.0, 0.5, -0.5, 3, float("inf"), float("nan")]))


# -------------------------------------------------------------------------------- pointwise


@st.composite
def same_shaped(draw: Any, count: int) -> list[np.ndarray]:
    shape, dtype = draw(SHAPES), draw(dtypes)
    return [draw(arrays(shape, dtype)) for _ in range(count)]


@given(same_shaped(2), scalars, st.booleans())
def test_add_with_alpha(operands: list, alpha: Any, in_place: bool) -> None:
    _compare_into("add_scaled", "add.Tensor", operands, alpha, in_place)


@given(same_shaped(2), scalars, st.booleans())
def test_lerp(operands: list, weight: Any, in_place: bool) -> None:
    _compare_into("lerp", "lerp.Scalar", operands, weight, in_place)


@given(same_shaped(3), scalars, st.booleans())
def test_addcmul(operands: list, value: Any, in_place: bool) -> None:
    _compare_into("addcmul", "addcmul", operands, value, in_place)


@given(same_shaped(3), scalars, st.booleans())
def test_addcdiv(operands: list, value: Any, in_place: bool) -> None:
    _compare_into("addcdiv", "addcdiv", operands, value, in_place)


def _compare_into(loop: str, name: str, operands: list, scalar: Any, in_place: bool) -> None:
    kernel = OPS[name].kernel

    def call(*copies: Any) -> Any:
        first = copies[0]
        in_place_here = in_place and first.flags.writeable and first.ndim > 0
        result = kernel(*copies, scalar, first) if in_place_here else kernel(*copies, scalar)
        return np.asarray(result)

    assert_same_bits(*fused_and_twin(loop, call, *operands))


@given(same_shaped(2), scalars)
def test_gradient_of_relu(operands: list, threshold: Any) -> None:
    assert_same_bits(
        *fused_and_twin(
            "threshold_backward",
            lambda g, x: np.asarray(OPS["threshold_backward"].kernel(g, x, threshold)),
            *operands,
        )
    )


@given(st.data())
def test_masked_fill_with_a_mask_of_the_last_dimensions(data: Any) -> None:
    shape, dtype = data.draw(SHAPES), data.draw(dtypes)
    x = data.draw(arrays(shape, dtype))
    mask = data.draw(arrays(shape[data.draw(st.integers(0, len(shape))) :], np.bool_, st.booleans()))
    value = data.draw(values(dtype))
    assert_same_bits(
        *fused_and_twin(
            "masked_fill", lambda x, mask: OPS["masked_fill.Scalar"].kernel(x, mask, value), x, mask
        )
    )


@pytest.mark.parametrize("shift", [-1, 1])
def test_an_output_that_overlaps_an_input_is_left_to_numpy(shift: int) -> None:
    memory = np.arange(9, dtype=np.float32)
    out, other = memory[1:-1], memory[1 + shift : 8 + shift]
    assert _core.add_scaled(out, other, 2.0, out) is None
    assert _core.lerp(out, other, 0.3, out) is None
    assert _core.addcmul(out, other, other, 2.0, out) is None


def test_a_read_only_output_is_left_to_numpy() -> None:
    x = np.ones(3, np.float32)
    x.flags.writeable = False
    assert _core.add_scaled(x, x, 2.0, x) is None


@pytest.mark.parametrize("dtype", [">f4", ">f8", np.float16, np.int64, np.complex64])
def test_other_dtypes_and_byte_orders_are_left_to_numpy(dtype: Any) -> None:
    x = np.ones((2, 3), dtype)
    assert _core.softmax(x) is None
    assert _core.add_scaled(x, x, 2.0, None) is None
    assert _core.gelu(x) is None


# -------------------------------------------------------------------------------- gelu


@given(st.data())
def test_gelu(data: Any) -> None:
    x = data.draw(arrays(data.draw(SHAPES), np.float32))
    assert_same_bits(
        *fused_and_twin("gelu", lambda x: OPS["gelu"].kernel(x, "none"), x),
    )


@given(st.data())
def test_gradient_of_gelu(data: Any) -> None:
    shape = data.draw(SHAPES)
    g, x = data.draw(arrays(shape, np.float32)), data.draw(arrays(shape, np.float32))
    assert_same_bits(
        *fused_and_twin("gelu_backward", lambda g, x: OPS["gelu_backward"].kernel(g, x, "none"), g, x)
    )


@pytest.mark.parametrize("size", [4095, 4096, 4097, 40000])
def test_gelu_over_several_blocks(size: int) -> None:
    rng = np.random.default_rng(size)
    x, g = (4 * rng.standard_normal((2, size))).astype(np.float32)
    assert_same_bits(*fused_and_twin("gelu", lambda x: OPS["gelu"].kernel(x, "none"), x))
    assert_same_bits(
        *fused_and_twin("gelu_backward", lambda g, x: OPS["gelu_backward"].kernel(g, x, "none"), g, x)
    )


@given(st.data())
def test_exponentials(data: Any) -> None:
    x = data.draw(arrays(data.draw(SHAPES), np.float32))
    assert_same_bits(*fused_and_twin("exp", _exp.exp, x))
    assert_same_bits(*fused_and_twin("silu", lambda x: np.asarray(OPS["silu"].kernel(x)), x))
    with pytest.MonkeyPatch.context() as patch:  # the twin without any loop
        patch.setattr(_core, "exp", lambda *_: None)
        assert_same_bits(*fused_and_twin("sigmoid", OPS["sigmoid"].kernel, x))


def test_exp_is_exact_to_two_units_and_reaches_zero_and_infinity() -> None:
    x = np.linspace(-87, 88, 100001).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    assert np.max(np.abs(_exp.exp(x) - exact) / np.spacing(exact.astype(np.float32))) < 2
    ends = np.array([-np.inf, -200, 200, np.inf, np.nan, 0, -0.0], np.float32)
    np.testing.assert_array_equal(_exp.exp(ends), [0, 0, np.inf, np.inf, np.nan, 1, 1])


def test_exp_is_that_of_its_twin_where_results_underflow() -> None:
    x = np.linspace(-110, -80, 30001, dtype=np.float32)
    assert_same_bits(*fused_and_twin("exp", _exp.exp, x))


@given(st.data())
def test_clamp_and_relu(data: Any) -> None:
    x = data.draw(arrays(data.draw(SHAPES), data.draw(dtypes)))
    low = data.draw(st.sampled_from([None, -1, 0.5]))
    high = data.draw(st.sampled_from([None, 1, 0.25])) if low is not None else 1.5
    assert_same_bits(*fused_and_twin("clamp", lambda x: np.asarray(OPS["clamp"].kernel(x, low, high)), x))
    assert_same_bits(*fused_and_twin("clamp", lambda x: np.asarray(OPS["relu"].kernel(x)), x))
    assert_same_bits(*fused_and_twin("clamp", lambda x: np.asarray(OPS["clamp_min"].kernel(x, 0.5)), x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(3, 511), (3, 512), (2, 1000), (5, 8192), (1, 20000), (2, 3, 8255), (100, 700)]
)
def test_sums_of_long_rows(shape: tuple, dtype: Any) -> None:
    x = np.random.default_rng(shape[-1]).standard_normal(shape).astype(dtype)
    for dims in (None, (len(shape) - 1,), tuple(range(1, len(shape)))):
        call = lambda x, dims=dims: OPS["sum.dim_IntList"].kernel(x, dims, True, None)
        fused, twin = fused_and_twin("row_sums", call, x)
        assert_same_bits(fused, twin)
        exact = x.sum(dims, np.float64, keepdims=True)
        np.testing.assert_allclose(fused, exact, 1e-4, 1e-2 if dtype is np.float32 else 1e-9)


@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (1.5, 0.3)])
@pytest.mark.parametrize("size", [16, 1000, 20000])
def test_normal_random_numbers(size: int, mean: float, std: float) -> None:
    def drawn() -> np.ndarray:
        return torch.empty(size).normal_(mean, std, generator=torch.Generator().manual_seed(3)).numpy()

    fused = drawn()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_random, "_fused", None)
        patch.setattr(_sampling, "_fused_normals", lambda *_: None)
        assert_same_bits(fused, drawn())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("size", [1, 7, 15, 1301])
def test_pairs_of_normal_random_numbers(size: int, dtype: Any) -> None:
    def drawn() -> np.ndarray:
        generator = torch.Generator().manual_seed(3)
        with np.errstate(over="raise"):
            strided = torch.empty(size, 2, dtype=dtype)[:, 0].normal_(1e38, 1e39, generator=generator)
            few = torch.empty(15, dtype=dtype).log_normal_(1, 60, generator=generator)
        return np.concatenate([strided.numpy(), few.numpy()])

    fused = drawn()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_random, "_fused", None)
        for loop in ("_fused_normal_pairs", "_fused_to_single"):
            patch.setattr(_sampling, loop, lambda *_: None)
        assert_same_bits(fused, drawn())


def test_the_compiled_engine_draws_what_numpys_draws() -> None:
    compiled = torch.Generator().manual_seed(3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_random, "_fused", None)
        plain = torch.Generator().manual_seed(3)
        assert plain.words is None
    for count in (1, 10, 700, 0, 623, 5000):
        assert np.array_equal(compiled.raw(count), plain.raw(count))
        assert np.array_equal(_sampling.unit24(compiled, count), _sampling.unit24(plain, count))
        assert np.array_equal(_sampling.unit53(compiled, count), _sampling.unit53(plain, count))
    assert np.array_equal(compiled.state_bytes(), plain.state_bytes())
    plain.set_state_bytes(compiled.state_bytes())
    assert np.array_equal(compiled.raw(1000), plain.raw(1000))


def test_words_that_are_no_engine_are_refused() -> None:
    words = np.zeros(625, np.uint32)
    words[-1] = 625
    for engine in (words, words[:-1], words.astype(np.int64), None):
        with pytest.raises(TypeError, match="625 words"):
            _core._fused.draws(engine, 3)


# -------------------------------------------------------------------------------- rows


@given(st.data())
def test_softmax_and_log_softmax(data: Any) -> None:
    shape, dtype = data.draw(SHAPES), data.draw(dtypes)
    dim = data.draw(st.integers(-len(shape), len(shape) - 1)) if shape else -1
    x = data.draw(arrays(shape, dtype))
    for name in ("softmax", "log_softmax"):
        assert_same_bits(*fused_and_twin(name, lambda x, n=name: OPS[f"_{n}"].kernel(x, dim, False), x))


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_of_rows_of_every_length(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    for cols in range(1, 300):
        x, g = (3 * rng.standard_normal((2, 9, cols))).astype(dtype)
        x[1, rng.random(cols) < 0.5] = -np.inf
        x[2], x[3], x[4, 0], x[5, -1], x[6, -1] = -np.inf, -0.0, np.nan, np.nan, np.inf
        for name in ("softmax", "log_softmax"):
            assert_same_bits(*fused_and_twin(name, lambda x, n=name: OPS[f"_{n}"].kernel(x, -1, False), x))
            kernel = OPS[f"_{name}_backward_data"].kernel
            assert_same_bits(
                *fused_and_twin(f"{name}_backward", lambda g, y, k=kernel: k(g, y, -1, torch.float32), g, x)
            )


@given(st.data())
def test_gradients_of_softmax_and_log_softmax(data: Any) -> None:
    shape, dtype = data.draw(SHAPES), data.draw(dtypes)
    dim = data.draw(st.integers(-len(shape), len(shape) - 1)) if shape else -1
    g, y = data.draw(arrays(shape, dtype)), data.draw(arrays(shape, dtype))
    for name in ("softmax", "log_softmax"):
        kernel = OPS[f"_{name}_backward_data"].kernel
        assert_same_bits(
            *fused_and_twin(f"{name}_backward", lambda g, y, k=kernel: k(g, y, dim, torch.float32), g, y)
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 1), (700, 3), (5, 1000), (2, 5000), (1, 70000)])
def test_rows_shorter_and_longer_than_a_block(shape: tuple, dtype: Any) -> None:
    rng = np.random.default_rng(shape[1])
    x, g = rng.standard_normal((2, *shape)).astype(dtype)
    for name in ("softmax", "log_softmax"):
        assert_same_bits(*fused_and_twin(name, lambda x, n=name: OPS[f"_{n}"].kernel(x, -1, False), x))
        kernel = OPS[f"_{name}_backward_data"].kernel
        assert_same_bits(
            *fused_and_twin(f"{name}_backward", lambda g, y, k=kernel: k(g, y, -1, torch.float32), g, x)
        )


@st.composite
def normalized(draw: Any) -> tuple:
    """An input, how many of its last dimensions are normalised, and a weight and a bias or None."""
    shape, dtype = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=9)), draw(dtypes)
    dims = draw(st.integers(1, len(shape)))
    weight, bias = (draw(st.one_of(st.none(), arrays(shape[len(shape) - dims :], dtype))) for _ in range(2))
    return draw(arrays(shape, dtype)), dims, weight, bias


@given(normalized(), st.sampled_from([1e-5, 0.0, 1.0]))
def test_layer_norm(case: tuple, eps: float) -> None:
    x, dims, weight, bias = case
    shape = x.shape[x.ndim - dims :]
    assert_same_bits(
        *fused_and_twin(
            "layer_norm",
            lambda x, w, b: OPS["native_layer_norm"].kernel(x, shape, w, b, eps),
            x,
            weight,
            bias,
        )
    )


@given(st.data(), normalized())
def test_gradient_of_layer_norm(data: Any, case: tuple) -> None:
    x, dims, weight, bias = case
    g = data.draw(arrays(x.shape, x.dtype))
    shape = x.shape[x.ndim - dims :]
    mask = data.draw(st.sampled_from(list(itertools.product((True, False), repeat=3))))
    with np.errstate(all="ignore"):
        _, mean, rstd = OPS["native_layer_norm"].kernel(x, shape, weight, bias, 1e-5)
    assert_same_bits(
        *fused_and_twin(
            "layer_norm_backward",
            lambda g, x, m, r, w: OPS["native_layer_norm_backward"].kernel(g, x, shape, m, r, w, w, mask),
            g,
            x,
            mean,
            rstd,
            weight,
        )
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_layer_norm_of_long_rows(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal((2, 6, 7, 1000)).astype(dtype)
    weight, bias = rng.standard_normal((2, 1000)).astype(dtype)
    forward, backward = OPS["native_layer_norm"].kernel, OPS["native_layer_norm_backward"].kernel
    results = fused_and_twin("layer_norm", lambda x: forward(x, (1000,), weight, bias, 1e-5), x)
    assert_same_bits(*results)
    _, mean, rstd = results[0]
    assert_same_bits(
        *fused_and_twin(
            "layer_norm_backward",
            lambda g, x: backward(g, x, (1000,), mean, rstd, weight, bias, (True,) * 3),
            g,
            x,
        )
    )


# -------------------------------------------------------------------------------- columns and places


@given(st.data(), st.booleans())
def test_sum_of_columns(data: Any, keepdim: bool) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=12))
    x = data.draw(arrays(shape, data.draw(dtypes)))
    kernel = OPS["sum.dim_IntList"].kernel
    assert_same_bits(*fused_and_twin("sum_columns", lambda x: np.asarray(kernel(x, (0,), keepdim, None)), x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(100, 300), (5, 20000), (20000, 2)])
def test_sum_of_many_columns(shape: tuple, dtype: Any) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    kernel = OPS["sum.dim_IntList"].kernel
    assert_same_bits(*fused_and_twin("sum_columns", lambda x: kernel(x, (0,), False, None), x))


@given(st.data(), scalars, scalars)
def test_addmm_with_a_bias(data: Any, beta: Any, alpha: Any) -> None:
    rows, inner, cols = (data.draw(st.integers(0, 9)) for _ in range(3))
    dtype = data.draw(dtypes)
    bias = data.draw(
        st.one_of(arrays((cols,), dtype), arrays((rows, cols), dtype), arrays((1,), dtype), arrays((), dtype))
    )
    a, b = data.draw(arrays((rows, inner), dtype)), data.draw(arrays((inner, cols), dtype))
    assert_same_bits(
        *fused_and_twin("add_row", lambda c, a, b: OPS["addmm"].kernel(c, a, b, beta, alpha), bias, a, b)
    )


@given(st.data())
def test_gradient_of_an_embedding(data: Any) -> None:
    count, table, width = (data.draw(st.integers(low, high)) for low, high in ((0, 30), (1, 5), (1, 9)))
    dtype = data.draw(dtypes)
    rows = data.draw(arrays((count, width), dtype))
    places = data.draw(arrays((count,), np.int64, st.integers(0, table - 1)))
    padding = data.draw(st.integers(-1, table - 1))
    kernel = OPS["embedding_dense_backward"].kernel
    assert_same_bits(
        *fused_and_twin("sum_at_rows", lambda g, i: kernel(g, i, table, padding, False), rows, places)
    )


def test_the_gradient_of_a_large_embedding() -> None:
    rng = np.random.default_rng(0)
    rows, places = rng.standard_normal((600, 40)).astype(np.float32), rng.integers(0, 50, 600)
    kernel = OPS["embedding_dense_backward"].kernel
    assert_same_bits(*fused_and_twin("sum_at_rows", lambda g, i: kernel(g, i, 50, -1, False), rows, places))


def test_places_outside_of_a_table_are_left_to_numpy() -> None:
    rows, places = np.ones((2, 3), np.float32), np.array([0, 5])
    assert _core.sum_at_rows(rows, places, 5) is None
    assert _core.sum_at_rows(rows, places, 6) is not None
    assert _core.nll_losses(rows, np.array([0, -1])) is None
    assert _core.nll_losses(rows, np.array([0, 3])) is None
    assert _core.nll_gradient(np.array([0, 3]), 3, np.ones((), np.float32)) is None


@given(st.data(), st.sampled_from([0, 1, 2]), st.sampled_from([-100, 0, 2]))
def test_nll_loss_and_its_gradient(data: Any, reduction: int, ignore_index: int) -> None:
    rows, classes = data.draw(st.integers(0, 9)), data.draw(st.integers(1, 9))
    dtype = data.draw(dtypes)
    x = data.draw(arrays((rows, classes), dtype))
    target = data.draw(arrays((rows,), np.int64, st.integers(0, classes - 1)))
    weight = data.draw(st.one_of(st.none(), arrays((classes,), dtype)))
    forward, backward = OPS["nll_loss_forward"].kernel, OPS["nll_loss_backward"].kernel
    results = fused_and_twin(
        "nll_losses", lambda x, t: forward(x, t, weight, reduction, ignore_index), x, target
    )
    assert_same_bits(*results)
    total = results[1][1]
    g = data.draw(arrays((rows,) if reduction == 0 else (), dtype))
    assert_same_bits(
        *fused_and_twin(
            "nll_gradient",
            lambda g, x, t: backward(g, x, t, weight, reduction, ignore_index, total),
            g,
            x,
            target,
        )
    )


@given(st.data(), st.sampled_from([0, 1, 2]))
def test_multilabel_margin_loss(data: Any, reduction: int) -> None:
    rows, classes = data.draw(st.integers(0, 9)), data.draw(st.integers(1, 20))
    x = data.draw(arrays((rows, classes), data.draw(dtypes)))
    target = data.draw(arrays((rows, classes), np.int64, st.integers(-1, classes - 1)))
    forward = OPS["multilabel_margin_loss_forward"].kernel
    assert_same_bits(*fused_and_twin("multilabel_margins", lambda x, t: forward(x, t, reduction), x, target))


@given(st.data(), st.sampled_from([np.int32, np.int64, np.uint8]))
def test_bounds_of_indices(data: Any, dtype: Any) -> None:
    index = data.draw(arrays(data.draw(SHAPES), dtype, st.integers(0 if dtype is np.uint8 else -3, 3)))
    low, high = data.draw(st.integers(-4, 1)), data.draw(st.sampled_from([2, 3, 4, 1 << 70]))
    fused, twin = fused_and_twin("inside", lambda index: _dims.inside(index, low, high), index)
    assert fused == twin == all(low <= place < high for place in index.reshape(-1).tolist())


# -------------------------------------------------------------------------------- convolution


@given(st.data())
def test_convolutions_of_stride_one(data: Any) -> None:
    dims = data.draw(st.integers(1, 3))
    images, channels, filters = (data.draw(st.integers(1, 4)) for _ in range(3))
    spatial = tuple(data.draw(st.integers(3, 6)) for _ in range(dims))
    kernel = tuple(data.draw(st.integers(1, 3)) for _ in range(dims))
    padding = tuple(data.draw(st.integers(0, 2)) for _ in range(dims))
    dtype = data.draw(dtypes)
    x = data.draw(arrays((images, channels, *spatial), dtype))
    w = data.draw(arrays((filters, channels, *kernel), dtype))
    g = data.draw(
        arrays((images, filters, *[n + 2 * p - k + 1 for n, p, k in zip(spatial, padding, kernel)]), dtype)
    )
    _compare_convolution(x, w, g, padding)


def _compare_convolution(x: np.ndarray, w: np.ndarray, g: np.ndarray, padding: tuple) -> None:
    ones = (1,) * len(padding)
    spatial, kernel, rest = x.shape[2:], w.shape[2:], (ones, padding, ones, 1)
    for loop, call, *arguments in (
        ("convolve", lambda x, w: convolution.forward(x, w, *rest), x, w),
        ("convolve_weight", lambda g, x: convolution.weight_gradient(g, x, kernel, *rest), g, x),
        ("convolve_input", lambda g, w: convolution.input_gradient(g, w, spatial, *rest), g, w),
    ):
        assert_same_bits(*fused_and_twin(loop, call, *arguments))


def test_a_convolution_as_large_as_in_a_network() -> None:
    rng = np.random.default_rng(0)
    shapes = ((4, 16, 12, 12), (32, 16, 3, 3), (4, 32, 12, 12))
    _compare_convolution(*[rng.standard_normal(shape).astype(np.float32) for shape in shapes], (1, 1))


def test_columns_that_would_end_beyond_an_image_are_left_to_numpy() -> None:
    images, weight = np.ones((1, 1, 5), np.float32), np.ones((1, 1), np.float32)
    assert _core.convolve(images, np.array([1]), 4, weight) is not None
    assert _core.convolve(images, np.array([2]), 4, weight) is None
    assert _core.convolve(images, np.array([-1]), 4, weight) is None


# -------------------------------------------------------------------------------- LSTM


@pytest.mark.parametrize(
    ("steps", "batch", "width", "size"), [(1, 1, 1, 1), (5, 1, 3, 4), (4, 7, 2, 5), (9, 16, 32, 64)]
)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("given_gradients", [(True, False, False), (True, True, True), (False, True, False)])
def test_an_lstm_layer(
    steps: int, batch: int, width: int, size: int, reverse: bool, given_gradients: tuple
) -> None:
    rng = np.random.default_rng(steps * batch)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    x, h, c = normal(steps, batch, width), normal(batch, size), normal(batch, size)
    weights = normal(4 * size, width), normal(4 * size, size), normal(4 * size), normal(4 * size)
    flags = (reverse, (), 2, size, 1, True, False, False, True)
    forward, backward = OPS["mkldnn_rnn_layer"].kernel, OPS["mkldnn_rnn_layer_backward"].kernel
    results = fused_and_twin("lstm_forward", lambda *a: forward(*a, *flags), x, *weights, h, c)
    assert_same_bits(*results)
    out, h_after, c_after, space = results[0]
    shapes = ((steps, batch, size), (batch, size), (batch, size))
    grads = [normal(*shape) if wanted else None for wanted, shape in zip(given_gradients, shapes)]
    rest = (reverse, 2, size, 1, True, True, False, (), False, space)
    assert_same_bits(
        *fused_and_twin(
            "lstm_backward",
            lambda *a: backward(*a, *rest),
            x,
            *weights,
            h,
            c,
            out,
            h_after,
            c_after,
            *grads,
        )
    )


# -------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize("name", [name for name in dir(_core._fused) if not name.startswith("_")])
def test_a_wrong_number_of_arguments_is_refused(name: str) -> None:
    with pytest.raises(TypeError):
        getattr(_core._fused, name)(*[None] * 17)


@pytest.mark.parametrize("name", [name for name in dir(_core._fused) if not name.startswith("_")])
def test_objects_that_are_no_arrays_give_none_or_an_error(name: str) -> None:
    for count in range(1, 9):
        with contextlib.suppress(TypeError):
            assert getattr(_core._fused, name)(*[None] * count) is None


def test_the_stub_lists_the_functions_of_the_module() -> None:
    text = Path(_core.__file__).with_name("_fused.pyi").read_text()
    listed = {line[4:].split("(")[0] for line in text.splitlines() if line.startswith("def ")}
    assert listed == {name for name in dir(_core._fused) if not name.startswith("_")}


@given(st.data(), dtypes, st.booleans())
def test_topk(data: Any, dtype: Any, largest: bool) -> None:
    cols = data.draw(st.sampled_from([1, 2, 9, 70, 100]))
    few = st.sampled_from([0.0, 1.0, 2.0, -3.0, float("inf"), float("nan")])
    x = data.draw(hnp.arrays(dtype, (3, cols), elements=data.draw(st.sampled_from([few, values(dtype)]))))
    x = x + x.dtype.type(0)
    k = data.draw(st.integers(0, min(cols, 20)))
    assert_same_bits(*fused_and_twin("topk", lambda x: OPS["topk"].kernel(x, k, -1, largest, True), x))


def test_views_of_negative_size_are_left_to_numpy() -> None:
    assert _core.strided(np.zeros((2, 3), np.float32), (5, 0, -1), (36, 36, 36)) is None


@given(st.data())
def test_views_with_other_strides_stay_inside_of_the_array(data: Any) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))
    x = data.draw(arrays(shape, np.float32))
    ndim = data.draw(st.integers(0, 3))
    sizes = tuple(data.draw(st.lists(st.integers(-1, 5), min_size=ndim, max_size=ndim)))
    steps = tuple(data.draw(st.lists(st.integers(-9, 9).map(lambda n: 4 * n), min_size=ndim, max_size=ndim)))
    view = _core.strided(x, sizes, steps)
    if view is None:
        return
    assert (view.shape, view.dtype) == (sizes, x.dtype)
    if not view.size:
        return
    low, high = np.lib.array_utils.byte_bounds(view)
    lowest, highest = np.lib.array_utils.byte_bounds(x)
    assert lowest <= low <= high <= highest
    expected = np.lib.stride_tricks.as_strided(x, sizes, steps)
    assert np.array_equal(view, expected, equal_nan=True)


@pytest.mark.parametrize("scale", [0.0, 0.3, -7.1])
def test_one_rounding_of_a_product_and_a_sum(scale: float) -> None:
    x = np.random.default_rng(0).standard_normal(1000)
    fused = _sampling.fma64(x, scale, 1.1)
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        patch.setattr(_sampling, "_fused_fma", lambda *_: None)
        twin = _sampling.fma64(x, scale, 1.1)
    assert np.array_equal(fused, twin)


def test_a_compiled_core_that_is_older_than_the_sources_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "_fused", types.SimpleNamespace(__file__="old/_fused.so"))
    with pytest.raises(
        ImportError, match=r"old/_fused.so has no loop 'relu': it is older than the Python sources"
    ):
        _core._loop("relu")
