"""Shapes of trees as text, constants in trees, and what counts as a node."""

from __future__ import annotations

import collections
import dataclasses
import enum
import importlib
import time
from typing import Any, NamedTuple


class Point(NamedTuple):
    """A named tuple."""

    a: Any
    b: Any


class Colour(enum.Enum):
    """An enumeration."""

    RED = 1


def _tree(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.utils._pytree")


def _trees(torch: Any) -> list[Any]:
    pair = torch.return_types.max((torch.ones(1), torch.ones(1)))
    return [
        1, None, [1, 2], (1,), {"a": 1, "b": [2, 3]}, collections.OrderedDict(x=1), collections.defaultdict(int, {"q": 1}), [], {},
        collections.deque([1, 2], maxlen=5), Point(1, (2,)), pair, {"k": {"z": (1, [2, None])}}, {Colour.RED: 1},
    ]  # fmt: skip


def specs_as_text(torch: Any, show: Any) -> None:
    tree = _tree(torch)
    for value in _trees(torch):
        spec = tree.tree_structure(value)
        show.raises(tree.treespec_dumps, spec)
        show.raises(lambda spec=spec: tree.treespec_loads(tree.treespec_dumps(spec)) == spec)
        show(tree.treespec_pprint(spec))
    show.raises(tree.treespec_dumps, 3)
    show.raises(tree.treespec_dumps, tree.tree_structure(1), 99)
    show.raises(tree.treespec_loads, "[7, {}]")
    tree._register_namedtuple(Point, serialized_type_name="pytree_cases.Point")
    spec = tree.tree_structure(Point(1, 2))
    show(tree.treespec_dumps(spec), tree.treespec_loads(tree.treespec_dumps(spec)) == spec)


def kinds_of_tuples(torch: Any, show: Any) -> None:
    tree = _tree(torch)
    pair = torch.return_types.max((torch.ones(1), torch.ones(1)))
    for name in ("is_namedtuple", "is_namedtuple_class", "is_namedtuple_instance"):
        show(name, [getattr(tree, name)(o) for o in (Point(1, 2), Point, (1,), tuple, time.gmtime(0), pair)])
    for name in ("is_structseq", "is_structseq_class", "is_structseq_instance"):
        show(
            name,
            [
                getattr(tree, name)(o)
                for o in (Point(1, 2), Point, (1,), time.gmtime(0), time.struct_time, pair)
            ],
        )


def nodes_of_ones_own(torch: Any, show: Any) -> None:
    tree = _tree(torch)

    class Constant:
        def __init__(self, x: int) -> None:
            self.x = x

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Constant) and self.x == other.x

        def __hash__(self) -> int:
            return self.x

    tree.register_constant(Constant)
    leaves, spec = tree.tree_flatten([Constant(1), 2])
    show(tree.is_constant_class(Constant), leaves, spec.num_leaves, tree.tree_unflatten([5], spec)[0].x)
    show(spec == tree.tree_structure([Constant(1), 3]), spec == tree.tree_structure([Constant(2), 3]))

    @dataclasses.dataclass
    class Data:
        a: int
        b: int = 2
        c: list = dataclasses.field(default_factory=list)

    tree.register_dataclass(Data)
    leaves, spec = tree.tree_flatten(Data(1, 2, [3]))
    show(leaves, spec, tree.tree_unflatten(leaves, spec).c)
    show([(tree.keystr(path), leaf) for path, leaf in tree.tree_leaves_with_path(Data(1, 2, [3]))])

    class Named:
        pass

    tree.register_pytree_node(
        Named,
        lambda n: ([1], None),
        lambda values, context: Named(),
        serialized_type_name="pytree_cases.Named",
    )
    spec = tree.tree_structure(Named())
    show(tree.treespec_dumps(spec), tree.treespec_loads(tree.treespec_dumps(spec)) == spec)
    show(tree.treespec_leaf(), tree.treespec_tuple([tree.treespec_leaf()] * 2))
