"""The text table: events or averages in, torch's text out. Title, cell and alignment of a column stand together, so they always
fit each other. Nothing is written into the events."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..analysis.columns import COLUMNS, legend
from ..averages import Spread
from ..number_formats import format_memory, format_share, format_time, format_time_in
from .enums import DeviceType
from .function_events import EventOrAverage, FunctionEventAvg

_NARROW = 12  # width of a column of numbers
_SPACE = "  "  # after each column
_ALIASES = ("cuda", "xpu", "privateuse1")  # in a sort key they all mean "device"
_LEGEND_WIDTH = 80  # of the lines that define the columns
_FLOPS_UNITS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
_KERNEL_DEVICES = (DeviceType.CUDA, DeviceType.XPU, DeviceType.MTIA, DeviceType.PrivateUse1)


@dataclass(frozen=True)
class Column:
    """One column: its key in `analysis.columns`, its title, the text of an event's cell, its width and alignment."""

    key: str
    title: str
    cell: Callable[[EventOrAverage], str]
    width: int = _NARROW
    align: str = ">"


def table(
    events: Sequence[EventOrAverage],
    *,
    sort_by: str | None = None,
    row_limit: int = 100,
    max_src_column_width: int | None = 75,
    max_name_column_width: int | None = 55,
    max_shapes_column_width: int | None = 80,
    header: str | None = None,
    profile_memory: bool = False,
    with_flops: bool = False,
    top_level_events_only: bool = False,
    time_unit: str | None = None,
    note: str = "",
    with_stats: bool = False,
    with_legend: bool = False,
) -> str:
    """A list of events or averages as torch prints it, with `note` as its last line. Two things that torch does not have: with_stats adds
    columns of how the durations of each row are spread, with_legend adds the definitions of all columns below the table."""
    if not events:
        return ""
    in_order = rows = _sorted(events, sort_by)
    if top_level_events_only:
        rows = [e for e in rows if e.cpu_parent is None]
    if row_limit >= 0:
        rows = rows[:row_limit]
    time = format_time if time_unit is None else lambda us: format_time_in(us, time_unit)
    # floats are added in torch's order, so that sums round as its do
    cpu_us = _added(e.self_cpu_time_total for e in in_order)
    device = _device(events)
    device_us = _device_total(in_order) if device else 0

    name_width = max(len(e.key or "") for e in events) + 4
    if max_name_column_width is not None:
        name_width = min(name_width, max_name_column_width)
    columns = [_name("name", "Name", lambda e: e.key or "", name_width, max_name_column_width)]
    if any(e.overload_name for e in events):
        columns.append(
            _name(
                "overload_name",
                "Overload Name",
                lambda e: e.overload_name or "",
                name_width,
                max_name_column_width,
            )
        )
    columns += _cpu_times(time, cpu_us)
    if device:
        columns += _device_times(device, time, device_us)
    if profile_memory:
        columns += _memory(events)
    columns.append(Column("count", "# of Calls", lambda e: str(e.count)))
    if with_stats:
        columns += [_stat(name, time) for name in Spread._fields]
    if any(e.node_id != -1 for e in events):
        columns.append(Column("node_id", "Node ID", lambda e: str(e.node_id)))
    if any(e.input_shapes for e in events):
        columns.append(_shapes(events, max_shapes_column_width))
    source_width = _source_width(events, max_src_column_width)
    source = None
    if source_width is not None:
        source = len(columns)
        columns.append(Column("stack", "Source Location", lambda e: "", source_width, "<"))
    if with_flops and any(e.flops and e.flops > 0 for e in events):
        columns.append(_flops(events))

    lines = _frame(columns, header, top_level_events_only)
    rule = lines[-1]
    for event in rows:
        lines += _row(columns, event, source)
    lines += [rule, f"Self CPU time total: {time(cpu_us)}"]
    if device:
        lines.append(f"Self {device} time total: {time(device_us)}")
    lines += _synthetic_calls(events)
    if note:
        lines.append(note)
    if with_legend:
        lines += ["", *legend([(column.key, column.title) for column in columns], _LEGEND_WIDTH)]
    return "\n".join([*lines, ""])


def _synthetic_calls(events: Sequence[EventOrAverage]) -> list[str]:
    """The line that says how many calls are synthetic; none if none is."""
    synthetic = sum(e.synthetic_count for e in events)
    if not synthetic:
        return []
    calls = sum(e.count for e in events)
    reason = "torch shows these ops inside others, this program ran them as part of one kernel"
    return [f"{synthetic:,} of {calls:,} calls are synthetic: {reason}. as_recorded() leaves them out."]


def _sorted(events: Sequence[EventOrAverage], sort_by: str | None) -> list[EventOrAverage]:
    if sort_by is None:
        return list(events)
    if sort_by in Spread._fields and all(isinstance(e, FunctionEventAvg) for e in events):
        name: str = sort_by
        return sorted(events, key=lambda e: _of_spread(e, name, -math.inf), reverse=True)
    for alias in _ALIASES:
        sort_by = sort_by.replace(alias, "device")
    return sorted(events, key=lambda e: getattr(e, sort_by), reverse=True)


# ---------------------------------------------------------------------------------------------------- devices


def _device(events: Sequence[EventOrAverage]) -> str:
    """The device in capitals if any time was spent on one, else ""."""
    if not any(e.self_device_time_total > 0 for e in events):
        return ""
    return next((e.use_device for e in events if e.use_device), "").upper()


def _added(values: Iterable[float]) -> float:
    """A sum of floats, one by one: sum() of Python 3.12 compensates for rounding."""
    total: float = 0
    for value in values:
        total += value
    return total


def _device_total(events: Sequence[EventOrAverage]) -> float:
    """Time of kernels: annotations repeat the time of the kernels in them, ops that of the kernels they launch."""
    return _added(
        e.self_device_time_total
        for e in events
        if (e.device_type == DeviceType.CPU and e.is_legacy)
        or (e.device_type in _KERNEL_DEVICES and not getattr(e, "is_user_annotation", False))
    )


# ---------------------------------------------------------------------------------------------------- columns


def _name(
    key: str, title: str, text: Callable[[EventOrAverage], str], width: int, limit: int | None
) -> Column:
    def cell(event: EventOrAverage) -> str:
        whole = text(event)
        return whole if limit is None or len(whole) < limit - 3 else whole[: limit - 3] + "..."

    return Column(key, title, cell, width)


def _cpu_times(time: Callable[[float], str], total_us: float) -> list[Column]:
    return [
        Column("self_cpu_share", "Self CPU %", lambda e: format_share(e.self_cpu_time_total, total_us)),
        Column("self_cpu_time_total", "Self CPU", lambda e: time(e.self_cpu_time_total)),
        Column(
            "cpu_share",
            "CPU total %",
            lambda e: "0" if e.is_async else format_share(e.cpu_time_total, total_us),
        ),
        Column("cpu_time_total", "CPU total", lambda e: time(e.cpu_time_total)),
        Column("cpu_time", "CPU time avg", lambda e: time(e.cpu_time)),
    ]


def _device_times(device: str, time: Callable[[float], str], total_us: float) -> list[Column]:
    return [
        Column("self_device_time_total", f"Self {device}", lambda e: time(e.self_device_time_total)),
        Column(
            "self_device_share",
            f"Self {device} %",
            lambda e: format_share(e.self_device_time_total, total_us),
        ),
        Column("device_time_total", f"{device} total", lambda e: time(e.device_time_total)),
        Column("device_time", f"{device} time avg", lambda e: time(e.device_time)),
    ]


def _memory(events: Sequence[EventOrAverage]) -> list[Column]:
    columns = [
        Column("cpu_memory_usage", "CPU Mem", lambda e: format_memory(e.cpu_memory_usage)),
        Column("self_cpu_memory_usage", "Self CPU Mem", lambda e: format_memory(e.self_cpu_memory_usage)),
    ]
    device = next((e.use_device for e in events if e.use_device), "").upper()
    if device and any(e.self_device_memory_usage > 0 for e in events):
        columns += [
            Column("device_memory_usage", f"{device} Mem", lambda e: format_memory(e.device_memory_usage)),
            Column(
                "self_device_memory_usage",
                f"Self {device} Mem",
                lambda e: format_memory(e.self_device_memory_usage),
            ),
        ]
    return columns


def _stat(name: str, time: Callable[[float], str]) -> Column:
    """One statistic of the durations of a row's events; -- where they are not known."""

    def cell(event: EventOrAverage) -> str:
        value = _of_spread(event, name, math.nan)
        return "--" if math.isnan(value) else time(value)

    return Column(name, COLUMNS[name].title, cell)


def _of_spread(event: EventOrAverage, name: str, unknown: float) -> float:
    spread = event.stats if isinstance(event, FunctionEventAvg) else None
    return unknown if spread is None else float(getattr(spread, name))


def _shapes(events: Sequence[EventOrAverage], limit: int | None) -> Column:
    width = max(len(str(e.input_shapes)) for e in events) + 4
    if limit is not None:
        width = min(width, limit)
    return Column("input_shapes", "Input Shapes", lambda e: str(e.input_shapes)[:width], width)


def _source_width(events: Sequence[EventOrAverage], limit: int | None) -> int | None:
    """Width of the source column; None if no event has a stack."""
    longest = max((max(map(len, e.stack)) for e in events if e.stack), default=None)
    if longest is None:
        return None
    return longest + 4 if limit is None else min(longest + 4, limit)


def _flops(events: Sequence[EventOrAverage]) -> Column:
    """Flops in the unit of the smallest number of them."""
    smallest = min(e.flops for e in events if e.flops and e.flops > 0)
    place = max(0, min(int(math.log10(smallest) / 3), len(_FLOPS_UNITS) - 1))
    scale = 10.0 ** (place * 3)
    return Column(
        "flops",
        f"Total {_FLOPS_UNITS[place]}",
        lambda e: f"{e.flops / scale:8.3f}" if e.flops and e.flops > 0 else "--",
    )


# ---------------------------------------------------------------------------------------------------- lines


def _frame(columns: list[Column], header: str | None, top_level: bool) -> list[str]:
    """Everything above the rows; the last line is the rule that also ends them."""
    rule = _line(["-" * c.width for c in columns], columns)
    double = "=" * (len(rule) - len(_SPACE))
    lines = []
    if header is not None:
        lines += [double, header]
    if top_level:
        lines += [double, "This report only display top-level ops statistics"]
    return [*lines, rule, _line([c.title for c in columns], columns), rule]


def _row(columns: list[Column], event: EventOrAverage, source: int | None) -> list[str]:
    """The lines of an event: one; with stacks, one per frame of its stack and an empty one."""
    cells = [c.cell(event) for c in columns]
    if source is None:
        return [_line(cells, columns)]
    width = columns[source].width
    frames = [_trimmed(frame, width) for frame in event.stack or ()]
    cells[source] = frames[0] if frames else ""
    lines = [_line(cells, columns)]
    for frame in [*frames[1:], ""]:
        further = [""] * len(columns)
        further[source] = frame
        lines.append(_line(further, columns))
    return lines


def _line(cells: list[str], columns: list[Column]) -> str:
    return "".join(f"{cell:{c.align}{c.width}}{_SPACE}" for cell, c in zip(cells, columns))


def _trimmed(path: str, width: int) -> str:
    """The end of a path that is too long, after three dots where they fit."""
    if len(path) <= width:
        return path
    path = path[-width:]
    return "..." + path[3:] if len(path) > 3 else path
