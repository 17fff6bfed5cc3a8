"""Folded stacks: a recording in; (frame;frame;frame, microseconds) out, each stack once, the heaviest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import averages as grouping
from ..arrays import IntArray
from .groups import device_times
from .recording import Recording, as_results

if TYPE_CHECKING:
    from ..torch_api.results import Results

FRAMES = ("python", "ops", "both")
_PLAIN = str.maketrans(" ;\t\n\r", "_____")  # what separates frames and values must not be inside one


def folded(source: Recording, *, by: str = "python", device: bool = False) -> list[tuple[str, int]]:
    """Stacks with the events' own time on the CPU, or on the device.

    by: "python", the calls around events; "ops", the events around them; "both", ops inside the Python calls around the outermost.
    """
    if by not in FRAMES:
        raise ValueError(f"cannot fold by {by!r}; expected one of {', '.join(FRAMES)}")
    results = as_results(source)
    trace = results.trace
    rows = np.flatnonzero(results.shown)
    own = device_times(results)[0] if device else results.shown_self_ns
    calls = [";".join(frame.translate(_PLAIN) for frame in reversed(stack)) for stack in trace.stacks] + [""]
    if by == "python":
        node, texts = np.where(trace.stack[rows] < 0, len(calls) - 1, trace.stack[rows]), calls
    else:
        node, texts = _op_paths(results, rows, calls if by == "both" else [""] * len(calls))
    total: dict[str, int] = {}
    sums = np.bincount(node, weights=own[rows], minlength=len(texts))
    for text, value in zip(texts, sums.tolist()):
        if text:
            total[text] = total.get(text, 0) + int(value)
    lines = [(text, value // 1000) for text, value in total.items() if value >= 1000]
    return sorted(lines, key=lambda line: -line[1])


def _op_paths(results: Results, rows: IntArray, outer: list[str]) -> tuple[IntArray, list[str]]:
    """For each row the number of its path, and the paths: names around an event, behind what is around the outermost."""
    trace = results.trace
    group_of, names = grouping.group_names(trace)
    plain = [name.translate(_PLAIN) for name in names]
    node_of = np.full(len(trace), -1, np.int64)
    texts: list[str] = []
    above, level = results.shown_parent, results.tree.depth
    for depth in np.unique(level[rows]).tolist():
        here = rows[level[rows] == depth]
        inside = above[here] >= 0
        up = np.where(
            inside,
            node_of[np.maximum(above[here], 0)],
            -2 - np.where(trace.stack[here] < 0, len(outer) - 1, trace.stack[here]),
        )
        key = np.stack((up, group_of[trace.name[here]].astype(np.int64)))
        known, number = np.unique(key, axis=1, return_inverse=True)
        node_of[here] = len(texts) + number.reshape(-1)
        for parent, name in known.T.tolist():
            around = texts[parent] if parent >= 0 else outer[-2 - parent]
            texts.append(f"{around};{plain[name]}" if around else plain[name])
    return node_of[rows], texts
