"""speedscope: a recording in, a file for https://www.speedscope.app out: one profile a thread and one a device's stream."""

from __future__ import annotations

import os

import numpy as np
import orjson

from ..analysis.recording import Recording, as_results
from ..arrays import IntArray
from ..trace import Trace
from ..tree import parents, thread_slices, total_up
from ..version import __version__
from .files import open_for_export

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def export_speedscope(source: Recording, path: str | os.PathLike[str], *, name: str = "") -> None:
    """Write the events, with all Python calls around them, as speedscope's evented profiles."""
    from ..analysis.call_tree import with_python
    from ..analysis.groups import thread_text

    results = with_python(as_results(source), "all")
    trace = results.trace
    begun = int(min([part.min() for part in (trace.start_ns, trace.device.start_ns) if len(part)], default=0))
    profiles = []
    for first, last in thread_slices(trace.thread):
        profiles.append(
            _profile(
                thread_text(results, int(trace.thread[first])),
                trace.name[first:last].astype(np.int64),
                trace.start_ns[first:last] - begun,
                trace.end_ns[first:last] - begun,
                results.tree.depth[first:last],
            )
        )
    profiles += _streams(trace, begun)
    frames = [{"name": text} for text in (*trace.names, *trace.device.names)]
    document = {
        "$schema": _SCHEMA,
        "exporter": f"mindtorch_v2@{__version__}",
        "name": name or os.path.basename(os.fspath(path)),
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
        "profiles": profiles,
    }
    with open_for_export(path) as out:
        out.write(_encoded(document))


def _encoded(document: dict[str, object]) -> bytes:
    try:
        return orjson.dumps(document)
    except TypeError:  # a lone surrogate in a name
        import json

        return json.dumps(document).encode()


def _streams(trace: Trace, begun: int) -> list[dict[str, object]]:
    device = trace.device
    rows = np.flatnonzero(device.works)
    if not len(rows):
        return []
    kind = trace.settings.device or "device"
    pairs, of_row = np.unique(
        np.stack((device.device[rows], device.stream[rows])), axis=1, return_inverse=True
    )
    made = []
    for number, (index, stream) in enumerate(pairs.T.tolist()):
        mine = rows[of_row.reshape(-1) == number]
        mine = mine[np.argsort(device.start_ns[mine], kind="stable")]
        made.append(
            _profile(
                f"{kind}:{index} stream {stream}",
                device.name[mine].astype(np.int64) + len(trace.names),
                device.start_ns[mine] - begun,
                device.end_ns[mine] - begun,
                np.zeros(len(mine), np.int64),
            )
        )
    return made


def _profile(
    name: str, frame: IntArray, start: IntArray, end: IntArray, depth: IntArray
) -> dict[str, object]:
    """Openings and closings in an order in which each closes the last that is open.

    Events come in preorder with their depths, so of event i the opening is preceded by i openings and by the closings of all of
    them that are not around it: place 2 i - depth. What sticks out of its parent or overlaps is clipped to what follows.
    """
    count = len(start)
    place = np.arange(count)
    opening = 2 * place - depth
    closing = opening + 2 * _subtree_sizes(depth) - 1
    at = np.empty(2 * count, np.int64)
    which = np.empty(2 * count, np.int64)
    opens = np.zeros(2 * count, bool)
    at[opening], at[closing] = start, end
    which[opening] = which[closing] = frame
    opens[opening] = True
    at = np.minimum.accumulate(at[::-1])[::-1]
    events = [
        {"type": "O" if is_open else "C", "frame": number, "at": time}
        for is_open, number, time in zip(opens.tolist(), which.tolist(), at.tolist())
    ]
    first, last = (int(at[0]), int(at[-1])) if count else (0, 0)
    return {
        "type": "evented",
        "name": name,
        "unit": "nanoseconds",
        "startValue": first,
        "endValue": last,
        "events": events,
    }


def _subtree_sizes(depth: IntArray) -> IntArray:
    """How many events a subtree has, its root included."""
    return total_up(np.ones(len(depth), np.int64), parents(depth), depth)
