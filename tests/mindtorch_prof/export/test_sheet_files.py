"""Tables as CSV and Parquet files."""

from __future__ import annotations

import csv
import gzip
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mindtorch_prof import cli
from mindtorch_prof.analysis.sheet import Sheet
from mindtorch_prof.analysis.tables import TABLES
from mindtorch_prof.export.sheet_files import export_csv


def test_csv_files_hold_the_tables(
    three_steps_path: str, three_steps: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, make in TABLES.items():
        out = tmp_path / f"{name}.csv.gz"
        assert cli.main(["convert", three_steps_path, "--to", "csv", "--table", name, "-o", str(out)]) == 0
        with gzip.open(out, "rt", newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == make(three_steps).n_rows
    steps = TABLES["events"](three_steps)["step"].tolist()
    assert Counter(steps) == {1: 7, 2: 7, 3: 7, None: 1}


def test_events_and_averages_become_arrow_tables_and_parquet_files(
    three_steps: Any, three_steps_path: str, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow", reason="runs with the extra `pandas`")
    from pyarrow import parquet

    assert three_steps.events().to_arrow().num_rows == len(three_steps.events())
    assert three_steps.key_averages(group_by_stack_n=2).to_arrow().num_rows == len(
        three_steps.key_averages(group_by_stack_n=2)
    )
    for table in ("events", "averages", "steps", "memory", "device"):
        out = tmp_path / f"{table}.parquet"
        assert (
            cli.main(["convert", three_steps_path, "--to", "parquet", "--table", table, "-o", str(out)]) == 0
        )
        assert parquet.read_table(out).num_columns > 4
    assert parquet.read_table(tmp_path / "events.parquet").schema.field("step").type == "int64"


def test_cells_of_csv_files_are_quoted_and_lists_are_one_cell(tmp_path: Path) -> None:
    columns = {"name": ['say "a,b"', "line\nbreak"], "stack": [["f", "g"], []], "shape": [[[2, 3]], None]}
    export_csv(Sheet(columns, 2), tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["name", "stack", "shape"],
            ['say "a,b"', "f;g", "[[2, 3]]"],
            ["line\\x0abreak", "", ""],
        ]


def test_rows_with_long_stacks_are_not_in_memory_together(tmp_path: Path) -> None:
    stack = ("x" * 100,) * 1000
    sheet = Sheet({"stack": [stack] * 500}, 500)
    tracemalloc.start()
    try:
        export_csv(sheet, tmp_path / "t.csv")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (tmp_path / "t.csv").stat().st_size > 50_000_000
    assert peak < 10_000_000
