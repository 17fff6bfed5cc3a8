"""Overlay of a critical path: a trace file (or a recording) and its critical path in; the same trace with the path marked out.

Every event of the file stays. Those on the path get `"critical": 1` and their microseconds on it in their arguments, and arrows
(`critical_path`) lead along it wherever it goes from one thread or stream to another. No slice is added: a derived row must not look like work.
"""

from __future__ import annotations

import os
import tempfile
from typing import TypeAlias

import numpy as np

from ..analysis.critical_path import CriticalPath
from ..analysis.dependencies import KINDS
from ..analysis.recording import Recording, as_results
from ..files import open_for_export
from ..json_types import JSONScalar
from ..load import load
from ..load.byte_source import Limits, Source
from ..load.categories import DEVICE, category
from ..load.formats import is_other_format
from ..load.json_slices import RawEvent
from ..trace import Trace
from .raw_events import Head, Writer, batches, microseconds, nanoseconds, valid_top

CATEGORY = "critical_path"
_Event: TypeAlias = (
    "tuple[bool, int]"  # whether it is the device's, and its row in the Trace or in its Device
)
_Place: TypeAlias = "tuple[JSONScalar, JSONScalar]"  # pid, tid
_TOLERANCE_NS = 1000  # by which the reader may have moved the end of an event


def write_overlay(
    source: str | os.PathLike[str] | None,
    recording: Recording,
    path: CriticalPath,
    out: str | os.PathLike[str],
) -> int:
    """Write the trace with its critical path, and say how many events were marked. source: the file that the recording was read from; None,
    or a file of another format: the recording itself is written."""
    text = "" if source is None else os.fspath(source)
    if not text or not _is_kineto(text):
        from ..export.chrome import export_chrome_trace

        with tempfile.TemporaryDirectory() as folder:
            whole = os.path.join(folder, "whole.json")
            trace = as_results(recording).trace
            export_chrome_trace(trace, whole)
            return _write(whole, path, out, _first(load(whole).trace) - _first(trace))
    return _write(text, path, out, 0)


def _is_kineto(path: str) -> bool:
    """Whether a path is a file in Kineto's format."""
    if os.path.isdir(path):
        return False
    with Source(path, Limits()) as source:
        return not is_other_format(source.head())


def _first(trace: Trace) -> int:
    """When the first event of a trace starts."""
    return int(trace.start_ns.min()) if len(trace) else int(trace.device.start_ns.min(initial=0))


def _write(source: str, path: CriticalPath, out: str | os.PathLike[str], shift_ns: int) -> int:
    """Write the overlay. shift_ns: how much later times are in the file than in the trace."""
    overlay = _Overlay(path, shift_ns)
    head = Head()
    with open_for_export(out) as file:
        writer: Writer | None = None
        for events in batches(source, head):
            if writer is None:
                writer = Writer(file, valid_top(head.top))
            overlay.mark(events)
            writer.write(events)
        if writer is None:
            writer = Writer(file, valid_top(head.top))
        writer.write(overlay.arrows())
        writer.close()
    return len(overlay.places)


class _Overlay:
    """Finds the events of a path among raw events, and makes what is added."""

    def __init__(self, path: CriticalPath, shift_ns: int) -> None:
        self._path, self._shift = path, shift_ns
        trace = path.results.trace
        self.places: dict[_Event, _Place] = {}  # pid and tid of the events that were found
        self._flows: set[int] = set()
        on_path = self._time_on_path()
        ends = self._events_at_ends()
        # an event is known by its side, its name and its start
        self._wanted: dict[tuple[bool, str, int], list[tuple[int, _Event, float]]] = {}
        for event in sorted({*on_path, *ends}):
            is_device, row = event
            table = trace.device if is_device else trace
            key = is_device, table.names[table.name[row]], int(table.start_ns[row]) + shift_ns
            end = int(table.end_ns[row]) + shift_ns
            self._wanted.setdefault(key, []).append((end, event, on_path.get(event, 0.0)))
        self._starts = {key[2] for key in self._wanted}

    def _time_on_path(self) -> dict[_Event, float]:
        """Microseconds on the path by event: of host events their own time, of a device's work its run."""
        graph, edges = self._path.graph, self._path.edges
        works = np.isin(
            graph.kind[edges], [KINDS.index(kind) for kind in ("kernel", "copy", "communication")]
        )
        on_device = graph.device_row[edges] >= 0
        times: dict[_Event, float] = {}
        # the rest, on a device, is waiting: for the launch, for another kernel
        for is_device, which in ((True, edges[on_device & works]), (False, edges[~on_device])):
            rows, weight = (graph.device_row if is_device else graph.row)[which], graph.weight[which]
            distinct, place = np.unique(rows[rows >= 0], return_inverse=True)
            sums = np.bincount(place.reshape(-1), weights=weight[rows >= 0], minlength=len(distinct)) / 1000
            times.update(((is_device, row), us) for row, us in zip(distinct.tolist(), sums.tolist()))
        return times

    def _event_of(self, node: int) -> _Event | None:
        graph = self._path.graph
        work, row = int(graph.node_device_row[node]), int(graph.node_row[node])
        return (True, work) if work >= 0 else (False, row) if row >= 0 else None

    def _events_at_ends(self) -> set[_Event]:
        """The events that arrows lead from or to."""
        nodes = {node for _, *ends in self._path.crossings for node in ends}
        return {event for node in nodes if (event := self._event_of(node)) is not None}

    def mark(self, events: list[RawEvent]) -> None:
        """Marks the events of a batch that are on the path."""
        starts = nanoseconds([event.get("ts") for event in events]).tolist()
        for event, start in zip(events, starts):
            if event.get("ph") in ("s", "f", "t"):
                if isinstance(number := event.get("id"), int):
                    self._flows.add(number)
            elif start in self._starts and event.get("ph") in ("X", "B"):
                self._mark_one(event, start)

    def _mark_one(self, event: RawEvent, start: int) -> None:
        meaning = category(event.get("cat"))
        is_device = meaning is not None and meaning[0] == DEVICE
        name = event.get("name")
        known = self._wanted.get((is_device, name if isinstance(name, str) else "", start))
        if known is None and meaning is None:  # a format whose device rows have no category
            known = self._wanted.get((True, str(name), start)) or self._wanted.get((False, str(name), start))
        if not known:
            return
        duration = nanoseconds([event.get("dur")], -1)[0]
        for end, which, us in known:
            if which in self.places or (duration >= 0 and abs(start + int(duration) - end) > _TOLERANCE_NS):
                continue
            self.places[which] = event.get("pid"), event.get("tid")
            if us > 0:
                args = event.get("args")
                event["args"] = {**(args if isinstance(args, dict) else {}), "critical": 1, "critical_us": us}
            return

    def arrows(self) -> list[RawEvent]:
        """Arrows along the path, between events of the file."""
        graph, trace = self._path.graph, self._path.results.trace
        events: list[RawEvent] = []
        number = 1 + max(self._flows, default=0)
        for edge, *nodes in self._path.crossings:
            ends = [(self._event_of(node), node) for node in nodes]
            if any(event is None or event not in self.places for event, _ in ends):
                continue
            for phase, (event, node) in zip("sf", ends):
                assert event is not None
                is_device, row = event
                table = trace.device if is_device else trace
                start, end = int(table.start_ns[row]), int(table.end_ns[row])
                # an arrow belongs to the slice around its time: at an end that is just before it
                at = end - min(_TOLERANCE_NS, end - start) if graph.is_end[node] else start
                pid, tid = self.places[event]
                arrow: RawEvent = {
                    "ph": phase,
                    "id": number,
                    "cat": CATEGORY,
                    "name": CATEGORY,
                    "pid": pid,
                    "tid": tid,
                    "ts": microseconds(at + self._shift),
                    "args": {"kind": KINDS[int(graph.kind[edge])], "us": int(graph.weight[edge]) / 1000},
                }
                if phase == "f":
                    arrow["bp"] = "e"
                events.append(arrow)
            number += 1
        return events
