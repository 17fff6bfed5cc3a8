"""torch.fx._pytree: flatten arguments along a known structure, as generated code does with `concrete_args`."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

from ..utils._pytree import LeafSpec, PyTree, TreeSpec

FlattenFuncSpec = Callable[[Any, TreeSpec], list[Any]]
FlattenFuncExactMatchSpec = Callable[[Any, TreeSpec], bool]

SUPPORTED_NODES: dict[type, FlattenFuncSpec] = {}
SUPPORTED_NODES_EXACT_MATCH: dict[type, FlattenFuncExactMatchSpec | None] = {}


def register_pytree_flatten_spec(
    cls: type,
    flatten_fn_spec: FlattenFuncSpec,
    flatten_fn_exact_match_spec: FlattenFuncExactMatchSpec | None = None,
) -> None:
    """Register how instances of a class are flattened along a structure."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def _deregister_pytree_flatten_spec(cls: type) -> None:
    SUPPORTED_NODES.pop(cls, None)
    SUPPORTED_NODES_EXACT_MATCH.pop(cls, None)


def tree_flatten_spec(pytree: PyTree, spec: TreeSpec) -> list[Any]:
    """The leaves of a tree that has this structure."""
    if isinstance(spec, LeafSpec):
        return [pytree]
    flatten = SUPPORTED_NODES.get(spec.type)
    if flatten is None:
        raise RuntimeError(
            f"{type(pytree)} does not have a flatten_fn_spec associated with it. Please register one with "
            "torch.fx._pytree.register_pytree_flatten_spec.  If you have serialized your model, make sure that any custom pytrees "
            "have been registered before loading it."
        )
    exact = SUPPORTED_NODES_EXACT_MATCH.get(spec.type)
    if exact is not None and not exact(pytree, spec):
        raise RuntimeError(f"Cannot flatten pytree {pytree}, given spec: {spec}")
    children = flatten(pytree, spec)
    return [
        leaf
        for child, child_spec in zip(children, spec.children())
        for leaf in tree_flatten_spec(child, child_spec)
    ]


def _dict_flatten_spec(d: dict[Any, Any], spec: TreeSpec) -> list[Any]:
    return [d[key] for key in spec.context]


def _sequence_flatten_spec(values: Any, spec: TreeSpec) -> list[Any]:
    return [values[index] for index in range(spec.num_children)]


def _same_length(values: Any, spec: TreeSpec) -> bool:
    return len(values) == spec.num_children


register_pytree_flatten_spec(dict, _dict_flatten_spec, _same_length)
register_pytree_flatten_spec(OrderedDict, _dict_flatten_spec, _same_length)
register_pytree_flatten_spec(list, _sequence_flatten_spec, _same_length)
register_pytree_flatten_spec(tuple, _sequence_flatten_spec, _same_length)
register_pytree_flatten_spec(
    namedtuple,  # type: ignore[arg-type]  # noqa: PYI024  (the key of namedtuples in torch's table)
    _sequence_flatten_spec,
    _same_length,
)
