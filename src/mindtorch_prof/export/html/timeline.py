"""The timeline: Results in; tracks of spans, sorted by lane and start, and arrows between spans out.

A track holds the modules, the events or the Python functions of a thread, or a stream of a device. Spans of a lane do not overlap, so the
page finds the span at a time by bisection. Of more than MOST_SPANS spans only the longest are written; callers are longer than what they
call, so they are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypedDict

import numpy as np

from ...arrays import BoolArray, IntArray
from ...call_paths import innermost_frames
from ...communication import on_device
from ...frames import MODULE_PREFIX
from ...trace import DEVICE_ANNOTATION, DEVICE_COPY, DEVICE_KERNEL, DEVICE_SET, Trace
from ...tree import depths_below
from .calls import (
    COMMUNICATION,
    COPY,
    FRAME,
    KERNEL,
    MODULE,
    USER,
    event_categories,
    forward_of,
    kept_parents,
)
from .critical import path_on_timeline
from .inputs import input_texts
from .overview import window
from .pack import Block

if TYPE_CHECKING:
    from ...torch_api.results import Results

MOST_SPANS = 1_000_000
MOST_ARROWS = 200_000
MOST_LANES = 256  # per track; deeper spans are drawn in the last lane
MOST_ROUNDS = 40  # of moving overlapping spans to the next lane


_FRAMES = (
    500  # of a stack, the innermost ones: whole stacks of deep recursion would be the square of its depth
)


class Track(TypedDict):
    """A row of the page: a thread's spans of one kind, or a device's stream."""

    label: str
    kind: str  # modules, events, python, stream
    thread: int  # place of the thread among the threads; -1: none
    order: list[int]  # what the tracks of the page are sorted by


class _Thread(NamedTuple):
    place: int
    label: str


@dataclass(frozen=True)
class Layer:
    """Spans of one kind, from one of the tables of the trace."""

    names: list[str]
    name: IntArray
    start_ns: IntArray
    end_ns: IntArray
    track: IntArray
    lane: IntArray
    category: IntArray
    row: IntArray


def timeline_block(results: Results, most_spans: int | None = None) -> Block:
    """All spans of a recording."""
    trace = results.trace
    most_spans = MOST_SPANS if most_spans is None else most_spans
    tracks: list[Track] = []
    threads = _threads(trace)
    layers = [
        *_frame_layers(trace, threads, tracks),
        _event_layer(results, threads, tracks),
        _device_layer(trace, tracks),
    ]
    names: list[str] = []
    parts = []
    for number, layer in enumerate(layers):
        parts.append(
            (
                layer.name.astype(np.int64) + len(names),
                layer.start_ns,
                layer.end_ns,
                layer.track,
                layer.lane,
                layer.category.astype(np.int64),
                layer.row,
                np.full(len(layer.name), number),
            )
        )
        names += layer.names
    name, start, end, track, lane, category, row, source = (
        np.concatenate(columns) for columns in zip(*parts)
    )
    count, least = len(start), 0
    if count > most_spans:
        least = int(np.partition(end - start, count - most_spans)[count - most_spans])
        keep = np.flatnonzero(end - start > least)
        # of spans of the same length as the first one left out, the earlier rows: callers come before what they call
        equal = np.flatnonzero(end - start == least)[: most_spans - len(keep)]
        keep = np.sort(np.concatenate([keep, equal]))
        name, start, end, track, lane, category, row, source = (
            column[keep] for column in (name, start, end, track, lane, category, row, source)
        )
    places = _track_places(tracks)
    track = places[track] if len(places) else track
    order = np.lexsort((start, lane, track))
    name, start, end, track, lane, category, row, source = (
        column[order] for column in (name, start, end, track, lane, category, row, source)
    )
    begin, until = window(trace)

    block = Block()
    bounds = _bounds(track, lane)
    block.add("lane.track", track[bounds[:-1]])
    block.add("lane.depth", lane[bounds[:-1]])
    block.add("lane.first", bounds)
    # one sequence of differences for all lanes: the jump back between two lanes is one negative number
    block.add("start_ns", start - begin, rising=True)
    block.add("duration_ns", end - start)
    used = np.flatnonzero(np.bincount(name, minlength=len(names)))
    place_of = np.zeros(len(names), np.int64)
    place_of[used] = np.arange(len(used))
    block.add("name", place_of[name])
    by_name = np.zeros(len(names), np.int64)
    by_name[name] = category
    block.add("name.category", by_name[used])
    events = source == len(layers) - 2
    values: dict[str, object] = {
        "names": [names[i] for i in used.tolist()],
        "tracks": [tracks[i] for i in np.argsort(places).tolist()],
        "spans": len(start),
        "of": count,
        "least_ns": least,
        "begin_ns": begin,
        "end_ns": until,
    }
    if trace.n_synthetic:
        synthetic = np.zeros(len(row), np.int64)
        synthetic[events] = ~trace.is_recorded[row[events]]
        block.add("synthetic", synthetic)
    on_device = source == len(layers) - 1
    _add_details(block, values, results, events, row)
    _add_device_details(block, values, trace, on_device, row)
    path = path_on_timeline(results)
    if path is not None:
        on_path = np.zeros(len(row), np.int64)
        on_path[events] = path.event_ns[row[events]]
        on_path[on_device] = path.device_ns[row[on_device]]
        block.add("critical_ns", on_path)
        values["critical"] = {**path.values, "from_ns": int(str(path.values["from_ns"])) - begin}
    arrows_along_path = path.arrows if path is not None else []
    _add_arrows(block, trace, results.nesting.parent, events, on_device, row, arrows_along_path)
    block.values = values
    return block


# ---------------------------------------------------------------------------------------------------- tracks


def _threads(trace: Trace) -> dict[int, _Thread]:
    """The threads by identity, the main thread first."""
    known = trace.settings.threads
    main = trace.settings.thread
    identities = np.unique(np.concatenate([trace.thread, trace.frames.thread])).tolist()
    identities.sort(key=lambda thread: (thread != main, thread))
    threads = {}
    for place, thread in enumerate(identities):
        native, name = known.get(thread, (thread, ""))
        text = str(name or "").strip() or "thread"
        label = text if str(native) in text else f"{text} {native}"
        threads[thread] = _Thread(place, label)
    return threads


def _frame_layers(trace: Trace, threads: dict[int, _Thread], tracks: list[Track]) -> list[Layer]:
    frames = trace.frames
    layers = []
    for python in (False, True):
        keep = (frames.module < 0) == python
        rows = np.flatnonzero(keep)
        parent = kept_parents(frames.parent, keep)
        lane = depths_below(np.where(keep, parent, -1))[rows]
        track = _tracks_of(
            frames.thread[rows], threads, tracks, "python" if python else "modules", 2 if python else 0
        )
        start, end = frames.start_ns[rows], frames.end_ns[rows]
        names = [n if python else n.removeprefix(MODULE_PREFIX) for n in frames.names]
        category = np.full(len(rows), FRAME if python else MODULE)
        lane = apart(track, lane, start, end)
        layers.append(Layer(names, frames.name[rows], start, end, track, lane, category, rows))
    return layers


def _event_layer(results: Results, threads: dict[int, _Thread], tracks: list[Track]) -> Layer:
    trace = results.trace
    rows = np.flatnonzero(results.shown)
    place = np.full(len(trace) + 1, -1, np.int64)
    place[rows] = np.arange(len(rows))
    lane = depths_below(place[results.shown_parent[rows]])
    track = _tracks_of(trace.thread[rows], threads, tracks, "events", 1)
    start, end = trace.start_ns[rows], trace.end_ns[rows]
    lane = apart(track, lane, start, end)
    return Layer(
        list(trace.names), trace.name[rows], start, end, track, lane, event_categories(trace)[rows], rows
    )


def _device_layer(trace: Trace, tracks: list[Track]) -> Layer:
    device = trace.device
    is_annotation = device.kind == DEVICE_ANNOTATION
    key = np.stack([device.device, device.stream, is_annotation.astype(np.int64)])
    _, first, number = np.unique(key, axis=1, return_index=True, return_inverse=True)
    number = number.reshape(-1)
    kind = str(trace.settings.device or "device").upper()
    kind = "GPU" if kind in {"CUDA", "HIP"} else kind
    track = np.full(len(device), -1, np.int64)
    for i, row in enumerate(first.tolist()):
        index, stream = int(device.device[row]), int(device.stream[row])
        track[number == i] = len(tracks)
        tracks.append(
            {
                "label": f"{kind} {index} stream {stream}" + (" annotations" if is_annotation[row] else ""),
                "kind": "stream",
                "thread": -1,
                "order": [1, index, stream, int(not is_annotation[row])],
            }
        )
    is_kernel = device.kind == DEVICE_KERNEL
    communicates = is_kernel & np.append(on_device(device.names), False)[device.name]
    category = np.select(
        [communicates, is_kernel, np.isin(device.kind, (DEVICE_COPY, DEVICE_SET)), is_annotation],
        [COMMUNICATION, KERNEL, COPY, USER],
        COPY,
    )
    lane = apart(track, np.zeros(len(device), np.int64), device.start_ns, device.end_ns)
    rows = np.arange(len(device))
    return Layer(list(device.names), device.name, device.start_ns, device.end_ns, track, lane, category, rows)


def _tracks_of(
    thread: IntArray, threads: dict[int, _Thread], tracks: list[Track], kind: str, place: int
) -> IntArray:
    """For each span the number of its track; new tracks are added to `tracks`."""
    track = np.full(len(thread), -1, np.int64)
    for identity, known in threads.items():
        spans = thread == identity
        if spans.any():
            track[spans] = len(tracks)
            tracks.append(
                {
                    "label": known.label,
                    "kind": kind,
                    "thread": known.place,
                    "order": [0, known.place, place, 0],
                }
            )
    return track


def _track_places(tracks: list[Track]) -> IntArray:
    """The index of each track on the page."""
    order = sorted(range(len(tracks)), key=lambda i: tracks[i]["order"])
    places = np.empty(len(tracks), np.int64)
    places[order] = np.arange(len(tracks))
    return places


def apart(track: IntArray, lane: IntArray, start: IntArray, end: IntArray) -> IntArray:
    """Lanes in which no spans overlap: in each round, spans that start before the end of an earlier one in their lane move to the next.

    A round looks only at the tracks in which spans overlapped in the one before. Of more than MOST_ROUNDS spans at one time, some overlap.
    """
    lane = np.minimum(lane, MOST_LANES - 1)
    rows = np.arange(len(lane))
    for _ in range(MOST_ROUNDS):
        rows = rows[np.lexsort((-end[rows], start[rows], lane[rows], track[rows]))]
        key = track[rows] * MOST_LANES + lane[rows]
        latest_end = _running_end(key, end[rows])
        late = np.zeros(len(rows), bool)
        late[1:] = (key[1:] == key[:-1]) & (start[rows][1:] < latest_end[:-1])
        late &= lane[rows] < MOST_LANES - 1
        if not late.any():
            break
        lane[rows[late]] += 1
        rows = rows[np.isin(track[rows], np.unique(track[rows[late]]))]
    return lane


def _running_end(key: IntArray, end: IntArray) -> IntArray:
    """For each span the latest end so far in its run of equal keys."""
    if not len(end):
        return end
    low = int(end.min())
    span = int(end.max()) - low + 1
    run = np.cumsum(np.concatenate([[0], np.diff(key) != 0]))
    latest: IntArray = np.maximum.accumulate(end - low + run * span) - run * span + low
    return latest


def _bounds(track: IntArray, lane: IntArray) -> IntArray:
    """The index of the first span of each lane, and the number of spans."""
    if not len(track):
        return np.zeros(1, np.int64)
    cuts = np.flatnonzero((np.diff(track) != 0) | (np.diff(lane) != 0)) + 1
    return np.concatenate([[0], cuts, [len(track)]])


# ---------------------------------------------------------------------------------------------------- details


def _add_details(
    block: Block, values: dict[str, object], results: Results, events: BoolArray, row: IntArray
) -> None:
    """Add what is known of each event: self time, memory, flops, inputs, stack, sequence number."""
    trace = results.trace

    def column(name: str, of_events: IntArray, nothing: int = 0) -> None:
        values_of_spans = np.full(len(row), nothing, np.int64)
        values_of_spans[events] = of_events[row[events]]
        if (values_of_spans != nothing).any():
            block.add(name, values_of_spans)

    column("self_ns", results.shown_self_ns)
    column("memory", results.tree.memory)
    column("flops", trace.flops)
    if results.trace.settings.shapes_recorded:
        column("inputs", trace.inputs + 1)
        values["inputs"] = input_texts(trace)
    if len(trace.stacks):
        used, number = np.unique(trace.stack, return_inverse=True)  # not of calls without an event
        column("stack", number.reshape(-1) + int(len(used) > 0 and used[0] >= 0))
        frames: dict[str, int] = {}
        flat: list[int] = []
        first = [0]
        for stack in used[used >= 0].tolist():
            shown = innermost_frames(trace.stacks, stack, _FRAMES + 1)
            if len(shown) > _FRAMES:
                shown = (*shown[:_FRAMES], "... and the calls around it")
            flat += [frames.setdefault(frame, len(frames)) for frame in shown]
            first.append(len(flat))
        block.add("stack.frame", np.array(flat, np.int64))
        block.add("stack.first", np.array(first, np.int64), rising=True)
        values["frames"] = list(frames)
    column("sequence", trace.sequence + 1)
    if trace.extra is not None and len(trace.extra_table):
        column("extra", trace.extra + 1)
        values["extra"] = [{str(k): str(v) for k, v in extra.items()} for extra in trace.extra_table]


def _add_device_details(
    block: Block, values: dict[str, object], trace: Trace, on_device: BoolArray, row: IntArray
) -> None:
    device = trace.device
    if not on_device.any() or not device.extra_table:
        return
    extra_of_spans = np.zeros(len(row), np.int64)
    extra_of_spans[on_device] = device.extra[row[on_device]] + 1
    block.add("device_extra", extra_of_spans)
    values["device_extra"] = [{str(k): str(v) for k, v in extra.items()} for extra in device.extra_table]


def _add_arrows(
    block: Block,
    trace: Trace,
    parent: IntArray,
    events: BoolArray,
    on_device: BoolArray,
    row: IntArray,
    along_path: list[tuple[bool, int, bool, int, int]],
) -> None:
    """Add the arrows from forward ops to backward nodes, from launches to kernels, and along the critical path, as pairs of spans."""
    span = np.full(len(trace) + 1, -1, np.int64)
    span[row[events]] = np.flatnonzero(events)
    device = trace.device
    device_span = np.full(len(device) + 1, -1, np.int64)
    device_span[row[on_device]] = np.flatnonzero(on_device)
    path = np.array(along_path, np.int64).reshape(-1, 5)
    from_path, to_path = (
        np.where(
            path[:, i] == 1,
            device_span[np.minimum(path[:, i + 1], len(device))],
            span[path[:, i + 1] * (path[:, i] == 0)],
        )
        for i in (0, 2)
    )
    backward, forward = forward_of(trace, parent)
    pairs: list[tuple[IntArray, IntArray, IntArray]] = [
        (span[forward], span[backward], np.zeros(len(forward), np.int64))
    ]
    if len(device):
        launch = np.where(device.launch >= 0, device.launch, device.op)
        pairs.append((span[launch], device_span[:-1], np.ones(len(device), np.int64)))
    begin, to, kind = (
        np.concatenate([np.concatenate(columns)[: max(MOST_ARROWS - len(path), 0)], last])
        for columns, last in zip(
            zip(*[(a[ok], b[ok], k[ok]) for a, b, k in pairs for ok in [(a >= 0) & (b >= 0)]]),
            (column[(from_path >= 0) & (to_path >= 0)] for column in (from_path, to_path, path[:, 4])),
        )
    )
    order = np.argsort(begin, kind="stable")
    block.add("arrow.from", begin[order], rising=True)
    block.add("arrow.to", to[order])
    block.add("arrow.kind", kind[order])
