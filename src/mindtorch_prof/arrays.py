"""Names for the types of NumPy arrays, by what their elements are; and the rows of a column by its values."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]  # a column of a table: numbers, or objects
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.floating]
IntArray = npt.NDArray[np.integer]


def rows_by(values: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Each distinct value of a column with its rows, in ascending order of both.

    One sort for all values: a mask per value costs values times rows, in a file with thousands of devices or threads minutes.
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    cuts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    bounds = [0, *cuts.tolist(), len(order)] if len(order) else [0]
    for first, last in itertools.pairwise(bounds):
        yield int(ordered[first]), order[first:last]
