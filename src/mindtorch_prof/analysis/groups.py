"""Groups: a recording in; a Sheet with one row per group of events out, by name, shape, stack, module, step, thread or category.

Like `key_averages()`, with more keys and as columns. Rows are in the order in which groups first appear.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import averages as grouping
from ..arrays import Array, BoolArray, FloatArray, IntArray
from ..call_paths import STACK_DEPTH
from ..steps import steps_of
from ..tree import nearest
from .categories import categories, name_categories
from .recording import Recording, as_results
from .repeats import modules_of
from .sheet import ColumnValues, Sheet

if TYPE_CHECKING:
    from ..torch_api.results import Results

KEYS = ("name", "shape", "stack", "module", "step", "thread", "category")
MEMORY_ROW = "[memory]"
_COLUMN = {"shape": "input_shapes"}
STATS = grouping.Spread._fields

_KeyValues = tuple[IntArray, Sequence[object]]  # for each event the number of its value, and the values


class GroupError(ValueError):
    """A key that events cannot be grouped by."""


def groups(source: Recording, by: str | Sequence[str] = ("name",), *, stats: bool = False) -> Sheet:
    """One row per group of events.

    source: a stopped profile, a loaded trace, or a Trace.
    by: some of KEYS; `stack:3` compares three frames, `module:2` two levels of modules.
    stats: add statistics of the events' durations (STATS).

    Without "name", totals and statistics count nothing twice: neither events inside an event of the same group, nor device work
    in addition to the op that launched it.
    """
    results = as_results(source)
    wanted = [_parsed(key) for key in (by.split(",") if isinstance(by, str) else by)]
    if not wanted:
        raise GroupError(f"no key to group by; expected some of {', '.join(KEYS)}")
    events = _Events(results)
    parts = [events.key_values(key, depth) for key, depth in wanted]
    group, first = _group_numbers([number for number, _ in parts], events.start_ns)
    count = len(first)
    columns: dict[str, ColumnValues] = {}
    for (key, _), (number, values) in zip(wanted, parts):
        columns[_COLUMN.get(key, key)] = [values[n] for n in number[first].tolist()]
    named = any(key == "name" for key, _ in wanted)
    outer = None if named else events.outermost(group)
    columns.update(_measures(events, group, count, outer))
    if stats:
        counted = grouping.timed_events(events.is_recorded, group)
        if outer is not None:
            counted &= outer
        times = events.duration_ns[counted] / 1000.0
        columns.update(grouping.spread_columns(times, events.start_ns[counted], group[counted], count))
    sheet = Sheet(columns, count)
    return _with_memory_row(sheet, results) if named else sheet


def _parsed(key: str) -> tuple[str, int]:
    name, _, depth = key.strip().partition(":")
    name = {"shapes": "shape", "input_shapes": "shape", "op": "name"}.get(name, name)
    if name not in KEYS or (depth and name not in {"stack", "module"}):
        raise GroupError(f"cannot group by {key.strip()!r}; expected some of {', '.join(KEYS)}")
    if depth and (not depth.isdigit() or int(depth) < 1):
        raise GroupError(f"cannot group by {key.strip()!r}; expected {name}:N with N of 1 or more")
    return name, int(depth or 0)


class _Events:
    """The events to group: first those that tables show, then device events; one array per property."""

    def __init__(self, results: Results) -> None:
        self.results, self.trace = results, results.trace
        trace = self.trace
        self.rows = np.flatnonzero(results.shown)
        self.work = np.flatnonzero(trace.device.works)
        self.on_cpu = len(self.rows)
        self.size = len(self.rows) + len(self.work)
        device = trace.device
        self.start_ns = np.concatenate((trace.start_ns[self.rows], device.start_ns[self.work]))
        cpu_ns = (trace.end_ns - trace.start_ns)[self.rows]
        work_ns = (device.end_ns - device.start_ns)[self.work]
        self.duration_ns = np.concatenate((cpu_ns, work_ns))
        self.cpu_ns = self._padded(cpu_ns)
        self.self_ns = self._padded(results.shown_self_ns[self.rows])
        own, total = device_times(results)
        self.self_device_ns = np.concatenate((own[self.rows], work_ns))
        self.device_ns = np.concatenate((total[self.rows], work_ns))
        self.is_recorded = np.concatenate((trace.is_recorded[self.rows], np.ones(len(self.work), bool)))
        self.only_work_ns = np.concatenate((np.zeros(len(self.rows), np.int64), work_ns))
        self.work_ns = int(work_ns.sum())
        # of a device event the op that launched it, whose stack, module and step it has
        self.row_of_keys = np.concatenate((self.rows, device.op[self.work]))
        self.has_launcher = np.concatenate((np.zeros(len(self.rows), bool), device.op[self.work] >= 0))

    def _padded(self, values: IntArray) -> IntArray:
        return np.concatenate((values, np.zeros(len(self.work), values.dtype)))

    def of_cpu(self, by_row: IntArray) -> IntArray:
        """A column of the trace, padded with 0 for device events."""
        return self._padded(by_row[self.rows])

    def key_values(self, key: str, depth: int) -> _KeyValues:
        """The values of one key."""
        by_key: dict[str, Callable[[int], _KeyValues]] = {
            "name": self._by_name,
            "shape": self._by_shape,
            "stack": self._by_stack,
            "module": self._by_module,
            "step": self._by_step,
            "thread": self._by_thread,
            "category": self._by_category,
        }
        return by_key[key](depth)

    def outermost(self, group: IntArray) -> BoolArray:
        """Mask of the events that no event of their group contains; of device events, those that no op of their group launched."""
        start, end = self.trace.start_ns[self.rows], self.trace.end_ns[self.rows]
        thread, of_group = self.trace.thread[self.rows], group[: self.on_cpu]
        order = np.lexsort((-end, start, of_group, thread))
        first = np.ones(len(order), bool)
        first[1:] = (np.diff(thread[order]) != 0) | (np.diff(of_group[order]) != 0)
        outer = np.ones(len(order), bool)
        if len(order):
            # the latest end so far in each (thread, group): each is shifted above the one before, so that one pass does for all
            origin = int(start.min())
            shift = (np.cumsum(first) - 1).astype(np.float64) * float(end.max() - origin + 1)
            shifted_end = (end[order] - origin) + shift
            latest = np.maximum.accumulate(shifted_end)
            inside = np.zeros(len(order), bool)
            inside[1:] = ~first[1:] & (shifted_end[1:] <= latest[:-1])
            outer[order] = ~inside
        return np.concatenate((outer, ~self.launched_in_group(group)[self.on_cpu :]))

    def launched_in_group(self, group: IntArray) -> BoolArray:
        """Mask of the device events whose group also has CPU events: the op that launched them is counted instead."""
        with_ops = np.zeros(int(group.max(initial=-1)) + 1, bool)
        with_ops[group[: self.on_cpu]] = True
        return self.has_launcher & with_ops[group]

    # ------------------------------------------------------------------------------------------------ keys

    def _by_name(self, _depth: int) -> _KeyValues:
        group_of, texts = grouping.group_names(self.trace)
        device = self.trace.device
        values = [*texts, *device.names]
        cpu = group_of[self.trace.name[self.rows]] if len(group_of) else np.empty(0, np.int64)
        return np.concatenate((cpu, device.name[self.work] + len(texts))).astype(np.int64), values

    def _by_shape(self, _depth: int) -> _KeyValues:
        if not self.results.trace.settings.shapes_recorded:
            return np.zeros(self.size, np.int64), [[]]
        shapes = [inputs.shapes for inputs in self.trace.input_table]
        table: dict[str, int] = {}
        values: list[object] = []
        same = []
        for shape in [*shapes, []]:
            number = table.setdefault(str(shape), len(table))
            if number == len(values):
                values.append(shape)
            same.append(number)
        by_input = np.array(same, np.int64)
        index = np.concatenate((self.trace.inputs[self.rows], np.full(len(self.work), -1)))
        return by_input[index], values

    def _by_stack(self, depth: int) -> _KeyValues:
        depth = depth or STACK_DEPTH
        table: dict[tuple[str, ...], int] = {}
        ids = [table.setdefault(tuple(stack[:depth]), len(table)) for stack in [*self.trace.stacks, ()]]
        of_row = np.array(ids, np.int64)[self.trace.stack]
        return self._of_launcher(of_row, table[()]), [list(stack) for stack in table]

    def _by_module(self, depth: int) -> _KeyValues:
        number, paths = backward_modules(self.results)
        if depth:
            paths = [".".join(path.split(".")[:depth]) for path in paths]
        table: dict[str, int] = {}
        same = np.array([table.setdefault(path, len(table)) for path in paths], np.int64)
        return self._of_launcher(same[number], same[-1]), list(table)

    def _by_step(self, _depth: int) -> _KeyValues:
        steps, step, _ = steps_of(self.trace)
        return self._of_launcher(step, -1), [*steps, None]

    def _by_thread(self, _depth: int) -> _KeyValues:
        threads, number = np.unique(self.trace.thread[self.rows], return_inverse=True)
        texts: list[object] = [thread_text(self.results, thread) for thread in threads.tolist()]
        device = self.trace.device
        streams, of_work = np.unique(
            np.stack((device.device[self.work], device.stream[self.work])), axis=1, return_inverse=True
        )
        kind = self.trace.settings.device or "device"
        texts += [f"{kind}:{index} stream {stream}" for index, stream in streams.T.tolist()]
        return np.concatenate((number.reshape(-1), of_work.reshape(-1) + len(threads))), texts

    def _by_category(self, _depth: int) -> _KeyValues:
        number, texts = categories(self.trace)
        device = self.trace.device
        of_name = np.array([texts.index(text) for text in name_categories(device.names)] or [0], np.int64)
        launched = device.op[self.work]
        own = of_name[device.name[self.work]]
        # a collective's kernel is communication, whatever launched it
        by_launcher = (launched >= 0) & (own != texts.index("communication"))
        of_work = np.where(by_launcher, np.append(number, 0)[launched], own)
        return np.concatenate((number[self.rows], of_work)), texts

    def _of_launcher(self, of_row: IntArray, none: int) -> IntArray:
        """Numbers by row of the trace as numbers by event; a device event has that of the op that launched it."""
        numbers: IntArray = np.append(of_row, none)[self.row_of_keys]
        return numbers


def device_times(results: Results) -> tuple[IntArray, IntArray]:
    """By row of the trace: nanoseconds of the device events that an event launched itself, and with those of its descendants."""
    columns = results.device_columns
    if columns is None:
        nothing = np.zeros(len(results.trace), np.int64)
        return nothing, nothing
    return columns.own_ns, columns.total_ns


def backward_modules(results: Results) -> tuple[IntArray, list[str]]:
    """By row of the trace the number of its module, and the modules' paths. A backward node and its descendants belong to the module of the
    forward op with the node's sequence number."""
    trace = results.trace
    number, paths = modules_of(trace)
    nothing = len(paths) - 1
    number = np.where(number < 0, nothing, number)
    forward = np.flatnonzero((trace.sequence >= 0) & (trace.forward_thread == 0) & (number != nothing))
    nodes = np.flatnonzero((trace.sequence >= 0) & (trace.forward_thread != 0) & (number == nothing))
    if not len(forward) or not len(nodes):
        return number, paths
    # the last op of a sequence number is the innermost one: it created the node
    order = np.argsort(trace.sequence[forward], kind="stable")
    known = trace.sequence[forward][order]
    place = np.searchsorted(known, trace.sequence[nodes], side="right") - 1
    matched = (place >= 0) & (known[np.maximum(place, 0)] == trace.sequence[nodes])
    backward = np.full(len(trace), -1, np.int64)
    backward[nodes[matched]] = number[forward[order[place[matched]]]]
    node = nearest(results.nesting.parent, backward >= 0)
    backward = np.where(node >= 0, backward[node], -1)
    return np.where((number == nothing) & (backward >= 0), backward, number), paths


def thread_text(results: Results, thread: int) -> str:
    """A thread's name, if it has one, and its number."""
    native, name = results.trace.settings.threads.get(thread, (None, ""))
    number = results.thread_number(thread) if native is None else native
    return f"{name} {number}" if name and str(number) not in str(name) else str(name or number)


# ---------------------------------------------------------------------------------------------------- numbers


def _group_numbers(parts: list[IntArray], start_ns: IntArray) -> tuple[IntArray, IntArray]:
    """For each event the number of its group (equal numbers in all parts), in the order of first start; and each group's first event."""
    combined = np.zeros(len(start_ns), np.int64)
    for part in parts:
        shifted = part - part.min(initial=0)
        combined = combined * (int(shifted.max(initial=0)) + 1) + shifted
        combined = np.unique(combined, return_inverse=True)[1].reshape(-1)
    by_time = np.argsort(start_ns, kind="stable")
    _, place, number = np.unique(combined[by_time], return_index=True, return_inverse=True)
    order = np.argsort(place, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    group = np.empty(len(combined), np.int64)
    group[by_time] = rank[number.reshape(-1)]
    return group, by_time[place[order]]


def _measures(events: _Events, group: IntArray, count: int, outer: BoolArray | None) -> dict[str, Array]:
    """Sums by group, in torch's units. With `outer`, a mask of the events that no event of their group contains, totals count nothing twice:
    neither nested events nor device events in addition to the op that launched them."""
    results, trace = events.results, events.trace
    once = np.ones(len(group), np.int64) if outer is None else outer.astype(np.int64)

    def total(values: IntArray) -> Array:
        return np.bincount(group, weights=values, minlength=count)

    calls = np.bincount(group, minlength=count)
    if outer is not None:
        calls -= np.bincount(group[events.launched_in_group(group)], minlength=count)
    synthetic = np.bincount(group[~events.is_recorded], minlength=count)
    timed_calls = np.maximum(calls - synthetic, 1)
    own, whole = total(events.self_ns) / 1000, total(events.cpu_ns * once) / 1000
    all_own = events.self_ns.sum() / 1000
    columns: dict[str, Array] = {
        "self_cpu_share": _share(own, all_own),
        "self_cpu_time_total": own,
        "cpu_share": _share(whole, all_own),
        "cpu_time_total": whole,
        "cpu_time": whole / timed_calls,
    }
    if len(events.work):
        if outer is None:
            own, whole = total(events.self_device_ns) / 1000, total(events.device_ns) / 1000
        else:
            own = whole = total(events.only_work_ns) / 1000
        columns |= {
            "self_device_time_total": own,
            "self_device_share": _share(own, events.work_ns / 1000),
            "device_time_total": whole,
            "device_time": whole / timed_calls,
        }
    if trace.settings.profile_memory or len(trace.memory):
        columns["cpu_memory_usage"] = total(events.of_cpu(results.tree.memory) * once).astype(np.int64)
        columns["self_cpu_memory_usage"] = total(events.of_cpu(results.shown_self_memory)).astype(np.int64)
    if trace.memory.on_device.any():
        columns["device_memory_usage"] = total(events.of_cpu(results.tree.device_memory) * once).astype(
            np.int64
        )
        columns["self_device_memory_usage"] = total(events.of_cpu(results.shown_self_device_memory)).astype(
            np.int64
        )
    columns["count"] = calls
    if trace.n_synthetic:
        columns["synthetic_count"] = synthetic
    flops = total(events.of_cpu(np.maximum(trace.flops, 0)))
    if trace.settings.with_flops or flops.any():
        columns["flops"] = flops.astype(np.int64)
    return columns


def _share(values: FloatArray, whole: float) -> FloatArray:
    return values / whole if whole else np.zeros(len(values))


def _with_memory_row(sheet: Sheet, results: Results) -> Sheet:
    """The sheet with a row for memory that was allocated and freed outside of events, as in torch's table."""
    loose = results.tree.loose
    if not len(loose):
        return sheet
    memory = results.trace.memory
    on_device = memory.on_device[loose]
    nbytes = int(memory.nbytes[loose][~on_device].sum())
    device_nbytes = int(memory.nbytes[loose][on_device].sum())
    known: dict[str, object] = {
        "name": MEMORY_ROW,
        "count": len(loose),
        "cpu_memory_usage": nbytes,
        "self_cpu_memory_usage": nbytes,
        "device_memory_usage": device_nbytes,
        "self_device_memory_usage": device_nbytes,
        "input_shapes": [],
        "stack": [],
        "module": "",
        "thread": "",
        "category": "other",
    }
    columns: dict[str, ColumnValues] = {}
    for key, values in sheet.items():
        value = known.get(key, None if values.dtype == object else np.nan if key in STATS else 0)
        if values.dtype == object:
            columns[key] = [*values.tolist(), value]
        else:
            columns[key] = np.append(values, np.array([value], values.dtype))
    return Sheet(columns, sheet.n_rows + 1)
