"""The Trace: what was recorded, as columns. Live recordings and loaded files both become one; nothing after it knows which.

Imports NumPy only. A Trace never changes once made: everything derived from it (tree, averages, events) is computed beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# kinds of events
OP, NODE, ENGINE, ANNOTATION, PYTHON, KERNEL, RUNTIME = range(7)

# kinds of what happens on a device
DEVICE_KERNEL, DEVICE_COPY, DEVICE_SET, DEVICE_ANNOTATION, DEVICE_SYNC = range(5)

# torch's RecordScope values
FUNCTION_SCOPE, BACKWARD_SCOPE, USER_SCOPE = 0, 1, 7


@dataclass(frozen=True)
class Memory:
    """Bytes taken (positive) and given back (negative), in order of time."""

    time_ns: np.ndarray  # int64
    nbytes: np.ndarray  # int64, signed
    address: np.ndarray  # int64, what tells memory apart: an address, or a number of its own
    thread: np.ndarray  # int64, a thread's identity
    total: np.ndarray  # int64, bytes alive that were taken in this recording
    # what the modules that were met hold at the end: (address, bytes, whether it is a gradient)
    held: tuple[tuple[int, int, bool], ...] = ()
    device: np.ndarray | None = None  # int64, the device's number, -1: the CPU; None: all of it is the CPU's

    def __len__(self) -> int:
        return len(self.time_ns)

    @property
    def on_device(self) -> np.ndarray:
        """Mask of what was taken on a device other than the CPU."""
        return np.zeros(len(self.time_ns), bool) if self.device is None else self.device >= 0

    @staticmethod
    def none() -> Memory:
        empty = np.empty(0, np.int64)
        return Memory(empty, empty, empty, empty, empty)


@dataclass(frozen=True)
class Frames:
    """Calls of Python functions, in the order of (thread, start): a caller stands before what it calls."""

    names: tuple[str, ...]  # file(line): function, or nn.Module: class_number
    name: np.ndarray  # int32, into `names`
    start_ns: np.ndarray  # int64
    end_ns: np.ndarray  # int64
    thread: np.ndarray  # int64, a thread's identity
    parent: np.ndarray  # int64, row of the caller; -1: none
    module: np.ndarray  # int64, number of the module among those of its class; -1: no module's call
    line: np.ndarray | None = (
        None  # int64, the line of the caller on which it was made; 0: not known; None: none is
    )

    @staticmethod
    def none() -> Frames:
        empty = np.empty(0, np.int64)
        return Frames((), empty, empty, empty, empty, empty, empty)

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True)
class Device:
    """What devices did: kernels, copies, fills, and annotations that lie around them; in the order of (device, stream, start)."""

    names: tuple[str, ...]
    name: np.ndarray  # int32, into `names`
    start_ns: np.ndarray  # int64
    end_ns: np.ndarray  # int64
    device: np.ndarray  # int64, the device's number
    stream: np.ndarray  # int64
    kind: np.ndarray  # int8, one of the DEVICE_ kinds above
    correlation: np.ndarray  # int64, shared with the runtime call that launched it; -1: none
    launch: np.ndarray  # int64, row of that runtime call in the Trace; -1: not in the trace
    op: np.ndarray  # int64, row of the op (or annotation) in the Trace that it is charged to; -1: none
    extra: np.ndarray  # int32, into `extra_table`; -1: nothing further is known
    extra_table: Sequence[dict[str, Any]] = ()  # grid, block, bytes ... as the file words them

    @staticmethod
    def none() -> Device:
        empty = np.empty(0, np.int64)
        return Device((), empty, empty, empty, empty, empty, empty, empty, empty, empty, empty)

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def works(self) -> np.ndarray:
        """Mask of the rows that keep a device busy: annotations and waiting do not."""
        return self.kind < DEVICE_ANNOTATION


@dataclass(frozen=True)
class Counters:
    """Values over time that a file holds beside its events."""

    names: tuple[str, ...]  # counter, or counter: series
    name: np.ndarray  # int32, into `names`
    time_ns: np.ndarray  # int64
    value: np.ndarray  # float64

    @staticmethod
    def none() -> Counters:
        empty = np.empty(0, np.int64)
        return Counters((), empty, empty, np.empty(0, np.float64))

    def __len__(self) -> int:
        return len(self.time_ns)


@dataclass(frozen=True)
class Held:
    """A module or an optimizer that was met, with the tensors it held when it was met first. A tensor is (its number, shape, strides in
    bytes, NumPy's type number)."""

    kind: str  # "module" or "optimizer"
    class_name: str
    class_ptr: int
    self_ptr: int
    # (name, parameter, gradient or None, states: (name, tensor) of each)
    parameters: tuple[tuple[str, tuple, tuple | None, tuple[tuple[str, tuple], ...]], ...]
    together: bool = False  # an optimizer that was asked to update all parameters at once (foreach, fused)


@dataclass(frozen=True)
class Identities:
    """Which tensors and which memory were met. Numbers are never used twice, however often an address is."""

    first: np.ndarray  # int64 by event: where its tensors begin in `tensor`; -1: not recorded
    tensor: np.ndarray  # int64, numbers of tensors, one a tensor-like argument; 0: no tensor stood there
    storages: np.ndarray  # int64, rows (tensor's number, its memory's number, address of the memory); others are their own memory
    links: np.ndarray  # int64, rows (number, number): one tensor, before and after it got other memory
    memory: np.ndarray  # int64 by row of Memory: the memory's number
    held: tuple[Held, ...] = ()
    frame: np.ndarray = field(
        default_factory=lambda: np.empty(0, np.int64)
    )  # int64 by row of Frames, into `held`; -1: none

    @staticmethod
    def none() -> Identities:
        empty = np.empty(0, np.int64)
        return Identities(empty, empty, empty.reshape(0, 3), empty.reshape(0, 2), empty)

    def __bool__(self) -> bool:
        return bool(len(self.first))


@dataclass(frozen=True)
class Health:
    """What is missing from a trace or was repaired in it; all zero means complete."""

    dropped: int = 0
    unfinished: int = 0
    repaired: int = 0
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return not (self.dropped or self.unfinished or self.repaired or self.notes)

    def line(self) -> str:
        """One line for people; empty when the trace is complete."""
        parts = [
            f"{n:,} {what}"
            for n, what in (
                (self.dropped, "dropped"),
                (self.unfinished, "unfinished"),
                (self.repaired, "repaired"),
            )
            if n
        ]
        return "; ".join([*parts, *self.notes])


@dataclass(frozen=True)
class Trace:
    """Events, one array a column, sorted by (thread, start, longest first): a parent stands before its children."""

    names: tuple[str, ...]  # the string table
    overloads: tuple[str, ...]  # overload name by name id, "" where there is none
    name: np.ndarray  # int32, into `names`
    start_ns: np.ndarray  # int64
    end_ns: np.ndarray  # int64
    thread: np.ndarray  # int64, a thread's identity
    kind: np.ndarray  # int8, one of the kinds above
    scope: np.ndarray  # int8, torch's RecordScope
    sequence: np.ndarray  # int64, -1: none
    forward_thread: np.ndarray  # int64, of backward nodes; 0: none
    inputs: np.ndarray  # int32, into `input_table`; -1: not recorded
    flops: np.ndarray  # int64
    stack: np.ndarray  # int32, into `stacks`; -1: not recorded
    input_table: tuple[Any, ...] = ()  # what went into an event: tuples of Input
    stacks: Sequence[tuple[str, ...]] = ()  # innermost frame first
    memory: Memory = field(default_factory=Memory.none)
    frames: Frames = field(default_factory=Frames.none)
    identities: Identities = field(default_factory=Identities.none)
    device: Device = field(default_factory=Device.none)
    counters: Counters = field(default_factory=Counters.none)
    external: np.ndarray | None = (
        None  # int64, an event's number in its file; None: its row and 1, and those recorded before
    )
    extra: np.ndarray | None = (
        None  # int32, into `extra_table`, -1: none; None: nothing further is known of any event
    )
    extra_table: Sequence[dict[str, Any]] = ()  # arguments that have no column: collectives, a user's own ...
    health: Health = Health()
    origin_ns: int = 0  # time 0 of start_ns, in nanoseconds since the epoch
    window_ns: tuple[int, int] = (0, 0)  # when recording began and ended
    # record_shapes, with_stack, profile_memory, with_flops, with_modules, pid, trace_id, host_name;
    # thread: identity of the main one; threads: identity -> (the system's number, name).
    # Of files also: source (path), device ("cuda", "xpu" ...; absent: no device), device_properties, rank, world_size,
    # distributed (distributedInfo), processes: pid -> name, thread_pids: identity -> pid (where there are several),
    # metadata: all further keys at the top of the file
    settings: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.start_ns)
