"""Opening a trace: a file in, a Loaded out. Shows how much of the file was read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from ..python_rows import with_forward_stacks
from ..synthetic_rows import as_recorded
from ..torch_api.facade import FinishedRecording
from ..torch_api.results import Results
from ..trace import Health, Trace
from .byte_source import Limits, PathOrFile, Progress, Source
from .collect import Collector
from .core import compiled_reader
from .errors import BrokenTraceError, NotATraceError
from .json_slices import Slices, no_garbage_collection
from .kineto import OWN_KEY, trace_of
from .library_calls import LibraryCalls
from .native import is_native, read_native

if TYPE_CHECKING:
    from ..json_types import JSONObject

_BAR_FROM = 32 << 20  # bytes: smaller files are read too fast for a bar


class Loaded(LibraryCalls, FinishedRecording):
    """A trace from a file, with what a live profile answers and the analyses of the command line as methods."""

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

    def as_recorded(self) -> Loaded:
        """The same without synthetic events, which torch shows inside others and which ran as part of one kernel: only what ran."""
        return self.with_trace(as_recorded(self.trace))

    def with_trace(self, trace: Trace) -> Loaded:
        """The same view of another trace."""
        return type(self)(trace, self._python_functions, self._forward_stacks)


def opened(
    file: PathOrFile,
    strict: bool,
    progress: Progress | bool | None,
    python_functions: bool | None,
    limits: Limits,
) -> Loaded:
    """Read a file; `load` says what the arguments mean."""
    if is_native(file):
        native = read_native(os.fsdecode(file))
        shown = (
            native.shown
            if python_functions is None
            else {**native.shown, "python_functions": python_functions}
        )
        return Loaded(native.trace, **shown)
    with Source(file, limits) as source, _bar(source, progress) as advance, no_garbage_collection():
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
        _refuse_other_lists(slices, collector, source.name)
        name = source.name if not hasattr(file, "read") or getattr(file, "name", None) else ""
        trace = trace_of(slices, collector, name)
    if strict and not trace.health:
        raise BrokenTraceError(f"{source.name}: {trace.health.line()}")
    if python_functions is None:
        python_functions = _calls_are_rows(trace, slices.top)
    return Loaded(
        trace, python_functions, forward_stacks=OWN_KEY not in slices.top and bool(collector.stacks)
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
