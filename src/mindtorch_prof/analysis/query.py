"""Queries: a recording and an SQL statement in, a Sheet out. Needs DuckDB (the extra `sql`); only tables that the statement names are built.

The tables are events, averages, steps, memory, device and figures (see `tables`); `mindtorch-prof explain` explains their columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from threading import Event, Thread
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..arrays import Array
from ..number_formats import format_memory
from .recording import Recording
from .sheet import Sheet
from .tables import TABLES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


LONGEST_S = 600.0  # seconds that a statement may take
MOST_MEMORY = 4 << 30  # bytes that a statement may take
_BATCH = 4096  # rows that are fetched at a time
_READING = ("SELECT", "EXPLAIN", "MULTI")  # kinds of statements; MULTI: a pivot


class QueryError(ValueError):
    """An SQL statement that is not valid."""


class QueryMemoryError(QueryError):
    """An SQL statement that needs more memory than it may have."""


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


class Answer(NamedTuple):
    """The result of a statement."""

    sheet: Sheet  # its first rows
    n_rows: int  # how many it has in all


def query(
    source: Recording,
    sql: str,
    *,
    allow_files: bool = False,
    seconds: float = LONGEST_S,
    memory: int = MOST_MEMORY,
) -> Sheet:
    """The result of one SQL statement; a QueryError says what is wrong with it.

    allow_files: the statement may read and write files, load extensions, and be of any kind; otherwise it can only read the tables.
    seconds: after which it is interrupted; memory: bytes that DuckDB may take.
    """
    return answer(source, sql, allow_files=allow_files, seconds=seconds, memory=memory).sheet


def answer(
    source: Recording,
    sql: str,
    *,
    top: int = 0,
    allow_files: bool = False,
    seconds: float = LONGEST_S,
    memory: int = MOST_MEMORY,
) -> Answer:
    """The same, of which only the first `top` rows are kept (0: all); the others are counted."""
    named = [name for name in TABLES if re.search(rf"\b{name}\b", sql, re.IGNORECASE)]
    connection = connect(source, named)
    import duckdb

    try:
        if not allow_files:
            _check_statement(sql)
            _lock(connection, memory)
        names, rows, n_rows = _executed(connection, sql, top, seconds)
    except duckdb.InterruptException as error:
        raise QueryError(f"interrupted after {seconds:g} seconds") from error
    except duckdb.OutOfMemoryException as error:
        raise QueryMemoryError(f"the statement needs more memory than {format_memory(memory)}") from error
    except duckdb.Error as error:
        raise QueryError(_message(error, named)) from error
    finally:
        connection.close()
    sheet = Sheet({name: [row[i] for row in rows] for i, name in enumerate(_distinct(names))}, len(rows))
    return Answer(sheet, n_rows)


def _executed(
    connection: DuckDBPyConnection, sql: str, top: int, seconds: float
) -> tuple[list[str], list[tuple[object, ...]], int]:
    """The names of the columns of a result, its first rows, and how many it has. On a thread: DuckDB does not look for signals, and Ctrl-C
    would have to wait."""
    results: list[tuple[list[str], list[tuple[object, ...]], int]] = []
    errors: list[BaseException] = []

    def execute() -> None:
        try:
            cursor = connection.execute(sql)
            names = [column[0] for column in cursor.description or ()]
            results.append((names, *_fetched(cursor, top)))
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()

    ended = Event()  # not Thread.join: interrupted, it may take a thread that runs for one that has ended (Python 3.10 to 3.12)
    Thread(target=execute, daemon=True).start()
    try:
        ended.wait(seconds)
    finally:
        while not ended.is_set():  # an interrupt that comes before the statement begins has no effect
            connection.interrupt()
            ended.wait(0.1)
    if errors:
        raise errors[0]
    return results[0]


def _fetched(cursor: DuckDBPyConnection, top: int) -> tuple[list[tuple[object, ...]], int]:
    """The first rows of a result, and how many it has; the others are never held together."""
    rows: list[tuple[object, ...]] = []
    n_rows = 0
    while batch := cursor.fetchmany(_BATCH):
        rows += batch[: max(top - n_rows, 0)] if top else batch
        n_rows += len(batch)
    return rows, n_rows


def _check_statement(sql: str) -> None:
    """Raise unless a text is one statement that reads."""
    import duckdb

    statements = duckdb.extract_statements(sql)
    if len(statements) != 1:
        raise QueryError(f"{len(statements)} statements; expected one")
    kind = statements[0].type.name
    if kind not in _READING:
        raise QueryError(
            f"a statement of kind {kind}; expected one that reads, such as SELECT (--allow-files allows any)"
        )


def _lock(connection: DuckDBPyConnection, memory: int) -> None:
    """Keep a statement from files, extensions, variables of the program and more memory, and from changing that."""
    connection.execute("set temp_directory = ''")  # what does not fit into memory is not written to a disk
    connection.execute(f"set memory_limit = '{memory}B'")
    for setting in (
        "enable_external_access",
        "autoinstall_known_extensions",
        "autoload_known_extensions",
        "python_enable_replacements",
    ):
        connection.execute(f"set {setting} = false")
    connection.execute("set lock_configuration = true")


def _register(connection: DuckDBPyConnection, name: str, sheet: Sheet) -> None:
    """Create a table from a sheet. DuckDB reads NumPy columns as they are, which is much faster than row by row."""
    columns = {key: _duckdb_column(values) for key, values in sheet.items()}
    integral = {key for key, values in sheet.items() if _is_integral(values)}
    parts = []
    for key, values in columns.items():
        value = f'"{key}"::{_type(values)}'
        if key in integral:
            value = f'case when isnan("{key}") then null else "{key}"::bigint end'
        elif values.dtype.kind == "f":
            value = f'case when isnan("{key}") then null else {value} end'
        parts.append(f'{value} as "{key}"')
    connection.register(f"_{name}", columns)
    connection.execute(f"create table {name} as select {', '.join(parts)} from _{name}")  # noqa: S608
    connection.unregister(f"_{name}")


def _type(values: Array) -> str:
    return {"i": "bigint", "f": "double", "b": "boolean"}.get(values.dtype.kind, "varchar")


def _is_integral(values: Array) -> bool:
    """Whether a column of objects holds integers, some of which may be missing."""
    return values.dtype == object and all(item is None or isinstance(item, int) for item in values.tolist())


def _duckdb_column(values: Array) -> Array:
    """A column that DuckDB reads: text, or numbers of eight bytes; integers of which some are missing become floats."""
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


def _distinct(names: list[str]) -> list[str]:
    """Names of columns, with a number after those that repeat."""
    counts: dict[str, int] = {}
    distinct = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        distinct.append(name if counts[name] == 1 else f"{name}_{counts[name]}")
    return distinct


def _message(error: Exception, named: list[str]) -> str:
    text = str(error).split("\n\n")[0].replace("\n", " ")
    hint = "" if named else f"; the tables are {', '.join(TABLES)}"
    return text + hint
