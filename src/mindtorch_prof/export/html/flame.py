"""Flame graphs: calls in; the merged call tree out, with one node for all calls of the same name under the same callers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Array, IntArray
from ...tree import depths_below, memory_events
from .calls import Calls, calls, shown_rows
from .pack import Block

if TYPE_CHECKING:
    from ...torch_api.results import Results

MOST_NODES = 30_000  # per tree; of more nodes, the smallest are left out


@dataclass(frozen=True)
class Merged:
    """Nodes, callers before what they call; values are sums over subtrees, except `self_ns`."""

    names: list[str]
    name: IntArray
    category: IntArray
    parent: IntArray  # -1: a root
    calls: IntArray
    synthetic: IntArray  # how many of the calls are synthetic events
    total_ns: Array
    self_ns: Array
    allocated: Array
    flops: Array
    device_ns: Array
    node: IntArray  # for each call, its node


def merged(results: Results, tree: Calls) -> Merged:
    """Merge calls of equal names under equal callers."""
    depth = depths_below(tree.parent)
    count = len(tree.parent)
    node = np.full(count + 1, -1, np.int64)
    names, parents, categories, firsts = [], [], [], []
    total = 0
    width = len(tree.names) + 1
    order = np.argsort(depth, kind="stable")
    bounds = np.searchsorted(depth[order], np.arange(int(depth.max(initial=-1)) + 2))
    for level in range(len(bounds) - 1):
        rows = order[bounds[level] : bounds[level + 1]]
        key = (node[tree.parent[rows]] + 1) * width + tree.name[rows]
        unique, first, number = np.unique(key, return_index=True, return_inverse=True)
        node[rows] = number.reshape(-1) + total
        total += len(unique)
        names.append(unique % width)
        parents.append(unique // width - 1)
        categories.append(tree.category[rows[first]])
        firsts.append(rows[first])
    if not total:
        empty = np.empty(0, np.int64)
        return Merged(tree.names, *[empty] * 11)
    node = node[:-1]
    parent = np.concatenate(parents)

    def by_node(values: Array) -> Array:
        return np.bincount(node, weights=values, minlength=total)

    total_ns = by_node(tree.duration_ns)
    allocated, flops, device_ns = _own_work(results, tree)
    levels = np.cumsum([0, *[len(part) for part in parents]])
    of_children = _subtree_sums(total_ns, parent, levels, children_only=True)
    return Merged(
        tree.names,
        np.concatenate(names),
        np.concatenate(categories),
        parent,
        np.bincount(node, minlength=total),
        np.bincount(
            node[: tree.events][~results.trace.is_recorded[tree.row[: tree.events]]], minlength=total
        ),
        np.maximum(total_ns, of_children),
        np.maximum(total_ns - of_children, 0),
        _subtree_sums(by_node(allocated), parent, levels),
        _subtree_sums(by_node(flops), parent, levels),
        _subtree_sums(by_node(device_ns), parent, levels),
        node,
    )


def _subtree_sums(values: Array, parent: IntArray, levels: IntArray, *, children_only: bool = False) -> Array:
    """Sums over subtrees; with `children_only`, over the children of each node."""
    total = values.copy()
    below = np.zeros(len(values))
    for level in range(len(levels) - 2, 0, -1):
        rows = slice(levels[level], levels[level + 1])
        added = np.bincount(
            parent[rows], weights=values[rows] if children_only else total[rows], minlength=len(values)
        )
        total += added
        below += added
    return below if children_only else total


def _own_work(results: Results, tree: Calls) -> tuple[Array, Array, Array]:
    """Bytes allocated, flops and device time of each call itself, without its descendants."""
    trace, count = results.trace, len(tree.parent)
    place = np.full(len(trace) + 1, -1, np.int64)
    place[tree.row[: tree.events]] = np.arange(tree.events)

    def onto_calls(rows: IntArray, values: IntArray) -> Array:
        at = place[shown_rows(results, rows)]
        return np.bincount(at[at >= 0], weights=values[at >= 0], minlength=count)

    memory = trace.memory
    taken = memory.nbytes > 0
    at = memory_events(trace, results.tree.parent, memory.time_ns[taken], memory.thread[taken])
    flops = np.zeros(count)
    flops[: tree.events] = trace.flops[tree.row[: tree.events]]
    device = trace.device
    works = device.works if len(device) else np.zeros(0, bool)
    return (
        onto_calls(at, memory.nbytes[taken]),
        flops,
        onto_calls(device.op[works], (device.end_ns - device.start_ns)[works]),
    )


def flame_block(results: Results) -> Block:
    """The merged trees of a recording: of events and modules; the same with modules merged by class, if a class has several; and of events
    and all Python frames, if there are any."""
    block = Block()
    trees = {"calls": calls(results, python=False)}
    frames = results.trace.frames
    if (frames.module > 0).any():  # a second module of some class
        trees["classes"] = calls(results, python=False, by_class=True)
    if len(frames) and (frames.module < 0).any():
        trees["python"] = calls(results, python=True)
    described = {}
    for key, tree in trees.items():
        described[key] = _add_tree(block, key, merged(results, tree))
    block.values = {"trees": described}
    return block


def _add_tree(block: Block, key: str, tree: Merged) -> dict[str, object]:
    keep = np.ones(len(tree.name), bool)
    if len(keep) > MOST_NODES:
        least = np.partition(tree.total_ns, len(keep) - MOST_NODES)[len(keep) - MOST_NODES]
        keep = tree.total_ns >= least
        keep[tree.parent[keep & (tree.parent >= 0)]] = True
        # the callers of a kept node are kept too: a caller is at least as large as what it calls
    number = np.full(len(keep) + 1, -1, np.int64)
    number[:-1][keep] = np.arange(int(keep.sum()))
    used, name = np.unique(tree.name[keep], return_inverse=True)
    block.add(f"{key}.parent", number[tree.parent[keep]] + 1)
    block.add(f"{key}.name", name.reshape(-1))
    block.add(f"{key}.category", tree.category[keep])
    block.add(f"{key}.calls", tree.calls[keep])
    if tree.synthetic.any():
        block.add(f"{key}.synthetic", tree.synthetic[keep])
    for field in ("total_ns", "self_ns", "allocated", "flops", "device_ns"):
        block.add(f"{key}.{field}", np.rint(getattr(tree, field)[keep]).astype(np.int64))
    return {
        "names": [tree.names[i] for i in used.tolist()],
        "left_out": int((~keep).sum()),
        "metrics": [
            m for m in ("total_ns", "calls", "allocated", "flops", "device_ns") if getattr(tree, m).any()
        ],
    }
