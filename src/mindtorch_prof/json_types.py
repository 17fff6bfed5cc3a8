"""Names for the types of JSON values, as a parser gives them; whole numbers; and how deep values may nest."""

from __future__ import annotations

from typing import TypeAlias

JSONScalar: TypeAlias = "str | int | float | bool | None"
JSONValue: TypeAlias = "dict[str, JSONValue] | list[JSONValue] | JSONScalar"
JSONObject: TypeAlias = "dict[str, JSONValue]"

_WHOLE = 2**63  # whole numbers below this have a place in a column


def whole_number(value: object) -> int | None:
    """A value if it is a whole number of 64 bits; None: it is none."""
    is_whole = isinstance(value, int) and not isinstance(value, bool) and -_WHOLE <= value < _WHOLE
    return value if is_whole else None  # type: ignore[return-value]


DEEPEST = 100  # levels of metadata; no profiler writes as many, and encoders and walks end with an error at some hundred


def nests_too_deep(value: JSONValue) -> bool:
    """Whether a value has more than DEEPEST levels of lists and objects; walked level by level, without recursion."""
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [
            inner
            for each in level
            if isinstance(each, (dict, list))
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True
