"""Shapes of trees as text, against what torch shows."""

from __future__ import annotations

import types

import pytest
import recorded_cases


@pytest.mark.parametrize(("module", "case"), recorded_cases.recorded("pytree_cases"))
def test_trees_show_what_torch_shows(module: str, case: str) -> None:
    recorded_cases.check(module, case)


def test_torch_still_shows_what_was_recorded(torch_reference: types.ModuleType) -> None:
    assert recorded_cases.differing("pytree_cases", torch_reference.__name__) == []
