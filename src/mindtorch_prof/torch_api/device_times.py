"""Work of devices beside the events of the CPU: columns in; device time by op, and events and averages of kernels as torch's classes, out.

As in torch, an op's device time is that of the kernels it launched and of the ops inside it, and kernels are rows of their own. An
annotation on a device is a row that no total contains. Its time is that in which its stream worked: what torch shows, less the
gaps between kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import orjson

from .. import averages as grouping
from ..analysis.intervals import covered, union
from ..trace import (
    DEVICE_ANNOTATION,
    DEVICE_COPY,
    DEVICE_KERNEL,
    DEVICE_PART,
    DEVICE_SET,
    DEVICE_SYNC,
    Device,
    Trace,
)
from ..tree import sum_by, total_up
from .enums import DeviceType
from .event_metadata import EventMetadata, event_metadata
from .function_events import FunctionEvent, FunctionEventAvg, Kernel

if TYPE_CHECKING:
    from .results import Results

_TYPES = {
    "cuda": DeviceType.CUDA,
    "xpu": DeviceType.XPU,
    "mtia": DeviceType.MTIA,
    "hpu": DeviceType.HPU,
    "privateuse1": DeviceType.PrivateUse1,
}
_ACTIVITIES = {
    DEVICE_KERNEL: "kernel",
    DEVICE_COPY: "gpu_memcpy",
    DEVICE_SET: "gpu_memset",
    DEVICE_ANNOTATION: "gpu_user_annotation",
    DEVICE_SYNC: "cuda_sync",
    DEVICE_PART: "collective_task",
}


def device_type(name: str | None) -> DeviceType:
    """torch's kind of a device by its name; PrivateUse1 where torch has no name for it."""
    return _TYPES.get(name or "", DeviceType.PrivateUse1)


@dataclass(frozen=True)
class DeviceColumns:
    """Columns beside a Trace's: time on devices by event; and averages of the work of devices."""

    results: Results
    own_ns: npt.NDArray[np.integer]  # by event: of the work that it launched itself
    total_ns: npt.NDArray[np.integer]  # by event: the same, and of the events inside it

    @property
    def device(self) -> Device:
        return self.results.trace.device

    @property
    def rows(self) -> int:
        """How many events of devices there are."""
        return int(self.listed.sum())

    @cached_property
    def listed(self) -> npt.NDArray[np.bool_]:
        """Mask of the rows that are events: synchronisation and parts of collectives are none."""
        is_event: npt.NDArray[np.bool_] = self.device.kind < DEVICE_SYNC
        return is_event

    @cached_property
    def length_ns(self) -> npt.NDArray[np.integer]:
        """How long each event of a device took; of an annotation, how long its stream worked in it."""
        device = self.device
        length: npt.NDArray[np.integer] = device.end_ns - device.start_ns
        annotations, works = device.kind == DEVICE_ANNOTATION, device.works
        streams = {*zip(device.device[annotations].tolist(), device.stream[annotations].tolist())}
        for index, stream in streams:
            on_stream = (device.device == index) & (device.stream == stream)
            rows = np.flatnonzero(on_stream & annotations)
            work = on_stream & works
            busy = union(device.start_ns[work], device.end_ns[work])
            length[rows] = covered(busy, device.start_ns[rows], device.end_ns[rows])
        return length

    @property
    def duration_ns(self) -> int:
        return int(self.length_ns[self.listed].sum())

    @cached_property
    def _by_op(self) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]:
        """Work that an op launched, sorted by op: the ops, and the rows of the work."""
        device = self.device
        rows = np.flatnonzero(device.works & (device.op >= 0))
        op = shown_rows(self.results, device.op[rows])
        order = np.argsort(op, kind="stable")
        return op[order], rows[order]

    def kernels(self, row: int) -> list[Kernel]:
        """The work that an event launched itself."""
        ops, rows = self._by_op
        first, last = np.searchsorted(ops, [row, row + 1])
        device = self.device
        return [
            Kernel(
                device.names[device.name[i]],
                int(device.device[i]),
                int(device.end_ns[i] - device.start_ns[i]) / 1000,
            )
            for i in rows[first:last].tolist()
        ]

    def averages(self, by_shape: bool) -> tuple[list[FunctionEventAvg], npt.NDArray[np.integer]]:
        """One row per name, annotations apart from the rest; and when the first event of each began."""
        device = self.device
        rows = np.flatnonzero(self.listed)
        if not len(rows):
            return [], np.empty(0, np.int64)
        group_of, texts = grouping.named_groups(device.names)
        keys, group = np.unique(
            group_of[device.name[rows]] * 2 + (device.kind[rows] == DEVICE_ANNOTATION), return_inverse=True
        )
        group = group.reshape(-1)
        length = self.length_ns[rows]
        total = sum_by(group, length, len(keys)).tolist()
        count = np.bincount(group, minlength=len(keys)).tolist()
        begin_ns = np.full(len(keys), np.iinfo(np.int64).max)
        np.minimum.at(begin_ns, group, device.start_ns[rows])
        kind, averages = device_type(self.results.use_device), []
        starts = device.start_ns[rows]
        spreads = cache(lambda: grouping.spread_rows(length / 1000.0, starts, group, len(keys)))
        for number, key in enumerate(keys.tolist()):
            row = FunctionEventAvg()
            row.key, row.count, row.node_id, row.scope = texts[key // 2], count[number], -1, 0
            row.device_time_total = row.self_device_time_total = total[number] / 1000
            row.device_type, row.use_device = kind, self.results.use_device
            row.is_user_annotation = bool(key % 2)
            row.cpu_children, row.stack, row.overload_name = [], [], ""
            row.input_shapes = [] if by_shape else ""
            row._spread = (spreads, number)
            averages.append(row)
        return averages, begin_ns


def shown_rows(results: Results, rows: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
    """Rows of events as lists show them: an event that is merged into its parent is its parent."""
    return np.where(results.shown[rows], rows, results.shown_parent[rows])


def device_columns(results: Results) -> DeviceColumns:
    """Time on devices by event."""
    trace, count = results.trace, len(results.trace)
    device = trace.device
    work = np.flatnonzero(device.works & (device.op >= 0))
    length = (device.end_ns - device.start_ns)[work]
    op = shown_rows(results, device.op[work])
    inside = op >= 0
    own = sum_by(op[inside], length[inside], count)
    total = total_up(own, results.nesting.parent, results.nesting.depth)
    return DeviceColumns(results, own, total)


class DeviceEvent(FunctionEvent):
    """A kernel, copy or fill; its metadata is looked up when it is read."""

    _trace: Trace
    _row: int

    def __getattr__(self, field: str) -> EventMetadata | None:
        if field != "event_metadata":
            raise AttributeError(f"'FunctionEvent' object has no attribute '{field}'")
        device, row = self._trace.device, self._row
        extra = dict(device.extra_table[device.extra[row]]) if device.extra[row] >= 0 else {}
        extra |= {"device": int(device.device[row]), "stream": int(device.stream[row])}
        if device.correlation[row] >= 0:
            extra["correlation"] = int(device.correlation[row])
        self.event_metadata = metadata_of(extra)
        return self.event_metadata


def metadata_of(extra: Mapping[str, object]) -> EventMetadata | None:
    """Arguments of an event in its file as torch's EventMetadata; None where nothing of it is known."""
    texts = {
        key: value if isinstance(value, str) else orjson.dumps(value).decode() for key, value in extra.items()
    }
    try:
        return event_metadata(texts)
    except (ValueError, TypeError):
        return None  # a value of another kind than torch writes


class DeviceAnnotation(DeviceEvent):
    """An annotation on a stream: from the begin of the first to the end of the last work that was launched in it."""

    busy_us = 0.0

    @property
    def device_time_total(self) -> float:  # type: ignore[override]  # computed, not stored
        return self.busy_us


def device_events(results: Results) -> list[FunctionEvent]:
    """One event per kernel, copy, fill or annotation on a device."""
    trace = results.trace
    device, of_events = trace.device, results.device_columns
    if of_events is None:
        return []
    kind, begin_ns, use_device = device_type(results.use_device), trace.window_ns[0], results.use_device
    group_of, texts = grouping.named_groups(device.names)
    if trace.external is not None and len(trace) > 0:
        numbers = trace.external[device.op].tolist()
    else:
        numbers = [0] * len(device)
    rows = np.flatnonzero(of_events.listed)
    columns = zip(
        rows.tolist(),
        device.name[rows].tolist(),
        (device.start_ns[rows] - begin_ns).tolist(),
        (device.end_ns[rows] - begin_ns).tolist(),
        device.device[rows].tolist(),
        device.stream[rows].tolist(),
        device.kind[rows].tolist(),
        device.correlation[rows].tolist(),
        device.op[rows].tolist(),
        [numbers[row] for row in rows.tolist()],
        of_events.length_ns[rows].tolist(),
    )
    events: list[FunctionEvent] = []
    for row, name, start, end, index, stream, activity, correlation, op, number, length in columns:
        event_class = DeviceAnnotation if activity == DEVICE_ANNOTATION else DeviceEvent
        event = event_class(
            id=max(correlation, 0),
            name=texts[group_of[name]],
            trace_name=device.names[name],
            overload_name="",
            thread=0,
            fwd_thread=0,
            start_us=start / 1000,
            end_us=end / 1000,
            input_shapes=[],
            stack=[],
            scope=0,
            use_device=use_device,
            device_type=kind,
            device_index=index,
            device_resource_id=stream,
            is_user_annotation=activity == DEVICE_ANNOTATION,
            activity_type=_ACTIVITIES[activity],
            flops=0,
            linked_correlation_id=number if op >= 0 else 0,
        )
        del event.event_metadata
        event._trace, event._row = trace, row
        if isinstance(event, DeviceAnnotation):
            event.busy_us = length / 1000
        events.append(event)
    return events


def in_order_of_start(
    first: list[FunctionEventAvg],
    first_starts: npt.NDArray[np.integer],
    second: list[FunctionEventAvg],
    second_starts: npt.NDArray[np.integer],
) -> list[FunctionEventAvg]:
    """Two lists of rows as one, in the order in which they began."""
    both = [*first, *second]
    order = np.argsort(np.concatenate([first_starts, second_starts]), kind="stable")
    return [both[i] for i in order.tolist()]
