"""Devices: Results in; what each device did with its time and why it was idle out, for the report's view. The figures are the analyses'."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...analysis.device_breakdown import device_breakdown
from ...analysis.device_kernels import device_kernels
from ...analysis.idle_causes import QueueLength, idle_causes
from .overview import window
from .pack import Block

if TYPE_CHECKING:
    from ...torch_api.results import Results

MOST_ROWS = 50  # per table
MOST_STEPS = 400
_BINS = 240  # of the queues' curves


def device_block(results: Results) -> Block | None:
    """One entry per device; None without device work."""
    trace = results.trace
    device, (begin_ns, _) = trace.device, window(trace)  # as the timeline counts
    entries = []
    for times, kernels, idle in zip(device_breakdown(trace), device_kernels(trace), idle_causes(trace)):
        figures = times.to_dict()
        span = times.start_ns, times.end_ns
        entries.append(
            {
                **figures,
                "steps": [
                    {**step.to_dict(), "start_ns": step.start_ns - begin_ns}
                    for step in times.steps[:MOST_STEPS]
                ],
                "n_steps": len(times.steps),
                "by_type": [row.to_dict("name") for row in kernels.by_type],
                "by_op": [row.to_dict("name") for row in kernels.by_op[:MOST_ROWS]],
                "copies": [row.to_dict() for row in kernels.copies],
                "idle": {
                    **idle.to_dict(device.names, device.name, begin_ns, MOST_ROWS),
                    "queue_curves": [_curve(queue, span) for queue in idle.queues],
                },
            }
        )
    return Block({"devices": entries}) if entries else None


def _curve(queue: QueueLength, span: tuple[int, int]) -> dict[str, object]:
    """The longest that a stream's queue was in each part of the device's span."""
    edges = np.linspace(span[0], span[1], _BINS + 1)
    place = np.clip(np.searchsorted(edges, queue.time_ns, side="right") - 1, 0, _BINS - 1)
    longest = np.zeros(_BINS, np.int64)
    np.maximum.at(longest, place, queue.length)
    # a queue keeps its length through parts in which nothing is launched or started
    last = np.searchsorted(queue.time_ns, edges[:-1], side="right") - 1
    at_start = np.where(last >= 0, queue.length[np.maximum(last, 0)], 0)
    return {"stream": queue.stream, "longest": np.maximum(longest, at_start).tolist()}
