"""torch.fx.immutable_collections: the lists and dicts inside a node's arguments, which cannot be changed in place."""

from __future__ import annotations

from typing import Any, NoReturn

from ..utils._pytree import register_pytree_node

__all__ = ["immutable_list", "immutable_dict"]

_help_mutation = (
    "If you are attempting to modify the kwargs or args of a torch.fx.Node object,\n"
    "instead create a new copy of it and assign the copy to the node:\n\n"
    "    new_args = ...  # copy and mutate args\n"
    "    node.args = new_args"
)


def _no_mutation(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(f"{type(self).__name__!r} object does not support mutation. {_help_mutation}")


class immutable_list(list):
    """A list that cannot be changed, but hashed, pickled and copied."""

    append = clear = extend = insert = pop = remove = reverse = sort = _no_mutation
    __delitem__ = __iadd__ = __imul__ = __setitem__ = _no_mutation

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (tuple(self),)


class immutable_dict(dict):
    """A dict that cannot be changed, but hashed, pickled and copied."""

    clear = pop = popitem = setdefault = update = _no_mutation  # type: ignore[assignment]
    __delitem__ = __ior__ = __setitem__ = _no_mutation  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (tuple(self.items()),)


register_pytree_node(
    immutable_list,
    lambda values: (list(values), None),
    lambda values, context: immutable_list(values),
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
)
register_pytree_node(
    immutable_dict,
    lambda mapping: (list(mapping.values()), list(mapping)),
    lambda values, keys: immutable_dict(zip(keys, values, strict=True)),
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
)
