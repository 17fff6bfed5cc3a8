"""Operators: Results in; averages by name, shapes, stack, module and step out, as columns of a Block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from ...analysis.groups import device_times
from ...arrays import IntArray
from ...averages import averages, group_names
from ...call_paths import STACK_DEPTH
from ...kernel_names import short_names
from ...torch_api.enums import DeviceType
from . import modules
from .calls import COPY, KERNEL, OP, annotation_categories, event_categories
from .pack import Block

if TYPE_CHECKING:
    from ...torch_api.function_events import FunctionEventAvg
    from ...torch_api.results import Results

MOST_ROWS = 20_000  # per grouping; of more rows, those with the least time are left out

_SPREAD = ("min", "p50", "p95", "max")


_Detail = str | tuple[str, ...]  # what a row has beside its name: shapes, frames, a module's path, a step


class _Details(TypedDict, total=False):
    details: list[_Detail]  # by the number in the column `detail`


class Described(_Details):
    """What the page needs beside the columns of a grouping."""

    left_out: int
    names: list[str]  # by the number in the column `name`


def add_by_name(block: Block, results: Results) -> Described:
    """Rows by name, with statistics of their durations."""
    rows = results.key_averages()
    described = add_rows(block, "name", rows, _categories_by_name(results))
    spreads = [getattr(row, "stats", None) for row in rows]
    if described["left_out"] == 0 and any(spreads):
        for field in _SPREAD:
            block.add(
                f"name.{field}_ns",
                np.array([getattr(s, field, 0.0) for s in spreads]) * 1000,
            )
    return described


def short_kernel_names(names: Sequence[str]) -> dict[str, str]:
    """The short forms of names of kernels, for those that have one. The page shows these, and the names themselves on hover."""
    full = list(dict.fromkeys(names))
    return {name: short for name, short in zip(full, short_names(full)) if short != name}


def operators_block(results: Results, steps: tuple[IntArray, list[str]] | None) -> Block:
    """The other groupings: by shapes, stack, module and step, if they were recorded."""
    block = Block()
    trace = results.trace
    groups: dict[str, Described] = {}
    categories = _categories_by_name(results)
    if results.trace.settings.shapes_recorded and (trace.inputs >= 0).any():
        groups["shapes"] = add_rows(block, "shapes", results.key_averages(by_shape=True), categories)
    if len(trace.stacks) and (trace.stack >= 0).any():
        groups["stack"] = add_rows(block, "stack", results.key_averages(by_stack=STACK_DEPTH), categories)
    paths = modules.event_modules(results)
    if paths is not None:
        groups["module"] = _add_numbered(block, "module", results, *paths)
    if steps is not None:
        groups["step"] = _add_numbered(block, "step", results, *steps)
    block.values = {"groups": groups}
    return block


def add_rows(
    block: Block, key: str, rows: Sequence[FunctionEventAvg], of_events: dict[str, int] | None = None
) -> Described:
    """Add rows of key_averages as columns; `of_events`: the category of each name."""
    categories = of_events or {}

    def column(field: str, scale: int = 1) -> IntArray:
        values = np.array([getattr(row, field, 0) or 0 for row in rows], np.float64)
        return np.rint(values * scale).astype(np.int64)

    columns = {
        "count": column("count"),
        "synthetic": column("synthetic_count"),
        "self_ns": column("self_cpu_time_total", 1000),
        "total_ns": column("cpu_time_total", 1000),
        "self_device_ns": column("self_device_time_total", 1000),
        "device_ns": column("device_time_total", 1000),
        "self_memory": column("self_cpu_memory_usage"),
        "memory": column("cpu_memory_usage"),
        "self_device_memory": column("self_device_memory_usage"),
        "device_memory": column("device_memory_usage"),
        "flops": column("flops"),
        "category": np.array([_category(row, categories) for row in rows], np.int64),
    }
    details = [_detail(row, key) for row in rows]
    return _add_columns(block, key, [str(row.key) for row in rows], details, columns)


def _category(row: FunctionEventAvg, of_events: dict[str, int]) -> int:
    if getattr(row, "is_user_annotation", False):
        return int(annotation_categories((str(row.key),))[0])
    if getattr(row, "device_type", DeviceType.CPU) != DeviceType.CPU:
        return COPY if str(row.key).startswith(("Memcpy", "Memset")) else KERNEL
    return of_events.get(str(row.key), OP)


def _categories_by_name(results: Results) -> dict[str, int]:
    """The category of the first event of each name."""
    trace = results.trace
    group_of, texts = group_names(trace)
    category = np.full(len(texts), OP, np.int64)
    # in reverse order, so that the first event of a name is written last
    category[group_of[trace.name][::-1]] = event_categories(trace)[::-1]
    return dict(zip(texts, category.tolist()))


def _detail(row: FunctionEventAvg, key: str) -> _Detail:
    if key == "shapes":
        return str(row.input_shapes) if row.input_shapes else ""
    if key == "stack":
        return tuple(row.stack or ())
    return ""


def _add_numbered(
    block: Block, key: str, results: Results, number: IntArray, labels: Sequence[str]
) -> Described:
    """Rows by name and by a number of each event (of its module or step); `labels` are the texts of the numbers."""
    trace = results.trace
    own = replace(results.tree, self_ns=results.shown_self_ns, self_memory=results.shown_self_memory)
    keep = results.shown & (number >= 0)
    rows = averages(trace, own, keep, by_inputs=number)
    self_device, device = device_times(results)

    def total(values: IntArray) -> IntArray:
        return np.bincount(rows.group, weights=values[keep], minlength=len(rows.names)).astype(np.int64)

    columns = {
        "count": rows.count,
        "synthetic": rows.synthetic,
        "self_ns": rows.self_ns,
        "total_ns": rows.total_ns,
        "self_device_ns": total(self_device),
        "device_ns": total(device),
        "self_memory": rows.self_memory,
        "memory": rows.memory,
        "flops": rows.flops,
        "category": event_categories(trace)[rows.first].astype(np.int64),
    }
    details = [labels[i] for i in number[rows.first].tolist()]
    return _add_columns(block, key, list(rows.names), details, columns)


def _add_columns(
    block: Block, key: str, names: list[str], details: Sequence[_Detail], columns: dict[str, IntArray]
) -> Described:
    """Add columns to the block; of more than MOST_ROWS rows, those with the most time. Each distinct text is written once."""
    weight = columns["self_ns"] + columns["self_device_ns"]
    keep = np.arange(len(names))
    if len(keep) > MOST_ROWS:
        keep = np.sort(np.argsort(-weight, kind="stable")[:MOST_ROWS])
    kept = keep.tolist()
    texts: dict[str, int] = {}
    block.add(f"{key}.name", np.array([texts.setdefault(names[i], len(texts)) for i in kept], np.int64))
    for field, values in columns.items():
        if values.any() or field in {"count", "self_ns", "total_ns", "category"}:
            block.add(f"{key}.{field}", values[keep])
    described: Described = {"left_out": len(names) - len(kept), "names": list(texts)}
    if any(details[i] for i in kept):
        distinct: dict[_Detail, int] = {}
        numbers = [distinct.setdefault(details[i], len(distinct)) for i in kept]
        block.add(f"{key}.detail", np.array(numbers, np.int64))
        described["details"] = list(distinct)
    return described
