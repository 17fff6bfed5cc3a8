"""The critical path on the timeline: Results in; the time on the path of each event and kernel, and arrows along it, out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...analysis.critical_path import CriticalPath, critical_path
from ...analysis.dependencies import GAP, LAUNCH, SYNC
from ...arrays import IntArray
from ...tree import nearest, sum_by

if TYPE_CHECKING:
    from ...torch_api.results import Results

WAITING = (LAUNCH, SYNC, GAP)
# kinds of arrows along the path, by where they begin and end: at starts or ends of events
START_TO_START, END_TO_END, END_TO_START = 2, 3, 4


@dataclass(frozen=True)
class PathOnTimeline:
    """The path of the typical step. Rows are those of the Results, with its synthetic events."""

    event_ns: IntArray  # by row of the Trace: own time on the path; of an event that lists do not show, that of the one around it
    device_ns: IntArray  # by row of Device
    arrows: list[tuple[bool, int, bool, int, int]]  # (from a device, row, to a device, row, kind)
    values: dict[str, object]  # what the page says of it


def path_on_timeline(results: Results) -> PathOnTimeline | None:
    """The critical path of a recording; None: nothing took time."""
    path = critical_path(results, what_if=0)
    if not path.length_us:
        return None
    graph, trace = path.graph, results.trace
    # the path is of a recording without synthetic events
    row_of = np.append(np.flatnonzero(trace.is_recorded), -1)
    shown = nearest(results.nesting.parent, results.shown) if len(trace) else np.empty(0, np.int64)
    span_of = np.append(shown, -1)[row_of]
    edges = path.edges
    on_host = edges[graph.device_row[edges] < 0]
    rows = span_of[graph.row[on_host]]
    event_ns = sum_by(rows[rows >= 0], graph.weight[on_host][rows >= 0], len(trace))
    work = edges[np.isin(graph.device_row[edges], path.device_rows) & ~np.isin(graph.kind[edges], WAITING)]
    device_ns = sum_by(graph.device_row[work], graph.weight[work], len(trace.device))
    return PathOnTimeline(event_ns, device_ns, _arrows(path, span_of), _values(path))


def _arrows(path: CriticalPath, span_of: IntArray) -> list[tuple[bool, int, bool, int, int]]:
    """Where the path goes from a thread or a stream to another."""
    graph = path.graph
    arrows = []
    for _, a, b in path.crossings:
        ends = []
        for node in (a, b):
            on_device = int(graph.node_device_row[node]) >= 0
            row = int(graph.node_device_row[node]) if on_device else int(span_of[graph.node_row[node]])
            ends.append((on_device, row if on_device or graph.node_row[node] >= 0 else -1))
        if ends[0][1] < 0 or ends[1][1] < 0:
            continue
        kind = END_TO_END if graph.is_end[b] else END_TO_START if graph.is_end[a] else START_TO_START
        arrows.append((*ends[0], *ends[1], kind))
    return arrows


def _values(path: CriticalPath) -> dict[str, object]:
    window = path.graph.window
    return {
        "window": path.window,
        "from_ns": window.start_ns,
        "length_ns": round(path.length_us * 1000),
        "kinds": {kind: round(us * 1000) for kind, us in path.by_kind.items() if us},
        "earlier_ns": round(path.earlier_us * 1000),
        "ops": [[op.name, round(op.path_us * 1000), op.count] for op in path.ops[:10]],
        "notes": list(path.notes),
    }
