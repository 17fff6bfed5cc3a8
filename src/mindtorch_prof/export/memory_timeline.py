"""Memory timelines: a Trace and its tree in; bytes alive over time, by what they are for, out (.html, .json, .raw.json.gz).

What memory is for is decided by `_memory_profiler`, where tensors were told apart (shapes and memory recorded). Elsewhere (files, very
long recordings in reports) it is concluded from where an allocation happened and how long it lived: in an optimizer's step and beyond it:
optimizer state; in the backward pass and beyond it: gradient, if it ends earlier: autograd detail; by a forward op whose backward node
ran: activation; by an op that autograd does not see (a factory): input; inside one op only: temporary. Anything else is unknown.
"""

from __future__ import annotations

import io
import os
import weakref
from collections.abc import Iterable, Sequence
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import numpy as np
import orjson

from ..frames import is_autograd_call
from ..trace import ANNOTATION, ENGINE, NODE, Trace
from ..tree import Tree, innermost, levels, thread_slices
from .files import open_for_export

REQUIRED = "record_shapes=True, profile_memory=True, with_stack=True required for memory profiling."


class Category(IntEnum):
    """What memory is for, numbered as in torch's files."""

    PARAMETER = 0
    OPTIMIZER_STATE = 1
    INPUT = 2
    TEMPORARY = 3
    ACTIVATION = 4
    GRADIENT = 5
    AUTOGRAD_DETAIL = 6
    UNKNOWN = 7


class Action(IntEnum):
    """What happens to memory, numbered as in torch's files."""

    PREEXISTING = 1
    CREATE = 2
    INCREMENT_VERSION = 3
    DESTROY = 4


def export_memory_timeline(
    trace: Trace, tree: Tree, path: str | os.PathLike[str], device: str | None = None
) -> None:
    """Write the timeline; the suffix of `path` chooses the form."""
    settings = trace.settings
    if not (settings.record_shapes and settings.profile_memory and settings.with_stack):
        raise ValueError(REQUIRED)
    name = os.fspath(path)
    entries = timeline(trace, tree) if (device or "cpu").split(":")[0] == "cpu" else []
    if name.endswith(".html"):
        content = page(*coalesced(entries))
    elif name.endswith(".raw.json.gz"):
        content = orjson.dumps(entries)
    else:
        content = orjson.dumps(coalesced(entries))
    with open_for_export(path) as out:
        out.write(content)


def timeline(trace: Trace, tree: Tree) -> list[list[int]]:
    """[time in ns since the epoch (-1: before the recording), action, bytes, category] in the order of time."""
    known = _profile(trace, tree)
    if known is not None:
        from ..torch_api.memory_profile import MemoryProfileTimeline

        return [list(entry) for entry in MemoryProfileTimeline(known)._entries("cpu")]
    memory = trace.memory
    born, died = lifetimes(memory.address, memory.nbytes)
    category = dict(zip(born.tolist(), categories(trace, tree, born, died).tolist()))
    seen = set(memory.address[born].tolist())
    entries = [
        [-1, int(Action.PREEXISTING), nbytes, int(Category.GRADIENT if is_gradient else Category.PARAMETER)]
        for address, nbytes, is_gradient in memory.of_modules
        if address not in seen and nbytes
    ]
    birth_of = {d: b for b, d in zip(born.tolist(), died.tolist()) if d >= 0}
    times = (memory.time_ns + trace.origin_ns).tolist()
    for row, (at, nbytes) in enumerate(zip(times, memory.nbytes.tolist())):
        if row in category:
            entries.append([at, int(Action.CREATE), nbytes, category[row]])
        elif row in birth_of:
            entries.append([at, int(Action.DESTROY), nbytes, category[birth_of[row]]])
    return entries


def lifetimes(address: np.ndarray, nbytes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows where memory is taken, and for each the row where the same address is given back (-1: never)."""
    order = np.lexsort((np.arange(len(address)), address))
    following = np.full(len(address), -1, np.int64)
    same = address[order][1:] == address[order][:-1]
    following[order[:-1][same]] = order[1:][same]
    born = np.flatnonzero(nbytes > 0)
    died = following[born]
    ends = (died >= 0) & (nbytes[np.maximum(died, 0)] < 0)
    return born, np.where(ends, died, -1)


_profiled: list[Any] = []  # the last trace (weakly) and its memory profile


def _profile(trace: Trace, tree: Tree) -> Any:
    """The memory profile of a trace in which tensors were told apart, else None."""
    if not (trace.tensor_ids and trace.settings.tensors_tracked):
        return None
    if not _profiled or _profiled[0]() is not trace:
        from ..torch_api.event_tree import EventTree
        from ..torch_api.memory_profile import MemoryProfile

        nodes = EventTree(trace, tree)
        found = MemoryProfile(SimpleNamespace(experimental_event_tree=nodes.roots))
        _profiled[:] = (weakref.ref(trace), found, nodes)
    return _profiled[1]


def categories(
    trace: Trace, tree: Tree, born: np.ndarray, died: np.ndarray, precise: int = 30_000
) -> np.ndarray:
    """What each allocation is for; by the flow of data, if there are no more than `precise` events."""
    known = _profile(trace, tree) if len(trace) <= precise else None
    return _concluded(trace, tree, born, died) if known is None else _decided(known, born)


def _decided(known: Any, born: np.ndarray) -> np.ndarray:
    from ..torch_api.event_tree_fields import _ExtraFields_Allocation, view_class
    from ..torch_api.memory_profile import _CATEGORY_TO_INDEX, TensorKey

    kind = view_class(_ExtraFields_Allocation, _profiled[2])
    made = np.full(len(born), int(Category.UNKNOWN), np.int64)
    for place, row in enumerate(born.tolist()):
        allocation = kind()
        allocation._row = row
        key = TensorKey.from_allocation(allocation)
        if key is not None:
            made[place] = _CATEGORY_TO_INDEX[known._categories.get(key, 0)]
    return made


def _concluded(trace: Trace, tree: Tree, born: np.ndarray, died: np.ndarray) -> np.ndarray:
    """What each allocation is for, as far as can be told from where and when."""
    memory = trace.memory
    event = _events_around(trace, tree, memory.time_ns[born], memory.thread[born])
    end = np.where(died >= 0, memory.time_ns[np.maximum(died, 0)], np.iinfo(np.int64).max)
    backward = _within(trace, tree, (trace.kind == NODE) | (trace.kind == ENGINE))
    steps = [i for i, text in enumerate(trace.names) if text.startswith("Optimizer.step#")]
    step = _within(trace, tree, (trace.kind == ANNOTATION) & np.isin(trace.name, steps))
    outer_op = _outermost_op(trace, tree)
    nodes = (trace.kind == NODE) & (trace.sequence >= 0)
    differentiated = (trace.sequence >= 0) & np.isin(trace.sequence, trace.sequence[nodes])
    pass_end = _pass_ends(trace, memory.time_ns[born])
    # `backward` itself makes the gradient that it starts from
    roots = np.array([any(map(is_autograd_call, stack)) for stack in trace.stacks] + [False])
    held = {address: is_gradient for address, _, is_gradient in memory.of_modules}

    made = np.full(len(born), int(Category.UNKNOWN), np.int64)
    for i, (row, around) in enumerate(zip(born.tolist(), event.tolist())):
        alive = died[i] < 0
        if alive and int(memory.address[row]) in held:
            gradient = held[int(memory.address[row])]
            made[i] = Category.GRADIENT if gradient else Category.PARAMETER
            continue
        if around < 0:
            continue
        op = int(outer_op[around])
        brief = op >= 0 and end[i] <= trace.end_ns[op]
        if step[around] >= 0:
            lasting = end[i] > trace.end_ns[step[around]]
            made[i] = Category.OPTIMIZER_STATE if lasting else Category.TEMPORARY
        elif backward[around] >= 0:
            if trace.kind[around] not in (NODE, ENGINE) and brief:
                made[i] = Category.TEMPORARY
            else:
                made[i] = Category.GRADIENT if end[i] > pass_end[i] else Category.AUTOGRAD_DETAIL
        elif brief:
            made[i] = Category.TEMPORARY
        elif op >= 0 and (differentiated[op] or differentiated[around] or roots[trace.stack[op]]):
            made[i] = Category.ACTIVATION
        elif op >= 0 and trace.sequence[op] < 0:
            made[i] = Category.INPUT
    return made


def _pass_ends(trace: Trace, times: np.ndarray) -> np.ndarray:
    """When the backward pass that is under way at each time ends: its nodes follow each other with no forward op between."""
    ends = np.sort(trace.end_ns[trace.kind == ENGINE])
    if not len(ends):
        return times
    forward = (trace.sequence >= 0) & (trace.forward_thread == 0) & ~np.isin(trace.kind, (NODE, ENGINE))
    starts = np.append(np.sort(trace.start_ns[forward]), np.iinfo(np.int64).max)
    until = starts[np.searchsorted(starts, times, side="right").clip(max=len(starts) - 1)]
    last = ends[np.maximum(np.searchsorted(ends, until, side="right") - 1, 0)]
    return np.maximum(last, times)


def _events_around(trace: Trace, tree: Tree, times: np.ndarray, threads: np.ndarray) -> np.ndarray:
    """The innermost event at each time of each thread; -1: none."""
    found = np.full(len(times), -1, np.int64)
    for first, last in thread_slices(trace.thread):
        here = np.flatnonzero(threads == trace.thread[first])
        part = slice(first, last)
        parent = np.where(tree.parent[part] < 0, -1, tree.parent[part] - first)
        inside = innermost(trace.start_ns[part], trace.end_ns[part], parent, times[here])
        found[here] = np.where(inside >= 0, inside + first, -1)
    return found


def _within(trace: Trace, tree: Tree, chosen: np.ndarray) -> np.ndarray:
    """For each event the outermost chosen one around it (or itself); -1: none."""
    found = np.full(len(trace), -1, np.int64)
    for rows in levels(tree.depth):
        above = tree.parent[rows]
        inherited = np.where(above >= 0, found[np.maximum(above, 0)], -1)
        found[rows] = np.where(inherited >= 0, inherited, np.where(chosen[rows], rows, -1))
    return found


def _outermost_op(trace: Trace, tree: Tree) -> np.ndarray:
    """For each event the outermost op around it that is neither an annotation nor a node."""
    return _within(trace, tree, ~np.isin(trace.kind, (ANNOTATION, NODE, ENGINE)))


def coalesced(entries: Iterable[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Times in microseconds and the bytes alive by category at each: a leading 0, then one number a category. What was there before
    the recording stands at the time of the first change."""
    times: list[int] = []
    sizes: list[list[int]] = []
    now = [0] * (len(Category) + 1)
    for at, _, nbytes, category in entries:
        now[category + 1] += nbytes
        if times and times[-1] == at // 1000:
            sizes[-1] = list(now)
        else:
            times.append(at // 1000)
            sizes.append(list(now))
    if len(times) > 1 and times[0] < 0:
        times[0] = times[1]
    return times, sizes


def page(times: list[int], sizes: list[list[int]]) -> bytes:
    """A page that needs nothing but itself."""
    from .html import memory_page

    page = io.BytesIO()
    memory_page(page, times, sizes)
    return page.getvalue()
