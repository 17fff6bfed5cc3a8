"""Overhead: the cost of an event times the number of recorded ones, wherever it is shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_traces import linear_with_synthetic_ops
from trace_builder import make_frames, make_trace

from mindtorch_prof import load
from mindtorch_prof.analysis.doctor import doctor
from mindtorch_prof.analysis.overhead import Overhead, overhead
from mindtorch_prof.analysis.summary import summary, summary_text
from mindtorch_prof.export.chrome import export_chrome_trace
from mindtorch_prof.export.html.overview import overview
from mindtorch_prof.python_rows import with_calls
from mindtorch_prof.settings import Settings
from mindtorch_prof.torch_api.results import Results
from mindtorch_prof.trace import Trace

TEXT = "10 % (6.5 to 20 %; 1.00 us x 4 events)"


def recorded() -> Trace:
    """Four recorded events and six synthetic ones in 44 us, of which recording took 4."""
    trace = linear_with_synthetic_ops()
    return replace(trace, window_ns=(0, 44_000), settings=replace(trace.settings, event_cost_ns=1000.0))


def test_only_recorded_events_count_and_the_share_is_of_the_time_without_recording() -> None:
    assert overhead(recorded()) == Overhead(1000.0, 4, 4000.0, 0.1)


def test_python_calls_among_the_rows_are_no_events() -> None:
    trace = make_trace(
        ("aten::add", 1_000, 2_000),
        frames=make_frames(("a.py(1): f", 0, 3_000, -1)),
        window_ns=(0, 11_000),
        settings=Settings(event_cost_ns=1000.0),
    )
    assert overhead(with_calls(trace)) == overhead(trace) == Overhead(1000.0, 1, 1000.0, 0.1)


def test_it_is_not_known_of_files_of_other_programs() -> None:
    trace = replace(recorded(), settings=Settings())
    assert overhead(trace) is None
    assert summary(trace)["overhead"] is None
    assert "recording added" not in summary_text(summary(trace))


def test_every_display_says_the_same() -> None:
    results = Results(recorded())
    assert overhead(results).sentence() == f"recording added about {TEXT}"  # type: ignore[union-attr]
    assert f"  recording added about {TEXT}\n" in summary_text(summary(results))
    assert [f.message for f in doctor(results) if f.code == "overhead"] == [f"recording added about {TEXT}"]
    assert ["Recording added", f"about {TEXT}"] in overview(results)["facts"]  # type: ignore[operator]


def test_a_file_keeps_it(tmp_path: Path) -> None:
    export_chrome_trace(recorded(), tmp_path / "trace.json")
    loaded = load(tmp_path / "trace.json")
    assert loaded.trace.settings.event_cost_ns == 1000.0
    assert loaded.overhead() == loaded.as_recorded().overhead()
    assert loaded.overhead()[:3] == (1000.0, 4, 4000.0)  # type: ignore[index]


@pytest.mark.parametrize("value", ["fast", -1, 1e12, True, None, [1]])
def test_a_value_that_is_none_is_not_taken_for_one(value: object, tmp_path: Path) -> None:
    export_chrome_trace(make_trace(("a", 1, 2)), tmp_path / "trace.json", {"event_cost_ns": value})
    assert load(tmp_path / "trace.json").overhead() is None


def test_an_estimate_beyond_the_whole_recording_gives_a_share_still() -> None:
    trace = replace(recorded(), settings=Settings(event_cost_ns=1e9))
    added = overhead(trace)
    assert added is not None
    assert 0 < added.share < float("inf")
