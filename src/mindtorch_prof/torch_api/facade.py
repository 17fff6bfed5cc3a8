"""torch's questions to a recording, for everything that answers them: live profiles and loaded files. `Results` does the work.

A class that holds Results inherits from `RecordingAnswers` (as `torch.profiler.profile` answers) or from `EventAnswers` (as the older
`torch.autograd.profiler.profile` answers), and says which Results they are. Signatures are torch's.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod

from ..analysis.recording import Recording
from ..export import chrome
from .event_list import EventList
from .function_events import FunctionEvent, FunctionEventAvg
from .results import Results


class KeyAverages(ABC):
    """Averages over the events of a recording."""

    @abstractmethod
    def _listed_results(self) -> Results | None:
        """What lists and averages are made of; None where they are empty, because nothing is recorded yet. May raise instead."""

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList[FunctionEventAvg]:
        """Averages over events of one name, optionally also of one input shape, stack or overload."""
        results = self._listed_results()
        if results is None:
            return EventList()
        return results.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)


class RecordingAnswers(KeyAverages):
    """Averages, and files of several formats."""

    _metadata: dict[str, object]  # that the program added to the trace file

    @abstractmethod
    def _finished(self, purpose: str = "getting results") -> Results:
        """The finished recording. What is raised while there is none names the purpose."""

    def export_chrome_trace(self, path: str | os.PathLike[str], use_python_export: bool = False) -> None:
        """Write the recording as a trace file for Perfetto, TensorBoard and others; .gz compresses."""
        self._export_chrome_trace(path)

    def _export_chrome_trace(self, path: str | os.PathLike[str], *, exclusive: bool = False) -> None:
        trace = self._finished("exporting chrome trace").trace
        chrome.export_chrome_trace(trace, path, self._metadata, exclusive=exclusive)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write folded stacks with a metric, for flame graphs."""
        self._finished("exporting stacks").export_stacks(path, metric)

    def export_memory_timeline(self, path: str | os.PathLike[str], device: str | None = None) -> None:
        """Write the bytes allocated over time by category: a page (.html), [times, sizes] (.json) or each change (.raw.json.gz)."""
        self._finished("exporting memory timeline").export_memory_timeline(path, device)

    def export_html(self, path: str | os.PathLike[str], other: Recording | None = None) -> None:
        """Write one self-contained page that shows where time and memory went; `other`: a second recording, to compare with."""
        self._finished("exporting a report").export_html(path, other)

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

    @abstractmethod
    def _finished(self) -> Results:
        """The finished recording. Raises while there is none."""

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
    ) -> str:
        """All events as text."""
        return self._event_list().table(
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            top_level_events_only=top_level_events_only,
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
