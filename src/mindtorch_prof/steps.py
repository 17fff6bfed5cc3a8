"""Steps: names of events in; the numbers and rows of steps out. The one place that knows how torch names a step.

`torch.profiler.profile.step()` marks step N by an annotation `ProfilerStep#N`; averages show all of them as `ProfilerStep*`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from .arrays import BoolArray, IntArray, rows_by
from .trace import Trace

ALL_STEPS = "ProfilerStep*"
STEP_PREFIX = "ProfilerStep#"
_STEP = re.compile(STEP_PREFIX + r"([0-9]{1,18})$")  # no more digits than an int64 holds


def step_name(number: int) -> str:
    """The name of a step."""
    return f"{STEP_PREFIX}{number}"


def step_number(name: str) -> int:
    """The number of the step that an event of this name marks; -1: none."""
    match = _STEP.match(name)
    return int(match[1]) if match else -1


def step_numbers(names: Sequence[str], name: IntArray) -> IntArray:
    """By event (`name`: into `names`) the number of the step that it marks; -1: none."""
    by_name = np.array([step_number(text) for text in names] or [-1], np.int64)
    return by_name[name] if (by_name >= 0).any() else np.full(len(name), -1, np.int64)


def is_step(trace: Trace) -> BoolArray:
    """Mask of the events that mark steps. Files of 2021 have them among the ops."""
    return step_numbers(trace.names, trace.name) >= 0


def step_rows(trace: Trace) -> IntArray:
    """The rows of steps, in the order of time."""
    rows = np.flatnonzero(is_step(trace))
    return rows[np.argsort(trace.start_ns[rows], kind="stable")]


def steps_of(trace: Trace) -> tuple[tuple[int, ...], IntArray, IntArray]:
    """The steps of a trace: their numbers, for each event the index of the step it begins in (-1: none), and the steps' lengths."""
    number = step_numbers(trace.names, trace.name)
    marks = np.flatnonzero(number >= 0)
    if not len(marks):
        return (), np.full(len(trace), -1, np.int64), np.empty(0, np.int64)
    distinct, step_of_mark = np.unique(number[marks], return_inverse=True)
    step_of_mark = step_of_mark.reshape(-1)
    step = np.full(len(trace), -1, np.int64)
    process = processes_of(trace)
    marks_of = dict(rows_by(process[marks]))
    for pid, rows in rows_by(process):
        if pid not in marks_of:
            continue
        chosen = marks_of[pid]
        chosen = chosen[np.argsort(trace.start_ns[marks[chosen]], kind="stable")]
        begin, until = trace.start_ns[marks[chosen]], trace.end_ns[marks[chosen]]
        last_begun = np.searchsorted(begin, trace.start_ns[rows], side="right") - 1
        candidate = np.maximum(last_begun, 0)
        inside = (last_begun >= 0) & (trace.start_ns[rows] <= until[candidate])
        step[rows] = np.where(inside, step_of_mark[chosen[candidate]], -1)
    step[marks] = step_of_mark
    lengths = np.zeros(len(distinct), np.int64)
    np.maximum.at(lengths, step_of_mark, (trace.end_ns - trace.start_ns)[marks])
    return tuple(distinct.tolist()), step, lengths


def processes_of(trace: Trace) -> IntArray:
    """For each event a number of its process, from 0."""
    pids = trace.settings.thread_pids
    threads, place = np.unique(trace.thread, return_inverse=True)
    numbers: dict[str, int] = {}  # by text: a file's pids may be of any type
    by_thread = [numbers.setdefault(repr(pids.get(t)), len(numbers)) for t in threads.tolist()]
    return np.array(by_thread or [0], np.int64)[place.reshape(-1)]
