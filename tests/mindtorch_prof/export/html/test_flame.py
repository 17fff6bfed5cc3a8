"""The report's flame graph: every call once, merged by its callers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from html_report import blocks
from trace_builder import make_trace

from mindtorch_prof import load
from mindtorch_prof.analysis.recording import as_results
from mindtorch_prof.export.html import calls, flame
from mindtorch_prof.torch_api.results import Results


def test_the_flame_graph_holds_every_call_once(recorded_training: Results, report_page: Path) -> None:
    values, columns = blocks(report_page)["flame-0"]
    names = values["trees"]["calls"]["names"]
    rows = recorded_training.key_averages()
    for row in rows:
        if row.key == "[memory]":
            continue
        nodes = np.array([names[i] == row.key for i in columns["calls.name"]])
        assert int(columns["calls.calls"][nodes].sum()) == row.count, row.key
        assert columns["calls.total_ns"][nodes].sum() / 1000 == pytest.approx(row.cpu_time_total), row.key
    parents = columns["calls.parent"].astype(int)
    assert (parents <= np.arange(len(parents))).all()
    of_children = np.bincount(parents, weights=columns["calls.total_ns"], minlength=len(parents) + 1)[1:]
    assert (of_children <= columns["calls.total_ns"] + 0.5).all()


def test_modules_of_one_class_merge_where_that_is_asked_for(report_page: Path) -> None:
    values, columns = blocks(report_page)["flame-0"]
    names = values["trees"]["classes"]["names"]
    calls_of = dict(zip((names[i] for i in columns["classes.name"]), columns["classes.calls"].tolist()))
    assert calls_of["Linear"] == 6
    assert columns["classes.calls"].sum() == columns["calls.calls"].sum()


def test_merged_calls_do_not_need_containment() -> None:
    trace = make_trace(("a", 0, 10, 1), ("b", 2, 8, 1), ("a", 20, 30, 1), ("b", 22, 29, 1), ("b", 40, 41, 2))
    results = Results(trace)
    tree = flame.merged(results, calls.calls(results, python=False))
    assert [tree.names[i] for i in tree.name] == ["a", "b", "b"]
    assert tree.parent.tolist() == [-1, -1, 0]
    assert tree.total_ns.tolist() == [20, 1, 13]
    assert tree.self_ns.tolist() == [7, 1, 13]
    assert tree.calls.tolist() == [2, 1, 2]


def test_kernels_are_leaves_below_the_ops_that_launched_them(tmp_path: Path, ecosystem: Path) -> None:
    loaded = load(ecosystem / "traces" / "h100_qwen_infer_stack_memory.json.gz")
    results = as_results(loaded)
    trace = results.trace
    tree = flame.merged(results, calls.calls(results, python=False))
    kernels = np.flatnonzero(np.isin(tree.category, (calls.KERNEL, calls.COPY)))
    assert not np.isin(kernels, tree.parent).any()
    assert not tree.total_ns[kernels].any()
    works = trace.device.works & (trace.device.op >= 0)
    length = (trace.device.end_ns - trace.device.start_ns)[works]
    assert tree.device_ns[kernels].sum() == length.sum()
    assert tree.calls[kernels].sum() == works.sum()
    # the device time of an op is that of its kernels and of the ops it calls
    below = np.bincount(
        tree.parent[tree.parent >= 0], weights=tree.device_ns[tree.parent >= 0], minlength=len(tree.name)
    )
    inner = np.unique(tree.parent[tree.parent >= 0])
    np.testing.assert_allclose(below[inner], tree.device_ns[inner])
    names = {
        tree.names[tree.name[tree.parent[k]]]
        for k in kernels.tolist()
        if "flash_fwd" in tree.names[tree.name[k]]
    }
    assert names == {"aten::_flash_attention_forward"}


def test_summing_a_deep_tree_looks_at_each_node_once(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 1000
    looked_at = 0
    bincount = np.bincount

    def counted(*arguments: Any, minlength: int, **named: Any) -> Any:
        nonlocal looked_at
        looked_at += minlength
        return bincount(*arguments, minlength=minlength, **named)

    monkeypatch.setattr(flame.np, "bincount", counted)
    parent = np.arange(-1, count - 1)
    sums = flame._subtree_sums(np.ones(count), parent, np.arange(count + 1))
    assert sums.tolist() == list(range(count, 0, -1))
    assert looked_at <= count  # a million before
