"""Widths of texts on a terminal: a text in, the columns it takes out; or the text cut to some columns."""

from __future__ import annotations

import unicodedata

_ELLIPSIS = "…"


def text_width(text: str) -> int:
    """How many columns of a terminal a text takes: characters of East Asian scripts take two, combining ones none."""
    return len(text) if text.isascii() else sum(map(_char_width, text))


def _char_width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, width: int) -> str:
    """A text of at most `width` columns, with an ellipsis where its end is missing."""
    return text if text_width(text) <= width else _beginning(text, max(width - 1, 0)).rstrip() + _ELLIPSIS


def cut_list(text: str, width: int) -> str:
    """`cut` that does not cut numbers: of a list of sizes or ids, the number that does not fit goes as a whole."""
    short = cut(text, width)
    kept = len(short) - 1
    if short != text and text[kept - 1 : kept + 1].isdigit():
        short = short[:-1].rstrip("0123456789.").rstrip(" ,([") + _ELLIPSIS
    return short


def cut_middle(text: str, width: int) -> str:
    """A text of at most `width` columns, with an ellipsis where its middle is missing."""
    if text_width(text) <= width:
        return text
    tail = max(width - 1, 0) // 2
    end = _beginning(text[::-1], tail)[::-1]
    return _beginning(text, max(width - 1 - tail, 0)) + _ELLIPSIS + end


def _beginning(text: str, width: int) -> str:
    """As many characters as fit."""
    if text.isascii():
        return text[:width]
    used = 0
    for place, char in enumerate(text):
        used += _char_width(char)
        if used > width:
            return text[:place]
    return text
