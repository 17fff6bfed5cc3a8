"""The fused loops along one dimension: each gives what the NumPy code of its kernel gives."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from fused_loops import DTYPES, arrays, assert_same_bits, dtypes, fused_and_twin
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import OPS
from mindtorch_v2._ops import _core, _lanes

compiled_only = pytest.mark.skipif(
    _core._fused is None, reason="the compiled core is not built, or MINDTORCH_CORE=python"
)
SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=6)


@compiled_only
@settings(max_examples=40)
@given(st.data(), dtypes, st.sampled_from(["cumsum", "cumprod"]))
def test_running_sums_and_products(data: Any, dtype: Any, name: str) -> None:
    x = data.draw(arrays(data.draw(SHAPES), dtype))
    dim = data.draw(st.integers(-x.ndim, x.ndim - 1))
    assert_same_bits(*fused_and_twin("accumulated", lambda x: OPS[name].kernel(x, dim, None), x))


@compiled_only
@settings(max_examples=40)
@given(st.data(), dtypes, st.sampled_from(["cummax", "cummin"]))
def test_running_extremes_and_their_places(data: Any, dtype: Any, name: str) -> None:
    elements = st.sampled_from([0.0, -0.0, 1.0, 2.0, -3.0, math.inf, -math.inf, math.nan])
    x = data.draw(arrays(data.draw(SHAPES), dtype, elements))
    dim = data.draw(st.integers(-x.ndim, x.ndim - 1))
    fused, twin = fused_and_twin("running_extremes", lambda x: OPS[name].kernel(x, dim), x)
    assert np.array_equal(fused[0], twin[0], equal_nan=True)
    assert np.array_equal(fused[1], twin[1])
    assert fused[0].strides == twin[0].strides


def test_running_sums_of_single_precision_have_totals_of_double_precision() -> None:
    x = torch.full((20000,), 0.1)
    exact = np.add.accumulate(x.numpy().astype(np.float64)).astype(np.float32)
    assert np.array_equal(x.cumsum(0).numpy(), exact)


@compiled_only
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 512), (2, 1000), (1, 8191), (1, 8192), (2, 70000), (5, 64 * 129 + 3)])
def test_reductions_of_long_rows(shape: tuple, dtype: Any) -> None:
    x = np.random.default_rng(0).normal(1, 0.05, shape).astype(dtype)
    for reduce in (
        lambda x: _lanes.squares(x, (1,), True),
        lambda x: _lanes.products(x, (1,), False),
        lambda x: _lanes.extremes(np.maximum, x, (1,), False),
        lambda x: _lanes.extremes(np.minimum, x, None, False),
    ):
        assert_same_bits(*fused_and_twin("reduced_rows", reduce, x))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_largest_and_smallest_number_of_a_long_row_is_nan_if_there_is_one(dtype: Any) -> None:
    for place in (0, 5, 63, 64, 700, 8191, 8199):
        x = np.random.default_rng(0).normal(size=8200).astype(dtype)
        assert torch.from_numpy(x).amax().item() == x.max()
        assert torch.from_numpy(x).min().item() == x.min()
        x[place] = np.nan
        assert torch.from_numpy(x).amax().isnan()
        assert torch.from_numpy(x).amin(0).isnan()
        assert torch.from_numpy(x).max().isnan()


def test_products_and_norms_of_long_rows_are_those_in_double_precision() -> None:
    x = np.random.default_rng(0).normal(1, 0.02, (3, 3000)).astype(np.float32)
    wide = x.astype(np.float64)
    assert np.allclose(torch.from_numpy(x).prod(1).numpy(), wide.prod(1), rtol=1e-4)
    assert np.allclose(torch.from_numpy(x).norm(dim=1).numpy(), np.sqrt((wide**2).sum(1)), rtol=1e-6)


# -------------------------------------------------------------------------------- elements that are moved

KINDS = [np.bool_, np.float16, ml_dtypes.bfloat16, np.float32, np.int64, np.complex64, np.complex128]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("dims", [(-1,), (0,), (0, 2), (0, 1, 2), (1, -1), ()])
def test_flip_reverses_every_dtype_and_layout(dtype: Any, dims: tuple) -> None:
    x = np.arange(60).reshape(3, 4, 5).astype(dtype)
    expected = np.flip(x, dims)
    source = torch.arange(60).view(3, 4, 5).to(getattr(torch, np.dtype(dtype).name))
    assert np.array_equal(source.flip(dims)._array, expected)
    assert np.array_equal(source.transpose(0, 2).flip(dims)._array, np.flip(x.transpose(2, 1, 0), dims))


@compiled_only
@settings(max_examples=40)
@given(st.data(), st.sampled_from([np.bool_, np.float16, np.float32, np.float64]))
def test_gather_along_every_dimension(data: Any, dtype: Any) -> None:
    x, index, dim = data.draw(_indexed(dtype))
    fused, twin = fused_and_twin("gathered", lambda x, i: OPS["gather"].kernel(x, dim, i, False), x, index)
    assert np.array_equal(fused, twin, equal_nan=True)
    assert fused.strides == twin.strides


@st.composite
def _indexed(draw: Any, dtype: Any) -> tuple:
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=6))
    dim = draw(st.integers(0, len(shape) - 1))
    elements = st.booleans() if dtype is np.bool_ else st.floats(-8, 8, width=16)
    wanted = tuple(draw(st.integers(0, 6)) if d == dim else n for d, n in enumerate(shape))
    index = draw(arrays(wanted, np.int64, st.integers(0, shape[dim] - 1)))
    return draw(arrays(shape, dtype, elements)), index, dim


@compiled_only
@pytest.mark.parametrize("name", ["scatter.src", "scatter_add"])
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.float16])
def test_scatter_along_every_dimension(name: str, dim: int, dtype: Any) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(5, 6, 7)).astype(dtype)
    wanted = [9 if d == dim else n for d, n in enumerate(x.shape)]
    index = rng.integers(0, x.shape[dim], wanted)
    src = (rng.normal(size=wanted) * 8).astype(dtype)
    assert_same_bits(*fused_and_twin("scattered", OPS[name].kernel, x, dim, index, src))


@compiled_only
def test_indices_outside_leave_a_scatter_to_numpy_before_anything_is_written() -> None:
    x, src = np.zeros((8, 8), np.float32), np.ones((8, 8), np.float32)
    index = np.zeros((8, 8), np.int64)
    index[7, 7] = 8
    assert _core.scattered(x, index, src, 0, False) is None
    assert _core.gathered(x, index, 1) is None
    assert not x.any()
    index[7, 7] = -1
    assert _core.scattered(x, index, src, 1, True) is None
    assert _core.gathered(x, index, 1) is None
    assert not x.any()


@compiled_only
def test_a_scatter_of_its_own_memory_is_left_to_numpy() -> None:
    x = np.arange(64, dtype=np.float64).reshape(8, 8)
    index = np.zeros((8, 8), np.int64)
    assert _core.scattered(x, index, x, 0, True) is None
    assert _core.scattered(x.view(np.int64), x.view(np.int64), index, 0, False) is None
    assert _core.scattered(x, index, x[:4], 0, True) is None


@pytest.mark.parametrize("index", [[[3, 0], [1, 2]], [[-1, 0], [1, 0]]])
def test_scatter_refuses_indices_outside(index: list) -> None:
    index = torch.tensor(index).repeat(8, 8)
    x = torch.zeros(16, 2)
    with pytest.raises(RuntimeError, match=r"index -?\d+ is out of bounds for dimension 1 with size 2"):
        x.scatter_(1, index, torch.ones(16, 16))
    assert not x.any()


# -------------------------------------------------------------------------------- ranges and triangles


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 10, 11])
def test_linspace_reaches_both_ends(dtype: Any, steps: int) -> None:
    line = torch.linspace(-3, 8, steps, dtype=dtype)
    assert line.shape == (steps,)
    assert line.dtype is dtype
    if steps > 1:
        assert (line[0].item(), line[-1].item()) == (-3, 8)
        assert bool((line[1:] >= line[:-1]).all())


@pytest.mark.parametrize("name", ["tril", "triu"])
@pytest.mark.parametrize("diagonal", [-2, 0, 3])
def test_triangles_of_large_matrices_of_any_layout(name: str, diagonal: int) -> None:
    x = np.random.default_rng(0).normal(size=(40, 60)).astype(np.float32)
    plain = torch.from_numpy(x)
    for source in (plain, plain.t(), plain[None], plain.expand(2, 40, 60)):
        actual = getattr(torch, name)(source, diagonal)
        assert np.array_equal(actual.numpy(), getattr(np, name)(source.numpy(), diagonal))
        assert actual.is_contiguous()
