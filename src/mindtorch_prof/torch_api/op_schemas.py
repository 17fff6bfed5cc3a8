"""Which schemas an op's recorded inputs fit, and what may be written to: names and inputs in, torch's `SchemaMatcher` and schemas out."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from ..inputs import WITH_NUMBER
from .event_tree_fields import _ExtraFields_TorchOp, _TensorMetadata


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
        from mindtorch_v2._schema import _kind as kind_of_type

        return _fits(kind_of(observed), kind_of_type(str(schema_type)), False)

    @staticmethod
    def lookup_schemas(name: str) -> tuple[FunctionSchema, ...] | None:
        """All schemas of an op; None for what cannot be one, as annotations."""
        return tuple(map(FunctionSchema, _schemas().get(name, ()))) if "::" in name else None


# Names of torch's overloads that have no capital letter, but for those that end in "out". An overload with another such name is this
# library's own: a form in which a kernel is shown.
_TORCHS = frozenset((
    "a any array atol_rtol_float atol_rtol_tensor b beta bin_ct bins_tensor bool bool_bool bool_float "
    "bool_int bool_list ccol_row_value ccol_row_value_size center comp_plain_value comp_plain_value_size "
    "complex complex_complex complex_float complex_int correction crow_col_value crow_col_value_size data "
    "data_legacy decimals default_bool default_complex default_float default_int default_str deprecated "
    "device dim dim_dtype dim_int dim_max dim_min dim_values dims dtype dx eigenvalues eigvals enum "
    "float_bool float_complex float_float float_int float_list from fullcoverage generator generic "
    "grad_input hacked_twin indexing indices indices_size input input_legacy int int_bins int_bool "
    "int_complex int_float int_int int_list int_to_int intlist inverse left_t list list_bool list_float "
    "list_int list_str low low_dtype low_generator low_generator_dtype m memory_format msg n_scalar "
    "no_stats ntonly ord_str other other_scalar out_ out_mode out_rcond_tensor out_tol_tensor output "
    "output_mask p p_str padding padding_idx periodic periodic_alpha periodic_alpha_beta prim_dtype "
    "prim_other quantized rcond_tensor reduce result right_ scalar scalararray scalarint scalarrayarray "
    "scalarrayint scale_list sections self self_int self_scalar sign size size_list size_list_scale_list "
    "sizes sparse_dim src stable start start_step step str str_list str_ord sublist t tensor "
    "tensor_indices_or_sections tensor_lr tensor_qparams tensorarray tensorarrayint tensors to tol_tensor "
    "two using_ints value value_reduce values values_stable vec with_index x x_scalar"
).split())  # fmt: skip
_known: tuple[int, dict[str, tuple[Any, ...]]] = (-1, {})


def _schemas() -> dict[str, tuple[Any, ...]]:
    """By name, the schemas of all overloads that have been declared; overloads that write into `out` come when they are first used."""
    global _known
    from mindtorch_v2 import _dispatch

    if _known[0] != len(_dispatch.OPS):
        ops = list(_dispatch.OPS.values())
        found: dict[str, dict[str, Any]] = {}
        for op in ops:
            if "::" in op.qualified_name and not _is_own(op.overload or ""):
                found.setdefault(op.qualified_name, {})[op.schema.text] = op.schema
        _matches.cache_clear()
        _mutable.cache_clear()
        _known = len(ops), {name: tuple(schemas.values()) for name, schemas in found.items()}
    return _known[1]


def _is_own(overload: str) -> bool:
    return bool(overload) and overload.islower() and not overload.endswith("out") and overload not in _TORCHS


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
