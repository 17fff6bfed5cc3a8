"""Opening a trace: a file in, a Loaded out. Shows how much of the file was read."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ..python_rows import with_forward_stacks
from ..synthetic_rows import as_recorded
from ..torch_api.facade import FinishedRecording
from ..torch_api.results import Results
from ..trace import Health, Trace
from .ascend_db import read_db
from .ascend_text import PROCESSES, is_text_capture, read_text
from .byte_source import Limits, PathOrFile, Progress, Source, is_content, name_of
from .collect import Collector
from .core import compiled_reader
from .errors import BrokenTraceError, NotATraceError
from .formats import database_format, trace_file
from .json_cache import CacheUse, JsonCache, cache_of
from .json_slices import Slices, no_garbage_collection
from .kineto import OWN_KEY, trace_of
from .library_calls import LibraryCalls
from .native import is_native, read_native
from .nsys import read_nsys
from .spill import is_spill, read_spill
from .sqlite_tables import MAGIC, opened_tables

if TYPE_CHECKING:
    from ..json_types import JSONObject

_BAR_FROM = 32 << 20  # bytes: smaller files are read too fast for a bar


class Loaded(LibraryCalls, FinishedRecording):
    """A trace from a file, with what a live profile answers and the analyses of the command line as methods."""

    cache: CacheUse | None = (
        None  # whether the trace is that of a cache; None: none was asked for, or the file can have none
    )

    def __init__(self, trace: Trace, python_functions: bool = False, forward_stacks: bool = False) -> None:
        super().__init__(Results(trace), python_functions=python_functions)
        self._forward_stacks = forward_stacks

    @cached_property
    def _listed(self) -> Results:
        """The same, with the stacks that torch shows inside nodes of the backward pass."""
        listed = super()._listed
        return Results(with_forward_stacks(listed.trace)) if self._forward_stacks else listed

    def _shown(self) -> dict[str, bool]:
        return {"python_functions": self._python_functions, "forward_stacks": self._forward_stacks}

    @property
    def health(self) -> Health:
        """What is missing from the file or was repaired."""
        return self.trace.health

    def with_python_functions(self, listed: bool) -> Loaded:
        """The same, with Python calls as rows of events() and key_averages(), or without."""
        return self._like(self.trace, listed)

    def as_recorded(self) -> Loaded:
        """The same without synthetic events, which torch shows inside others and which ran as part of one kernel: only what ran."""
        return self.with_trace(as_recorded(self.trace))

    def with_trace(self, trace: Trace) -> Loaded:
        """The same view of another trace."""
        return self._like(trace, self._python_functions)

    def _like(self, trace: Trace, python_functions: bool) -> Loaded:
        like = type(self)(trace, python_functions, self._forward_stacks)
        like.cache = self.cache
        return like


def opened(
    file: PathOrFile,
    strict: bool,
    progress: Progress | bool | None,
    python_functions: bool | None,
    limits: Limits,
    cached: bool | None,
) -> Loaded:
    """Read a file; `load` says what the arguments mean."""
    given = file
    if isinstance(file, (str, bytes, os.PathLike)) and not is_content(file) and os.path.isdir(file):
        folder = os.fsdecode(file)
        file = trace_file(folder)
        if is_spill(file):
            return _spilled(os.fspath(file), folder, strict, python_functions)
    if is_native(file):
        native = read_native(os.fsdecode(file))
        loaded = Loaded(native.trace, **native.shown)
        return loaded if python_functions is None else loaded.with_python_functions(python_functions)
    cache = cache_of(file, cached, limits)
    loaded = _of_cache(cache, given) or _of_content(file, given, progress, limits, cache)
    health = loaded.health
    if strict and not health:
        raise BrokenTraceError(f"{name_of(file)}: {health.line()}")
    return loaded if python_functions is None else loaded.with_python_functions(python_functions)


def _of_cache(cache: JsonCache | None, given: PathOrFile) -> Loaded | None:
    """A trace from the cache of its file; None: there is none that can be used."""
    native = cache.read() if cache is not None else None
    if cache is None or native is None:
        return None
    settings = replace(native.trace.settings, source=os.fsdecode(given))  # type: ignore[arg-type]
    trace = replace(native.trace, settings=settings)
    loaded = Loaded(trace, **native.shown)
    loaded.cache = CacheUse("read", cache.path)
    return loaded


def _of_content(
    file: PathOrFile,
    given: PathOrFile,
    progress: Progress | bool | None,
    limits: Limits,
    cache: JsonCache | None,
) -> Loaded:
    """Read a file of another format than this package's own."""
    with Source(file, limits) as source, _bar(source, progress) as advance, no_garbage_collection():
        shown = _shown_name(given, source)
        head = source.head()
        if head.startswith(MAGIC):
            return Loaded(_database(source, file, shown))
        if is_text_capture(head):
            return _text_capture(source, file, shown, advance)
        return _kineto(source, file, shown, advance, cache)


def _spilled(folder: str, shown: str, strict: bool, python_functions: bool | None) -> Loaded:
    """Read a recording that was written while it was under way."""
    trace = read_spill(folder)
    trace = replace(trace, settings=replace(trace.settings, source=shown))
    if strict and not trace.health:
        raise BrokenTraceError(f"{shown}: {trace.health.line()}")
    calls_are_rows = bool(len(trace.frames) and trace.settings.with_stack)
    return Loaded(trace, calls_are_rows if python_functions is None else python_functions)


def _shown_name(given: PathOrFile, source: Source) -> str:
    """What a trace says it was read from: the path that was given, also that of a folder; empty: a file without a name."""
    if isinstance(given, (str, os.PathLike)):
        return os.fsdecode(given)
    return source.name if not hasattr(given, "read") or getattr(given, "name", None) else ""


def _kineto(
    source: Source,
    file: PathOrFile,
    shown: str,
    advance: Progress,
    cache: JsonCache | None = None,
    *,
    only: bool = False,
) -> Loaded:
    """Read a Chrome trace, and keep it in a cache. only: also one whose processes are those of an Ascend capture, which has no cache: what it
    holds depends on the files beside it."""
    collector = Collector()
    reader = compiled_reader(collector)
    slices = Slices(source, None if reader is None else reader.take)
    for events in slices:
        if events and reader is not None:
            reader.flush()  # rows stay in the order of the file
        collector.add(events)
        del events  # frees the parsed objects before the next slice is parsed
        advance(source.consumed, source.total)
    if reader is not None:
        reader.flush()
        reader = None  # frees its tables and caches before columns are sorted
    _refuse_other_lists(slices, collector, source.name)
    if not only and _names_ascend_processes(collector) and not hasattr(file, "read"):
        with Source(file, source.limits) as again:
            return _text_capture(again, file, shown, advance)
    forward_stacks = OWN_KEY not in slices.top and bool(collector.stacks)
    trace = trace_of(slices, collector, shown)
    loaded = Loaded(trace, _calls_are_rows(trace, slices.top), forward_stacks)
    if cache is not None:
        del collector, slices  # the memory is needed for writing
        loaded.cache = cache.write(trace, loaded._shown())
    return loaded


def _names_ascend_processes(collector: Collector) -> bool:
    """Whether events of a list without a head are in processes that only Ascend captures have."""
    return any(name in PROCESSES for name in collector.process_names.processes.values())


def _text_capture(source: Source, file: PathOrFile, shown: str, advance: Progress) -> Loaded:
    """Read a list of events with times as texts: an Ascend capture, or else another Chrome trace."""
    path = Path(os.fsdecode(file)) if isinstance(file, (str, os.PathLike)) else None
    trace = read_text(Slices(source), path, shown, lambda: advance(source.consumed, source.total))
    if trace is not None:
        return Loaded(trace, forward_stacks=bool(trace.stacks))
    if hasattr(file, "read"):
        raise NotATraceError(f"{source.name}: times are texts, and no process is that of an Ascend capture")
    with Source(file, source.limits) as again:
        return _kineto(again, file, shown, advance, only=True)


def _database(source: Source, file: PathOrFile, shown: str) -> Trace:
    """Read an SQLite file; one that is packed, or no file with a path, is copied to a temporary file first."""
    is_path = isinstance(file, (str, os.PathLike))
    if is_path and not source.packed_head:
        source.check_total()
        return _of_tables(Path(os.fsdecode(file)), source.name, shown)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory(prefix="mindtorch_prof_") as folder:
        copy = Path(folder, "trace.sqlite")
        with open(copy, "wb") as out:
            out.writelines(source.chunks())
        if source.notes:
            raise NotATraceError(f"{source.name}: {source.notes[0]}")
        return _of_tables(copy, source.name, shown)


def _of_tables(path: Path, name: str, shown: str) -> Trace:
    with opened_tables(path, name) as tables:
        kind = database_format(tables)
        if kind == "ascend":
            return read_db(tables, path, shown)
        if kind == "nsys":
            return read_nsys(tables, shown)
    beside = " (its neighbour ascend_pytorch_profiler_*.db is one)" if path.name == "analysis.db" else ""
    raise NotATraceError(
        f"{name}: an SQLite file, but neither an Ascend capture nor an export of nsys{beside}"
    )


def _refuse_other_lists(slices: Slices, collector: Collector, name: str) -> None:
    """A list that holds no event at all is no trace."""
    event_count = collector.count - sum(collector.dropped.values())
    if event_count <= 0 and (collector.count or slices.lost) and "schemaVersion" not in slices.top:
        raise NotATraceError(
            f"{name}: JSON, but not a trace (none of its {collector.count + slices.lost:,} entries is an event)"
        )


def _calls_are_rows(trace: Trace, top: JSONObject) -> bool:
    """Whether a file was written by torch 2.13 or later, which lists Python calls among the events (earlier versions name no host), or
    by this package, which does the same."""
    if OWN_KEY in top:
        return bool(len(trace.frames) and trace.settings.with_stack)
    return bool(len(trace.frames) and "host_name" in top)


@contextmanager
def _bar(source: Source, progress: Progress | bool | None) -> Iterator[Progress]:
    if callable(progress):
        yield progress
        return
    if progress is None:
        progress = (source.total or 0) >= _BAR_FROM and sys.stderr is not None and sys.stderr.isatty()
    if not progress:
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task(f"Opening {os.path.basename(source.name)}", total=source.total)
        yield lambda done, total: bar.update(task, completed=done)
