"""Columns of event lists: the same values from a recording's columns and from event objects."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from synthetic_traces import linear_with_synthetic_ops

from mindtorch_prof.text_escaping import csv_cell
from mindtorch_prof.torch_api.event_columns import list_columns
from mindtorch_prof.torch_api.results import Results


def test_a_list_of_events_gives_the_same_columns_from_columns_and_from_events(three_steps: Any) -> None:
    events = three_steps.events()
    assert events.to_dict() == list_columns(events, None)
    assert {len(column) for column in events.to_dict().values()} == {len(events)}
    some = type(events)(events[:3])
    assert some.to_dict() == {name: column[:3] for name, column in events.to_dict().items()}


def test_columns_say_which_events_are_synthetic() -> None:
    results = Results(linear_with_synthetic_ops())
    marks = results.events.to_dict()["is_synthetic"]
    assert "".join("S" if mark else "-" for mark in marks) == "--SSS--SSS"
    assert results.key_averages().to_dict()["synthetic_count"] == [0, 0, 2, 2, 2]


def test_lists_are_rows_and_csv_files_too(three_steps: Any, tmp_path: Path) -> None:
    averages = three_steps.key_averages()
    rows = averages.to_dicts()
    assert [row["key"] for row in rows] == averages.to_dict()["key"]
    averages.to_csv(tmp_path / "averages.csv")
    with open(tmp_path / "averages.csv", newline="", encoding="utf-8") as file:
        read = list(csv.DictReader(file))
    # control characters are spelled out, as in all CSV files
    assert [(row["key"], int(row["count"]), float(row["self_cpu_time_total"])) for row in read] == [
        (csv_cell(row["key"]), row["count"], row["self_cpu_time_total"]) for row in rows
    ]
    assert list(read[0]) == list(rows[0])
