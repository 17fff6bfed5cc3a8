"""The report's overview: shares of the span."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from html_report import blocks
from hypothesis import given, settings
from hypothesis import strategies as st

from mindtorch_prof.analysis.device_breakdown import device_breakdown
from mindtorch_prof.analysis.recording import as_results
from mindtorch_prof.export.html.overview import overview, union
from mindtorch_prof.load import load
from mindtorch_prof.torch_api.results import Results


def test_shares_add_up_to_the_span(recorded_training: Results, report_page: Path) -> None:
    values, _ = blocks(report_page)["summary-0"]
    (cpu,) = values["shares"]
    assert sum(part for _, part in cpu["parts"]) == values["span_ns"]
    shares = dict(cpu["parts"])
    rows = {row.key: row for row in recorded_training.key_averages()}
    steps = (
        rows["Optimizer.step#SGD.step"].cpu_time_total
        + rows["Optimizer.zero_grad#SGD.zero_grad"].cpu_time_total
    )
    assert shares["Optimizer"] == round(steps * 1000)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=20))
def test_the_union_of_spans_is_as_long_as_what_they_cover(spans: list[tuple[int, int]]) -> None:
    array = np.array([(s, s + d) for s, d in spans], np.int64).reshape(-1, 2)
    united = union(array)
    covered = {t for s, d in spans for t in range(s, s + d)}
    assert int((united[:, 1] - united[:, 0]).sum()) == len(covered)


def test_the_bar_of_a_device_has_the_parts_of_its_breakdown(ecosystem: Path) -> None:
    recording = load(ecosystem / "ascend" / "text_level1" / "rank0_ascend_pt")
    (times,) = device_breakdown(recording)
    bar = overview(as_results(recording))["shares"][1]
    assert bar["label"] == "NPU 0"
    assert dict(bar["parts"]) == {
        "Computation": times.computation_ns,
        "Exposed communication": times.exposed_communication_ns,
        "Exposed copies": times.exposed_copy_ns,
        "Idle": times.idle_ns,
    }
    assert times.exposed_communication_ns > times.computation_ns
