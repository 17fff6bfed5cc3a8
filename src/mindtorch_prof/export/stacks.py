"""Stacks: events or averages in, a file of folded lines `frame;frame;frame value` out, as flamegraph.pl and speedscope read them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import BoolArray, IntArray
from ..files import open_for_export
from ..text_escaping import folded_frame
from ..trace import Trace

if TYPE_CHECKING:
    from ..torch_api.function_events import FunctionEvent, FunctionEventAvg

METRICS = (
    "self_cpu_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
)
_FIELD = {name: "self_cpu_time_total" if "cpu" in name else "self_device_time_total" for name in METRICS}


def checked(metric: str) -> str:
    """The attribute of rows that holds a metric; a ValueError for an unknown metric."""
    if metric not in METRICS:
        raise ValueError(f"metric should be one of: {list(METRICS)}")
    return _FIELD[metric]


def export_stacks(
    rows: Iterable[FunctionEvent | FunctionEventAvg], path: str | os.PathLike[str], metric: str
) -> None:
    """Write a line for each event or row that has a stack and at least a microsecond of the metric; outermost frame first."""
    field = checked(metric)
    lines = []
    for row in rows:
        value = int(getattr(row, field))
        if row.stack and value > 0:
            lines.append(f"{folded_stack(row.stack)} {value}\n")
    _write(lines, path)


def export_trace_stacks(
    trace: Trace, self_ns: IntArray, shown: BoolArray, path: str | os.PathLike[str], metric: str
) -> None:
    """The same from columns, without creating event objects."""
    on_cpu = checked(metric) == "self_cpu_time_total"
    microseconds = self_ns // 1000
    rows = np.flatnonzero(shown & (trace.stack >= 0) & (microseconds > 0) & on_cpu)
    rows = rows[np.argsort(trace.start_ns[rows], kind="stable")]
    folded = [folded_stack(stack) for stack in trace.stacks]
    values = zip(trace.stack[rows].tolist(), microseconds[rows].tolist())
    _write([f"{folded[stack]} {value}\n" for stack, value in values if folded[stack]], path)


def folded_stack(stack: Iterable[str]) -> str:
    """A stack as `frame;frame;frame`, outermost first; `stack` is innermost first."""
    return ";".join([folded_frame(frame) for frame in reversed(list(stack))])


def _write(lines: list[str], path: str | os.PathLike[str]) -> None:
    with open_for_export(path) as out:
        out.write("".join(lines).encode("utf-8", "backslashreplace"))
