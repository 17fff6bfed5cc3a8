"""Folded stacks: their values add up to the self times."""

from __future__ import annotations

from typing import Any

import pytest

from mindtorch_prof.analysis.folded_stacks import folded


def test_folded_stacks_add_up_to_the_own_times(three_steps: Any) -> None:
    lines = folded(three_steps, by="ops")
    assert dict(lines)["ProfilerStep*;aten::linear;aten::addmm;cudaLaunchKernel"] == 6
    assert sum(value for _, value in lines) == 303
    assert sum(value for _, value in folded(three_steps, by="ops", device=True)) == 90
    with pytest.raises(ValueError, match="cannot fold by 'x'"):
        folded(three_steps, by="x")
