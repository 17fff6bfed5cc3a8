"""Kernels for float16 and bfloat16: a kernel in, the same kernel computed in float32 and rounded once at the end out."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .._dtype import LOW_FLOATS


def widened(value: Any) -> Any:
    """An array of half precision in float32; everything else as it is."""
    return value.astype(np.float32) if isinstance(value, np.ndarray) and value.dtype in LOW_FLOATS else value


def in_float32(kernel: Any) -> Any:
    """A kernel whose arrays are float32 where its first argument has half precision.

    Its float32 results are rounded to the dtype of the first argument.
    """

    @functools.wraps(kernel)
    def wide(*arguments: Any) -> Any:
        return run_in_float32(kernel, *arguments)

    return wide


def run_in_float32(kernel: Any, first: np.ndarray, *rest: Any) -> Any:
    """The results of `in_float32(kernel)`."""
    if first.dtype not in LOW_FLOATS:
        return kernel(first, *rest)
    results = kernel(widened(first), *map(widened, rest))
    if isinstance(results, tuple):
        return tuple(_rounded(result, first.dtype) for result in results)
    return _rounded(results, first.dtype)


def _rounded(result: Any, dtype: np.dtype) -> Any:
    if isinstance(result, (np.ndarray, np.generic)) and result.dtype == np.float32:
        return result.astype(dtype)
    return result
