"""The text table. A column is a value: title, cell, condition and alignment stand together, so they cannot fall out of step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .text import format_memory, format_share, format_time, format_time_in

_SEPARATOR_SPACE = 2


@dataclass(frozen=True)
class Context:
    """What cells need to know beyond their event."""

    total_cpu_us: float
    time: Callable[[float], str]
    flops_scale: float


@dataclass(frozen=True)
class Column:
    """One column of the table."""

    title: str
    cell: Callable[[Any, Context], str]
    width: int
    align: str = ">"


def table(
    events: Any,
    *,
    sort_by: str | None = None,
    row_limit: int = 100,
    max_src_column_width: int = 75,
    max_name_column_width: int = 55,
    max_shapes_column_width: int = 80,
    header: str | None = None,
    profile_memory: bool = False,
    with_flops: bool = False,
    top_level_events_only: bool = False,
    time_unit: str | None = None,
) -> str:
    """A list of events or averages as torch prints it."""
    if not events:
        return ""
    rows = _sorted(events, sort_by)
    totals = sum(e.self_cpu_time_total for e in events)
    if top_level_events_only:
        rows = [e for e in rows if e.cpu_parent is None]
    shown = rows if row_limit == -1 else rows[:row_limit]
    flops_unit, flops_scale = _flops_unit(shown) if with_flops else ("", 1.0)
    context = Context(
        totals, format_time if time_unit is None else lambda us: format_time_in(us, time_unit), flops_scale
    )
    columns = _columns(
        shown,
        profile_memory,
        with_flops,
        flops_unit,
        max_name_column_width,
        max_shapes_column_width,
        max_src_column_width,
        events,
    )
    return _render(columns, shown, context, header, totals, context.time)


def _sorted(events: Any, sort_by: str | None) -> list[Any]:
    if sort_by is None:
        return list(events)
    key = sort_by.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
    return sorted(events, key=lambda e: getattr(e, key), reverse=True)


def _flops_unit(events: list[Any]) -> tuple[str, float]:
    """The unit of the largest flops, and what to divide by."""
    import math

    values = [e.flops for e in events if e.flops is not None and e.flops > 0]
    if not values:
        return "FLOPs", 1.0
    units = ["FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"]
    place = max(0, min(int(math.log10(min(values)) / 3), len(units) - 1))
    return units[place], 10.0 ** (place * 3)


def _columns(
    events: list[Any],
    profile_memory: bool,
    with_flops: bool,
    flops_unit: str,
    name_limit: int,
    shapes_limit: int,
    source_limit: int,
    every: Any,
) -> list[Column]:
    longest = max((len(e.key) for e in every), default=0) + 4
    name_width = min(longest, name_limit) if name_limit is not None else longest
    has_shapes = any(e.input_shapes for e in every)
    has_overloads = any(getattr(e, "overload_name", None) for e in every)
    stacks = [s for s in (e.stack for e in every) if s]
    columns = [Column("Name", lambda e, c: _cut(e.key, name_width), name_width, "<")]
    if has_overloads:
        width = min(max(len(e.overload_name or "") for e in every) + 4, name_limit)
        columns.append(Column("Overload Name", lambda e, c: _cut(e.overload_name or "", width), width))
    narrow = 12
    columns += [
        Column("Self CPU %", lambda e, c: format_share(e.self_cpu_time_total, c.total_cpu_us), narrow),
        Column("Self CPU", lambda e, c: c.time(e.self_cpu_time_total), narrow),
        Column(
            "CPU total %",
            lambda e, c: "0" if e.is_async else format_share(e.cpu_time_total, c.total_cpu_us),
            narrow,
        ),
        Column("CPU total", lambda e, c: c.time(e.cpu_time_total), narrow),
        Column("CPU time avg", lambda e, c: c.time(e.cpu_time), narrow),
    ]
    if profile_memory:
        columns += [
            Column("CPU Mem", lambda e, c: format_memory(e.cpu_memory_usage), narrow),
            Column("Self CPU Mem", lambda e, c: format_memory(e.self_cpu_memory_usage), narrow),
        ]
    columns.append(Column("# of Calls", lambda e, c: str(e.count), narrow))
    if any(getattr(e, "node_id", -1) != -1 for e in every):
        columns.append(Column("Node ID", lambda e, c: str(e.node_id), narrow))
    if has_shapes:
        longest_shapes = max(len(str(e.input_shapes)) for e in every) + 4
        width = min(longest_shapes, shapes_limit) if shapes_limit is not None else longest_shapes
        columns.append(Column("Input Shapes", lambda e, c: str(e.input_shapes)[:width], width))
    if stacks:
        longest_source = max(max(len(line) for line in stack) for stack in stacks) + 4
        width = min(longest_source, source_limit) if source_limit is not None else longest_source
        columns.append(
            Column(
                "Source Location", lambda e, c: _trim_path(e.stack[0], width) if e.stack else "", width, "<"
            )
        )
    if with_flops:
        columns.append(
            Column(
                f"Total {flops_unit}",
                lambda e, c: f"{e.flops / c.flops_scale:8.3f}" if e.flops else "--",
                narrow,
            )
        )
    return columns


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width - 3 + 3 and len(text) < width else text[: width - 3] + "..."


def _trim_path(path: str, limit: int) -> str:
    if len(path) > limit:
        offset = len(path) - limit
        path = path[offset:]
        if len(path) > 3:
            path = "..." + path[3:]
    return path


def _render(
    columns: list[Column], rows: list[Any], context: Context, header: str | None, total_us: float, time: Any
) -> str:
    space = " " * _SEPARATOR_SPACE
    rule = space.join("-" * c.width for c in columns)
    line_length = len(rule)
    lines: list[str] = []
    if header is not None:
        lines += ["=" * line_length, header]
    titles = space.join(
        f"{c.title:{'>' if c.align == '>' else '<'}{c.width}}" if i else f"{c.title:>{c.width}}"
        for i, c in enumerate(columns)
    )
    lines += [rule + space, titles + space, rule + space]
    for event in rows:
        cells = [c.cell(event, context) for c in columns]
        lines.append(space.join(f"{cell:>{c.width}}" for cell, c in zip(cells, columns)) + space)
    lines += [rule + space, f"Self CPU time total: {time(total_us)}", ""]
    return "\n".join(lines)
