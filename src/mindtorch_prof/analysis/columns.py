"""Columns: one registry of what each column of a profile means. A key in; its title, unit, definition and what is not in it out.

`mindtorch-prof explain`, the tables of the command line and the documentation all read this one.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

from ..formats import format_memory, format_time


@dataclass(frozen=True)
class ColumnFact:
    """What a column says."""

    key: str  # in JSON, CSV, data frames and `--where`; torch's attribute where torch has one
    title: str  # in tables
    unit: str  # us, bytes, count, flops, share (0 to 1), number, text
    meaning: str
    not_in_it: str = ""
    aliases: tuple[str, ...] = ()  # short forms, taken wherever the key is


COLUMNS: dict[str, ColumnFact] = {}
_ALIASES: dict[str, str] = {}


def register(*facts: ColumnFact) -> None:
    """Add facts about columns."""
    for fact in facts:
        COLUMNS[fact.key] = fact
        for name in (*fact.aliases, _squeezed(fact.title)):
            _ALIASES.setdefault(name, fact.key)


def column_key(text: str) -> str:
    """The key that a person means: a key, an alias, a title of torch's table, or a name with cuda, xpu ... for device."""
    if text in COLUMNS:
        return text
    squeezed = _squeezed(text)
    for form in (squeezed, _any_device(squeezed)):
        if form in COLUMNS:
            return form
        if form in _ALIASES:
            return _ALIASES[form]
    near = difflib.get_close_matches(squeezed, [*COLUMNS, *_ALIASES], n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise KeyError(f"there is no column {text!r}{hint}; `mindtorch-prof explain` lists them")


def _squeezed(text: str) -> str:
    return text.strip().lower().replace("# of ", "").replace("%", "share").replace(" ", "_").replace("-", "_")


def _any_device(text: str) -> str:
    for name in ("cuda", "hip", "xpu", "npu", "mtia", "privateuse1"):
        text = text.replace(name, "device")
    return text


def formatted(value: Any, unit: str) -> str:
    """A value as tables show it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if unit == "us":
        return f"-{format_time(-value)}" if value < 0 else format_time(value)
    if unit == "bytes":
        return format_memory(int(value))
    if unit == "share":
        return f"{value * 100:.2f}%"
    if unit in {"count", "flops"}:
        return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, (list, tuple)):
        return "; ".join(map(str, value)) if all(isinstance(v, str) for v in value) else str(list(value))
    return str(value)


# ---------------------------------------------------------------------------------------------------- what rows are of

register(
    ColumnFact(
        "name",
        "Name",
        "text",
        "What happened: an op (aten::mm), a node of the backward pass (MmBackward0), an annotation, a kernel or a copy on a device.",
        "All ProfilerStep#N are one row, ProfilerStep*, unless rows are by step. An only child with its parent's name is one event with it.",
        ("key", "op"),
    ),
    ColumnFact(
        "overload_name",
        "Overload Name",
        "text",
        "Which overload of the op was called (Tensor, Scalar, out ...).",
        "Empty unless overload names were recorded.",
    ),
    ColumnFact(
        "input_shapes",
        "Input Shapes",
        "text",
        "Shapes of the tensors that went in, one list an argument; [] is an argument that is no tensor.",
        "Shapes inside lists of tensors. Empty unless shapes were recorded (record_shapes=True).",
        ("shape", "shapes"),
    ),
    ColumnFact(
        "stack",
        "Source Location",
        "text",
        "Python calls around the event, innermost first.",
        "Empty unless stacks were recorded (with_stack=True).",
    ),
    ColumnFact(
        "module",
        "Module",
        "text",
        "The nn.Module call around the event, outer modules first (Sequential_0.Linear_1); the number counts modules of one class. "
        "Work of the backward pass belongs to the module whose forward call it answers.",
        "Empty for what happens in no module, and unless modules were recorded (with_modules=True or with_stack=True).",
    ),
    ColumnFact(
        "step",
        "Step",
        "number",
        "The number of the step (ProfilerStep#N) in which the event began.",
        "Empty for what happens between steps, and where no step was recorded.",
    ),
    ColumnFact(
        "thread",
        "Thread",
        "text",
        "The thread the event happened on: its name if it has one, and its number; for device events the device and its stream.",
        aliases=("tid",),
    ),
    ColumnFact(
        "category",
        "Category",
        "text",
        "What kind of work an event is, told from its name: matmul, convolution, attention, normalization, pointwise, reduction, shape, "
        "copy, creation, indexing, random, loss, optimizer, autograd, communication, annotation, other.",
        "A guess by name: `other` is what no rule knows.",
    ),
    ColumnFact(
        "device", "Device", "text", "Where the event happened: cpu, or a device and its number (cuda:0)."
    ),
    ColumnFact("kind", "Kind", "text", "op, node, engine, annotation, python, kernel or runtime."),
)

# ---------------------------------------------------------------------------------------------------- times

register(
    ColumnFact(
        "self_cpu_time_total",
        "Self CPU",
        "us",
        "Time on the CPU between the beginning and the end of the row's events, less that of the events inside them; summed over the events.",
        "Not processor time: waiting (a lock, a device, another thread) is in it. Python code between ops belongs to the annotation or step around it, "
        "and to no row where there is none.",
        ("self_cpu", "self_cpu_time", "self_time", "self"),
    ),
    ColumnFact(
        "self_cpu_share",
        "Self CPU %",
        "share",
        "Self CPU as a share of the sum of Self CPU over all rows.",
        "The whole is time inside events, on all recorded threads: not the wall time of the recording.",
        ("self_cpu_percent",),
    ),
    ColumnFact(
        "cpu_time_total",
        "CPU total",
        "us",
        "Time on the CPU between the beginning and the end of the row's events, with everything inside them; summed over the events.",
        "Work that a device does later. Rows contain each other (linear holds addmm), so totals of different rows do not add up.",
        ("cpu_total", "total", "cpu"),
    ),
    ColumnFact(
        "cpu_share",
        "CPU total %",
        "share",
        "CPU total as a share of the sum of Self CPU over all rows.",
        "Shares of rows that contain each other do not add up; an op that calls itself is counted at each level, as torch does.",
        ("cpu_percent", "total_cpu_percent", "cpu_total_percent"),
    ),
    ColumnFact("cpu_time", "CPU time avg", "us", "CPU total divided by the number of calls.", "", ("cpu_avg", "avg", "cpu_time_avg")),
    ColumnFact(
        "self_device_time_total",
        "Self device",
        "us",
        "Time that kernels, copies and fills took on the device: of a kernel's row its own, of an op's row those it launched itself.",
        "Kernels on several streams at once are counted each: the sum can exceed the time the device was busy. Annotations on the device are not "
        "counted a second time in the total.",
        ("self_device", "self_device_time"),
    ),
    ColumnFact(
        "self_device_share",
        "Self device %",
        "share",
        "Self device time as a share of the time of all kernels, copies and fills.",
        "An op and its kernels are both rows with the same time, so the shares of all rows add up to more than 100 %.",
        ("self_device_percent",),
    ),
    ColumnFact(
        "device_time_total",
        "Device total",
        "us",
        "Time on the device of everything that the row's events and the events inside them launched.",
        "Rows contain each other, so totals of different rows do not add up.",
        ("device_total",),
    ),
    ColumnFact("device_time", "Device time avg", "us", "Device total divided by the number of calls.", "", ("device_avg", "device_time_avg")),
    ColumnFact("min", "Min", "us", "The shortest of the row's events (beginning to end).", aliases=("min_us",)),
    ColumnFact("p50", "p50", "us", "Half of the row's events took at most this long: the median.", aliases=("median", "p50_us")),
    ColumnFact("p95", "p95", "us", "95 of 100 of the row's events took at most this long.", "With few events it is close to the longest.", ("p95_us",)),
    ColumnFact("max", "Max", "us", "The longest of the row's events.", aliases=("max_us",)),
    ColumnFact("std", "Std", "us", "Standard deviation of the times of the row's events (over n).", "0 for a single event.", ("std_us",)),
    ColumnFact("first", "First", "us", "Time of the row's first event: often longer than the others, since caches are cold.", aliases=("first_us",)),
)  # fmt: skip

# ---------------------------------------------------------------------------------------------------- counts and sizes

register(
    ColumnFact(
        "count",
        "# of Calls",
        "count",
        "How many events the row sums up.",
        "Calls that happened outside the recorded steps or threads.",
        ("calls", "n", "number_of_calls"),
    ),
    ColumnFact(
        "cpu_memory_usage",
        "CPU Mem",
        "bytes",
        "Bytes of tensor memory taken less given back while the row's events ran, with everything inside them.",
        "Not a peak, and no memory of Python or libraries. Negative where more was given back than taken. 0 unless profile_memory=True.",
        ("cpu_mem", "mem", "memory"),
    ),
    ColumnFact(
        "self_cpu_memory_usage",
        "Self CPU Mem",
        "bytes",
        "CPU Mem less that of the events inside.",
        "As CPU Mem.",
        ("self_cpu_mem", "self_mem", "self_memory"),
    ),
    ColumnFact(
        "device_memory_usage",
        "Device Mem",
        "bytes",
        "Bytes of device memory taken less given back by the allocator while the row's events ran.",
        "As CPU Mem; and what a library takes from the device itself.",
        ("device_mem",),
    ),
    ColumnFact(
        "self_device_memory_usage", "Self device Mem", "bytes", "Device Mem less that of the events inside.", "As CPU Mem.", ("self_device_mem",)
    ),
    ColumnFact(
        "flops",
        "FLOPs",
        "flops",
        "Floating-point operations of the row's events by torch's formulas: matrix products and convolutions, additions and products.",
        "Ops without a formula count 0, the backward pass included. A multiplication and its addition are two. 0 unless with_flops=True.",
        ("total_flops",),
    ),
    ColumnFact("node_id", "Node ID", "number", "The node of a distributed job that the event is from; -1 where there is none."),
    ColumnFact(
        "health",
        "Health",
        "text",
        "What is missing from the trace or was repaired in it. Empty means complete.",
    ),
)  # fmt: skip

# ---------------------------------------------------------------------------------------------------- single events, steps, memory

register(
    ColumnFact("row", "Row", "number", "The place of an event in the table of events, in the order (thread, start)."),
    ColumnFact("parent", "Parent", "number", "The row of the event around this one; empty for the outermost."),
    ColumnFact("depth", "Depth", "count", "How many events are around this one."),
    ColumnFact("start_us", "Start", "us", "Beginning, counted from the beginning of the recording.", aliases=("start", "ts")),
    ColumnFact("end_us", "End", "us", "End, counted from the beginning of the recording.", aliases=("end",)),
    ColumnFact(
        "duration_us", "Duration", "us", "From beginning to end.", "Waiting is in it.", ("dur", "duration", "wall")
    ),
    ColumnFact("self_us", "Self", "us", "Duration less that of the events inside.", "As Self CPU."),
    ColumnFact(
        "sequence_nr",
        "Sequence",
        "number",
        "Connects an op of the forward pass with the node of the backward pass that answers it.",
        "-1 where no gradient is recorded.",
        ("sequence",),
    ),
    ColumnFact("events", "Events", "count", "How many events began in the step."),
    ColumnFact(
        "busy_us",
        "CPU busy",
        "us",
        "Time in which at least one op ran on a CPU thread: overlapping ops of several threads count once.",
        "Python code between ops.",
        ("busy",),
    ),
    ColumnFact(
        "device_busy_us",
        "Device busy",
        "us",
        "Time in which at least one kernel, copy or fill ran on the device: overlapping ones count once.",
        aliases=("device_busy",),
    ),
    ColumnFact("busy_share", "CPU busy %", "share", "CPU busy as a share of the duration."),
    ColumnFact("device_busy_share", "Device busy %", "share", "Device busy as a share of the duration: the device's utilisation."),
    ColumnFact("device_events", "Device events", "count", "Kernels, copies and fills that were launched in the step."),
    ColumnFact("total_bytes", "Total", "bytes", "Bytes alive after the change, of those taken in this recording.", aliases=("total_allocated",)),
    ColumnFact("nbytes", "Bytes", "bytes", "Bytes taken (positive) or given back (negative).", aliases=("bytes",)),
    ColumnFact("address", "Address", "number", "Where the memory is."),
    ColumnFact("time_us", "Time", "us", "When, counted from the beginning of the recording.", aliases=("time",)),
    ColumnFact("stream", "Stream", "number", "The stream of the device on which it ran."),
    ColumnFact("launched_by", "Launched by", "text", "The op that launched the kernel.", "Empty where the trace does not say."),
    ColumnFact("tree", "Event", "text", "The path of the event, one level of indentation for each event around it."),
)  # fmt: skip
