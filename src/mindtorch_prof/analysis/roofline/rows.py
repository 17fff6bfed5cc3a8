"""Rows of a roofline: a recording in; one row per op, shapes and dtypes out, with the share of kernel time that the models explain.

A model runs once per distinct name and inputs; kernel times are sums over columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ... import communication
from ...arrays import BoolArray, IntArray, distinct, first_rows
from ...inputs import Inputs
from ...json_types import JSONValue
from ...trace import ANNOTATION, DEVICE_COPY, NODE, OP, Device, Trace
from ...tree import nearest, sum_by
from ..recording import Recording, as_results
from .collectives import CATEGORY as COLLECTIVE
from .collectives import collective
from .models import model_of, work_of
from .peaks import Peaks, peaks_from, peaks_of, read_peaks
from .work import LINK, NotModelled, Work

COMPUTE, MEMORY, OVER_LINK, UNKNOWN = "compute", "memory", "link", "unknown"


@dataclass(frozen=True)
class Row:
    """Calls of one op with the same shapes and dtypes (and other inputs, where these change the work)."""

    name: str
    input_shapes: list[object]  # as the file's Input Dims
    dtypes: list[str]  # as the file's Input type
    category: str
    count: int  # calls that ran kernels
    flop: int  # of one call
    bytes: int  # of one call: the least that must be moved
    kernel_us: (
        float  # of all calls: when kernels ran that were launched under the op; overlapping ones count once
    )
    own_kernel_us: float  # the part of it that no row of an op inside has; these add up over rows
    tflops: float | None  # TFLOP/s over the kernel time; None: no time
    tbps: float | None  # TB/s over the kernel time
    intensity: float | None  # FLOP per byte; None: no bytes
    bound: str  # compute, memory, link (to the host or other ranks), or unknown
    peak_tflops: float | None  # of the device for this op's type
    roof_us: float | None  # the least that all calls could take on the device
    share_of_peak: float | None  # roof_us / kernel_us

    def to_dict(self) -> dict[str, object]:
        return dict(vars(self))


@dataclass(frozen=True)
class NotCovered:
    """Kernel time that no model explains."""

    name: str
    input_shapes: list[object]
    dtypes: list[str]
    count: int  # kernels
    kernel_us: float
    reason: str

    def to_dict(self) -> dict[str, object]:
        return dict(vars(self))


@dataclass(frozen=True)
class Roofline:
    """All rows, the longest kernel time first; and what they do not cover."""

    rows: list[Row]
    not_covered: list[NotCovered]
    device: str  # its name in the trace; "": not given
    peaks: Peaks | None
    kernel_us: float  # durations of all kernels, copies and fills, added up
    covered_us: float  # of those that ran under an op with a model
    unlinked_us: float  # of those that no op in the trace launched
    collectives_us: (
        float  # of those that ran under a collective with a model: bytes over a link are all that it says
    )
    notes: list[str]
    row_of_work: IntArray = field(
        repr=False, compare=False
    )  # by row of `Trace.device`: the row of the innermost op with a model that launched it; -1: none

    @property
    def coverage(self) -> float | None:
        """The share of kernel time that models explain, from 0 to 1; None: there are no kernels."""
        return self.covered_us / self.kernel_us if self.kernel_us else None

    @property
    def coverage_of_ops(self) -> float | None:
        """The same of the kernels that an op launched."""
        linked = self.kernel_us - self.unlinked_us
        return self.covered_us / linked if linked > 0 else None

    @property
    def coverage_beside_collectives(self) -> float | None:
        """The same of all kernels but those of collectives with a model."""
        others = self.kernel_us - self.collectives_us
        return (self.covered_us - self.collectives_us) / others if others > 0 else None

    def not_covered_by_op(self) -> list[NotCovered]:
        """What is not covered with all shapes of an op added up, the longest time first; one row per op and reason."""
        sums: dict[tuple[str, str], tuple[int, float]] = {}
        for each in self.not_covered:
            count, time = sums.get((each.name, each.reason), (0, 0.0))
            sums[each.name, each.reason] = count + each.count, time + each.kernel_us
        rows = [NotCovered(name, [], [], *sums[name, reason], reason) for name, reason in sums]
        return sorted(rows, key=lambda each: (-each.kernel_us, each.name))

    def sentence(self) -> str:
        """The coverage in words."""
        if self.coverage is None:
            return "the trace has no kernels: a roofline needs a trace of a GPU or NPU"
        text = f"models explain {_percent(self.coverage)} of kernel time"
        if self.unlinked_us > 0.001 * self.kernel_us:
            share = _percent(self.unlinked_us / self.kernel_us)
            text += f"; {share} was launched under no op in the trace"
            if self.coverage_of_ops is not None:
                text += f", of the rest they explain {_percent(self.coverage_of_ops)}"
        if self.collectives_us and self.coverage_beside_collectives is not None:
            text += f"; beside collectives they explain {_percent(self.coverage_beside_collectives)}"
        return text

    def to_dict(self) -> dict[str, object]:
        return {
            "device": self.device,
            "peaks": None if self.peaks is None else self.peaks.to_dict(),
            "kernel_us": self.kernel_us,
            "covered_us": self.covered_us,
            "unlinked_us": self.unlinked_us,
            "coverage": self.coverage,
            "coverage_of_ops": self.coverage_of_ops,
            "coverage_beside_collectives": self.coverage_beside_collectives,
            "notes": list(self.notes),
            "not_covered": [row.to_dict() for row in self.not_covered],
            "rows": [row.to_dict() for row in self.rows],
        }


def _percent(share: float) -> str:
    """Whole percents; 0 and 100 % only if it is nothing or all."""
    if 0 < share < 0.005:
        return "less than 1 %"
    return f"{min(round(100 * share), 99) if share < 1 else 100} %"


def roofline(recording: Recording, peaks: Peaks | Mapping[str, JSONValue] | str | None = None) -> Roofline:
    """How much each op of a recording computes and moves, and how fast.

    peaks: of the device; else they are looked up by the device's name in the trace. A text is what `--peaks` takes.
    """
    results = as_results(recording)  # synthetic ops are those of a graph's capture: they have kernels
    trace = results.trace
    name, found, notes = _device(trace)
    if isinstance(peaks, str):
        peaks = read_peaks(peaks)
    elif peaks is not None and not isinstance(peaks, Peaks):
        peaks = peaks_from(peaks)
    if peaks is not None:
        found, notes = peaks, []
    calls = _Calls(trace)
    work = _DeviceWork(trace, results.nesting.parent, calls.modelled)
    rows, row_of_work = _rows(calls, work, found)
    not_covered = _not_covered(calls, work, results.nesting.parent)
    of_collectives = np.array([row.category == COLLECTIVE for row in rows] + [False])[row_of_work[work.rows]]
    if work.total_ns and not trace.settings.shapes_recorded and not any(calls.modelled):
        notes.append("the inputs of ops were not recorded: record with record_shapes=True")
    return Roofline(
        rows,
        not_covered,
        name,
        found,
        work.total_ns / 1000,
        work.covered_ns / 1000,
        work.unlinked_ns / 1000,
        int(work.length[of_collectives].sum()) / 1000,
        notes,
        row_of_work,
    )


# ---------------------------------------------------------------------------------------------------- devices


def _device(trace: Trace) -> tuple[str, Peaks | None, list[str]]:
    """The name of the device that worked longest, its peaks, and what is to be said about that."""
    device = trace.device
    works = np.flatnonzero(device.works)
    if not len(works):
        return "", None, []
    numbers, place = np.unique(device.device[works], return_inverse=True)
    busy = sum_by(place.reshape(-1), (device.end_ns - device.start_ns)[works], len(numbers))
    properties = [each for each in trace.settings.device_properties if isinstance(each, dict)]
    by_number = {each.get("id"): each for each in properties}
    busiest = int(numbers[np.argmax(busy)])
    own = by_number.get(busiest, properties[0] if len(properties) == 1 else {})
    name = str(own.get("name") or "")
    peaks = peaks_of(own) if own else None
    if peaks is None:
        which = f"of {name!r}" if name else "of the device, whose name the trace does not give,"
        return (
            name,
            None,
            [f"the peaks {which} are not known, so bounds are not either: give them with --peaks"],
        )
    notes = []
    if not name:
        notes.append(
            f"the trace does not name the device; by its memory and units it is taken for {peaks.name}"
        )
    used = {str(by_number.get(number, own).get("name") or "") for number in numbers.tolist()}
    if len(used) > 1:
        notes.append(f"the trace has devices of several kinds; peaks are those of {name}")
    return name, peaks, notes


# ---------------------------------------------------------------------------------------------------- calls


class _Kind(NamedTuple):
    """A distinct name and inputs, with its work."""

    name: str
    inputs: Inputs | None
    work: Work | None
    reason: str


class _Calls:
    """The kind of each event of a trace: what its model says, evaluated once per kind."""

    def __init__(self, trace: Trace) -> None:
        table = max(len(trace.input_table), 1) + 1
        name_has_model = np.array([model_of(name) is not None for name in trace.names] or [False])
        self.has_model: BoolArray = name_has_model[trace.name] & (trace.kind == OP)  # by event
        is_collective = _is_collective(trace)
        candidates = np.flatnonzero(self.has_model & (trace.inputs >= 0))
        keys = trace.name[candidates].astype(np.int64) * table + trace.inputs[candidates]
        used, place = distinct(keys)
        self.kinds = [
            _kind(trace.names[key // table], trace.input_table[key % table]) for key in used.tolist()
        ]
        self.kind = np.full(len(trace), -1, np.int64)  # by event, into `kinds`
        self.kind[candidates] = place
        if trace.extra is not None:
            rows = np.flatnonzero(is_collective)
            self._add_collectives(rows, trace.extra[rows], trace.extra_table)
        # files of HCCL describe the kernels of collectives, and not their ops
        device = trace.device
        described = np.array(["Collective name" in fields for fields in device.extra_table] + [False])
        works = np.flatnonzero(device.works & described[device.extra] & (device.op >= 0))
        works = works[self.kind[device.op[works]] < 0]
        self._add_collectives(device.op[works], device.extra[works], device.extra_table)
        known = np.array([kind.work is not None for kind in self.kinds] + [False])
        self.modelled: BoolArray = known[self.kind]  # by event
        self.trace = trace

    def _add_collectives(
        self, rows: IntArray, extra: IntArray, table: Sequence[Mapping[str, JSONValue]]
    ) -> None:
        """Collectives are told by further arguments of their events; extra: by row, into the table of these."""
        used, place = distinct(extra)
        numbers: dict[_Kind, int] = {}
        of_extra = np.empty(len(used), np.int64)
        for index, number in enumerate(used.tolist()):
            kind = _collective_kind(table[number])
            of_extra[index] = numbers.setdefault(kind, len(self.kinds) + len(numbers))
        self.kinds += list(numbers)
        self.kind[rows] = of_extra[place]


def _is_collective(trace: Trace) -> BoolArray:
    """By event: whether it is a collective that the file describes."""
    if trace.extra is None:
        return np.zeros(len(trace), bool)
    described = np.array(
        [fields.get("Collective name") is not None for fields in trace.extra_table] + [False]
    )
    of_kind = (trace.kind == OP) | (trace.kind == ANNOTATION)
    result: BoolArray = described[trace.extra] & of_kind
    return result


def _is_op(trace: Trace) -> BoolArray:
    """By event: whether it is an op, a backward node or a collective; what is left are annotations, Python and runtime calls."""
    communicates = communication.on_host(trace.names) if trace.names else np.zeros(1, bool)
    result: BoolArray = (trace.kind == OP) | (trace.kind == NODE) | communicates[trace.name]
    return result


def _kind(name: str, inputs: Inputs) -> _Kind:
    try:
        return _Kind(name, inputs, work_of(name, inputs), "")
    except NotModelled as problem:
        return _Kind(name, inputs, None, str(problem))


class _Message(Inputs):
    """The message of a collective, shown as the one input; equal if the text is."""

    def __init__(self, elements: int, dtype: str) -> None:
        super().__init__(())
        self._message = elements, dtype
        self.dims, self.types = [[elements]], [dtype]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Message) and self._message == other._message

    def __hash__(self) -> int:
        return hash(self._message)


def _collective_kind(fields: Mapping[str, JSONValue]) -> _Kind:
    name = str(fields.get("Collective name"))
    elements = fields.get("In msg nelems")
    inputs = _Message(elements if isinstance(elements, int) else 0, str(fields.get("dtype", "")))
    try:
        return _Kind(name, inputs, collective(fields)[1], "")
    except NotModelled as problem:
        return _Kind(name, inputs, None, str(problem))


# ---------------------------------------------------------------------------------------------------- work of the device


class _DeviceWork:
    """Kernels and the modelled ops around their launch: pairs of an op and a kernel, one for each op around a kernel."""

    def __init__(self, trace: Trace, parent: IntArray, modelled: BoolArray) -> None:
        device = trace.device
        self.device: Device = device
        self.rows = np.flatnonzero(device.works)
        length = (device.end_ns - device.start_ns)[self.rows]
        self.length = length
        self.launcher = device.op[self.rows]  # by kernel: the event that it is charged to
        above = nearest(parent, modelled) if len(parent) else parent
        innermost = np.append(above, -1)[self.launcher]
        self.owner = innermost  # by kernel: the innermost modelled op; -1: none
        self.total_ns = int(length.sum())
        self.covered_ns = int(length[innermost >= 0].sum())
        is_op = np.append(_is_op(trace), False)[self.launcher]
        self.unlinked_ns = int(length[~is_op & (innermost < 0)].sum())
        ops, kernels = [], []
        kernel, op = np.flatnonzero(innermost >= 0), innermost[innermost >= 0]
        while len(op):
            ops.append(op)
            kernels.append(kernel)
            outer = np.where(parent[op] >= 0, above[np.maximum(parent[op], 0)], -1)
            kernel, op = kernel[outer >= 0], outer[outer >= 0]
        empty = np.empty(0, np.int64)
        self.op: IntArray = np.concatenate(ops) if ops else empty  # by pair
        self.kernel: IntArray = np.concatenate(kernels) if kernels else empty  # by pair, into `rows`

    def busy_ns(self, pairs: IntArray) -> tuple[IntArray, IntArray]:
        """Ops of these pairs, and for each how long at least one of its kernels ran."""
        if not len(pairs):
            return self.op[:0], self.op[:0]
        start = self.device.start_ns[self.rows[self.kernel[pairs]]]
        end = self.device.end_ns[self.rows[self.kernel[pairs]]]
        order = np.lexsort((start, self.op[pairs]))
        op, start, end = self.op[pairs][order], start[order], end[order]
        ops, first, group = np.unique(op, return_index=True, return_inverse=True)
        # the running greatest end within each op: over ranks, so that the numbers of ops can be put above them without overflow
        ends, rank = np.unique(end, return_inverse=True)
        highest = np.maximum.accumulate(group.reshape(-1) * len(ends) + rank.reshape(-1)) % len(ends)
        before = np.concatenate((start[:1], ends[highest[:-1]]))
        before[first] = start[first]
        length = np.maximum(end - np.maximum(start, before), 0)
        return ops, sum_by(group.reshape(-1), length, len(ops))

    def is_copy_over_link(self) -> BoolArray:
        """By kernel: whether it is a copy between the host and the device, or between devices."""
        names = [_crosses_link(name) for name in self.device.names]
        crosses = (
            np.array(names or [False])[self.device.name[self.rows]] if len(self.rows) else np.zeros(0, bool)
        )
        result: BoolArray = crosses & (self.device.kind[self.rows] == DEVICE_COPY)
        return result


def _crosses_link(name: str) -> bool:
    text = name.lower().replace("device", "d").replace("host", "h").replace(" ", "").replace("->", "to")
    return "htod" in text or "dtoh" in text or "ptop" in text


# ---------------------------------------------------------------------------------------------------- rows


def _shown_inputs(inputs: Inputs | None) -> tuple[list[object], list[str]]:
    return ([], []) if inputs is None else (list(inputs.dims), list(inputs.types))


def _rows(calls: _Calls, work: _DeviceWork, peaks: Peaks | None) -> tuple[list[Row], IntArray]:
    """The rows; and by row of Device, the index of the row of the op that launched it, -1: none."""
    kinds = calls.kinds
    every = np.arange(len(work.op))
    ops, busy = work.busy_ns(every)
    own_ops, own = work.busy_ns(np.flatnonzero(work.op == work.owner[work.kernel]))
    # kinds that differ in nothing that is shown are one row: strides and other inputs that do not change the work
    group_of, groups = _groups(kinds)
    group = group_of[calls.kind[ops]]
    count = np.bincount(group, minlength=len(groups))
    kernel_ns = sum_by(group, busy, len(groups))
    own_ns = sum_by(group_of[calls.kind[own_ops]], own, len(groups))
    pair_group = group_of[calls.kind[work.op]]
    pair_length = work.length[work.kernel]
    tf32_names = np.array(["tf32" in name.lower() for name in work.device.names] or [False])
    is_tf32 = tf32_names[work.device.name[work.rows]][work.kernel] if len(work.rows) else every.astype(bool)
    tf32 = np.bincount(pair_group[is_tf32], minlength=len(groups)) > 0
    linked = sum_by(pair_group, pair_length * work.is_copy_over_link()[work.kernel], len(groups))
    all_length = sum_by(pair_group, pair_length, len(groups))
    numbers = np.flatnonzero(count)
    rows = [
        _row(
            groups[number],
            int(count[number]),
            int(kernel_ns[number]),
            int(own_ns[number]),
            peaks,
            bool(tf32[number]),
            bool(2 * linked[number] > all_length[number]),
        )
        for number in numbers.tolist()
    ]
    order = sorted(
        range(len(rows)),
        key=lambda i: (-rows[i].kernel_us, rows[i].name, str(rows[i].input_shapes), str(rows[i].dtypes)),
    )
    place = np.full(len(groups) + 1, -1, np.int64)
    place[numbers[order]] = np.arange(len(order))
    row_of_work = np.full(len(work.device), -1, np.int64)
    owner_kind = np.append(calls.kind, -1)[work.owner]
    row_of_work[work.rows] = place[group_of[owner_kind]]
    return [rows[i] for i in order], row_of_work


def _groups(kinds: list[_Kind]) -> tuple[IntArray, list[_Kind]]:
    """Into which row each kind goes, and one kind of each row."""
    numbers: dict[tuple[object, ...], int] = {}
    groups: list[_Kind] = []
    group_of = np.full(len(kinds) + 1, -1, np.int64)
    for index, kind in enumerate(kinds):
        if kind.work is None:
            continue
        shapes, dtypes = _shown_inputs(kind.inputs)
        key = kind.name, str(shapes), tuple(dtypes), kind.work
        number = numbers.setdefault(key, len(groups))
        if number == len(groups):
            groups.append(kind)
        group_of[index] = number
    return group_of, groups


def _row(
    kind: _Kind, count: int, kernel_ns: int, own_ns: int, peaks: Peaks | None, tf32: bool, over_link: bool
) -> Row:
    work = kind.work
    assert work is not None
    shapes, dtypes = _shown_inputs(kind.inputs)
    over_link = over_link or work.unit == LINK
    peak = None if peaks is None or over_link else peaks.compute(work.unit, work.dtype, tf32)
    bound, roof_s = OVER_LINK if over_link else UNKNOWN, None
    if peaks is not None and not over_link:
        compute_s = 0.0 if not work.flop else None if peak is None else work.flop / (peak * 1e12)
        memory_s = work.nbytes / (peaks.memory_tbps * 1e12)
        if compute_s is not None:
            bound, roof_s = (COMPUTE if compute_s > memory_s else MEMORY), max(compute_s, memory_s)
    seconds = kernel_ns / 1e9
    return Row(
        kind.name,
        shapes,
        dtypes,
        work.category,
        count,
        work.flop,
        work.nbytes,
        kernel_ns / 1000,
        own_ns / 1000,
        count * work.flop / seconds / 1e12 if seconds else None,
        count * work.nbytes / seconds / 1e12 if seconds else None,
        work.flop / work.nbytes if work.nbytes else None,
        bound,
        peak,
        None if roof_s is None else count * roof_s * 1e6,
        None if roof_s is None or not seconds else count * roof_s / seconds,
    )


def _not_covered(calls: _Calls, work: _DeviceWork, parent: IntArray) -> list[NotCovered]:
    """Kernels outside of every modelled op, by the event that launched them: a call without a model (of CANN, say) by the op around it
    whose model lacks something."""
    trace = calls.trace
    outside = np.flatnonzero(work.owner < 0)
    if not len(outside):
        return []
    launcher, length = work.launcher[outside], work.length[outside]
    if len(trace):
        tried = np.append(nearest(parent, calls.has_model | (calls.kind >= 0)), -1)[launcher]
        launcher = np.where(tried >= 0, tried, launcher)
    table = max(len(trace.input_table), 1) + 1
    keys = np.where(
        launcher < 0,
        -1,
        np.append(trace.name, 0)[launcher].astype(np.int64) * table
        + np.append(trace.inputs, -1)[launcher]
        + 1,
    )
    used, place = distinct(keys)
    first, count = first_rows(place, len(used)), np.bincount(place, minlength=len(used))
    total = sum_by(place, length, len(used))
    rows = []
    for index in range(len(used)):
        row = int(launcher[first[index]])
        inputs = None if row < 0 or trace.inputs[row] < 0 else trace.input_table[trace.inputs[row]]
        shapes, dtypes = _shown_inputs(inputs)
        name = "" if row < 0 else trace.names[trace.name[row]]
        rows.append(
            NotCovered(name, shapes, dtypes, int(count[index]), int(total[index]) / 1000, _reason(calls, row))
        )
    return sorted(rows, key=lambda each: (-each.kernel_us, each.name, str(each.input_shapes)))


def _reason(calls: _Calls, row: int) -> str:
    """Why kernels that an event launched are not covered."""
    trace = calls.trace
    if row < 0:
        return "the op that launched them is not in the trace"
    if calls.kind[row] >= 0:
        kind = calls.kinds[int(calls.kind[row])]
        return kind.reason
    if communication.on_host([trace.names[trace.name[row]]])[0]:
        return "the file does not describe this collective"
    if trace.kind[row] not in (OP, NODE):
        return "launched under no op: a graph that was replayed, or a library that records no ops"
    if model_of(trace.names[trace.name[row]]) is None:
        return "there is no model for this op"
    return "the inputs of the op were not recorded"
