"""Values of events: what a file has in, what columns and tables take out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeVar

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
