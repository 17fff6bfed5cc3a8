"""Traces in memory for tests: rows of names and times in, a Trace out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mindtorch_prof.settings import Settings
from mindtorch_prof.trace import NODE, OP, Device, Frames, Memory, Trace


def make_trace(*rows: tuple[Any, ...], **fields: Any) -> Trace:
    """A Trace of rows (name, start ns, end ns, thread, kind, sequence number).

    The last three may be left out: thread 1, an op, no sequence number. A parent stands before its children.
    `fields` are further columns of the Trace, and replace those made from rows.
    """
    full = [row + (1, OP, -1)[len(row) - 3 :] for row in rows]
    full.sort(key=lambda row: (row[3], row[1]))
    names = tuple(dict.fromkeys(row[0] for row in full))
    thread, kind, sequence = (np.array([row[place] for row in full], np.int64) for place in (3, 4, 5))
    zeros = np.zeros(len(full), np.int64)
    columns: dict[str, Any] = {
        "names": names,
        "overloads": ("",) * len(names),
        "name": np.array([names.index(row[0]) for row in full], np.int32),
        "start_ns": np.array([row[1] for row in full], np.int64),
        "end_ns": np.array([row[2] for row in full], np.int64),
        "thread": thread,
        "kind": kind.astype(np.int8),
        "scope": zeros.astype(np.int8),
        "sequence": sequence,
        "forward_thread": np.where(kind == NODE, thread, 0),
        "inputs": (zeros - 1).astype(np.int32),
        "flops": zeros,
        "stack": (zeros - 1).astype(np.int32),
    }
    return Trace(**{**columns, **fields})


def make_frames(*calls: tuple[str, int, int, int]) -> Frames:
    """Python calls (name, start ns, end ns, row of the caller or -1) on thread 1, callers first."""
    names = tuple(dict.fromkeys(call[0] for call in calls))
    start, end, parent = np.array([call[1:] for call in calls], np.int64).reshape(-1, 3).T
    is_module = np.array([name.startswith("nn.Module: ") for name, *_ in calls], bool)
    return Frames(
        names,
        np.array([names.index(call[0]) for call in calls], np.int32),
        start,
        end,
        np.ones(len(calls), np.int64),
        parent,
        np.where(is_module, 0, -1),
    )


def make_memory(*changes: tuple[int, int, int]) -> Memory:
    """Allocations and releases (time ns, bytes, address) on thread 1, in order of time."""
    time, nbytes, address = np.array(changes, np.int64).reshape(-1, 3).T
    return Memory(time, nbytes, address, np.ones(len(changes), np.int64), np.cumsum(nbytes))


def make_device(*work: tuple[str, int, int, int, int, int]) -> Device:
    """Work of device 0: rows (name, start ns, end ns, stream, kind, row of the op or -1) in order."""
    names = tuple(dict.fromkeys(row[0] for row in work))
    start, end, stream, kind, op = np.array([row[1:] for row in work], np.int64).reshape(-1, 5).T
    zeros = np.zeros(len(work), np.int64)
    name = np.array([names.index(row[0]) for row in work], np.int32)
    return Device(names, name, start, end, zeros, stream, kind, zeros - 1, zeros - 1, op, zeros - 1)


def calls_in_a_row(calls: list[tuple[str, int]]) -> Trace:
    """Calls of (name, microseconds) on one thread, a microsecond apart."""
    ends = np.cumsum([us * 1000 + 1000 for _, us in calls]).tolist()
    return make_trace(*[(name, end - us * 1000, end) for (name, us), end in zip(calls, ends)])


def op_with_a_kernel() -> Trace:
    """An op that launches one kernel: 250 of 500 ns on stream 7."""
    trace = make_trace(("aten::mm", 0, 100), ("cudaLaunchKernel", 10, 20))
    one = np.array([0], np.int64)
    device = Device(("gemm",), one, one + 150, one + 400, one, one + 7, one, one + 9, one + 1, one, one - 1)
    return replace(trace, device=device, window_ns=(0, 500), settings=Settings(device="cuda"))
