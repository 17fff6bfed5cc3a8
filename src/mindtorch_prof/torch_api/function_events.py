"""Events and averages as torch's classes: FunctionEvent and FunctionEventAvg. Fields in, torch's attributes and texts out."""

from __future__ import annotations

import bisect
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from ..averages import Spread
from ..number_formats import format_time
from .enums import DeviceType
from .event_metadata import EventMetadata, event_metadata

# names of events that stand for memory outside all other events
MEMORY_EVENT_NAME = "[memory]"
OUT_OF_MEMORY_EVENT_NAME = "[OutOfMemory]"


class Kernel(NamedTuple):
    """A device kernel that an op launched; its duration is in microseconds."""

    name: str
    device: int
    duration: float


class StringTable(defaultdict[str, str]):
    """Names as they are shown. There is no C++ here, so a name is shown as it is."""

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


class Interval:
    """A span of time in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """Its length."""
        return self.end - self.start


class _MemoryEvent(Protocol):
    def start_ns(self) -> int: ...


MemoryRecord = tuple[_MemoryEvent, bool]  # an allocation or a free, and whether an event contains it


class MemRecordsAcc:
    """Memory records, looked up by interval."""

    def __init__(self, mem_records: Iterable[MemoryRecord]) -> None:
        self._mem_records = sorted(mem_records, key=lambda record: record[0].start_ns())
        self._start_nses = [record[0].start_ns() for record in self._mem_records]

    def in_interval(self, start_ns: int, end_ns: int) -> Iterator[MemoryRecord]:
        """The records between two times."""
        first = bisect.bisect_left(self._start_nses, start_ns)
        last = bisect.bisect_right(self._start_nses, end_ns)
        yield from self._mem_records[first:last]


def _attr_formatter(name: str) -> property:
    return property(lambda self: format_time(getattr(self, name)))


def _deprecated(old: str, new: str) -> property:
    """A property under an old name that warns as torch does."""

    def get(self: object) -> object:
        warnings.warn(f"`{old}` is deprecated. Use `{new}` instead.", FutureWarning, stacklevel=2)
        return getattr(self, new)

    get.__doc__ = f"The old name of `{new}`."
    return property(get)


class FormattedTimesMixin:
    """Times as text, and times per call."""

    count: int
    synthetic_count = 0  # how many of `count` are synthetic: calls that have no time, see `Trace.synthetic`
    cpu_time_total: float
    device_time_total: float

    # the same times as text
    cpu_time_str = _attr_formatter("cpu_time")
    device_time_str = _attr_formatter("device_time")
    cpu_time_total_str = _attr_formatter("cpu_time_total")
    device_time_total_str = _attr_formatter("device_time_total")
    self_cpu_time_total_str = _attr_formatter("self_cpu_time_total")
    self_device_time_total_str = _attr_formatter("self_device_time_total")

    @property
    def cpu_time(self) -> float:
        return self._per_call(self.cpu_time_total)

    @property
    def device_time(self) -> float:
        return self._per_call(self.device_time_total)

    def _per_call(self, total: float) -> float:
        calls = self.count - self.synthetic_count
        return 0.0 if calls == 0 else 1.0 * total / calls

    @property
    def cuda_time(self) -> float:
        """The old name of `device_time`."""
        warnings.warn(
            "`cuda_time` is deprecated, please use `device_time` instead.", FutureWarning, stacklevel=2
        )
        return self.device_time


class FunctionEvent(FormattedTimesMixin):
    """One event: an op, a node of the backward pass, an annotation."""

    is_synthetic = False  # whether torch would show this event and it was not recorded, see `Trace.synthetic`

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        overload_name: str | None = None,
        fwd_thread: int | None = None,
        input_shapes: list[list[int]] | None = None,
        stack: list[str] | None = None,
        scope: int = 0,
        use_device: str | None = None,
        cpu_memory_usage: int = 0,
        device_memory_usage: int = 0,
        is_async: bool = False,
        is_remote: bool = False,
        sequence_nr: int = -1,
        node_id: int = -1,
        device_type: DeviceType = DeviceType.CPU,
        device_index: int = 0,
        device_resource_id: int | None = None,
        is_legacy: bool = False,
        flops: int | None = None,
        trace_name: str | None = None,
        concrete_inputs: list[object] | None = None,
        kwinputs: dict[str, object] | None = None,
        is_user_annotation: bool = False,
        is_python_function: bool = False,
        activity_type: str | None = None,
        metadata_json: str | None = None,
        flow_id: int | None = None,
        flow_type: int | None = None,
        flow_start: bool | None = None,
        external_id: int = 0,
        linked_correlation_id: int = 0,
        extra_meta: dict[str, str] | None = None,
        structured_input_shapes: list[list[object]] | None = None,
        structured_input_strides: list[list[object]] | None = None,
        input_dtypes: list[str] | None = None,
        python_id: int = -1,
        python_parent_id: int = -1,
        python_module_id: int = -1,
    ) -> None:
        self.id = id
        self.node_id = node_id
        self.name = name
        self.overload_name = overload_name
        self.trace_name = trace_name
        self.time_range = Interval(start_us, end_us)
        self.thread = thread
        self.fwd_thread = fwd_thread
        self.kernels: list[Kernel] = []
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.input_shapes = input_shapes
        self.structured_input_shapes = structured_input_shapes
        self.structured_input_strides = structured_input_strides
        self.input_dtypes = input_dtypes
        self.concrete_inputs = concrete_inputs
        self.kwinputs = kwinputs
        self.stack = stack
        self.scope = scope
        self.use_device = use_device
        self.cpu_memory_usage = cpu_memory_usage
        self.device_memory_usage = device_memory_usage
        self.is_async = is_async
        self.is_remote = is_remote
        self.sequence_nr = sequence_nr
        self.device_type = device_type
        self.device_index = device_index
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.is_legacy = is_legacy
        self.flops = flops
        self.is_user_annotation = is_user_annotation
        self.is_python_function = is_python_function
        self.self_cpu_percent: float | str = -1
        self.total_cpu_percent: float | str = -1
        self.total_device_percent: float | str = -1
        self.activity_type = activity_type
        self._metadata_json = metadata_json
        self.flow_id = flow_id
        self.flow_type = flow_type
        self.flow_start = flow_start
        self.external_id = external_id
        self.linked_correlation_id = linked_correlation_id
        self.event_metadata: EventMetadata | None = event_metadata(extra_meta)
        self.python_id = python_id
        self.python_parent_id = python_parent_id
        self.python_module_id = python_module_id

    @property
    def metadata_json(self) -> str | None:
        """The old name of `event_metadata`: the same as text."""
        warnings.warn(
            "`metadata_json` is deprecated. Use `event_metadata` instead.", FutureWarning, stacklevel=2
        )
        return self._metadata_json

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Add a device kernel that this op launched."""
        if self.device_type != DeviceType.CPU:
            raise AssertionError("Expected device_type to be CPU")
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Add an event inside this one."""
        self._check_relative("child", child)
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Set the event around this one."""
        self._check_relative("parent", parent)
        self.cpu_parent = parent

    def _check_relative(self, role: str, other: object) -> None:
        if self.device_type != DeviceType.CPU:
            raise AssertionError("Expected device_type to be CPU")
        if not isinstance(other, FunctionEvent):
            raise AssertionError(f"Expected {role} to be a FunctionEvent")
        if other.device_type != DeviceType.CPU:
            raise AssertionError(f"Expected {role} device_type to be CPU")

    @property
    def self_cpu_memory_usage(self) -> int:
        if self.is_async or self.device_type != DeviceType.CPU:
            return 0
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        if self.is_async or self.device_type != DeviceType.CPU:
            return 0
        return self.device_memory_usage - sum(child.device_memory_usage for child in self.cpu_children)

    self_cuda_memory_usage = _deprecated("self_cuda_memory_usage", "self_device_memory_usage")
    cuda_time_total = _deprecated("cuda_time_total", "device_time_total")
    self_cuda_time_total = _deprecated("self_cuda_time_total", "self_device_time_total")

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]  # computed, not stored
        return self.time_range.elapsed_us() if self.device_type == DeviceType.CPU else 0

    @property
    def self_cpu_time_total(self) -> float:
        if self.is_async or self.device_type != DeviceType.CPU:
            return 0
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def device_time_total(self) -> float:  # type: ignore[override]  # computed, not stored
        if self.is_async or not self.use_device:
            return 0
        if self.device_type == DeviceType.CPU:
            if not self.is_legacy:
                return sum(kernel.duration for kernel in self.kernels) + sum(
                    child.device_time_total for child in self.cpu_children
                )
            return sum(kernel.duration for kernel in self.kernels)
        return self.time_range.elapsed_us()

    @property
    def self_device_time_total(self) -> float:
        if self.is_async or not self.use_device:
            return 0
        if self.device_type == DeviceType.CPU:
            return self.device_time_total - sum(child.device_time_total for child in self.cpu_children)
        return self.device_time_total

    @property
    def key(self) -> str:
        return self.name

    def __repr__(self) -> str:
        device = self.use_device or "None"
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} device_type={self.device_type} "
            f"node_id={self.node_id} cpu_time={self.cpu_time_str} start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} {device}_time={self.device_time_str} name={self.name} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"{device}_memory_usage={self.device_memory_usage} is_async={self.is_async} is_remote={self.is_remote} seq_nr={self.sequence_nr} "
            f"is_legacy={self.is_legacy}>"
        )


_SUMS = (
    "cpu_time_total",
    "device_time_total",
    "self_cpu_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "device_memory_usage",
    "self_cpu_memory_usage",
    "self_device_memory_usage",
    "count",
    "synthetic_count",
)
_SHARED = (
    "key",
    "node_id",
    "is_async",
    "is_remote",
    "cpu_parent",
    "cpu_children",
    "overload_name",
    "input_shapes",
    "stack",
    "scope",
    "device_type",
    "is_legacy",
    "use_device",
    "is_user_annotation",
)


class FunctionEventAvg(FormattedTimesMixin):
    """A row of averages over the events of one group."""

    is_user_annotation = False
    # of recordings: a function that gives the spreads of all rows, and this row's number
    _spread: tuple[Callable[[], Sequence[Spread | None]], int] | None = None

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.node_id = 0
        self.is_async = False
        self.is_remote = False
        self.use_device: str | None = None
        self.cpu_time_total: float = 0
        self.device_time_total: float = 0
        self.self_cpu_time_total: float = 0
        self.self_device_time_total: float = 0
        self.input_shapes: list[list[int]] | str | None = None  # "": not grouped by shapes
        self.overload_name: str | None = None
        self.stack: list[str] | None = None
        self.scope: int | None = None
        self.cpu_memory_usage = 0
        self.device_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.self_device_memory_usage = 0
        self.cpu_children: list[FunctionEvent] | None = None
        self.cpu_parent: FunctionEvent | None = None
        self.device_type = DeviceType.CPU
        self.is_legacy = False
        self.flops: int = 0

    cuda_time_total = _deprecated("cuda_time_total", "device_time_total")
    self_cuda_time_total = _deprecated("self_cuda_time_total", "self_device_time_total")
    self_cuda_memory_usage = _deprecated("self_cuda_memory_usage", "self_device_memory_usage")

    @property
    def stats(self) -> Spread | None:
        """min, p50, p95, max, std and the first of the events' times, in microseconds; computed when first read.
        None where the events are not known: rows that a program adds up itself, and [memory]."""
        if self._spread is None:
            return None
        spreads, number = self._spread
        return spreads()[number]

    def add(self, other: EventOrAverage) -> FunctionEventAvg:
        """Add an event, or another row of the same key."""
        if self.key is None:
            for name in _SHARED:
                setattr(self, name, getattr(other, name))
        if not isinstance(other, (FunctionEvent, FunctionEventAvg)):
            raise AssertionError("Expected other to be a FunctionEvent or FunctionEventAvg")
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        self._spread = None
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.flops = (self.flops or 0) + (other.flops or 0)
        return self

    def __iadd__(self, other: EventOrAverage) -> FunctionEventAvg:
        return self.add(other)

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str}  "
            f"self_{device}_time={self.self_device_time_total_str} {device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>"
        )


EventOrAverage = FunctionEvent | FunctionEventAvg
