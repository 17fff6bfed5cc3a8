"""Names for the types of JSON values, as a parser gives them; and how deep they may nest."""

from __future__ import annotations

from typing import TypeAlias

JSONScalar: TypeAlias = "str | int | float | bool | None"
JSONValue: TypeAlias = "dict[str, JSONValue] | list[JSONValue] | JSONScalar"
JSONObject: TypeAlias = "dict[str, JSONValue]"

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
