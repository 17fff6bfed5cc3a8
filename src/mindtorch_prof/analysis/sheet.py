"""Sheet: named columns of equal length in; the same filtered, sorted or converted out. Does not use traces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..arrays import Array, BoolArray, IntArray
from .columns import column_key

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

ColumnValues: TypeAlias = "Array | Iterable[object]"  # numbers as an array; anything else one by one


class Sheet(Mapping[str, Array]):
    """A table as columns. Immutable: filtering and sorting return another sheet."""

    def __init__(self, columns: Mapping[str, ColumnValues], length: int | None = None) -> None:
        self._columns = {name: _array(values) for name, values in columns.items()}
        self._length = len(next(iter(self._columns.values()), ())) if length is None else length
        if any(len(values) != self._length for values in self._columns.values()):
            raise ValueError("the columns of a sheet must be of one length")

    def __getitem__(self, name: str) -> Array:
        return self._columns[self.key(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        """The number of columns; `n_rows` is the number of rows."""
        return len(self._columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    @property
    def n_rows(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"<Sheet of {self._length:,} rows: {', '.join(self._columns)}>"

    def key(self, name: str) -> str:
        """The name of a column by its name, an alias or a title; a KeyError lists the columns."""
        if name in self._columns:
            return name
        key = column_key(name)
        if key not in self._columns:
            raise KeyError(f"there is no column {name!r} here; expected one of {', '.join(self._columns)}")
        return key

    def take(self, rows: IntArray | BoolArray | slice) -> Sheet:
        """Some rows: a mask, row numbers or a slice."""
        taken = {name: values[rows] for name, values in self._columns.items()}
        return Sheet(taken, len(np.arange(self._length)[rows]))

    def select(self, names: Sequence[str]) -> Sheet:
        """Some columns, in this order."""
        return Sheet({self.key(name): self[name] for name in names}, self._length)

    def where(self, condition: str) -> Sheet:
        """The rows for which a condition holds: `name ~ "conv" and self_cpu > 10us` (see `analysis.conditions`)."""
        from .conditions import where

        return self.take(where(condition).mask(self))

    def sort(self, name: str, *, descending: bool = True) -> Sheet:
        """The rows sorted by a column; rows with equal values keep their order."""
        values = self[name]
        if values.dtype == object:
            keys = [_sortable(value) for value in values.tolist()]
            rows = np.array(sorted(range(len(keys)), key=keys.__getitem__, reverse=descending), np.int64)
        else:
            numbers = values.astype(np.float64)
            rows = np.argsort(
                -numbers if descending else numbers, kind="stable"
            )  # NaN is last in both orders
        return self.take(rows)

    def head(self, count: int) -> Sheet:
        """The first rows; all of them for 0."""
        return self.take(slice(0, count)) if count else self

    def rows(self) -> list[dict[str, object]]:
        """One dict per row, with plain Python values."""
        names = list(self._columns)
        lists = [_plain(values) for values in self._columns.values()]
        return [dict(zip(names, values)) for values in zip(*lists)] if lists else []

    def to_dict(self) -> dict[str, list[object]]:
        """One list per column, with plain Python values."""
        return {name: _plain(values) for name, values in self._columns.items()}

    def to_pandas(self) -> pd.DataFrame:
        """A data frame (needs pandas)."""
        from ..torch_api.event_list import _optional

        return _optional("pandas").DataFrame(self.to_dict())

    def to_arrow(self) -> pa.Table:
        """A table of Arrow (needs pyarrow)."""
        from ..torch_api.event_list import _optional

        return _optional("pyarrow").table(self.to_dict())


def _array(values: ColumnValues) -> Array:
    if isinstance(values, np.ndarray):
        return values
    items = list(values)
    column = np.empty(len(items), object)
    column[:] = items
    return column


def _plain(values: Array) -> list[object]:
    """Python values; NaN, which means no value, as None."""
    items: list[object] = values.tolist()
    return [None if item != item else item for item in items] if values.dtype.kind == "f" else items


def _sortable(value: object) -> tuple[int, float, str]:
    if value is None:
        return (-1, 0.0, "")
    if isinstance(value, (int, float)):
        return (0, float(value), "")
    return (1, 0.0, str(value))
