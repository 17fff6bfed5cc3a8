"""Peak memory: a Trace in, a few lines of text out. Counts only what was allocated during the recording."""

from __future__ import annotations

import numpy as np

from ..trace import Trace
from ..tree import memory_events, tree
from .figures import memory_figures

_ROWS = 10


def memory_summary(trace: Trace) -> str:
    """The peak, when and in which op it was reached, and what was allocated then, by op, the largest first."""
    memory = trace.memory
    if not trace.settings.profile_memory:
        raise ValueError("memory_summary() needs a recording with profile_memory=True")
    on_cpu = ~memory.on_device
    times, sizes, addresses = memory.time_ns[on_cpu], memory.nbytes[on_cpu], memory.address[on_cpu]
    if not len(times):
        return "no memory was allocated"
    if not addresses.any():
        return _of_totals(trace)
    # frees of what was allocated before the recording do not count
    allocates = sizes > 0
    order = np.lexsort((np.arange(len(addresses)), addresses))
    follows = np.zeros(len(sizes), bool)
    follows[order[1:]] = (addresses[order][1:] == addresses[order][:-1]) & allocates[order][:-1]
    counted = np.where(allocates | follows, sizes, 0)
    total = np.cumsum(counted)
    peak = int(np.argmax(total))
    # alive at the peak: allocated until then, and freed later or never
    freed_at = np.full(len(sizes), len(sizes), np.int64)
    is_free = follows[order[1:]] & ~allocates[order[1:]]
    freed_at[order[:-1][is_free]] = order[1:][is_free]
    alive = np.flatnonzero(allocates & (np.arange(len(sizes)) <= peak) & (freed_at > peak))
    owners = memory_events(trace, tree(trace).parent, times, memory.thread[on_cpu])
    start = (times[peak] - trace.window_ns[0]) / 1e6
    lines = [
        f"peak memory: {_bytes(int(total[peak]))}, {start:.3f} ms after the start, in {_name(trace, owners[peak])}"
    ]
    at_end = int(total[-1])
    lines.append(
        f"still allocated at the end: {_bytes(at_end)}; total allocated: {_bytes(int(sizes[allocates].sum()))}"
    )
    lines.append("allocated at the peak, by op:")
    by_name: dict[str, list[int]] = {}
    for row in alive.tolist():
        entry = by_name.setdefault(_name(trace, owners[row]), [0, 0])
        entry[0] += int(sizes[row])
        entry[1] += 1
    ranked = sorted(by_name.items(), key=lambda item: (-item[1][0], item[0]))
    for name, (size, count) in ranked[:_ROWS]:
        lines.append(f"  {_bytes(size):>12}  {count:>6} x  {name}")
    if len(ranked) > _ROWS:
        rest = sum(size for _, (size, _) in ranked[_ROWS:])
        lines.append(f"  {_bytes(rest):>12}  in {len(ranked) - _ROWS} other ops")
    return "\n".join(lines)


def _of_totals(trace: Trace) -> str:
    """As `memory_summary`, of a file without addresses, which does not say what a free frees."""
    cpu = memory_figures(trace)[0]
    return (
        f"peak memory: {_bytes(cpu.peak_bytes)}, {cpu.peak_at_us / 1000:.3f} ms after the start\n"
        f"still allocated at the end: {_bytes(cpu.end_bytes)}; total allocated: {_bytes(cpu.allocated_bytes)}\n"
        "what was allocated at the peak is not known: the file has no addresses of memory"
    )


def _name(trace: Trace, row: int) -> str:
    return "(outside of ops)" if row < 0 else trace.names[trace.name[row]]


def _bytes(size: int) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(size) >= scale:
            return f"{size / scale:.2f} {unit}"
    return f"{size} B"
