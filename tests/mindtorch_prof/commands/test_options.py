"""Option values of commands: text in, values or one sentence out."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindtorch_prof.commands._options import names, number, share


def test_names_are_taken_once_each_in_the_order_given() -> None:
    assert names(["op", "shape", "stack"])("stack, op,stack") == ("stack", "op")


@pytest.mark.parametrize("text", ["colour", "op,colour", "", ","])
def test_a_name_that_is_not_allowed_is_refused_with_those_that_are(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not one of op, shape"):
        names(["op", "shape"])(text)


@pytest.mark.parametrize(("text", "value"), [("5%", 0.05), ("0.05", 0.05), ("200%", 2.0), ("0", 0.0)])
def test_a_share_is_a_percentage_or_a_number(text: str, value: float) -> None:
    assert share(text) == pytest.approx(value)


@pytest.mark.parametrize("read", [share, number])
@given(text=st.text(max_size=8) | st.floats().map(str))
def test_any_text_is_a_finite_number_of_0_or_more_or_refused(read: Callable[[str], float], text: str) -> None:
    try:
        value = read(text)
    except argparse.ArgumentTypeError:
        return
    assert value >= 0
    assert math.isfinite(value)
