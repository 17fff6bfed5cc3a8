"""Events of real torch's profiler: its C++ objects in, columns out. Each column is read once, when it is first asked for.

The objects are torch's `_KinetoEvent`s; every field is a method. Calls through `map` on the class cost about 0.1 us each, four times as much
where the object is not in the processor's cache: so the fields that every list needs are read together, some thousand events at a time;
others only where somebody needs them, and rare ones only of the rows that can have them. Methods that an older torch lacks give the value
that stands for none.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Protocol, TypeAlias, cast

import numpy as np

from ..arrays import BoolArray, IntArray
from ..trace import HIDDEN_EVENTS
from .event_values import Table
from .json_slices import no_garbage_collection

MEMORY, OUT_OF_MEMORY = "[memory]", "[OutOfMemory]"
CPU = 0  # torch's number of the CPU among the kinds of devices
_ON_CPU = ("cpu_op", "user_annotation", "python_function")  # activities that are always the CPU's
# fields that every list needs: texts, and numbers with the value where an older torch has no such field
_USUAL_TEXTS = ("name", "activity_type")
_USUAL_NUMBERS: dict[str, int | None] = {
    "start_ns": None,
    "duration_ns": None,
    "start_thread_id": None,
    "end_thread_id": None,
    "is_async": 0,
    "is_hidden_event": 0,
    "correlation_id": None,
}
_TOGETHER = 2_000  # events whose objects stay in the processor's cache
_NEVER_LISTED = frozenset({*HIDDEN_EVENTS, MEMORY, OUT_OF_MEMORY})


class KinetoEvent(Protocol):
    """What is used of torch's `_KinetoEvent` by name; further fields are read through `KinetoEvents.field`."""

    def name(self) -> str: ...
    def start_ns(self) -> int: ...
    def duration_ns(self) -> int: ...


class KinetoResults(Protocol):
    """torch's `_ProfilerResult`."""

    def events(self) -> Sequence[KinetoEvent]: ...
    def trace_start_ns(self) -> int: ...
    def experimental_event_tree(self) -> Sequence[object]: ...
    def save(self, path: str) -> None: ...


Reader: TypeAlias = "Callable[[KinetoEvent], object]"


class MissingNameError(Exception):
    """A private name of torch that is needed here is not there."""


class KinetoEvents:
    """The events of one recording, in torch's order."""

    def __init__(self, results: KinetoResults) -> None:
        try:
            with no_garbage_collection():
                self.events = list(results.events())
            self.trace_start_ns = int(results.trace_start_ns())
        except AttributeError as error:
            raise MissingNameError(str(error)) from error
        self._class = type(self.events[0]) if self.events else None

    def __len__(self) -> int:
        return len(self.events)

    # ------------------------------------------------------------------------------------------------ fields

    def has(self, field: str) -> bool:
        """Whether this torch's events have a field."""
        return hasattr(self._class, field)

    def reader(self, field: str) -> Reader:
        """The method that reads a field."""
        read = getattr(self._class, field, None)
        if read is None:
            raise MissingNameError(f"torch's {getattr(self._class, '__name__', 'events')} has no {field}()")
        return cast("Reader", read)

    def values(self, field: str, rows: IntArray | None = None) -> Iterator[object]:
        """A field of all events, or of some."""
        return map(self.reader(field), self.events if rows is None else self.chosen(rows))

    def chosen(self, rows: IntArray) -> list[KinetoEvent]:
        events = self.events
        return [events[row] for row in rows.tolist()]

    def numbers(self, field: str, rows: IntArray | None = None, otherwise: int | None = None) -> IntArray:
        """A field that is a number, of all events or of some. otherwise: where this torch has no such field."""
        count = len(self) if rows is None else len(rows)
        if not count or (otherwise is not None and not self.has(field)):
            return np.full(count, otherwise or 0, np.int64)
        with no_garbage_collection():
            return _integers(self.reader(field), self.events if rows is None else self.chosen(rows))

    @cached_property
    def _usual(self) -> tuple[dict[str, IntArray], dict[str, list[str]]]:
        """The usual fields: numbers, and the texts of those that stand for texts."""
        count = len(self)
        read: dict[str, Reader] = {
            name: self.reader(name)
            for name in (*_USUAL_TEXTS, *_USUAL_NUMBERS)
            if count and (self.has(name) or _USUAL_NUMBERS.get(name, 0) is None or name == "name")
        }
        columns: dict[str, IntArray] = {
            name: np.full(count, otherwise or 0, np.int64) for name, otherwise in _USUAL_NUMBERS.items()
        }
        columns |= {name: np.zeros(count, np.int64) for name in _USUAL_TEXTS}
        tables: dict[str, Table[object]] = {name: Table() for name in _USUAL_TEXTS}
        with no_garbage_collection():
            for first in range(0, count, _TOGETHER):
                part = self.events[first : first + _TOGETHER]
                for name, method in read.items():
                    if name in tables:
                        numbers = map(tables[name].__getitem__, map(method, part))
                        columns[name][first : first + len(part)] = np.fromiter(numbers, np.int64, len(part))
                    else:
                        columns[name][first : first + len(part)] = _integers(method, part)
        return columns, {name: cast("list[str]", list(table)) for name, table in tables.items()}

    def _usual_texts(self, field: str) -> tuple[IntArray, list[str]]:
        columns, tables = self._usual
        return columns[field], tables[field]

    def texts(self, field: str, rows: IntArray | None = None) -> tuple[IntArray, list[str]]:
        """A field that is a text: numbers, and the texts that they stand for."""
        table: Table[str] = Table()
        count = len(self) if rows is None else len(rows)
        if not count:
            return np.empty(0, np.int64), []
        with no_garbage_collection():
            found = map(table.__getitem__, cast("Iterable[str]", self.values(field, rows)))
            numbers = np.fromiter(found, np.int64, count)
        return numbers, list(table)

    # ------------------------------------------------------------------------------------------------ columns

    @cached_property
    def names(self) -> tuple[IntArray, list[str]]:
        return self._usual_texts("name")

    @cached_property
    def start(self) -> IntArray:
        """Nanoseconds since the epoch."""
        return self._usual[0]["start_ns"]

    @cached_property
    def length(self) -> IntArray:
        return self._usual[0]["duration_ns"]

    @cached_property
    def activities(self) -> tuple[IntArray, list[str]]:
        """Kineto's kinds of activity. An older torch does not say them: they are told from what it does say."""
        if self.has("activity_type"):
            return self._usual_texts("activity_type")
        # places in the list
        op, annotation, instant, runtime, kernel, device_annotation = range(6)
        activity = np.full(len(self), op, np.int64)
        on_cpu = self.device_type == CPU
        is_annotation = self.numbers("is_user_annotation", otherwise=0) > 0
        if not self.has("is_user_annotation"):
            is_annotation = self.numbers("scope") == 7
        activity[is_annotation] = annotation
        linked = self._linked_of(np.arange(len(self)))
        activity[on_cpu & (linked > 0)] = runtime
        activity[~on_cpu] = kernel
        activity[~on_cpu & is_annotation] = device_annotation
        activity[self.is_memory | self.is_out_of_memory] = instant
        texts = [
            "cpu_op",
            "user_annotation",
            "cpu_instant_event",
            "cuda_runtime",
            "kernel",
            "gpu_user_annotation",
        ]
        return activity, texts

    @cached_property
    def device_type(self) -> IntArray:
        """torch's numbers of kinds of devices. The field is slow to read: not read of events that are the CPU's by their activity."""
        kinds = np.zeros(len(self), np.int64)
        if self.has("activity_type"):
            activity, texts = self.activities
            sure = np.array([text in _ON_CPU for text in texts] or [True])[activity]
            memory = np.flatnonzero(self.is_memory)
            # memory of the CPU has no index of a device
            sure[memory[self.numbers("device_index", memory) < 0]] = True
            rows = np.flatnonzero(~sure)
        else:
            rows = np.arange(len(self))
        if not len(rows):
            return kinds
        number: Table[object] = Table()  # hashing an enum costs less than turning it into a number
        with no_garbage_collection():
            places = np.fromiter(
                map(number.__getitem__, self.values("device_type", rows)), np.int64, len(rows)
            )
        of_place = np.array(
            [int(cast("int", getattr(kind, "value", kind))) for kind in number] or [0], np.int64
        )
        kinds[rows] = of_place[places]
        return kinds

    def is_named(self, *names: str) -> BoolArray:
        """Mask of the events of some names."""
        numbers, texts = self.names
        of_name = np.array([text in names for text in texts] or [False])
        return of_name[numbers]

    @cached_property
    def is_memory(self) -> BoolArray:
        return self.is_named(MEMORY)

    @cached_property
    def is_out_of_memory(self) -> BoolArray:
        return self.is_named(OUT_OF_MEMORY)

    @cached_property
    def is_listed(self) -> BoolArray:
        """Mask of the events that torch lists: allocations and its own marks are not among them."""
        listed = ~self.is_named(*_NEVER_LISTED)
        return listed & self.is_visible

    @property
    def is_visible(self) -> BoolArray:
        """Mask of the events that torch does not hide by a mark."""
        visible: BoolArray = self._usual[0]["is_hidden_event"] == 0
        return visible

    @cached_property
    def is_annotation(self) -> BoolArray:
        activity, texts = self.activities
        marks = np.array([text in ("user_annotation", "gpu_user_annotation") for text in texts] or [False])
        return marks[activity]

    @cached_property
    def is_python(self) -> BoolArray:
        activity, texts = self.activities
        return np.array([text == "python_function" for text in texts] or [False])[activity]

    @cached_property
    def thread(self) -> IntArray:
        """Threads as torch numbers them, from 1."""
        return self._usual[0]["start_thread_id"]

    @cached_property
    def is_async(self) -> BoolArray:
        """Mask of the events that end on another thread, or later than the call that began them."""
        columns, _ = self._usual
        is_async: BoolArray = columns["is_async"] > 0
        is_async |= self.thread != columns["end_thread_id"]
        return is_async

    @cached_property
    def correlation(self) -> IntArray:
        return self._usual[0]["correlation_id"]

    @cached_property
    def linked(self) -> IntArray:
        """Correlation ids of the ops that runtime calls and kernels belong to; 0: none. Ops of the CPU have none."""
        linked = np.zeros(len(self), np.int64)
        activity, texts = self.activities
        sure = np.array([text in _ON_CPU for text in texts] or [True])[activity]
        rows = np.flatnonzero(~sure & ~self.is_memory)
        linked[rows] = self._linked_of(rows)
        return linked

    def _linked_of(self, rows: IntArray) -> IntArray:
        return self.numbers("linked_correlation_id", rows)

    @cached_property
    def stacks(self) -> tuple[IntArray, list[tuple[str, ...]]]:
        """Stacks that events have themselves (not Python calls around them): numbers, -1 for none, and the stacks."""
        table: Table[tuple[str, ...]] = Table()
        if not len(self):
            return np.empty(0, np.int64), []
        with no_garbage_collection():
            stacks = cast("Iterable[list[str]]", self.values("stack"))
            numbers = [table[tuple(stack)] if stack else -1 for stack in stacks]
        return np.array(numbers, np.int64), list(table)

    def interned(self, rows: IntArray, *fields: str) -> tuple[IntArray, list[tuple[object, ...]]]:
        """Fields of rows taken together: numbers, and the distinct tuples of values. For fields that are lists."""
        table: Table[bytes] = Table()
        plain: dict[int, tuple[object, ...]] = {}  # values that marshal does not take, by number
        numbers = np.empty(len(rows), np.int64)
        with no_garbage_collection():
            readers = [self.reader(field) for field in fields]
            for place, event in enumerate(self.chosen(rows)):
                values = tuple([read(event) for read in readers])
                try:
                    number = table[marshal.dumps(cast("tuple[int, ...]", values), 2)]
                except ValueError:
                    number = table[repr(values).encode()]
                    plain[number] = values
                numbers[place] = number
        return numbers, [plain[n] if n in plain else marshal.loads(key) for n, key in enumerate(table)]  # noqa: S302


def _integers(read: Reader, events: Sequence[KinetoEvent]) -> IntArray:
    """A field of events as a column. torch's numbers have 64 bits and may be unsigned: they keep their bits."""
    try:
        return np.fromiter(cast("Iterable[int]", map(read, events)), np.int64, len(events))
    except OverflowError:
        values = [cast("int", read(event)) for event in events]
        return np.array([v - 2**64 if v >= 2**63 else v for v in values], np.int64)
