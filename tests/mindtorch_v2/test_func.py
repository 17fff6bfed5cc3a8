"""torch.func shows what torch was recorded to show."""

from __future__ import annotations

import pytest
import recorded_cases


@pytest.mark.parametrize(("module", "case"), recorded_cases.recorded("func_cases"))
def test_a_case_shows_what_torch_showed(module: str, case: str) -> None:
    recorded_cases.check(module, case)
