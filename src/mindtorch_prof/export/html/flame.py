"""Flame graphs: calls in; the merged call tree out, with one node for all calls of the same name under the same callers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Array, IntArray
from ...trace import DEVICE_KERNEL
from ...tree import depths_below, memory_events
from .calls import COPY, KERNEL, Calls, calls, shown_rows
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
    kernels = _kernels(results, tree, node)
    allocated, flops, device_ns = _own_work(results, tree)
    levels = np.cumsum([0, *[len(part) for part in parents]])
    of_children = _subtree_sums(total_ns, parent, levels, children_only=True)
    return kernels.added_to(
        Merged(
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
    )


@dataclass(frozen=True)
class _Kernels:
    """What devices did, merged by name under the node of the call that launched it: leaves with device time only."""

    names: tuple[str, ...]  # of all device events
    name: IntArray
    category: IntArray
    parent: IntArray
    count: IntArray
    device_ns: IntArray

    def added_to(self, tree: Merged) -> Merged:
        """A tree with these leaves behind its nodes."""
        if not len(self.name):
            return tree
        nothing = np.zeros(len(self.name), np.int64)
        return Merged(
            names=[*tree.names, *self.names],
            name=np.append(tree.name, self.name + len(tree.names)),
            category=np.append(tree.category, self.category),
            parent=np.append(tree.parent, self.parent),
            calls=np.append(tree.calls, self.count),
            synthetic=np.append(tree.synthetic, nothing),
            total_ns=np.append(tree.total_ns, nothing),
            self_ns=np.append(tree.self_ns, nothing),
            allocated=np.append(tree.allocated, nothing),
            flops=np.append(tree.flops, nothing),
            device_ns=np.append(tree.device_ns, self.device_ns),
            node=tree.node,
        )


def _kernels(results: Results, tree: Calls, node: IntArray) -> _Kernels:
    """The device work of the nodes. node: of each call."""
    device = results.trace.device
    works = np.flatnonzero(device.works) if len(device) else np.empty(0, np.int64)
    at = _places(results, tree)[shown_rows(results, device.op[works])]
    works, under = works[at >= 0], node[at[at >= 0]]
    width = len(device.names) + 1
    key, first, number = np.unique(under * width + device.name[works], return_index=True, return_inverse=True)
    length = (device.end_ns - device.start_ns)[works]
    return _Kernels(
        device.names,
        key % width,
        np.where(device.kind[works[first]] == DEVICE_KERNEL, KERNEL, COPY),
        key // width,
        np.bincount(number.reshape(-1), minlength=len(key)),
        np.bincount(number.reshape(-1), weights=length, minlength=len(key)).astype(np.int64),
    )


def _places(results: Results, tree: Calls) -> IntArray:
    """For each event of the trace its number among the calls; -1: none. The last one is for no event."""
    place = np.full(len(results.trace) + 1, -1, np.int64)
    place[tree.row[: tree.events]] = np.arange(tree.events)
    return place


def _subtree_sums(values: Array, parent: IntArray, levels: IntArray, *, children_only: bool = False) -> Array:
    """Sums over subtrees; with `children_only`, over the children of each node."""
    total = values.copy()
    below = np.zeros(len(values))
    for level in range(len(levels) - 2, 0, -1):
        rows, above = slice(levels[level], levels[level + 1]), slice(levels[level - 1], levels[level])
        added = np.bincount(
            parent[rows] - levels[level - 1],  # all of them are in the level above
            weights=values[rows] if children_only else total[rows],
            minlength=int(levels[level] - levels[level - 1]),
        )
        total[above] += added
        below[above] += added
    return below if children_only else total


def _own_work(results: Results, tree: Calls) -> tuple[Array, Array, Array]:
    """Bytes allocated, flops and device time of each call itself, without its descendants."""
    trace, count = results.trace, len(tree.parent)
    place = _places(results, tree)

    def onto_calls(rows: IntArray, values: IntArray) -> Array:
        at = place[shown_rows(results, rows)]
        return np.bincount(at[at >= 0], weights=values[at >= 0], minlength=count)

    memory = trace.memory
    taken = memory.nbytes > 0
    at = memory_events(trace, results.nesting.parent, memory.time_ns[taken], memory.thread[taken])
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
        size = tree.total_ns + tree.device_ns
        least = np.partition(size, len(keep) - MOST_NODES)[len(keep) - MOST_NODES]
        keep = size >= least
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
