"""EventList: a list of events or of averages, with the methods of torch's list."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..averages import Spread, spread_rows, timed_events
from ..export import chrome, stacks
from .function_events import MEMORY_EVENT_NAME, EventOrAverage, FunctionEvent, FunctionEventAvg

if TYPE_CHECKING:
    from .results import Results

E = TypeVar("E", bound=EventOrAverage)


class EventList(list[E]):
    """A list of FunctionEvents or FunctionEventAvgs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # torch's signature
        use_device: str | None = kwargs.pop("use_device", None)
        profile_memory: bool = kwargs.pop("profile_memory", False)
        with_flops: bool = kwargs.pop("with_flops", False)
        results: Results | None = kwargs.pop("results", None)
        stats: bool = kwargs.pop("stats", False)
        super().__init__(*args, **kwargs)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._with_stats = stats
        self._tree_built = results is not None
        # The recording whose events or averages these are. Its columns answer for the list while the list is unchanged.
        self._results = results
        self._initial_length = len(self)

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """The list as a table for notebooks."""
        from .notebook import html_table

        return html_table(self)

    def _like(self, rows: Iterable[FunctionEventAvg], stats: bool = False) -> EventList[FunctionEventAvg]:
        """A list of averages with this one's settings."""
        return EventList(
            rows,
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
            stats=stats,
        )

    def _whole(self) -> Results | None:
        """The results of which this list is the whole list of events; None for any other list."""
        results = self._results
        if results is None or len(self) != self._initial_length or not results.owns(self):
            return None
        return results

    @property
    def self_cpu_time_total(self) -> float:
        """Time spent in the events themselves, in microseconds."""
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
        *,
        legend: bool = False,
    ) -> str:
        """The list as text; a line below it says what the recording lacks, if anything.

        sort_by: an attribute of the rows, or a statistic of theirs (`p95`); the largest come first.
        legend: define the columns below the table.
        """
        from .table import table

        return table(
            self,
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
            top_level_events_only=top_level_events_only,
            time_unit=time_unit,
            note=self._note(),
            with_stats=self._with_stats,
            with_legend=legend,
        )

    def _note(self) -> str:
        if self._results is None or self._results.trace.health:
            return ""
        return f"Incomplete: {self._results.trace.health.line()}"

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        *,
        stats: bool = False,
    ) -> EventList[FunctionEventAvg]:
        """One row per group of events. With `stats`, tables of the rows show how their durations are spread."""
        whole = self._whole()
        if whole is not None:
            return whole.key_averages(
                group_by_input_shapes, group_by_stack_n, group_by_overload_name, stats=stats
            )
        groups: dict[tuple[object, ...], list[E]] = {}
        for event in self:
            key = _group(event, group_by_input_shapes, group_by_stack_n, group_by_overload_name)
            groups.setdefault(key, []).append(event)
        rows = [_sum(events) for events in groups.values()]
        spreads = cache(lambda: _spreads(list(groups.values())))
        for number, row in enumerate(rows):
            row._spread = (spreads, number)
            row.stack = list(row.stack or ())[:group_by_stack_n]
            if not group_by_input_shapes:
                row.input_shapes = ""
            if not group_by_overload_name:
                row.overload_name = ""
        return self._like(rows, stats)

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events, as a row `Total`."""
        whole = self._whole()
        if whole is not None:
            return whole.total_average()
        total = FunctionEventAvg()
        for event in self:
            total.key = None if total.count == 0 else event.key
            total.add(event)
        total.key = "Total"
        return total

    def supported_export_stacks_metrics(self) -> list[str]:
        """Metrics that `export_stacks` takes."""
        return list(stacks.METRICS)

    def export_stacks(self, path: str, metric: str) -> None:
        """Write folded stacks with a metric, for flame graphs."""
        stacks.export_stacks(self, path, metric)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as a trace file; averages as one slice per row."""
        whole = self._whole()
        if whole is not None:
            chrome.export_chrome_trace(whole.trace, path)
            return
        averages = [row for row in self if isinstance(row, FunctionEventAvg)]
        if len(averages) == len(self):
            chrome.export_averages(averages, path)
        else:
            chrome.export_events([row for row in self if isinstance(row, FunctionEvent)], path)

    # ------------------------------------------------------------------------------------------------ other forms

    def to_dict(self) -> dict[str, list[object]]:
        """The list as columns: by name of a field, one plain value per event."""
        from .event_columns import list_columns

        return list_columns(self, self._whole())

    def to_dicts(self) -> list[dict[str, object]]:
        """The list as rows: one dict of plain values per event."""
        columns = self.to_dict()
        return [dict(zip(columns, values)) for values in zip(*columns.values())]

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the list as a CSV file, one row per event; a name that ends in .gz is compressed."""
        from ..analysis.sheet import Sheet
        from ..export.sheet_files import export_csv

        export_csv(Sheet(self.to_dict()), path)

    def to_pandas(self) -> Any:
        """The list as a data frame (needs pandas)."""
        return _optional("pandas").DataFrame(self.to_dict())

    def to_arrow(self) -> Any:
        """The list as a table of Arrow (needs pyarrow)."""
        return _optional("pyarrow").table(self.to_dict())

    # ------------------------------------------------------------------------------------------------ torch's private steps

    def _build_tree(self: EventList[FunctionEvent]) -> None:
        """Work out parents and children from the times of the events, and merge repeated ones."""
        self._populate_cpu_children()
        self._remove_dup_nodes()
        self._set_backward_stacktraces()
        self._tree_built = True
        self._results, self._initial_length = None, len(self)

    def _populate_cpu_children(self: EventList[FunctionEvent]) -> None:
        """Work out parents and children from the times of the events."""
        from .event_nesting import nest

        nest(self)

    def _remove_dup_nodes(self: EventList[FunctionEvent]) -> None:
        """Drop an only child of its parent's name."""
        from .event_nesting import drop_repeated

        drop_repeated(self)

    def _set_backward_stacktraces(self: EventList[FunctionEvent]) -> None:
        """Give backward events the stack of their forward."""
        from .event_nesting import backward_stacks

        backward_stacks(self)


def _sum(events: Iterable[EventOrAverage]) -> FunctionEventAvg:
    row = FunctionEventAvg()
    for event in events:
        row.add(event)
    return row


def _spreads(groups: Sequence[Sequence[EventOrAverage]]) -> list[Spread | None]:
    """How the durations of each group's events are spread; None for averages, and for [memory], which has no duration."""
    timed = [
        i
        for i, group in enumerate(groups)
        if group[0].key != MEMORY_EVENT_NAME and all(isinstance(event, FunctionEvent) for event in group)
    ]
    events = [event for i in timed for event in groups[i] if isinstance(event, FunctionEvent)]
    number = np.repeat(np.arange(len(timed)), [len(groups[i]) for i in timed])
    counted = timed_events(np.array([not event.is_synthetic for event in events], bool), number)
    times = np.array([event.time_range.elapsed_us() for event in events], np.float64)[counted]
    starts = np.array([event.time_range.start for event in events], np.float64)[counted]
    spreads: list[Spread | None] = [None] * len(groups)
    for i, spread in zip(timed, spread_rows(times, starts, number[counted], len(timed))):
        spreads[i] = spread
    return spreads


def _group(event: EventOrAverage, by_shapes: bool, by_stack: int, by_overload: bool) -> tuple[object, ...]:
    """What events of one group have in common."""
    key: tuple[object, ...] = (
        event.key,
        event.node_id,
        event.device_type,
        event.is_legacy,
        event.is_user_annotation,
    )
    if by_overload:
        key += (event.overload_name,)
    if by_shapes:
        key += (str(event.input_shapes),)
    if by_stack > 0:
        key += tuple((event.stack or [])[:by_stack])
    return key


def _optional(package: str) -> ModuleType:
    import importlib

    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(
            f"{package} is not installed; `pip install mindtorch_v2[pandas]` brings it, and to_dict() needs nothing"
        ) from error
