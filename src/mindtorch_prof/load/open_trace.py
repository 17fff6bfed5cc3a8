"""Opening a trace: a file in, a Loaded out. Shows how much of the file was read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..python_rows import with_calls, with_forward_stacks
from ..torch_api.event_list import EventList
from ..torch_api.facade import RecordingAnswers
from ..torch_api.function_events import FunctionEvent, FunctionEventAvg
from ..torch_api.results import Results
from ..trace import Health, Trace
from .byte_source import Limits, PathOrFile, Progress, Source
from .collect import Collector
from .errors import BrokenTraceError, NotATraceError
from .json_slices import Slices, no_garbage_collection
from .kineto import OWN_KEY, trace_of

if TYPE_CHECKING:
    from ..analysis.device_usage import Usage
    from ..json_types import JSONObject
    from ..torch_api.event_tree import _ProfilerEvent

_BAR_FROM = 32 << 20  # bytes: smaller files are read too fast for a bar


class Loaded(RecordingAnswers):
    """A trace from a file, with what a live profile answers."""

    def __init__(self, trace: Trace, python_functions: bool = False, forward_stacks: bool = False) -> None:
        self.trace = trace
        self._results = Results(trace)
        self._metadata = {}
        self._python_functions, self._forward_stacks = python_functions, forward_stacks

    @cached_property
    def _listed(self) -> Results:
        """The Results of lists and tables: with Python calls among the events if they are rows."""
        trace = with_calls(self.trace) if self._python_functions else self.trace
        if self._forward_stacks:
            trace = with_forward_stacks(trace)
        return self._results if trace is self.trace else Results(trace)

    def __repr__(self) -> str:
        trace = self.trace
        source = trace.settings.source or "a file"
        synthetic = f" ({trace.n_synthetic:,} synthetic)" if trace.n_synthetic else ""
        return f"<{type(self).__name__} {source}: {len(trace):,} events{synthetic}, {len(trace.device):,} on devices>"

    @property
    def health(self) -> Health:
        """What is missing from the file or was repaired."""
        return self.trace.health

    @property
    def results(self) -> Results:
        """Trees, averages and events of the trace, computed on demand."""
        return self._results

    def events(self) -> EventList[FunctionEvent]:
        """All events of the file."""
        return self._listed.events

    def experimental_event_tree(self) -> list[_ProfilerEvent]:
        """The roots of the tree of events, Python calls and allocations, as `profile.kineto_results` gives it of a live recording."""
        return self._results.event_tree.roots()

    def _listed_results(self) -> Results:
        return self._listed

    def _finished(self, purpose: str = "getting results") -> Results:
        return self._results

    def table(self, **options: Any) -> str:
        """The averages as text; the options are those of `EventList.table`."""
        return self.key_averages().table(**options)

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events."""
        return self._listed.total_average()

    def to_pandas(self) -> Any:
        """The events as a data frame (needs pandas); averages have a `to_pandas` of their own."""
        return self.events().to_pandas()

    def to_arrow(self) -> Any:
        """The events as a table of Arrow (needs pyarrow)."""
        return self.events().to_arrow()

    def to_dict(self) -> dict[str, list[object]]:
        """The events as columns."""
        return self.events().to_dict()

    def device_usage(self) -> list[Usage]:
        """How busy each stream of each device was: one row per stream, see `mindtorch_prof.analysis.device_usage`."""
        from ..analysis.device_usage import device_usage

        return device_usage(self.trace)


def opened(
    file: PathOrFile,
    strict: bool,
    progress: Progress | bool | None,
    python_functions: bool | None,
    limits: Limits,
) -> Loaded:
    """Read a file; `load` says what the arguments mean."""
    with Source(file, limits) as source, _bar(source, progress) as advance, no_garbage_collection():
        slices, collector = Slices(source), Collector()
        for events in slices:
            collector.add(events)
            del events  # frees the parsed objects before the next slice is parsed
            advance(source.consumed, source.total)
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
    """Whether a file was written by torch 2.13 or later, which lists Python calls among the events: earlier versions name no host."""
    return bool(len(trace.frames) and "host_name" in top and OWN_KEY not in top)


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
