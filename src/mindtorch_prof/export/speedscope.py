"""speedscope: a recording in, a file for https://www.speedscope.app out, with one profile per thread and per stream of a device."""

from __future__ import annotations

import os

import numpy as np
import orjson

from ..analysis.recording import Recording, recorded_results
from ..arrays import IntArray
from ..files import open_for_export
from ..trace import Trace
from ..tree import parents, thread_slices, total_up
from ..version import __version__

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def export_speedscope(source: Recording, path: str | os.PathLike[str], *, name: str = "") -> None:
    """Write the events, with all Python calls around them, as speedscope's evented profiles. Synthetic events, which have no time, are
    left out."""
    from ..analysis.call_tree import with_python
    from ..analysis.groups import thread_text

    results = with_python(recorded_results(source), "all")
    trace = results.trace
    origin = int(
        min([part.min() for part in (trace.start_ns, trace.device.start_ns) if len(part)], default=0)
    )
    profiles = []
    for first, last in thread_slices(trace.thread):
        profiles.append(
            _profile(
                thread_text(results, int(trace.thread[first])),
                trace.name[first:last].astype(np.int64),
                trace.start_ns[first:last] - origin,
                trace.end_ns[first:last] - origin,
                results.nesting.depth[first:last],
            )
        )
    profiles += _stream_profiles(trace, origin)
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


def _stream_profiles(trace: Trace, origin: int) -> list[dict[str, object]]:
    device = trace.device
    rows = np.flatnonzero(device.works)
    if not len(rows):
        return []
    kind = trace.settings.device or "device"
    pairs, of_row = np.unique(
        np.stack((device.device[rows], device.stream[rows])), axis=1, return_inverse=True
    )
    profiles = []
    for number, (index, stream) in enumerate(pairs.T.tolist()):
        in_stream = rows[of_row.reshape(-1) == number]
        in_stream = in_stream[np.argsort(device.start_ns[in_stream], kind="stable")]
        profiles.append(
            _profile(
                f"{kind}:{index} stream {stream}",
                device.name[in_stream].astype(np.int64) + len(trace.names),
                device.start_ns[in_stream] - origin,
                device.end_ns[in_stream] - origin,
                np.zeros(len(in_stream), np.int64),
            )
        )
    return profiles


def _profile(
    name: str, frame: IntArray, start: IntArray, end: IntArray, depth: IntArray
) -> dict[str, object]:
    """One profile: "open" and "close" entries that nest.

    Events are in preorder, with their depths. The open entry of event i comes after i other open entries and after the close entries of
    those of them that do not contain event i, so its index is 2 i - depth. Events that overlap are clipped to the time of the next entry.
    """
    count = len(start)
    place = np.arange(count)
    opening = 2 * place - depth
    closing = opening + 2 * _subtree_sizes(depth) - 1
    time = np.empty(2 * count, np.int64)
    frame_of_entry = np.empty(2 * count, np.int64)
    opens = np.zeros(2 * count, bool)
    time[opening], time[closing] = start, end
    frame_of_entry[opening] = frame_of_entry[closing] = frame
    opens[opening] = True
    time = np.minimum.accumulate(time[::-1])[::-1]
    events = [
        {"type": "O" if is_open else "C", "frame": number, "at": at}
        for is_open, number, at in zip(opens.tolist(), frame_of_entry.tolist(), time.tolist())
    ]
    first, last = (int(time[0]), int(time[-1])) if count else (0, 0)
    return {
        "type": "evented",
        "name": name,
        "unit": "nanoseconds",
        "startValue": first,
        "endValue": last,
        "events": events,
    }


def _subtree_sizes(depth: IntArray) -> IntArray:
    """The number of events in each event's subtree, itself included."""
    return total_up(np.ones(len(depth), np.int64), parents(depth), depth)
