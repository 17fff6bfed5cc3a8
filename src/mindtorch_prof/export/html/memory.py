"""Memory: Results in; allocated bytes over time by category, what was allocated at the peak, and the largest allocations out."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import numpy as np

from ...allocations import lifetimes
from ...analysis.figures import MemoryFigures, memory_figures
from ...analysis.memory_breakdown import memory_categories
from ...arrays import IntArray
from ...torch_api.memory_categories import CATEGORY_INDEX, Category, category_label
from ...trace import Trace
from ...tree import memory_events
from .calls import shown_rows
from .pack import Block

if TYPE_CHECKING:
    from ...torch_api.results import Results

MOST_POINTS = 3_000  # per curve
MOST_ROWS = 300  # per table

CATEGORIES = (*map(category_label, CATEGORY_INDEX), "Pre-existing")


class _Peak(TypedDict):
    peak: int  # of the recording's running totals
    before: int  # bytes of modules that were allocated before the recording, which the totals do not count
    peak_ns: int
    at_peak: list[int]  # bytes by category, of both


def memory_block(results: Results) -> tuple[Block | None, list[tuple[str, int]]]:
    """Curves and tables for each device whose memory was recorded, None if none was; and the label and peak of each device."""
    trace = results.trace
    memory = trace.memory
    if not len(memory):
        return None, []
    born, died = _lifetimes(trace)
    category = memory_categories(results, born, died)
    at = memory_events(trace, results.nesting.parent, memory.time_ns[born], memory.thread[born])
    at = shown_rows(results, at)
    where = memory.device if memory.device is not None else np.full(len(memory), -1, np.int64)
    block = Block()
    devices: list[dict[str, object]] = []
    known = memory_figures(trace)
    for number, figures in enumerate(known):
        rows = np.flatnonzero(where == figures.device)
        on_device = where[born] == figures.device
        peak, tables = _add_device(
            block,
            f"{number}",
            trace,
            figures,
            rows,
            born[on_device],
            died[on_device],
            category[on_device],
            at[on_device],
        )
        devices.append({"label": figures.label, **peak, **tables})
    block.values = {"categories": CATEGORIES, "devices": devices}
    return block, [(figures.label, figures.peak_bytes) for figures in known]


def timeline_page_block(times: list[int], sizes: list[list[int]]) -> Block:
    """The curve of a memory timeline: times in microseconds and bytes by category, as `sizes_over_time` returns them."""
    block = Block()
    curve = np.array(sizes, np.int64).reshape(len(times), -1)[:, 1:]
    curve = np.hstack([curve, np.zeros((len(curve), 1), np.int64)])
    at = (np.array(times, np.int64) - (times[0] if times else 0)) * 1000
    _add_curve(block, "0", at, curve)
    block.values = {
        "categories": CATEGORIES,
        "devices": [{"label": "CPU", **_peak(at, curve), "frames": [], "alive": [], "biggest": []}],
    }
    return block


def _lifetimes(trace: Trace) -> tuple[IntArray, IntArray]:
    """For each allocation the row where it was allocated and the row where it was freed (-1: never), apart for each device."""
    memory = trace.memory
    address = memory.address
    if memory.device is not None:
        _, number = np.unique(np.stack([address, memory.device]), axis=1, return_inverse=True)
        address = np.where(address == 0, 0, number.reshape(-1) + 1)
    return lifetimes(address, memory.nbytes)


def _add_device(
    block: Block,
    key: str,
    trace: Trace,
    figures: MemoryFigures,
    rows: IntArray,
    born: IntArray,
    died: IntArray,
    category: IntArray,
    at: IntArray,
) -> tuple[_Peak, dict[str, object]]:
    """Add the curve of one device; returns its peak and its tables. `rows`: its allocations and frees; `at`: the events that allocated."""
    memory = trace.memory
    begin = trace.window_ns[0] if trace.window_ns[1] > trace.window_ns[0] else int(memory.time_ns.min())
    total, times = memory.total[rows], memory.time_ns[rows] - begin
    change = np.zeros((len(memory), len(CATEGORIES)), np.int64)
    change[born, category] = memory.nbytes[born]
    ended = died >= 0
    change[died[ended], category[ended]] = -memory.nbytes[born[ended]]
    curve = np.cumsum(change[rows], axis=0)
    rest = total - curve.sum(axis=1)  # what was allocated before the recording
    # without addresses it is not known what a free frees: only the running total holds
    by_category = bool((memory.address[rows] != 0).all()) and int(rest.min(initial=0)) >= 0
    if not by_category:
        curve[:] = 0
        curve[:, CATEGORY_INDEX[None]] = total
        rest = np.zeros(len(rows), np.int64)
        category = np.full(len(category), CATEGORY_INDEX[None])
    curve[:, -1] += rest
    before = 0
    seen = set(memory.address[born].tolist())
    if figures.device < 0:
        for address, nbytes, is_gradient in memory.of_modules:
            if address not in seen:
                kind = Category.GRADIENT if is_gradient else Category.PARAMETER
                curve[:, CATEGORY_INDEX[kind]] += nbytes
                before += nbytes
    peak = _peak(times, curve, before)
    _add_curve(block, key, times, curve)
    at_peak = peak["peak_ns"] + begin
    start = memory.time_ns[born]
    end = np.where(ended, memory.time_ns[np.maximum(died, 0)], np.iinfo(np.int64).max)
    alive = (start <= at_peak) & (end > at_peak) & by_category
    frames: dict[str, int] = {}
    return peak, {
        "alive": _grouped(trace, born[alive], category[alive], at[alive], frames),
        "biggest": _grouped(trace, born, category, at, frames),
        "taken": figures.allocated_bytes,
        "allocations": figures.allocations,
        "still_allocated": figures.end_bytes,
        "by_category": by_category,
        "frames": list(frames),
    }


def _peak(times: IntArray, curve: IntArray, before: int = 0) -> _Peak:
    total = curve.sum(axis=1)
    if not len(total):
        return {"peak": 0, "before": before, "peak_ns": 0, "at_peak": [0] * len(CATEGORIES)}
    top = int(total.argmax())
    return {
        "peak": int(total[top]) - before,
        "before": before,
        "peak_ns": int(times[top]),
        "at_peak": curve[top].tolist(),
    }


def _add_curve(block: Block, key: str, times: IntArray, curve: IntArray) -> None:
    """Add a curve with at most MOST_POINTS points: of each stretch of time the highest and the last."""
    rows = np.arange(len(times))
    if len(times) > MOST_POINTS:
        total = curve.sum(axis=1)
        span = max(int(times[-1] - times[0]), 1)
        bucket = (times - times[0]) * (MOST_POINTS // 2) // (span + 1)
        order = np.lexsort((total, bucket))
        last = np.flatnonzero(np.diff(bucket, append=bucket[-1] + 1))
        rows = np.unique(np.concatenate([order[last], last, [0]]))
    block.add(f"{key}.time_ns", times[rows], rising=True)
    for i in range(curve.shape[1]):
        if curve[:, i].any():
            block.add(f"{key}.category.{i}", curve[rows, i])


def _grouped(
    trace: Trace, born: IntArray, category: IntArray, at: IntArray, frames: dict[str, int]
) -> list[list[object]]:
    """Allocations by op, category and stack, the most bytes first: [op, category, bytes, count, largest, frames of the stack]."""
    if not len(born):
        return []
    nbytes = trace.memory.nbytes[born]
    is_known = at >= 0  # of no allocation where the file has no events
    name, stack = np.full((2, len(at)), -1, np.int64)
    name[is_known], stack[is_known] = trace.name[at[is_known]], trace.stack[at[is_known]]
    _, first, number = np.unique(
        np.stack([name, category, stack]), axis=1, return_index=True, return_inverse=True
    )
    number = number.reshape(-1)
    total = np.bincount(number, weights=nbytes)
    count = np.bincount(number)
    largest = np.zeros(len(total), np.int64)
    np.maximum.at(largest, number, nbytes)
    order = np.argsort(-total, kind="stable")[:MOST_ROWS]
    groups: list[list[object]] = []
    for i in order.tolist():
        stack_number = int(stack[first[i]])
        lines = trace.stacks[stack_number] if stack_number >= 0 else ()
        groups.append(
            [
                trace.names[name[first[i]]] if name[first[i]] >= 0 else "",
                int(category[first[i]]),
                int(total[i]),
                int(count[i]),
                int(largest[i]),
                [frames.setdefault(line, len(frames)) for line in lines],
            ]
        )
    return groups
