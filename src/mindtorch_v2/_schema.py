"""Schemas: the text of an aten signature in, its name, arguments and returns out. Pure parsing."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_CONSTANTS = {
    "None": None,
    "True": True,
    "False": False,
    "Mean": 1,
    "Sum": 2,
    "contiguous_format": None,
    "inf": float("inf"),
    "long": None,
}
_HEAD = re.compile(r"\s*(?:(\w+)::)?(\w+)(?:\.(\w+))?\s*\(")
_ARGUMENT = re.compile(
    r"^(?P<type>[\w]+(?:\([a-z]\d*!?(?: -> \*)?\))?\??(?:\[\d*\])?\??)\s+(?P<name>\w+)(?:=(?P<default>.*))?$"
)


class Argument(NamedTuple):
    """One argument: `kind` is Tensor, Tensor?, Tensor[], Tensor?[], ints (a list of ints) or other."""

    name: str
    type: str
    kind: str
    default: Any
    required: bool
    keyword_only: bool
    written: bool  # the op writes to it: Tensor(a!)
    length: int  # N of int[N], else 0


class Schema(NamedTuple):
    """A parsed signature."""

    namespace: str
    name: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[str, ...]
    return_names: tuple[str, ...]
    text: str


def head(text: str) -> tuple[str, str, str]:
    """Namespace, name and overload, without reading the rest."""
    match = _HEAD.match(text)
    if match is None:
        raise ValueError(f"not an aten schema: {text!r}")
    return match[1] or "aten", match[2], match[3] or ""


def _split(text: str) -> list[str]:
    parts, depth, current = [], 0, ""
    for char in text:
        if char == "," and depth == 0:
            parts.append(current.strip())
            current = ""
            continue
        depth += (char in "([") - (char in ")]")
        current += char
    if current.strip():
        parts.append(current.strip())
    return parts


def _default(text: str) -> Any:
    text = text.strip()
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text.startswith("["):
        return tuple(_default(part) for part in _split(text[1:-1]))
    if text[0] in "\"'":
        return text[1:-1]
    try:
        return int(text)
    except ValueError:
        return float(text)


def kind_of_type(type_: str) -> str:
    """What an argument of this type takes: Tensor, Tensor?, Tensor[], Tensor?[], ints (a list of ints) or other."""
    plain = re.sub(r"\([^)]*\)", "", type_)
    if plain in ("Tensor", "Tensor?", "Tensor[]", "Tensor?[]"):
        return plain
    if re.match(r"(Sym)?[iI]nt\[\d*\]\??$", plain):
        return "ints"
    return "other"


def _argument(text: str, keyword_only: bool) -> Argument:
    match = _ARGUMENT.match(text)
    if match is None:
        raise ValueError(f"cannot read schema argument {text!r}")
    type_, default = match["type"], match["default"]
    length = re.search(r"\[(\d+)\]", type_)
    kind = kind_of_type(type_)
    value = None if default is None else _default(default)
    if kind == "ints" and isinstance(value, int) and length and int(length[1]) > 0:
        value = (value,) * int(length[1])
    return Argument(
        match["name"],
        type_,
        kind,
        value,
        default is None,
        keyword_only,
        "!" in type_,
        int(length[1]) if length else 0,
    )


def parse(text: str) -> Schema:
    """Read one schema."""
    namespace, name, overload = head(text)
    start = text.index("(")
    depth, end = 0, start
    for end in range(start, len(text)):
        depth += (text[end] == "(") - (text[end] == ")")
        if depth == 0:
            break
    keyword_only, arguments = False, []
    for part in _split(text[start + 1 : end]):
        if part == "*":
            keyword_only = True
            continue
        arguments.append(_argument(part, keyword_only))
    tail = text[end + 1 :].strip()
    tail = tail[2:].strip() if tail.startswith("->") else ""
    if tail.startswith("(") and tail.endswith(")"):
        tail = tail[1:-1]
    returns = [part.split(" ") for part in _split(tail)]
    kinds = tuple(part[0] for part in returns)
    names = tuple(part[1] if len(part) > 1 else f"result{i}" for i, part in enumerate(returns))
    return Schema(namespace, name, overload, tuple(arguments), kinds, names, text)
