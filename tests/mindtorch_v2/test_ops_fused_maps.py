"""The fused loops over elements: each gives what the NumPy code of its kernel gives, to the last bit."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from fused_loops import arrays, assert_same_bits, dtypes, fused_and_twin, values
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import OPS
from mindtorch_v2._ops import _core, _erf, _exp, _half_precision, _log, _where

compiled_only = pytest.mark.skipif(
    _core._fused is None, reason="the compiled core is not built, or MINDTORCH_CORE=python"
)
SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=9)
ANY_NUMBER = np.concatenate(
    [
        np.float32(0) * np.float32([1, -1]),
        np.float32([np.inf, -np.inf, np.nan, 1e-45, -1e-40, 88.8, -104, 20, 30.5]),
    ]
    + [
        np.random.default_rng(0).normal(size=3000).astype(np.float32) * np.float32(10.0**k)
        for k in range(-30, 31, 3)
    ]
)
ONE = {
    "sign": (),
    "reciprocal": (),
    "rsqrt": (),
    "leaky_relu": (0.1,),
    "hardswish": (),
    "log": (),
    "log1p": (),
    "expm1": (),
    "erf": (),
    "elu": (0.7, 1.3, 0.9),
    "softplus": (1.5, 20.0),
    "mish": (),
}
TWO = {
    "leaky_relu_backward": (0.1, False),
    "hardtanh_backward": (-1.0, 1.0),
    "hardswish_backward": (),
    "sigmoid_backward": (),
    "tanh_backward": (),
    "softplus_backward": (1.5, 20.0),
    "silu_backward": (),
    "mish_backward": (),
}


def _same_as_twin(loop: str, call: Any, *operands: Any) -> None:
    assert_same_bits(*fused_and_twin(loop, lambda *copies: np.asarray(call(*copies)), *operands))


@compiled_only
@pytest.mark.parametrize("name", ONE)
@settings(max_examples=20)
@given(data=st.data())
def test_functions_of_one_array(name: str, data: Any) -> None:
    x = data.draw(arrays(data.draw(SHAPES), data.draw(dtypes)))
    _same_as_twin(name, lambda x: OPS[name].kernel(x, *ONE[name]), x)


@compiled_only
@pytest.mark.parametrize("name", TWO)
@settings(max_examples=20)
@given(data=st.data())
def test_gradients_of_functions_of_one_array(name: str, data: Any) -> None:
    shape, dtype = data.draw(SHAPES), data.draw(dtypes)
    g, x = data.draw(arrays(shape, dtype)), data.draw(arrays(shape, dtype))
    _same_as_twin(name, lambda g, x: OPS[name].kernel(g, x, *TWO[name]), g, x)


@compiled_only
@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_numbers_of_all_sizes(name: str) -> None:
    x = ANY_NUMBER
    if name in ONE:
        _same_as_twin(name, lambda x: OPS[name].kernel(x, *ONE[name]), x)
    else:
        _same_as_twin(name, lambda g, x: OPS[name].kernel(g, x, *TWO[name]), x[::-1].copy(), x)


@compiled_only
@settings(max_examples=20)
@given(st.data(), dtypes)
def test_the_gradient_of_elu(data: Any, dtype: Any) -> None:
    shape = data.draw(SHAPES)
    g, x = data.draw(arrays(shape, dtype)), data.draw(arrays(shape, dtype))
    kernel = OPS["elu_backward"].kernel
    _same_as_twin("elu_backward", lambda g, x: kernel(g, 0.7, 1.3, 0.9, False, x), g, x)


@compiled_only
@pytest.mark.parametrize("name", ["mse_loss", "smooth_l1_loss"])
@settings(max_examples=20)
@given(data=st.data(), dtype=dtypes)
def test_losses_of_two_arrays(name: str, data: Any, dtype: Any) -> None:
    shape = data.draw(SHAPES)
    x, y = data.draw(arrays(shape, dtype)), data.draw(arrays(shape, dtype))
    loop = {"mse_loss": "squared_difference", "smooth_l1_loss": "smooth_l1"}[name]

    def call(x: np.ndarray, y: np.ndarray) -> Any:
        loss = getattr(torch.nn.functional, name)
        return loss(torch.from_numpy(x.copy()), torch.from_numpy(y.copy()), reduction="none").numpy()

    _same_as_twin(loop, call, x, y)


@compiled_only
@settings(max_examples=20)
@given(st.data(), dtypes)
def test_lerp_with_a_weight_per_element(data: Any, dtype: Any) -> None:
    shape = data.draw(SHAPES)
    operands = [data.draw(arrays(shape, dtype)) for _ in range(3)]
    _same_as_twin("lerp_by", OPS["lerp.Tensor"].kernel, *operands)


# -------------------------------------------------------------------------------- accuracy, on both cores


@pytest.mark.parametrize(
    ("function", "exact", "units"),
    [(_log.log, np.log, 1), (_log.log1p, np.log1p, 1), (_exp.expm1, np.expm1, 2)],
)
def test_logarithms_and_expm1_are_exact_to_some_units(function: Any, exact: Any, units: int) -> None:
    with np.errstate(all="ignore"):
        actual, expected = function(ANY_NUMBER), exact(ANY_NUMBER.astype(np.float64)).astype(np.float32)
        assert np.array_equal(np.isnan(actual), np.isnan(expected))
        off = np.abs(actual.astype(np.float64) - expected) / np.spacing(np.abs(expected))
    same = (actual == expected) | np.isnan(expected)
    assert np.all(off[~same] <= units)


def test_erf_of_single_precision_is_exact_to_four_ten_millionths() -> None:
    x = np.linspace(-5, 5, 4001, dtype=np.float32)
    expected = np.array([math.erf(v) for v in x])
    assert np.abs(_erf.erf(x) - expected).max() < 4e-7


# -------------------------------------------------------------------------------- selections


@pytest.mark.parametrize(
    "dtype", [np.bool_, np.uint8, np.float16, ml_dtypes.bfloat16, np.float32, np.int64, np.complex64]
)
@pytest.mark.parametrize(
    "shapes", [((40, 50), (40, 50)), ((40, 50), ()), ((), (40, 50)), ((), ()), ((50,), (40, 50))]
)
def test_where_chooses_what_numpy_chooses(dtype: Any, shapes: Any) -> None:
    rng = np.random.default_rng(1)
    mask = rng.random((40, 50)) > 0.5
    yes, no = (np.asarray(rng.integers(-5, 5, shape)).astype(dtype) for shape in shapes)
    for layout in (mask, mask.T.copy().T, ~mask):
        actual, expected = _where.where(layout, yes, no), np.where(layout, yes, no)
        assert actual.dtype == expected.dtype
        assert np.array_equal(actual, expected)


@pytest.mark.parametrize(
    ("yes", "no"), [(np.ones((40, 50), np.float32), 0), (1, np.ones((40, 50), np.int64)), (1, 0.5)]
)
def test_where_takes_python_numbers(yes: Any, no: Any) -> None:
    mask = np.random.default_rng(1).random((40, 50)) > 0.5
    actual, expected = _where.where(mask, yes, no), np.where(mask, yes, no)
    assert actual.dtype == expected.dtype
    assert np.array_equal(actual, expected)


# -------------------------------------------------------------------------------- remainders


@compiled_only
@pytest.mark.parametrize("name", ["remainder.Tensor", "floor_divide"])
def test_remainders_and_floored_quotients(name: str) -> None:
    rng = np.random.default_rng(2)
    a = np.concatenate([ANY_NUMBER, rng.permutation(ANY_NUMBER)])
    b = np.concatenate([rng.permutation(ANY_NUMBER), ANY_NUMBER])
    kernel = OPS[name].kernel
    with np.errstate(all="ignore"):
        _same_as_twin("remainder", kernel, a, b)
        for divisor in (3.0, -0.7, 1e-3, 0.0, np.inf, np.nan):
            _same_as_twin("remainder", kernel, a, np.array(divisor, np.float32))


@compiled_only
@settings(max_examples=20)
@given(st.data())
def test_remainders_of_all_layouts(data: Any) -> None:
    shape = data.draw(SHAPES)
    a, b = (data.draw(arrays(shape, np.float32, values(np.float32))) for _ in range(2))
    _same_as_twin("remainder", OPS["remainder.Tensor"].kernel, a, b)


# -------------------------------------------------------------------------------- conversions


@compiled_only
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_conversions_to_and_from_half_precision(dtype: Any) -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    wide = _core.converted(halves, np.zeros(0, np.float32))
    _assert_same_numbers(wide, halves.astype(np.float32))
    # every half, what lies in the middle between two, and what lies beside it
    with np.errstate(all="ignore"):
        middle = wide[:-1] / 2 + wide[1:] / 2
        singles = np.concatenate(
            [wide, middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf), ANY_NUMBER]
        )
        singles = singles.astype(np.float32)
        _assert_same_numbers(_core.converted(singles, halves), singles.astype(dtype))
        _assert_same_numbers(_core.converted(singles[:5], halves), singles[:5].astype(dtype))


def _assert_same_numbers(actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.dtype == expected.dtype
    is_nan = np.isnan(expected.astype(np.float32))
    assert np.array_equal(np.isnan(actual.astype(np.float32)), is_nan)
    kind = np.dtype(f"u{actual.itemsize}")
    assert np.array_equal(actual.view(kind)[~is_nan], expected.view(kind)[~is_nan])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_tensors_convert_to_half_precision_and_back(dtype: Any) -> None:
    x = torch.linspace(-3, 3, 6000).view(60, 100)
    for tensor in (x, x.t(), x[::2], x[0, 0]):
        expected = tensor.numpy().astype(dtype._np)
        assert np.array_equal(tensor.to(dtype)._array.astype(np.float32), expected.astype(np.float32))
        assert np.array_equal(tensor.to(dtype).float().numpy(), expected.astype(np.float32))
        assert tensor.to(dtype).stride() == tensor.to(torch.float64).stride()


def test_half_precision_computed_in_single_precision_is_rounded_once() -> None:
    x = np.linspace(-3, 3, 3000).astype(np.float16)
    doubled = _half_precision.run_in_float32(lambda wide: wide * wide, x)
    assert doubled.dtype == np.float16
    assert np.array_equal(doubled, (x.astype(np.float32) ** 2).astype(np.float16))


@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p", "erf", "rsqrt", "reciprocal", "sign"])
def test_functions_in_place_give_the_same_bits(name: str) -> None:
    x = torch.linspace(0.01, 9, 3000)
    expected = getattr(x, name)()
    for layout in (x, torch.stack([x, x], 1)[:, 0]):
        out = torch.empty(3000)
        getattr(torch, name)(layout, out=out)
        assert torch.equal(out, expected)
        assert torch.equal(getattr(layout.clone(), name + "_")(), expected)
