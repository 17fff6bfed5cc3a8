"""Rows of expressions as pytest parameters, each with what torch gave for it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import expression_rows
import pytest
from row_comparison import difference

HERE = Path(__file__).parent


def recorded(name: str) -> list[Any]:
    """The rows of `<name>_rows.txt` with their facts."""
    facts = json.loads(gzip.decompress((HERE / f"{name}_facts.json.gz").read_bytes()))
    return [
        pytest.param(setup, line, fact, id=f"{number}-{line[:60]}")
        for number, ((setup, line), fact) in enumerate(zip(expression_rows.rows(name), facts, strict=True))
    ]


def check(torch: Any, setup: str, line: str, fact: Any, scaled: bool = False) -> None:
    """Fail with the first difference from torch."""
    found = difference(fact, expression_rows.run(torch, setup, line), scaled=scaled)
    assert found is None, f"{line}\n{found}"
