"""Widths of texts on a terminal."""

from __future__ import annotations

import pytest

from mindtorch_prof.text_width import cut, cut_list, cut_middle, text_width


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("内核", 4), ("e\u0301", 1), ("…", 1), ("", 0)])
def test_characters_take_the_columns_that_a_terminal_gives_them(text: str, width: int) -> None:
    assert text_width(text) == width


@pytest.mark.parametrize(
    "text", ["kernel_name_that_is_long", "内核名称很长很长很长很长", "mixed 内核 name of a kernel"]
)
@pytest.mark.parametrize("width", [1, 2, 5, 8, 11])
def test_cut_texts_are_never_wider_than_they_may_be(text: str, width: int) -> None:
    for short in (cut(text, width), cut_middle(text, width)):
        assert text_width(short) <= width
        assert "…" in short


def test_numbers_of_a_list_are_not_cut() -> None:
    assert cut_list("[[16, 559, 1024], [1024]]", 13) == "[[16, 559…"
    assert cut_list("59812, 10000001", 15) == "59812, 10000001"
    assert cut_list("59812, 10000001", 12) == "59812…"


def test_texts_that_fit_are_not_cut() -> None:
    assert cut("abc", 3) == cut_middle("abc", 3) == "abc"
    assert cut_middle("abcdefgh", 5) == "ab…gh"
