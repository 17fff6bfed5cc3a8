"""Tables: a recording in; its events, averages, steps, allocations, device events and figures out, each as a Sheet. For `query` and `convert`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Array, BoolArray, IntArray
from ..steps import steps_of
from ..trace import Trace
from .categories import categories
from .device_details import device_details
from .figures import figures_table
from .groups import backward_modules, device_times, groups, thread_text
from .recording import Recording, as_results, listed_results
from .sheet import ColumnValues, Sheet
from .steps_table import steps_table

if TYPE_CHECKING:
    from ..torch_api.results import Results

_KINDS = ("op", "node", "engine", "annotation", "python", "kernel", "runtime")
_DEVICE_KINDS = ("kernel", "memcpy", "memset", "annotation", "sync")


def events_table(source: Recording) -> Sheet:
    """One row per event that tables show, ordered by (thread, start); `parent` is the `row` of another one."""
    results = as_results(source)
    trace = results.trace
    rows = np.flatnonzero(results.shown)
    origin = trace.window_ns[0]
    steps, step, _ = steps_of(trace)
    own_device, device = device_times(results)
    category, category_names = categories(trace)
    parent = results.shown_parent[rows]
    columns: dict[str, ColumnValues] = {
        "row": rows,
        "name": _texts(trace.names, trace.name[rows]),
        "start_us": (trace.start_ns[rows] - origin) / 1000,
        "end_us": (trace.end_ns[rows] - origin) / 1000,
        "duration_us": (trace.end_ns - trace.start_ns)[rows] / 1000,
        "self_us": results.shown_self_ns[rows] / 1000,
        "thread": _by_value(trace.thread[rows], partial(thread_text, results)),
        "kind": _texts(_KINDS, trace.kind[rows]),
        "category": _texts(category_names, category[rows]),
        "parent": _or_none(parent, parent < 0),
        "depth": results.nesting.depth[rows],
        "step": _or_none(np.array([*steps, -1])[step[rows]], step[rows] < 0),
        "sequence_nr": trace.sequence[rows],
        "count": np.ones(len(rows), np.int64),
        "synthetic_count": (~trace.is_recorded[rows]).astype(np.int64),
        "cpu_memory_usage": results.tree.memory[rows],
        "self_cpu_memory_usage": results.shown_self_memory[rows],
        "flops": np.maximum(trace.flops[rows], 0),
        "input_shapes": _shapes(results, rows),
        "stack": _stacks(trace, rows),
        "module": _modules(results, rows),
    }
    if len(trace.device):
        columns["self_device_time_total"] = own_device[rows] / 1000
        columns["device_time_total"] = device[rows] / 1000
    if trace.memory.on_device.any():
        columns["device_memory_usage"] = results.tree.device_memory[rows]
        columns["self_device_memory_usage"] = results.shown_self_device_memory[rows]
    return Sheet(columns, len(rows))


def averages_table(source: Recording) -> Sheet:
    """One row per name, as `key_averages()` lists them (Python calls too, where it does), with statistics of the durations."""
    return groups(listed_results(source), stats=True)


def memory_table(source: Recording) -> Sheet:
    """One row per allocation or free, in order of time."""
    results = as_results(source)
    memory, origin = results.trace.memory, results.trace.window_ns[0]
    kind = results.trace.settings.device or "device"
    device = np.full(len(memory), -1) if memory.device is None else memory.device
    return Sheet(
        {
            "time_us": (memory.time_ns - origin) / 1000,
            "nbytes": memory.nbytes,
            "total_bytes": memory.total,
            "address": memory.address,
            "thread": _by_value(memory.thread, partial(thread_text, results)),
            "device": _by_value(device, lambda number: "cpu" if number < 0 else f"{kind}:{number}"),
        },
        len(memory),
    )


def device_table(source: Recording) -> Sheet:
    """One row per kernel, copy, memset or annotation on a device, with how it was launched and what it moved."""
    results = as_results(source)
    trace = results.trace
    device, origin = trace.device, trace.window_ns[0]
    kind = trace.settings.device or "device"
    steps, step, _ = steps_of(trace)
    step = np.append(step, -1)[device.op]
    launched = [
        "" if row < 0 else trace.names[name]
        for row, name in zip(device.op.tolist(), np.append(trace.name, 0)[device.op].tolist())
    ]
    return Sheet(
        {
            "name": _texts(device.names, device.name),
            "start_us": (device.start_ns - origin) / 1000,
            "end_us": (device.end_ns - origin) / 1000,
            "duration_us": (device.end_ns - device.start_ns) / 1000,
            "device": _by_value(device.device, lambda number: f"{kind}:{number}"),
            "stream": device.stream,
            "kind": _texts(_DEVICE_KINDS, device.kind),
            "launched_by": launched,
            "row": _or_none(device.op, device.op < 0),
            "step": _or_none(np.array([*steps, -1])[step], step < 0),
            **device_details(device),
        },
        len(device),
    )


TABLES: dict[str, Callable[[Recording], Sheet]] = {
    "events": events_table,
    "averages": averages_table,
    "steps": steps_table,
    "memory": memory_table,
    "device": device_table,
    "figures": figures_table,
}


def _texts(names: Sequence[str], index: IntArray) -> Array:
    table = np.empty(len(names) + 1, object)
    table[: len(names)] = list(names)
    table[len(names)] = ""
    return table[index]


def _by_value(values: IntArray, text: Callable[[int], str]) -> Array:
    known, index = np.unique(values, return_inverse=True)
    return _texts([text(value) for value in known.tolist()], index.reshape(-1))


def _or_none(values: IntArray, missing: BoolArray) -> Array:
    """Integers, and None for those that are missing."""
    column = values.astype(object)
    column[missing] = None
    return column


def _shapes(results: Results, rows: IntArray) -> Array:
    if not results.trace.settings.shapes_recorded:
        return _texts((), np.zeros(len(rows), np.int64))
    texts = [str(inputs.shapes) for inputs in results.trace.input_table]
    return _texts(texts, results.trace.inputs[rows])


def _stacks(trace: Trace, rows: IntArray) -> Array:
    return _texts([";".join(stack) for stack in trace.stacks], trace.stack[rows])


def _modules(results: Results, rows: IntArray) -> Array:
    number, paths = backward_modules(results)
    return _texts(paths, number[rows])
