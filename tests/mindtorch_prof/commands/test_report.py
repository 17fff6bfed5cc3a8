"""`mindtorch-prof report`: one trace, two traces, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from html_report import blocks

from mindtorch_prof import cli
from mindtorch_prof.export import chrome
from mindtorch_prof.torch_api.results import Results


def test_the_command_writes_a_report_of_one_trace_and_of_two(
    recorded_training: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace, out = str(tmp_path / "t.json"), str(tmp_path / "r.html")
    chrome.export_chrome_trace(recorded_training.trace, trace)
    assert cli.main(["report", trace, "-o", out]) == 0
    assert out in capsys.readouterr().out
    assert "summary-1" not in blocks(Path(out))
    assert cli.main(["report", trace, trace, "-o", out]) == 0
    data = blocks(Path(out))
    assert data["summary-1"][0]["label"] == "t.json (B)"
    assert set(data["compare-0"][0]["status"].values()) == {"same"}


def test_the_command_names_what_it_cannot_read_or_must_not_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", str(tmp_path / "none.json"), "-o", str(tmp_path / "r.html")]) == 2
    assert "none.json" in capsys.readouterr().err
    trace = tmp_path / "t.json"
    trace.write_text("{}")
    assert cli.main(["report", str(trace), "-o", str(trace)]) == 2
    assert "is the input file" in capsys.readouterr().err
    assert trace.read_text() == "{}"
