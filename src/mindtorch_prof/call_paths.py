"""Paths of Python calls: Frames in; for each call the names from it to the outermost caller out. Equal paths get one number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

import numpy as np

from .arrays import IntArray
from .trace import Frames
from .tree import depths_below

STACK_DEPTH = 5  # innermost frames by which calls are told apart where nobody asks for another number


class Paths(Sequence[tuple[str, ...]]):
    """Stacks as paths of calls, innermost first; each is built when it is accessed."""

    def __init__(self, names: tuple[str, ...], name: IntArray, above: IntArray) -> None:
        self._names, self._name, self._above = names, name.tolist(), above.tolist()

    def __len__(self) -> int:
        return len(self._name)

    @overload
    def __getitem__(self, index: int) -> tuple[str, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[str, ...]]: ...
    def __getitem__(self, index: int | slice) -> tuple[str, ...] | list[tuple[str, ...]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self.first(range(len(self))[index])

    def first(self, index: int, count: int = -1) -> tuple[str, ...]:
        """The innermost `count` calls of a path; all of them if that is negative."""
        path = index
        calls: list[str] = []
        while path >= 0 and len(calls) != count:
            calls.append(self._names[self._name[path]])
            path = self._above[path]
        return tuple(calls)

    def contain(self, wanted: Callable[[str], bool]) -> list[bool]:
        """By path, whether one of its calls is wanted; each name is looked at once, and no path is built."""
        by_name = [wanted(name) for name in self._names]
        contain: list[bool] = []
        for name, above in zip(self._name, self._above):  # callers come first
            contain.append(by_name[name] or (above >= 0 and contain[above]))
        return contain

    def below(self, index: int, outer: int) -> tuple[list[str], bool]:
        """The calls of a path inside of another path, innermost first, and whether it is inside of that at all; if not, all its calls."""
        calls: list[str] = []
        while index >= 0 and index != outer:
            calls.append(self._names[self._name[index]])
            index = self._above[index]
        return calls, index >= 0


def innermost_frames(stacks: Sequence[tuple[str, ...]], index: int, count: int) -> tuple[str, ...]:
    """The innermost frames of a stack; of `Paths` without building the whole stack."""
    return stacks.first(index, count) if isinstance(stacks, Paths) else tuple(stacks[index][:count])


def stacks_with(stacks: Sequence[tuple[str, ...]], wanted: Callable[[str], bool]) -> list[bool]:
    """By stack, whether one of its frames is wanted."""
    return (
        stacks.contain(wanted) if isinstance(stacks, Paths) else [any(map(wanted, each)) for each in stacks]
    )


_DEEP = 1_000  # calls: in deeper stacks a loop over levels costs more than a loop over calls


def paths(frames: Frames) -> tuple[IntArray, Paths]:
    """For each call the number of its path (the names from it to the outermost caller), and the paths."""
    return call_paths(frames.names, frames.name, frames.parent)


def call_paths(texts: tuple[str, ...], name: IntArray, parent: IntArray) -> tuple[IntArray, Paths]:
    """The same of any tree. name: of each row, into `texts`; parent: the row above it, -1: none."""
    count = len(name)
    depth = depths_below(parent)
    order = np.argsort(depth, kind="stable")
    if int(depth.max(initial=0)) > _DEEP:
        return _paths_one_by_one(texts, name, parent, order)
    bounds = np.searchsorted(depth[order], np.arange(int(depth.max(initial=-1)) + 2))
    path = np.full(count, -1, np.int64)
    names: list[IntArray] = [np.empty(0, np.int64)]
    above: list[IntArray] = [np.empty(0, np.int64)]
    path_count = 0
    width = max(len(texts), 1)
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist()):
        rows = order[first:last]
        caller = parent[rows]
        caller_path = np.where(caller >= 0, path[np.maximum(caller, 0)], -1)
        keys, number = np.unique((caller_path + 1) * width + name[rows], return_inverse=True)
        path[rows] = path_count + number.reshape(-1)
        names.append(keys % width)
        above.append(keys // width - 1)
        path_count += len(keys)
    return path, Paths(texts, np.concatenate(names), np.concatenate(above))


def _paths_one_by_one(
    texts: tuple[str, ...], name_of: IntArray, parent_of: IntArray, order: IntArray
) -> tuple[IntArray, Paths]:
    """The same by a walk through the calls, callers first."""
    numbers: dict[tuple[int, int], int] = {}
    path = [-1] * len(order)
    parent, name = parent_of.tolist(), name_of.tolist()
    for row in order.tolist():
        above = path[parent[row]] if parent[row] >= 0 else -1
        path[row] = numbers.setdefault((above, name[row]), len(numbers))
    columns = np.array(list(numbers), np.int64).reshape(-1, 2)
    return np.array(path, np.int64), Paths(texts, columns[:, 1], columns[:, 0])
