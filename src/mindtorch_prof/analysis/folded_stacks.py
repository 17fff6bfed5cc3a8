"""Folded stacks: a recording in; pairs (frame;frame;frame, microseconds) out, each stack once, the longest time first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import averages as grouping
from ..arrays import IntArray
from ..export.stacks import folded_stack
from ..text_escaping import folded_frame
from .groups import device_times
from .recording import Recording, as_results

if TYPE_CHECKING:
    from ..torch_api.results import Results

FRAMES = ("python", "ops", "both")


def folded(source: Recording, *, by: str = "python", device: bool = False) -> list[tuple[str, int]]:
    """Stacks with the self time of their events, on the CPU or on the device.

    by: what frames are: "python", the Python stack of an event; "ops", its ancestors; "both", the ancestors after the Python stack of the
    outermost one.
    """
    if by not in FRAMES:
        raise ValueError(f"cannot fold by {by!r}; expected one of {', '.join(FRAMES)}")
    results = as_results(source)
    trace = results.trace
    rows = np.flatnonzero(results.shown)
    own = device_times(results)[0] if device else results.shown_self_ns
    stacks = [folded_stack(stack) for stack in trace.stacks] + [""]
    if by == "python":
        number, paths = np.where(trace.stack[rows] < 0, len(stacks) - 1, trace.stack[rows]), stacks
    else:
        number, paths = _op_paths(results, rows, stacks if by == "both" else [""] * len(stacks))
    total_ns: dict[str, int] = {}
    sums = np.bincount(number, weights=own[rows], minlength=len(paths))
    for path, value in zip(paths, sums.tolist()):
        if path:
            total_ns[path] = total_ns.get(path, 0) + int(value)
    lines = [(path, value // 1000) for path, value in total_ns.items() if value >= 1000]
    return sorted(lines, key=lambda line: -line[1])


def _op_paths(results: Results, rows: IntArray, outer: list[str]) -> tuple[IntArray, list[str]]:
    """For each row the number of its path, and the paths: the names of its ancestors after the `outer` stack of the outermost one."""
    trace = results.trace
    group_of, names = grouping.group_names(trace)
    frames = [folded_frame(name) for name in names]
    path_of = np.full(len(trace), -1, np.int64)
    paths: list[str] = []
    above, level = results.shown_parent, results.tree.depth
    for depth in np.unique(level[rows]).tolist():
        here = rows[level[rows] == depth]
        inside = above[here] >= 0
        up = np.where(
            inside,
            path_of[np.maximum(above[here], 0)],
            -2 - np.where(trace.stack[here] < 0, len(outer) - 1, trace.stack[here]),
        )
        key = np.stack((up, group_of[trace.name[here]].astype(np.int64)))
        known, number = np.unique(key, axis=1, return_inverse=True)
        path_of[here] = len(paths) + number.reshape(-1)
        for parent, name in known.T.tolist():
            around = paths[parent] if parent >= 0 else outer[-2 - parent]
            paths.append(f"{around};{frames[name]}" if around else frames[name])
    return path_of[rows], paths
