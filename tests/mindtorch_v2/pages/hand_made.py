"""Traces made by hand: names and times in, a Trace out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mindtorch_prof.settings import Settings
from mindtorch_prof.trace import OP, Device, Trace


def made(*events: tuple[str, int, int, int], kind: int = OP, **more: Any) -> Trace:
    """A trace of (name, start, end, thread)."""
    events = tuple(sorted(events, key=lambda e: (e[3], e[1], -e[2])))
    names = tuple(dict.fromkeys(e[0] for e in events))
    count = len(events)
    zeros = np.zeros(count, np.int64)
    columns: dict[str, Any] = {
        "names": names,
        "overloads": ("",) * len(names),
        "name": np.array([names.index(e[0]) for e in events], np.int32),
        "start_ns": np.array([e[1] for e in events], np.int64),
        "end_ns": np.array([e[2] for e in events], np.int64),
        "thread": np.array([e[3] for e in events], np.int64),
        "kind": np.full(count, kind, np.int8),
        "scope": zeros.astype(np.int8),
        "sequence": zeros - 1,
        "forward_thread": zeros,
        "inputs": (zeros - 1).astype(np.int32),
        "flops": zeros,
        "stack": (zeros - 1).astype(np.int32),
    }
    return Trace(**{**columns, **more})


def one_after_another(calls: list[tuple[str, int]]) -> Trace:
    """Calls of (name, microseconds) on one thread, a microsecond apart."""
    ends = np.cumsum([us * 1000 + 1000 for _, us in calls]).tolist()
    return made(*[(name, end - us * 1000, end, 1) for (name, us), end in zip(calls, ends)])


def on_a_device() -> Trace:
    """An op that launches one kernel: 250 of 500 ns on stream 7."""
    trace = made(("aten::mm", 0, 100, 1), ("cudaLaunchKernel", 10, 20, 1))
    one = np.array([0], np.int64)
    device = Device(("gemm",), one, one + 150, one + 400, one, one + 7, one, one + 9, one + 1, one, one - 1)
    return replace(trace, device=device, window_ns=(0, 500), settings=Settings(device="cuda"))
