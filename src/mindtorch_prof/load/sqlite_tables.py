"""Tables of an SQLite file: a path in; columns of tables as arrays and lists out. Tables and columns that are absent are empty.

Names in a file are compared with those that SQLite lists before they are used in a statement, and the file is opened read-only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import numpy as np

from ..arrays import FloatArray, IntArray
from .errors import NotATraceError

MAGIC = b"SQLite format 3\0"


class SqliteTables:
    """The tables of an open SQLite file."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self._connection, self.name = connection, name
        # texts that are no valid UTF-8 are kept as far as they are
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        try:
            # no views: what one computes may take any time
            listed = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            self.tables = frozenset(row[0] for row in listed)
        except sqlite3.Error as error:
            raise NotATraceError(f"{name}: an SQLite file that cannot be read ({error})") from error
        self._columns: dict[str, frozenset[str]] = {}

    def columns(self, table: str) -> frozenset[str]:
        """The columns of a table; none if the table is absent."""
        if table not in self.tables:
            return frozenset()
        if table not in self._columns:
            rows = self._connection.execute(f"PRAGMA table_info({_quoted(table)})")
            self._columns[table] = frozenset(row[1] for row in rows)
        return self._columns[table]

    def count(self, table: str) -> int:
        """The number of rows of a table."""
        if table not in self.tables:
            return 0
        return int(self._select(table, ["COUNT(*)"], ordered=False).fetchone()[0])

    def integers(self, table: str, *columns: str, none: int = -1) -> list[IntArray]:
        """Columns of whole numbers, in the order of the table; `none` for what is NULL or absent."""
        cells = [
            f"COALESCE(CAST({_quoted(c)} AS INTEGER), {none})" if c in self.columns(table) else str(none)
            for c in columns
        ]
        if not self.columns(table):
            return [np.empty(0, np.int64) for _ in columns]
        rows = self._select(table, cells)
        values = np.fromiter(chain.from_iterable(rows), np.int64).reshape(-1, len(columns))
        return list(np.ascontiguousarray(values.T))

    def floats(self, table: str, column: str) -> FloatArray:
        """A column of numbers; NaN for what is NULL or absent."""
        if column not in self.columns(table):
            return np.full(self.count(table), np.nan)
        rows = self._select(table, [_quoted(column)])
        return np.array(
            [value if isinstance(value, (int, float)) else np.nan for (value,) in rows], np.float64
        )

    def values(self, table: str, *columns: str) -> list[tuple[object, ...]]:
        """Rows of columns as they are; None for what is absent."""
        if not self.columns(table):
            return []
        cells = [_quoted(c) if c in self.columns(table) else "NULL" for c in columns]
        return list(self._select(table, cells))

    def mapping(self, table: str, key: str, value: str) -> dict[int, str]:
        """Texts by their number."""
        return {k: v for k, v in self.values(table, key, value) if isinstance(k, int) and isinstance(v, str)}

    def _select(self, table: str, cells: list[str], *, ordered: bool = True) -> sqlite3.Cursor:
        """Rows of a table, in its own order."""
        # the table and the columns in `cells` are in the file's own list, and quoted
        statement = f"SELECT {', '.join(cells)} FROM {_quoted(table)}"  # noqa: S608
        try:
            return self._connection.execute(statement + (" ORDER BY rowid" if ordered else ""))
        except sqlite3.OperationalError as error:
            if "rowid" not in str(error):
                raise
            return self._connection.execute(statement)  # a table without row numbers


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def opened_tables(path: Path, shown_name: str) -> Iterator[SqliteTables]:
    """Open a file read-only. Errors of SQLite become one sentence that names the file."""
    connection = None
    try:
        # immutable: a capture is not written any more, and its folder may be read-only
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        yield SqliteTables(connection, shown_name)
    except (sqlite3.Error, OverflowError) as error:
        raise NotATraceError(f"{shown_name}: an SQLite file that cannot be read ({error})") from error
    finally:
        if connection is not None:
            connection.close()


def texts_of(numbers: Sequence[int], strings: dict[int, str]) -> list[str]:
    """The texts of numbers; the empty text for what is not in the table."""
    return [strings.get(number, "") for number in numbers]
