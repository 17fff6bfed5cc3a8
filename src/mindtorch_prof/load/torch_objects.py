"""torch's objects over `TorchLists`: a list of events and lists of averages, of torch's own classes or of this package's.

An event holds its row and nothing else; a field is looked up when it is read: in the columns, or by the method of Kineto's event that
torch itself would have called. So a list costs what its columns cost, and its fields are those of the torch that made it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from .json_slices import no_garbage_collection
from .torch_lists import Groups, TorchLists

# classes of two families are used here, torch's and this package's: what they have in common is their attributes
Object = Any


class Family(NamedTuple):
    """The classes of which lists are made."""

    event: Object  # FunctionEvent
    average: Object  # FunctionEventAvg
    event_list: Object  # EventList
    interval: Callable[[float, float], Object]
    kernel: Callable[[str, int, float], Object]
    device_type: Callable[[int], Object]  # from torch's number
    metadata: Callable[[dict[str, str]], Object]  # from Kineto's texts
    with_spreads: bool = False  # averages have `stats`


def own_family() -> Family:
    """This package's classes."""
    from ..torch_api.enums import DeviceType
    from ..torch_api.event_list import EventList
    from ..torch_api.event_metadata import event_metadata
    from ..torch_api.function_events import FunctionEvent, FunctionEventAvg, Interval, Kernel

    return Family(
        FunctionEvent,
        FunctionEventAvg,
        EventList,
        Interval,
        Kernel,
        DeviceType,
        event_metadata,
        with_spreads=True,
    )


# fields that are what a method of Kineto's event gives; where this torch has no such method, the value that its list would show
_READ: dict[str, tuple[str, object]] = {
    "id": ("correlation_id", 0),
    "overload_name": ("overload_name", None),
    "fwd_thread": ("fwd_thread_id", None),
    "input_shapes": ("shapes", None),
    "concrete_inputs": ("concrete_inputs", None),
    "kwinputs": ("kwinputs", None),
    "scope": ("scope", 0),
    "sequence_nr": ("sequence_nr", -1),
    "device_index": ("device_index", 0),
    "device_resource_id": ("device_resource_id", 0),
    "flops": ("flops", None),
    "is_user_annotation": ("is_user_annotation", False),
    "is_python_function": ("is_python_function", False),
    "activity_type": ("activity_type", None),
    "_metadata_json": ("metadata_json", None),
    "flow_id": ("flow_id", None),
    "flow_type": ("flow_type", None),
    "flow_start": ("flow_start", None),
    "external_id": ("external_id", 0),
    "linked_correlation_id": ("linked_correlation_id", 0),
    "structured_input_shapes": ("structured_input_shapes", None),
    "structured_input_strides": ("structured_input_strides", None),
    "input_dtypes": ("dtypes", None),
    "python_id": ("python_id", -1),
    "python_parent_id": ("python_parent_id", -1),
    "python_module_id": ("python_module_id", -1),
}
# the same of allocations outside all events
_INSTANT: dict[str, object] = {
    "overload_name": "",
    "concrete_inputs": None,
    "kwinputs": None,
    "scope": 0,
    "sequence_nr": -1,
    "device_index": 0,
    "flops": None,
    "is_user_annotation": False,
    "is_python_function": False,
    "activity_type": None,
    "_metadata_json": None,
    "flow_id": None,
    "flow_type": None,
    "flow_start": None,
    "external_id": 0,
    "linked_correlation_id": 0,
    "structured_input_shapes": None,
    "structured_input_strides": None,
    "input_dtypes": None,
    "python_id": -1,
    "python_parent_id": -1,
    "python_module_id": -1,
}
# fields of this package's events, and of torch's events of some versions, that are the same for all
_CONSTANT = {
    "node_id": -1,
    "count": 1,
    "is_remote": False,
    "is_legacy": False,
    "self_cpu_percent": -1,
    "total_cpu_percent": -1,
    "total_device_percent": -1,
}


class LiveLists:
    """The lists of one recording, as objects of a family."""

    def __init__(self, lists: TorchLists, family: Family, *, profile_memory: bool) -> None:
        self.lists, self.family, self.profile_memory = lists, family, profile_memory
        self.event_class = _event_class(family.event)
        name, names = lists.names
        self.name: list[int] = name.tolist()
        self.names: list[str] = names
        self.columns: dict[str, list[float]] = {}  # by name, filled when first read
        self._objects: list[Object] = [None] * len(lists.source)  # by row, made when first asked for

    def column(self, name: str) -> list[float]:
        """A column of `TorchLists` as a list of plain numbers."""
        column = self.columns.get(name)
        if column is None:
            values: list[float] = getattr(self.lists, name).tolist()
            column = self.columns[name] = values
        return column

    # ------------------------------------------------------------------------------------------------ lists

    def events(self) -> Object:
        """All events, as one list. It answers for its averages and stacks from columns while its length is unchanged."""
        with no_garbage_collection():
            rows = [self.event(row) for row in self.lists.shown.tolist()]
        made = _list_class(self.family.event_list)(rows, **self._settings())
        made._tree_built = True
        made._live, made._live_length = self, len(rows)
        return made

    def _settings(self) -> dict[str, object]:
        lists = self.lists
        return {
            "use_device": lists.use_device,
            "profile_memory": self.profile_memory,
            "with_flops": lists.with_flops,
        }

    def event(self, row: int) -> Object:
        """The event of a row; always the same one."""
        found = self._objects[row]
        if found is None:
            found = self._objects[row] = self.event_class(self, row)
        return found

    def key_averages(
        self, by_shape: bool = False, by_stack: int = 0, by_overload: bool = False, *, stats: bool = False
    ) -> Object:
        """One average per group."""
        if stats and not self.family.with_spreads:
            raise TypeError(
                "torch's own lists have no statistics of durations: mindtorch_prof.from_torch(prof).key_averages(stats=True) has them"
            )
        averages = self._averages(self.lists.groups(by_shape, by_stack, by_overload))
        for average in averages:
            average.stack = average.stack[:by_stack]
            if not by_shape:
                average.input_shapes = ""
            if not by_overload and hasattr(average, "overload_name"):
                average.overload_name = ""
        settings = self._settings()
        return self.family.event_list(averages, **(settings | {"stats": True} if stats else settings))

    def total_average(self) -> Object:
        """The sum of all events, as a row `Total`."""
        if not len(self.lists):
            total = self.family.average()
        else:
            total = self._averages(self.lists.total())[0]
        total.key = "Total"
        return total

    def _averages(self, groups: Groups) -> list[Object]:
        averages = []
        columns = zip(*(column.tolist() for name, column in vars(groups).items() if name != "group"))
        spreads = cache(lambda: self.lists.spreads(groups))
        for number, row in enumerate(columns):
            (
                first,
                count,
                cpu,
                own_cpu,
                device,
                own_device,
                memory,
                own_memory,
                on_device,
                own_on_device,
                flops,
            ) = row
            average = self.family.average()
            average.add(self.event(first))  # takes over what all events of the group have in common
            average.count = count
            average.cpu_time_total, average.self_cpu_time_total = cpu, own_cpu
            average.device_time_total, average.self_device_time_total = device, own_device
            average.cpu_memory_usage, average.self_cpu_memory_usage = memory, own_memory
            average.device_memory_usage, average.self_device_memory_usage = on_device, own_on_device
            average.flops = flops
            if self.family.with_spreads and not self.lists.is_instant[first]:
                average._spread = (spreads, number)
            averages.append(average)
        return averages

    # ------------------------------------------------------------------------------------------------ fields

    def field(self, row: int, name: str) -> Object:
        """A field of the event of a row; raises KeyError for what is none."""
        compute = _COMPUTED.get(name)
        if compute is not None:
            return compute(self, row)
        if name in _CONSTANT:
            return _CONSTANT[name]
        if self.lists.is_instant[row]:
            return self._instant_field(row, name)
        method, otherwise = _READ[name]
        read = getattr(self.lists.kineto_event(row), method, None)
        return otherwise if read is None else read()

    def _instant_field(self, row: int, name: str) -> object:
        if name == "id":
            return self._instant_ids()[row]
        if name in ("fwd_thread", "device_resource_id"):
            return int(self.lists.thread[row])
        return [] if name == "input_shapes" else _INSTANT[name]

    def _instant_ids(self) -> dict[int, int]:
        """Allocations outside events are numbered after all events, in the order in which Kineto lists them."""
        ids: dict[int, int] | None = self.__dict__.get("instant_ids")
        if ids is None:
            lists = self.lists
            usual = lists.source[~lists.is_instant]
            last = int(lists.kineto.correlation[usual].max(initial=0))
            failed = lists.kineto.is_out_of_memory[lists.source]
            rows = lists.is_instant.nonzero()[0].tolist()
            rows.sort(key=lambda row: (failed[row], lists.source[row]))
            ids = {row: last + 1 + place for place, row in enumerate(rows)}
            self.__dict__["instant_ids"] = ids
        return ids


def _kernels(live: LiveLists, row: int) -> list[Object]:
    elapsed = live.column("elapsed_us")
    index = {k: live.field(k, "device_index") for k in live.lists.kernels_of(row)}
    return [live.family.kernel(live.names[live.name[k]], i, elapsed[k]) for k, i in index.items()]


def _trace_name(live: LiveLists, row: int) -> str | None:
    return None if live.lists.is_instant[row] else live.lists.kineto_event(row).name()


def _metadata(live: LiveLists, row: int) -> Object:
    read = None if live.lists.is_instant[row] else getattr(live.lists.kineto_event(row), "extra_meta", None)
    texts = read() if read is not None else None
    return live.family.metadata(texts) if texts else None


def _parent(live: LiveLists, row: int) -> Object:
    parent = int(live.lists.parent[row])
    return None if parent < 0 else live.event(parent)


_COMPUTED: dict[str, Callable[[LiveLists, int], object]] = {
    "name": lambda live, row: live.names[live.name[row]],
    "trace_name": _trace_name,
    "time_range": lambda live, row: live.family.interval(
        live.column("start_us")[row], live.column("end_us")[row]
    ),
    "thread": lambda live, row: int(live.lists.thread[row]) % 2**64,  # torch's numbers are unsigned
    "kernels": _kernels,
    "cpu_parent": _parent,
    "cpu_children": lambda live, row: [live.event(child) for child in live.lists.children_of(row)],
    "stack": lambda live, row: live.lists.stack_of(row),
    "use_device": lambda live, row: live.lists.use_device,
    "cpu_memory_usage": lambda live, row: live.column("cpu_memory")[row],
    "device_memory_usage": lambda live, row: live.column("device_memory")[row],
    "is_async": lambda live, row: bool(live.lists.is_async[row]),
    "device_type": lambda live, row: live.family.device_type(int(live.lists.device_type[row])),
    "event_metadata": _metadata,
}


@cache
def _event_class(base: Object) -> Object:
    """A FunctionEvent that looks its fields up when they are read."""

    class LiveEvent(base):  # type: ignore[misc]
        def __init__(self, live: LiveLists, row: int) -> None:
            self._live = live
            self._row = row

        def __getattr__(self, field: str) -> object:
            if field.startswith("__") or field in ("_live", "_row"):
                raise AttributeError(field)
            try:
                value = self._live.field(self._row, field)
            except KeyError:
                raise AttributeError(f"'FunctionEvent' object has no attribute '{field}'") from None
            self.__dict__[field] = value
            return value

        cpu_time_total = property(lambda self: self._live.column("cpu_us")[self._row])
        self_cpu_time_total = property(lambda self: self._live.column("self_cpu_us")[self._row])
        device_time_total = property(lambda self: self._live.column("device_us")[self._row])
        self_device_time_total = property(lambda self: self._live.column("self_device_us")[self._row])
        self_cpu_memory_usage = property(lambda self: self._live.column("self_cpu_memory")[self._row])
        self_device_memory_usage = property(lambda self: self._live.column("self_device_memory")[self._row])

        def __reduce__(self) -> tuple[object, ...]:
            # copies and pickles are plain events: Kineto's objects cannot be copied
            return _blank_event, (base,), {name: getattr(self, name) for name in _FIELDS}

    LiveEvent.__name__, LiveEvent.__qualname__ = base.__name__, base.__qualname__
    LiveEvent.__module__ = base.__module__
    return LiveEvent


_FIELDS = (*_COMPUTED, *_READ, *_CONSTANT)


def _blank_event(base: Object) -> Object:
    return base.__new__(base)


@cache
def _list_class(base: Object) -> Object:
    """An EventList whose averages and sums come from columns while it is the whole list."""

    class LiveEventList(base):  # type: ignore[misc]
        _live: LiveLists | None = None
        _live_length = -1

        def _whole_live(self) -> LiveLists | None:
            return self._live if len(self) == self._live_length else None

        def key_averages(
            self,
            group_by_input_shapes: bool = False,
            group_by_stack_n: int = 0,
            group_by_overload_name: bool = False,
            **options: bool,  # those of this package's lists, which torch's lists refuse
        ) -> Object:
            live = self._whole_live()
            if live is None:
                given = (group_by_input_shapes, group_by_stack_n, group_by_overload_name)
                return super().key_averages(*given[: 2 + bool(group_by_overload_name)], **options)
            return live.key_averages(
                group_by_input_shapes, group_by_stack_n, group_by_overload_name, **options
            )

        def total_average(self) -> Object:
            live = self._whole_live()
            return super().total_average() if live is None else live.total_average()

        @property
        def self_cpu_time_total(self) -> float:
            total: float = sum(event.self_cpu_time_total for event in self)
            return total

    LiveEventList.__name__, LiveEventList.__qualname__ = base.__name__, base.__qualname__
    LiveEventList.__module__ = base.__module__
    return LiveEventList
