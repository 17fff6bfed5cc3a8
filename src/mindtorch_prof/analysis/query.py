"""Queries: a recording and a sentence of SQL in, a Sheet out. DuckDB answers (the extra `sql`), over tables made when they are named.

Tables: events, averages, steps, memory, device (see `tables`); their columns are those that `mindtorch-prof explain` explains.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Array
from .recording import Recording
from .sheet import Sheet
from .tables import TABLES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class QueryError(ValueError):
    """SQL that cannot be answered."""


class MissingPackageError(ImportError):
    """DuckDB is not installed."""


def connect(source: Recording, tables: Iterable[str] = tuple(TABLES)) -> DuckDBPyConnection:
    """A DuckDB connection with tables of a recording."""
    try:
        import duckdb
    except ImportError as error:
        raise MissingPackageError(
            "duckdb is not installed; `pip install mindtorch_v2[sql]` installs it; `show --where` filters without it"
        ) from error
    connection = duckdb.connect(":memory:")
    for name in tables:
        _register(connection, name, TABLES[name](source))
    return connection


def query(source: Recording, sql: str) -> Sheet:
    """The result of an SQL statement; a QueryError says what is wrong with it."""
    named = [name for name in TABLES if re.search(rf"\b{name}\b", sql, re.IGNORECASE)]
    connection = connect(source, named)
    import duckdb

    try:
        cursor = connection.execute(sql)
        names = [column[0] for column in cursor.description or ()]
        rows = cursor.fetchall()
    except duckdb.Error as error:
        raise QueryError(_sentence(error, named)) from error
    finally:
        connection.close()
    return Sheet({name: [row[i] for row in rows] for i, name in enumerate(_apart(names))}, len(rows))


def _register(connection: DuckDBPyConnection, name: str, sheet: Sheet) -> None:
    """Make a table of a sheet: NumPy's columns go in as they are, by a few large pieces, not value by value."""
    columns = {key: _plain(values) for key, values in sheet.items()}
    whole = {key for key, values in sheet.items() if _is_whole(values)}
    parts = []
    for key, values in columns.items():
        value = f'"{key}"::{_type(values)}'
        if key in whole:
            value = f'case when isnan("{key}") then null else "{key}"::bigint end'
        elif values.dtype.kind == "f":
            value = f'case when isnan("{key}") then null else {value} end'
        parts.append(f'{value} as "{key}"')
    connection.register(f"_{name}", columns)
    connection.execute(f"create table {name} as select {', '.join(parts)} from _{name}")  # noqa: S608
    connection.unregister(f"_{name}")


def _type(values: Array) -> str:
    return {"i": "bigint", "f": "double", "b": "boolean"}.get(values.dtype.kind, "varchar")


def _is_whole(values: Array) -> bool:
    """Whether a column holds whole numbers some of which are missing."""
    return values.dtype == object and all(item is None or isinstance(item, int) for item in values.tolist())


def _plain(values: Array) -> Array:
    """A column that DuckDB reads: text, or numbers of eight bytes; whole numbers that may be missing become floats."""
    if values.dtype == object:
        items = values.tolist()
        if all(item is None or isinstance(item, (int, float)) for item in items):
            return np.array([np.nan if item is None else float(item) for item in items], np.float64)
        texts = np.empty(len(items), object)
        texts[:] = [_text(item) for item in items]
        return texts
    if values.dtype.kind in "iu":
        return np.ascontiguousarray(values, np.int64)
    if values.dtype.kind == "f":
        return np.ascontiguousarray(values, np.float64)
    return np.ascontiguousarray(values)


def _text(item: object) -> str:
    if isinstance(item, str):
        return item.encode("utf-8", "backslashreplace").decode()
    if isinstance(item, (list, tuple)) and item and all(isinstance(part, str) for part in item):
        return ";".join(item)
    return "" if item is None else str(item)


def _apart(names: list[str]) -> list[str]:
    """Names of columns, none twice."""
    seen: dict[str, int] = {}
    made = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        made.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return made


def _sentence(error: Exception, named: list[str]) -> str:
    text = str(error).split("\n\n")[0].replace("\n", " ")
    hint = "" if named else f"; the tables are {', '.join(TABLES)}"
    return text + hint
