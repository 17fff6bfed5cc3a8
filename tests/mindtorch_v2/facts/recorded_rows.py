"""Rows of expressions as pytest parameters, each with what torch gave for it."""

from __future__ import annotations

from typing import Any

import expression_rows
import fact_files
import pytest
from row_comparison import difference


def recorded(name: str) -> list[Any]:
    """The rows of `<name>_rows.txt` with their facts."""
    facts = fact_files.read(f"{name}_facts.json.gz")
    return [
        pytest.param(setup, line, fact, id=f"{number}-{line[:60]}")
        for number, ((setup, line), fact) in enumerate(zip(expression_rows.rows(name), facts, strict=True))
    ]


def check(torch: Any, setup: str, line: str, fact: Any, **how: Any) -> None:
    """Fail with the first difference from torch; `how` is passed to `row_comparison.difference`."""
    found = difference(fact, expression_rows.run(torch, setup, line), **how)
    assert found is None, f"{line}\n{found}"
