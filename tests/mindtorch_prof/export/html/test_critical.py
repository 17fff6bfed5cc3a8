"""The critical path on the report's timeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kineto_documents as documents
import numpy as np
import pytest
from html_report import blocks
from synthetic_traces import linear_with_synthetic_ops
from trace_builder import make_trace

from mindtorch_prof.analysis.critical_path import critical_path
from mindtorch_prof.export.html import export_html
from mindtorch_prof.export.html.critical import END_TO_END, START_TO_START, path_on_timeline
from mindtorch_prof.torch_api.results import Results

event, kernel = documents.event, documents.kernel


def synchronised() -> Any:
    """An op that launches a kernel, and a call that waits for it."""
    rows = [
        event("aten::item", 0, 60, **{"External id": 1}),
        event("cudaLaunchKernel", 5, 2, "cuda_runtime", correlation=1),
        kernel("gemm", 10, 40, correlation=1),
        event("cudaDeviceSynchronize", 12, 42, "cuda_runtime", correlation=2),
    ]
    return documents.load_document(documents.document(rows))


def test_spans_have_their_time_on_the_path_and_arrows_lead_along_it(tmp_path: Path) -> None:
    export_html(synchronised(), tmp_path / "r.html")
    values, columns = blocks(tmp_path / "r.html")["timeline-0"]
    names = [values["names"][i] for i in columns["name"]]
    on_path = {name: int(ns) for name, ns in zip(names, columns["critical_ns"]) if ns}
    assert on_path == {"aten::item": 11_000, "gemm": 40_000, "cudaDeviceSynchronize": 4_000}
    arrows = [
        (names[int(a)], names[int(b)], int(kind))
        for a, b, kind in zip(columns["arrow.from"], columns["arrow.to"], columns["arrow.kind"])
        if kind >= START_TO_START
    ]
    assert arrows == [
        ("cudaLaunchKernel", "gemm", START_TO_START),
        ("gemm", "cudaDeviceSynchronize", END_TO_END),
    ]


def test_the_page_says_what_the_path_consists_of() -> None:
    path = path_on_timeline(synchronised()._results)
    assert path is not None
    assert path.values["length_ns"] == 60_000
    assert path.values["kinds"] == {"host": 11_000, "launch": 5_000, "kernel": 40_000, "sync": 4_000}
    assert path.values["ops"] == [["aten::item", 60_000, 1]]


def test_the_report_and_the_analysis_agree(recorded_training: Results) -> None:
    path = path_on_timeline(recorded_training)
    assert path is not None
    whole = critical_path(recorded_training)
    assert path.values["length_ns"] == pytest.approx(whole.length_us * 1000)
    assert int(path.event_ns.sum()) == pytest.approx(whole.length_us * 1000)


def test_rows_are_those_of_the_recording_with_its_synthetic_events() -> None:
    trace = linear_with_synthetic_ops()
    path = path_on_timeline(Results(trace))
    assert path is not None
    assert not path.event_ns[np.flatnonzero(~trace.is_recorded)].any()
    names = [trace.names[trace.name[row]] for row in np.flatnonzero(path.event_ns).tolist()]
    assert names == ["forward", "aten::linear", "aten::t", "aten::linear"]
    assert path.values["length_ns"] == path.event_ns.sum() + 6_000  # between the ops


def test_a_recording_without_time_has_no_path() -> None:
    assert path_on_timeline(Results(make_trace())) is None
