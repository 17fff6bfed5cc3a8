"""Modules: Results in; the tree of nn.Modules with times, memory and flops, and the module of each event out.

A backward node belongs to the module of its forward op.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Array, BoolArray, IntArray
from ...call_paths import Paths
from ...frames import MODULE_PREFIX
from ...trace import ENGINE
from ...tree import depths_below, levels, memory_events, nearest
from .calls import (
    AUTOGRAD,
    event_categories,
    forward_of,
    kept_parents,
    modules_at,
)
from .pack import Block

if TYPE_CHECKING:
    from ...torch_api.results import Results


@dataclass(frozen=True)
class Modules:
    """The tree of modules: one entry per module and path of callers; parents first."""

    names: list[str]
    parent: IntArray  # -1: none
    calls: IntArray
    total_ns: Array
    node: IntArray  # for each row of the frames, its module; -1: no module's call


def module_tree(results: Results) -> Modules | None:
    """The modules that were called; None if none was recorded."""
    frames = results.trace.frames
    called = frames.module >= 0
    if not called.any():
        return None
    parent = kept_parents(frames.parent, called)
    depth = depths_below(np.where(called, parent, -1))
    node = np.full(len(frames) + 1, -1, np.int64)
    names: list[str] = []
    parents = []
    width = len(frames.names) + 1
    for rows in levels(np.where(called, depth, 0)):
        rows = rows[called[rows]]
        key = (node[parent[rows]] + 1) * width + frames.name[rows]
        unique, number = np.unique(key, return_inverse=True)
        node[rows] = number.reshape(-1) + len(names)
        names += [frames.names[i].removeprefix(MODULE_PREFIX) for i in (unique % width).tolist()]
        parents.append(unique // width - 1)
    node = node[:-1]
    rows = np.flatnonzero(called)
    duration = (frames.end_ns - frames.start_ns)[rows]
    return Modules(
        names,
        np.concatenate(parents),
        np.bincount(node[rows], minlength=len(names)),
        np.bincount(node[rows], weights=duration, minlength=len(names)),
        node,
    )


def nodes_of_events(results: Results, tree: Modules) -> IntArray:
    """The module of each event; -1: none."""
    trace = results.trace
    frame = modules_at(trace, trace.start_ns, trace.thread)
    node = np.where(frame >= 0, tree.node[frame], -1)
    backward, forward = forward_of(trace, results.nesting.parent)
    node[backward] = np.where(node[backward] < 0, node[forward], node[backward])
    # the engine's event around a node and the descendants of a node belong to the node's module
    around = results.nesting.parent[backward]
    engine = (around >= 0) & (trace.kind[around] == ENGINE)
    node[around[engine]] = node[backward[engine]]
    known = nearest(results.nesting.parent, node >= 0)
    return np.where(known >= 0, node[known], -1)


def event_modules(results: Results) -> tuple[IntArray, list[str]] | None:
    """For each event the number of its module (-1: none), and the paths of the modules that have events."""
    tree = module_tree(results)
    if tree is None:
        return None
    used, number = np.unique(nodes_of_events(results, tree), return_inverse=True)
    without = int((used < 0).sum())
    # only of modules with events: all paths of modules nested deeply would be the square of their depth
    paths = Paths(tuple(tree.names), np.arange(len(tree.names)), tree.parent)
    return number.reshape(-1) - without, [
        " / ".join(reversed(paths[node])) for node in used[without:].tolist()
    ]


def modules_block(results: Results) -> Block | None:
    """The tree of modules; None if none was recorded."""
    tree = module_tree(results)
    if tree is None:
        return None
    trace, count = results.trace, len(tree.names)
    node = nodes_of_events(results, tree)

    def own(rows: IntArray, values: IntArray) -> Array:
        at = np.where(rows >= 0, node[rows], -1) if len(node) else np.full(len(rows), -1)
        return np.bincount(at[at >= 0], weights=values[at >= 0], minlength=count)

    below = np.bincount(
        tree.parent[tree.parent >= 0], weights=tree.total_ns[tree.parent >= 0], minlength=count
    )
    backward = np.flatnonzero(_outermost_backward(results))
    memory, device = trace.memory, trace.device
    taken = memory.nbytes > 0
    allocating = memory_events(trace, results.nesting.parent, memory.time_ns[taken], memory.thread[taken])
    every = np.flatnonzero(results.shown)
    works = np.flatnonzero(device.works) if len(device) else np.empty(0, np.int64)
    block = Block({"names": tree.names})
    columns = {
        "total_ns": tree.total_ns,
        "self_ns": np.maximum(tree.total_ns - below, 0),
        "backward_ns": _subtree_sums(own(backward, (trace.end_ns - trace.start_ns)[backward]), tree.parent),
        "allocated": _subtree_sums(own(allocating, memory.nbytes[taken]), tree.parent),
        "flops": _subtree_sums(own(every, trace.flops[every]), tree.parent),
        "device_ns": _subtree_sums(
            own(device.op[works], (device.end_ns - device.start_ns)[works]), tree.parent
        ),
    }
    block.add("parent", tree.parent + 1)
    block.add("calls", tree.calls)
    for name, values in columns.items():
        if values.any() or name in {"total_ns", "self_ns"}:
            block.add(name, np.rint(values).astype(np.int64))
    return block


def _subtree_sums(values: Array, parent: IntArray) -> Array:
    """Sums over subtrees; a loop is fast enough, for there are hundreds of modules."""
    total = values.tolist()
    for row in range(len(total) - 1, -1, -1):
        if parent[row] >= 0:
            total[parent[row]] += total[row]
    return np.array(total)


def _outermost_backward(results: Results) -> BoolArray:
    """Mask of the backward events that no other backward event contains."""
    backward = event_categories(results.trace) == AUTOGRAD
    above = kept_parents(results.nesting.parent, backward)
    mask: BoolArray = backward & (above < 0)
    return mask
