"""Ops at NaN, infinities, zeros and ties, in mixed dtypes, with `out=`, against rows recorded from torch."""

from __future__ import annotations

from typing import Any

import pytest
import recorded_rows

import mindtorch_v2 as torch


@pytest.mark.parametrize(("setup", "line", "fact"), recorded_rows.recorded("edge_value"))
def test_an_op_gives_what_torch_gives_at_its_edges(setup: str, line: str, fact: Any) -> None:
    recorded_rows.check(torch, setup, line, fact)
