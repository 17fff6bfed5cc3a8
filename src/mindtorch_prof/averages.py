"""Averages: a Trace and its tree in, one row per group out, as columns. Knows nothing of text, files or torch's classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .steps import ALL_STEPS, step_number
from .trace import ANNOTATION, Trace
from .tree import Tree


@dataclass(frozen=True)
class Rows:
    """One entry a group, in the order in which groups first appear."""

    first: np.ndarray  # row of the group's first event in the trace
    count: np.ndarray
    total_ns: np.ndarray
    self_ns: np.ndarray
    memory: np.ndarray
    self_memory: np.ndarray
    flops: np.ndarray
    device_memory: np.ndarray
    self_device_memory: np.ndarray
    device_ns: np.ndarray
    self_device_ns: np.ndarray
    names: tuple[str, ...]  # the group's name
    group: np.ndarray  # for each event that was grouped, in the trace's order, the number of its group


class Spread(NamedTuple):
    """How the times of one group's events are spread, in microseconds; `first` is the first call's."""

    min: float
    p50: float
    p95: float
    max: float
    std: float
    first: float


def merged(trace: Trace, parent: np.ndarray) -> np.ndarray:
    """Rows that are an only child of their parent's name: torch shows both as one event. A chain of such is one event: a row that
    goes hands its children to its parent, which has as many then and the same name, so each row can be judged by itself."""
    inner = parent >= 0
    children = np.bincount(parent[inner], minlength=len(trace))
    above = np.maximum(parent, 0)
    return inner & (children[above] == 1) & (trace.name[above] == trace.name) if len(trace) else inner


def group_names(trace: Trace) -> tuple[np.ndarray, tuple[str, ...]]:
    """For each name of the table, the number of its group and the groups' names: all steps are one group."""
    return named_groups(trace.names)


def named_groups(names: tuple[str, ...]) -> tuple[np.ndarray, tuple[str, ...]]:
    """As `group_names`, of any names."""
    ids: list[int] = []
    table: dict[str, int] = {}
    for text in names:
        shown = ALL_STEPS if step_number(text) >= 0 else text
        ids.append(table.setdefault(shown, len(table)))
    return np.array(ids, np.int64), tuple(table)


def averages(
    trace: Trace,
    tree: Tree,
    keep: np.ndarray,
    *,
    by_inputs: np.ndarray | None = None,
    by_stack: np.ndarray | None = None,
    by_overload: bool = False,
    device_ns: np.ndarray | None = None,
    self_device_ns: np.ndarray | None = None,
) -> Rows:
    """Group the events of `keep` (a mask) by name, and also by input shapes, stack or overload where given (numbers by row)."""
    rows = np.flatnonzero(keep)
    group_of, texts = group_names(trace)
    parts = [group_of[trace.name[rows]], (trace.kind[rows] == ANNOTATION).astype(np.int64)]
    if by_inputs is not None:
        parts.append(by_inputs[rows])
    if by_stack is not None:
        parts.append(by_stack[rows])
    if by_overload:
        parts.append(trace.name[rows].astype(np.int64))
    number, first = _number(parts)
    order = np.argsort(trace.start_ns[rows][first], kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    group, count = rank[number], len(order)

    def total(values: np.ndarray | None) -> np.ndarray:
        if values is None:
            return np.zeros(count, np.int64)
        return np.bincount(group, weights=values[rows], minlength=count).astype(np.int64)

    leading = rows[first][order]
    return Rows(
        leading,
        np.bincount(group, minlength=count),
        total(trace.end_ns - trace.start_ns),
        total(tree.self_ns),
        total(tree.memory),
        total(tree.self_memory),
        total(trace.flops),
        total(tree.device_memory),
        total(tree.self_device_memory),
        total(device_ns),
        total(self_device_ns),
        tuple(texts[group_of[n]] for n in trace.name[leading].tolist()),
        group,
    )


def spreads(trace: Trace, rows: Rows, keep: np.ndarray) -> list[Spread]:
    """The spread of each group of `averages`: one sort of all durations, then a look at each group's part."""
    duration = (trace.end_ns - trace.start_ns)[keep] / 1000.0
    order = np.lexsort((trace.start_ns[keep], rows.group))
    return [spread_of(part) for part in np.split(duration[order], np.cumsum(rows.count)[:-1])]


def spread_of(times: np.ndarray) -> Spread:
    """The spread of times that are in the order of their beginning."""
    p50, p95 = np.percentile(times, (50, 95)).tolist()
    return Spread(float(times.min()), p50, p95, float(times.max()), float(times.std()), float(times[0]))


def _number(parts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Equal tuples get equal numbers; and the first place of each."""
    combined = parts[0]
    for part in parts[1:]:
        _, part = np.unique(part, return_inverse=True)
        combined = combined * (int(part.max(initial=0)) + 1) + part.reshape(-1)
    _, first, number = np.unique(combined, return_index=True, return_inverse=True)
    return number.reshape(-1), first


def shape_numbers(trace: Trace, shapes: list[Any]) -> np.ndarray:
    """For each event a number of its input shapes; events without any share one."""
    table: dict[str, int] = {}
    by_index = np.array(
        [table.setdefault(str(s), len(table)) for s in shapes] + [table.setdefault("[]", len(table))],
        np.int64,
    )
    return by_index[trace.inputs]
