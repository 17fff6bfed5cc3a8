"""`mindtorch-prof query`: answers, and what it says where DuckDB or a query is missing."""

from __future__ import annotations

import sys

import pytest

from mindtorch_prof import cli


def test_the_command_prints_the_answer(three_steps_path: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb", reason="runs with the extra `sql`")
    assert (
        cli.main(
            [
                "query",
                three_steps_path,
                "select name, count(*) n from events group by 1 order by n desc, name limit 2",
                "--format",
                "csv",
            ]
        )
        == 0
    )
    assert capsys.readouterr().out.startswith("name,n\n")


def test_without_duckdb_the_command_says_what_to_install(
    three_steps_path: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert cli.main(["query", three_steps_path, "select 1"]) == 2
    assert "pip install mindtorch_v2[sql]" in capsys.readouterr().err


def test_a_statement_that_needs_more_than_max_memory_ends_with_code_3(
    three_steps_path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("duckdb", reason="runs with the extra `sql`")
    sql = "select count(*) from (select distinct range, repeat('x', 99) || range from range(20000000))"
    assert cli.main(["query", three_steps_path, sql, "--max-memory", "500MB"]) == 3
    assert "memory" in capsys.readouterr().err


def test_a_table_that_is_not_there_ends_with_code_2(
    three_steps_path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("duckdb", reason="runs with the extra `sql`")
    assert cli.main(["query", three_steps_path, "select * from nowhere"]) == 2
    assert "the tables are events, averages" in capsys.readouterr().err


def test_nothing_to_ask_is_misuse(three_steps_path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["query", three_steps_path]) == 2
    assert "no query; expected" in capsys.readouterr().err
