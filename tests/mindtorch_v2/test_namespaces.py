"""Devices, back ends and other namespaces answer, refuse and warn as those of torch's CPU build."""

from __future__ import annotations

import pytest
import recorded_cases


@pytest.mark.parametrize(("module", "case"), recorded_cases.recorded("namespace_cases"))
def test_namespaces_show_what_torch_shows(module: str, case: str) -> None:
    recorded_cases.check(module, case)
