"""SQL over the tables of a trace, where DuckDB is installed."""

from __future__ import annotations

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
