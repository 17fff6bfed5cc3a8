"""Paths of Python calls: Frames in; for each call the names from it to the outermost caller out. Equal paths get one number."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import overload

import numpy as np

from .arrays import IntArray, stable_order
from .trace import Frames
from .tree import depths_below

STACK_DEPTH = 5  # innermost frames by which calls are told apart where nobody asks for another number


class Paths(Sequence[tuple[str, ...]]):
    """Stacks as paths of calls, innermost first; each is built when it is accessed."""

    def __init__(self, names: tuple[str, ...], name: IntArray, above: IntArray) -> None:
        # arrays, whose numbers are read one by one as fast as those of lists, in a fifth of the memory
        self._names, self._name, self._above = names, _numbers(name), _numbers(above)

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


def _numbers(column: IntArray) -> array[int]:
    numbers = array("i" if int(column.max(initial=0)) < 2**31 else "q")
    numbers.frombytes(column.astype(numbers.typecode).tobytes())
    return numbers


def innermost_frames(stacks: Sequence[tuple[str, ...]], index: int, count: int) -> tuple[str, ...]:
    """The innermost frames of a stack; of `Paths` without building the whole stack."""
    return stacks.first(index, count) if isinstance(stacks, Paths) else tuple(stacks[index][:count])


def stacks_with(stacks: Sequence[tuple[str, ...]], wanted: Callable[[str], bool]) -> list[bool]:
    """By stack, whether one of its frames is wanted."""
    return (
        stacks.contain(wanted) if isinstance(stacks, Paths) else [any(map(wanted, each)) for each in stacks]
    )


_FEW = 16  # rows of a level: fewer are numbered by a dict, which costs less than a sort


def paths(frames: Frames) -> tuple[IntArray, Paths]:
    """For each call the number of its path (the names from it to the outermost caller), and the paths."""
    return call_paths(frames.names, frames.name, frames.parent)


def call_paths(texts: tuple[str, ...], name: IntArray, parent: IntArray) -> tuple[IntArray, Paths]:
    """The same of any tree. name: of each row, into `texts`; parent: the row above it, -1: none."""
    depth = depths_below(parent)
    order = stable_order(depth)
    bounds = np.searchsorted(depth[order], np.arange(int(depth.max(initial=-1)) + 2)).tolist()
    del depth
    path = np.empty(len(name), np.int64)
    path_name, path_above = np.empty(len(name), np.int32), np.empty(len(name), np.int64)
    count = 0
    for first, last in pairwise(bounds):
        rows = order[first:last]
        number_level = _number_few if last - first < _FEW else _number_many
        names, above = number_level(rows, name, parent, path, count)
        path_name[count : count + len(names)], path_above[count : count + len(names)] = names, above
        count += len(names)
    return path, Paths(texts, path_name[:count], path_above[:count])


def _number_many(
    rows: IntArray, name: IntArray, parent: IntArray, path: IntArray, first: int
) -> tuple[IntArray, IntArray]:
    """Number the paths of rows of one level, from `first` on; the name of each path, and the path above it."""
    caller = parent[rows]
    above = path[caller]
    above[caller < 0] = -1
    width = int(name.max()) + 1
    above += 1
    above *= width
    above += name[rows]
    keys, number = np.unique(above, return_inverse=True)
    path[rows] = first + number.reshape(-1)
    return keys % width, keys // width - 1


def _number_few(
    rows: IntArray, name: IntArray, parent: IntArray, path: IntArray, first: int
) -> tuple[list[int], list[int]]:
    """The same without a sort in NumPy."""
    keys: list[tuple[int, int]] = []
    for row in rows.tolist():
        caller = parent.item(row)
        keys.append((path.item(caller) if caller >= 0 else -1, name.item(row)))
    distinct = sorted({*keys})
    number_of = {key: first + place for place, key in enumerate(distinct)}
    for row, key in zip(rows.tolist(), keys):
        path[row] = number_of[key]
    return [own for _, own in distinct], [above for above, _ in distinct]
