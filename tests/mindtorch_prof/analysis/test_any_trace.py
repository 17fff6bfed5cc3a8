"""Whatever a trace holds, every question gets an answer, and the answers agree with each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import kineto_documents as documents
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from synthetic_traces import linear_with_synthetic_ops, synthetic_traces

from mindtorch_prof.analysis.advice import advise
from mindtorch_prof.analysis.call_tree import call_tree
from mindtorch_prof.analysis.critical_path import critical_path
from mindtorch_prof.analysis.diff_tree import diff_tree
from mindtorch_prof.analysis.doctor import doctor
from mindtorch_prof.analysis.folded_stacks import folded
from mindtorch_prof.analysis.groups import KEYS, STATS, groups
from mindtorch_prof.analysis.memory_by_lifetime import changes_by_lifetime
from mindtorch_prof.analysis.memory_summary import memory_summary
from mindtorch_prof.analysis.repeats import TIMES, measure
from mindtorch_prof.analysis.sheet import Sheet
from mindtorch_prof.analysis.steps_table import steps_table
from mindtorch_prof.analysis.summary import summary, summary_text
from mindtorch_prof.analysis.tables import TABLES
from mindtorch_prof.export.speedscope import export_speedscope
from mindtorch_prof.load import load
from mindtorch_prof.torch_api.results import Results
from mindtorch_prof.trace import Trace
from mindtorch_prof.tree import tree

NAMES = ["aten::mm", "aten::add", "ProfilerStep#1", "ProfilerStep#3", "MmBackward0", "forward", "", "a;b c\n"]
CATEGORIES = [
    "cpu_op",
    "cpu_op",
    "user_annotation",
    "python_function",
    "cuda_runtime",
    "kernel",
    "gpu_memcpy",
]


@st.composite
def events(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Events that nest, overlap, touch and have no length, with launches and stray kernels."""
    rows = []
    for _ in range(draw(st.integers(0, 14))):
        category = draw(st.sampled_from(CATEGORIES))
        number = draw(st.integers(0, 4))
        args: dict[str, Any] = {"External id": number, "correlation": number}
        if category in {"kernel", "gpu_memcpy"}:
            args |= {"device": 0, "stream": draw(st.integers(0, 1))}
        if category == "python_function":
            args = {"Python id": number, "Python module id": draw(st.integers(0, 1))}
        if category == "cpu_op" and draw(st.booleans()):
            args |= {
                "Sequence number": number,
                "Fwd thread id": draw(st.integers(0, 1)),
                "Input Dims": [[2, 3], []],
            }
        name = "nn.Module: Net_0" if category == "python_function" else draw(st.sampled_from(NAMES))
        rows.append(
            {
                "ph": "X",
                "cat": category,
                "name": name,
                "pid": 0 if "stream" in args else 1,
                "tid": args.get("stream", draw(st.integers(1, 2))),
                "ts": draw(st.integers(0, 40)),
                "dur": draw(st.integers(0, 20)),
                "args": args,
            }
        )
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("any")


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(events=events())
def test_every_question_gets_an_answer_and_sums_hold(events: list[dict[str, Any]], folder: Path) -> None:
    trace = load(documents.write(folder / "trace.json", events))
    whole = groups(trace, "name")["self_cpu_time_total"].sum()
    for by in ("name", *KEYS[1:], "name,shape,stack,module,step,thread,category", "step,category"):
        sheet = groups(trace, by, stats=True)
        assert (sheet["self_cpu_time_total"] >= -1e-9).all()
        assert sheet["self_cpu_time_total"].sum() == pytest.approx(whole)
        if "name" not in by and "self_device_share" in sheet and trace.trace.device.works.any():
            assert (sheet["self_device_share"] <= 1 + 1e-9).all()
        known = ~np.isnan(sheet["min"])
        for low, high in (("min", "p50"), ("p50", "p95"), ("p95", "max")):
            assert (sheet[low][known] <= sheet[high][known] + 1e-9).all()
        json.dumps(sheet.rows())
    assert sum(value for _, value in folded(trace, by="ops")) <= whole + 1
    steps = steps_table(trace)
    assert (steps["busy_share"] <= 1 + 1e-9).all()
    for calls in ("modules", "all", "none"):
        call_tree(trace, calls=calls)  # type: ignore[arg-type]
    for make in TABLES.values():
        json.dumps(make(trace).rows())
    assert len(summary_text(summary(trace)).splitlines()) <= 60
    path = critical_path(trace)
    assert sum(path.by_kind.values()) == pytest.approx(path.length_us)
    assert sum(op.path_us for op in path.ops) == pytest.approx(path.length_us)
    assert not diff_tree(trace, trace).differences
    for finding in doctor(trace):
        assert finding.message
    export_speedscope(trace, folder / "out.speedscope.json")
    for profile in json.loads((folder / "out.speedscope.json").read_text())["profiles"]:
        times = [step["at"] for step in profile["events"]]
        assert times == sorted(times)


def figures(sheet: Sheet, key: str) -> dict[str, list[Any]]:
    """By name the number of recorded calls and the figures of time of the rows that have any."""
    columns = [
        name for name in ("self_cpu_time_total", "cpu_time_total", "cpu_time", *STATS) if name in sheet
    ]
    rows: list[dict[str, Any]] = sheet.rows()
    calls = [row["count"] - row.get("synthetic_count", 0) for row in rows]
    return {row[key]: [n, *[row[name] for name in columns]] for row, n in zip(rows, calls) if n}


@settings(max_examples=100)
@given(traces=synthetic_traces())
def test_synthetic_events_change_no_figure_of_time(traces: tuple[Trace, Trace]) -> None:
    recorded, shown = traces
    # torch merges an only child of its parent's name into the parent; a synthetic event may be a second one
    assume(Results(recorded).shown.all() and Results(shown).shown.all())
    for by in ("name", "thread", "category"):
        assert figures(groups(shown, by, stats=True), by) == figures(groups(recorded, by, stats=True), by)
    assert figures(call_tree(shown), "name").keys() >= figures(call_tree(recorded), "name").keys()
    assert list(folded(shown, by="ops")) == list(folded(recorded, by="ops"))
    a, b = measure(shown), measure(recorded)
    for metric in TIMES:
        samples = {key: values.tolist() for key, values in zip(a.keys, a.samples(metric))}
        for key, values in zip(b.keys, b.samples(metric)):
            assert samples[key] == values.tolist()
    assert changes_by_lifetime(shown, tree(shown)) == changes_by_lifetime(recorded, tree(recorded))


@settings(max_examples=60)
@given(traces=synthetic_traces())
def test_what_judges_a_run_looks_at_what_ran(traces: tuple[Trace, Trace]) -> None:
    recorded, shown = traces
    assert doctor(shown) == doctor(recorded)
    assert advise(shown) == advise(recorded)
    mine, theirs = summary(shown), summary(recorded)
    assert mine["recorded"]["synthetic_events"] == shown.n_synthetic
    mine["recorded"]["synthetic_events"] = 0
    assert mine == theirs
    assert steps_table(shown).rows() == steps_table(recorded).rows()


def test_counts_say_how_many_of_them_are_synthetic(tmp_path: Path) -> None:
    trace = linear_with_synthetic_ops()
    row = next(row for row in groups(trace, stats=True).rows() if row["name"] == "aten::t")
    assert (row["count"], row["synthetic_count"], row["cpu_time"], row["min"], row["first"]) == (
        3,
        2,
        2.0,
        2.0,
        2.0,
    )
    row = next(row for row in groups(trace, stats=True).rows() if row["name"] == "aten::transpose")
    assert (row["count"], row["synthetic_count"], row["cpu_time"], row["max"]) == (2, 2, 0.0, 0.0)
    rows = call_tree(trace, by_time=True).rows()
    assert [(row["tree"], row["count"], row["synthetic_count"]) for row in rows][:4] == [
        ("forward", 1, 0),
        ("  aten::linear", 1, 0),
        ("    aten::t", 1, 1),
        ("      aten::transpose", 1, 1),
    ]
    assert TABLES["events"](trace)["synthetic_count"].sum() == 6
    text = summary_text(summary(trace))
    assert "4 events (and 6 synthetic, which are not counted) on 1 thread" in text
    assert measure(trace).totals["count"].tolist() == [1, 2, 3, 2, 2]  # forward, linear, t, transpose, addmm
    assert "in aten::addmm" in memory_summary(trace)
    export_speedscope(trace, tmp_path / "out.json")
    (profile,) = json.loads((tmp_path / "out.json").read_text())["profiles"]
    assert len(profile["events"]) == 2 * 4
