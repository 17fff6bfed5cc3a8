"""Averages: a Trace and its tree in, one row per group out, as columns. Knows nothing of text, files or torch's classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .arrays import Array, BoolArray, FloatArray, IntArray
from .steps import ALL_STEPS, step_number
from .trace import ANNOTATION, Trace
from .tree import Tree


@dataclass(frozen=True)
class Rows:
    """One entry per group, in the order in which groups first appear."""

    first: IntArray  # row of the group's first event in time
    count: IntArray
    synthetic: IntArray  # how many of them are synthetic
    total_ns: IntArray
    self_ns: IntArray
    memory: IntArray
    self_memory: IntArray
    flops: IntArray
    device_memory: IntArray
    self_device_memory: IntArray
    device_ns: IntArray
    self_device_ns: IntArray
    names: tuple[str, ...]  # the group's name
    group: IntArray  # for each event that was grouped, in the trace's order, the number of its group


class Spread(NamedTuple):
    """How the times of one group's events are spread, in microseconds; `first` is the first call's."""

    min: float
    p50: float
    p95: float
    max: float
    std: float
    first: float


def merged(trace: Trace, parent: IntArray) -> BoolArray:
    """Mask of the rows that torch merges into their parent: only children that have their parent's name.

    Each row can be judged by itself: a merged row leaves its children to its parent, which then has as many of them and the same name.
    """
    inner = parent >= 0
    children = np.bincount(parent[inner], minlength=len(trace))
    above = np.maximum(parent, 0)
    if not len(trace):
        return inner
    # overloads of one op have different ids
    texts: dict[str, int] = {}
    text_of = np.array([texts.setdefault(name, len(texts)) for name in trace.names], np.int64)
    text: IntArray = text_of[trace.name]
    is_merged: BoolArray = inner & (children[above] == 1) & (text[above] == text)
    return is_merged


def group_names(trace: Trace) -> tuple[IntArray, tuple[str, ...]]:
    """For each name of the table, the number of its group and the groups' names: all steps are one group."""
    return named_groups(trace.names)


def named_groups(names: tuple[str, ...]) -> tuple[IntArray, tuple[str, ...]]:
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
    keep: BoolArray,
    *,
    by_inputs: IntArray | None = None,
    by_stack: IntArray | None = None,
    by_overload: bool = False,
    device_ns: IntArray | None = None,
    self_device_ns: IntArray | None = None,
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
    number, first = dense_numbers(parts)
    start = trace.start_ns[rows]
    if (start[1:] < start[:-1]).any():  # several threads: the first row of a group is not its first event
        in_time = np.argsort(start, kind="stable")
        first[number[in_time[::-1]]] = in_time[::-1]  # of several rows of a group the last one assigned stays
    order = np.lexsort((first, start[first]))  # of events that start together the outer one comes first
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    group, count = place[number], len(order)

    def total(values: IntArray | None) -> IntArray:
        if values is None:
            return np.zeros(count, np.int64)
        return np.bincount(group, weights=values[rows], minlength=count).astype(np.int64)

    first_rows = rows[first][order]
    return Rows(
        first_rows,
        np.bincount(group, minlength=count),
        np.bincount(group[~trace.is_recorded[rows]], minlength=count),
        total(trace.end_ns - trace.start_ns),
        total(tree.self_ns),
        total(tree.memory),
        total(tree.self_memory),
        total(trace.flops),
        total(tree.device_memory),
        total(tree.self_device_memory),
        total(device_ns),
        total(self_device_ns),
        tuple(texts[group_of[n]] for n in trace.name[first_rows].tolist()),
        group,
    )


def spreads(trace: Trace, rows: Rows, keep: BoolArray) -> list[Spread]:
    """The spread of each group of `averages`."""
    events = np.flatnonzero(keep)
    timed = timed_events(trace.is_recorded[events], rows.group)
    events, group = events[timed], rows.group[timed]
    duration = (trace.end_ns - trace.start_ns)[events] / 1000.0
    return spread_rows(duration, trace.start_ns[events], group, len(rows.count))


def timed_events(is_recorded: BoolArray, group: IntArray) -> BoolArray:
    """Mask of the events whose durations tell of their group's: the recorded ones; in a group that has none, the synthetic ones, of
    duration 0."""
    if is_recorded.all():
        return is_recorded
    has_recorded = np.bincount(group[is_recorded], minlength=int(group.max(initial=-1)) + 1) > 0
    timed: BoolArray = is_recorded | ~has_recorded[group]
    return timed


def spread_rows(times: FloatArray, starts: Array, group: IntArray, count: int) -> list[Spread]:
    """As `spread_columns`, one Spread per group."""
    columns = spread_columns(times, starts, group, count)
    return [Spread(*row) for row in zip(*(columns[name].tolist() for name in Spread._fields))]


def spread_columns(times: FloatArray, starts: Array, group: IntArray, count: int) -> dict[str, FloatArray]:
    """The spread of the times of each of `count` groups, one column per field of `Spread`: two sorts of all times, then lookups in them.
    NaN for a group that has no times. Percentiles are interpolated, as NumPy's are."""
    calls = np.bincount(group, minlength=count)
    known = np.flatnonzero(calls)
    begin = (np.cumsum(calls) - calls)[known]
    last = calls[known] - 1
    ordered = times[np.lexsort((times, group))]
    mean = np.bincount(group, weights=times, minlength=count) / np.maximum(calls, 1)
    squares = np.bincount(group, weights=(times - mean[group]) ** 2, minlength=count)

    def percentile(share: float) -> FloatArray:
        place = share * last
        low = place.astype(np.int64)
        below, above = ordered[begin + low], ordered[begin + np.minimum(low + 1, last)]
        interpolated: FloatArray = below + (above - below) * (place - low)
        return interpolated

    of_known: dict[str, FloatArray] = {
        "min": ordered[begin],
        "p50": percentile(0.50),
        "p95": percentile(0.95),
        "max": ordered[begin + last],
        "std": np.sqrt(squares[known] / calls[known]),
        "first": times[np.lexsort((starts, group))][begin],
    }
    columns = {name: np.full(count, np.nan) for name in Spread._fields}
    for name, values in of_known.items():
        columns[name][known] = values
    return columns


def dense_numbers(parts: list[IntArray]) -> tuple[IntArray, IntArray]:
    """Columns as keys: a number for each row, equal where all columns are, and the first row of each number."""
    combined = parts[0]
    for part in parts[1:]:
        part, _ = _dense(part)
        combined = combined * (int(part.max(initial=0)) + 1) + part
    return _dense(combined)


def _dense(values: IntArray) -> tuple[IntArray, IntArray]:
    """Values as numbers from 0 on, in the order of the values, and the first row of each number."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    if high - low > 4 * len(values) + 1024:
        _, first, number = np.unique(values, return_index=True, return_inverse=True)
        return number.reshape(-1), first
    # values of a small range are numbered through a table of it: about ten times as fast as sorting them
    place = values - low
    first_row = np.full(high - low + 1, -1, np.int64)
    first_row[place[::-1]] = np.arange(len(values) - 1, -1, -1)  # of equal places the last one assigned stays
    present = first_row >= 0
    return (np.cumsum(present) - 1)[place], first_row[present]


def shape_numbers(trace: Trace, shapes: Sequence[object]) -> IntArray:
    """For each event a number of its input shapes; events without any share one."""
    table: dict[str, int] = {}
    texts = [*map(str, shapes), "[]"]  # the last one for -1: no inputs
    by_index: IntArray = np.array([table.setdefault(text, len(table)) for text in texts], np.int64)
    return by_index[trace.inputs]
