"""Names for the types of NumPy arrays, by what their elements are; the distinct values of a column, and its rows by value."""

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


_SPARSE = (
    4  # a table of all values between the smallest and the largest is used up to so many entries per row
)


def distinct(values: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct values of a column in ascending order, and by row the place of its value among them: as np.unique, in a tenth of the time
    where the values lie close together (rows, ids, numbers of names)."""
    span = _span(values)
    if span is None:
        order = np.argsort(
            values, kind="stable"
        )  # quick where most of them are in order already, as times and threads are
        ordered = values[order]
        is_first = np.append(True, ordered[1:] != ordered[:-1])
        found = ordered[is_first]
        del ordered
        number = np.cumsum(is_first)
        number -= 1
        place = np.empty(len(values), np.int64)
        place[order] = number
        return found, place
    low, is_used = span
    used = np.flatnonzero(is_used) + low
    places = np.cumsum(is_used) - 1
    return used.astype(values.dtype), places[values.astype(np.int64) - low]


def first_rows(number: IntArray, count: int) -> IntArray:
    """The first row of each number from 0 to `count`; all of them occur."""
    first = np.empty(count, np.int64)
    first[number[::-1]] = np.arange(len(number) - 1, -1, -1)  # the last write to a place stays
    return first


def distinct_values(values: IntArray) -> IntArray:
    """The distinct values of a column in ascending order."""
    span = _span(values)
    if span is not None:
        low, is_used = span
        return (np.flatnonzero(is_used) + low).astype(values.dtype)
    ordered = np.sort(values, kind="stable")
    first: IntArray = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    return first


def _span(values: IntArray) -> tuple[int, BoolArray] | None:
    """The smallest value, and for each number from there to the largest one whether it is a value; None: they lie too far apart."""
    if not len(values):
        return 0, np.zeros(0, bool)
    low, high = int(values.min()), int(values.max())
    if high - low > _SPARSE * len(values) + 1024:
        return None
    is_used = np.zeros(high - low + 1, bool)
    is_used[values.astype(np.int64) - low] = True
    return low, is_used


def stable_order(values: IntArray) -> IntArray:
    """The order of rows by value; of one value as they are. Numbers of 16 bits are sorted by their digits: about four times as fast."""
    if not len(values):
        return np.empty(0, np.int64)
    low = int(values.min())
    if int(values.max()) - low < 2**16:
        values = (values.astype(np.int64) - low).astype(np.uint16)
    order: IntArray = np.argsort(values, kind="stable")
    return order


def rows_by(values: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Each distinct value of a column with its rows, in ascending order of both.

    One sort for all values: a mask per value costs values times rows, in a file with thousands of devices or threads minutes.
    """
    order = stable_order(values)
    ordered = values[order]
    cuts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    bounds = [0, *cuts.tolist(), len(order)] if len(order) else [0]
    for first, last in itertools.pairwise(bounds):
        yield int(ordered[first]), order[first:last]
