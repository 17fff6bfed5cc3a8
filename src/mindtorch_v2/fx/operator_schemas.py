"""torch.fx.operator_schemas: a call's arguments in the form of the function's signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import mindtorch_v2 as torch
from mindtorch_v2.nn import Module

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
]


class ArgsKwargsPair(NamedTuple):
    """Positional and keyword arguments."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def get_signature_for_torch_op(op: Callable, return_schemas: bool = False) -> Any:
    """The signatures of an op of torch's, or None for another function."""
    signatures, schemas = _signatures_of(op)
    found = signatures or None
    return (found, schemas or None) if return_schemas else found


def _signatures_of(op: Any) -> tuple[list[inspect.Signature], list[Any]]:
    """One signature for each overload whose schema is known."""
    name = getattr(op, "__name__", "")
    overloads: list[Any] = []
    if isinstance(op, torch.ops.OpOverload):
        overloads = [op]
    elif getattr(torch, name, None) is op and hasattr(torch.ops.aten, name):
        packet = getattr(torch.ops.aten, name)
        overloads = [getattr(packet, overload) for overload in packet.overloads()]
    schemas = [overload._schema for overload in overloads]
    return [_signature_of_schema(schema) for schema in schemas], schemas


def _signature_of_schema(schema: Any) -> inspect.Signature:
    parameters = []
    for argument in schema.arguments:
        name = "input" if argument.name == "self" else argument.name
        kind = (
            inspect.Parameter.KEYWORD_ONLY if argument.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        )
        default = argument.default_value if argument.has_default_value() else inspect.Parameter.empty
        parameters.append(inspect.Parameter(name, kind, default=default))
    return inspect.Signature(sorted(parameters, key=lambda p: p.kind), return_annotation=Any)


def check_for_mutable_operation(target: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise if the call changes its arguments in place."""
    _, schemas = _signatures_of(target)
    name = getattr(target, "__name__", "")
    if any(getattr(schema, "is_mutable", False) for schema in schemas) and (
        name.endswith("_") or "out" in kwargs
    ):
        raise RuntimeError(
            f"Tried to trace mutable operation {schemas[0]}. FX only supports functional code, so operations that mutate operands in-place (e.g. via `out` arguments) are not supported"
        )


def normalize_function(
    target: Callable,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call of a function of torch's; None where no single signature fits."""
    kwargs = kwargs or {}
    signatures, _ = _signatures_of(target)
    if not signatures and inspect.isfunction(target):
        signatures = [inspect.signature(target)]
    fitting = []
    for signature in signatures:
        try:
            signature.bind(*args, **kwargs)
        except TypeError:
            continue
        fitting.append(signature)
    if not fitting:
        return None
    if len({tuple(signature.parameters) for signature in fitting}) > 1:
        return None
    return _normalized(fitting[0], args, kwargs, normalize_to_only_use_kwargs)


def normalize_module(
    root: Module,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call of a submodule of torch's."""
    module = root.get_submodule(target)
    if getattr(torch.nn, type(module).__name__, None) is not type(module):
        return None
    return _normalized(inspect.signature(module.forward), args, kwargs or {}, normalize_to_only_use_kwargs)


def _normalized(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], only_kwargs: bool
) -> ArgsKwargsPair:
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    if only_kwargs:
        return ArgsKwargsPair((), dict(bound.arguments))
    positional = tuple(bound.args[: len(args)])
    named = {n: v for i, (n, v) in enumerate(bound.arguments.items()) if i >= len(positional)}
    return ArgsKwargsPair(positional, named)
