"""Columns that grow: lists of plain numbers and short arrays in, one array per column out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..arrays import Array, FloatArray, IntArray
from .event_values import LARGEST_US, as_number

Lists: TypeAlias = "dict[str, Sequence[object]]"  # columns by name, one value per event

_TIMES = frozenset({"start", "length"})
_ZERO = frozenset({"external", "forward", "nbytes", "address"})  # columns in which 0 stands for none, not -1
_SEAL = 32_768  # rows that are kept in short arrays, one for each slice and kind, before they are joined
_MOST_PARTS = 1024  # such arrays: one of a single row takes as much as one of twenty
INT64 = np.iinfo(np.int64)


class ColumnBuilder:
    """Named columns that grow by lists of plain numbers. Times must be numbers; other values that are no numbers become the
    number that stands for none in their column. Rows stay in the order in which they are added."""

    def __init__(self, **types: npt.DTypeLike) -> None:
        self._types = types
        # one array per column, which grows where it is: parts that are joined at the end would be there twice. A column whose values are all
        # the same has none: most files have no value at all for half of the columns
        self._columns: dict[str, Array] = {}
        self._constants: dict[str, Any] = {}  # the first value of each column
        self._rows = 0
        self._open: dict[str, list[Array]] = {
            name: [] for name in types
        }  # short parts; times in microseconds
        self._open_rows = 0
        self.negative_lengths = 0
        self.out_of_range = 0  # rows that were left out as their times are beyond all clocks
        self.coarse = True  # whether all times are whole microseconds, or as far from 0 as the epoch

    @property
    def types(self) -> dict[str, npt.DTypeLike]:
        """The columns and the types of their values."""
        return self._types

    def add(self, lists: Lists, **constants: int) -> None:
        """Add rows: columns as lists, and columns that have one value for all rows."""
        count = len(lists["start"])
        arrays = {
            name: np.full(count, constants[name], kind)
            if name in constants
            else np.array(lists[name], np.float64)
            if name in _TIMES
            else _array(lists[name], name, kind)
            for name, kind in self._types.items()
        }
        for name, array in arrays.items():
            self._open[name].append(array)
        self._open_rows += count
        if self._open_rows >= _SEAL or len(self._open["start"]) >= _MOST_PARTS:
            self._seal()

    def add_columns(self, columns: Mapping[str, Array], coarse: bool) -> None:
        """Add rows as they are in `whole`: times in nanoseconds, all of them in range."""
        self._seal()
        self.coarse &= coarse
        self._append(columns)

    def _seal(self) -> None:
        """Join short parts, and turn microseconds into nanoseconds."""
        if not self._open_rows:
            return
        columns = {name: np.concatenate(parts) for name, parts in self._open.items()}
        self._open = {name: [] for name in self._types}
        self._open_rows = 0
        times = _TIMES & columns.keys()
        out_of_range = np.logical_or.reduce([np.abs(columns[name]) >= LARGEST_US for name in times])
        if out_of_range.any():
            self.out_of_range += int(out_of_range.sum())
            columns = {name: column[~out_of_range] for name, column in columns.items()}
        for name in times:
            columns[name], coarse = _nanoseconds(columns[name])
            self.coarse &= coarse
        if "length" in columns and (columns["length"] < 0).any():
            self.negative_lengths += int((columns["length"] < 0).sum())
            columns["length"] = np.maximum(columns["length"], 0)
        self._append(columns)

    def _append(self, columns: Mapping[str, Array]) -> None:
        first, last = self._rows, self._rows + len(columns["start"])
        if first == last:
            return
        for name, kind in self._types.items():
            values, array = columns[name], self._columns.get(name)
            if array is None:
                constant = self._constants.setdefault(name, np.asarray(values[0]).astype(kind))
                if bool((values == constant).all()):
                    continue
                array = self._columns[name] = np.full(first, constant, kind)
            if last > len(array):
                array.resize(
                    max(last, len(array) + len(array) // 8), refcheck=False
                )  # large ones are not moved
            array[first:last] = values
        self._rows = last

    def whole(self) -> dict[str, Array]:
        """All columns; the builder has none after that. One whose values are all the same is a single value in memory (see `written_out`)."""
        self._seal()
        columns, self._columns = self._columns, {}
        for array in columns.values():
            array.resize(self._rows, refcheck=False)
        none = {name: np.empty(0, kind) for name, kind in self._types.items()}
        same = {name: np.broadcast_to(value, self._rows) for name, value in self._constants.items()}
        return none | same | columns


def written_out(column: Array) -> Array:
    """A column with a place in memory for each of its values."""
    return column.copy() if column.strides == (0,) else column


def _array(values: Sequence[object], name: str, kind: npt.DTypeLike) -> Array:
    try:
        return np.fromiter(values, kind, len(values))
    except (OverflowError, TypeError, ValueError):
        none = 0 if name in _ZERO else -1
        return np.array([_fitting(value, none) for value in values], kind)


def _fitting(value: object, none: int) -> int:
    """A value as a whole number of 64 bits; unsigned addresses keep their bits."""
    number = value if isinstance(value, int) else as_number(value)
    if number is None:
        return none
    whole = int(number)
    if INT64.min <= whole <= INT64.max:
        return whole
    return whole - 2**64 if 0 < whole < 2**64 else none


def _nanoseconds(us: FloatArray) -> tuple[IntArray, bool]:
    """Microseconds as whole nanoseconds, and whether they are no more precise than microseconds."""
    whole = np.floor(us)
    rest = us - whole
    # a double holds nanoseconds up to 2**53 of them: beyond, its last digits are noise
    coarse = not bool((rest[us <= 2**53 / 1000]).any())
    return whole.astype(np.int64) * 1000 + np.rint(rest * 1000).astype(np.int64), coarse
