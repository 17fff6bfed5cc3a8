"""Merged call trees: equal paths are one row, modules stand among the ops."""

from __future__ import annotations

from typing import Any

import pytest
from kineto_documents import HOSTILE_NAME
from trace_builder import make_trace

from mindtorch_prof.analysis.call_tree import INDENTED, call_tree
from mindtorch_prof.torch_api.results import Results


def test_the_tree_merges_equal_paths_and_shows_modules(three_steps: Any) -> None:
    rows = [
        (row["depth"], row["name"], row["count"], row["cpu_time_total"])
        for row in call_tree(three_steps).rows()
    ]
    inner = [row for row in rows if row[1] != HOSTILE_NAME][:5]
    assert inner[0][0] == 0  # the thread
    assert inner[1] == (1, "ProfilerStep*", 3, pytest.approx(300))
    assert inner[2] == (2, "nn.Module: Linear_0", 3, pytest.approx(180))
    assert inner[3] == (3, "aten::linear", 3, pytest.approx(150))
    assert inner[4] == (4, "aten::addmm", 3, pytest.approx(90))
    assert all(depth < 2 for depth, *_ in [(r["depth"],) for r in call_tree(three_steps, depth=2).rows()])
    assert "nn.Module: Linear_0" not in call_tree(three_steps, calls="none")["name"].tolist()
    assert call_tree(three_steps, min_share=0.5).n_rows < call_tree(three_steps).n_rows


def test_names_deeper_than_indentation_shows_say_their_level() -> None:
    count = INDENTED + 3
    sheet = call_tree(Results(make_trace(*[(f"op{n}", n, 1000 - n) for n in range(count)])))
    texts = sheet["tree"].tolist()
    assert texts[INDENTED] == "  " * INDENTED + f"op{INDENTED}"
    assert texts[-1] == "  " * INDENTED + f"[level {count}] op{count - 1}"
