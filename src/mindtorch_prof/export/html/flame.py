"""The merged call tree: calls in; one node for all calls of the same name under the same callers out, by one pass a level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Array, IntArray
from ...tree import depths_below
from .calls import Calls, calls, events_at, shown_rows
from .pack import Block

if TYPE_CHECKING:
    from ...torch_api.results import Results

MOST_NODES = 30_000  # per tree; the smallest are left out beyond it


@dataclass(frozen=True)
class Merged:
    """Nodes, callers before what they call; the values are of whole subtrees but for `self_ns`."""

    names: list[str]
    name: IntArray
    category: IntArray
    parent: IntArray  # -1: a root
    calls: IntArray
    total_ns: Array
    self_ns: Array
    allocated: Array
    flops: Array
    device_ns: Array
    node: IntArray  # for each call, its node


def merged(results: Results, made: Calls) -> Merged:
    """Merge calls of equal names under equal callers."""
    depth = depths_below(made.parent)
    count = len(made.parent)
    node = np.full(count + 1, -1, np.int64)
    names, parents, categories, firsts = [], [], [], []
    total = 0
    width = len(made.names) + 1
    order = np.argsort(depth, kind="stable")
    bounds = np.searchsorted(depth[order], np.arange(int(depth.max(initial=-1)) + 2))
    for level in range(len(bounds) - 1):
        rows = order[bounds[level] : bounds[level + 1]]
        key = (node[made.parent[rows]] + 1) * width + made.name[rows]
        unique, first, number = np.unique(key, return_index=True, return_inverse=True)
        node[rows] = number.reshape(-1) + total
        total += len(unique)
        names.append(unique % width)
        parents.append(unique // width - 1)
        categories.append(made.category[rows[first]])
        firsts.append(rows[first])
    if not total:
        empty = np.empty(0, np.int64)
        return Merged(made.names, *[empty] * 10)
    node = node[:-1]
    parent = np.concatenate(parents)

    def by_node(values: Array) -> Array:
        return np.bincount(node, weights=values, minlength=total)

    total_ns = by_node(made.duration_ns)
    allocated, flops, device_ns = _work(results, made)
    levels = np.cumsum([0, *[len(part) for part in parents]])
    of_children = _up(total_ns, parent, levels, keep_own=True)
    return Merged(
        made.names,
        np.concatenate(names),
        np.concatenate(categories),
        parent,
        np.bincount(node, minlength=total),
        np.maximum(total_ns, of_children),
        np.maximum(total_ns - of_children, 0),
        _up(by_node(allocated), parent, levels),
        _up(by_node(flops), parent, levels),
        _up(by_node(device_ns), parent, levels),
        node,
    )


def _up(values: Array, parent: IntArray, levels: IntArray, *, keep_own: bool = False) -> Array:
    """Sums over subtrees; with `keep_own` only over the children of each node."""
    total = values.copy()
    below = np.zeros(len(values))
    for level in range(len(levels) - 2, 0, -1):
        rows = slice(levels[level], levels[level + 1])
        added = np.bincount(
            parent[rows], weights=values[rows] if keep_own else total[rows], minlength=len(values)
        )
        total += added
        below += added
    return below if keep_own else total


def _work(results: Results, made: Calls) -> tuple[Array, Array, Array]:
    """Bytes taken, flops and time on a device that belong to each call itself."""
    trace, count = results.trace, len(made.parent)
    place = np.full(len(trace) + 1, -1, np.int64)
    place[made.row[: made.events]] = np.arange(made.events)

    def onto_calls(rows: IntArray, values: IntArray) -> Array:
        at = place[shown_rows(results, rows)]
        return np.bincount(at[at >= 0], weights=values[at >= 0], minlength=count)

    memory = trace.memory
    taken = memory.nbytes > 0
    at = events_at(trace, results.tree.parent, memory.time_ns[taken], memory.thread[taken])
    flops = np.zeros(count)
    flops[: made.events] = trace.flops[made.row[: made.events]]
    device = trace.device
    works = device.works if len(device) else np.zeros(0, bool)
    return (
        onto_calls(at, memory.nbytes[taken]),
        flops,
        onto_calls(device.op[works], (device.end_ns - device.start_ns)[works]),
    )


def flame_block(results: Results) -> Block:
    """The merged trees of a recording: operators with annotations and modules, the same with modules merged by class, and with Python's
    frames, as far as there are any."""
    block = Block()
    trees = {"calls": calls(results, python=False)}
    frames = results.trace.frames
    if (frames.module > 0).any():  # a second module of some class
        trees["classes"] = calls(results, python=False, by_class=True)
    if len(frames) and (frames.module < 0).any():
        trees["python"] = calls(results, python=True)
    described = {}
    for key, made in trees.items():
        described[key] = _add(block, key, merged(results, made))
    block.values = {"trees": described}
    return block


def _add(block: Block, key: str, tree: Merged) -> dict[str, object]:
    keep = np.ones(len(tree.name), bool)
    if len(keep) > MOST_NODES:
        least = np.partition(tree.total_ns, len(keep) - MOST_NODES)[len(keep) - MOST_NODES]
        keep = tree.total_ns >= least
        keep[tree.parent[keep & (tree.parent >= 0)]] = True
        # a kept node's callers are kept: no caller is smaller than what it calls
    number = np.full(len(keep) + 1, -1, np.int64)
    number[:-1][keep] = np.arange(int(keep.sum()))
    used, name = np.unique(tree.name[keep], return_inverse=True)
    block.add(f"{key}.parent", number[tree.parent[keep]] + 1)
    block.add(f"{key}.name", name.reshape(-1))
    block.add(f"{key}.category", tree.category[keep])
    block.add(f"{key}.calls", tree.calls[keep])
    for field in ("total_ns", "self_ns", "allocated", "flops", "device_ns"):
        block.add(f"{key}.{field}", np.rint(getattr(tree, field)[keep]).astype(np.int64))
    return {
        "names": [tree.names[i] for i in used.tolist()],
        "left_out": int((~keep).sum()),
        "metrics": [
            m for m in ("total_ns", "calls", "allocated", "flops", "device_ns") if getattr(tree, m).any()
        ],
    }
