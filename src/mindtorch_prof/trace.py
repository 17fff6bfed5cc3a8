"""The Trace: what was recorded, as columns. Live recordings and loaded files both become one; nothing after it can tell which.

A Trace never changes: its columns are read-only, and everything derived from it (tree, averages, events) is computed beside it.
A step that changes a trace is a function from a Trace to another.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from .arrays import BoolArray, FloatArray, IntArray
from .inputs import Inputs, TensorInput
from .json_types import JSONValue
from .settings import Settings

# kinds of events
OP, NODE, ENGINE, ANNOTATION, PYTHON, KERNEL, RUNTIME = range(7)

# kinds of what happens on a device; a part is a task inside a collective, whose own row counts
DEVICE_KERNEL, DEVICE_COPY, DEVICE_SET, DEVICE_ANNOTATION, DEVICE_SYNC, DEVICE_PART = range(6)

# names of events that torch records for its own use and does not show
HIDDEN_EVENTS = frozenset(
    {
        "profiler::_record_function_enter",
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit",
        "aten::is_leaf",
        "aten::output_nr",
        "aten::_version",
    }
)

# the arguments of synthetic events in files, see `Trace.synthetic`: how many levels below the recorded event, and 1 if it allocates
SYNTHETIC, ALLOCATES = "Synthetic", "Allocates"

# torch's RecordScope values
FUNCTION_SCOPE, BACKWARD_SCOPE, USER_SCOPE = 0, 1, 7


class Columns:
    """Base of the dataclasses whose fields are arrays: makes the arrays read-only."""

    def __post_init__(self) -> None:
        for name, value in tuple(vars(self).items()):
            if isinstance(value, np.ndarray) and value.flags.writeable:
                value = value.view()  # the caller may go on writing to its own array
                value.flags.writeable = False
                object.__setattr__(self, name, value)

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self.__post_init__()


@dataclass(frozen=True)
class Memory(Columns):
    """Allocations (positive bytes) and frees (negative bytes), in order of time."""

    time_ns: IntArray  # int64
    nbytes: IntArray  # int64, signed
    address: IntArray  # int64, what tells memory apart: an address, or an id
    thread: IntArray  # int64, a thread's identity
    total: IntArray  # int64, bytes alive that were allocated in this recording
    # parameters and gradients of the modules that were called, at the end: (address, bytes, whether it is a gradient)
    of_modules: tuple[tuple[int, int, bool], ...] = ()
    device: IntArray | None = None  # int64, the device's number, -1: the CPU; None: all of it is the CPU's

    def __len__(self) -> int:
        return len(self.time_ns)

    @property
    def on_device(self) -> BoolArray:
        """Mask of the rows that are about a device other than the CPU."""
        return np.zeros(len(self.time_ns), bool) if self.device is None else self.device >= 0

    @staticmethod
    def none() -> Memory:
        empty = np.empty(0, np.int64)
        return Memory(empty, empty, empty, empty, empty)


@dataclass(frozen=True)
class Frames(Columns):
    """Calls of Python functions, in the order of (thread, start): a caller stands before the calls it makes."""

    names: tuple[str, ...]  # file(line): function, or nn.Module: class_number
    name: IntArray  # int32, into `names`
    start_ns: IntArray  # int64
    end_ns: IntArray  # int64
    thread: IntArray  # int64, a thread's identity
    parent: IntArray  # int64, row of the caller; -1: none
    module: IntArray  # int64, number of the module among those of its class; -1: no module's call
    line: IntArray | None = None  # int64, the calling line in the caller; 0: not known; None: no line is

    @staticmethod
    def none() -> Frames:
        empty = np.empty(0, np.int64)
        return Frames((), empty, empty, empty, empty, empty, empty)

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True)
class Device(Columns):
    """What devices did: kernels, copies, fills, and annotations around them; in the order of (device, stream, start)."""

    names: tuple[str, ...]
    name: IntArray  # int32, into `names`
    start_ns: IntArray  # int64
    end_ns: IntArray  # int64
    device: IntArray  # int64, the device's number
    stream: IntArray  # int64
    kind: IntArray  # int8, one of the DEVICE_ kinds above
    correlation: IntArray  # int64, correlation id, shared with the runtime call that launched it; -1: none
    launch: IntArray  # int64, row of that runtime call in the Trace; -1: not in the trace
    op: IntArray  # int64, row of the op (or annotation) in the Trace that it is charged to; -1: none
    extra: IntArray  # int32, into `extra_table`; -1: no further arguments
    extra_table: Sequence[Mapping[str, JSONValue]] = ()  # grid, block, bytes ... as the file words them

    @staticmethod
    def none() -> Device:
        empty = np.empty(0, np.int64)
        return Device((), empty, empty, empty, empty, empty, empty, empty, empty, empty, empty)

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def works(self) -> BoolArray:
        """Mask of the rows that keep a device busy: annotations, waiting and parts of collectives do not."""
        return self.kind < DEVICE_ANNOTATION

    def moved(self, new_row: IntArray) -> Device:
        """The same work, where the events of the Trace have other rows. new_row: by row before."""
        if not len(self):
            return self
        return replace(
            self,
            launch=np.where(self.launch >= 0, new_row[np.maximum(self.launch, 0)], -1),
            op=np.where(self.op >= 0, new_row[np.maximum(self.op, 0)], -1),
        )


@dataclass(frozen=True)
class Counters(Columns):
    """Values over time that a file holds beside its events."""

    names: tuple[str, ...]  # counter, or counter: series
    name: IntArray  # int32, into `names`
    time_ns: IntArray  # int64
    value: FloatArray  # float64

    @staticmethod
    def none() -> Counters:
        empty = np.empty(0, np.int64)
        return Counters((), empty, empty, np.empty(0, np.float64))

    def __len__(self) -> int:
        return len(self.time_ns)


NumberedTensor = tuple[int, TensorInput]  # a tensor's number, and what it is like


@dataclass(frozen=True)
class ParameterOwner:
    """A module or an optimizer, with the tensors that it had when it was first called."""

    kind: str  # "module" or "optimizer"
    class_name: str
    class_ptr: int
    self_ptr: int
    # (name, parameter, gradient or None, states: (name, tensor) of each)
    parameters: tuple[
        tuple[str, NumberedTensor, NumberedTensor | None, tuple[tuple[str, NumberedTensor], ...]], ...
    ]
    updates_together: bool = False  # an optimizer that updates all parameters at once (foreach, fused)


@dataclass(frozen=True)
class TensorIds(Columns):
    """Which tensors and which memory were recorded. Numbers are never used twice, however often an address is."""

    first: IntArray  # int64 by event: where its tensors begin in `tensor`; -1: not recorded
    tensor: IntArray  # int64, numbers of tensors, one per tensor-like argument; 0: no tensor was passed
    # int64, rows (tensor's number, its memory's number, address of the memory); other tensors are their own memory
    storages: IntArray
    links: IntArray  # int64, rows (number, number): one tensor, before and after it got other memory
    memory: IntArray  # int64 by row of Memory: the memory's number
    owners: tuple[ParameterOwner, ...] = ()
    # int64 by row of Frames, into `owners`; -1: none
    frame: IntArray = field(default_factory=lambda: np.empty(0, np.int64))

    @staticmethod
    def none() -> TensorIds:
        empty = np.empty(0, np.int64)
        return TensorIds(empty, empty, empty.reshape(0, 3), empty.reshape(0, 2), empty)

    def __bool__(self) -> bool:
        return bool(len(self.first))


@dataclass(frozen=True)
class Health:
    """What is missing from a trace or was repaired in it; all zero means complete."""

    dropped: int = 0
    unfinished: int = 0
    repaired: int = 0
    notes: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()  # what this kind of file does not hold, or was not recorded; no damage
    remarks: tuple[str, ...] = ()  # how recording disturbed the program; nothing is missing

    def __bool__(self) -> bool:
        return not (self.dropped or self.unfinished or self.repaired or self.notes)

    def line(self) -> str:
        """One line for people; empty when the trace is complete."""
        parts = [
            f"{count:,} {label}"
            for count, label in (
                (self.dropped, "dropped"),
                (self.unfinished, "unfinished"),
                (self.repaired, "repaired"),
            )
            if count
        ]
        return "; ".join([*parts, *self.notes, *self.remarks])


@dataclass(frozen=True)
class Trace(Columns):
    """Events, one array per column, sorted by (thread, start, longest first): a parent stands before its children."""

    names: tuple[str, ...]  # the string table
    overloads: tuple[str, ...]  # overload name by name id, "" where there is none
    name: IntArray  # int32, into `names`
    start_ns: IntArray  # int64
    end_ns: IntArray  # int64
    thread: IntArray  # int64, a thread's identity
    kind: IntArray  # int8, one of the kinds above
    scope: IntArray  # int8, torch's RecordScope
    sequence: IntArray  # int64, -1: none
    forward_thread: IntArray  # int64, of backward nodes; 0: none
    inputs: IntArray  # int32, into `input_table`; -1: not recorded
    flops: IntArray  # int64
    stack: IntArray  # int32, into `stacks`; -1: not recorded
    input_table: tuple[Inputs, ...] = ()
    stacks: Sequence[tuple[str, ...]] = ()  # innermost frame first
    memory: Memory = field(default_factory=Memory.none)
    frames: Frames = field(default_factory=Frames.none)
    tensor_ids: TensorIds = field(default_factory=TensorIds.none)
    device: Device = field(default_factory=Device.none)
    counters: Counters = field(default_factory=Counters.none)
    # int64, an event's number in its file; None: its row + 1 + the number of events recorded before the trace
    external: IntArray | None = None
    extra: IntArray | None = None  # int32, into `extra_table`, -1: none; None: of no event
    extra_table: Sequence[Mapping[str, JSONValue]] = ()  # arguments that have no column: collectives ...
    health: Health = Health()
    origin_ns: int = 0  # time 0 of start_ns, in nanoseconds since the epoch
    window_ns: tuple[int, int] = (0, 0)  # when recording began and ended
    # int64, an event's node in an execution trace recorded beside it; None: there is no such trace
    execution_node: IntArray | None = None
    # int8, 0: the event was recorded; else it is synthetic: an op that torch would show inside the last recorded event before it, where
    # this program ran one kernel. Its size is how many levels below that event it stands (1: directly inside); it starts and ends when
    # that event starts. Negative: what that event allocated is shown as this op's. None: all events were recorded.
    synthetic: IntArray | None = None
    settings: Settings = field(default_factory=Settings)

    def __len__(self) -> int:
        return len(self.start_ns)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the columns as they are; `mindtorch_prof.load` opens the file in milliseconds, however large it is."""
        from .native_file import write_native  # which imports this module

        write_native(self, path)

    @property
    def n_synthetic(self) -> int:
        """How many events are synthetic."""
        return 0 if self.synthetic is None else int(np.count_nonzero(self.synthetic))

    @property
    def is_recorded(self) -> BoolArray:
        """Mask of the events that were recorded; the others are synthetic."""
        return np.ones(len(self), bool) if self.synthetic is None else self.synthetic == 0

    @property
    def shown_overloads(self) -> tuple[str, ...]:
        """`overloads`, as events show them: empty texts unless the settings say otherwise."""
        return self.overloads if self.settings.overload_names else ("",) * len(self.overloads)
