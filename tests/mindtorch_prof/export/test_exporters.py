"""The table of export formats: each one writes a file that its readers open."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from mindtorch_prof import load
from mindtorch_prof.export.exporters import EXPORTERS, ExportOptions


def written(format: str, source: Any, folder: Path, options: ExportOptions) -> Path:
    path = folder / f"out{EXPORTERS[format].suffix}"
    EXPORTERS[format].write(source, str(path), options)
    return path


def test_a_chrome_trace_can_be_loaded_again(three_steps: Any, tmp_path: Path) -> None:
    again = load(written("chrome", three_steps, tmp_path, ExportOptions()))
    assert {row.key for row in again.key_averages()} == {row.key for row in three_steps.key_averages()}


def test_a_csv_file_holds_the_table_that_was_asked_for(three_steps: Any, tmp_path: Path) -> None:
    path = written("csv", three_steps, tmp_path, ExportOptions(table="steps"))
    with path.open(newline="") as file:
        assert [row["step"] for row in csv.DictReader(file)] == ["1", "2", "3"]


def test_a_parquet_file_holds_the_table_that_was_asked_for(three_steps: Any, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="runs with the extra `pandas`")
    path = written("parquet", three_steps, tmp_path, ExportOptions(table="steps"))
    assert parquet.read_table(path)["step"].to_pylist() == [1, 2, 3]


def test_a_speedscope_file_has_the_name_of_the_recording(three_steps: Any, tmp_path: Path) -> None:
    path = written("speedscope", three_steps, tmp_path, ExportOptions(name="three steps"))
    assert json.loads(path.read_text())["name"] == "three steps"
