"""Paths of Python calls: Frames in, for each call the names from it to the outermost caller out. Equal paths are one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .trace import Frames


def is_left_out(frame: str) -> bool:
    """Whether torch leaves a frame out of the stacks that it shows: its own on the way into a backward pass."""
    return "torch/autograd/__init__" in frame and ("backward" in frame or "_make_grads" in frame)


class Paths(Sequence):
    """Stacks as paths of calls, innermost first, each put together when it is asked for."""

    def __init__(self, names: tuple[str, ...], name: np.ndarray, above: np.ndarray) -> None:
        self._names, self._name, self._above = names, name.tolist(), above.tolist()

    def __len__(self) -> int:
        return len(self._name)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at, found = range(len(self))[index], []
        while at >= 0:
            found.append(self._names[self._name[at]])
            at = self._above[at]
        return tuple(found)


def paths(frames: Frames) -> tuple[np.ndarray, Paths]:
    """For each call the number of its path (the names from it to the outermost caller), and the paths."""
    count = len(frames)
    depth, up = (frames.parent >= 0).astype(np.int64), frames.parent.copy()
    while len(on := np.flatnonzero(up >= 0)):  # each round doubles the distance looked at
        depth[on] += depth[up[on]]
        up[on] = up[up[on]]
    order = np.argsort(depth, kind="stable")
    bounds = np.searchsorted(depth[order], np.arange(int(depth.max(initial=-1)) + 2))
    path = np.full(count, -1, np.int64)
    names, above, made = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
    width = max(len(frames.names), 1)
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist()):
        rows = order[first:last]
        caller = frames.parent[rows]
        over = np.where(caller >= 0, path[np.maximum(caller, 0)], -1)
        keys, number = np.unique((over + 1) * width + frames.name[rows], return_inverse=True)
        path[rows] = made + number.reshape(-1)
        names.append(keys % width)
        above.append(keys // width - 1)
        made += len(keys)
    return path, Paths(frames.names, np.concatenate(names), np.concatenate(above))
