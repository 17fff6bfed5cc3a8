"""Adding at places that may repeat: arrays in, the target changed. No Python loop over elements."""

from __future__ import annotations

from typing import Any

import numpy as np


def add_rows(target: np.ndarray, places: np.ndarray, rows: np.ndarray) -> None:
    """target[places[k]] += rows[k], for every k; places are from 0."""
    count = places.size
    if count <= 4:
        for place, row in zip(places.tolist(), rows):
            target[place] += row
        return
    if rows.ndim == 1:
        np.add.at(target, places, rows)
        return
    if rows.size >= MANY and target.flags.c_contiguous and target.dtype.kind in "fc" and target.itemsize >= 4:
        _add_rows_sparse(target, places, rows)
        return
    order = places.argsort(kind="stable")
    ordered = places[order]
    starts = np.flatnonzero(ordered[1:] != ordered[:-1])
    if starts.size == count - 1:
        target[places] += rows
        return
    starts = np.concatenate(([0], starts + 1))
    target[ordered[starts]] += np.add.reduceat(rows[order], starts, axis=0)


MANY = 1 << 14  # elements


def _add_rows_sparse(target: np.ndarray, places: np.ndarray, rows: np.ndarray) -> None:
    """The same by a product with a sparse matrix that has one 1 in each column: a compiled loop."""
    from scipy.sparse import csc_array

    count, n = places.size, target.shape[0]
    ones = np.ones(count, target.dtype)
    matrix = csc_array((ones, places, np.arange(count + 1)), shape=(n, count))
    flat = target.reshape(n, -1)
    sums = matrix @ rows.reshape(count, -1)
    if count * 4 >= n:
        flat += sums
    else:
        touched = np.unique(places)
        flat[touched] += sums[touched]


def linear_index(indices: Any, shape: tuple) -> np.ndarray:
    """Broadcast index arrays (from 0) over the leading dimensions of `shape`, as one index."""
    found = indices[0]
    for index, n in zip(indices[1:], shape[1:]):
        found = found * n + index
    return found
