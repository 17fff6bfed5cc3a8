"""Columns: a key, alias or title in; what the column means out. The registry of all columns.

`mindtorch-prof explain`, the tables of the command line and docs/events.md all use this registry.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..number_formats import format_memory, format_time


@dataclass(frozen=True)
class ColumnFact:
    """The facts about one column."""

    key: str  # in JSON, CSV, data frames and `--where`; torch's attribute where torch has one
    title: str  # in tables
    unit: str  # us, bytes, count, flops, share (0 to 1), number, text
    meaning: str
    not_in_it: str = ""
    aliases: tuple[str, ...] = ()  # short forms, accepted wherever the key is

    @property
    def definition(self) -> str:
        """What it means and what is not in it, as one text."""
        return f"{self.meaning} {self.not_in_it}".rstrip()


COLUMNS: dict[str, ColumnFact] = {}
_ALIASES: dict[str, str] = {}


def register(*facts: ColumnFact) -> None:
    """Add columns to the registry."""
    for fact in facts:
        COLUMNS[fact.key] = fact
        for name in (*fact.aliases, _normalized(fact.title)):
            _ALIASES.setdefault(name, fact.key)


def column_key(text: str) -> str:
    """The key for a key, an alias, a title of torch's table, or a name with cuda, xpu ... instead of device."""
    if text in COLUMNS:
        return text
    normalized = _normalized(text)
    for form in (normalized, _with_generic_device(normalized)):
        if form in COLUMNS:
            return form
        if form in _ALIASES:
            return _ALIASES[form]
    import difflib  # takes milliseconds, and only this error needs it

    near = difflib.get_close_matches(normalized, [*COLUMNS, *_ALIASES], n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise KeyError(f"there is no column {text!r}{hint}; `mindtorch-prof explain` lists them")


def legend(columns: Iterable[tuple[str, str]], width: int) -> list[str]:
    """What the columns of a table mean, as lines of at most `width` characters: of each column its title in the table, and beside that its
    definition.

    columns: keys and titles; a key that is not in the registry is left out.
    """
    import textwrap

    facts = [(title, COLUMNS[key]) for key, title in columns if key in COLUMNS]
    indent = max((len(title) for title, _ in facts), default=0) + 2
    lines = []
    for title, fact in facts:
        texts = textwrap.wrap(fact.definition, max(width - indent, 20), break_on_hyphens=False)
        lines += [f"{head:<{indent}}{text}" for head, text in zip([title, *[""] * len(texts)], texts)]
    return lines


def _normalized(text: str) -> str:
    return text.strip().lower().replace("# of ", "").replace("%", "share").replace(" ", "_").replace("-", "_")


def _with_generic_device(text: str) -> str:
    for name in ("cuda", "hip", "xpu", "npu", "mtia", "privateuse1"):
        text = text.replace(name, "device")
    return text


def formatted(value: object, unit: str) -> str:
    """A value as tables show it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return _formatted_number(value, unit)
    if isinstance(value, (list, tuple)):
        return "; ".join(map(str, value)) if all(isinstance(v, str) for v in value) else str(list(value))
    return str(value)


def _formatted_number(value: float, unit: str) -> str:
    if unit == "us":
        return f"-{format_time(-value)}" if value < 0 else format_time(value)
    if unit == "bytes":
        return format_memory(int(value))
    if unit == "share":
        return f"{value * 100:.2f}%"
    if unit in {"count", "flops"}:
        return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


# ---------------------------------------------------------------------------------------------------- what rows are grouped by

register(
    ColumnFact(
        "name",
        "Name",
        "text",
        "The name of the event: an op (aten::mm), a backward node (MmBackward0), an annotation, or a kernel or copy on a device.",
        "All ProfilerStep#N are one row, ProfilerStep*, unless rows are grouped by step. An only child with the same name as its parent is "
        "merged into it.",
        ("key", "op"),
    ),
    ColumnFact(
        "overload_name",
        "Overload Name",
        "text",
        "The overload of the op that was called (Tensor, Scalar, out ...).",
        "Empty unless overload names were recorded.",
    ),
    ColumnFact(
        "input_shapes",
        "Input Shapes",
        "text",
        "Shapes of the input tensors, one list per argument; [] for an argument that is not a tensor.",
        "Shapes inside lists of tensors are not shown. Empty unless recorded with record_shapes=True.",
        ("shape", "shapes"),
    ),
    ColumnFact(
        "stack",
        "Source Location",
        "text",
        "Python stack of the event, innermost call first.",
        "Empty unless recorded with with_stack=True.",
    ),
    ColumnFact(
        "module",
        "Module",
        "text",
        "Path of the nn.Module whose call contains the event, outermost module first (Sequential_0.Linear_1); the number counts the modules "
        "of a class. Backward events belong to the module of their forward op.",
        "Empty outside of modules, and unless recorded with with_modules=True or with_stack=True.",
    ),
    ColumnFact(
        "step",
        "Step",
        "number",
        "Number of the step (ProfilerStep#N) in which the event started.",
        "Empty between steps, and if no steps were recorded.",
    ),
    ColumnFact(
        "thread",
        "Thread",
        "text",
        "Thread of the event: its name, if it has one, and its number; for device events the device and the stream.",
        aliases=("tid",),
    ),
    ColumnFact(
        "category",
        "Category",
        "text",
        "The kind of work, derived from the event's name: matmul, convolution, attention, normalization, pointwise, reduction, shape, "
        "copy, creation, indexing, random, loss, optimizer, autograd, communication, annotation, other.",
        "A guess from the name: `other` is what no rule matches.",
    ),
    ColumnFact("device", "Device", "text", "Where the event ran: cpu, or a device and its index (cuda:0)."),
    ColumnFact(
        "kind",
        "Kind",
        "text",
        "op, node (of the backward pass), engine (a call of the autograd engine), annotation, python, kernel or runtime (a CUDA, HIP ... API call).",
    ),
)  # fmt: skip

# ---------------------------------------------------------------------------------------------------- times

_DURATIONS = "Of an op on the CPU, of a kernel or copy on the device; without synthetic calls."

register(
    ColumnFact(
        "self_cpu_time_total",
        "Self CPU",
        "us",
        "Time on the CPU from start to end of the row's events, without their child events; summed over the events.",
        "Not processor time: waiting (for a lock, a device, another thread) is included. Python code between ops counts for the annotation or "
        "step around it, and for no row if there is none.",
        ("self_cpu", "self_cpu_time", "self_time", "self"),
    ),
    ColumnFact(
        "self_cpu_share",
        "Self CPU %",
        "share",
        "Self CPU as a share of the sum of Self CPU over all rows.",
        "The sum is the time inside events on all recorded threads, not the wall time of the recording.",
        ("self_cpu_percent",),
    ),
    ColumnFact(
        "cpu_time_total",
        "CPU total",
        "us",
        "Time on the CPU from start to end of the row's events, including their child events; summed over the events.",
        "Work that a device does later is not included. Rows contain each other (linear contains addmm), so totals of different rows do not add up.",
        ("cpu_total", "total", "cpu"),
    ),
    ColumnFact(
        "cpu_share",
        "CPU total %",
        "share",
        "CPU total as a share of the sum of Self CPU over all rows.",
        "Shares of rows that contain each other do not add up. A recursive op is counted at each level, as in torch.",
        ("cpu_percent", "total_cpu_percent", "cpu_total_percent"),
    ),
    ColumnFact("cpu_time", "CPU time avg", "us", "CPU total divided by the number of calls.", "Synthetic calls do not count.", ("cpu_avg", "avg", "cpu_time_avg")),
    ColumnFact(
        "self_device_time_total",
        "Self device",
        "us",
        "Time of kernels, copies and memsets on the device: a kernel's row has its own time, an op's row that of the work it launched itself.",
        "Kernels that run at the same time on several streams all count, so the sum can exceed the time the device was busy. Annotations on the "
        "device are not counted again in the total.",
        ("self_device", "self_device_time"),
    ),
    ColumnFact(
        "self_device_share",
        "Self device %",
        "share",
        "Self device time as a share of the time of all kernels, copies and memsets.",
        "An op and its kernels are both rows with the same time, so the shares of all rows add up to more than 100 %.",
        ("self_device_percent",),
    ),
    ColumnFact(
        "device_time_total",
        "Device total",
        "us",
        "Time on the device of everything that the row's events and their child events launched.",
        "Rows contain each other, so totals of different rows do not add up.",
        ("device_total",),
    ),
    ColumnFact("device_time", "Device time avg", "us", "Device total divided by the number of calls.", "", ("device_avg", "device_time_avg")),
    ColumnFact("min", "Min", "us", "Duration of the row's shortest event.", _DURATIONS, ("min_us",)),
    ColumnFact("p50", "p50", "us", "Median duration of the row's events.", _DURATIONS, ("median", "p50_us")),
    ColumnFact(
        "p95",
        "p95",
        "us",
        "95th percentile of the durations of the row's events.",
        f"{_DURATIONS} With few events it is close to the maximum.",
        ("p95_us",),
    ),
    ColumnFact("max", "Max", "us", "Duration of the row's longest event.", _DURATIONS, ("max_us",)),
    ColumnFact(
        "std",
        "Std",
        "us",
        "Standard deviation of the durations of the row's events (divided by n).",
        f"{_DURATIONS} 0 for a single event.",
        ("std_us",),
    ),
    ColumnFact(
        "first",
        "First",
        "us",
        "Duration of the row's first event: often longer than the others, because caches are cold.",
        _DURATIONS,
        ("first_us",),
    ),
)  # fmt: skip

# ---------------------------------------------------------------------------------------------------- counts and sizes

register(
    ColumnFact(
        "count",
        "# of Calls",
        "count",
        "Number of events in the row, synthetic ones included.",
        "Calls outside the recorded steps or threads are not counted.",
        ("calls", "n", "number_of_calls"),
    ),
    ColumnFact(
        "synthetic_count",
        "# synthetic",
        "count",
        "How many of the calls are synthetic: ops that torch shows inside another one, which mindtorch_v2 ran as part of one kernel. They have "
        "no time of their own, and averages and statistics of times leave them out.",
        "Not shown where there are none; --as-recorded leaves them out.",
        ("synthetic",),
    ),
    ColumnFact(
        "cpu_memory_usage",
        "CPU Mem",
        "bytes",
        "Bytes of tensor memory allocated minus bytes freed while the row's events ran, including their child events.",
        "Not a peak. Memory of Python and of other libraries is not included. Negative if more was freed than allocated. "
        "0 unless recorded with profile_memory=True.",
        ("cpu_mem", "mem", "memory"),
    ),
    ColumnFact(
        "self_cpu_memory_usage",
        "Self CPU Mem",
        "bytes",
        "CPU Mem without the child events.",
        "See CPU Mem.",
        ("self_cpu_mem", "self_mem", "self_memory"),
    ),
    ColumnFact(
        "device_memory_usage",
        "Device Mem",
        "bytes",
        "Bytes of device memory that the allocator allocated minus bytes it freed while the row's events ran.",
        "See CPU Mem. Memory that a library allocates on the device by itself is not included.",
        ("device_mem",),
    ),
    ColumnFact(
        "self_device_memory_usage", "Self device Mem", "bytes", "Device Mem without the child events.", "See CPU Mem.", ("self_device_mem",)
    ),
    ColumnFact(
        "flops",
        "FLOPs",
        "flops",
        "Floating-point operations of the row's events by torch's formulas: matrix products, convolutions, additions and multiplications.",
        "Ops without a formula count 0, in the backward pass too. A multiply-add counts as two. 0 unless recorded with with_flops=True.",
        ("total_flops",),
    ),
    ColumnFact("node_id", "Node ID", "number", "Node of a distributed job that the event is from; -1 if there is none."),
    ColumnFact("health", "Health", "text", "What is missing from the trace or was repaired in it. Empty means complete."),
)  # fmt: skip

# ---------------------------------------------------------------------------------------------------- single events, steps, memory

register(
    ColumnFact("row", "Row", "number", "Index of the event in the table of events, which is ordered by (thread, start)."),
    ColumnFact("parent", "Parent", "number", "Row of the parent event; empty for a root."),
    ColumnFact("depth", "Depth", "count", "Nesting level of the event: the number of its ancestors."),
    ColumnFact("start_us", "Start", "us", "Start of the event, measured from the start of the recording.", aliases=("start", "ts")),
    ColumnFact("end_us", "End", "us", "End of the event, measured from the start of the recording.", aliases=("end",)),
    ColumnFact("duration_us", "Duration", "us", "Time from start to end.", "Waiting is included.", ("dur", "duration", "wall")),
    ColumnFact("self_us", "Self", "us", "Duration without the child events.", "See Self CPU."),
    ColumnFact(
        "sequence_nr",
        "Sequence",
        "number",
        "Autograd's sequence number, which a forward op and its node of the backward pass share.",
        "-1 if no gradient is recorded.",
        ("sequence",),
    ),
    ColumnFact("events", "Events", "count", "Number of ops that started in the step.", "Neither annotations nor synthetic events."),
    ColumnFact(
        "busy_us",
        "CPU busy",
        "us",
        "Time in which at least one op ran on a CPU thread; ops that overlap on several threads count once.",
        "Python code between ops is not included.",
        ("busy",),
    ),
    ColumnFact(
        "device_busy_us",
        "Device busy",
        "us",
        "Time in which at least one kernel, copy or memset ran on the device; overlapping ones count once. The mean of several devices.",
        aliases=("device_busy",),
    ),
    ColumnFact("busy_share", "CPU busy %", "share", "CPU busy as a share of the duration."),
    ColumnFact("device_busy_share", "Device busy %", "share", "Device busy as a share of the duration: the device's utilisation."),
    ColumnFact("device_events", "Device events", "count", "Number of kernels, copies and memsets launched in the step."),
    ColumnFact("total_bytes", "Total", "bytes", "Bytes allocated after the change, counting allocations of this recording only.", aliases=("total_allocated",)),
    ColumnFact("nbytes", "Bytes", "bytes", "Bytes allocated (positive) or freed (negative).", aliases=("bytes",)),
    ColumnFact("address", "Address", "number", "Address of the memory."),
    ColumnFact("time_us", "Time", "us", "Time of the change, measured from the start of the recording.", aliases=("time",)),
    ColumnFact("stream", "Stream", "number", "Stream of the device on which the event ran."),
    ColumnFact("launched_by", "Launched by", "text", "The op that launched the kernel.", "Empty if the trace does not say."),
    ColumnFact("grid", "Grid", "text", "Size of the kernel's grid in blocks: x, y and z.", "Files of AMD do not have it."),
    ColumnFact("block", "Block", "text", "Size of a block of the kernel in threads: x, y and z.", "See Grid."),
    ColumnFact("threads", "Threads", "count", "Number of threads of the kernel: grid times block.", "See Grid."),
    ColumnFact("registers", "Registers", "count", "Registers per thread of the kernel.", "See Grid."),
    ColumnFact("shared_memory", "Shared memory", "bytes", "Shared memory of a block of the kernel.", "See Grid."),
    ColumnFact(
        "occupancy",
        "Occupancy",
        "share",
        "Occupancy that the profiler estimates: resident warps as a share of those that a multiprocessor can hold.",
        "An estimate from the launch, not a measurement.",
    ),
    ColumnFact("copied_bytes", "Copied", "bytes", "Bytes that a copy or memset moved.", "Empty for kernels."),
    ColumnFact("bandwidth", "GB/s", "number", "Bytes of a copy or memset divided by its duration, in gigabytes per second.", "Empty for kernels."),
    ColumnFact("tree", "Event", "text", "Name of the event, indented by its nesting level."),
)  # fmt: skip
