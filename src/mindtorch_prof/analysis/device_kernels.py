"""Device kernels: a recording in; the work of each device by type, by op and by direction of copies out.

Times of kernels are unions: what overlaps counts once within a row. The work is that of `device_breakdown`, but the rows of copies by
direction also have those that it leaves out on Ascend, with their durations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import IntArray, distinct
from ..trace import DEVICE_COPY, DEVICE_SET, Trace
from .categories import name_categories
from .device_breakdown import COMMUNICATION, DeviceWork, device_work, has_an_op
from .intervals import union_lengths
from .recording import Recording, as_results

NO_OP = "(no op)"  # the row of the work that no op accounts for


@dataclass(frozen=True)
class WorkRow:
    """The work of one type or op."""

    name: str
    count: int
    time_us: float  # in which at least one of them ran
    share: float  # of the durations of all work: shares add up to 1, also where streams overlap
    mean_us: float  # of the durations

    def to_dict(self, key: str) -> dict[str, str | int | float]:
        """The row as plain data; `key`: what the name is."""
        return {
            key: self.name,
            "count": self.count,
            "time_us": self.time_us,
            "share": self.share,
            "mean_us": self.mean_us,
        }


@dataclass(frozen=True)
class CopyRow:
    """Copies of one direction, or memory fills."""

    direction: str  # as the file names them: Memcpy HtoD (Pinned -> Device)
    count: int
    nbytes: int | None  # None: the file does not say
    time_us: float  # the sum of the durations
    gb_per_s: float | None  # bytes / time

    def to_dict(self) -> dict[str, str | int | float | None]:
        """The row as plain data."""
        return {
            "direction": self.direction,
            "count": self.count,
            "bytes": self.nbytes,
            "time_us": self.time_us,
            "gb_per_s": self.gb_per_s,
        }


@dataclass(frozen=True)
class DeviceKernels:
    """The work of one device, the most time first."""

    device: int
    by_type: tuple[WorkRow, ...]
    by_op: tuple[WorkRow, ...]  # the innermost op around the launch
    by_name: tuple[WorkRow, ...]
    copies: tuple[CopyRow, ...]


def device_kernels(recording: Recording) -> list[DeviceKernels]:
    """The work of each device, in the order of the devices' numbers; empty without device work."""
    trace = recording if isinstance(recording, Trace) else as_results(recording).trace
    work = device_work(trace)
    device = trace.device
    kind, name = device.kind[work.rows], device.name[work.rows].astype(np.int64)
    types = ["communication", "copy between memories", "memory fill", *name_categories(device.names)]
    type_of = np.select(
        [work.work_class == COMMUNICATION, kind == DEVICE_COPY, kind == DEVICE_SET], [0, 1, 2], name + 3
    )
    ops = [*trace.names, NO_OP]
    op_of = np.full(len(work.rows), len(trace.names), np.int64)
    has_op = has_an_op(trace)[work.rows]
    op_of[has_op] = trace.name[device.op[work.rows[has_op]]]
    counts = (work.end_ns > work.start_ns) | (work.duration_ns == 0)  # not left out
    return [
        DeviceKernels(
            number,
            _rows(work, np.flatnonzero(counts & (work.place == place)), type_of, types),
            _rows(work, np.flatnonzero(counts & (work.place == place)), op_of, ops),
            _rows(work, np.flatnonzero(counts & (work.place == place)), name, device.names),
            _copies(
                trace, work, np.flatnonzero((work.place == place) & np.isin(kind, (DEVICE_COPY, DEVICE_SET)))
            ),
        )
        for place, number in enumerate(work.numbers.tolist())
    ]


def _rows(
    work: DeviceWork, rows: IntArray, label: IntArray, texts: list[str] | tuple[str, ...]
) -> tuple[WorkRow, ...]:
    """Rows by label; labels with the same text are one row."""
    used, place = distinct(label[rows])
    names, same = np.unique(np.array([texts[i] for i in used.tolist()], object), return_inverse=True)
    group = same.reshape(-1)[place]
    start, end = work.start_ns[rows], work.end_ns[rows]
    lengths = union_lengths(group, start, end, len(names))
    counted = np.bincount(group, weights=end - start, minlength=len(names))
    whole = float(counted.sum())
    count = np.bincount(group, minlength=len(names))
    total = np.bincount(group, weights=work.duration_ns[rows], minlength=len(names))
    return tuple(
        WorkRow(
            str(names[i]),
            int(count[i]),
            int(lengths[i]) / 1000,
            float(counted[i]) / whole if whole else 0.0,
            float(total[i]) / 1000 / int(count[i]),
        )
        for i in np.argsort(-lengths, kind="stable").tolist()
    )


def _copies(trace: Trace, work: DeviceWork, rows: IntArray) -> tuple[CopyRow, ...]:
    device = trace.device
    used, group = distinct(device.name[work.rows[rows]])
    nbytes = _bytes(trace, work.rows[rows])
    length = work.duration_ns[rows]
    found = []
    for place, name in enumerate(used.tolist()):
        here = group == place
        known = here & (nbytes >= 0)
        total, time = int(nbytes[known].sum()), int(length[known].sum())
        found.append(
            CopyRow(
                device.names[name],
                int(here.sum()),
                total if known.any() else None,
                int(length[here].sum()) / 1000,
                total / time
                if known.any() and time
                else None,  # bytes per nanosecond are gigabytes per second
            )
        )
    return tuple(sorted(found, key=lambda row: -row.time_us))


_MOST_BYTES = 1 << 52  # a copy of more is none: sums stay within 64 bits


def _bytes(trace: Trace, rows: IntArray) -> IntArray:
    """The bytes that copies moved; -1: the file does not say."""
    extra = trace.device.extra[rows]
    used, place = distinct(extra)
    known = [trace.device.extra_table[i].get("bytes") if i >= 0 else None for i in used.tolist()]
    values = [int(v) if isinstance(v, (int, float)) and 0 <= v < _MOST_BYTES else -1 for v in known]
    return np.array(values or [-1], np.int64)[place]
