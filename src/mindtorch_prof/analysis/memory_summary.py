"""Peak memory: a Trace in, a few lines of text out, for the CPU and for each device.

Of the CPU, only what was allocated during the recording counts. The totals of a device also hold what was allocated before.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..allocations import lifetimes, totals_of_recording
from ..arrays import IntArray
from ..number_formats import format_memory
from ..trace import Memory, Trace
from ..tree import memory_events, tree
from .figures import CPU, MemoryFigures, memory_figures

_ROWS = 10


def memory_summary(trace: Trace) -> str:
    """The peak, when and in which op it was reached, and what was allocated then, by op, the largest first; where there is memory of
    several devices, the one with the highest peak first."""
    if not trace.settings.profile_memory:
        raise ValueError("memory_summary() needs a recording with profile_memory=True")
    figures = sorted(memory_figures(trace), key=lambda each: -each.peak_bytes)
    if not figures:
        return "no memory was allocated"
    parts = [_of_device(trace, each) for each in figures]
    if len(figures) == 1 and figures[0].device == CPU:
        return "\n".join(parts[0])
    return "\n".join(
        line for each, lines in zip(figures, parts) for line in (f"{each.label}: {lines[0]}", *lines[1:])
    )


def _of_device(trace: Trace, figures: MemoryFigures) -> list[str]:
    rows = _rows(trace.memory, figures.device)
    sizes, addresses = trace.memory.nbytes[rows], trace.memory.address[rows]
    if not addresses.any():
        return [
            *_totals(figures, ""),
            "what was allocated at the peak is not known: the file has no addresses of memory",
        ]
    recorded = totals_of_recording(addresses, sizes)
    total = recorded if figures.device == CPU else trace.memory.total[rows]
    peak = int(np.argmax(total))
    owners = memory_events(trace, tree(trace).parent, trace.memory.time_ns[rows], trace.memory.thread[rows])
    peak_at_us = (int(trace.memory.time_ns[rows[peak]]) - trace.window_ns[0]) / 1000
    shown = replace(figures, peak_bytes=int(total[peak]), peak_at_us=peak_at_us, end_bytes=int(total[-1]))
    lines = [*_totals(shown, f", in {_name(trace, int(owners[peak]))}"), "allocated at the peak, by op:"]
    by_name: dict[str, list[int]] = {}
    for row in _alive(addresses, sizes, peak).tolist():
        entry = by_name.setdefault(_name(trace, int(owners[row])), [0, 0])
        entry[0] += int(sizes[row])
        entry[1] += 1
    ranked = sorted(by_name.items(), key=lambda item: (-item[1][0], item[0]))
    for name, (size, count) in ranked[:_ROWS]:
        lines.append(f"  {format_memory(size):>12}  {count:>6} x  {name}")
    if len(ranked) > _ROWS:
        rest = sum(size for _, (size, _) in ranked[_ROWS:])
        lines.append(f"  {format_memory(rest):>12}  in {len(ranked) - _ROWS} other ops")
    before = int(total[peak] - recorded[peak])
    if before:
        lines.append(f"  {format_memory(before):>12}  allocated before the recording")
    return lines


def _rows(memory: Memory, device: int) -> IntArray:
    return np.arange(len(memory)) if memory.device is None else np.flatnonzero(memory.device == device)


def _alive(addresses: IntArray, sizes: IntArray, row: int) -> IntArray:
    """The allocations until a row that are freed later or never."""
    born, died = lifetimes(addresses, sizes)
    alive: IntArray = born[(born <= row) & ((died < 0) | (died > row))]
    return alive


def _totals(figures: MemoryFigures, where: str) -> list[str]:
    return [
        f"peak memory: {format_memory(figures.peak_bytes)}, {figures.peak_at_us / 1000:.3f} ms after the start{where}",
        f"still allocated at the end: {format_memory(figures.end_bytes)}; total allocated: {format_memory(figures.allocated_bytes)}",
    ]


def _name(trace: Trace, row: int) -> str:
    return "(outside of ops)" if row < 0 else trace.names[trace.name[row]]
