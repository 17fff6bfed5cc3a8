"""EventList: a list of events or of averages, with the questions that torch's list answers."""

from __future__ import annotations

from typing import Any

from .events import FunctionEventAvg
from .export import chrome, stacks


class EventList(list):
    """A list of FunctionEvents or FunctionEventAvgs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        use_device = kwargs.pop("use_device", None)
        profile_memory = kwargs.pop("profile_memory", False)
        with_flops = kwargs.pop("with_flops", False)
        self._results = kwargs.pop("results", None)
        super().__init__(*args, **kwargs)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._tree_built = False

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
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
    ) -> str:
        """The list as text."""
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
        )

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """One row a group of events."""
        if self._results is not None and len(self) == len(self._results.events):
            return self._results.key_averages(group_by_input_shapes, group_by_stack_n, group_by_overload_name)
        groups: dict[tuple, FunctionEventAvg] = {}
        for event in self:
            key = (event.key, event.node_id, str(event.device_type), event.is_legacy)
            if group_by_overload_name:
                key += (event.overload_name,)
            if group_by_input_shapes:
                key += (str(event.input_shapes),)
            if group_by_stack_n > 0:
                key += tuple((event.stack or [])[:group_by_stack_n])
            groups.setdefault(key, FunctionEventAvg()).add(event)
        made = EventList(
            groups.values(),
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )
        for row in made:
            row.stack = (row.stack or [])[:group_by_stack_n]
            if not group_by_input_shapes:
                row.input_shapes = ""
            if not group_by_overload_name:
                row.overload_name = ""
        return made

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events, as a row `Total`."""
        total = FunctionEventAvg()
        for event in self:
            total.key = event.key
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
        """Write the events as a trace file; averages as one slice a row."""
        if self and isinstance(self[0], FunctionEventAvg):
            chrome.export_averages(self, path)
        elif self._results is not None and len(self) == len(self._results.events):
            chrome.export_chrome_trace(self._results.trace, path)
        else:
            chrome.export_events(self, path)
