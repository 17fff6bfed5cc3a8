"""Recordings: what has Results, and what has none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from trace_builder import make_trace

from mindtorch_prof.analysis.recording import as_results
from mindtorch_prof.torch_api.results import Results


def test_traces_loaded_files_and_results_are_recordings(three_steps: Any) -> None:
    results = Results(make_trace(("mm", 1_000, 3_000)))
    assert as_results(results) is results
    assert isinstance(as_results(results.trace), Results)
    assert as_results(three_steps).trace is three_steps.trace


def test_a_stopped_profile_is_a_recording_and_a_running_one_is_not() -> None:
    results = Results(make_trace(("mm", 1_000, 3_000)))
    stopped, running = SimpleNamespace(_results=results), SimpleNamespace(_results=None)
    assert as_results(stopped) is results
    assert as_results(SimpleNamespace(profiler=stopped)) is results
    for source in (running, SimpleNamespace(profiler=running), SimpleNamespace(profiler=None)):
        with pytest.raises(TypeError, match="a SimpleNamespace has no recording"):
            as_results(source)


def test_other_objects_are_no_recordings() -> None:
    with pytest.raises(TypeError, match="a dict has no recording"):
        as_results({})  # type: ignore[arg-type]
