"""Packed columns: they come back as they went in."""

from __future__ import annotations

import numpy as np
from html_report import unpacked
from hypothesis import given, settings
from hypothesis import strategies as st

from mindtorch_prof.export.html.pack import Block


@settings(max_examples=40)
@given(st.lists(st.integers(-(2**52), 2**52), max_size=40), st.booleans())
def test_a_column_comes_back_as_it_went_in(numbers: list[int], rising: bool) -> None:
    block = Block({"x": 1})
    numbers = sorted(numbers) if rising else numbers
    block.add("c", np.array(numbers, np.int64), rising=rising)
    values, columns = unpacked(block.text())
    assert values == {"x": 1}
    assert columns["c"].astype(np.int64).tolist() == numbers
