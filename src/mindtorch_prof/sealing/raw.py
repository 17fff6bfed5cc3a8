"""A recording before it is sealed: rows of integers and the tables that explain them, as plain data.

The recorder of a running program fills a `RawRecording` from its buffers; `mindtorch_prof.load.spill` fills one from files. `seal` cannot
tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from ..arrays import IntArray
from ..inputs import Inputs
from ..settings import Settings
from ..trace import Health, ParameterOwner
from .logs import Logs

RANGES = 1 << 40  # keys from here on are annotations and nodes, below they are ops
VARIANTS = 1 << 30  # numbers of inputs from here on are those that torch shows for calls by its own code

# In the log of Python calls: a return instead of a call. Other numbers are those of functions.
RETURN = 0
# Kinds of functions: shown; hidden; hidden if the nearest caller of another kind is hidden; hidden, but what it calls is shown.
SHOWN_KIND, HIDDEN_KIND, LIBRARY_KIND, TRANSPARENT_KIND = range(4)


class KeyEntry(NamedTuple):
    """What all events with one key have in common."""

    name: str
    overload: str
    kind: int
    scope: int
    forward_thread: int
    sequenced: bool  # whether a sequence number is shown


class FunctionNames(Protocol):
    """The functions of a recording, by number."""

    def names(self) -> tuple[tuple[str, ...], IntArray]:
        """The names that are shown, and the modules' numbers, -1 for functions."""

    def are_c_functions(self) -> np.ndarray:
        """Whether each is a function written in C."""

    def kinds(self) -> IntArray:
        """The kind of each."""

    def lines_of(self, number: int) -> tuple[IntArray, IntArray] | None:
        """Bytecode offsets at which lines of a function begin, and those lines; None: not known."""


class InputRules(Protocol):
    """Which inputs torch shows for an op that its own code calls."""

    def depends_on_caller(self) -> Sequence[bool]:
        """By number of inputs: whether the caller matters."""

    def shown_for(self, inputs: int, caller: str, callers_inputs: int) -> int:
        """The number of the inputs that are shown for a call by an op or a node. callers_inputs: their number, -1: not recorded."""

    def variants(self) -> Sequence[Inputs]:
        """The inputs whose numbers begin with VARIANTS."""


@dataclass
class TensorTables:
    """What tells tensors and their memory apart, besides the logs `storages` (rows of a tensor, its storage (0: none) and its address
    (0: another row has it)), `earlier_ids` (rows of an allocation and the number that the memory had before it was recorded) and `steps`
    (rows of a time, a thread and an index of `owners`: optimizers that made a step)."""

    first_id: int
    links: IntArray  # rows of (number, number): one tensor, before and after it got other memory
    addresses: Mapping[int, int]  # storage -> the address that the program asked for
    owners: Sequence[ParameterOwner]
    modules: Mapping[str, int]  # a frame's name -> index of `owners`
    alive: IntArray  # rows of (allocation, address, bytes) of the memory that was not freed at the end


class RecordingCost(NamedTuple):
    """Nanoseconds that recording added to each event."""

    op_ns: float
    range_ns: float
    call_ns: float
    setup_ns: float  # spent in all on what is done once per input


@dataclass
class RawRecording:
    """Everything that was recorded."""

    columns: tuple[str, ...]  # the integers of one row of the logs `rows`, in order
    logs: Logs
    main_thread: int
    n_ops: int  # keys of ops are below
    key_entry: Callable[[int], KeyEntry]
    inputs: Sequence[Inputs]  # by number, as torch shows them for calls by users
    input_rules: InputRules | None  # None: the caller does not matter
    flops: Mapping[int, int]  # by number of inputs
    functions: FunctionNames | None  # None: Python calls were not recorded
    tensor_tables: TensorTables | None  # None: tensors were not told apart
    settings: Settings
    origin_ns: int
    window_ns: tuple[int, int]
    health: Health = field(default_factory=Health)
    cost: RecordingCost | None = None
    # (address, bytes, whether it is a gradient) of the parameters and gradients of modules at the end
    of_modules: tuple[tuple[int, int, bool], ...] = ()
    # by identity: (the system's number, name) of threads that run, also of those that were not recorded
    thread_names: Mapping[int, tuple[int, str]] = field(default_factory=dict)
