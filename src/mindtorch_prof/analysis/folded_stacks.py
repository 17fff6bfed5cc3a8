"""Folded stacks: a recording in; pairs (frame;frame;frame, microseconds) out, each stack once, the longest time first.

Stacks share their outer frames until one is looked at: a line holds all frames of its stack, so that the lines of deeply nested events
together are far longer than the recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, overload

import numpy as np

from .. import averages as grouping
from ..arrays import IntArray
from ..call_paths import Paths, call_paths
from ..export.stacks import folded_stack
from ..text_escaping import folded_frame
from ..tree import nearest
from .groups import device_times
from .recording import Recording, as_results

if TYPE_CHECKING:
    from ..torch_api.results import Results

FRAMES = ("python", "ops", "both")


class FoldedStacks(Sequence[tuple[str, int]]):
    """Pairs (frame;frame;frame, microseconds); the text of each is built when it is looked at."""

    def __init__(
        self, stacks: Sequence[tuple[str, ...]], paths: Paths, stack: IntArray, path: IntArray, us: IntArray
    ) -> None:
        """stack, path: of each line the Python stack and after it the ops, as numbers into `stacks` and `paths`; -1: none."""
        self._stacks, self._paths = stacks, paths
        self._stack, self._path, self._us = stack, path, us

    def __len__(self) -> int:
        return len(self._us)

    @overload
    def __getitem__(self, index: int) -> tuple[str, int]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[str, int]]: ...
    def __getitem__(self, index: int | slice) -> tuple[str, int] | list[tuple[str, int]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        stack, path = int(self._stack[index]), int(self._path[index])
        ops = ";".join(reversed(self._paths[path])) if path >= 0 else ""
        return self._line(stack, ops), int(self._us[index])

    def _line(self, stack: int, ops: str) -> str:
        outer = folded_stack(self._stacks[stack]) if stack >= 0 else ""
        return f"{outer};{ops}" if outer and ops else outer or ops

    def __iter__(self) -> Iterator[tuple[str, int]]:
        last, ops = -1, ""  # a path often begins with the one before it
        for stack, path, us in zip(self._stack.tolist(), self._path.tolist(), self._us.tolist()):
            if path >= 0:
                names, reached = self._paths.below(path, last)
                ops = ";".join([ops, *reversed(names)] if reached else reversed(names))
                last = path
            yield self._line(stack, ops if path >= 0 else ""), us


def folded(source: Recording, *, by: str = "python", device: bool = False) -> FoldedStacks:
    """Stacks with the self time of their events, on the CPU or on the device.

    by: what frames are: "python", the Python stack of an event; "ops", its ancestors; "both", the ancestors after the Python stack of the
    outermost one.
    """
    if by not in FRAMES:
        raise ValueError(f"cannot fold by {by!r}; expected one of {', '.join(FRAMES)}")
    results = as_results(source)
    trace = results.trace
    rows = np.flatnonzero(results.shown)
    path: IntArray
    own = (device_times(results)[0] if device else results.shown_self_ns)[rows]
    if by == "python":
        paths, path = (
            Paths((), np.empty(0, np.int64), np.empty(0, np.int64)),
            np.full(len(rows), -1, np.int64),
        )
        stack = _equal_stacks(trace.stacks, trace.stack[rows])
    else:
        path, paths, root = _op_paths(results, rows)
        outer = trace.stack[rows[root]] if by == "both" else np.full(len(rows), -1, np.int64)
        stack = _equal_stacks(trace.stacks, outer)
    lines, number = np.unique(np.stack((stack, path)), axis=1, return_inverse=True)
    total_ns = np.bincount(number.reshape(-1), weights=own, minlength=lines.shape[1]).astype(np.int64)
    kept = np.flatnonzero((total_ns >= 1000) & (lines >= 0).any(axis=0))
    kept = kept[np.lexsort((lines[1][kept], -(total_ns[kept] // 1000)))]
    return FoldedStacks(trace.stacks, paths, lines[0][kept], lines[1][kept], total_ns[kept] // 1000)


def _equal_stacks(stacks: Sequence[tuple[str, ...]], stack: IntArray) -> IntArray:
    """For each stack the first one with the same text; -1: none, or one without frames."""
    used, place = np.unique(stack, return_inverse=True)
    first: dict[bytes, int] = {b"": -1}  # by a digest: texts of deep stacks are long
    same = []
    for number in used.tolist():
        text = folded_stack(stacks[number]) if number >= 0 else ""
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() if text else b""
        same.append(first.setdefault(digest, number))
    return np.array(same, np.int64)[place.reshape(-1)] if len(stack) else stack.astype(np.int64)


def _op_paths(results: Results, rows: IntArray) -> tuple[IntArray, Paths, IntArray]:
    """For each row the number of its path (its name and those of its ancestors), the paths, and the outermost of its ancestors as an index
    into the rows."""
    trace = results.trace
    group_of, names = grouping.group_names(trace)
    texts: dict[str, int] = {}
    text_of = np.array([texts.setdefault(folded_frame(name), len(texts)) for name in names] or [0], np.int64)
    place = np.full(len(trace) + 1, -1, np.int64)  # the last one for row -1
    place[rows] = np.arange(len(rows))
    parent = place[results.shown_parent[rows]]
    path, paths = call_paths(tuple(texts), text_of[group_of[trace.name[rows]]], parent)
    return path, paths, nearest(parent, parent < 0)
