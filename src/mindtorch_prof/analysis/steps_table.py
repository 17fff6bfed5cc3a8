"""Table of steps: a recording in; one row per step (ProfilerStep#N) out: its duration, and how busy CPU and device were."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Array, BoolArray, FloatArray, rows_by
from ..steps import is_step, steps_of
from ..trace import ANNOTATION, PYTHON
from .device_breakdown import counted_work, steps_of_device_work
from .intervals import covered, union
from .recording import Recording, as_results
from .sheet import Sheet

if TYPE_CHECKING:
    from ..torch_api.results import Results


def steps_table(source: Recording) -> Sheet:
    """One row per step; no rows if the recording has no steps.

    Busy times are within the time of the step, that of several devices is their mean; device events count for the step in which they were launched (`steps_of_device_work`), those
    launched before the recording for none.
    """
    results = as_results(source)
    trace = results.trace
    numbers, step, lengths = steps_of(trace)
    marks = np.flatnonzero((step >= 0) & is_step(trace))
    count = len(numbers)
    begin = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(begin, step[marks], trace.start_ns[marks])
    end = begin + lengths
    work = working(results)
    events = np.bincount(step[work & (step >= 0)], minlength=count) if count else np.zeros(0, np.int64)
    op_spans = union(trace.start_ns[work], trace.end_ns[work])
    columns: dict[str, Array] = {
        "step": np.array(numbers, np.int64),
        "start_us": (begin - trace.window_ns[0]) / 1000,
        "duration_us": lengths / 1000,
        "events": events,
        "busy_us": covered(op_spans, begin, end) / 1000,
    }
    columns["busy_share"] = _share(columns["busy_us"], columns["duration_us"])
    device = trace.device
    if device.works.any():
        of_work = steps_of_device_work(trace)[1][counted_work(device)]
        works = np.flatnonzero(device.works)
        busy = [
            covered(union(device.start_ns[works[own]], device.end_ns[works[own]]), begin, end)
            for _, own in rows_by(device.device[works])
        ]
        columns["device_events"] = np.bincount(of_work[of_work >= 0], minlength=count)[:count]
        columns["device_busy_us"] = np.mean(busy, axis=0) / 1000
        columns["device_busy_share"] = _share(columns["device_busy_us"], columns["duration_us"])
    return Sheet(columns, count)


def working(results: Results) -> BoolArray:
    """Mask of the events that do work: neither annotations nor Python calls, nor synthetic. Files of 2021 have steps among the ops."""
    trace = results.trace
    mask: BoolArray = (
        (trace.kind != ANNOTATION) & (trace.kind != PYTHON) & ~is_step(trace) & trace.is_recorded
    )
    return mask


def _share(part: FloatArray, whole: FloatArray) -> FloatArray:
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
