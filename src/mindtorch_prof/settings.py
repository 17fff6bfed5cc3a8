"""Settings of a trace: how it was recorded, by which process, and what its file says of itself. Plain data."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import NoReturn, TypeVar

from .json_types import JSONScalar, JSONValue

CAPTURE_OUTPUT = "ASCEND_PROFILER_OUTPUT"  # the folder of an Ascend capture that holds what users read
# the names of settings at the top of files
EVENT_COST = "event_cost_ns"
NUM_THREADS = "recorded_num_threads"
DEFAULT_DTYPE = "recorded_default_dtype"
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class FrozenDict(dict[_Key, _Value]):
    """A dict that cannot be changed."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("the settings of a trace cannot be changed; dataclasses.replace makes a changed copy")

    __setitem__ = __delitem__ = update = setdefault = pop = popitem = clear = __ior__ = _refuse

    def __reduce__(self) -> tuple[type[FrozenDict[_Key, _Value]], tuple[dict[_Key, _Value]]]:
        return FrozenDict, (dict(self),)


@dataclass(frozen=True)
class Settings:
    """Everything about a trace that is not an event. A value that is not known has its default."""

    # what was recorded
    record_shapes: bool = False
    profile_memory: bool = False
    with_stack: bool = False
    with_flops: bool = False
    with_modules: bool = False
    all_threads: bool = False
    verbose: bool = False  # the stack of each op is written into trace files

    # how it is shown
    python_functions: bool = False  # Python calls are rows of the trace itself
    concrete_inputs: bool = True  # events show the values of lists among their inputs
    forward_backward_links: bool = True  # trace files hold arrows from forward ops to their backward nodes
    event_metadata: bool = False  # events show their row as metadata
    overload_names: bool = False  # events show which overload of an op was called

    # the process that recorded it
    trace_id: str = ""
    host_name: str = ""
    pid: int = 0
    thread: int = 0  # identity of the main thread
    # thread's identity -> (the system's number, name)
    threads: Mapping[int, tuple[int, str]] = field(default_factory=FrozenDict)
    # thread's identity -> pid, where there are several processes
    thread_pids: Mapping[int, JSONScalar] = field(default_factory=FrozenDict)
    processes: Mapping[JSONScalar, str] = field(default_factory=FrozenDict)  # pid -> name
    allocated_before: int = 0  # bytes alive that earlier recordings of the process saw allocated
    numbered_after: int = 0  # events of the process that were recorded before this trace
    # nanoseconds that recording an event added to the program, on average; None: not known
    event_cost_ns: float | None = None
    # when the recording began: the threads of a kernel (0: not known), and the dtype of new tensors of floating-point numbers
    num_threads: int = 0
    default_dtype: str = "float32"
    module_call: tuple[str, int, str] | None = None  # file, line and name of the function that calls modules
    # what the program added while it was recorded
    added_metadata: Mapping[str, JSONValue] = field(default_factory=FrozenDict)

    # of files
    source: str = ""  # path; empty: recorded in this process, or read from an open file
    from_file: bool = False  # times and thread names are a file's, and are written again as they are
    foreign: bool = False  # written by another program than this package
    device: str | None = None  # "cuda", "xpu" ...; None: no device but the CPU
    device_properties: tuple[JSONValue, ...] = ()
    rank: int | None = None
    world_size: int | None = None
    distributed: Mapping[str, JSONValue] = field(default_factory=FrozenDict)  # the file's distributedInfo
    metadata: Mapping[str, JSONValue] = field(
        default_factory=FrozenDict
    )  # further keys at the top of the file

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value.__class__ is dict:
                object.__setattr__(self, each.name, FrozenDict(value))

    @property
    def source_name(self) -> str:
        """The name of the file; of an Ascend capture, whose files have the same names everywhere, that of its folder. Empty: there is none."""
        folder, name = os.path.split(self.source)
        if os.path.basename(folder) == CAPTURE_OUTPUT:
            return os.path.basename(os.path.dirname(os.path.abspath(folder))) or name
        return name

    @property
    def shapes_recorded(self) -> bool:
        """Whether events have inputs."""
        return self.record_shapes or self.with_flops

    @property
    def tensors_tracked(self) -> bool:
        """Whether tensors and their memory have ids: that needs both inputs and allocations."""
        return self.record_shapes and self.profile_memory
