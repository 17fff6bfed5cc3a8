"""`mindtorch-prof summary`: the page of the analysis, in every format."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

from mindtorch_prof.analysis.summary import summary, summary_text
from mindtorch_prof.text_escaping import csv_cell


def test_the_page_is_that_of_the_analysis(
    three_steps: Any, three_steps_path: str, printed: Callable[..., str]
) -> None:
    page = summary_text(summary(three_steps)).replace("\x1b", "\\x1b")
    assert printed("summary", three_steps_path) == page


def test_json_has_a_version_and_csv_has_the_rows_of_every_part(
    three_steps: Any, three_steps_path: str, printed: Callable[..., str]
) -> None:
    data = json.loads(printed("summary", three_steps_path, "--format", "json"))
    assert data["format_version"] == 1
    rows = list(csv.DictReader(io.StringIO(printed("summary", three_steps_path, "--format", "csv"))))
    for part, key in (("categories", "category"), ("ops", "name"), ("kernels", "name")):
        assert [row["name"] for row in rows if row["part"] == part] == [
            csv_cell(row[key]) for row in data[part]
        ]
