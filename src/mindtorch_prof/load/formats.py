"""Formats of traces: a path in; the trace file that it stands for, and which reader reads it, out.

A folder stands for the one trace that it holds. The capture of an Ascend device is a folder of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from ..native_file import SUFFIX
from ..settings import CAPTURE_OUTPUT as OUTPUT
from .ascend_db import is_ascend
from .ascend_text import is_text_capture
from .byte_source import Limits, Source
from .errors import NotATraceError, TraceError
from .native import MAGIC as NATIVE_MAGIC
from .nsys import is_nsys
from .spill import is_spill
from .sqlite_tables import MAGIC, SqliteTables, opened_tables

ENDINGS = (".json", ".json.gz", ".sqlite", ".sqlite.gz", ".db", ".db.gz", SUFFIX)
_CAPTURES = ("ascend_*profiler*.db", "trace_view.json", "trace_view.json.gz")
# endings of the folders of Ascend captures, and what makes their output from the raw data
_ANALYSE = {
    "_ascend_pt": "torch_npu.profiler.profiler.analyse",
    "_ascend_ms": "mindspore.profiler.profiler.analyse",
}
_LISTED = 8  # traces that an error names


def trace_file(path: str | os.PathLike[str]) -> Path:
    """The trace file that a path stands for: the file itself, or the only trace in a folder."""
    given = Path(path)
    if not given.is_dir() or is_spill(given):
        return given
    traces = traces_in(given)
    if len(traces) > 1:
        names = [os.fspath(_shown(trace, given)) for trace in traces]
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        raise NotATraceError(
            f"{given}: a folder with {len(traces)} traces, where one is expected: {', '.join(names[:_LISTED])}{more}"
        )
    return traces[0]


def traces_in(folder: Path) -> list[Path]:
    """The trace files of a folder, sorted by name: of a capture its own, else those in it and those of the captures in it; if it has none,
    those of the folders below it."""
    if is_spill(folder):
        return [folder]
    own = _capture_file(folder)
    if own is not None:
        return [own]
    below = [folder]
    while below:
        traces = [trace for here in below for trace in _traces_directly_in(here)]
        if traces:
            return traces
        below = [
            entry for here in below for entry in _entries(here) if entry.is_dir() and not entry.is_symlink()
        ]
    for ending, analyse in _ANALYSE.items():
        if folder.name.endswith(ending):
            raise NotATraceError(
                f"{folder}: a capture without {OUTPUT}; {analyse} makes it from the raw data"
            )
    raise NotATraceError(
        f"{folder}: a folder without traces; expected files of torch's profiler, Ascend captures or nsys exports in it"
    )


def _traces_directly_in(folder: Path) -> list[Path]:
    traces: list[Path] = []
    for entry in _entries(folder):
        if entry.is_dir():
            capture = entry if is_spill(entry) else _capture_file(entry)
            if capture is not None:
                traces.append(capture)
        elif entry.name.endswith(ENDINGS) and is_trace(entry):
            traces.append(entry)
    return traces


def _entries(folder: Path) -> list[Path]:
    """What a folder holds, rank2 before rank10, without hidden files."""
    entries = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
    return sorted(entries, key=lambda entry: _in_order(entry.name))


def _in_order(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def trace_paths(paths: Sequence[str]) -> list[str]:
    """Paths for commands that take many traces: a folder stands for all traces in it."""
    expanded: list[str] = []
    for path in paths:
        if os.path.isdir(path):
            folder = Path(path)
            traces = [os.fspath(_shown_whole(trace, folder)) for trace in traces_in(folder)]
            expanded += traces if len(traces) > 1 else [path]
        else:
            expanded.append(path)
    return expanded


def _shown(trace: Path, folder: Path) -> Path:
    """The path of a trace inside a folder, for people: a capture by its own folder."""
    return _shown_whole(trace, folder).relative_to(folder)


def _shown_whole(trace: Path, folder: Path) -> Path:
    """The path of a trace; of a capture inside another folder, its own folder."""
    if trace.is_dir():  # a spill folder
        return trace
    home = trace.parent.parent if trace.parent.name == OUTPUT else trace.parent
    if _capture_file(home) != trace:
        return trace
    inner = trace.parent != folder and home != folder and folder in home.parents
    return home if inner else trace


def _capture_file(folder: Path) -> Path | None:
    """The file with the events of an Ascend capture; None: the folder is none. The database is read where there are both forms."""
    for place in (folder / OUTPUT, folder):
        for pattern in _CAPTURES:
            for file in sorted(place.glob(pattern)):
                return file
    return None


def is_trace(path: Path) -> bool:
    """Whether a file looks like a trace."""
    try:
        with Source(path, Limits()) as source:
            head = source.head()
    except (OSError, TraceError):
        return False
    if path.name.endswith(SUFFIX):
        return head.startswith(NATIVE_MAGIC)
    if head.startswith(MAGIC):
        if path.name.endswith(".gz"):
            return True
        try:
            with opened_tables(path, os.fspath(path)) as tables:
                return database_format(tables) is not None
        except TraceError:
            return False
    return any(word in head for word in (b'"traceEvents"', b'"ph"', b'"schemaVersion"'))


def is_other_format(head: bytes) -> bool:
    """Whether the first bytes of a file are those of another format than Kineto's."""
    return head.startswith((MAGIC, NATIVE_MAGIC)) or is_text_capture(head)


def database_format(tables: SqliteTables) -> str | None:
    """`ascend` or `nsys`; None: another kind of database."""
    if is_ascend(tables):
        return "ascend"
    return "nsys" if is_nsys(tables) else None
