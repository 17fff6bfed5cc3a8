"""Trees of Python containers: flattens a nested structure into its leaves and its spec, and rebuilds it.

A container is a node if its type is registered; everything else, None included, is a leaf.
"""

from __future__ import annotations

import dataclasses
import types
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from .. import return_types
from .._size import Size
from ._pytree_text import (
    DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL,
    EnumEncoder,
    Star,
    Written,
    check_protocol,
    from_plain,
    to_plain,
)

__all__ = [
    "PyTree",
    "Context",
    "FlattenFunc",
    "UnflattenFunc",
    "DumpableContext",
    "ToDumpableContextFn",
    "FromDumpableContextFn",
    "PyTreeSpec",
    "TreeSpec",
    "LeafSpec",
    "keystr",
    "key_get",
    "register_pytree_node",
    "tree_is_leaf",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_unflatten",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_structure",
    "tree_map",
    "tree_map_with_path",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_all",
    "tree_any",
    "tree_all_only",
    "tree_any_only",
    "treespec_dumps",
    "treespec_loads",
    "treespec_pprint",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
]

PyTree = Any
Context = Any
DumpableContext = Any
FlattenFunc = Callable[[Any], tuple[list[Any], Any]]
UnflattenFunc = Callable[[Iterable[Any], Any], Any]
ToDumpableContextFn = Callable[[Any], Any]
FromDumpableContextFn = Callable[[Any], Any]
FlattenFn = FlattenFunc
UnflattenFn = UnflattenFunc
FlattenWithKeysFn = FlattenWithKeysFunc = Callable[[Any], tuple[list[tuple[Any, Any]], Any]]
_IsLeaf = Callable[[Any], bool] | None


# -------------------------------------------------------------------------------------------- steps of a path


class KeyEntry(Protocol):
    """One step of a path, from a container to one of its children."""

    def __hash__(self) -> int: ...

    def __eq__(self, other: object) -> bool: ...

    def __str__(self) -> str: ...

    def get(self, parent: Any) -> Any:
        """The child."""


@dataclasses.dataclass(frozen=True, slots=True)
class SequenceKey:
    """The step `[idx]`."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Sequence[Any]) -> Any:
        """The item at the index."""
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True, slots=True)
class MappingKey:
    """The step `[key]`."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Mapping[Any, Any]) -> Any:
        """The value of the key."""
        return mapping[self.key]


@dataclasses.dataclass(frozen=True, slots=True)
class GetAttrKey:
    """The step `.name`."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """The attribute."""
        return getattr(obj, self.name)


KeyPath = tuple[KeyEntry, ...]


def keystr(kp: KeyPath) -> str:
    """A path as text: `['a'][0].x`."""
    return "".join(str(step) for step in kp)


def key_get(obj: Any, kp: KeyPath) -> Any:
    """The value at a path."""
    for step in kp:
        obj = step.get(obj)
    return obj


# ------------------------------------------------------------------------------------------------- node types


class NodeDef(NamedTuple):
    """How containers of one type are flattened and rebuilt."""

    type: Any
    flatten_fn: FlattenFunc
    unflatten_fn: UnflattenFunc
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[KeyEntry, Any]], Any]] | None


_NAMEDTUPLE: Any = namedtuple  # noqa: PYI024  (the function stands for all named tuples, as in torch)

SUPPORTED_NODES: dict[Any, NodeDef] = {}
_written: dict[Any, Written] = {}  # how specs of these types are serialised
_named_tuples: dict[type, str] = {}  # classes of named tuples with a serialised name


def register_pytree_node(
    cls: type[Any],
    flatten_fn: FlattenFunc,
    unflatten_fn: UnflattenFunc,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: ToDumpableContextFn | None = None,
    from_dumpable_context: FromDumpableContextFn | None = None,
    flatten_with_keys_fn: Any = None,
) -> None:
    """Register a node type: `flatten_fn(obj) -> children, context` flattens it, `unflatten_fn` rebuilds it."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered."
        )
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    _written[cls] = Written(serialized_type_name, to_dumpable_context, from_dumpable_context)


def _deregister_pytree_node(cls: type[Any]) -> None:
    """Make a type a leaf again."""
    del SUPPORTED_NODES[cls], _written[cls]


def _register_namedtuple(cls: type[Any], *, serialized_type_name: str) -> None:
    """The serialised name of a class of named tuples."""
    _named_tuples[cls] = serialized_type_name


def _register_pytree_node(
    cls: type[Any], flatten_fn: FlattenFunc, unflatten_fn: UnflattenFunc, **_: Any
) -> None:
    """Deprecated name of `register_pytree_node`."""
    warnings.warn(
        "`torch.utils._pytree._register_pytree_node` is deprecated. Please use "
        "`torch.utils._pytree.register_pytree_node` instead.",
        FutureWarning,
        stacklevel=2,
    )
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, None)


def register_dataclass(
    cls: type[Any],
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Register a dataclass as a node whose children are its fields."""
    dropped = set(drop_field_names or ())
    if field_names is None:
        field_names = [field.name for field in dataclasses.fields(cls) if field.init]
    names = [name for name in field_names if name not in dropped]

    def flatten(obj: Any) -> tuple[list[Any], Any]:
        present = [name for name in names if getattr(obj, name) is not None]
        return [getattr(obj, name) for name in present], [present, [n for n in names if n not in present]]

    def flatten_with_keys(obj: Any) -> Any:
        values, context = flatten(obj)
        return [(GetAttrKey(name), value) for name, value in zip(context[0], values)], context

    def unflatten(values: Iterable[Any], context: Any) -> Any:
        return cls(**dict(zip(context[0], values)), **dict.fromkeys(context[1]))

    register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=flatten_with_keys,
    )


@dataclasses.dataclass(frozen=True)
class ConstantNode:
    """A value that is part of a tree's spec."""

    value: Any


CONSTANT_NODES: set[type] = set()


def register_constant(cls: type[Any]) -> None:
    """Register a type whose values are part of the spec, not leaves. They are compared when specs are."""
    if cls.__eq__ is object.__eq__:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__eq__` implementation.")
    if cls.__hash__ is None:
        raise TypeError(
            "register_constant(cls) expects `cls` to have a non-default `__hash__` implementation."
        )
    register_pytree_node(
        cls,
        lambda value: ([], ConstantNode(value)),
        lambda _, context: context.value,
        flatten_with_keys_fn=lambda value: ([], ConstantNode(value)),
    )
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: type[Any]) -> bool:
    """Whether values of a class are part of the spec."""
    return isinstance(cls, type) and cls in CONSTANT_NODES


def is_structseq(obj: object) -> bool:
    """Whether this is a struct sequence as created by C code (such as `torch.return_types.max`), or a class
    of them.
    """
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: type) -> bool:
    """Whether this is a class of struct sequences."""
    if not isinstance(cls, type) or not issubclass(cls, tuple):
        return False
    counts = ("n_fields", "n_sequence_fields", "n_unnamed_fields")
    return cls in return_types._CLASSES.values() or all(
        isinstance(getattr(cls, n, None), int) for n in counts
    )


def is_structseq_instance(obj: object) -> bool:
    """Whether this is a struct sequence."""
    return is_structseq_class(type(obj))


def is_namedtuple(obj: object) -> bool:
    """Whether this is a named tuple or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_class(cls: type) -> bool:
    """Whether this is a class of named tuples."""
    if not isinstance(cls, type) or not issubclass(cls, tuple) or cls in return_types._CLASSES.values():
        return False
    return isinstance(getattr(cls, "_fields", None), tuple)


def is_namedtuple_instance(obj: object) -> bool:
    """Whether this is a named tuple."""
    return is_namedtuple_class(type(obj))


def _by_index(values: Sequence[Any]) -> list[tuple[KeyEntry, Any]]:
    return [(SequenceKey(i), value) for i, value in enumerate(values)]


def _by_key(keys: Iterable[Any], values: Iterable[Any]) -> list[tuple[KeyEntry, Any]]:
    return [(MappingKey(key), value) for key, value in zip(keys, values)]


def _standard_name(cls: type) -> str | None:
    return f"{cls.__module__}.{cls.__qualname__}" if cls.__module__ in ("builtins", "collections") else None


def _dump_factory(context: Any) -> dict[str, Any]:
    factory, keys = context
    module = getattr(factory, "__module__", None)
    name = getattr(factory, "__qualname__", None)
    return {"default_factory_module": module, "default_factory_name": name, "dict_context": keys}


def _load_factory(dumped: dict[str, Any]) -> Any:
    import importlib

    module, name = dumped["default_factory_module"], dumped["default_factory_name"]
    factory = None if module is None or name is None else getattr(importlib.import_module(module), name)
    return [factory, dumped["dict_context"]]


def _dump_named(cls: Any) -> str:
    if cls not in _named_tuples:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {cls} because we didn't register a serializated_type_name. Please register "
            "using `_register_namedtuple`."
        )
    return _named_tuples[cls]


def _load_named(name: str) -> type:
    for cls, written in _named_tuples.items():
        if written == name:
            return cls
    raise NotImplementedError(
        f"Can't deserialize TreeSpec of namedtuple class {name} because we couldn't find a serializated name."
    )


def _sequence_node(cls: type[Any], context_of: Callable[[Any], Any], make: UnflattenFunc) -> None:
    register_pytree_node(
        cls,
        lambda node: (list(node), context_of(node)),
        make,
        serialized_type_name=_standard_name(cls),
        flatten_with_keys_fn=lambda node: (_by_index(list(node)), context_of(node)),
    )


def _mapping_node(
    cls: type[Any], context_of: Callable[[Any], Any], make: UnflattenFunc, **dumping: Any
) -> None:
    register_pytree_node(
        cls,
        lambda node: (list(node.values()), context_of(node)),
        make,
        serialized_type_name=_standard_name(cls),
        **dumping,
        flatten_with_keys_fn=lambda node: (_by_key(node, node.values()), context_of(node)),
    )


_sequence_node(tuple, lambda node: None, lambda values, _: tuple(values))
_sequence_node(list, lambda node: None, lambda values, _: list(values))
_sequence_node(deque, lambda node: node.maxlen, lambda values, maxlen: deque(values, maxlen=maxlen))
_sequence_node(Size, lambda node: None, lambda values, _: Size(values))
_mapping_node(dict, list, lambda values, keys: dict(zip(keys, values)))
_mapping_node(OrderedDict, list, lambda values, keys: OrderedDict(zip(keys, values)))
_mapping_node(
    defaultdict,
    lambda node: [node.default_factory, list(node)],
    lambda values, context: defaultdict(context[0], zip(context[1], values)),
    to_dumpable_context=_dump_factory,
    from_dumpable_context=_load_factory,
)
register_pytree_node(
    _NAMEDTUPLE,  # the context is the class
    lambda node: (list(node), type(node)),
    lambda values, cls: cls(*values),
    serialized_type_name="collections.namedtuple",
    to_dumpable_context=_dump_named,
    from_dumpable_context=_load_named,
    flatten_with_keys_fn=lambda node: (
        [(GetAttrKey(name), value) for name, value in zip(type(node)._fields, node)],
        type(node),
    ),
)
for _named in return_types._CLASSES.values():
    _sequence_node(_named, lambda node: None, lambda values, _, cls=_named: cls(values))  # type: ignore[misc]
STANDARD_DICT_TYPES = frozenset({dict, OrderedDict, defaultdict})
BUILTIN_TYPES = frozenset({tuple, list, dict, _NAMEDTUPLE, OrderedDict, defaultdict, deque})


def _get_node_type(tree: Any) -> Any:
    kind = type(tree)
    return _NAMEDTUPLE if kind not in SUPPORTED_NODES and is_namedtuple_class(kind) else kind


def _node_of(tree: Any, is_leaf: _IsLeaf) -> NodeDef | None:
    """How to flatten this value; None for a leaf."""
    if is_leaf is not None and is_leaf(tree):
        return None
    return SUPPORTED_NODES.get(_get_node_type(tree))


# ------------------------------------------------------------------------------------------------- tree specs


class TreeSpec:
    """The structure of a tree: its root's type, the type's context, and the specs of the children."""

    __slots__ = ("type", "_context", "_children", "num_nodes", "num_leaves", "num_children")
    num_nodes: int
    num_leaves: int

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:
        self.type = type
        self._context = context
        self._children = children_specs
        self.num_children = len(children_specs)
        self.num_nodes = 1 + sum(child.num_nodes for child in children_specs)
        self.num_leaves = 1 if type is None else sum(child.num_leaves for child in children_specs)

    @property
    def context(self) -> Any:
        """What the type needs besides its children: keys, a class, a length."""
        return self._context

    @property
    def children_specs(self) -> list[TreeSpec]:
        """The specs of the children."""
        return self._children

    def is_leaf(self) -> bool:
        """Whether this is the spec of a leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The specs of the children, as a new list."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """The spec of one child."""
        return self._children[index]

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The parts of `tree` at the leaves of this spec."""
        leaves: list[Any] = []
        self._collect(tree, leaves)
        return leaves

    def _collect(self, tree: Any, leaves: list[Any]) -> None:
        if self.type is None:
            leaves.append(tree)
            return
        for child, part in zip(self._children, self._parts(tree)):
            child._collect(part, leaves)

    def _parts(self, tree: Any) -> Iterable[Any]:
        kind = _get_node_type(tree)
        both_dicts = self.type in STANDARD_DICT_TYPES and kind in STANDARD_DICT_TYPES
        if kind != self.type and not both_dicts:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {kind!r}.")
        if len(tree) != self.num_children if kind in BUILTIN_TYPES else False:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(tree)}.")
        if both_dicts:
            keys = self._context[1] if self.type is defaultdict else self._context
            if set(keys) != set(tree):
                missing, extra = set(keys) - set(tree), set(tree) - set(keys)
                text = (f"; missing key(s): {missing}" if missing else "") + (
                    f"; extra key(s): {extra}" if extra else ""
                )
                raise ValueError(f"Node keys mismatch{text}.")
            return [tree[key] for key in keys]
        parts, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if len(parts) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(parts)}.")
        if self.type is not deque and context != self._context:
            raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
        return parts

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree with this spec and the given leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a "
                "pytree "
                f"that holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator[Any]) -> Any:
        if self.type is None:
            return next(leaves)
        return SUPPORTED_NODES[self.type].unflatten_fn(
            [child._build(leaves) for child in self._children], self._context
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (
            self.type is other.type
            and self.num_children == other.num_children
            and self._context == other._context
            and self._children == other._children
        )

    def __hash__(self) -> int:
        return hash((self.type, repr(self._context), tuple(self._children)))

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        inner = f",\n{' ' * (indent + 2)}".join(child.__repr__(indent + 2) for child in self._children)
        return f"TreeSpec({self.type.__name__}, {self._context}, [{inner}])"


PyTreeSpec = TreeSpec


class LeafSpec(TreeSpec):
    """The spec of a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])


_LEAF = _LEAF_SPEC = LeafSpec()


def treespec_leaf() -> LeafSpec:
    """The spec of a leaf."""
    return _LEAF_SPEC


def _check_spec(treespec: Any) -> None:
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}."
        )


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A spec as JSON."""
    import json

    _check_spec(treespec)
    protocol = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL if protocol is None else protocol
    check_protocol(protocol)
    return json.dumps((protocol, to_plain(treespec, _written)), cls=EnumEncoder)


def treespec_loads(serialized: str) -> TreeSpec:
    """A spec from JSON."""
    import json

    protocol, plain = json.loads(serialized)
    check_protocol(protocol)
    return from_plain(plain, _written, TreeSpec, _LEAF_SPEC)


def treespec_pprint(treespec: TreeSpec) -> str:
    """A tree with this spec, with stars for leaves."""
    import pprint

    _check_spec(treespec)
    return pprint.pformat(tree_unflatten([Star()] * treespec.num_leaves, treespec))


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The spec of a tuple of trees."""
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """The spec of a dict of trees."""
    children = dict(mapping, **kwargs)
    return TreeSpec(dict, list(children), list(children.values()))


# -------------------------------------------------------------------------------------- flatten and unflatten


def tree_is_leaf(tree: Any, is_leaf: _IsLeaf = None) -> bool:
    """Whether `tree` is a leaf."""
    return _node_of(tree, is_leaf) is None


def _flatten(tree: Any, leaves: list[Any], is_leaf: _IsLeaf) -> TreeSpec:
    node = _node_of(tree, is_leaf)
    if node is None:
        leaves.append(tree)
        return _LEAF
    parts, context = node.flatten_fn(tree)
    return TreeSpec(node.type, context, [_flatten(part, leaves, is_leaf) for part in parts])


def tree_flatten(tree: Any, is_leaf: _IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a tree and its spec."""
    leaves: list[Any] = []
    spec = _flatten(tree, leaves, is_leaf)
    return leaves, spec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree with the given spec and leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_iter(tree: Any, is_leaf: _IsLeaf = None) -> Iterable[Any]:
    """The leaves, one after another."""
    node = _node_of(tree, is_leaf)
    if node is None:
        yield tree
    else:
        for part in node.flatten_fn(tree)[0]:
            yield from tree_iter(part, is_leaf)


def tree_leaves(tree: Any, is_leaf: _IsLeaf = None) -> list[Any]:
    """The leaves as a list."""
    return list(tree_iter(tree, is_leaf))


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """The leaves of all arguments."""
    return [leaf for arg in (*args, *kwargs.values()) for leaf in tree_iter(arg)]


def tree_structure(tree: Any, is_leaf: _IsLeaf = None) -> TreeSpec:
    """The spec of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def _with_path(tree: Any, is_leaf: _IsLeaf, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    node = _node_of(tree, is_leaf)
    if node is None:
        yield path, tree
        return
    if node.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {node.type}. Please pass a flatten_with_keys_fn "
            "argument to register_pytree_node."
        )
    for step, part in node.flatten_with_keys_fn(tree)[0]:
        yield from _with_path(part, is_leaf, (*path, step))


def tree_leaves_with_path(tree: Any, is_leaf: _IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """The leaves with the paths to them."""
    return list(_with_path(tree, is_leaf, ()))


def tree_flatten_with_path(tree: Any, is_leaf: _IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The leaves with the paths to them, and the spec."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


# -------------------------------------------------------------------------------------------------------- map


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: _IsLeaf = None) -> Any:
    """A tree with the same spec whose leaves are `func(leaf, *leaves of the rests)`."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)))


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: _IsLeaf = None) -> Any:
    """Call `func` for each leaf and return the tree itself."""
    leaves, spec = tree_flatten(tree, is_leaf)
    deque(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)), maxlen=0)
    return tree


def tree_map_with_path(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: _IsLeaf = None) -> Any:
    """Like `tree_map`; `func` gets the path first."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    paths, leaves = ([path for path, _ in found], [leaf for _, leaf in found])
    return spec.unflatten(map(func, paths, leaves, *(spec.flatten_up_to(rest) for rest in rests)))


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Decorator: apply a function to values of a type, or that a predicate accepts; leave the others."""
    if isinstance(type_or_types_or_pred, (type, tuple, types.UnionType)):

        def accepts(value: Any) -> bool:
            return isinstance(value, type_or_types_or_pred)
    elif callable(type_or_types_or_pred):
        accepts = type_or_types_or_pred
    else:
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")

    def decorate(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda value: func(value) if accepts(value) else value

    return decorate


def tree_map_only(
    type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: _IsLeaf = None
) -> Any:
    """`tree_map` for the leaves of some types; the others are unchanged."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: _IsLeaf = None
) -> Any:
    """`tree_map_` for the leaves of some types."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: _IsLeaf = None) -> bool:
    """Whether `pred` holds for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: _IsLeaf = None) -> bool:
    """Whether `pred` holds for some leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(
    type_or_types: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: _IsLeaf = None
) -> bool:
    """Whether `pred` holds for all leaves of some types."""
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(
    type_or_types: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: _IsLeaf = None
) -> bool:
    """Whether `pred` holds for some leaf of some types."""
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def _broadcast_to_and_flatten(tree: Any, treespec: TreeSpec, is_leaf: _IsLeaf = None) -> list[Any] | None:
    """The leaves of `tree`, each repeated for every leaf of the spec below it; None if they disagree."""
    node = _node_of(tree, is_leaf)
    if node is None:
        return [tree] * treespec.num_leaves
    if treespec.type is None:
        return None
    parts, context = node.flatten_fn(tree)
    if (node.type, len(parts), context) != (treespec.type, treespec.num_children, treespec.context):
        return None
    leaves: list[Any] = []
    for part, child in zip(parts, treespec.children()):
        flat = _broadcast_to_and_flatten(part, child, is_leaf)
        if flat is None:
            return None
        leaves += flat
    return leaves


# torch's names of the functions that flatten and rebuild the containers of Python
_tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys = SUPPORTED_NODES[tuple][1:]
_list_flatten, _list_unflatten, _list_flatten_with_keys = SUPPORTED_NODES[list][1:]
_dict_flatten, _dict_unflatten, _dict_flatten_with_keys = SUPPORTED_NODES[dict][1:]
_deque_flatten, _deque_unflatten, _deque_flatten_with_keys = SUPPORTED_NODES[deque][1:]
_defaultdict_flatten, _defaultdict_unflatten, _defaultdict_flatten_with_keys = SUPPORTED_NODES[defaultdict][
    1:
]
_ordereddict_flatten, _ordereddict_unflatten, _ordereddict_flatten_with_keys = SUPPORTED_NODES[OrderedDict][
    1:
]
_odict_flatten, _odict_unflatten = _ordereddict_flatten, _ordereddict_unflatten
_namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys = SUPPORTED_NODES[_NAMEDTUPLE][1:]
