"""torch's lists of a live recording: `KinetoEvents` in; events, parents, self times, memory and averages out, by torch's own rules.

The engine's tree and averages follow the rules of trace files. Where torch counts in another way, these are torch's figures:

- a list holds all events of the CPU and of devices and, as [memory], the allocations outside all of them, in the order of start;
- events of the CPU that begin and end on one thread nest; asynchronous ones have no parent, no children and no self time;
- an allocation counts for every event of the CPU whose time contains it, whichever thread it is on;
- an only child of its parent's name is left out, and the parent gets its kernels;
- times are sums of floats, in the order of the list: a printed table rounds as torch's does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from ..averages import Spread, dense_numbers, spread_rows
from ..frames import is_hidden_by_torch
from ..steps import ALL_STEPS, STEP_PREFIX
from ..trace import BACKWARD_SCOPE
from ..tree import levels, nearest, nesting
from .kineto_events import CPU, KinetoEvent, KinetoEvents

Floats: TypeAlias = "FloatArray"
# torch's numbers of kinds of devices
_CPU_MEMORY = (0, 2, 5)  # CPU, MKLDNN, IDEEP
_DEVICE_MEMORY = (1, 20, 6, 12)  # CUDA, PrivateUse1, HIP, XPU
_KERNEL_DEVICES = (1, 20, 12)  # CUDA, PrivateUse1, XPU: whose kernels are charged to ops
_COMPENSATED_SUM = sys.version_info >= (3, 12)  # Python's sum() of floats
_NO_EVENT = -1


def shown_name(name: str) -> str:
    """A name as lists show it: all steps have one."""
    return ALL_STEPS if name.startswith(STEP_PREFIX) else name


@dataclass(frozen=True)
class Groups:
    """Averages as columns: one entry per group, in the order in which groups first appear in the list."""

    first: IntArray  # the row of the list that the group begins with
    count: IntArray
    cpu_us: Floats
    self_cpu_us: Floats
    device_us: Floats
    self_device_us: Floats
    cpu_memory: IntArray
    self_cpu_memory: IntArray
    device_memory: IntArray
    self_device_memory: IntArray
    flops: IntArray
    group: IntArray  # by shown row, the number of its group


def _sums(group: IntArray, values: FloatArray, count: int) -> Floats:
    """Sums by group, added in the order of the values."""
    return np.bincount(group, weights=values, minlength=count).astype(np.float64, copy=False)


class TorchLists:
    """The list of events of a recording, as columns. Rows are in torch's order; `source` says which event of Kineto a row is."""

    def __init__(
        self,
        kineto: KinetoEvents,
        *,
        use_device: str | None,
        with_flops: bool,
        with_stack: bool,
        rewrite: Callable[[str], str] = shown_name,
        rounded_memory: bool = False,
    ) -> None:
        """rewrite: from Kineto's name of an event to the one that lists show.
        rounded_memory: look allocations up between times that are rounded to about 256 ns, as torch did before 2.13."""
        self.kineto, self.use_device, self._rounded = kineto, use_device, rounded_memory
        self.with_flops, self.with_stack = with_flops, with_stack
        self._rewrite = rewrite
        listed = np.flatnonzero(kineto.is_listed)
        loose = self._loose_allocations(listed)
        failures = np.flatnonzero(kineto.is_out_of_memory)
        source = np.concatenate([listed, loose, failures])
        is_instant = np.zeros(len(source), bool)
        is_instant[len(listed) :] = True
        start = kineto.start[source]
        end = start + np.where(is_instant, 0, kineto.length[source])
        order = np.lexsort((-end, start))
        self.source: IntArray = source[order]
        self.is_instant: BoolArray = is_instant[order]  # allocations, and failed ones
        self.start_ns: IntArray = start[order] - kineto.trace_start_ns
        self.end_ns: IntArray = end[order] - kineto.trace_start_ns
        self.shown = np.flatnonzero(~self.is_merged)

    def __len__(self) -> int:
        return len(self.shown)

    def of(self, column: IntArray) -> IntArray:
        """A column of Kineto's events by row."""
        return column[self.source]

    @cached_property
    def start_us(self) -> Floats:
        return self.start_ns / 1000

    @cached_property
    def end_us(self) -> Floats:
        return self.end_ns / 1000

    @cached_property
    def elapsed_us(self) -> Floats:
        return self.end_us - self.start_us

    @cached_property
    def names(self) -> tuple[IntArray, list[str]]:
        """Numbers of names, and the names, as the list shows them."""
        numbers, texts = self.kineto.names
        table: dict[str, int] = {}
        shown = np.array([table.setdefault(self._rewrite(text), len(table)) for text in texts] or [0])
        return shown[numbers[self.source]], list(table)

    @cached_property
    def device_type(self) -> IntArray:
        return np.where(self.is_instant, CPU, self.of(self.kineto.device_type))

    @cached_property
    def is_async(self) -> BoolArray:
        return self.kineto.is_async[self.source] & ~self.is_instant

    @cached_property
    def nests(self) -> BoolArray:
        """Mask of the rows that can have parents and children."""
        nests: BoolArray = (self.device_type == CPU) & ~self.is_async
        return nests

    # ------------------------------------------------------------------------------------------------ nesting

    @cached_property
    def _launchers(self) -> tuple[IntArray, IntArray]:
        """(row of an op, row of what is linked to it: a kernel, or a runtime call), in the order of Kineto's list."""
        linked = self.of(self.kineto.linked) * ~self.is_instant
        targets = np.flatnonzero(linked > 0)
        if not len(targets):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        targets = targets[np.argsort(self.source[targets], kind="stable")]
        ids = self.of(self.kineto.correlation)
        ops = np.flatnonzero(self.nests & (linked == 0) & ~self.is_instant)
        ops = ops[np.argsort(ids[ops], kind="stable")]
        first = np.searchsorted(ids[ops], linked[targets], side="left")
        last = np.searchsorted(ids[ops], linked[targets], side="right")
        count = last - first
        # an id that several ops have gives what is linked to it to each of them
        which = np.repeat(np.arange(len(targets)), count)
        within = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        return ops[first[which] + within], targets[which]

    @cached_property
    def thread(self) -> IntArray:
        """Threads as torch numbers them; a runtime call is on the thread of its op."""
        thread = self.of(self.kineto.thread).copy()
        ops, targets = self._launchers
        on_cpu = self.device_type[targets] == CPU
        thread[targets[on_cpu]] = thread[ops[on_cpu]]
        return thread

    @cached_property
    def _nesting(self) -> tuple[IntArray, IntArray]:
        """Parents and depths before merging."""
        parent = np.full(len(self.source), _NO_EVENT, np.int64)
        depth = np.zeros(len(self.source), np.int64)
        rows = np.flatnonzero(self.nests)
        rows = rows[
            np.argsort(self.thread[rows], kind="stable")
        ]  # rows are in the order of (start, longest first)
        inner, depth[rows], _ = nesting(self.thread[rows], self.start_ns[rows], self.end_ns[rows])
        parent[rows] = np.where(inner < 0, _NO_EVENT, rows[inner])
        return parent, depth

    @cached_property
    def is_merged(self) -> BoolArray:
        """Mask of the only children of their parent's name."""
        parent, _ = self._nesting
        inner = parent >= 0
        children = np.bincount(parent[inner], minlength=len(parent))
        name, _texts = self.names
        above = np.maximum(parent, 0)
        if not len(parent):
            return inner
        merged: BoolArray = inner & (children[above] == 1) & (name[above] == name)
        return merged

    @cached_property
    def parent(self) -> IntArray:
        """By row, the row of its parent among those that are shown."""
        parent, _ = self._nesting
        if not len(parent):
            return parent
        above = nearest(parent, ~self.is_merged)
        return np.where(parent >= 0, above[np.maximum(parent, 0)], _NO_EVENT)

    @cached_property
    def children(self) -> tuple[IntArray, IntArray]:
        """Shown rows that have a parent, sorted by it: the parents, and the rows."""
        rows = self.shown[self.parent[self.shown] >= 0]
        order = np.argsort(self.parent[rows], kind="stable")
        return self.parent[rows][order], rows[order]

    def children_of(self, row: int) -> list[int]:
        """The shown rows inside a row."""
        parents, rows = self.children
        first, last = np.searchsorted(parents, [row, row + 1])
        inside: list[int] = rows[first:last].tolist()
        return inside

    def _sum_of_children(self, values: FloatArray) -> Floats:
        """By row, what Python's sum() makes of the values of its children."""
        parents, rows = self.children
        count = len(self.source)
        if not _COMPENSATED_SUM:
            return _sums(parents, values[rows], count)
        # compensated summation rounds once, at its end: whole nanoseconds add up exactly, what is left is tiny
        whole = np.rint(values[rows] * 1000)
        rest = values[rows] - whole / 1000
        return np.bincount(parents, weights=whole, minlength=count) / 1000 + np.bincount(
            parents, weights=rest, minlength=count
        )

    # ------------------------------------------------------------------------------------------------ time

    @cached_property
    def cpu_us(self) -> Floats:
        return np.where(self.device_type == CPU, self.elapsed_us, 0.0)

    @cached_property
    def self_cpu_us(self) -> Floats:
        return np.where(self.nests, self.cpu_us - self._sum_of_children(self.cpu_us), 0.0)

    @cached_property
    def _kernels(self) -> tuple[IntArray, IntArray]:
        """(op, kernel) rows, sorted by op: a merged child's kernels are its parent's, whose own are then lost."""
        ops, targets = self._launchers
        charged = np.isin(self.device_type[targets], _KERNEL_DEVICES)
        ops, targets = ops[charged], targets[charged]
        if len(ops) and self.is_merged.any():
            merged = np.flatnonzero(self.is_merged)
            parent, depth = self._nesting
            owner = nearest(parent, ~self.is_merged)
            # the deepest of a chain of merged rows has the kernels that remain
            merged = merged[np.argsort(depth[merged], kind="stable")]
            keeper = np.arange(len(self.source))
            keeper[owner[merged]] = merged
            kept = keeper[owner[ops]] == ops
            ops, targets = owner[ops[kept]], targets[kept]
        order = np.argsort(ops, kind="stable")
        return ops[order], targets[order]

    def kernels_of(self, row: int) -> list[int]:
        """The rows of kernels that an op launched itself."""
        ops, targets = self._kernels
        first, last = np.searchsorted(ops, [row, row + 1])
        launched: list[int] = targets[first:last].tolist()
        return launched

    @cached_property
    def _device_us(self) -> tuple[Floats, Floats]:
        """Device time and self device time."""
        count = len(self.source)
        if not self.use_device:
            return np.zeros(count), np.zeros(count)
        ops, targets = self._kernels
        own = np.bincount(ops, weights=self.elapsed_us[targets], minlength=count)
        of_children = np.zeros(count)
        total = np.where(self.nests, own, 0.0)
        parents, rows = self.children
        if own.any():
            _, depth = self._nesting
            above = np.full(count, _NO_EVENT, np.int64)
            above[rows] = parents
            for deeper in reversed(levels(depth)[1:]):
                deeper = deeper[above[deeper] >= 0]
                of_children += np.bincount(above[deeper], weights=total[deeper], minlength=count)
                total = np.where(self.nests, own + of_children, 0.0)
        on_device = (self.device_type != CPU) & ~self.is_async
        total = np.where(on_device, self.elapsed_us, total)
        return total, np.where(on_device, total, np.where(self.nests, total - of_children, 0.0))

    @property
    def device_us(self) -> Floats:
        return self._device_us[0]

    @property
    def self_device_us(self) -> Floats:
        return self._device_us[1]

    @cached_property
    def has_legacy_times(self) -> bool:
        """Whether device time was measured by events around ops, where Kineto cannot trace the device. Such times are not read here."""
        field = "cuda_elapsed_us" if self.use_device == "cuda" else "privateuse1_elapsed_us"
        if not self.use_device or self.use_device in ("xpu", "mtia", "hpu") or not self.kineto.has(field):
            return False
        rows = self.source[self.nests & ~self.is_instant]
        return bool((self.kineto.numbers(field, rows) > 0).any())

    # ------------------------------------------------------------------------------------------------ memory

    def _loose_allocations(self, listed: IntArray) -> IntArray:
        """Allocations and frees that no event of the CPU contains."""
        kineto = self.kineto
        memory = np.flatnonzero(kineto.is_memory)
        if not len(memory):
            return memory
        rows = listed[kineto.device_type[listed] == CPU]
        starts = np.sort(self._bound(kineto.start[rows]))
        ends = np.sort(self._bound(kineto.start[rows] + kineto.length[rows]))
        time = kineto.start[memory]
        begun = np.searchsorted(starts, time, side="right")
        ended = np.searchsorted(ends, time, side="left")
        loose: IntArray = memory[begun == ended]
        return loose

    def _bound(self, time: IntArray) -> IntArray:
        """Times as torch compares them with those of allocations; older versions turn them into microseconds and back, as floats."""
        if not self._rounded:
            return time
        microseconds = time // 1000 + time % 1000 / 1000
        return (microseconds * 1000).astype(np.int64)

    @cached_property
    def _memory(self) -> tuple[IntArray, IntArray]:
        """Bytes by row, on the CPU and on devices."""
        kineto, count = self.kineto, len(self.source)
        memory = np.flatnonzero(kineto.is_memory | kineto.is_out_of_memory)
        if not len(memory):
            return np.zeros(count, np.int64), np.zeros(count, np.int64)
        nbytes = np.zeros(len(kineto), np.int64)
        nbytes[memory] = kineto.numbers("nbytes", memory)
        events = np.flatnonzero(kineto.is_memory)
        events = events[np.argsort(kineto.start[events], kind="stable")]
        time = kineto.start[events]
        first = np.searchsorted(time, self._bound(self.start_ns + kineto.trace_start_ns), side="left")
        last = np.searchsorted(time, self._bound(self.end_ns + kineto.trace_start_ns), side="right")
        by_device = []
        for kinds in (_CPU_MEMORY, _DEVICE_MEMORY):
            counted = np.isin(kineto.device_type, kinds) * nbytes
            before = np.concatenate([[0], np.cumsum(counted[events])])
            inside = np.where(self.device_type == CPU, before[last] - before[first], 0)
            by_device.append(np.where(self.is_instant, counted[self.source], inside))
        return by_device[0], by_device[1]

    @property
    def cpu_memory(self) -> IntArray:
        return self._memory[0]

    @property
    def device_memory(self) -> IntArray:
        return self._memory[1]

    @cached_property
    def self_cpu_memory(self) -> IntArray:
        return self._own(self.cpu_memory)

    @cached_property
    def self_device_memory(self) -> IntArray:
        return self._own(self.device_memory)

    def _own(self, total: IntArray) -> IntArray:
        parents, rows = self.children
        of_children = np.bincount(parents, weights=total[rows], minlength=len(total)).astype(np.int64)
        return np.where(self.nests, total - of_children, 0)

    @cached_property
    def flops(self) -> IntArray:
        """Counted whether or not they were asked for, as torch does: without `with_flops` they are 0."""
        flops = np.zeros(len(self.source), np.int64)
        if self.with_flops:
            rows = np.flatnonzero(~self.is_instant & (self.device_type == CPU))
            flops[rows] = self.kineto.numbers("flops", self.source[rows])
        return flops

    # ------------------------------------------------------------------------------------------------ stacks

    @cached_property
    def scope(self) -> IntArray:
        return np.where(self.is_instant, 0, self.of(self.kineto.numbers("scope")))

    @cached_property
    def _stacks(self) -> tuple[IntArray, list[tuple[str, ...]]]:
        """Numbers of stacks, -1 for none, and the stacks: inside the backward pass that of the forward op."""
        none = np.full(len(self.source), -1, np.int64)
        if not self.with_stack:
            return none, []
        numbers, texts = self.kineto.stacks
        if not texts:
            return none, []
        table = [tuple([frame for frame in stack if not is_hidden_by_torch(frame)]) for stack in texts]
        stack = np.where(self.is_instant, -1, numbers[self.source])
        node = nearest(self.parent, self.scope == BACKWARD_SCOPE)
        sequence = np.where(self.is_instant, -1, self.of(self.kineto.numbers("sequence_nr")))
        shown = np.zeros(len(stack), bool)
        shown[self.shown] = True
        forward = np.flatnonzero((node < 0) & shown)
        first: dict[tuple[int, int], int] = {}
        keys = zip(sequence[forward].tolist(), self.thread[forward].tolist())
        for row, key in zip(forward.tolist(), keys):
            first.setdefault(key, row)
        inside = np.flatnonzero((node >= 0) & shown)
        forward_thread = self.kineto.numbers("fwd_thread_id", self.source[node[inside]])
        rows = [first.get(key, -1) for key in zip(sequence[node[inside]].tolist(), forward_thread.tolist())]
        forward_row = np.array(rows, np.int64)
        shifted = stack.copy()
        shifted[inside] = np.where(forward_row >= 0, stack[np.maximum(forward_row, 0)], -1)
        return shifted, table

    def stack_of(self, row: int) -> list[str]:
        """The stack of a row, innermost frame first."""
        numbers, table = self._stacks
        return list(table[numbers[row]]) if numbers[row] >= 0 else []

    def has_stacks(self) -> bool:
        return bool(self._stacks[1])

    def _stack_numbers(self, depth: int) -> IntArray:
        numbers, table = self._stacks
        by_frames: dict[tuple[str, ...], int] = {}
        short = [by_frames.setdefault(stack[:depth], len(by_frames)) for stack in table]
        short.append(by_frames.setdefault((), len(by_frames)))
        return np.array(short, np.int64)[numbers]

    def _text_numbers(self, field: str) -> IntArray:
        """Numbers of a field of Kineto's events that tell its texts apart; instants have that of an empty one."""
        rows = self.source[self.shown]
        usual = np.flatnonzero(~self.is_instant[self.shown])
        numbers = np.full(len(rows), -1, np.int64)
        found, values = self.kineto.interned(rows[usual], field)
        texts: dict[str, int] = {}
        of_value = np.array(
            [texts.setdefault(str(value[0]), len(texts)) for value in values] or [0], np.int64
        )
        numbers[usual] = of_value[found]
        empty = texts.get("[]" if field == "shapes" else "", -1)
        return np.where(numbers < 0, empty, numbers)

    # ------------------------------------------------------------------------------------------------ averages

    def groups(self, by_shape: bool = False, by_stack: int = 0, by_overload: bool = False) -> Groups:
        """Averages over the shown rows of one name, kind of device and of annotation; also of one shape, stack or overload."""
        rows = self.shown
        name, _ = self.names
        annotation = self.kineto.is_annotation[self.source] & ~self.is_instant
        keys: list[IntArray] = [name[rows], self.device_type[rows], annotation[rows].astype(np.int64)]
        if by_overload and self.kineto.has("overload_name"):
            keys.append(self._text_numbers("overload_name"))
        if by_shape:
            keys.append(self._text_numbers("shapes"))
        if by_stack > 0:
            keys.append(self._stack_numbers(by_stack)[rows])
        number, first = dense_numbers(keys)
        order = np.argsort(first, kind="stable")
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        group, count = place[number], len(order)

        def total(values: FloatArray) -> Floats:
            return _sums(group, values[rows], count)

        def whole(values: IntArray) -> IntArray:
            return total(values.astype(np.float64)).astype(np.int64)

        return Groups(
            rows[first[order]],
            np.bincount(group, minlength=count),
            total(self.cpu_us),
            total(self.self_cpu_us),
            total(self.device_us),
            total(self.self_device_us),
            whole(self.cpu_memory),
            whole(self.self_cpu_memory),
            whole(self.device_memory),
            whole(self.self_device_memory),
            whole(self.flops),
            group,
        )

    def spreads(self, groups: Groups) -> list[Spread]:
        """How the times of each group's events are spread: on the CPU, or on a device."""
        rows = self.shown
        times = np.where(self.device_type == CPU, self.cpu_us, self.device_us)[rows]
        in_time = np.arange(len(rows))  # rows are in the order of start
        return spread_rows(times, in_time, groups.group, len(groups.count))

    def total(self) -> Groups:
        """The sum of all rows, as one group; torch gives it the fields of the last event."""
        rows = self.shown

        def each(values: Sequence[float] | FloatArray | IntArray) -> Floats:
            chosen = np.asarray(values, np.float64)[rows]
            return _sums(np.zeros(len(rows), np.int64), chosen, 1)

        def whole(values: IntArray) -> IntArray:
            return each(values).astype(np.int64)

        return Groups(
            rows[-1:],
            np.array([len(rows)]),
            each(self.cpu_us),
            each(self.self_cpu_us),
            each(self.device_us),
            each(self.self_device_us),
            whole(self.cpu_memory),
            whole(self.self_cpu_memory),
            whole(self.device_memory),
            whole(self.self_device_memory),
            whole(self.flops),
            np.zeros(len(rows), np.int64),
        )

    def kineto_event(self, row: int) -> KinetoEvent:
        """Kineto's event of a row."""
        return self.kineto.events[int(self.source[row])]
