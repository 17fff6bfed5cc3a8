"""Operators of the report: the rows of key_averages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from html_report import blocks

from mindtorch_prof.torch_api.results import Results


def test_operators_are_the_rows_of_key_averages(recorded_training: Results, report_page: Path) -> None:
    values, columns = blocks(report_page)["summary-0"]
    names = values["groups"]["name"]["names"]
    rows = recorded_training.key_averages()
    assert [names[i] for i in columns["name.name"]] == [row.key for row in rows]
    assert columns["name.count"].tolist() == [row.count for row in rows]
    assert (columns["name.self_ns"] / 1000).tolist() == [row.self_cpu_time_total for row in rows]
    assert (columns["name.total_ns"] / 1000).tolist() == [row.cpu_time_total for row in rows]
    assert columns["name.self_memory"].tolist() == [row.self_cpu_memory_usage for row in rows]
    assert columns["name.flops"].tolist() == [row.flops for row in rows]


@pytest.mark.parametrize(("group", "how"), [("shapes", {"by_shape": True}), ("stack", {"by_stack": 5})])
def test_groupings_are_those_of_key_averages(
    recorded_training: Results, report_page: Path, group: str, how: dict[str, Any]
) -> None:
    values, columns = blocks(report_page)["operators-0"]
    rows = recorded_training.key_averages(**how)
    assert columns[f"{group}.count"].tolist() == [row.count for row in rows]
    assert (columns[f"{group}.self_ns"] / 1000).tolist() == [row.self_cpu_time_total for row in rows]
    details = [values["groups"][group]["details"][i] for i in columns[f"{group}.detail"]]
    wanted = [str(r.input_shapes) if r.input_shapes else "" for r in rows]
    assert [d or "" for d in details] == (wanted if group == "shapes" else [r.stack or "" for r in rows])


def test_steps_and_modules_divide_the_calls_without_losing_any(
    recorded_training: Results, report_page: Path
) -> None:
    values, columns = blocks(report_page)["operators-0"]
    steps = [f"ProfilerStep#{i}" for i in (1, 2, 3)]
    assert values["groups"]["step"]["details"] == steps
    first, _ = blocks(report_page)["summary-0"]
    assert [step[0] for step in first["steps"]] == steps
    linear = [i for i, n in enumerate(values["groups"]["module"]["names"]) if n == "aten::addmm"]
    rows = np.isin(columns["module.name"], linear)
    paths = [values["groups"]["module"]["details"][i] for i in columns["module.detail"][rows]]
    assert sorted(paths) == ["Sequential_0 / Linear_0", "Sequential_0 / Linear_1"]
    assert columns["module.count"][rows].tolist() == [3, 3]
