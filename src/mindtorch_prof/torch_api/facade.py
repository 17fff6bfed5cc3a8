"""torch's questions to a recording, for everything that answers them: live profiles and loaded files. `Results` does the work.

A class that holds Results inherits from `RecordingAnswers` (as `torch.profiler.profile` answers) or from `EventAnswers` (as the older
`torch.autograd.profiler.profile` answers), and says which Results they are. Signatures are torch's. `FinishedRecording` is such a class
that needs no profile: loaded files are, and what `as_recorded` gives.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..analysis.recording import Recording, recorded_results
from ..export import chrome
from ..native_file import write_native
from ..python_rows import with_calls
from .event_list import EventList
from .function_events import FunctionEvent, FunctionEventAvg
from .results import Results

if TYPE_CHECKING:
    from ..analysis.device_breakdown import DeviceBreakdown
    from ..analysis.device_usage import Usage
    from ..analysis.overhead import Overhead
    from ..trace import Trace
    from .event_tree import _ProfilerEvent


class KeyAverages(ABC):
    """Averages over the events of a recording."""

    @abstractmethod
    def _listed_results(self) -> Results | None:
        """What lists and averages are made of; None where they are empty, because nothing is recorded yet. May raise instead."""

    @abstractmethod
    def _finished(self, purpose: str = "getting results") -> Results:
        """The finished recording. What is raised while there is none names the purpose."""

    def as_recorded(self) -> FinishedRecording:
        """The recording without its synthetic events, which torch shows inside others and which ran as part of one kernel: only what ran."""
        results = self._recorded_results()
        # torch 2.13 lists Python calls among the events of a recording with stacks
        return FinishedRecording(results, getattr(self, "_metadata", {}), results.trace.settings.with_stack)

    def _recorded_results(self) -> Results:
        return recorded_results(self._finished())

    def overhead(self) -> Overhead | None:
        """How much longer the program took because it was recorded, as the recorder measured its own cost; None: not known."""
        from ..analysis.overhead import overhead

        return overhead(self._finished())

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        *,
        stats: bool = False,
    ) -> EventList[FunctionEventAvg]:
        """Averages over events of one name, optionally also of one input shape, stack or overload. With `stats`, which torch does not have,
        `table()` shows min, p50, p95, max, std and the first of the durations of each row."""
        results = self._listed_results()
        if results is None:
            return EventList()
        return results.key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name, stats=stats
        )


class RecordingAnswers(KeyAverages):
    """Averages, and files of several formats."""

    _metadata: dict[str, object]  # that the program added to the trace file

    def export_chrome_trace(self, path: str | os.PathLike[str], use_python_export: bool = False) -> None:
        """Write the recording as a trace file for Perfetto, TensorBoard and others; .gz compresses."""
        with self._writing(path):
            self._export_chrome_trace(path)

    def _writing(self, path: str | os.PathLike[str]) -> AbstractContextManager[None]:
        """What is around the writing of a file."""
        return nullcontext()

    def _export_chrome_trace(self, path: str | os.PathLike[str], *, exclusive: bool = False) -> None:
        trace = self._finished("exporting chrome trace").trace
        chrome.export_chrome_trace(trace, path, self._metadata, exclusive=exclusive)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write folded stacks with a metric, for flame graphs."""
        with self._writing(path):
            self._finished("exporting stacks").export_stacks(path, metric)

    def export_memory_timeline(self, path: str | os.PathLike[str], device: str | None = None) -> None:
        """Write the bytes allocated over time by category: a page (.html), [times, sizes] (.json) or each change (.raw.json.gz)."""
        with self._writing(path):
            self._finished("exporting memory timeline").export_memory_timeline(path, device)

    def export_html(self, path: str | os.PathLike[str], other: Recording | None = None) -> None:
        """Write one self-contained page that shows where time and memory went; `other`: a second recording, to compare with."""
        with self._writing(path):
            self._finished("exporting a report").export_html(path, other)

    def export_otlp(
        self,
        target: str | os.PathLike[str],
        *,
        min_us: float = 0.0,
        max_spans: int = 1_000,
        parent: str | None = None,
        service: str = "",
    ) -> int:
        """Write the longest events as spans of OpenTelemetry, to a file or a collector (http://localhost:4318); gives their number.

        The arguments are explained at `mindtorch_prof.export.otlp.export_otlp`.
        """
        from ..export.otlp import export_otlp

        recording = self._finished("exporting spans")
        with self._writing(target):
            return export_otlp(
                recording, target, min_us=min_us, max_spans=max_spans, parent=parent, service=service
            )
        return 0  # a callback goes on where its file cannot be written

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the recording's columns as they are; `mindtorch_prof.load` opens the file in milliseconds, however large it is."""
        with self._writing(path):
            write_native(self._finished("saving").trace, path, self._shown())

    def _shown(self) -> dict[str, bool]:
        """How events are listed: the arguments of `load.open_trace.Loaded`."""
        return {"python_functions": self._finished().trace.settings.with_stack}

    def _repr_html_(self) -> str | None:
        """The averages as a small table to sort and filter, for notebooks."""
        return self._finished()._repr_html_()


class EventAnswers(KeyAverages):
    """Averages, and a list of events: as a table, summed up, and printed as the recording itself."""

    _results: Results | None
    _unfinished = "<unfinished>"  # printed before there are results

    @abstractmethod
    def _event_list(self) -> EventList[FunctionEvent]:
        """All events. May raise while there are none."""

    def __repr__(self) -> str:
        return self._unfinished if self._results is None else repr(self._event_list())

    def __str__(self) -> str:
        return self._unfinished if self._results is None else str(self._event_list())

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        *,
        legend: bool = False,
    ) -> str:
        """All events as text; with `legend`, which torch does not have, the columns are defined below the table."""
        return self._event_list().table(
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            top_level_events_only=top_level_events_only,
            legend=legend,
        )

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write folded stacks with a metric, for flame graphs."""
        self._finished().export_stacks(path, metric)

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events, as a row `Total`."""
        return self._event_list().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of self CPU time, in microseconds."""
        return self._event_list().self_cpu_time_total


class FinishedRecording(RecordingAnswers):
    """A recording that has ended, with what a live profile answers."""

    def __init__(
        self, results: Results, metadata: dict[str, object] | None = None, python_functions: bool = False
    ) -> None:
        """python_functions: Python calls are rows of events() and key_averages()."""
        self._results = results
        self._metadata = dict(metadata or {})
        self._python_functions = python_functions

    def __repr__(self) -> str:
        trace = self.trace
        source = trace.settings.source or "a recording"
        synthetic = f" ({trace.n_synthetic:,} synthetic)" if trace.n_synthetic else ""
        return f"<{type(self).__name__} {source}: {len(trace):,} events{synthetic}, {len(trace.device):,} on devices>"

    @property
    def trace(self) -> Trace:
        """The columns that all answers are computed from."""
        return self._results.trace

    @property
    def results(self) -> Results:
        """Trees, averages and events of the trace, computed on demand."""
        return self._results

    @cached_property
    def _listed(self) -> Results:
        """The Results of lists and tables: with Python calls among the events if they are rows."""
        return Results(with_calls(self.trace)) if self._python_functions else self._results

    def _listed_results(self) -> Results:
        return self._listed

    def _shown(self) -> dict[str, bool]:
        return {"python_functions": self._python_functions}

    def _finished(self, purpose: str = "getting results") -> Results:
        return self._results

    def events(self) -> EventList[FunctionEvent]:
        """All events."""
        return self._listed.events

    def experimental_event_tree(self) -> list[_ProfilerEvent]:
        """The roots of the tree of events, Python calls and allocations, as `profile.kineto_results` gives it of a live recording."""
        return self._results.event_tree.roots()

    def table(self, **options: Any) -> str:
        """The averages as text; the options are those of `EventList.table`."""
        return self.key_averages().table(**options)

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events."""
        return self._listed.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of self CPU time, in microseconds."""
        return self.total_average().self_cpu_time_total

    def to_pandas(self) -> Any:
        """The events as a data frame (needs pandas); averages have a `to_pandas` of their own."""
        return self.events().to_pandas()

    def to_arrow(self) -> Any:
        """The events as a table of Arrow (needs pyarrow)."""
        return self.events().to_arrow()

    def to_dict(self) -> dict[str, list[object]]:
        """The events as columns."""
        return self.events().to_dict()

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the events as a CSV file; averages have a `to_csv` of their own."""
        self.events().to_csv(path)

    def device_breakdown(self) -> list[DeviceBreakdown]:
        """What each device did with its time: computation, exposed communication, exposed copies and idle, which add up to its span."""
        from ..analysis.device_breakdown import device_breakdown

        return device_breakdown(self.trace)

    def device_usage(self) -> list[Usage]:
        """How busy each stream of each device was: one row per stream, see `mindtorch_prof.analysis.device_usage`."""
        from ..analysis.device_usage import device_usage

        return device_usage(self.trace)

    def memory_summary(self) -> str:
        """The most memory that was alive at one time, when that was, and which ops had taken it (needs profile_memory)."""
        from ..analysis.memory_summary import memory_summary

        return memory_summary(self.trace)
