"""The report's overview: shares of the span."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from html_report import blocks
from hypothesis import given, settings
from hypothesis import strategies as st

from mindtorch_prof.export.html.overview import union
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
