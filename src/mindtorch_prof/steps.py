"""Steps: names of events in; the numbers and rows of steps out. The one place that knows how torch names a step.

`torch.profiler.profile.step()` marks step N by an annotation `ProfilerStep#N`; averages show all of them as `ProfilerStep*`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from .trace import Trace

ALL_STEPS = "ProfilerStep*"
_STEP = re.compile(r"ProfilerStep#(\d+)$")


def step_name(number: int) -> str:
    """The name of a step."""
    return f"ProfilerStep#{number}"


def step_number(name: str) -> int:
    """The number of the step that an event of this name marks; -1: none."""
    match = _STEP.match(name)
    return int(match[1]) if match else -1


def step_numbers(names: Sequence[str], name: np.ndarray) -> np.ndarray:
    """By event (`name`: into `names`) the number of the step that it marks; -1: none."""
    by_name = np.array([step_number(text) for text in names] or [-1], np.int64)
    return by_name[name] if len(name) else np.empty(0, np.int64)


def is_step(trace: Trace) -> np.ndarray:
    """Mask of the events that mark steps. Files of 2021 have them among the ops."""
    return step_numbers(trace.names, trace.name) >= 0


def step_rows(trace: Trace) -> np.ndarray:
    """The rows of steps, in the order of time."""
    rows = np.flatnonzero(is_step(trace))
    return rows[np.argsort(trace.start_ns[rows], kind="stable")]


def steps_of(trace: Trace) -> tuple[tuple[int, ...], np.ndarray, np.ndarray]:
    """The steps of a trace: their numbers, for each event the index of the step it began in (-1: none), and the steps' lengths."""
    number = step_numbers(trace.names, trace.name)
    marks = np.flatnonzero(number >= 0)
    if not len(marks):
        return (), np.full(len(trace), -1, np.int64), np.empty(0, np.int64)
    known, index = np.unique(number[marks], return_inverse=True)
    step = np.full(len(trace), -1, np.int64)
    pids = trace.settings.thread_pids
    threads, place = np.unique(trace.thread, return_inverse=True)
    numbers_of: dict[str, int] = {}  # a file's pids may be anything
    process = np.array(
        [numbers_of.setdefault(repr(pids.get(t)), len(numbers_of)) for t in threads.tolist()] or [0], np.int64
    )[place.reshape(-1)]
    for pid in np.unique(process[marks]).tolist():
        mine = process[marks] == pid
        begin, until, which = trace.start_ns[marks][mine], trace.end_ns[marks][mine], index.reshape(-1)[mine]
        order = np.argsort(begin, kind="stable")
        begin, until, which = begin[order], until[order], which[order]
        rows = np.flatnonzero(process == pid)
        at = np.searchsorted(begin, trace.start_ns[rows], side="right") - 1
        inside = (at >= 0) & (trace.start_ns[rows] <= until[np.maximum(at, 0)])
        step[rows] = np.where(inside, which[np.maximum(at, 0)], -1)
    step[marks] = index.reshape(-1)
    lengths = np.zeros(len(known), np.int64)
    np.maximum.at(lengths, index.reshape(-1), (trace.end_ns - trace.start_ns)[marks])
    return tuple(known.tolist()), step, lengths
