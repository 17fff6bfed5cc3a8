"""Calls: Results in; events and Python frames as one tree out, as columns. Also finds which event or module contains a time.

Events nest, and Python frames nest, but in torch's files an event and a frame may partly overlap. The parent of a call is therefore the
event or the frame around its start that started later, even if that does not contain all of the call.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import BoolArray, IntArray
from ...averages import group_names
from ...communication import on_host
from ...frames import MODULE_PREFIX
from ...steps import is_step
from ...trace import ANNOTATION, ENGINE, NODE, RUNTIME, Trace
from ...tree import events_at, innermost, nearest, thread_slices

if TYPE_CHECKING:
    from ...torch_api.results import Results

# categories of calls, as the page colours them
OP, AUTOGRAD, OPTIMIZER, DATA, USER, MODULE, FRAME, RUNTIME_CALL, KERNEL, COPY, COMMUNICATION = range(11)
CATEGORIES = (
    "Operators",
    "Autograd",
    "Optimizer",
    "Data loading",
    "Annotations",
    "Modules",
    "Python",
    "Runtime",
    "Kernels",
    "Copies",
    "Communication",
)
_NUMBER = re.compile(r"_\d+$")


@dataclass(frozen=True)
class Calls:
    """Events first (rows 0 ... events - 1), then frames."""

    names: list[str]
    name: IntArray
    category: IntArray
    start_ns: IntArray
    duration_ns: IntArray
    parent: IntArray  # -1: none
    row: IntArray  # of the trace (events) or of its frames
    events: int


def annotation_categories(names: tuple[str, ...]) -> IntArray:
    """The categories of annotations by their names: an optimizer's step, data loading, communication, or the user's own."""
    by_name = np.array([_annotation_category(name) for name in names], np.int8)
    by_name[on_host(names)] = COMMUNICATION
    return by_name


def _annotation_category(name: str) -> int:
    if name.startswith("Optimizer."):
        return OPTIMIZER
    if name.startswith(("enumerate(DataLoader)", "DataLoader", "[pl][profile]train_dataloader")):
        return DATA
    return USER


def event_categories(trace: Trace) -> IntArray:
    """The category of each event."""
    by_name = annotation_categories(trace.names)
    category = np.zeros(len(trace), np.int8)
    if len(by_name):
        # in files of 2021, annotations have the kind of ops
        category = np.where(by_name == USER, OP, by_name)[trace.name].astype(np.int8)
        category[is_step(trace)] = USER
    category[(trace.kind == NODE) | (trace.kind == ENGINE)] = AUTOGRAD
    category[trace.kind == RUNTIME] = RUNTIME_CALL
    annotations = trace.kind == ANNOTATION
    if annotations.any():
        category[annotations] = by_name[trace.name[annotations]]
    return category


def calls(results: Results, *, python: bool, by_class: bool = False) -> Calls:
    """The shown events and the calls of modules; with `python`, all Python frames.

    by_class: all modules of a class have the same name, so that equal layers of a model are merged.
    """
    trace, frames = results.trace, results.trace.frames
    rows = np.flatnonzero(results.shown)
    place = np.full(len(trace) + 1, -1, np.int64)  # the last entry is for row -1
    place[rows] = np.arange(len(rows))
    group_of, texts = group_names(trace)
    names = list(texts)
    event_parent = results.shown_parent[rows]
    if not len(frames):
        return Calls(
            names,
            group_of[trace.name[rows]],
            event_categories(trace)[rows],
            trace.start_ns[rows],
            (trace.end_ns - trace.start_ns)[rows],
            place[event_parent],
            rows,
            len(rows),
        )
    keep = np.ones(len(frames), bool) if python else frames.module >= 0
    kept = np.flatnonzero(keep)
    frame_place = np.full(len(frames) + 1, -1, np.int64)
    frame_place[kept] = np.arange(len(kept)) + len(rows)
    frame_parent = kept_parents(frames.parent, keep)
    # the parent is the frame or the event that started later
    around = _frames_at(trace, trace.start_ns[rows], trace.thread[rows])
    around = np.where(around >= 0, np.where(keep[around], around, frame_parent[around]), -1)
    start_ns = np.append(trace.start_ns, 0)  # the last entry is for row -1, of traces without events too
    inner = (around >= 0) & ((event_parent < 0) | (frames.start_ns[around] > start_ns[event_parent]))
    above_event = np.where(inner, frame_place[around], place[event_parent])
    outside = events_at(trace, results.nesting.parent, frames.start_ns[kept] - 1, frames.thread[kept])
    outside = shown_rows(results, outside)
    own = frame_parent[kept]
    outer = (outside >= 0) & ((own < 0) | (start_ns[outside] >= frames.start_ns[np.maximum(own, 0)]))
    above_frame = np.where(outer, place[outside], frame_place[own])
    frame_category = np.where(frames.module[kept] >= 0, MODULE, FRAME)
    shown = [name.removeprefix(MODULE_PREFIX) for name in frames.names]
    frame_name: IntArray = frames.name[kept].astype(np.int64)
    if by_class:
        shown, numbers = _class_names(shown)
        frame_name = numbers[frame_name]
    return Calls(
        names + shown,
        np.concatenate([group_of[trace.name[rows]], frame_name + len(names)]),
        np.concatenate([event_categories(trace)[rows], frame_category.astype(np.int8)]),
        np.concatenate([trace.start_ns[rows], frames.start_ns[kept]]),
        np.concatenate([(trace.end_ns - trace.start_ns)[rows], (frames.end_ns - frames.start_ns)[kept]]),
        np.concatenate([above_event, above_frame]),
        np.concatenate([rows, kept]),
        len(rows),
    )


def _class_names(names: list[str]) -> tuple[list[str], IntArray]:
    """The distinct names of modules without their numbers, and for each name the index of its class."""
    table: dict[str, int] = {}
    numbers = [table.setdefault(_NUMBER.sub("", name), len(table)) for name in names]
    return list(table), np.array(numbers, np.int64)


def kept_parents(parent: IntArray, keep: BoolArray) -> IntArray:
    """For each row the nearest row above it that is kept; -1: none."""
    return np.where(parent >= 0, nearest(parent, keep)[np.maximum(parent, 0)], -1)


def _frames_at(trace: Trace, times: IntArray, threads: IntArray) -> IntArray:
    """For each time and thread the row of the innermost frame; -1: none."""
    frames = trace.frames
    rows = np.full(len(times), -1, np.int64)
    for first, last in thread_slices(frames.thread):
        here = np.flatnonzero(threads == frames.thread[first])
        if not len(here):
            continue
        part = slice(first, last)
        above = frames.parent[part]
        above = np.where((above >= first) & (above < last), above - first, -1)
        inside = innermost(frames.start_ns[part], frames.end_ns[part], above, times[here])
        rows[here] = np.where(inside >= 0, inside + first, -1)
    return rows


def modules_at(trace: Trace, times: IntArray, threads: IntArray) -> IntArray:
    """For each time and thread the innermost call of a module (a row of the frames); -1: none."""
    frames = trace.frames
    frame = _frames_at(trace, times, threads)
    above = kept_parents(frames.parent, frames.module >= 0)
    return np.where(frame >= 0, np.where(frames.module[frame] >= 0, frame, above[frame]), -1)


def shown_rows(results: Results, rows: IntArray) -> IntArray:
    """For each row of the trace, itself or its nearest shown ancestor; -1: none."""
    if not len(results.trace):
        return np.full(len(rows), -1, np.int64)
    safe = np.maximum(rows, 0)
    return np.where((rows < 0) | results.shown[safe], rows, results.shown_parent[safe])


def forward_of(trace: Trace, parent: IntArray) -> tuple[IntArray, IntArray]:
    """Rows of backward nodes, and for each the row of its forward op."""
    backward = (trace.sequence >= 0) & ((trace.kind == NODE) | (trace.forward_thread != 0))
    nodes = np.flatnonzero(backward & (trace.kind != ENGINE))
    forward = np.flatnonzero(
        (trace.sequence >= 0) & ~backward & (trace.kind != ENGINE) & (trace.kind != ANNOTATION)
    )
    if not (len(nodes) and len(forward)):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    # each thread has its own sequence numbers
    several = len(np.unique(trace.thread[forward])) > 1
    key = trace.sequence[forward]
    wanted = trace.sequence[nodes]
    if several:
        threads, numbers = np.unique(
            np.concatenate([trace.thread[forward], trace.forward_thread[nodes]]), return_inverse=True
        )
        numbers = numbers.reshape(-1)
        key = key * len(threads) + numbers[: len(forward)]
        wanted = wanted * len(threads) + numbers[len(forward) :]
    # ops without a gradient carry the number of the next op that has one: the last op of a number is the node's
    order = np.lexsort((trace.start_ns[forward], key))
    key, forward = key[order], forward[order]
    place = np.searchsorted(key, wanted, side="right") - 1
    safe = np.maximum(place, 0)
    matched = (place >= 0) & (key[safe] == wanted)
    matched &= trace.start_ns[forward[safe]] <= trace.start_ns[nodes]
    nodes, ops = nodes[matched], forward[safe][matched]
    # of nested ops with the same number, the outermost
    while len(ops):
        above = parent[ops]
        same = (
            (above >= 0)
            & (trace.sequence[above] == trace.sequence[ops])
            & (trace.kind[above] == trace.kind[ops])
        )
        if not same.any():
            break
        ops = np.where(same, above, ops)
    return nodes, ops
