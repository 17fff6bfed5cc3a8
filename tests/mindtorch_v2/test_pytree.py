"""Shapes of trees as text, against what torch shows."""

from __future__ import annotations

import importlib
import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

FACTS = Path(__file__).parent / "facts"
RECORDED = json.loads((FACTS / "pytree_cases.json").read_text())


@pytest.fixture(scope="module")
def runner() -> Any:
    sys.path.insert(0, str(FACTS))
    try:
        return importlib.import_module("case_runner"), importlib.import_module("pytree_cases")
    finally:
        sys.path.remove(str(FACTS))


@pytest.mark.parametrize("case", list(RECORDED))
def test_trees_show_what_torch_shows(case: str, runner: Any) -> None:
    case_runner, cases = runner
    assert case_runner.run(getattr(cases, case), "mindtorch_v2") == RECORDED[case]


@pytest.mark.parametrize("case", list(RECORDED))
def test_torch_still_shows_what_was_recorded(
    case: str, runner: Any, torch_reference: types.ModuleType
) -> None:
    case_runner, cases = runner
    assert case_runner.run(getattr(cases, case), torch_reference.__name__) == RECORDED[case]
