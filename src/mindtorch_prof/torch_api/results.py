"""Results: a Trace in; its tree, events and averages out, each computed once, when it is first asked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .. import averages as grouping
from ..call_paths import innermost_frames
from ..export import stacks as stack_files
from ..forward_backward import forward_backward
from ..inputs import Inputs
from ..trace import ANNOTATION, NODE, PYTHON, RUNTIME, Trace
from ..tree import Nesting, Tree, nearest, sum_by, trace_nesting, tree
from .column_lists import int_list
from .device_times import DeviceColumns, device_columns, device_events, in_order_of_start, metadata_of
from .enums import DeviceType
from .event_list import EventList
from .event_metadata import EventMetadata
from .function_events import MEMORY_EVENT_NAME, FunctionEvent, FunctionEventAvg, Interval, Kernel

if TYPE_CHECKING:
    from ..analysis.recording import Recording
    from .event_tree import EventTree
    from .memory_profile import MemoryProfile

_ACTIVITIES = {ANNOTATION: "user_annotation", PYTHON: "python_function", RUNTIME: "cuda_runtime"}


class RowEvent(FunctionEvent):
    """A FunctionEvent that looks its fields up in the columns when they are read."""

    # torch's values of fields that the columns do not hold
    node_id = -1
    count = 1
    is_async = is_remote = is_legacy = False
    self_cpu_percent = total_cpu_percent = total_device_percent = -1
    linked_correlation_id = 0
    python_id = python_parent_id = python_module_id = -1
    device_type = DeviceType.CPU
    _results: Results
    _row: int

    def __init__(self, results: Results, row: int, name: str) -> None:
        self._results = results
        self._row = row
        self.name = name

    def __getattr__(self, field: str) -> object:
        read = _FIELDS.get(field)
        if read is None:
            raise AttributeError(f"'FunctionEvent' object has no attribute '{field}'")
        value = read(self._results, self._row)
        self.__dict__[field] = value
        return value

    @property
    def is_synthetic(self) -> bool:  # type: ignore[override]  # computed, not stored
        synthetic = self._results.trace.synthetic
        return synthetic is not None and bool(synthetic[self._row])

    @property
    def synthetic_count(self) -> int:  # type: ignore[override]  # computed, not stored
        return int(self.is_synthetic)

    @property
    def self_cpu_time_total(self) -> float:
        return self._results.self_list[self._row] / 1000

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]  # computed, not stored
        return self._results.duration_list[self._row] / 1000

    @property
    def self_cpu_memory_usage(self) -> int:
        return int(self._results.shown_self_memory[self._row])

    @property
    def self_device_memory_usage(self) -> int:
        return int(self._results.shown_self_device_memory[self._row])

    @property
    def device_time_total(self) -> float:  # type: ignore[override]  # computed, not stored
        columns = self._results.device_columns
        return 0 if columns is None else int(columns.total_ns[self._row]) / 1000

    @property
    def self_device_time_total(self) -> float:
        columns = self._results.device_columns
        return 0 if columns is None else int(columns.own_ns[self._row]) / 1000


class RowAverage(FunctionEventAvg):
    """A FunctionEventAvg that looks up the parent and the children of its first event when they are read: it takes objects of all events."""

    def __init__(self, results: Results, first: int) -> None:
        super().__init__()
        del self.cpu_parent, self.cpu_children
        self._first = results, first

    def __getattr__(self, field: str) -> object:
        if field not in ("cpu_parent", "cpu_children"):
            raise AttributeError(f"'FunctionEventAvg' object has no attribute '{field}'")
        results, first = self._first
        value = _FIELDS[field](results, first)
        setattr(self, field, value)
        return value


def _time_range(results: Results, row: int) -> Interval:
    start = results.start_list[row]
    return Interval(start / 1000, (start + results.duration_list[row]) / 1000)


_NO_INPUTS = Inputs(())


def _inputs(results: Results, row: int) -> Inputs:
    index = int(results.trace.inputs[row])
    shown = index >= 0 and results.trace.settings.shapes_recorded
    return results.trace.input_table[index] if shown else _NO_INPUTS


def _concrete(results: Results, row: int) -> list[object]:
    values: list[object] = list(_inputs(results, row).values)
    if results.trace.settings.concrete_inputs:
        return values
    return [None if isinstance(value, list) else value for value in values]


def _metadata(results: Results, row: int) -> EventMetadata | None:
    extra = results.trace.extra
    return None if extra is None or extra[row] < 0 else metadata_of(results.trace.extra_table[extra[row]])


def _flops(results: Results, row: int) -> int:
    return int(results.trace.flops[row])


_FIELDS: dict[str, Callable[[Results, int], object]] = {
    "id": lambda r, i: r.number(i),
    "external_id": lambda r, i: r.number(i),
    "activity_type": lambda r, i: _ACTIVITIES.get(int(r.trace.kind[i]), "cpu_op"),
    "device_index": lambda r, i: int(r.trace.settings.pid),
    "trace_name": lambda r, i: r.trace.names[r.trace.name[i]],
    "overload_name": lambda r, i: r.trace.shown_overloads[r.trace.name[i]],
    "time_range": _time_range,
    "thread": lambda r, i: r.thread_number(int(r.trace.thread[i])),
    "fwd_thread": lambda r, i: r.thread_number(int(r.trace.forward_thread[i])),
    "device_resource_id": lambda r, i: r.system_thread(int(r.trace.thread[i])),
    "flow_id": lambda r, i: int(r.flows[i]),
    "flow_type": lambda r, i: int(r.flows[i] > 0),
    "flow_start": lambda r, i: bool(r.flows[i] > 0 and r.trace.kind[i] != NODE),
    "kernels": lambda r, i: r.kernels(i),
    "use_device": lambda r, i: r.use_device,
    "device_memory_usage": lambda r, i: int(r.tree.device_memory[i]),
    "cpu_parent": lambda r, i: r.parent_event(i),
    "cpu_children": lambda r, i: r.child_events(i),
    "input_shapes": lambda r, i: list(_inputs(r, i).shapes),
    "structured_input_shapes": lambda r, i: list(_inputs(r, i).dims),
    "structured_input_strides": lambda r, i: list(_inputs(r, i).strides),
    "input_dtypes": lambda r, i: list(_inputs(r, i).types),
    "concrete_inputs": _concrete,
    "kwinputs": lambda r, i: dict(_inputs(r, i).keywords),
    "stack": lambda r, i: list(r.trace.stacks[r.trace.stack[i]]) if r.trace.stack[i] >= 0 else [],
    "scope": lambda r, i: int(r.trace.scope[i]),
    "sequence_nr": lambda r, i: int(r.trace.sequence[i]),
    "cpu_memory_usage": lambda r, i: int(r.tree.memory[i]),
    "flops": _flops,
    "is_user_annotation": lambda r, i: bool(r.trace.kind[i] == ANNOTATION),
    "event_metadata": _metadata,
    "_metadata_json": lambda r, i: f'"Ev Idx": {i}' if r.trace.settings.event_metadata else "",
    "is_python_function": lambda r, i: bool(r.trace.kind[i] == PYTHON),
}


class Results:
    """Everything computed from one Trace."""

    trace: Trace

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    @cached_property
    def nesting(self) -> Nesting:
        """Which event contains which: the part of `tree` that takes a third of its time."""
        return trace_nesting(self.trace)

    @cached_property
    def tree(self) -> Tree:
        return tree(self.trace, self.nesting)

    @cached_property
    def event_tree(self) -> EventTree:
        """Events, Python calls and allocations as one tree of torch's `_ProfilerEvent`s."""
        from .event_tree import EventTree

        # a tree that is already there saves work, but is not computed for this: no self times are needed
        return EventTree(self.trace, self.__dict__.get("tree"))

    @cached_property
    def memory_profile(self) -> MemoryProfile | None:
        """What each piece of memory is for, as torch decides it; None where tensors were not told apart."""
        if not (self.trace.tensor_ids and self.trace.settings.tensors_tracked):
            return None
        from .event_tree import _ProfilerResult
        from .memory_profile import MemoryProfile

        return MemoryProfile(_ProfilerResult(self))

    @cached_property
    def flows(self) -> npt.NDArray[np.integer]:
        """For each row the number of the link between a forward op and its backward node; 0 if there is none."""
        flow = np.zeros(len(self.trace), np.int64)
        source, target = forward_backward(self.trace)
        # an op that several nodes belong to shows the first of them
        flow[source[::-1]] = np.arange(len(source), 0, -1)
        flow[target] = np.arange(1, len(target) + 1)
        return flow

    @cached_property
    def shown(self) -> npt.NDArray[np.bool_]:
        """Mask of the events that lists show: Python calls only where the settings say so, and only one of a parent and its only
        child of the same name."""
        unmerged = ~grouping.merged(self.trace, self.nesting.parent)
        return unmerged if self.trace.settings.python_functions else unmerged & (self.trace.kind != PYTHON)

    @cached_property
    def shown_parent(self) -> npt.NDArray[np.integer]:
        """Parents among the shown events."""
        parent = self.nesting.parent
        if not len(parent):
            return parent
        shown = nearest(parent, self.shown)
        return np.where(parent >= 0, shown[np.maximum(parent, 0)], -1)

    @cached_property
    def shown_self_ns(self) -> npt.NDArray[np.integer]:
        return self._own(self.trace.end_ns - self.trace.start_ns, self.nesting.claimed_ns)

    @cached_property
    def shown_self_memory(self) -> npt.NDArray[np.integer]:
        return self._own(self.tree.memory, self.tree.memory)

    @cached_property
    def shown_self_device_memory(self) -> npt.NDArray[np.integer]:
        return self._own(self.tree.device_memory, self.tree.device_memory)

    @property
    def use_device(self) -> str | None:
        """The kind of device beside the CPU, if there is one."""
        return self.trace.settings.device

    @cached_property
    def device_columns(self) -> DeviceColumns | None:
        """Time on devices by event; None where the trace has no work of devices."""
        return device_columns(self) if len(self.trace.device) else None

    def kernels(self, row: int) -> list[Kernel]:
        """The kernels, copies and fills that an event launched."""
        columns = self.device_columns
        return [] if columns is None else columns.kernels(row)

    def number(self, row: int) -> int:
        """An event's number: that of its file; else its place among all that the process has recorded."""
        external = self.trace.external
        if external is None:
            return row + 1 + self.trace.settings.numbered_after
        return int(external[row])

    def _own(
        self, total: npt.NDArray[np.integer], claimed: npt.NDArray[np.integer]
    ) -> npt.NDArray[np.integer]:
        """The values of shown events less those that their shown children claim."""
        inner = self.shown & (self.shown_parent >= 0)
        of_children: npt.NDArray[np.integer] = sum_by(self.shown_parent[inner], claimed[inner], len(total))
        return total - of_children

    def owns(self, events: object) -> bool:
        """Whether a list is `events`, and neither averages nor another list."""
        return self.__dict__.get("events") is events

    # as lists, for the fields of events

    @cached_property
    def start_list(self) -> list[int]:
        return int_list(self.trace.start_ns - self.trace.window_ns[0])

    @cached_property
    def duration_list(self) -> list[int]:
        return int_list(self.trace.end_ns - self.trace.start_ns)

    @cached_property
    def self_list(self) -> list[int]:
        return int_list(self.shown_self_ns)

    @cached_property
    def _threads(self) -> dict[int, int]:
        numbers = {0: 0}
        main = self.trace.settings.thread
        for thread in [main, *np.unique(self.trace.thread).tolist()]:
            numbers.setdefault(thread, len(numbers))
        return numbers

    def thread_number(self, thread: int) -> int:
        """Threads are numbered from 1 in events, as torch does; 0 is none."""
        return self._threads.setdefault(thread, len(self._threads))

    def system_thread(self, thread: int) -> int:
        """The system's number of a thread; where that is unknown, its identity."""
        number_and_name = self.trace.settings.threads.get(thread)
        return thread if number_and_name is None else number_and_name[0]

    # ------------------------------------------------------------------------------------------------ events

    @cached_property
    def _by_row(self) -> dict[int, RowEvent]:
        group_of, groups = grouping.group_names(self.trace)
        names = [groups[number] for number in group_of.tolist()]
        rows = np.flatnonzero(self.shown)
        return {
            row: RowEvent(self, row, names[name])
            for row, name in zip(rows.tolist(), self.trace.name[rows].tolist())
        }

    @cached_property
    def events(self) -> EventList[FunctionEvent]:
        """All events, in the order in which they began, with memory outside events as [memory]."""
        by_row = list(self._by_row.values())
        starts = self.trace.start_ns[self.shown]
        events: list[FunctionEvent] = [by_row[i] for i in np.argsort(starts, kind="stable").tolist()]
        others = [*self._loose_events(), *device_events(self)]
        if others:
            events = sorted([*events, *others], key=lambda event: event.time_range.start)
        settings = self.trace.settings
        return EventList(
            events,
            use_device=self.use_device,
            profile_memory=settings.profile_memory,
            with_flops=settings.with_flops,
            results=self,
        )

    def _loose_events(self) -> list[FunctionEvent]:
        """Allocations and frees outside all events."""
        memory, begin_ns = self.trace.memory, self.trace.window_ns[0]
        on_device = memory.on_device
        events = []
        for i in self.tree.loose.tolist():
            time_us = (int(memory.time_ns[i]) - begin_ns) / 1000
            events.append(
                FunctionEvent(
                    id=0,
                    name=MEMORY_EVENT_NAME,
                    trace_name=None,
                    thread=self.thread_number(int(memory.thread[i])),
                    start_us=time_us,
                    end_us=time_us,
                    overload_name="",
                    fwd_thread=0,
                    input_shapes=[],
                    stack=[],
                    scope=0,
                    use_device=self.use_device,
                    cpu_memory_usage=0 if on_device[i] else int(memory.nbytes[i]),
                    device_memory_usage=int(memory.nbytes[i]) if on_device[i] else 0,
                )
            )
        return events

    def parent_event(self, row: int) -> RowEvent | None:
        """The event around the event of a row."""
        parent = int(self.shown_parent[row])
        return None if parent < 0 else self._by_row[parent]

    @cached_property
    def _children(self) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]:
        """Shown events that have a shown parent, by parent: the parents, and the rows."""
        rows = np.flatnonzero(self.shown & (self.shown_parent >= 0))
        order = np.argsort(self.shown_parent[rows], kind="stable")
        return self.shown_parent[rows][order], rows[order]

    def child_events(self, row: int) -> list[RowEvent]:
        """The events directly inside the event of a row."""
        parents, rows = self._children
        first, last = np.searchsorted(parents, [row, row + 1])
        return [self._by_row[r] for r in rows[first:last].tolist()]

    # ------------------------------------------------------------------------------------------------ averages

    def key_averages(
        self, by_shape: bool = False, by_stack: int = 0, by_overload: bool = False, *, stats: bool = False
    ) -> EventList[FunctionEventAvg]:
        """One FunctionEventAvg per group of events. With `stats`, their table shows how durations are spread."""
        trace = self.trace
        shapes = stacks = None
        if by_shape:
            shapes = grouping.shape_numbers(trace, [inputs.shapes for inputs in trace.input_table])
        if by_stack > 0:
            stacks = self._stack_numbers(by_stack)
        shown_tree = replace(
            self.tree,
            self_ns=self.shown_self_ns,
            self_memory=self.shown_self_memory,
            self_device_memory=self.shown_self_device_memory,
        )
        device = self.device_columns
        rows = grouping.averages(
            trace,
            shown_tree,
            self.shown,
            by_inputs=shapes,
            by_stack=stacks,
            by_overload=by_overload and trace.settings.overload_names,
            device_ns=None if device is None else device.total_ns,
            self_device_ns=None if device is None else device.own_ns,
        )
        averages = self._avg_objects(rows, by_shape, by_stack, by_overload)
        spreads = cache(lambda: grouping.spreads(trace, rows, self.shown))
        for number, average in enumerate(averages):
            average._spread = (spreads, number)
        more, starts = ([], np.empty(0, np.int64)) if device is None else device.averages(by_shape)
        if len(self.tree.loose):
            more = [*more, self._loose_average(by_shape)]
            starts = np.append(starts, trace.memory.time_ns[self.tree.loose].min())
        if more:
            averages = in_order_of_start(averages, trace.start_ns[rows.first], more, starts)
        settings = trace.settings
        return EventList(
            averages,
            use_device=self.use_device,
            profile_memory=settings.profile_memory,
            with_flops=settings.with_flops,
            results=self,
            stats=stats,
        )

    def _stack_numbers(self, depth: int) -> npt.NDArray[np.integer]:
        """By event the number of the innermost frames of its stack; events without a stack have that of an empty one."""
        trace = self.trace
        numbers: dict[tuple[str, ...], int] = {}
        by_stack = [
            numbers.setdefault(innermost_frames(trace.stacks, i, depth), len(numbers))
            for i in range(len(trace.stacks))
        ]
        by_stack.append(numbers.setdefault((), len(numbers)))
        by_event: npt.NDArray[np.integer] = np.array(by_stack, np.int64)[trace.stack]
        return by_event

    def _avg_objects(
        self, rows: grouping.Rows, by_shape: bool, by_stack: int, by_overload: bool
    ) -> list[FunctionEventAvg]:
        trace = self.trace
        averages: list[FunctionEventAvg] = []
        columns = zip(
            rows.names,
            rows.first.tolist(),
            rows.count.tolist(),
            rows.synthetic.tolist(),
            rows.total_ns.tolist(),
            rows.self_ns.tolist(),
            rows.memory.tolist(),
            rows.self_memory.tolist(),
            rows.flops.tolist(),
            rows.device_memory.tolist(),
            rows.self_device_memory.tolist(),
            rows.device_ns.tolist(),
            rows.self_device_ns.tolist(),
        )
        for name, first, count, synthetic, total, own, memory, own_memory, flops, *on_device in columns:
            row = RowAverage(self, first)
            row.key, row.count, row.synthetic_count = name, count, synthetic
            row.cpu_time_total, row.self_cpu_time_total = total / 1000, own / 1000
            row.cpu_memory_usage, row.self_cpu_memory_usage, row.flops = memory, own_memory, flops
            row.device_memory_usage, row.self_device_memory_usage = on_device[:2]
            row.device_time_total, row.self_device_time_total = on_device[2] / 1000, on_device[3] / 1000
            row.use_device = self.use_device
            row.scope, row.node_id = int(trace.scope[first]), -1
            row.is_user_annotation = bool(trace.kind[first] == ANNOTATION)
            row.overload_name = trace.shown_overloads[trace.name[first]] if by_overload else ""
            row.input_shapes = list(_inputs(self, first).shapes) if by_shape else ""
            stack = (
                innermost_frames(trace.stacks, int(trace.stack[first]), by_stack)
                if by_stack > 0 and trace.stack[first] >= 0
                else ()
            )
            row.stack = list(stack)
            averages.append(row)
        return averages

    def _loose_average(self, by_shape: bool) -> FunctionEventAvg:
        """The row [memory]: allocations and frees outside all events."""
        row = FunctionEventAvg()
        on_cpu, on_device = self._loose_bytes()
        row.key, row.count, row.scope, row.node_id = MEMORY_EVENT_NAME, len(self.tree.loose), 0, -1
        row.cpu_children = []
        row.cpu_memory_usage = row.self_cpu_memory_usage = on_cpu
        row.device_memory_usage = row.self_device_memory_usage = on_device
        row.use_device = self.use_device
        row.input_shapes, row.stack, row.overload_name, row.flops = ([] if by_shape else ""), [], "", 0
        return row

    def _loose_bytes(self) -> tuple[int, int]:
        """Bytes allocated less bytes freed outside all events: on the CPU, and on devices."""
        memory, loose = self.trace.memory, self.tree.loose
        on_device = memory.on_device[loose]
        return int(memory.nbytes[loose[~on_device]].sum()), int(memory.nbytes[loose[on_device]].sum())

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events, as a row `Total`."""
        total = FunctionEventAvg()
        shown, loose = self.shown, self.tree.loose
        total.count = int(shown.sum()) + len(loose)
        total.synthetic_count = int((shown & ~self.trace.is_recorded).sum())
        if total.count:
            total.node_id, total.scope, total.cpu_children = -1, 0, []
            total.input_shapes, total.overload_name, total.stack = [], "", []
        total.key = "Total"
        total.cpu_time_total = int((self.trace.end_ns - self.trace.start_ns)[shown].sum()) / 1000
        total.self_cpu_time_total = int(self.shown_self_ns[shown].sum()) / 1000
        outside, outside_on_device = self._loose_bytes()
        total.cpu_memory_usage = int(self.tree.memory[shown].sum()) + outside
        total.self_cpu_memory_usage = int(self.shown_self_memory[shown].sum()) + outside
        total.flops = int(self.trace.flops[shown].sum())
        total.device_memory_usage = int(self.tree.device_memory[shown].sum()) + outside_on_device
        total.self_device_memory_usage = int(self.shown_self_device_memory[shown].sum()) + outside_on_device
        total.use_device = self.use_device
        device = self.device_columns
        if device is not None:
            total.count += device.rows
            total.device_time_total = (int(device.total_ns[shown].sum()) + device.duration_ns) / 1000
            total.self_device_time_total = (int(device.own_ns[shown].sum()) + device.duration_ns) / 1000
        return total

    # ------------------------------------------------------------------------------------------------ exports

    def export_stacks(self, path: str | os.PathLike[str], metric: str) -> None:
        """Write the events' stacks with a metric."""
        if not self.trace.settings.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        stack_files.export_trace_stacks(self.trace, self.shown_self_ns, self.shown, path, metric)

    def export_memory_timeline(self, path: str | os.PathLike[str], device: str | None = None) -> None:
        """Write the bytes allocated over time."""
        from ..export.memory_timeline import export_memory_timeline

        export_memory_timeline(self, path, device)

    def export_html(self, path: str | os.PathLike[str], other: Recording | None = None) -> None:
        """Write one self-contained page that shows where time and memory went; `other`: a second recording, to compare with."""
        from ..export.html import export_html

        export_html(self, path, other)

    def _repr_html_(self) -> str:
        """The averages as a small table to sort and filter, for notebooks."""
        from .notebook import results_table

        return results_table(self)
