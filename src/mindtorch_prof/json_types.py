"""Names for the types of JSON values, as a parser gives them."""

from __future__ import annotations

from typing import TypeAlias

JSONScalar: TypeAlias = "str | int | float | bool | None"
JSONValue: TypeAlias = "dict[str, JSONValue] | list[JSONValue] | JSONScalar"
JSONObject: TypeAlias = "dict[str, JSONValue]"
