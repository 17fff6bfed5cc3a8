"""Tables of SQLite files: columns as arrays, and what is absent or damaged."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest
from captures import write_tables

from mindtorch_prof.load import NotATraceError
from mindtorch_prof.load.sqlite_tables import opened_tables


def test_columns_are_arrays_and_what_is_absent_is_none(tmp_path: Path) -> None:
    path = write_tables(
        tmp_path / "a.db", {"T": (("a", "b TEXT", "c"), [(1, "20", 0.5), (None, "30", None)])}
    )
    with opened_tables(path, "a.db") as tables:
        a, b, missing = tables.integers("T", "a", "b", "missing")
        assert (a.tolist(), b.tolist(), missing.tolist()) == ([1, -1], [20, 30], [-1, -1])
        values = tables.floats("T", "c")
        assert values[0] == 0.5
        assert np.isnan(values[1])
        assert tables.integers("absent", "a")[0].tolist() == []
        assert tables.values("T", "b", "missing") == [("20", None), ("30", None)]
        assert tables.count("absent") == 0


def test_names_in_a_file_are_no_statements(tmp_path: Path) -> None:
    name = 'x" ; DROP TABLE T; --'
    path = write_tables(tmp_path / "a.db", {"T": (('"x"" ; DROP TABLE T; --"',), [(7,)])})
    with opened_tables(path, "a.db") as tables:
        assert tables.integers("T", name)[0].tolist() == [7]
        assert tables.count("T") == 1


def test_views_are_not_read(tmp_path: Path) -> None:
    path = write_tables(tmp_path / "a.db", {"T": (("a",), [(7,)])})
    connection = sqlite3.connect(path)
    connection.execute("CREATE VIEW V AS SELECT a FROM T")
    connection.commit()
    connection.close()
    with opened_tables(path, "a.db") as tables:
        assert tables.tables == {"T"}


@pytest.mark.parametrize("keep", [100, 5000])
def test_a_damaged_file_is_refused_in_one_sentence(keep: int, tmp_path: Path) -> None:
    path = write_tables(tmp_path / "a.db", {"T": (("a",), [(n,) for n in range(5000)])})
    path.write_bytes(path.read_bytes()[:keep])
    with (
        pytest.raises(NotATraceError, match=r"a\.db: an SQLite file that cannot be read"),
        opened_tables(path, "a.db") as tables,
    ):
        tables.integers("T", "a")
