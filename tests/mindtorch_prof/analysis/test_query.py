"""SQL over the tables of a trace, where DuckDB is installed."""

from __future__ import annotations

import os
import signal
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_prof.load import load
from mindtorch_v2 import nn
from mindtorch_v2.profiler import profile, schedule


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    model = nn.Linear(4, 2)
    path = str(tmp_path_factory.mktemp("query") / "trace.json")
    settings = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True}
    with profile(
        schedule=schedule(wait=0, warmup=1, active=2, repeat=1),
        on_trace_ready=lambda prof: prof.export_chrome_trace(path),
        **settings,  # type: ignore[arg-type]
    ) as prof:
        for _ in range(3):
            model(torch.ones(3, 4)).sum().backward()
            prof.step()
    return path


@pytest.fixture(scope="module")
def trace(path: str) -> Any:
    return load(path)


def test_sql_over_events_averages_steps_and_memory(trace: Any) -> None:
    pytest.importorskip("duckdb", reason="runs with the extra `sql`")
    from mindtorch_prof.analysis.query import query

    rows = query(
        trace, "select name, count(*) as n from events where name = 'aten::addmm' group by name"
    ).rows()
    assert rows == [{"name": "aten::addmm", "n": 2}]
    assert query(trace, "select step from steps order by step").to_dict() == {"step": [1, 2]}
    joined = query(
        trace,
        "select distinct p.name as inside from events e join events p on e.parent = p.row "
        "where e.name = 'aten::addmm'",
    )
    assert joined.rows() == [{"inside": "aten::linear"}]
    assert (
        query(trace, "select count(*) as n, max(total_bytes) > 0 as some from memory").rows()[0]["some"]
        is True
    )
    assert query(trace, "select count(*) as n from device").rows() == [{"n": 0}]
    per_step = query(
        trace, "select step, count(*) as n from events where step is not null group by step order by step"
    )
    assert len(set(per_step["n"].tolist())) == 1
    assert query(trace, "select input_shapes from events where name = 'aten::addmm' limit 1").rows() == [
        {"input_shapes": "[[2], [3, 4], [4, 2], [], []]"}
    ]
    averages = {row.key: row.count for row in trace.key_averages()}
    rows = query(trace, "select name, count from averages").rows()
    assert {row["name"]: row["count"] for row in rows} == averages


def test_wrong_sql_is_a_sentence(trace: Any) -> None:
    pytest.importorskip("duckdb", reason="runs with the extra `sql`")
    from mindtorch_prof.analysis.query import QueryError, query

    with pytest.raises(QueryError, match="syntax error"):
        query(trace, "selec name")
    with pytest.raises(QueryError, match="the tables are events, averages"):
        query(trace, "select * from nowhere")


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_csv('{0}')",
        "select * from read_text('{0}')",
        "select * from glob('/*')",
        "copy (select 1) to '{1}'",
        "attach '{1}'",
        "export database '{1}'",
        "install httpfs",
        "create table a as select 1",
        "set enable_external_access = true",
        "select 1; copy (select 1) to '{1}'",
        "select * from secret_of_the_program",
    ],
)
def test_a_statement_reads_the_tables_and_nothing_else(sql: str, trace: Any, tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="runs with the extra `sql`")
    from mindtorch_prof.analysis.query import QueryError, query

    secret_of_the_program = {"password": [1]}
    (tmp_path / "read.csv").write_text("a,b\n1,2\n")
    with pytest.raises(QueryError):
        query(trace, sql.format(tmp_path / "read.csv", tmp_path / "written"))
    assert not (tmp_path / "written").exists()
    assert secret_of_the_program


def test_files_are_read_where_the_caller_allows_it(trace: Any, tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="runs with the extra `sql`")
    from mindtorch_prof.analysis.query import query

    (tmp_path / "read.csv").write_text("a,b\n1,2\n")
    rows = query(trace, f"select * from read_csv('{tmp_path / 'read.csv'}')", allow_files=True).rows()
    assert rows == [{"a": 1, "b": 2}]


def test_a_statement_that_takes_too_long_is_interrupted(trace: Any) -> None:
    pytest.importorskip("duckdb", reason="runs with the extra `sql`")
    from mindtorch_prof.analysis.query import QueryError, query

    endless = "select count(*) from range(100000000) a, range(100000000) b"
    with pytest.raises(QueryError, match=r"interrupted after 0\.2 seconds"):
        query(trace, endless, seconds=0.2)


def test_only_the_rows_that_are_shown_are_kept_and_all_are_counted(three_steps: Any) -> None:
    pytest.importorskip("duckdb", reason="runs with the extra `sql`")
    from mindtorch_prof.analysis.query import answer

    tracemalloc.start()
    result = answer(three_steps, "select range as n, repeat('x', 50) from range(200000)", top=3)
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.sheet["n"].tolist() == [0, 1, 2]
    assert result.n_rows == 200_000
    assert size < 8 << 20


def test_ctrl_c_ends_a_statement(three_steps: Any) -> None:
    pytest.importorskip("duckdb", reason="runs with the extra `sql`")
    from mindtorch_prof.analysis.query import query

    endless = "select sum(a.range * b.range) from range(100000000) a, range(100000000) b"
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        query(three_steps, endless, seconds=30)
    assert query(three_steps, "select 1 as one")["one"].tolist() == [1]


def test_a_statement_that_needs_more_memory_is_refused_in_one_sentence(three_steps: Any) -> None:
    pytest.importorskip("duckdb", reason="runs with the extra `sql`")
    from mindtorch_prof.analysis.query import QueryError, query

    with pytest.raises(QueryError, match=r"the statement needs more memory than 64\.00 MB"):
        query(
            three_steps,
            "select count(*) from (select distinct range, repeat('x', 99) || range from range(5000000))",
            memory=64 << 20,
        )
