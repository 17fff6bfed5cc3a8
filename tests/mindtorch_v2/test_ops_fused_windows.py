"""Fused pools and grid_sample: each gives what the NumPy code of its kernel gives, to the last bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from fused_loops import DTYPES, arrays, assert_same_bits, dtypes, fused_and_twin
from hypothesis import given
from hypothesis import strategies as st

from mindtorch_v2._ops import _core, _pooling_windows, average_pooling, convolution, grid_sample, max_pooling

pytestmark = pytest.mark.skipif(
    _core._fused is None, reason="the compiled core is not built, or MINDTORCH_CORE=python"
)


@st.composite
def pools(draw: Any, dilated: bool) -> tuple:
    """An image and the settings of a pool, of which some are refused or give empty windows."""
    dims = draw(st.integers(1, 3))
    shape = (draw(st.integers(0, 2)), 2, *[draw(st.integers(1, 7)) for _ in range(dims)])
    kernel = tuple(draw(st.integers(1, 4)) for _ in range(dims))
    stride = tuple(draw(st.integers(1, 4)) for _ in range(dims))
    padding = tuple(draw(st.integers(0, k // 2)) for k in kernel)
    dilation = tuple(draw(st.integers(1, 3)) if dilated else 1 for _ in range(dims))
    return draw(arrays(shape, draw(dtypes))), kernel, stride, padding, dilation, draw(st.booleans())


def _or_error(call: Any) -> Any:
    """A function that returns the text of an error."""

    def result(*arguments: Any) -> Any:
        try:
            return call(*arguments)
        except (RuntimeError, IndexError) as error:
            return np.array([hash(str(error))])

    return result


@given(pools(dilated=True))
def test_max_pool(pool: tuple) -> None:
    x, *window = pool
    x = x + x.dtype.type(0)  # which of two zeros is the larger one is not specified
    assert_same_bits(*fused_and_twin("max_pool", _or_error(lambda x: max_pooling.max_pool(x, *window)), x))


@given(pools(dilated=False), st.booleans(), st.sampled_from([None, None, 3]))
def test_avg_pool(pool: tuple, include_pad: bool, divisor: Any) -> None:
    x, kernel, stride, padding, _, ceil_mode = pool
    call = _or_error(
        lambda x: average_pooling.avg_pool(x, kernel, stride, padding, ceil_mode, include_pad, divisor)
    )
    assert_same_bits(*fused_and_twin("avg_pool", call, x))


@given(pools(dilated=False), st.booleans(), st.data())
def test_gradient_of_avg_pool(pool: tuple, include_pad: bool, data: Any) -> None:
    x, kernel, stride, padding, dilation, ceil_mode = pool
    dims = len(kernel)
    out = [
        _pooling_windows.pooled_size(*sizes, ceil_mode)
        for sizes in zip(x.shape[-dims:], kernel, padding, stride, dilation)
    ]
    if min(out) < 1:
        return
    g = data.draw(arrays((*x.shape[:-dims], *out), x.dtype))
    call = lambda g: average_pooling.avg_pool_gradient(g, x.shape, kernel, stride, padding, include_pad, None)
    assert_same_bits(*fused_and_twin("avg_pool_backward", call, g))


sizes = st.lists(st.integers(1, 7), min_size=1, max_size=3)


@given(sizes, st.data(), dtypes)
def test_adaptive_pools(size: list, data: Any, dtype: Any) -> None:
    shape = (2, 2, *[data.draw(st.integers(1, 8)) for _ in size])
    x = data.draw(arrays(shape, dtype))
    dims, out = len(size), tuple(size)
    assert_same_bits(
        *fused_and_twin("adaptive_avg_pool", lambda x: average_pooling.adaptive_average(x, out), x)
    )
    g = data.draw(arrays((2, 2, *out), dtype))
    backward = lambda g: average_pooling.adaptive_average_gradient(g, shape, dims)
    assert_same_bits(*fused_and_twin("adaptive_avg_pool_backward", backward, g))
    if dims > 1:
        kernel = _core_op(f"adaptive_max_pool{dims}d")
        assert_same_bits(*fused_and_twin("adaptive_max_pool", lambda x: kernel(x, out), x))


def _core_op(name: str) -> Any:
    from mindtorch_v2._dispatch import OPS

    return OPS[name].kernel


@given(st.data(), dtypes, st.integers(2, 3))
def test_fractional_max_pools(data: Any, dtype: Any, dims: int) -> None:
    spatial = [data.draw(st.integers(3, 7)) for _ in range(dims)]
    kernel = tuple(data.draw(st.integers(1, n - 2)) for n in spatial)
    size = tuple(data.draw(st.integers(1, n - k)) for n, k in zip(spatial, kernel))
    x = data.draw(arrays((2, 2, *spatial), dtype))
    samples = data.draw(arrays((2, 2, dims), dtype, st.floats(0, 0.984375, width=32)))
    pool = _core_op(f"fractional_max_pool{dims}d")
    assert_same_bits(*fused_and_twin("max_pool_at", lambda x: pool(x, kernel, size, samples), x + dtype(0)))


@given(sizes, st.data(), dtypes, st.booleans())
def test_gradient_of_max_pools(size: list, data: Any, dtype: Any, overlapping: bool) -> None:
    volume, dims = math.prod(size), len(size)
    g = data.draw(arrays((2, *[2] * dims), dtype))
    shape = (2, *size)
    inside = st.integers(0, volume - 1)
    places = np.array(data.draw(st.lists(inside, min_size=g.size, max_size=g.size))).reshape(g.shape)
    call = lambda g, places: max_pooling.scatter_max(g, places, shape, dims, overlapping)
    assert_same_bits(*fused_and_twin("scatter_planes", call, g, places))


@pytest.mark.parametrize("place", [-1, 4, 2**62])
def test_places_outside_of_the_image_are_left_to_numpy(place: int) -> None:
    g, places = np.ones((1, 1, 1), np.float32), np.full((1, 1, 1), place)
    assert _core.scatter_planes(g, places, (1, 2, 2), 2, True) is None


@given(
    st.data(),
    dtypes,
    st.sampled_from([(2, 0), (2, 1), (2, 2), (3, 0), (3, 1)]),
    st.integers(0, 2),
    st.booleans(),
)
def test_grid_sample(data: Any, dtype: Any, kind: tuple, padding: int, align: bool) -> None:
    dims, mode = kind
    image = (2, 3, *[data.draw(st.integers(1, 4)) for _ in range(dims)])
    places = (2, *[data.draw(st.integers(0, 3)) for _ in range(dims)], dims)
    inside = st.floats(-1.5, 1.5, width=32)
    x = data.draw(arrays(image, dtype, inside))
    grid = data.draw(arrays(places, dtype, st.one_of(inside, inside, st.floats(width=32))))
    call = lambda x, grid: grid_sample.sample(x, grid, mode, padding, align)
    assert_same_bits(*fused_and_twin("grid_sample", call, x, grid))
    g = data.draw(arrays((2, 3, *places[1:-1]), dtype, inside))
    backward = lambda g, x, grid: grid_sample.sample_gradient(g, x, grid, mode, padding, align, (True, True))
    assert_same_bits(*fused_and_twin("grid_sample_backward", backward, g, x, grid))


@st.composite
def patches(draw: Any) -> tuple:
    """An image and the settings of a convolution that has at least one place to be at."""
    dims = draw(st.integers(1, 3))
    kernel, out, stride, dilation = (tuple(draw(st.integers(1, 3)) for _ in range(dims)) for _ in range(4))
    padding = tuple(draw(st.integers(0, 1)) for _ in range(dims))
    sizes = zip(kernel, out, stride, dilation, padding)
    spatial = [
        max((k - 1) * d + (o - 1) * s + 1 + draw(st.integers(0, 2)) - 2 * p, 1) for k, o, s, d, p in sizes
    ]
    shape = (draw(st.integers(0, 2)), draw(st.integers(1, 2)), *spatial)
    return draw(arrays(shape, draw(dtypes))), kernel, stride, padding, dilation


def _places(x: np.ndarray, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple) -> tuple[int, ...]:
    sizes = zip(x.shape[2:], kernel, stride, padding, dilation)
    return tuple([(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in sizes])


@given(patches())
def test_patches_of_a_convolution(case: tuple) -> None:
    x, kernel, stride, padding, dilation = case
    out = _places(*case)

    def columns(x: np.ndarray) -> np.ndarray:
        return convolution._columns(x, kernel, out, stride, padding, dilation)

    assert_same_bits(*fused_and_twin("move_columns", columns, x))


@given(patches())
def test_transposed_convolution(case: tuple) -> None:
    x, kernel, stride, padding, dilation = case
    channels = x.shape[1]
    weight = np.linspace(-1, 1, channels * 2 * math.prod(kernel), dtype=x.dtype).reshape(channels, 2, *kernel)
    sizes = zip(x.shape[2:], kernel, stride, padding, dilation)
    spatial = tuple([(n - 1) * s + d * (k - 1) + 1 - 2 * p for n, k, s, p, d in sizes])
    if min(spatial) < 1:
        return

    def gradient(x: np.ndarray) -> np.ndarray:
        return convolution.input_gradient(x, weight, spatial, stride, padding, dilation, 1)

    assert_same_bits(*fused_and_twin("move_columns", gradient, x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(
    ("stride", "padding", "dilation"), [(1, 0, 1), (1, 1, 1), (2, 1, 1), (2, 0, 2), (3, 2, 1)]
)
def test_convolutions_with_one_filter_per_channel(
    dtype: Any, dims: int, stride: int, padding: int, dilation: int
) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3, *(9, 8, 7)[:dims])).astype(dtype)
    w = rng.normal(size=(3, 1, *(3, 2, 3)[:dims])).astype(dtype)
    settings = ((stride,) * dims, (padding,) * dims, (dilation,) * dims)
    out = convolution.forward(x, w, *settings, 3)
    g = rng.normal(size=out.shape).astype(dtype)
    spatial, kernel = x.shape[2:], w.shape[2:]
    for loop, call in (
        ("depthwise", lambda: convolution.forward(x, w, *settings, 3)),
        ("depthwise", lambda: convolution.input_gradient(g, w, spatial, *settings, 3)),
        ("depthwise_weight", lambda: convolution.weight_gradient(g, x, kernel, *settings, 3)),
    ):
        assert_same_bits(*fused_and_twin(loop, call))


def test_filters_that_would_leave_an_image_are_left_to_numpy() -> None:
    images, out = np.ones((1, 2, 4, 4), np.float32), np.zeros((1, 2, 3, 3), np.float32)
    weight = np.ones((2, 3, 3), np.float32)
    assert _core.depthwise(out, images, weight, (1, 1), (1, 1), False) is None
    assert _core.depthwise_weight(out, images, (3, 3), (1, 1), (1, 1)) is None
    assert _core.depthwise(out, images, weight[:1], (1, 1), (1, 1), False) is None
    assert _core.depthwise(out, images, weight[:, :2, :2], (1, 1), (1, 1), False) is None  # not contiguous
    assert not out.any()
