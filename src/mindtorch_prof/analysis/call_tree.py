"""Call trees: a recording in; its events merged by their paths (the names from the root to the event) out, as a Sheet in preorder.

Calls of nn.Modules, or of all Python functions, are nodes too if they were recorded and are asked for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from .. import averages as grouping
from ..arrays import Array, IntArray, rows_by
from ..python_rows import with_calls
from ..trace import Frames
from .groups import device_times, thread_text
from .recording import Recording, as_results
from .sheet import ColumnValues, Sheet

if TYPE_CHECKING:
    from ..torch_api.results import Results

INDENTED = 100  # levels that indentation shows
Calls = Literal["modules", "all", "none"]


def with_python(source: Recording, calls: Calls = "modules") -> Results:
    """The Results of a recording with calls of modules (or of all Python functions) among its events."""
    from ..torch_api.results import Results

    results = as_results(source)
    trace = results.trace
    frames = trace.frames
    keep = frames.module >= 0 if calls == "modules" else np.full(len(frames), calls == "all")
    if not keep.any():
        return results
    parent = np.full(int(keep.sum()), -1, np.int64)  # not used: with_calls nests calls by their times
    kept = Frames(
        frames.names,
        frames.name[keep],
        frames.start_ns[keep],
        frames.end_ns[keep],
        frames.thread[keep],
        parent,
        frames.module[keep],
    )
    return Results(with_calls(replace(trace, frames=kept)))


def call_tree(
    source: Recording,
    *,
    calls: Calls = "modules",
    depth: int = 0,
    min_share: float = 0.0,
    by_time: bool = False,
) -> Sheet:
    """One row per path of names: times, counts and depth. Children follow their parent, the longest first.

    calls: which Python calls to include; depth: how many levels (0: all); min_share: leave out what takes less of the total time;
    by_time: order children by their first start.
    """
    results = with_python(source, calls)
    trace = results.trace
    rows = np.flatnonzero(results.shown)
    nodes = _MergedTree(results, rows)
    whole = nodes.total_ns[nodes.parent < 0].sum()
    order = nodes.walk(depth, min_share * whole, by_time)
    names = [nodes.names[i] for i in order.tolist()]
    level = nodes.depth[order]
    columns: dict[str, ColumnValues] = {
        "tree": [_indented(name, d) for d, name in zip(level.tolist(), names)],
        "name": names,
        "depth": level,
        "cpu_share": nodes.total_ns[order] / whole if whole else np.zeros(len(order)),
        "cpu_time_total": nodes.total_ns[order] / 1000,
        "self_cpu_time_total": nodes.self_ns[order] / 1000,
        "cpu_time": nodes.total_ns[order] / 1000 / np.maximum((nodes.count - nodes.synthetic)[order], 1),
        "count": nodes.count[order],
    }
    if trace.n_synthetic:
        columns["synthetic_count"] = nodes.synthetic[order]
    if len(trace.device):
        columns["device_time_total"] = nodes.device_ns[order] / 1000
        columns["self_device_time_total"] = nodes.self_device_ns[order] / 1000
    return Sheet(columns, len(order))


def _indented(name: str, depth: int) -> str:
    """A name below its parent. Deeper than people can see the level is a number: spaces would be the square of the levels."""
    if depth <= INDENTED:
        return "  " * depth + name
    return "  " * INDENTED + f"[level {depth + 1:,}] {name}"


class _MergedTree:
    """The merged tree as columns, one row per node: a path of names."""

    def __init__(self, results: Results, rows: IntArray) -> None:
        trace = results.trace
        group_of, texts = grouping.group_names(trace)
        threads, thread = np.unique(trace.thread[rows], return_inverse=True)
        several = len(threads) > 1
        node_of = np.full(len(trace), -1, np.int64)
        self.names: list[str] = []
        parents: list[IntArray] = []
        count = 0
        if several:
            labels = [thread_text(results, t) for t in threads.tolist()]
            self.names += [
                f"[{label}]" if label.startswith("thread") else f"[thread {label}]" for label in labels
            ]
            parents.append(np.full(len(threads), -1, np.int64))
            count = len(threads)
        of_thread = np.full(len(trace), -1, np.int64)
        of_thread[rows] = thread.reshape(-1) if several else -1
        above, level = results.shown_parent, results.nesting.depth
        for _, own in rows_by(level[rows]):
            here = rows[own]
            up = np.where(above[here] >= 0, node_of[np.maximum(above[here], 0)], of_thread[here])
            key = (up + 1) * (len(texts) + 1) + group_of[trace.name[here]]
            known, first, number = np.unique(key, return_index=True, return_inverse=True)
            node_of[here] = count + number.reshape(-1)
            parents.append(up[first])
            self.names += [texts[n] for n in group_of[trace.name[here[first]]].tolist()]
            count += len(known)
        self.parent = np.concatenate(parents) if parents else np.empty(0, np.int64)
        node = node_of[rows]
        duration = (trace.end_ns - trace.start_ns)[rows]
        own_device, device = device_times(results)

        def total(values: IntArray) -> Array:
            return np.bincount(node, weights=values, minlength=count)

        self.count = np.bincount(node, minlength=count)
        self.synthetic = np.bincount(node[~trace.is_recorded[rows]], minlength=count)
        self.total_ns, self.self_ns = total(duration), total(results.shown_self_ns[rows])
        self.device_ns, self.self_device_ns = total(device[rows]), total(own_device[rows])
        self.start_ns = np.full(count, np.iinfo(np.int64).max)
        np.minimum.at(self.start_ns, node, trace.start_ns[rows])
        self.depth = np.zeros(count, np.int64)
        inner = self.parent >= 0
        self.depth[inner] = -1
        while (self.depth < 0).any():
            left = np.flatnonzero(self.depth < 0)
            ready = left[self.depth[self.parent[left]] >= 0]
            self.depth[ready] = self.depth[self.parent[ready]] + 1
        if several:
            tops = np.flatnonzero(inner & (self.parent < len(threads)))
            for values in (self.total_ns, self.device_ns):
                values[: len(threads)] = np.bincount(
                    self.parent[tops], weights=values[tops], minlength=len(threads)
                )[: len(threads)]
            np.minimum.at(self.start_ns, self.parent[tops], self.start_ns[tops])

    def walk(self, depth: int, min_ns: float, by_time: bool) -> IntArray:
        """Nodes in preorder."""
        keep = self.total_ns >= min_ns
        if depth:
            keep &= self.depth < depth
        children: dict[int, list[int]] = {}
        rank = np.argsort(self.start_ns if by_time else -self.total_ns, kind="stable")
        for node in rank[keep[rank]].tolist():
            children.setdefault(int(self.parent[node]), []).append(node)
        order: list[int] = []
        stack = list(reversed(children.get(-1, [])))
        while stack:
            node = stack.pop()
            order.append(node)
            stack.extend(reversed(children.get(node, [])))
        return np.array(order, np.int64)
