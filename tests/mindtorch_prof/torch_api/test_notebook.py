"""Tables in notebooks: a frame that holds all it needs; names are escaped."""

from __future__ import annotations

import html
import re
from typing import Any

from html_report import HOSTILE_NAMES, unpacked
from trace_builder import make_trace

from mindtorch_prof.torch_api.results import Results
from mindtorch_v2.autograd.profiler_util import EventList, FunctionEvent


def test_notebooks_get_a_frame_that_holds_all_it_needs(recorded_training: Results) -> None:
    shown = recorded_training._repr_html_()
    frame = re.match(r'<iframe sandbox="allow-scripts" [^>]*srcdoc="([^"]*)"></iframe>', shown)
    assert frame is not None
    inner = html.unescape(frame[1])
    assert "default-src 'none'" in inner
    data = re.search(r'id="summary-0">([^<]*)<', inner)
    assert data is not None
    values, columns = unpacked(data[1].encode())
    assert len(columns["name.count"]) == len(recorded_training.key_averages())
    assert "aten::addmm" in values["groups"]["name"]["names"]


def test_notebooks_show_hostile_names_as_text() -> None:
    shown = Results(make_trace(*[(name, 0, 9, 1) for name in HOSTILE_NAMES]))._repr_html_()
    assert "<img" not in shown
    assert shown.count("<script") == 0


def event(number: int, name: str, start: float, end: float, **fields: Any) -> FunctionEvent:
    return FunctionEvent(
        number, name, 1, start, end, **{"stack": [], "input_shapes": [], "flops": 0, **fields}
    )


def test_names_reach_a_notebook_as_escaped_text() -> None:
    page = EventList([event(1, "<img onerror=alert(1)>", 0, 1)])._repr_html_()
    assert "&lt;img onerror=alert(1)&gt;" in page
    assert "<img" not in page
