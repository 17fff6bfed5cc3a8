"""SQL, data frames and Parquet, where the optional packages are installed; clear words where they are not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_prof import cli
from mindtorch_prof.load import load
from mindtorch_v2 import nn
from mindtorch_v2.profiler import profile, schedule


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    model = nn.Linear(4, 2)
    made = str(tmp_path_factory.mktemp("query") / "trace.json")
    settings = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True}
    with profile(
        schedule=schedule(wait=0, warmup=1, active=2, repeat=1),
        on_trace_ready=lambda prof: prof.export_chrome_trace(made),
        **settings,  # type: ignore[arg-type]
    ) as prof:
        for _ in range(3):
            model(torch.ones(3, 4)).sum().backward()
            prof.step()
    return made


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
    found = query(trace, "select name, count from averages")
    assert dict(zip(found["name"].tolist(), found["count"].tolist())) == averages


def test_wrong_sql_is_a_sentence(trace: Any, path: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb", reason="runs with the extra `sql`")
    from mindtorch_prof.analysis.query import QueryError, query

    with pytest.raises(QueryError, match="syntax error"):
        query(trace, "selec name")
    assert cli.main(["query", path, "select * from nowhere"]) == 2
    assert "the tables are events, averages" in capsys.readouterr().err


def test_the_command_prints_the_answer(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb", reason="runs with the extra `sql`")
    assert (
        cli.main(
            [
                "query",
                path,
                "select name, count(*) n from events group by 1 order by n desc, name limit 2",
                "--format",
                "csv",
            ]
        )
        == 0
    )
    assert capsys.readouterr().out.startswith("name,n\n")


def test_without_duckdb_the_command_says_what_to_install(
    path: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert cli.main(["query", path, "select 1"]) == 2
    assert "pip install mindtorch_v2[sql]" in capsys.readouterr().err


def test_nothing_to_ask_is_misuse(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["query", path]) == 2
    assert "no query; expected" in capsys.readouterr().err


def test_events_and_averages_become_data_frames(trace: Any) -> None:
    pytest.importorskip("pandas", reason="runs with the extra `pandas`")
    from mindtorch_prof.analysis.groups import groups

    frame = trace.events().to_pandas()
    assert len(frame) == len(trace.events())
    assert frame["self_cpu_time_total"].dtype.kind == "f"
    assert frame["device_time_total"].dtype.kind == "f"
    averages = trace.key_averages().to_pandas()
    assert averages.set_index("key").loc["aten::addmm", "count"] == 2
    assert averages["cpu_time_total"].sum() == pytest.approx(
        sum(row.cpu_time_total for row in trace.key_averages())
    )
    assert trace.key_averages(group_by_input_shape=True).to_pandas()["input_shapes"].str.startswith("[").any()
    assert len(groups(trace, "name,step", stats=True).to_pandas()) > 0
    assert list(type(trace.events())([]).to_pandas().columns)


def test_events_and_averages_become_arrow_tables_and_parquet_files(
    trace: Any, path: str, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow", reason="runs with the extra `pandas`")
    from pyarrow import parquet

    assert trace.events().to_arrow().num_rows == len(trace.events())
    assert trace.key_averages(group_by_stack_n=2).to_arrow().num_rows == len(
        trace.key_averages(group_by_stack_n=2)
    )
    for table in ("events", "averages", "steps", "memory", "device"):
        out = tmp_path / f"{table}.parquet"
        assert cli.main(["convert", path, "--to", "parquet", "--table", table, "-o", str(out)]) == 0
        assert parquet.read_table(out).num_columns > 4
    assert parquet.read_table(tmp_path / "events.parquet").schema.field("step").type == "int64"


def test_without_pyarrow_parquet_says_what_to_install(
    path: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert cli.main(["convert", path, "--to", "parquet", "-o", str(tmp_path / "x.parquet")]) == 2
    assert "pip install mindtorch_v2[pandas]" in capsys.readouterr().err
    assert not (tmp_path / "x.parquet").exists()
