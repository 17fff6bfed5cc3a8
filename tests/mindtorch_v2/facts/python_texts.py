"""Texts of Python itself: a line shown on this Python in, the line that Python 3.11 shows out, and whether both say the same. Facts were recorded on 3.11."""

from __future__ import annotations

import re
import sys

RECORDED_WITH = (3, 11)
_ORDERED = "OrderedDict({"
_OPENING, _CLOSING = "([{<", ")]}>"
_MESSAGES = (
    (
        r"Unpickler\(\) got an unexpected keyword argument ('\w+')",
        r"\1 is an invalid keyword argument for Unpickler()",
    ),
    (r"Can't get local object ('[^']*')", r"Can't pickle local object \1"),
)
_WITH_CLASS = (
    (r"property ('\w+') of '[^']*' object has no setter", r"can't set attribute \1"),
    (r"'\w+' object has no attribute '(\w+)'", r"\1"),
)


def as_recorded(line: str) -> str:
    """A line with what newer Pythons say otherwise: the text of an OrderedDict (3.12), messages about arguments and pickling (3.13)."""
    if sys.version_info[:2] <= RECORDED_WITH:
        return line
    for newer, recorded in _MESSAGES:
        line = re.sub(newer, recorded, line)
    return _with_pairs(line)


def agree(line: str, recorded: str) -> bool:
    """Whether a line says what was recorded. Python 3.10 leaves out the class in messages about attributes."""
    if line == recorded:
        return True
    return sys.version_info[:2] < RECORDED_WITH and any(
        line == re.sub(pattern, older, recorded) for pattern, older in _WITH_CLASS
    )


def _with_pairs(text: str) -> str:
    """OrderedDict({'a': 1}) as OrderedDict([('a', 1)]), nested ones too."""
    place = text.find(_ORDERED)
    if place < 0:
        return text
    begin = place + len(_ORDERED)
    commas, colons, end = _top_level_marks(text, begin)
    pairs = []
    for start, stop in zip([begin, *(comma + 2 for comma in commas)], [*commas, end]):
        colon = next(colon for colon in colons if start <= colon < stop)
        pairs.append(f"({text[start:colon]}, {_with_pairs(text[colon + 2 : stop])})")
    return f"{text[:place]}OrderedDict([{', '.join(pairs)}]){_with_pairs(text[end + 2 :])}"


def _top_level_marks(text: str, begin: int) -> tuple[list[int], list[int], int]:
    """Where the pairs of the dict whose inside begins there are parted, where keys end, and where its closing brace is."""
    commas, colons, depth, quote, place = [], [], 0, "", begin
    while depth >= 0:
        sign = text[place]
        if quote:
            if sign == "\\":
                place += 1
            elif sign == quote:
                quote = ""
        elif sign in "'\"":
            quote = sign
        elif sign in _OPENING:
            depth += 1
        elif sign in _CLOSING:
            depth -= 1
        elif depth == 0 and text.startswith(", ", place):
            commas.append(place)
        elif depth == 0 and text.startswith(": ", place) and len(colons) == len(commas):
            colons.append(place)
        place += 1
    return commas, colons, place - 1
