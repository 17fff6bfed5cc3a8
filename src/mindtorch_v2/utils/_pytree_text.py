"""Tree specs as text: to JSON and back, and as a tree with a star for each leaf."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1


class Written(NamedTuple):
    """How specs of one node type are serialised."""

    name: str | None
    to_dumpable: Callable[[Any], Any] | None = None
    from_dumpable: Callable[[Any], Any] | None = None


class EnumEncoder(json.JSONEncoder):
    """JSON with enumerations, by their module, class and name."""

    def default(self, o: Any) -> Any:
        """The serialised form of an object."""
        if isinstance(o, Enum):
            return {"__enum__": True, "fqn": f"{type(o).__module__}:{type(o).__qualname__}", "name": o.name}
        return super().default(o)


def enum_object_hook(obj: dict[str, Any]) -> Any:
    """The member of an enumeration, from its serialised form."""
    if "__enum__" not in obj:
        return obj
    module, _, path = obj["fqn"].partition(":")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found[obj["name"]]


class Star:
    """Represents a leaf."""

    def __repr__(self) -> str:
        return "*"


def to_plain(treespec: Any, serializers: dict[Any, Written]) -> dict[str, Any]:
    """A spec as JSON's own types."""
    if treespec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    serializer = serializers.get(treespec.type, Written(None))
    if serializer.name is None:
        raise NotImplementedError(
            f"No registered serialization name for {treespec.type} found. Please update your _register_pytree_node call with a "
            "`serialized_type_name` kwarg."
        )
    if serializer.to_dumpable is not None:
        context = serializer.to_dumpable(treespec._context)
    else:
        try:
            context = json.dumps(treespec._context, cls=EnumEncoder)
        except TypeError as error:
            raise TypeError(
                "Unable to serialize context. Please make the context json dump-able, or register a custom serializer using "
                "_register_pytree_node."
            ) from error
    children = [to_plain(child, serializers) for child in treespec.children()]
    return {"type": serializer.name, "context": context, "children_spec": children}


def from_plain(
    plain: dict[str, Any], serializers: dict[Any, Written], make: Callable[..., Any], leaf: Any
) -> Any:
    """The spec from JSON's own types."""
    if plain["type"] is None:
        return leaf
    node_type = next(
        (node_type for node_type, serializer in serializers.items() if serializer.name == plain["type"]), None
    )
    if node_type is None:
        raise NotImplementedError(
            f"Deserialization of {plain['type']} in pytree is not registered. This could be because (i) the pytree node that you are trying "
            "to deserialize is not registered, or (ii) the serialized type name is different."
        )
    serializer = serializers[node_type]
    if serializer.from_dumpable is not None:
        try:
            context = serializer.from_dumpable(plain["context"])
        except TypeError as error:
            raise TypeError("Unable to deserialize context.") from error
    else:
        context = json.loads(plain["context"], object_hook=enum_object_hook)
    return make(
        node_type, context, [from_plain(child, serializers, make, leaf) for child in plain["children_spec"]]
    )


def check_protocol(protocol: int) -> None:
    """Raise for an unknown protocol number."""
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError(
            f"Unknown protocol {protocol}. Available protocols: {[DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL]}"
        )
