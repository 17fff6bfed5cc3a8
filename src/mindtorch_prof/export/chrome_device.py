"""The device part of a Chrome trace: a Trace in; lines of JSON for device events, counters and the flows from launches to kernels out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..arrays import BoolArray, IntArray
from ..json_text import encode as _text
from ..trace import (
    DEVICE_ANNOTATION,
    DEVICE_COPY,
    DEVICE_KERNEL,
    DEVICE_PART,
    DEVICE_SET,
    DEVICE_SYNC,
    RUNTIME,
    Trace,
)

PART_CATEGORY = "collective_task"  # tasks inside collectives; a word of this package
_CATEGORIES = {
    DEVICE_KERNEL: "kernel",
    DEVICE_COPY: "gpu_memcpy",
    DEVICE_SET: "gpu_memset",
    DEVICE_ANNOTATION: "gpu_user_annotation",
    DEVICE_SYNC: "cuda_sync",
    DEVICE_PART: PART_CATEGORY,
}
_FIRST_SORT_INDEX = 5_000_000  # viewers show devices below the processes
_FIRST_TASK_TRACK = 1_000_000  # tasks of stream 4 are on the tracks 1,000,004, 2,000,004 ...
_CUDA = 1  # torch's number of the device type


def runtime_category(trace: Trace) -> str:
    """The category of calls to the device's runtime."""
    device = trace.settings.device or "cuda"
    return {"xpu": "xpu_runtime", "mtia": "mtia_runtime", "cuda": "cuda_runtime"}.get(
        device, "privateuse1_runtime"
    )


def external_ids(trace: Trace) -> IntArray:
    """The external ids of events in the file: of a row its own, of a runtime call that of the op that contains it (0: none)."""
    numbers = np.arange(1, len(trace) + 1)
    calls = np.flatnonzero(trace.kind == RUNTIME)
    if not len(calls):
        return numbers
    numbers[calls] = 0
    if trace.external is not None:
        ops = np.flatnonzero((trace.kind != RUNTIME) & (trace.external > 0))
        ops = ops[np.argsort(trace.external[ops], kind="stable")]
        if len(ops):
            place = np.minimum(np.searchsorted(trace.external[ops], trace.external[calls]), len(ops) - 1)
            known = trace.external[ops[place]] == trace.external[calls]
            numbers[calls] = np.where(known, ops[place] + 1, 0)
    device = trace.device
    launched = (device.launch >= 0) & (device.op >= 0)
    numbers[device.launch[launched]] = device.op[launched] + 1
    return numbers


def correlations(trace: Trace, *, of_flows: bool = False) -> IntArray:
    """The correlation id that a runtime call shares with what it launched, or with that to which a flow leads; -1: there is none."""
    numbers = np.full(len(trace), -1, np.int64)
    device = trace.device
    launched = _has_flow(trace) if of_flows else (device.launch >= 0) & (device.correlation >= 0)
    numbers[device.launch[launched]] = device.correlation[launched]
    return numbers


def _has_flow(trace: Trace) -> BoolArray:
    """Mask of the device events to which a flow leads. None leads to the parts of a collective, and to waiting inside it: a flow has one end,
    which is the collective."""
    device = trace.device
    linked: BoolArray = (device.launch >= 0) & (device.correlation >= 0)
    return linked & ~_is_task(trace)


def _is_task(trace: Trace) -> BoolArray:
    """Mask of what happens inside a collective: its parts, and waiting that has the correlation of parts."""
    device = trace.device
    is_part: BoolArray = device.kind == DEVICE_PART
    with_parts: BoolArray = np.isin(
        device.correlation, device.correlation[is_part & (device.correlation >= 0)]
    )
    is_wait: BoolArray = with_parts & (device.kind == DEVICE_SYNC)
    return is_part | is_wait


def tracks(trace: Trace) -> IntArray:
    """The `tid` of each device event: its stream; for tasks inside collectives, which overlap on their stream, the first of further tracks on
    which they do not, as viewers drop slices that do not nest."""
    device = trace.device
    track = device.stream.copy()
    rows = np.flatnonzero(_is_task(trace))
    rows = rows[np.argsort(device.start_ns[rows], kind="stable")]
    open_until: dict[tuple[int, int], list[int]] = {}  # by (device, stream): the end of each of its tracks
    columns = (device.device, device.stream, device.start_ns, device.end_ns)
    for row, index, stream, start, end in zip(rows.tolist(), *(column[rows].tolist() for column in columns)):
        ends = open_until.setdefault((index, stream), [])
        number = next((n for n, until in enumerate(ends) if until <= start), len(ends))
        ends[number : number + 1] = [end]
        # only a damaged file has streams with larger numbers; 64 bits must hold the track
        track[row] = _FIRST_TASK_TRACK * (number + 1) + stream % _FIRST_TASK_TRACK
    return track


def metadata_lines(trace: Trace, at: str) -> Iterator[str]:
    """Names of devices and streams."""
    device = trace.device
    kind = "NPU" if trace.settings.device == "npu" else "GPU"
    track = tracks(trace)
    for index in np.unique(device.device).tolist():
        pid = max(index, 0)
        lines: list[tuple[str, int, dict[str, object]]] = [
            ("process_name", 0, {"name": "python"}),
            ("process_labels", 0, {"labels": f"{kind} {pid}"}),
            ("process_sort_index", 0, {"sort_index": _FIRST_SORT_INDEX + pid}),
        ]
        own = np.unique(track[device.device == index]).tolist()
        lines += [("thread_name", tid, {"name": _track_name(tid)}) for tid in own]
        for name, tid, args in lines:
            yield f'{{"ph":"M","name":"{name}","ts":{at},"pid":{pid},"tid":{tid},"args":{_text(args)}}}'


def launch_arrows(trace: Trace, where: Callable[[int], str], shift: int) -> Iterator[tuple[int, str]]:
    """The starts of the flows from runtime calls to device events: (row, line). `where` returns the fields `"pid":..,"tid":..` of a thread."""
    numbers = correlations(trace, of_flows=True)
    for row in np.flatnonzero(numbers >= 0).tolist():
        place = where(int(trace.thread[row]))
        yield (
            row,
            f'{{"ph":"s","id":{numbers[row]},{place},"ts":{_us(int(trace.start_ns[row]) + shift)},"cat":"ac2g","name":"ac2g"}}',
        )


def device_lines(trace: Trace, shift: int, size: int) -> Iterator[list[str]]:
    """Lines of device events, each followed by the end of its flow; `size` events at a time."""
    device = trace.device
    names = [_text(name) for name in device.names]
    launched = _has_flow(trace)
    track = tracks(trace)
    for first in range(0, len(device), size):
        part = slice(first, first + size)
        lines = []
        columns = zip(
            device.name[part].tolist(),
            (device.start_ns[part] + shift).tolist(),
            (device.end_ns[part] - device.start_ns[part]).tolist(),
            device.device[part].tolist(),
            device.stream[part].tolist(),
            device.kind[part].tolist(),
            device.correlation[part].tolist(),
            device.op[part].tolist(),
            device.extra[part].tolist(),
            launched[part].tolist(),
            track[part].tolist(),
        )
        for name, start, length, index, stream, kind, correlation, op, extra, arrow, tid in columns:
            args: dict[str, object] = {"External id": op + 1} if op >= 0 else {}
            if kind != DEVICE_ANNOTATION:
                args |= {"device": index, "stream": stream}
                if correlation >= 0:
                    args["correlation"] = correlation
            if extra >= 0:
                args |= device.extra_table[extra]
            place = f'"pid":{max(index, 0)},"tid":{tid}'
            lines.append(
                f'{{"ph":"X","cat":"{_CATEGORIES[kind]}","name":{names[name]},{place},"ts":{_us(start)},'
                f'"dur":{_us(length)},"args":{_text(args)}}}'
            )
            if arrow:
                lines.append(
                    f'{{"ph":"f","id":{correlation},{place},"ts":{_us(start)},"cat":"ac2g","name":"ac2g","bp":"e"}}'
                )
        yield lines


def _track_name(tid: int) -> str:
    number, stream = divmod(tid, _FIRST_TASK_TRACK)
    return f"stream {stream} tasks {number} " if number > 0 else f"stream {tid} "


def counter_lines(trace: Trace, pid: int, shift: int) -> Iterator[str]:
    """Lines of counters."""
    counters = trace.counters
    names = [_text(name) for name in counters.names]
    for name, at, value in zip(
        counters.name.tolist(), (counters.time_ns + shift).tolist(), counters.value.tolist()
    ):
        yield f'{{"ph":"C","name":{names[name]},"pid":{pid},"tid":0,"ts":{_us(at)},"args":{{"value":{_text(value)}}}}}'


def memory_device(index: int) -> str:
    """The fields of an allocation's event that name its device."""
    return f'"Device Id":{index},"Device Type":{_CUDA}' if index >= 0 else '"Device Id":-1,"Device Type":0'


def _us(nanoseconds: int) -> str:
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"
