"""Folders of traces: a folder in, the traces in it out, in the order of their names."""

from __future__ import annotations

import gzip
import os
import re
import zlib

_SUFFIXES = (".json", ".json.gz", ".sqlite", ".sqlite.gz")
_ASCEND_OUTPUT = "ASCEND_PROFILER_OUTPUT"
_HEAD = 1 << 20  # bytes that are looked at: some files have long metadata before their events
_EVENTS = re.compile(rb'"traceEvents"\s*:|^\s*\[\s*(?:\]|\{[^{}]*"ph"\s*:)')


def traces_in(folder: str) -> list[str]:
    """The paths of the traces in a folder; if it has none itself, of those in the folders below it. A folder that torch_npu's profiler
    wrote is one trace."""
    if _is_ascend(folder):
        return [folder]
    for here, below, names in os.walk(folder):
        below.sort(key=_in_order)
        below[:] = [name for name in below if not name.startswith(".")]
        ascend = [os.path.join(here, name) for name in below if _is_ascend(os.path.join(here, name))]
        files = [
            os.path.join(here, name) for name in sorted(names, key=_in_order) if not name.startswith(".")
        ]
        traces = [
            *ascend,
            *(path for path in files if path.endswith(_SUFFIXES) and _looks_like_a_trace(path)),
        ]
        if traces:
            return traces
    return []


def _is_ascend(folder: str) -> bool:
    return os.path.basename(os.path.normpath(folder)) == _ASCEND_OUTPUT or os.path.isdir(
        os.path.join(folder, _ASCEND_OUTPUT)
    )


def _looks_like_a_trace(path: str) -> bool:
    """Whether a file has events, by its beginning."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    if head[:2] == b"\x1f\x8b":
        try:
            head = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, _HEAD)
        except (zlib.error, gzip.BadGzipFile):
            return False
    return head.startswith(b"SQLite format 3") or bool(_EVENTS.search(head))


def _in_order(name: str) -> list[tuple[int, str]]:
    """A key that sorts rank2 before rank10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
