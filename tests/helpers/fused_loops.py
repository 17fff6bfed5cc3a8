"""Fused loops beside their NumPy twins: the results of both, and arrays of many layouts to call them with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mindtorch_v2._ops import _core

DTYPES = (np.float32, np.float64)


def fused_and_twin(loop: str, call: Any, *arguments: Any) -> tuple[Any, Any]:
    """What `call` returns with the fused loop, and with the NumPy code alone, on copies of the arguments."""
    results = []
    for function in (getattr(_core, loop), lambda *_: None):
        with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
            patch.setattr(_core, loop, function)
            results.append(call(*[_copied(a) for a in arguments]))
    return results[0], results[1]


def _copied(argument: Any) -> Any:
    """A copy of an array with the same strides."""
    if not isinstance(argument, np.ndarray) or not argument.size:
        return argument
    if 0 in argument.strides or any(s < 0 for s in argument.strides):
        return argument
    span = sum((n - 1) * s for n, s in zip(argument.shape, argument.strides)) + argument.itemsize
    memory = np.zeros(-(-span // argument.itemsize), argument.dtype)
    copy = np.lib.stride_tricks.as_strided(memory, argument.shape, argument.strides)
    copy[...] = argument
    return copy


def assert_same_bits(actual: Any, expected: Any) -> None:
    if isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected):
            assert_same_bits(one, other)
        return
    assert type(actual) is type(expected)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert actual.size == 0 or actual.strides == expected.strides
    assert np.array_equal(actual, expected, equal_nan=True)
    numbers = ~np.isnan(expected)
    assert np.array_equal(np.signbit(actual)[numbers], np.signbit(expected)[numbers])


def values(dtype: Any) -> st.SearchStrategy[float]:
    """Ordinary numbers more often than NaN, infinities, and numbers that overflow or underflow."""
    width = np.dtype(dtype).itemsize * 8
    ordinary = st.floats(-8, 8, width=width, allow_subnormal=False)
    return st.one_of(ordinary, ordinary, st.floats(width=width))


@st.composite
def arrays(draw: Any, shape: Any, dtype: Any, elements: Any = None) -> np.ndarray:
    """An array of this shape: contiguous, or with its axes permuted in memory, with gaps, or expanded."""
    shape = tuple(shape)
    elements = values(dtype) if elements is None else elements
    kind = draw(st.sampled_from(("contiguous", "contiguous", "contiguous", "permuted", "gaps", "expanded")))
    if kind == "permuted" and len(shape) > 1:
        order = draw(st.permutations(range(len(shape))))
        array = draw(hnp.arrays(dtype, tuple(shape[d] for d in order), elements=elements))
        return array.transpose(np.argsort(order))
    if kind == "gaps" and shape:
        array = draw(hnp.arrays(dtype, (*shape[:-1], shape[-1] * 2), elements=elements))
        return array[..., ::2]
    if kind == "expanded" and shape:
        array = draw(hnp.arrays(dtype, (1, *shape[1:]), elements=elements))
        return np.broadcast_to(array, shape)
    return draw(hnp.arrays(dtype, shape, elements=elements))


dtypes = st.sampled_from(DTYPES)
