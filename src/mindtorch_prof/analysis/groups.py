"""Groups: a recording in; a Sheet with one row a group of events out, by name, shape, stack, module, step, thread or category.

What `key_averages()` does, by more keys and as columns. Rows stand in the order in which groups first appear.
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
STATS = ("min", "p50", "p95", "max", "std", "first")

_Part = tuple[IntArray, Sequence[object]]  # of each event the number of its value of a key, and the values


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
    parts = [events.part(key, depth) for key, depth in wanted]
    group, first = _combined([number for number, _ in parts], events.start_ns)
    count = len(first)
    columns: dict[str, ColumnValues] = {}
    for (key, _), (number, values) in zip(wanted, parts):
        columns[_COLUMN.get(key, key)] = [values[n] for n in number[first].tolist()]
    named = any(key == "name" for key, _ in wanted)
    outer = None if named else events.outermost(group)
    columns.update(_measures(events, group, count, outer))
    if stats:
        seen = slice(None) if outer is None else outer
        columns.update(_spread(events.duration_ns[seen], group[seen], events.duration_ns[first], count))
    made = Sheet(columns, count)
    return _with_loose_memory(made, results) if named else made


def _parsed(key: str) -> tuple[str, int]:
    name, _, depth = key.strip().partition(":")
    name = {"shapes": "shape", "input_shapes": "shape", "op": "name"}.get(name, name)
    if name not in KEYS or (depth and name not in {"stack", "module"}):
        raise GroupError(f"cannot group by {key.strip()!r}; expected some of {', '.join(KEYS)}")
    if depth and (not depth.isdigit() or int(depth) < 1):
        raise GroupError(f"cannot group by {key.strip()!r}; expected {name}:N with N of 1 or more")
    return name, int(depth or 0)


class _Events:
    """The events that are grouped: those that tables show, then what devices did; one array a property."""

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
        self.only_work_ns = np.concatenate((np.zeros(len(self.rows), np.int64), work_ns))
        self.work_ns = int(work_ns.sum())
        # the op that launched a piece of work, for what is not known of the work itself
        self.origin = np.concatenate((self.rows, device.op[self.work]))
        self.origin_known = np.concatenate((np.zeros(len(self.rows), bool), device.op[self.work] >= 0))

    def _padded(self, values: IntArray) -> IntArray:
        return np.concatenate((values, np.zeros(len(self.work), values.dtype)))

    def of_cpu(self, by_row: IntArray) -> IntArray:
        """A column of the trace, 0 for what devices did."""
        return self._padded(by_row[self.rows])

    def part(self, key: str, depth: int) -> _Part:
        """Of each event the number of its value of a key, and the values."""
        parts: dict[str, Callable[[int], _Part]] = {
            "name": self._by_name,
            "shape": self._by_shape,
            "stack": self._by_stack,
            "module": self._by_module,
            "step": self._by_step,
            "thread": self._by_thread,
            "category": self._by_category,
        }
        return parts[key](depth)

    def outermost(self, group: IntArray) -> BoolArray:
        """Mask of the events that no event of their own group is around; device work counts where no op stands for it."""
        start, end = self.trace.start_ns[self.rows], self.trace.end_ns[self.rows]
        thread, of_group = self.trace.thread[self.rows], group[: self.on_cpu]
        order = np.lexsort((-end, start, of_group, thread))
        first = np.ones(len(order), bool)
        first[1:] = (np.diff(thread[order]) != 0) | (np.diff(of_group[order]) != 0)
        outer = np.ones(len(order), bool)
        if len(order):
            # the latest end so far, apart for each (thread, group): parts are lifted above each other
            begun = int(start.min())
            lift = (np.cumsum(first) - 1).astype(np.float64) * float(end.max() - begun + 1)
            latest = np.maximum.accumulate((end[order] - begun) + lift)
            inside = np.zeros(len(order), bool)
            inside[1:] = ~first[1:] & ((end[order] - begun + lift)[1:] <= latest[:-1])
            outer[order] = ~inside
        return np.concatenate((outer, ~self.repeated(group)[self.on_cpu :]))

    def repeated(self, group: IntArray) -> BoolArray:
        """Mask of the device work whose group has CPU events: there the op that launched it stands for it."""
        with_ops = np.zeros(int(group.max(initial=-1)) + 1, bool)
        with_ops[group[: self.on_cpu]] = True
        return self.origin_known & with_ops[group]

    # ------------------------------------------------------------------------------------------------ keys

    def _by_name(self, _depth: int) -> _Part:
        group_of, texts = grouping.group_names(self.trace)
        device = self.trace.device
        values = [*texts, *device.names]
        cpu = group_of[self.trace.name[self.rows]] if len(group_of) else np.empty(0, np.int64)
        return np.concatenate((cpu, device.name[self.work] + len(texts))).astype(np.int64), values

    def _by_shape(self, _depth: int) -> _Part:
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

    def _by_stack(self, depth: int) -> _Part:
        depth = depth or STACK_DEPTH
        table: dict[tuple[str, ...], int] = {}
        ids = [table.setdefault(tuple(stack[:depth]), len(table)) for stack in [*self.trace.stacks, ()]]
        of_row = np.array(ids, np.int64)[self.trace.stack]
        return self._inherited(of_row, table[()]), [list(stack) for stack in table]

    def _by_module(self, depth: int) -> _Part:
        number, paths = backward_modules(self.results)
        if depth:
            paths = [".".join(path.split(".")[:depth]) for path in paths]
        table: dict[str, int] = {}
        same = np.array([table.setdefault(path, len(table)) for path in paths], np.int64)
        return self._inherited(same[number], same[-1]), list(table)

    def _by_step(self, _depth: int) -> _Part:
        steps, step, _ = steps_of(self.trace)
        return self._inherited(step, -1), [*steps, None]

    def _by_thread(self, _depth: int) -> _Part:
        threads, number = np.unique(self.trace.thread[self.rows], return_inverse=True)
        texts: list[object] = [thread_text(self.results, thread) for thread in threads.tolist()]
        device = self.trace.device
        streams, of_work = np.unique(
            np.stack((device.device[self.work], device.stream[self.work])), axis=1, return_inverse=True
        )
        kind = self.trace.settings.device or "device"
        texts += [f"{kind}:{index} stream {stream}" for index, stream in streams.T.tolist()]
        return np.concatenate((number.reshape(-1), of_work.reshape(-1) + len(threads))), texts

    def _by_category(self, _depth: int) -> _Part:
        number, texts = categories(self.trace)
        device = self.trace.device
        of_name = np.array([texts.index(text) for text in name_categories(device.names)] or [0], np.int64)
        launched = device.op[self.work]
        of_work = np.where(launched >= 0, np.append(number, 0)[launched], of_name[device.name[self.work]])
        return np.concatenate((number[self.rows], of_work)), texts

    def _inherited(self, of_row: IntArray, none: int) -> IntArray:
        """A number by row of the trace; device work has that of the op which launched it."""
        numbers: IntArray = np.append(of_row, none)[self.origin]
        return numbers


def device_times(results: Results) -> tuple[IntArray, IntArray]:
    """By row of the trace: nanoseconds of device work that an event launched itself, and with everything inside it."""
    columns = results.device_columns
    if columns is None:
        nothing = np.zeros(len(results.trace), np.int64)
        return nothing, nothing
    return columns.own_ns, columns.total_ns


def backward_modules(results: Results) -> tuple[IntArray, list[str]]:
    """By row of the trace the number of its module and the modules' paths; what happens inside a node of the backward pass belongs to the
    module of the forward op with the node's sequence number."""
    trace = results.trace
    number, paths = modules_of(trace)
    nothing = len(paths) - 1
    number = np.where(number < 0, nothing, number)
    forward = np.flatnonzero((trace.sequence >= 0) & (trace.forward_thread == 0) & (number != nothing))
    nodes = np.flatnonzero((trace.sequence >= 0) & (trace.forward_thread != 0) & (number == nothing))
    if not len(forward) or not len(nodes):
        return number, paths
    # the last op of a number is the innermost: the one that made the node
    order = np.argsort(trace.sequence[forward], kind="stable")
    known = trace.sequence[forward][order]
    at = np.searchsorted(known, trace.sequence[nodes], side="right") - 1
    fits = (at >= 0) & (known[np.maximum(at, 0)] == trace.sequence[nodes])
    answered = np.full(len(trace), -1, np.int64)
    answered[nodes[fits]] = number[forward[order[at[fits]]]]
    around = nearest(results.tree.parent, answered >= 0)
    answered = np.where(around >= 0, answered[around], -1)
    return np.where((number == nothing) & (answered >= 0), answered, number), paths


def thread_text(results: Results, thread: int) -> str:
    """A thread as people know it: its name and the system's number."""
    native, name = results.trace.settings.threads.get(thread, (None, ""))
    number = results.thread_number(thread) if native is None else native
    return f"{name} {number}" if name and str(number) not in str(name) else str(name or number)


# ---------------------------------------------------------------------------------------------------- numbers


def _combined(parts: list[IntArray], start_ns: IntArray) -> tuple[IntArray, IntArray]:
    """Equal tuples get equal numbers, in the order in which they first happen; and the place of each one's first event."""
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
    """Sums by group, in torch's units. With `outer`, which events are in no other of their group, totals count nothing twice: what is inside,
    and device work beside the op that launched it."""
    results, trace = events.results, events.trace
    once = np.ones(len(group), np.int64) if outer is None else outer.astype(np.int64)

    def total(values: IntArray) -> Array:
        return np.bincount(group, weights=values, minlength=count)

    calls = np.bincount(group, minlength=count)
    if outer is not None:
        calls -= np.bincount(group[events.repeated(group)], minlength=count)
    own, whole = total(events.self_ns) / 1000, total(events.cpu_ns * once) / 1000
    all_own = events.self_ns.sum() / 1000
    columns: dict[str, Array] = {
        "self_cpu_share": _share(own, all_own),
        "self_cpu_time_total": own,
        "cpu_share": _share(whole, all_own),
        "cpu_time_total": whole,
        "cpu_time": whole / np.maximum(calls, 1),
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
            "device_time": whole / np.maximum(calls, 1),
        }
    if trace.settings.profile_memory or len(trace.memory):
        columns["cpu_memory_usage"] = total(events.of_cpu(results.tree.memory) * once).astype(np.int64)
        columns["self_cpu_memory_usage"] = total(events.of_cpu(results.shown_self_memory)).astype(np.int64)
    columns["count"] = calls
    flops = total(events.of_cpu(np.maximum(trace.flops, 0)))
    if trace.settings.with_flops or flops.any():
        columns["flops"] = flops.astype(np.int64)
    return columns


def _share(values: FloatArray, whole: float) -> FloatArray:
    return values / whole if whole else np.zeros(len(values))


def _spread(duration_ns: IntArray, group: IntArray, first_ns: IntArray, count: int) -> dict[str, Array]:
    """How the times of each group's events are spread: one sort of all durations, then places in it."""
    us = duration_ns / 1000.0
    ordered = us[np.lexsort((us, group))]
    calls = np.bincount(group, minlength=count)
    begin = np.cumsum(calls) - calls

    def quantile(q: float) -> FloatArray:
        place = q * (calls - 1)
        low = np.floor(place).astype(np.int64)
        high = np.minimum(low + 1, calls - 1)
        one, two = ordered[begin + low], ordered[begin + high]
        between: FloatArray = one + (two - one) * (place - low)
        return between

    if not count:
        return {name: np.empty(0) for name in STATS}
    mean = np.bincount(group, weights=us, minlength=count) / calls
    spread = np.bincount(group, weights=(us - mean[group]) ** 2, minlength=count) / calls
    return {
        "min": ordered[begin],
        "p50": quantile(0.5),
        "p95": quantile(0.95),
        "max": ordered[begin + calls - 1],
        "std": np.sqrt(spread),
        "first": first_ns / 1000.0,
    }


def _with_loose_memory(sheet: Sheet, results: Results) -> Sheet:
    """Memory taken and given back outside all events is a row of its own, as in torch's table."""
    loose = results.tree.loose
    if not len(loose):
        return sheet
    nbytes = int(results.trace.memory.nbytes[loose].sum())
    known: dict[str, object] = {
        "name": MEMORY_ROW,
        "count": len(loose),
        "cpu_memory_usage": nbytes,
        "self_cpu_memory_usage": nbytes,
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
