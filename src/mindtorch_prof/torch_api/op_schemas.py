"""Which schemas an op's recorded inputs fit, and what may be written to: names and inputs in, torch's `SchemaMatcher` and schemas out."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, Protocol

from .event_tree_fields import _ExtraFields_TorchOp, _TensorMetadata

# ops that torch has for numbers too: their overloads take a number where those of other ops take the tensor made of it
WITH_NUMBER = frozenset(
    name + end
    for name in (
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "xlogy",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "bitwise_left_shift",
        "bitwise_right_shift",
    )
    for end in ("", "_")
)


@dataclasses.dataclass(frozen=True)
class AliasInfo:
    """Whether an op writes to an argument."""

    is_write: bool


class FunctionSchema:
    """The signature of an op, as torch shows it: its text, and what each argument is."""

    __slots__ = ("_schema",)

    def __init__(self, schema: Any) -> None:
        self._schema = schema

    @property
    def name(self) -> str:
        """With its namespace, without its overload."""
        return f"{self._schema.namespace}::{self._schema.name}"

    @property
    def overload_name(self) -> str:
        """The overload; empty for the default one."""
        return self._schema.overload

    @property
    def arguments(self) -> list[SchemaArgument]:
        """The arguments, in order."""
        schema = self._schema
        return [SchemaArgument(a, _written(schema, place)) for place, a in enumerate(schema.arguments)]

    @property
    def is_mutable(self) -> bool:
        """Whether the op writes to any of its arguments."""
        return any(_written(self._schema, place) for place in range(len(self._schema.arguments)))

    def __repr__(self) -> str:
        return self._schema.text


class SchemaArgument:
    """One argument of an op."""

    __slots__ = ("_argument", "_written")

    def __init__(self, argument: Any, written: bool) -> None:
        self._argument = argument
        self._written = written

    @property
    def name(self) -> str:
        """What it is called."""
        return self._argument.name

    @property
    def type(self) -> str:
        """Its type, as the schema writes it."""
        return self._argument.type

    @property
    def default_value(self) -> Any:
        """What it is if it is not given."""
        return self._argument.default

    @property
    def kwarg_only(self) -> bool:
        """Whether it has to be given by name."""
        return self._argument.keyword_only

    @property
    def alias_info(self) -> AliasInfo | None:
        """What the op does to it, where results share its memory or it is written to."""
        return AliasInfo(self._written) if self._written or "(" in self._argument.type else None

    def __repr__(self) -> str:
        return f"{self.type} {self.name}"


class SchemaMatcher:
    """Which schemas an op's recorded inputs fit, and which of them may be written to."""

    @classmethod
    def inputs_are_mutable(cls, t: _ExtraFields_TorchOp) -> tuple[bool | None, ...]:
        """For each input whether the op may write to it; None where the schemas that fit do not agree."""
        return mutable(t.name, tuple([kind_of(value) for value in t.inputs]))

    @classmethod
    def match_schemas(cls, t: _ExtraFields_TorchOp) -> tuple[FunctionSchema, ...]:
        """The schemas of this name that the inputs fit."""
        found = matches(t.name, tuple([kind_of(value) for value in t.inputs]))
        return tuple(FunctionSchema(schema) for schema in found)

    @classmethod
    def _types_match(cls, observed: Any, schema_type: Any) -> bool:
        kind = "other" if _source is None else _source.argument_kind(str(schema_type))
        return _fits(kind_of(observed), kind, False)

    @staticmethod
    def lookup_schemas(name: str) -> tuple[FunctionSchema, ...] | None:
        """All schemas of an op; None for what cannot be one, as annotations."""
        return tuple(map(FunctionSchema, _schemas().get(name, ()))) if "::" in name else None


class SchemaSource(Protocol):
    """Who knows the schemas of ops. The engine has none of its own: a library that declares ops registers them with `use`."""

    def version(self) -> int:
        """A number that changes when schemas are added."""

    def schemas(self) -> dict[str, tuple[Schema, ...]]:
        """By qualified name, the schemas of all overloads."""

    def argument_kind(self, type_text: str) -> str:
        """What a type of a schema takes: Tensor, Tensor?, Tensor[], Tensor?[], ints or other."""


class Schema(Protocol):
    """A parsed signature of an op."""

    namespace: str
    name: str
    overload: str
    arguments: Sequence[Any]
    returns: Sequence[str]
    text: str


_source: SchemaSource | None = None
_known: tuple[int, dict[str, tuple[Schema, ...]]] = (-1, {})


def use(source: SchemaSource) -> None:
    """Look schemas up here from now on."""
    global _source, _known
    _source, _known = source, (-1, {})


def _schemas() -> dict[str, tuple[Schema, ...]]:
    """By name, the schemas of all overloads that have been declared; none without a source."""
    global _known
    if _source is not None and _known[0] != _source.version():
        _known = _source.version(), _source.schemas()
        _matches.cache_clear()
        _mutable.cache_clear()
    return _known[1]


def _written(schema: Any, place: int) -> bool:
    """Whether an op writes to an argument: as its schema says, or because it is where the result goes."""
    argument = schema.arguments[place]
    taken = argument.name == "out" or argument.name.startswith("result") or not schema.returns
    return argument.written or (taken and argument.keyword_only and schema.overload.endswith("out"))


def kind_of(observed: Any) -> str:
    """What an input looks like: T a tensor, L a list of tensors, S a number, - anything else (shapes, flags, None). As in torch, a tensor
    that has no memory, or of which that is not recorded, looks like nothing."""
    if isinstance(observed, _TensorMetadata):
        return "T" if observed._of.has_memory(observed._number) else "-"
    if isinstance(observed, list):
        return "L" if all(kind_of(item) == "T" for item in observed) else "-"
    return "S" if isinstance(observed, (bool, int, float, complex)) else "-"


def _fits(observed: str, kind: str, takes_numbers: bool) -> bool:
    """takes_numbers: of an op that torch has for numbers too, which here stand in a tensor's place."""
    if observed == "T":
        return kind in ("Tensor", "Tensor?")
    if observed == "L":
        return kind in ("Tensor[]", "Tensor?[]")
    # an empty list of tensors looks like any list
    if observed == "-":
        return kind not in ("Tensor", "Tensor[]")
    return kind in ("other", "ints") or (takes_numbers and kind == "Tensor")


def matches(name: str, kinds: tuple[str, ...]) -> tuple[Any, ...]:
    """The schemas of a name that inputs of these kinds fit."""
    _schemas()
    return _matches(name, kinds)


@functools.lru_cache(maxsize=1 << 12)
def _matches(name: str, kinds: tuple[str, ...]) -> tuple[Any, ...]:
    takes_numbers = name.rpartition("::")[2] in WITH_NUMBER
    return tuple(
        schema
        for schema in _known[1].get(name, ())
        if len(schema.arguments) == len(kinds)
        and all(_fits(k, a.kind, takes_numbers) for k, a in zip(kinds, schema.arguments))
    )


def mutable(name: str, kinds: tuple[str, ...]) -> tuple[bool | None, ...]:
    """For each input of these kinds whether the op may write to it; None where the schemas that fit do not agree."""
    _schemas()
    return _mutable(name, kinds)


@functools.lru_cache(maxsize=1 << 12)
def _mutable(name: str, kinds: tuple[str, ...]) -> tuple[bool | None, ...]:
    said = [{_written(schema, place) for schema in _matches(name, kinds)} for place in range(len(kinds))]
    return tuple(one.pop() if len(one) == 1 else None for one in said)
