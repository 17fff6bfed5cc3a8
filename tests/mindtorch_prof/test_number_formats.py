"""Numbers as torch prints them in tables."""

from __future__ import annotations

import pytest

from mindtorch_prof.number_formats import counted, format_memory, format_share, format_time, format_time_in


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [(0, "0.000us"), (999.9, "999.900us"), (1000, "1.000ms"), (999_999, "999.999ms"), (1e6, "1.000s")],
)
def test_a_time_has_the_largest_unit_of_which_it_is_one_or_more(microseconds: float, text: str) -> None:
    assert format_time(microseconds) == text


@pytest.mark.parametrize(("unit", "text"), [("us", "1500.000us"), ("s", "0.002s"), ("hours", "1.500ms")])
def test_a_time_in_a_unit_that_is_not_known_is_printed_in_its_own(unit: str, text: str) -> None:
    assert format_time_in(1500, unit) == text


def test_a_share_of_nothing_is_no_number() -> None:
    assert format_share(1, 0) == "NaN"
    assert format_share(1, 3) == "33.33%"


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(1023, "1023 B"), (-2048, "-2.00 KB"), (3 << 19, "1.50 MB"), (5 << 30, "5.00 GB")],
)
def test_bytes_have_binary_units_and_their_sign(nbytes: int, text: str) -> None:
    assert format_memory(nbytes) == text


def test_one_is_counted_in_the_singular() -> None:
    assert [counted(number, "step") for number in (0, 1, 1200)] == ["0 steps", "1 step", "1,200 steps"]
