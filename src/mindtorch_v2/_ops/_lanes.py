"""Sums of long contiguous rows in 64 lanes: an array in, sums along its last dimensions out, or None where NumPy's order of addition holds.

A row is added up in blocks of 128 x 64 numbers: 64 lanes, in each 128 numbers one after another. The lanes of all blocks, and what is left
over, are added up by NumPy. The compiled loop does this with vector instructions, 3 times as fast as NumPy's sum of a row.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _core

LANES, STEPS = 64, 128
_LEAST = 512  # shorter rows are summed by NumPy


def sums(array: np.ndarray, dims: Any, keepdim: bool) -> Any:
    """The sum along the last dimensions, which `dims` lists from 0 (None: all)."""
    if array.dtype.char not in "fd" or not array.flags.c_contiguous or not array.ndim:
        return None
    first = 0 if dims is None else array.ndim - len(dims)
    if dims is not None and sorted(dims) != list(range(first, array.ndim)):
        return None
    length = math.prod(array.shape[first:])
    if length < _LEAST or not array.size:
        return None
    lead = array.shape[:first]
    totals = row_sums(array.reshape(-1, length))
    return totals.reshape((*lead, *(1,) * (array.ndim - first)) if keepdim else lead)


def along(array: np.ndarray, dim: int) -> np.ndarray:
    """The sum along one dimension, which is kept with length 1."""
    totals = sums(array, (dim,), True)
    return np.add.reduce(array, axis=dim, keepdims=True) if totals is None else totals


def row_sums(matrix: np.ndarray) -> np.ndarray:
    """The sums of the rows of a matrix."""
    fused = _core.row_sums(matrix)
    if fused is not None:
        return fused
    rows, n = matrix.shape
    blocks = n // (LANES * STEPS)
    whole = blocks * LANES * STEPS
    steps = (n - whole) // LANES
    end = whole + steps * LANES
    parts = [
        np.add.reduce(matrix[:, :whole].reshape(rows, blocks, STEPS, LANES), axis=2).reshape(rows, -1),
        np.add.reduce(matrix[:, whole:end].reshape(rows, steps, LANES), axis=1) if steps else matrix[:, :0],
        matrix[:, end:],
    ]
    return np.add.reduce(np.concatenate(parts, 1), axis=1)
