"""Chrome traces: a Trace, averages or events in, a trace file in Kineto's format out.

The text of an event has constant parts (name, shapes, types), which are encoded once, before and after its numbers, which are turned into
digits column by column. That takes a fifth of the time of encoding one dict per event, and times keep their three decimals.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, TYPE_CHECKING

import numpy as np
import orjson

from ..arrays import Array, IntArray
from ..files import open_for_export
from ..forward_backward import forward_backward
from ..json_text import encode, spaced
from ..recorded_health import health_entry, health_of_parts
from ..settings import DEFAULT_DTYPE, EVENT_COST, NUM_THREADS
from ..trace import ALLOCATES, ANNOTATION, RUNTIME, SYNTHETIC, Trace
from ..tree import thread_slices
from . import chrome_device as device_part

if TYPE_CHECKING:
    from ..torch_api.function_events import FunctionEvent, FunctionEventAvg

_SEPARATOR = b",\n"  # before every event but the first
CHUNK = 16_384  # rows that are turned into text at a time
# The base time is a multiple of a quarter of a year, so that `ts` is exact in a double.
_BASE_STEP_NS = 7_889_238 * 10**9
_FLAGS = ("with_stack", "profile_memory", "record_shapes", "with_flops", "with_modules")


def export_chrome_trace(
    trace: Trace,
    path: str | os.PathLike[str],
    metadata: Mapping[str, object] | None = None,
    *,
    exclusive: bool = False,
) -> None:
    """Write a trace to `path`; a name that ends in .gz is compressed."""
    with open_for_export(path, exclusive=exclusive) as out:
        write(trace, out, metadata, name=os.fspath(path))


def write(
    trace: Trace, out: IO[bytes], metadata: Mapping[str, object] | None = None, *, name: str = ""
) -> None:
    """Write a trace as one JSON object in Kineto's format."""
    columns = (trace.start_ns, trace.memory.time_ns, trace.frames.start_ns, trace.device.start_ns)
    base = trace.origin_ns + min([trace.window_ns[0], *[int(c.min()) for c in columns if len(c)]])
    base -= base % _BASE_STEP_NS
    shift = trace.origin_ns - base
    settings = trace.settings
    distributed = {"distributedInfo": settings.distributed} if settings.distributed else {}
    out.write(
        _head(
            trace, {**settings.metadata, **distributed, **settings.added_metadata, **(metadata or {})}, base
        )
    )
    first = True
    for block in _blocks(trace, shift):
        out.write(block[len(_SEPARATOR) :] if first else block)
        first = False
    out.write(b'\n  ],\n  "traceName": ' + encode(name).encode() + b"\n}\n")


def _head(trace: Trace, metadata: dict[str, object], base: int) -> bytes:
    import socket  # takes 5 ms, and only writing a trace needs it

    settings = trace.settings
    head: dict[str, object] = {"schemaVersion": 1, "deviceProperties": list(settings.device_properties)}
    head["trace_id"] = settings.trace_id or os.urandom(16).hex().upper()
    head.update({flag: 1 for flag in _FLAGS if getattr(settings, flag)})
    if settings.host_name or not settings.foreign:
        head["host_name"] = settings.host_name or socket.gethostname()
    if not settings.foreign:
        head["mindtorch_v2"] = 1  # tells readers that torch did not write the file
    if settings.event_cost_ns is not None:
        head[EVENT_COST] = round(settings.event_cost_ns, 3)
    if settings.num_threads:
        head[NUM_THREADS], head[DEFAULT_DTYPE] = settings.num_threads, settings.default_dtype
    head.update({key: value for key, value in metadata.items() if key != "traceEvents"})
    health = trace.health
    if settings.from_file and settings.source_name:
        health = health_of_parts([(settings.source_name, health)])
    head.update(health_entry(health))
    head["displayTimeUnit"] = "ms"
    head["baseTimeNanoseconds"] = base
    lines = [f"  {spaced(key)}: {spaced(_finite(value))}" for key, value in head.items()]
    return ("{\n" + ",\n".join(lines) + ',\n  "traceEvents": [\n').encode()


def _finite(value: object) -> object:
    """A value without infinities and NaN, which JSON does not have: they become text."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return value


def _blocks(trace: Trace, shift: int) -> Iterator[bytes]:
    """The events as text, each after a separator."""
    threads = _ThreadFields(trace)
    start, end = (time + shift for time in trace.window_ns)
    yield _joined(_metadata(trace, threads, start))
    count = len(trace)
    flows = _flows(trace, threads, shift)
    external = None
    if len(trace.device):
        external = device_part.external_ids(trace)
        for row, line in device_part.launch_arrows(trace, threads.of_thread, shift):
            flows.setdefault(row // CHUNK, []).append((row, _SEPARATOR + line.encode()))
    heads, tails, number = _templates(trace, threads)
    forward = _forward_numbers(trace)
    for first in range(0, count, CHUNK):
        part = slice(first, first + CHUNK)
        templates = number[part].tolist()
        ends = [tails[n] for n in templates]
        if trace.execution_node is not None:
            nodes = trace.execution_node[part].tolist()
            ends = [end.replace(b":0", b":%d" % node, 1) for end, node in zip(ends, nodes)]
        for row, text in flows.get(first // CHUNK, ()):
            ends[row - first] += text
        middle = _numbers(trace, forward, shift, part, external)
        yield b"".join(itertools.chain.from_iterable(zip([heads[n] for n in templates], middle, ends)))
    for lines in _memory(trace, threads, shift, count):
        yield _joined(lines)
    for lines in _frames(trace, threads, shift, count + len(trace.memory.time_ns)):
        yield _joined(lines)
    for lines in device_part.device_lines(trace, shift, CHUNK):
        yield _joined(lines)
    yield _joined(list(device_part.counter_lines(trace, threads.pid, shift)))
    yield _joined(_window_lines(start, end))


def _joined(lines: list[str]) -> bytes:
    return b"".join([_SEPARATOR + line.encode() for line in lines])


def thread_ids(trace: Trace) -> dict[int, int]:
    """The system's number of each thread; where that is unknown, its identity."""
    known = {identity: native for identity, (native, _) in trace.settings.threads.items()}
    used = np.unique(np.concatenate([trace.thread, trace.memory.thread, trace.frames.thread])).tolist()
    return {identity: known.get(identity, identity) for identity in used}


class _ThreadFields:
    """The `pid` and `tid` fields of events. Annotations of asynchronous code that partly overlap are written to further tracks next to that of
    their thread, because viewers drop slices that do not nest."""

    def __init__(self, trace: Trace) -> None:
        self.pid = int(trace.settings.pid)
        self.threads = thread_ids(trace)
        self._pids = trace.settings.thread_pids
        self.track = overlap_tracks(trace)  # by row; 0: that of the thread itself
        self.tracks: dict[tuple[int, int], int] = {}
        moved = np.flatnonzero(self.track)
        top = max(self.threads.values(), default=0)
        for thread, track in sorted(set(zip(trace.thread[moved].tolist(), self.track[moved].tolist()))):
            self.tracks[thread, track] = top + 1 + len(self.tracks)

    def process(self, thread: int) -> str:
        """The process of a thread, as JSON."""
        return encode(self._pids.get(thread, self.pid))

    def of_thread(self, thread: int) -> str:
        """The fields of an event of a thread."""
        return f'"pid":{self.process(thread)},"tid":{self.threads[thread]}'

    def of_track(self, thread: int, track: int) -> str:
        """The fields of an event of one of a thread's tracks."""
        tid = self.tracks[thread, track] if track else self.threads[thread]
        return f'"pid":{self.process(thread)},"tid":{tid}'


def overlap_tracks(trace: Trace) -> IntArray:
    """For each row its track: 0, or for an annotation that partly overlaps another one of its thread, the first on which it nests."""
    track = np.zeros(len(trace), np.int8)
    rows = np.flatnonzero(trace.kind == ANNOTATION)
    for first, last in thread_slices(trace.thread[rows]):
        part = rows[first:last]
        start, end = trace.start_ns[part], trace.end_ns[part]
        if len(part) < 2 or (start[1:] >= np.maximum.accumulate(end)[:-1]).all():
            continue
        order = np.lexsort((-end, start))
        open_ends: list[list[int]] = [[]]  # by track, the ends of its open annotations
        for row, row_start, row_end in zip(part[order].tolist(), start[order].tolist(), end[order].tolist()):
            for number, ends in enumerate(open_ends):
                while ends and ends[-1] <= row_start:
                    ends.pop()
                if not ends or row_end <= ends[-1]:
                    ends.append(row_end)
                    track[row] = min(number, 127)
                    break
            else:
                track[row] = min(len(open_ends), 127)
                open_ends.append([row_end])
    return track


# ---------------------------------------------------------------------------------------------------- ranges


def _templates(trace: Trace, threads: _ThreadFields) -> tuple[list[bytes], list[bytes], IntArray]:
    """The texts before and after a row's numbers, for each distinct (name, kind, thread, inputs, stack, mark); and for each row their
    index."""
    with_stacks = trace.settings.verbose
    # events that were open when the recording ended, end with it
    unfinished = (trace.end_ns == trace.window_ns[1]) & bool(trace.health.unfinished)
    columns = [trace.name, trace.kind, trace.inputs + 1, unfinished, threads.track]
    if with_stacks:
        columns.append(trace.stack + 1)
    if trace.extra is not None:
        columns.append(trace.extra + 1)
    if trace.synthetic is not None:
        columns.append(trace.synthetic.astype(np.int64) % 256)  # negative ones above the others
    calls = trace.kind == RUNTIME
    if calls.any():
        runtime, correlation = device_part.runtime_category(trace), device_part.correlations(trace)
        columns.append(correlation + 1)
    number: IntArray = np.zeros(len(trace), np.int64)
    for place, (first, last) in enumerate(thread_slices(trace.thread)):
        number[first:last] = place
    for column in columns:
        number = _renumbered(number * (int(column.max(initial=0)) + 1) + column)
    leading = np.empty(int(number.max(initial=-1)) + 1, np.int64)
    leading[number[::-1]] = np.arange(len(trace) - 1, -1, -1)
    names = [encode(text) for text in trace.names]
    shapes = trace.settings.shapes_recorded
    heads, tails = [], []
    for row in leading.tolist():
        kind = "user_annotation" if trace.kind[row] == ANNOTATION else runtime if calls[row] else "cpu_op"
        where = threads.of_track(int(trace.thread[row]), int(threads.track[row]))
        head = f'{{"ph":"X","cat":"{kind}","name":{names[trace.name[row]]},{where},"ts":'
        heads.append(_SEPARATOR + head.encode())
        if calls[row]:
            tails.append(b"}}" if correlation[row] < 0 else b',"correlation":%d}}' % correlation[row])
            continue
        tail = ',"Record function id":0'
        if trace.synthetic is not None and trace.synthetic[row]:
            tail += f',"{SYNTHETIC}":{abs(int(trace.synthetic[row]))}'
            if trace.synthetic[row] < 0:
                tail += f',"{ALLOCATES}":1'
        if shapes:
            tail += _input_args(trace, int(trace.inputs[row]))
        if with_stacks and trace.stack[row] >= 0:
            tail += ',"Call stack":' + encode("".join(f + ";" for f in trace.stacks[trace.stack[row]]))
        if unfinished[row]:
            tail += ',"finished":false'
        if trace.extra is not None and trace.extra[row] >= 0:
            tail += "," + encode(trace.extra_table[trace.extra[row]])[1:-1]
        tails.append((tail + "}}").encode())
    return heads, tails, number


def _keyword_args(values: Mapping[str, object]) -> str:
    """The keyword arguments that torch writes: numbers, strings and lists of strings; of `stream` only a number; "None" for a string with
    quotes."""
    shown = {}
    for name, value in values.items():
        if name == "stream":
            is_shown = isinstance(value, int)
        elif isinstance(value, list):
            is_shown = bool(value) and all(isinstance(item, str) for item in value)
        else:
            is_shown = isinstance(value, (str, int, float))
        if is_shown:
            shown[name] = "None" if isinstance(value, str) and '"' in value else value
    return "," + encode(shown)[1:-1] if shown else ""


def _renumbered(keys: IntArray) -> IntArray:
    """Equal keys get equal numbers, from 0 on; without sorting if the keys are small."""
    top = int(keys.max(initial=0)) + 1
    if top > 4 * len(keys) + 65_536:
        return np.unique(keys, return_inverse=True)[1].reshape(-1)
    present = np.zeros(top, np.int64)
    present[keys] = 1
    numbers: IntArray = (np.cumsum(present) - 1)[keys]
    return numbers


def _numbers(
    trace: Trace, forward: IntArray, shift: int, part: slice, external: IntArray | None = None
) -> list[bytes]:
    """The numbers of each row as text of equal width: start, duration, External id, Ev Idx, and the sequence number if there is one."""
    start = trace.start_ns[part] + shift
    length = np.maximum(trace.end_ns[part] - trace.start_ns[part], 0)
    sequence = trace.sequence[part]
    row = np.arange(len(trace))[part]
    fields: list[bytes | Array] = [
        *_microseconds(start),
        b',"dur":',
        *_microseconds(length),
        b',"args":{"External id":',
    ]
    numbers = row + 1 + trace.settings.numbered_after if external is None else external[part]
    fields += [_digits(numbers), b',"Ev Idx":', _digits(row)]
    numbered = sequence >= 0
    if numbered.any():
        fields += [b',"Sequence number":', _digits(np.maximum(sequence, 0))]
        fields += [b',"Fwd thread id":', _digits(forward[part])]
    text = _columns(fields, len(row))
    if numbered.any() and not numbered.all():
        blank = sum(_width(field) for field in fields[-4:])
        text[~numbered, -blank:] = _BLANK
    numbers_of_rows: list[bytes] = text.view(f"S{text.shape[1]}").ravel().tolist()
    return numbers_of_rows


_BLANK = ord(" ")
_THREE_DIGITS = np.frombuffer(b"".join(b"%03d" % i for i in range(1000)), np.uint8).reshape(1000, 3)


def _microseconds(nanoseconds: IntArray) -> list[bytes | Array]:
    """The fields of a time: microseconds, a point, three digits."""
    whole = nanoseconds // 1000
    return [_digits(whole), b".", _THREE_DIGITS[nanoseconds - whole * 1000]]


def _digits(values: IntArray) -> Array:
    """Numbers (not negative) as a matrix of digits, as wide as the largest; padded on the left with blanks, which JSON allows."""
    width = len(str(int(values.max(initial=0))))
    groups, rest = [], values
    for _ in range((width + 2) // 3):
        above = rest // 1000
        groups.append(_THREE_DIGITS[rest - above * 1000])
        rest = above
    digits = np.concatenate(groups[::-1], axis=1)[:, -width:]
    if width > 1:
        powers = 10 ** np.arange(width - 1, 0, -1)
        if int(values.min(initial=0)) < powers[0]:
            digits[:, :-1][values[:, None] < powers] = _BLANK
    return digits


def _width(field: bytes | Array) -> int:
    return len(field) if isinstance(field, bytes) else int(field.shape[1])


def _columns(fields: list[bytes | Array], count: int) -> Array:
    """Fields side by side, one row of bytes per event."""
    text = np.empty((count, sum(_width(field) for field in fields)), np.uint8)
    place = 0
    for field in fields:
        width = _width(field)
        text[:, place : place + width] = np.frombuffer(field, np.uint8) if isinstance(field, bytes) else field
        place += width
    return text


def _input_args(trace: Trace, index: int) -> str:
    if index < 0:
        return ""
    inputs = trace.input_table[index]
    text = _keyword_args(inputs.keywords) if inputs.keywords else ""
    document = inputs.document()
    return text + "," + encode(document)[1:-1] if document["Input Dims"] else text


def _forward_numbers(trace: Trace) -> IntArray:
    """For each row the number of its forward thread: 0 for none, 1 for the recording thread, then the others."""
    numbers: dict[int, int] = {0: 0}
    main = int(trace.settings.thread)
    for thread in [main, *np.unique(trace.thread).tolist()]:
        numbers.setdefault(thread, len(numbers))
    threads, place = np.unique(trace.forward_thread, return_inverse=True)
    return np.array([numbers.get(t, 0) for t in threads.tolist()], np.int64)[place.reshape(-1)]


# ---------------------------------------------------------------------------------------------------- flows


def _flows(trace: Trace, threads: _ThreadFields, shift: int) -> dict[int, list[tuple[int, bytes]]]:
    """The starts and ends of the flows from forward ops to backward nodes, by chunk of rows: (row of the event, text)."""
    flows: dict[int, list[tuple[int, bytes]]] = {}
    source, target = forward_backward(trace)
    for number, (first, second) in enumerate(zip(source.tolist(), target.tolist()), start=1):
        for row, head in ((first, '"ph":"s"'), (second, '"ph":"f","bp":"e"')):
            at = int(trace.start_ns[row]) + shift
            text = (
                f',\n{{{head},"id":{number},{threads.of_thread(int(trace.thread[row]))},'
                f'"ts":{at // 1000}.{at % 1000:03d},"cat":"fwdbwd","name":"fwdbwd"}}'
            )
            flows.setdefault(row // CHUNK, []).append((row, text.encode()))
    return flows


# ---------------------------------------------------------------------------------------------------- the rest


def _metadata(trace: Trace, thread_fields: _ThreadFields, at: int) -> list[str]:
    stamp = f"{at // 1000}.{at % 1000:03d}"

    def line(name: str, pid: str, tid: int, args: Mapping[str, object]) -> str:
        return f'{{"ph":"M","name":"{name}","ts":{stamp},"pid":{pid},"tid":{tid},"args":{encode(args)}}}'

    process_names = trace.settings.processes
    by_process: dict[str, dict[int, str]] = {encode(thread_fields.pid): {}}
    file_threads = trace.settings.threads if trace.settings.from_file else {}
    for identity, tid in thread_fields.threads.items():
        name = file_threads.get(identity, (0, ""))[1] or f"thread {tid} (python)"
        by_process.setdefault(thread_fields.process(identity), {}).setdefault(tid, name)
    for (identity, track), tid in thread_fields.tracks.items():
        name = f"thread {thread_fields.threads[identity]} (overlapping ranges {track})"
        by_process.setdefault(thread_fields.process(identity), {}).setdefault(tid, name)
    lines = []
    for pid, threads in by_process.items():
        number = orjson.loads(pid)
        lines += [
            line("process_name", pid, 0, {"name": process_names.get(number) or "python"}),
            line("process_labels", pid, 0, {"labels": "CPU"}),
            line("process_sort_index", pid, 0, {"sort_index": number}),
        ]
        for tid, name in threads.items():
            lines.append(line("thread_name", pid, tid, {"name": name}))
            lines.append(line("thread_sort_index", pid, tid, {"sort_index": tid}))
    return [*lines, *device_part.metadata_lines(trace, stamp)]


def _memory(trace: Trace, threads: _ThreadFields, shift: int, index: int) -> Iterator[list[str]]:
    memory = trace.memory
    if not len(memory.time_ns):
        return
    text = (
        '{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]",%s,"ts":%d.%03d,'
        '"args":{"Total Reserved":0,"Total Allocated":%d,"Bytes":%d,%s,"Addr":%d,'
        '"finished":false,"Ev Idx":%d}}'
    )
    at = memory.time_ns + shift
    where = {thread: threads.of_thread(thread) for thread in np.unique(memory.thread).tolist()}
    devices = np.full(len(at), -1) if memory.device is None else memory.device
    on = {index: device_part.memory_device(index) for index in np.unique(devices).tolist()}
    for first in range(0, len(at), CHUNK):
        part = slice(first, first + CHUNK)
        yield [
            text % values
            for values in zip(
                [where[t] for t in memory.thread[part].tolist()],
                (at[part] // 1000).tolist(),
                (at[part] % 1000).tolist(),
                memory.total[part].tolist(),
                memory.nbytes[part].tolist(),
                [on[d] for d in devices[part].tolist()],
                memory.address[part].tolist(),
                range(index + first, index + len(at)),
            )
        ]


def _percent_escaped(text: str) -> str:
    return text.replace("%", "%%")


def _frames(trace: Trace, threads: _ThreadFields, shift: int, index: int) -> Iterator[list[str]]:
    frames = trace.frames
    heads = [
        _percent_escaped(f'{{"ph":"X","cat":"python_function","name":{encode(n)},') for n in frames.names
    ]
    where = {thread: threads.of_thread(thread) for thread in np.unique(frames.thread).tolist()}
    tail = '%s,"ts":%d.%03d,"dur":%d.%03d,"args":{"Python parent id":%s,"Python id":%d,"Ev Idx":%d'
    plain, module = (
        [head + tail + "}}" for head in heads],
        [head + tail + ',"Python module id":%d}}' for head in heads],
    )
    start, length = frames.start_ns + shift, _call_ends(trace) - frames.start_ns
    for first in range(0, len(frames), CHUNK):
        part = slice(first, first + CHUNK)
        columns = zip(
            frames.name[part].tolist(),
            frames.module[part].tolist(),
            [where[t] for t in frames.thread[part].tolist()],
            (start[part] // 1000).tolist(),
            (start[part] % 1000).tolist(),
            (length[part] // 1000).tolist(),
            (length[part] % 1000).tolist(),
            [p + 1 if p >= 0 else "null" for p in frames.parent[part].tolist()],
            range(first + 1, len(frames) + 1),
            range(index + first, index + len(frames)),
        )
        yield [
            plain[name] % values if number < 0 else module[name] % (*values, number)
            for name, number, *rest in columns
            for values in (tuple(rest),)
        ]


def _call_ends(trace: Trace) -> IntArray:
    """The ends of Python calls, each a nanosecond after the last event inside the call: for readers that add `ts` and `dur` as floats, some
    calls that end together would end after their callers."""
    frames = trace.frames
    end = frames.end_ns.copy()
    if trace.settings.from_file:
        return end
    # a call that was cut at the start of an annotation ends there
    free = ~np.isin(end, trace.start_ns[trace.kind == ANNOTATION])
    end[free] += 1
    inner = np.flatnonzero(frames.parent >= 0)
    while len(inner):
        inner = inner[(end[inner] >= end[frames.parent[inner]]) & free[frames.parent[inner]]]
        outer = frames.parent[inner]
        np.maximum.at(end, outer, end[inner] + 1)
        inner = np.unique(outer[frames.parent[outer] >= 0])
    return end


def _window_lines(start_ns: int, end_ns: int) -> list[str]:
    """The lines that say when recording started and ended."""
    # a microsecond later than the last event, for readers that add times as floats
    start, end = f"{start_ns // 1000}.{start_ns % 1000:03d}", f"{end_ns // 1000 + 1}.{end_ns % 1000:03d}"
    length = max(end_ns - start_ns, 0)
    span = '"cat":"Trace","name":"PyTorch Profiler (0)","pid":"Spans","tid":"PyTorch Profiler"'
    first = '"name":"Iteration Start: PyTorch Profiler","pid":"Traces","tid":"Trace PyTorch Profiler"'
    return [
        f'{{"ph":"X",{span},"ts":{start},"dur":{length // 1000}.{length % 1000:03d},"args":{{"Op count":0}}}}',
        f'{{"ph":"M","name":"process_sort_index","ts":{start},"pid":"Spans","tid":0,"args":{{"sort_index":536870912}}}}',
        f'{{"ph":"i","s":"g",{first},"ts":{start}}}',
        f'{{"ph":"i","s":"g","name":"Record Window End","pid":"","tid":"","ts":{end}}}',
    ]


# ---------------------------------------------------------------------------------------------------- averages, loose events


def export_averages(rows: Iterable[FunctionEventAvg], path: str | os.PathLike[str]) -> None:
    """Write averages, one slice per row, one after the other in the given order: the same rows give the same bytes."""
    events, at = [], 0.0
    for row in rows:
        length = round(float(row.cpu_time_total), 3)
        args = {
            "count": row.count,
            "cpu_time_total": row.cpu_time_total,
            "self_cpu_time_total": row.self_cpu_time_total,
            "cpu_time": row.cpu_time,
            "device_time_total": row.device_time_total,
            "self_device_time_total": row.self_device_time_total,
            "cpu_memory_usage": row.cpu_memory_usage,
            "self_cpu_memory_usage": row.self_cpu_memory_usage,
            "flops": row.flops,
            "input_shapes": row.input_shapes or [],
            "stack": list(row.stack or []),
            "overload_name": row.overload_name or "",
        }
        if row.synthetic_count:
            args["synthetic_count"] = row.synthetic_count
        event = {"name": str(row.key), "ph": "X", "ts": round(at, 3), "dur": length, "pid": 0, "tid": 0}
        events.append(encode({**event, "cat": "key_averages", "args": args}))
        at += length
    with open_for_export(path) as out:
        text = (
            '{"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": [\n' + ",\n".join(events) + "\n]}\n"
        )
        out.write(text.encode())


def export_events(events: Iterable[FunctionEvent], path: str | os.PathLike[str]) -> None:
    """Write a list of FunctionEvents that is not a whole recording, from the attributes of the events."""
    lines = []
    for index, event in enumerate(events):
        span = event.time_range
        args: dict[str, object] = {"External id": index + 1, "Record function id": 0}
        if event.sequence_nr is not None and event.sequence_nr >= 0:
            args |= {"Sequence number": event.sequence_nr, "Fwd thread id": event.fwd_thread or 0}
        if event.input_shapes:
            args["Input Dims"] = event.input_shapes
        if event.is_synthetic:
            args[SYNTHETIC] = _levels(event)
        args["Ev Idx"] = index
        shown = {
            "ph": "X",
            "cat": "user_annotation"
            if event.is_user_annotation
            else "python_function"
            if event.is_python_function
            else "cpu_op",
            "name": str(event.name),
            "pid": 0,
            "tid": event.thread,
            "ts": round(span.start, 3),
            "dur": round(max(span.end - span.start, 0), 3),
            "args": args,
        }
        lines.append(encode(shown))
    with open_for_export(path) as out:
        text = (
            '{"schemaVersion": 1, "deviceProperties": [], "displayTimeUnit": "ms", "baseTimeNanoseconds": 0, "traceEvents": [\n'
            + ",\n".join(lines)
            + "\n]}\n"
        )
        out.write(text.encode())


def _levels(event: FunctionEvent | None) -> int:
    """How many levels below its recorded event a synthetic one stands."""
    levels = 0
    while event is not None and event.is_synthetic:
        levels, event = levels + 1, event.cpu_parent
    return levels
