"""`mindtorch-prof convert`: formats, and what it refuses to write."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from mindtorch_prof import cli
from mindtorch_prof.analysis.groups import groups
from mindtorch_prof.load import load


def test_a_chrome_trace_written_again_has_the_same_averages(
    three_steps_path: str, three_steps: Any, tmp_path: Path
) -> None:
    out = tmp_path / "again.json.gz"
    assert cli.main(["convert", three_steps_path, "--to", "chrome", "-o", str(out)]) == 0
    again = load(out)
    one, two = groups(three_steps).sort("name"), groups(again).sort("name")
    assert one["name"].tolist() == two["name"].tolist()
    for key in ("self_cpu_time_total", "count", "self_device_time_total"):
        assert one[key].tolist() == pytest.approx(two[key].tolist(), abs=1e-3)


def test_a_file_is_not_converted_onto_itself(
    three_steps_path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["convert", three_steps_path, "--to", "chrome", "-o", three_steps_path]) == 2
    assert "is the input file" in capsys.readouterr().err


def test_without_pyarrow_parquet_says_what_to_install(
    three_steps_path: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert cli.main(["convert", three_steps_path, "--to", "parquet", "-o", str(tmp_path / "x.parquet")]) == 2
    assert "pip install mindtorch_v2[pandas]" in capsys.readouterr().err
    assert not (tmp_path / "x.parquet").exists()


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("a.csv", b"row,name,"),
        ("a.speedscope.json", b'{"$schema'),
        ("a.json", b"{"),
        ("a.mtrace", b"PK"),
        ("a.otlp.jsonl", b'{"resourceSpans"'),
    ],
)
def test_the_format_is_that_of_the_name_of_the_file(
    name: str, begins: bytes, three_steps_path: str, tmp_path: Path
) -> None:
    out = tmp_path / name
    assert cli.main(["convert", three_steps_path, "-o", str(out)]) == 0
    assert out.read_bytes().startswith(begins)


def test_a_format_that_nothing_tells_is_one_sentence(
    three_steps_path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in ([], ["-o", str(tmp_path / "a.xlsx")]):
        assert cli.main(["convert", three_steps_path, *words]) == 2
        assert "expected --to (chrome, csv, native, otlp, parquet, speedscope)" in capsys.readouterr().err
