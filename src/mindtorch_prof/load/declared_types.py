"""Values read from a file, and the types that the classes of the data model declare for them, in; a ValueError where they differ, out."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from ..json_types import whole_number


class _Integers(np.ndarray):
    """Stands for a column of whole numbers."""


class _Floats(np.ndarray):
    """Stands for a column of other numbers."""


_KINDS: dict[object, str] = {_Integers: "iu", _Floats: "f"}  # by type: the kinds of NumPy's dtypes
# What names in declarations stand for here. Those of columns are NumPy's, whose form changes from version to version; JSON values may be of any
# type that a parser gives, and their scalars are keys of dicts.
_NAMES = {
    "IntArray": _Integers,
    "FloatArray": _Floats,
    "JSONScalar": str | int | float | bool | None,
    "JSONValue": object,
    "JSONObject": dict,
}


@cache
def _declared(cls: typing.Any) -> tuple[tuple[str, object, str], ...]:
    """Of each field of a dataclass: its name, its type, and the text of that."""
    hints = typing.get_type_hints(cls, localns=_NAMES)
    return tuple((each.name, hints[each.name], str(each.type)) for each in dataclasses.fields(cls))


def check_fields(value: object, where: str = "") -> None:
    """Raise ValueError where a field of a dataclass, or of those inside it, holds something of another type."""
    for name, declared, text in _declared(typing.cast("typing.Hashable", type(value))):
        content = getattr(value, name)
        if isinstance(declared, type) and dataclasses.is_dataclass(declared) and type(content) is declared:
            check_fields(content, f"{where}{name}.")
        elif not _fits(content, declared):
            raise ValueError(f"{where}{name} is no {text}")


def _fits(value: object, declared: object) -> bool:
    """Whether a value is of a type. Items of sequences that are parsed when they are looked at are not looked at."""
    origin, arguments = typing.get_origin(declared) or declared, typing.get_args(declared)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, each) for each in arguments)
    if origin in _KINDS:
        return isinstance(value, np.ndarray) and value.dtype.kind in _KINDS[origin]
    if origin is tuple:
        return isinstance(value, tuple) and _items_fit(value, arguments)
    if origin is Mapping:
        key_type, item_type = arguments
        return isinstance(value, Mapping) and all(
            _fits(key, key_type) and _fits(item, item_type) for key, item in value.items()
        )
    if origin is Sequence:
        return isinstance(value, Sequence) and not isinstance(value, str)
    if origin is int:
        return isinstance(value, bool) or whole_number(value) is not None
    if origin is float:
        return isinstance(value, (int, float))
    return isinstance(value, typing.cast("type", origin))


def _items_fit(items: tuple[object, ...], declared: tuple[object, ...]) -> bool:
    if len(declared) == 2 and declared[1] is Ellipsis:
        if declared[0] is str:  # names, of which there may be millions
            return {*map(type, items)} <= {str}
        return all(_fits(item, declared[0]) for item in items)
    return len(items) == len(declared) and all(map(_fits, items, declared))
