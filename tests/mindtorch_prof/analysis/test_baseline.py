"""Baselines: small files that read back equal; damaged ones are refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_file_builder import TraceFileBuilder, noisy_ops

from mindtorch_prof.analysis.baseline import make_baseline, read_baseline, write_baseline
from mindtorch_prof.analysis.check import METRICS, check
from mindtorch_prof.load import load


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[TraceFileBuilder], Any]:
    """A function from the events of a trace file to the trace."""
    return lambda trace: load(trace.dump(tmp_path / "trace.json"))


OPS = {"mm": (2, 200.0), "relu": (3, 80.0), "sum": (1, 60.0)}


ops = st.dictionaries(
    st.text(min_size=1, max_size=6),
    st.tuples(st.integers(1, 3), st.floats(1, 300).map(lambda x: round(x, 2))),
    max_size=4,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("check")


@settings(max_examples=30)
@given(some=ops, steps=st.integers(1, 5))
def test_a_baseline_file_reads_back_equal_and_what_it_was_made_of_passes(
    folder: Path, some: dict, steps: int
) -> None:
    trace = load(noisy_ops(some, steps).dump(folder / "t.json"))
    baseline = make_baseline([trace, trace])
    write_baseline(baseline, folder / "b.json")
    text = (folder / "b.json").read_bytes()
    again = read_baseline(folder / "b.json")
    assert (again.rows, again.total, again.steps, again.has) == (
        baseline.rows,
        baseline.total,
        baseline.steps,
        baseline.has,
    )
    write_baseline(again, folder / "b.json")
    assert (folder / "b.json").read_bytes() == text
    report = check([trace], again, exact=True, on=METRICS)
    assert report
    assert not report.findings


def test_a_baseline_is_small_and_has_a_line_a_row(
    opened: Callable[[TraceFileBuilder], Any], tmp_path: Path
) -> None:
    write_baseline(make_baseline([opened(noisy_ops(OPS, steps=200))]), tmp_path / "b.json")
    text = (tmp_path / "b.json").read_text()
    data = json.loads(text)
    assert list(data) == sorted(data)
    assert [row[0] for row in data["rows"]] == sorted([*OPS, "ProfilerStep*"])
    assert sum(line.startswith("    [") for line in text.splitlines()) == 4
    assert len(text) < 6000


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not valid JSON"),
        ('{"format": "mindtorch-prof baseline", "version": 99}', "of version 99"),
        ('{"format": "mindtorch-prof baseline", "version": 1}', "a damaged baseline"),
        ('{"format": "other"}', "not a baseline"),
    ],
)
def test_a_bad_baseline_is_refused_with_its_name_and_the_reason(
    text: str, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "b.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=problem) as raised:
        read_baseline(path)
    assert str(path) in str(raised.value)
