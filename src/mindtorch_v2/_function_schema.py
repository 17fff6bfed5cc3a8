"""Schemas as programs see them (`torch.ops.aten.add.Tensor._schema`): the text of a signature in, its arguments and returns out."""

from __future__ import annotations

import functools
import re
from typing import Any

from . import _schema

_ALIAS = re.compile(r"\(([^)]*)\)")
_TYPES = {"SymInt": "int", "ScalarType": "int", "Layout": "int", "MemoryFormat": "int", "Scalar": "number"}


class AliasInfo:
    """Which other arguments and results share memory with this one, and whether the op writes to it."""

    def __init__(self, text: str) -> None:
        before, _, after = text.replace("!", "").partition(" -> ")
        self.is_write = "!" in text
        self.before_set = {before}
        self.after_set = {after or before}


def _type_text(text: str) -> str:
    """A type as torch writes it: Optional[List[int]] for int[1]?."""
    if text.endswith("?"):
        return f"Optional[{_type_text(text[:-1])}]"
    listed = re.match(r"(.*)\[\d*\]$", text)
    if listed:
        return f"List[{_type_text(listed[1])}]"
    return _TYPES.get(text, text)


class Argument:
    """One argument or result."""

    def __init__(
        self, name: str, kind: str, default: Any = None, required: bool = True, keyword: bool = False
    ) -> None:
        alias = _ALIAS.search(kind)
        self.name = name
        self.type = self.real_type = _type_text(_ALIAS.sub("", kind))
        self.alias_info = None if alias is None else AliasInfo(alias[1])
        self.kwarg_only = keyword
        self.default_value = list(default) if isinstance(default, tuple) else default
        self._required = required
        length = re.search(r"\[(\d+)\]", kind)
        self.N = int(length[1]) if length else None

    @property
    def is_write(self) -> bool:
        """Whether the op writes to it."""
        return self.alias_info is not None and self.alias_info.is_write

    @property
    def is_out(self) -> bool:
        """Whether it is an output."""
        return self.kwarg_only and self.is_write

    def has_default_value(self) -> bool:
        """Whether it may be omitted."""
        return not self._required


Argument.__module__ = AliasInfo.__module__ = "mindtorch_v2"


class FunctionSchema:
    """The signature of one overload."""

    def __init__(self, text: str) -> None:
        parsed = _schema.parse(text)
        self._text = text
        self.name = f"{parsed.namespace}::{parsed.name}"
        self.overload_name = parsed.overload
        self.arguments = [
            Argument(a.name, a.type, a.default, a.required, a.keyword_only) for a in parsed.arguments
        ]
        self.returns = [
            Argument(re.sub(r"^result\d+$", "", name), kind)
            for name, kind in zip(parsed.return_names, parsed.returns)
        ]
        self.is_mutable = any(a.is_write for a in self.arguments)

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionSchema) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


FunctionSchema.__module__ = "mindtorch_v2"


@functools.cache
def parse(text: str) -> FunctionSchema:
    """The schema that a text describes."""
    return FunctionSchema(text)


def with_number(text: str) -> str:
    """The overload "Scalar" of an op whose second operand is a tensor."""
    text = re.sub(r"\.Tensor\(", ".Scalar(", text, count=1).replace("Tensor other", "Scalar other", 1)
    return text.replace("*, Scalar alpha", "Scalar alpha")


def with_out(text: str, overload: str, outs: tuple[str, ...]) -> str:
    """The overload of an op that writes to given tensors."""
    head, _, rest = text.partition("(")
    cut = rest.rindex(")", 0, rest.rindex("->"))
    arguments, tail = rest[:cut], rest[rest.rindex("->") + 2 :].strip()
    letters = [f"Tensor({chr(97 + i)}!)" for i in range(len(outs))]
    out_arguments = ", ".join(f"{letter} {name}" for letter, name in zip(letters, outs))
    arguments += (", " if "*, " in arguments else ", *, ") + out_arguments
    names = [part.strip().partition(" ")[2] for part in tail.strip("()").split(",")]
    results = [f"{letter} {name}".strip() for letter, name in zip(letters, names)]
    returns = results[0] if len(outs) == 1 else f"({', '.join(results)})"
    return f"{head.partition('.')[0]}.{overload}({arguments}) -> {returns}"
