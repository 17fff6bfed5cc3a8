"""Repeats: a recording in; totals and repeated measurements per group of events (op, shape, stack, module) out.

Steps are the repeats if the trace has steps (ProfilerStep#N), else calls. `diff` and `check` compare what is measured here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .. import averages as grouping
from ..arrays import FloatArray, IntArray
from ..call_paths import STACK_DEPTH, Paths, call_paths
from ..frames import MODULE_PREFIX
from ..steps import steps_of
from ..trace import Trace
from ..tree import innermost, nearest, sum_by, thread_slices
from .figures import figures
from .recording import Recording, as_results

if TYPE_CHECKING:
    from ..torch_api.results import Results

BY = ("op", "shape", "stack", "module")
TIMES = ("self_cpu", "cpu", "self_device", "device")  # nanoseconds
COUNTERS = ("count", "flops", "memory", "kernels")

Key = tuple[str, ...]


@dataclass(frozen=True)
class Measured:
    """The groups of one trace. With steps, events outside of steps are left out; `outside_ns` is their self time."""

    by: tuple[str, ...]
    keys: tuple[Key, ...]
    totals: dict[str, IntArray]  # by TIMES and COUNTERS: one value per group
    steps: tuple[int, ...]  # numbers of the steps; empty: the repeats are calls
    columns: dict[
        str, IntArray
    ]  # by TIMES: one value per (group, step); without steps, one per event that has a time
    group: IntArray  # the group of each of these events (not used with steps)
    timed_calls: (
        IntArray  # by group: how many events have a time: all but synthetic ones, unless there are no others
    )
    outside_ns: int = 0
    peak_memory: int | None = (
        None  # bytes, of the device with the highest peak; None: memory was not recorded
    )
    has: frozenset[str] = frozenset()  # which of shapes, memory, flops, device, stacks, modules were recorded
    step_ns: IntArray = field(default_factory=lambda: np.empty(0, np.int64))  # how long each step took
    without_op_share: float = 0.0  # of the device time: no group has it

    @property
    def repeats(self) -> str:
        return "steps" if self.steps else "calls"

    @property
    def runs(self) -> int:
        """The number of steps, or 1: totals divided by it are comparable."""
        return max(len(self.steps), 1)

    @cached_property
    def place(self) -> dict[Key, int]:
        return {key: number for number, key in enumerate(self.keys)}

    def samples(self, metric: str) -> list[FloatArray]:
        """For each group the repeated measurements of a time, in microseconds."""
        values = self.columns[metric]
        if self.steps:
            return list(values / 1000.0)
        order = np.argsort(self.group, kind="stable")
        counts = np.bincount(self.group, minlength=len(self.keys))
        return np.split(values[order] / 1000.0, np.cumsum(counts)[:-1]) if len(self.keys) else []


def measure(source: Recording, by: Sequence[str] = ("op",), *, use_steps: bool = True) -> Measured:
    """Group the events of a recording by some of BY."""
    results = as_results(source)
    wrong = [name for name in by if name not in BY]
    if wrong:
        raise ValueError(f"cannot group by {wrong[0]!r}; expected some of {', '.join(BY)}")
    trace = results.trace
    steps, step, step_ns = steps_of(trace) if use_steps else ((), np.full(len(trace), -1, np.int64), None)
    shown = results.shown
    keep = shown & (step >= 0) if steps else shown
    rows = np.flatnonzero(keep)
    texts = _key_columns(results, by)
    number, keys = _keys(texts, rows)
    values = _values(results)
    totals = {name: sum_by(number, values[name][rows], len(keys)) for name in (*TIMES, *COUNTERS)}
    timed = grouping.timed_events(trace.is_recorded[rows], number)
    if steps:
        cells = number * len(steps) + step[rows]
        columns = {
            name: sum_by(cells, values[name][rows], len(keys) * len(steps)).reshape(len(keys), len(steps))
            for name in TIMES
        }
    else:
        columns = {name: values[name][rows[timed]] for name in TIMES}
    return Measured(
        tuple(by),
        keys,
        totals,
        steps,
        columns,
        number[timed],
        np.bincount(number[timed], minlength=len(keys)),
        int(values["self_cpu"][shown & ~keep].sum()),
        _peak(trace),
        frozenset(_recorded(results.trace)),
        step_ns if step_ns is not None else np.empty(0, np.int64),
        figures(results).device_without_op_share,
    )


def _values(results: Results) -> dict[str, IntArray]:
    """For each event of the trace its TIMES and COUNTERS."""
    trace = results.trace
    device = results.device_columns
    no_time = np.zeros(len(trace), np.int64)
    return {
        "self_cpu": results.shown_self_ns,
        "cpu": trace.end_ns - trace.start_ns,
        "self_device": no_time if device is None else device.own_ns,
        "device": no_time if device is None else device.total_ns,
        "count": np.ones(len(trace), np.int64),
        "flops": np.maximum(trace.flops, 0),
        "memory": results.shown_self_memory,
        "kernels": _launch_counts(results),
    }


def _launch_counts(results: Results) -> IntArray:
    """For each event the number of device events (kernels, copies, memsets) that it launched itself."""
    device = results.trace.device
    op = device.op[device.works & (device.op >= 0)]
    op = np.where(results.shown[op], op, results.shown_parent[op])  # an event may be merged into its parent
    return np.bincount(op[op >= 0], minlength=len(results.trace))


def _peak(trace: Trace) -> int | None:
    if not len(trace.memory.time_ns):
        return None
    return int(trace.memory.total.max(initial=0))


def _recorded(trace: Trace) -> list[str]:
    return [
        name
        for name, present in (
            ("shapes", bool((trace.inputs >= 0).any())),
            ("memory", len(trace.memory.time_ns) > 0),
            ("flops", bool((trace.flops > 0).any())),
            ("device", bool(trace.device.works.any())),
            ("stacks", bool((trace.stack >= 0).any())),
            ("modules", bool((trace.frames.module >= 0).any())),
        )
        if present
    ]


# ---------------------------------------------------------------------------------------------------- keys


def _key_columns(results: Results, by: Sequence[str]) -> list[tuple[IntArray, list[str]]]:
    """For each part of a key: a number per event, and the text of each number."""
    trace = results.trace
    columns: list[tuple[IntArray, list[str]]] = []
    group_of, texts = grouping.group_names(trace)
    for name in by:
        if name == "op":
            columns.append((group_of[trace.name] if len(group_of) else trace.name, list(texts)))
        elif name == "shape":
            shapes = [str(inputs.shapes) for inputs in trace.input_table]
            columns.append((trace.inputs, [*shapes, ""]))
        elif name == "stack":
            stacks = [" < ".join(stack[:STACK_DEPTH]) for stack in trace.stacks]
            columns.append((trace.stack, [*stacks, ""]))
        else:
            from .groups import backward_modules  # which imports `modules_of` from here

            columns.append(backward_modules(results))
    return columns


def _keys(columns: list[tuple[IntArray, list[str]]], rows: IntArray) -> tuple[IntArray, tuple[Key, ...]]:
    """For each row the number of its key, in the order of first appearance; and the keys."""
    combined = np.zeros(len(rows), np.int64)
    for number, texts in columns:
        table: dict[str, int] = {}
        same = np.array([table.setdefault(text, len(table)) for text in texts] or [0], np.int64)
        combined = combined * (len(table) + 1) + same[number[rows]]
        combined = np.unique(combined, return_inverse=True)[1].reshape(-1)
    _, first, number = np.unique(combined, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    leading = rows[first[order]]
    parts = [[texts[n] for n in number_[leading].tolist()] for number_, texts in columns]
    return rank[number.reshape(-1)], tuple(zip(*parts)) if parts else ()


def modules_of(trace: Trace) -> tuple[IntArray, list[str]]:
    """For each event the number of the innermost module whose call contains it, and the modules' paths (Net_0.Linear_1); the last, "", is
    for events outside of modules."""
    frames = trace.frames
    number = np.full(len(trace), -1, np.int64)
    calls = np.flatnonzero(frames.module >= 0)
    texts: dict[str, int] = {}
    if len(calls):
        ids, paths, parent = _module_paths(trace, calls)
        place: IntArray = np.full(len(calls), -1, np.int64)  # of a call among those of its thread
        for first, last in thread_slices(trace.thread):
            here = np.flatnonzero(frames.thread[calls] == trace.thread[first])
            if not len(here):
                continue
            up = parent[here]
            place[here] = np.arange(len(here))
            up = np.where((up >= 0) & (frames.thread[calls[up]] == trace.thread[first]), place[up], -1)
            around = innermost(
                frames.start_ns[calls[here]], frames.end_ns[calls[here]], up, trace.start_ns[first:last]
            )
            number[first:last] = np.where(around < 0, -1, ids[here[np.maximum(around, 0)]])
        # only of modules with events: all paths of modules nested deeply would be the square of their depth
        used, place_of = np.unique(number, return_inverse=True)
        same = [
            texts.setdefault(
                ".".join(name.removeprefix(MODULE_PREFIX) for name in reversed(paths[path])), len(texts)
            )
            for path in used[used >= 0].tolist()
        ]
        number = np.array([-1] * int((used < 0).sum()) + same, np.int64)[place_of.reshape(-1)]
    return number, [*texts, ""]


def _module_paths(trace: Trace, calls: IntArray) -> tuple[IntArray, Paths, IntArray]:
    """The number of the path of each module's call, the paths, and the index (among the calls) of the call that contains it; -1: none."""
    frames = trace.frames
    parent = frames.parent[calls]
    parent = np.where(parent >= 0, nearest(frames.parent, frames.module >= 0)[np.maximum(parent, 0)], -1)
    above = np.where(parent < 0, -1, np.searchsorted(calls, np.maximum(parent, 0)))
    callers = np.where(above < np.arange(len(calls)), above, -1)
    return *call_paths(frames.names, frames.name[calls], callers), above
