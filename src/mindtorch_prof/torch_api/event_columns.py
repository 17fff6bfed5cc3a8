"""Columns of a list: events or averages in, one list of plain values per field out. Rows of a recording are read from its columns.

`EventList.to_dict`, `to_pandas` and `to_arrow` give these: the same fields with the same types whatever was recorded.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from .. import averages as grouping
from ..trace import ANNOTATION, PYTHON
from .function_events import EventOrAverage, FunctionEventAvg
from .results import Results, RowEvent

AVERAGE_FIELDS = (
    "key",
    "count",
    "cpu_time_total",
    "self_cpu_time_total",
    "cpu_time",
    "device_time_total",
    "self_device_time_total",
    "device_time",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "device_memory_usage",
    "self_device_memory_usage",
    "flops",
    "input_shapes",
    "overload_name",
    "stack",
    "scope",
    "node_id",
    "device_type",
    "is_user_annotation",
    "synthetic_count",
)
EVENT_FIELDS = (
    "id",
    "name",
    "overload_name",
    "start_us",
    "end_us",
    "thread",
    "fwd_thread",
    "sequence_nr",
    "scope",
    "device_type",
    "device_index",
    "cpu_time_total",
    "self_cpu_time_total",
    "device_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "flops",
    "input_shapes",
    "stack",
    "is_async",
    "is_user_annotation",
    "is_python_function",
    "is_synthetic",
)
_SPAN = {
    "start_us": operator.attrgetter("time_range.start"),
    "end_us": operator.attrgetter("time_range.end"),
}
_TIMES = {name for name in (*AVERAGE_FIELDS, *EVENT_FIELDS) if "time" in name or name.endswith("_us")}


def list_columns(events: Sequence[EventOrAverage], results: Results | None = None) -> dict[str, list[object]]:
    """A list's fields as columns.

    results: the recording whose whole list of events this is; its rows are then read from columns, in a quarter of the time.
    """
    if events and isinstance(events[0], FunctionEventAvg):
        return _average_columns(events)
    columns: dict[str, list[object]] = {name: [None] * len(events) for name in EVENT_FIELDS}
    places, rows, rest = [], [], []
    for place, event in enumerate(events):
        if isinstance(event, RowEvent) and event._results is results:
            places.append(place)
            rows.append(event._row)
        else:
            rest.append(place)
    of_rows = {} if results is None or not rows else _row_columns(results, np.array(rows, np.int64))
    for name, column in columns.items():
        for place, value in zip(places, of_rows.get(name, ())):
            column[place] = value
        for place in rest:
            column[place] = _value(events[place], name)
    return columns


def _average_columns(rows: Sequence[EventOrAverage]) -> dict[str, list[object]]:
    columns = {name: [_value(row, name) for row in rows] for name in AVERAGE_FIELDS}
    spreads = [row.stats if isinstance(row, FunctionEventAvg) else None for row in rows]
    if any(spread is not None for spread in spreads):
        for name in grouping.Spread._fields:
            columns[name] = [getattr(spread, name, None) for spread in spreads]
    return columns


def _value(event: EventOrAverage, name: str) -> object:
    """A plain value: times as floats, lists as text, kinds of devices by name."""
    read = _SPAN.get(name)
    value = getattr(event, name) if read is None else read(event)
    if name in _TIMES:
        return float(value)
    if name == "device_type":
        return getattr(value, "name", str(value))
    if name in {"flops", "fwd_thread"}:
        return int(value or 0)
    if name in {"overload_name", "input_shapes", "stack"}:
        return "" if value is None else value if isinstance(value, str) else str(value)
    return value


def _row_columns(results: Results, rows: npt.NDArray[np.integer]) -> dict[str, list[object]]:
    """The fields of rows of a recording."""
    trace = results.trace
    begin_ns = trace.window_ns[0]
    group_of, names = grouping.group_names(trace)
    name, count = trace.name[rows], len(rows)
    device = results.device_columns
    no_time = np.zeros(count)
    external = rows + 1 + trace.settings.numbered_after if trace.external is None else trace.external[rows]
    shapes = [str(inputs.shapes) for inputs in trace.input_table] if trace.settings.shapes_recorded else []
    inputs = trace.inputs[rows] if results.trace.settings.shapes_recorded else np.full(count, -1)
    return {
        "id": external.tolist(),
        "name": _looked_up(names, group_of[name], ""),
        "overload_name": _looked_up(trace.shown_overloads, name, ""),
        "start_us": ((trace.start_ns[rows] - begin_ns) / 1000).tolist(),
        "end_us": ((trace.end_ns[rows] - begin_ns) / 1000).tolist(),
        "thread": _numbered(trace.thread[rows], results.thread_number),
        "fwd_thread": _numbered(trace.forward_thread[rows], results.thread_number),
        "sequence_nr": trace.sequence[rows].tolist(),
        "scope": trace.scope[rows].tolist(),
        "device_type": ["CPU"] * count,
        "device_index": [int(trace.settings.pid)] * count,
        "cpu_time_total": ((trace.end_ns - trace.start_ns)[rows] / 1000).tolist(),
        "self_cpu_time_total": (results.shown_self_ns[rows] / 1000).tolist(),
        "device_time_total": (no_time if device is None else device.total_ns[rows] / 1000).tolist(),
        "self_device_time_total": (no_time if device is None else device.own_ns[rows] / 1000).tolist(),
        "cpu_memory_usage": results.tree.memory[rows].tolist(),
        "self_cpu_memory_usage": results.shown_self_memory[rows].tolist(),
        "flops": trace.flops[rows].tolist(),
        "input_shapes": _looked_up(shapes, inputs, "[]"),
        "stack": _looked_up([str(list(stack)) for stack in trace.stacks], trace.stack[rows], "[]"),
        "is_async": [False] * count,
        "is_user_annotation": (trace.kind[rows] == ANNOTATION).tolist(),
        "is_python_function": (trace.kind[rows] == PYTHON).tolist(),
        "is_synthetic": (~trace.is_recorded[rows]).tolist(),
    }


def _looked_up(texts: Sequence[str], index: npt.NDArray[np.integer], none: str) -> list[object]:
    """Texts by index; `none` for -1."""
    table = [*texts, none]
    return [table[i] for i in index.tolist()]


def _numbered(threads: npt.NDArray[np.integer], number: Callable[[int], int]) -> list[object]:
    """The numbers of threads, each looked up once."""
    unique, index = np.unique(threads, return_inverse=True)
    numbers = np.array([number(thread) for thread in unique.tolist()], np.int64)
    by_row: list[object] = numbers[index.reshape(-1)].tolist()
    return by_row
