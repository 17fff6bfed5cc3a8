"""Schemas of ops: names and recorded inputs in; which schemas they fit, and which inputs the op may write to, out."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Protocol

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
    """The signature of an op, as torch shows it: its text and its arguments."""

    __slots__ = ("_schema",)

    def __init__(self, schema: Schema) -> None:
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
        return [SchemaArgument(a, _is_written(schema, a)) for a in schema.arguments]

    @property
    def is_mutable(self) -> bool:
        """Whether the op writes to any of its arguments."""
        return any(_is_written(self._schema, argument) for argument in self._schema.arguments)

    def __repr__(self) -> str:
        return self._schema.text


class SchemaArgument:
    """One argument of an op."""

    __slots__ = ("_argument", "_written")

    def __init__(self, argument: Argument, written: bool) -> None:
        self._argument = argument
        self._written = written

    @property
    def name(self) -> str:
        """Its name."""
        return self._argument.name

    @property
    def type(self) -> str:
        """Its type, as the schema writes it."""
        return self._argument.type

    @property
    def default_value(self) -> object:
        """Its value if it is not given."""
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
        schemas = matches(t.name, tuple([kind_of(value) for value in t.inputs]))
        return tuple(FunctionSchema(schema) for schema in schemas)

    @classmethod
    def _types_match(cls, observed: object, schema_type: object) -> bool:
        kind = "other" if _source is None else _source.argument_kind(str(schema_type))
        return _fits(kind_of(observed), kind, False)

    @staticmethod
    def lookup_schemas(name: str) -> tuple[FunctionSchema, ...] | None:
        """All schemas of an op; None for a name that no op can have, as annotations."""
        return tuple(map(FunctionSchema, _schemas().get(name, ()))) if "::" in name else None


class SchemaSource(Protocol):
    """A library that declares ops, and so knows their schemas. The engine has none of its own; a library registers itself."""

    def version(self) -> int:
        """A number that changes when schemas are added."""

    def schemas(self) -> dict[str, tuple[Schema, ...]]:
        """By qualified name, the schemas of all overloads."""

    def argument_kind(self, type_text: str) -> str:
        """What a type of a schema takes: Tensor, Tensor?, Tensor[], Tensor?[], ints or other."""


class Argument(Protocol):
    """One argument of a parsed signature."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def kind(self) -> str:
        """As `SchemaSource.argument_kind` says it."""

    @property
    def default(self) -> object: ...
    @property
    def keyword_only(self) -> bool: ...
    @property
    def written(self) -> bool:
        """Whether the op writes to it: Tensor(a!)."""


class Schema(Protocol):
    """A parsed signature of an op."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def overload(self) -> str: ...
    @property
    def arguments(self) -> Sequence[Argument]: ...
    @property
    def returns(self) -> Sequence[str]: ...
    @property
    def text(self) -> str: ...


_source: SchemaSource | None = None
_cached: tuple[int, dict[str, tuple[Schema, ...]]] = (-1, {})  # version of the source, and its schemas


def register(source: SchemaSource) -> None:
    """Look schemas up in a library from now on."""
    global _source, _cached
    _source, _cached = source, (-1, {})


def _schemas() -> dict[str, tuple[Schema, ...]]:
    """By name, the schemas of all overloads that have been declared; none without a source."""
    global _cached
    if _source is not None and _cached[0] != _source.version():
        _cached = _source.version(), _source.schemas()
        _matches.cache_clear()
        _mutable.cache_clear()
    return _cached[1]


def _is_written(schema: Schema, argument: Argument) -> bool:
    """Whether an op writes to an argument: as its schema says, or because the argument takes the result."""
    takes_result = argument.name == "out" or argument.name.startswith("result") or not schema.returns
    return argument.written or (takes_result and argument.keyword_only and schema.overload.endswith("out"))


def kind_of(observed: object) -> str:
    """What an input looks like: T a tensor, L a list of tensors, S a number, - anything else (shapes, flags, None). As in torch, a tensor
    whose memory is not recorded, or that has none, counts as anything else."""
    if isinstance(observed, _TensorMetadata):
        return "T" if observed._of.has_memory(observed._number) else "-"
    if isinstance(observed, list):
        return "L" if all(kind_of(item) == "T" for item in observed) else "-"
    return "S" if isinstance(observed, (bool, int, float, complex)) else "-"


def _fits(observed: str, kind: str, takes_numbers: bool) -> bool:
    """Whether an input of one kind can be an argument of another. takes_numbers: the op takes numbers in the place of tensors."""
    if observed == "T":
        return kind in ("Tensor", "Tensor?")
    if observed == "L":
        return kind in ("Tensor[]", "Tensor?[]")
    # an empty list of tensors looks like any list
    if observed == "-":
        return kind not in ("Tensor", "Tensor[]")
    return kind in ("other", "ints") or (takes_numbers and kind == "Tensor")


def matches(name: str, kinds: tuple[str, ...]) -> tuple[Schema, ...]:
    """The schemas of a name that inputs of these kinds fit."""
    _schemas()
    return _matches(name, kinds)


@functools.lru_cache(maxsize=1 << 12)
def _matches(name: str, kinds: tuple[str, ...]) -> tuple[Schema, ...]:
    takes_numbers = name.rpartition("::")[2] in WITH_NUMBER
    return tuple(
        schema
        for schema in _cached[1].get(name, ())
        if len(schema.arguments) == len(kinds)
        and all(_fits(k, a.kind, takes_numbers) for k, a in zip(kinds, schema.arguments))
    )


def mutable(name: str, kinds: tuple[str, ...]) -> tuple[bool | None, ...]:
    """For each input of these kinds whether the op may write to it; None where the schemas that fit do not agree."""
    _schemas()
    return _mutable(name, kinds)


@functools.lru_cache(maxsize=1 << 12)
def _mutable(name: str, kinds: tuple[str, ...]) -> tuple[bool | None, ...]:
    answers: list[set[bool]] = [set() for _ in kinds]  # by input, one answer per schema
    for schema in _matches(name, kinds):
        for answer, argument in zip(answers, schema.arguments):
            answer.add(_is_written(schema, argument))
    return tuple(answer.pop() if len(answer) == 1 else None for answer in answers)
