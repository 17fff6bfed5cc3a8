"""Dimension arguments: torch's checks and errors, in one place."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from . import _core


def one(dim: Any, ndim: int) -> int:
    """A dimension as a number from 0; a 0-dim tensor counts as having one."""
    if dim.__class__ is not int:
        dim = operator.index(dim)
    n = ndim or 1
    if not -n <= dim < n:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})"
        )
    return dim % n


def many(dims: Any, ndim: int) -> tuple[int, ...]:
    """Several dimensions as numbers from 0; None or () means all."""
    if dims is None or dims == ():
        return tuple(range(ndim))
    if dims.__class__ is int:
        dims = (dims,)
    axes = tuple([one(d, ndim) for d in dims])
    if len(set(axes)) != len(axes):
        seen = set()
        for d in axes:
            if d in seen:
                raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
            seen.add(d)
    return axes if ndim else ()


def inside(index: np.ndarray, low: int, high: int) -> bool:
    """Whether all integers of an array are from `low` to below `high`."""
    fused = _core.inside(index, low, high)
    if fused is not None:
        return bool(fused)
    return not index.size or bool(index.min() >= low and index.max() < high)


def rows(array: Any, kept: int = 1) -> Any:
    """An array with all dimensions but the last `kept` merged into one. Unlike with -1, arrays without elements are possible."""
    merged = array.ndim - kept
    return array.reshape(math.prod(array.shape[:merged]), *array.shape[merged:])


def flat_from(array: Any, dim: int) -> Any:
    """An array with all dimensions from `dim` on merged into one, with or without elements."""
    return array.reshape(*array.shape[:dim], math.prod(array.shape[dim:]))


def dense(array: Any) -> Any:
    """The array in C order; unlike `np.ascontiguousarray`, a 0-dim array stays one."""
    return np.asarray(array, order="C")
