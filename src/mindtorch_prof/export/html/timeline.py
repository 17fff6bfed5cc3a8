"""The timeline: Results in; tracks of spans out, lane by lane in the order of time, with arrows between them.

A track is a thread's modules, its events or its Python functions, or a device's stream. Spans of one lane do not overlap, so the page
finds what is at a place by bisection. Beyond MOST_SPANS only the longest are sent: a caller is longer than what it calls and stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypedDict

import numpy as np

from ...frames import MODULE_PREFIX
from ...arrays import BoolArray, IntArray
from ...trace import DEVICE_ANNOTATION, DEVICE_COPY, DEVICE_KERNEL, DEVICE_SET, Trace
from ...tree import depths_below
from .calls import (
    COPY,
    FRAME,
    KERNEL,
    MODULE,
    USER,
    event_categories,
    forward_of,
    kept_parents,
)
from .inputs import input_texts
from .overview import window
from .pack import Block

if TYPE_CHECKING:
    from ...torch_api.results import Results

MOST_SPANS = 1_000_000
MOST_ARROWS = 200_000
MOST_LANES = 256  # a track; what would lie deeper is drawn in the last
MOST_ROUNDS = 40  # of moving what overlaps one lane down


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
    """Spans of one kind, from one of the trace's tables."""

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
        # of those that last just as long as the first left out, the first ones: a caller stands before what it calls
        equal = np.flatnonzero(end - start == least)[: most_spans - len(keep)]
        keep = np.sort(np.concatenate([keep, equal]))
        name, start, end, track, lane, category, row, source = (
            column[keep] for column in (name, start, end, track, lane, category, row, source)
        )
    places = _order(tracks)
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
    # differences begin anew with the first lane only: the jump back between lanes is one negative number
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
    _add_details(block, values, results, events, row)
    _add_device_details(block, values, trace, source == len(layers) - 1, row)
    _add_arrows(block, trace, results.tree.parent, events, source == len(layers) - 1, row)
    block.values = values
    return block


# ---------------------------------------------------------------------------------------------------- tracks


def _threads(trace: Trace) -> dict[int, _Thread]:
    """The threads by identity, the main one first, with what they are called."""
    known = trace.settings.threads
    main = trace.settings.thread
    found = np.unique(np.concatenate([trace.thread, trace.frames.thread])).tolist()
    found.sort(key=lambda thread: (thread != main, thread))
    made = {}
    for place, thread in enumerate(found):
        native, name = known.get(thread, (thread, ""))
        text = str(name or "").strip() or "thread"
        label = text if str(native) in text else f"{text} {native}"
        made[thread] = _Thread(place, label)
    return made


def _frame_layers(trace: Trace, threads: dict[int, _Thread], tracks: list[Track]) -> list[Layer]:
    frames = trace.frames
    made = []
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
        made.append(Layer(names, frames.name[rows], start, end, track, lane, category, rows))
    return made


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
    notes = device.kind == DEVICE_ANNOTATION
    key = np.stack([device.device, device.stream, notes.astype(np.int64)])
    _, first, number = np.unique(key, axis=1, return_index=True, return_inverse=True)
    number = number.reshape(-1)
    kind = str(trace.settings.device or "device").upper()
    kind = "GPU" if kind in {"CUDA", "HIP"} else kind
    track = np.full(len(device), -1, np.int64)
    for i, row in enumerate(first.tolist()):
        which, stream = int(device.device[row]), int(device.stream[row])
        track[number == i] = len(tracks)
        tracks.append(
            {
                "label": f"{kind} {which} stream {stream}" + (" annotations" if notes[row] else ""),
                "kind": "stream",
                "thread": -1,
                "order": [1, which, stream, int(not notes[row])],
            }
        )
    category = np.select(
        [device.kind == DEVICE_KERNEL, np.isin(device.kind, (DEVICE_COPY, DEVICE_SET)), notes],
        [KERNEL, COPY, USER],
        COPY,
    )
    lane = apart(track, np.zeros(len(device), np.int64), device.start_ns, device.end_ns)
    rows = np.arange(len(device))
    return Layer(list(device.names), device.name, device.start_ns, device.end_ns, track, lane, category, rows)


def _tracks_of(
    thread: IntArray, threads: dict[int, _Thread], tracks: list[Track], kind: str, place: int
) -> IntArray:
    """The number of each span's track; tracks that are met are added."""
    track = np.full(len(thread), -1, np.int64)
    for identity, about in threads.items():
        here = thread == identity
        if here.any():
            track[here] = len(tracks)
            tracks.append(
                {
                    "label": about.label,
                    "kind": kind,
                    "thread": about.place,
                    "order": [0, about.place, place, 0],
                }
            )
    return track


def _order(tracks: list[Track]) -> IntArray:
    """The place of each track on the page."""
    order = sorted(range(len(tracks)), key=lambda i: tracks[i]["order"])
    places = np.empty(len(tracks), np.int64)
    places[order] = np.arange(len(tracks))
    return places


def apart(track: IntArray, lane: IntArray, start: IntArray, end: IntArray) -> IntArray:
    """Lanes in which no spans overlap: what begins before an earlier one of its lane has ended moves down, round by round.

    Only tracks where spans overlap are looked at again. Where more than MOST_ROUNDS run at once, the last lane keeps the rest.
    """
    lane = np.minimum(lane, MOST_LANES - 1)
    rows = np.arange(len(lane))
    for _ in range(MOST_ROUNDS):
        rows = rows[np.lexsort((-end[rows], start[rows], lane[rows], track[rows]))]
        key = track[rows] * MOST_LANES + lane[rows]
        until = _running_end(key, end[rows])
        late = np.zeros(len(rows), bool)
        late[1:] = (key[1:] == key[:-1]) & (start[rows][1:] < until[:-1])
        late &= lane[rows] < MOST_LANES - 1
        if not late.any():
            break
        lane[rows[late]] += 1
        rows = rows[np.isin(track[rows], np.unique(track[rows[late]]))]
    return lane


def _running_end(key: IntArray, end: IntArray) -> IntArray:
    """The latest end so far in each run of equal keys."""
    if not len(end):
        return end
    low = int(end.min())
    span = int(end.max()) - low + 1
    run = np.cumsum(np.concatenate([[0], np.diff(key) != 0]))
    latest: IntArray = np.maximum.accumulate(end - low + run * span) - run * span + low
    return latest


def _bounds(track: IntArray, lane: IntArray) -> IntArray:
    """Where each lane's spans begin, and the end of the last."""
    if not len(track):
        return np.zeros(1, np.int64)
    cuts = np.flatnonzero((np.diff(track) != 0) | (np.diff(lane) != 0)) + 1
    return np.concatenate([[0], cuts, [len(track)]])


# ---------------------------------------------------------------------------------------------------- details


def _add_details(
    block: Block, values: dict[str, object], results: Results, events: BoolArray, row: IntArray
) -> None:
    """What is known of single events: self time, memory, flops, inputs, stack, sequence number."""
    trace = results.trace

    def column(name: str, of_events: IntArray, nothing: int = 0) -> None:
        made = np.full(len(row), nothing, np.int64)
        made[events] = of_events[row[events]]
        if (made != nothing).any():
            block.add(name, made)

    column("self_ns", results.shown_self_ns)
    column("memory", results.tree.memory)
    column("flops", trace.flops)
    if results.trace.settings.shapes_recorded:
        column("inputs", trace.inputs + 1)
        values["inputs"] = input_texts(trace)
    if len(trace.stacks):
        column("stack", trace.stack + 1)
        frames: dict[str, int] = {}
        flat = [frames.setdefault(frame, len(frames)) for stack in trace.stacks for frame in stack]
        block.add("stack.frame", np.array(flat, np.int64))
        block.add("stack.first", np.cumsum([0, *map(len, trace.stacks)]), rising=True)
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
    made = np.zeros(len(row), np.int64)
    made[on_device] = device.extra[row[on_device]] + 1
    block.add("device_extra", made)
    values["device_extra"] = [{str(k): str(v) for k, v in extra.items()} for extra in device.extra_table]


def _add_arrows(
    block: Block,
    trace: Trace,
    parent: IntArray,
    events: BoolArray,
    on_device: BoolArray,
    row: IntArray,
) -> None:
    """From forward op to backward node, and from launch to kernel: pairs of spans."""
    span = np.full(len(trace) + 1, -1, np.int64)
    span[row[events]] = np.flatnonzero(events)
    backward, forward = forward_of(trace, parent)
    pairs = [(span[forward], span[backward], 0)]
    device = trace.device
    if len(device):
        device_span = np.full(len(device), -1, np.int64)
        device_span[row[on_device]] = np.flatnonzero(on_device)
        launch = np.where(device.launch >= 0, device.launch, device.op)
        pairs.append((span[launch], device_span, 1))
    begin, to, kind = (
        np.concatenate(columns)
        for columns in zip(
            *[(a[ok], b[ok], np.full(int(ok.sum()), k)) for a, b, k in pairs for ok in [(a >= 0) & (b >= 0)]]
        )
    )
    if len(begin) > MOST_ARROWS:
        begin, to, kind = begin[:MOST_ARROWS], to[:MOST_ARROWS], kind[:MOST_ARROWS]
    order = np.argsort(begin, kind="stable")
    block.add("arrow.from", begin[order], rising=True)
    block.add("arrow.to", to[order])
    block.add("arrow.kind", kind[order])
