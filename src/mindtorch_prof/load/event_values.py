"""Values of events: what a file has in, what columns and tables take out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeVar

from ..frames import is_left_out
from ..json_types import JSONValue

LARGEST_US = 9.0e15  # times beyond this are no microseconds since any epoch

_Key = TypeVar("_Key")


class Table(dict[_Key, int]):
    """Values to numbers, from 0 in the order in which they first occur."""

    def __missing__(self, key: _Key) -> int:
        number = self[key] = len(self)
        return number

    def numbers(self, keys: Iterable[_Key]) -> list[int]:
        return list(map(self.__getitem__, keys))

    def taken(self) -> list[_Key]:
        """The values by number. The table is empty after that: it takes more memory than most of its values."""
        keys = list(self)
        self.clear()
        return keys


class TextTable(Table[bytes]):
    """JSON texts to numbers."""

    def __missing__(self, key: bytes) -> int:
        # a copy: what orjson gives lies at the beginning of a piece of memory that is several KB long
        return super().__missing__(bytes(memoryview(key)))


class StackTable:
    """Call stacks to numbers, from 0 in the order in which they first occur. A stack is a text of frames, innermost first. The frames are kept
    in place of the texts: texts of stacks have most of their frames in common, and are many times as long as what is kept of them."""

    def __init__(self) -> None:
        self._stacks: Table[tuple[str, ...]] = Table()
        self._frames = _Frames()
        self._recent: dict[str, int] = {}  # by text
        self._recent_length = 0  # of the texts

    def __len__(self) -> int:
        return len(self._stacks)

    def __getitem__(self, text: str) -> int:
        number = self._recent.get(text)
        if number is None:
            frames = map(self._frames.__getitem__, text.split(";"))
            number = self._stacks[tuple([frame for frame in frames if frame])]
            if self._recent_length > _RECENT_TEXT:
                self._recent.clear()
                self._recent_length = 0
            self._recent[text] = number
            self._recent_length += len(text)
        return number

    def taken(self) -> list[tuple[str, ...]]:
        """The stacks by number. The table is empty after that."""
        self._frames.clear()
        self._recent.clear()
        return self._stacks.taken()


class _Frames(dict[str, str]):
    """One copy of each frame; an empty text for those that are not shown."""

    def __missing__(self, frame: str) -> str:
        self[frame] = shown = "" if is_left_out(frame) else frame
        return shown


_RECENT_TEXT = 2 << 20  # characters of texts whose numbers are looked up without taking them apart


def as_number(value: object) -> float | None:
    """A number, also where it is written as text; None if it is none, or beyond all times."""
    if not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and abs(number) < LARGEST_US else None


def plain(value: JSONValue) -> int | str | None:
    return value if isinstance(value, (int, str)) or value is None else str(value)
