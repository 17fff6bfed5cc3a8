"""Whatever a trace holds, every question gets an answer, and the answers agree with each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import kineto_documents as documents
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mindtorch_prof.analysis.call_tree import call_tree
from mindtorch_prof.analysis.doctor import doctor
from mindtorch_prof.analysis.folded_stacks import folded
from mindtorch_prof.analysis.groups import KEYS, groups
from mindtorch_prof.analysis.steps_table import steps_table
from mindtorch_prof.analysis.summary import summary, summary_text
from mindtorch_prof.analysis.tables import TABLES
from mindtorch_prof.export.speedscope import export_speedscope
from mindtorch_prof.load import load

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


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
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
    for finding in doctor(trace):
        assert finding.message
    export_speedscope(trace, folder / "out.speedscope.json")
    for profile in json.loads((folder / "out.speedscope.json").read_text())["profiles"]:
        times = [step["at"] for step in profile["events"]]
        assert times == sorted(times)
