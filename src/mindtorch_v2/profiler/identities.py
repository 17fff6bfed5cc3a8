"""Identities while recording: tensors, modules and optimizers in, integers out; after the stop, columns. Keeps nothing alive.

A tensor gets a number when it is met first, and memory one when it is taken or first met; both are left on the object itself (`_met` of a
tensor, `_number` of a storage) and never given twice, so that neither a reused address nor a reused Python object can be mistaken.
What an op makes gets its memory's number: the start of the recording's range and the place of the birth in its list of memory events.
A tensor that gets other memory (`set_`, `resize_`, `.data =`) turns its number negative: it is numbered again when it is met next, and
both numbers are noted as one tensor's.
"""

from __future__ import annotations

import gc
import itertools
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from .._graph import storage_of
from .._storage import ObservedStorage
from .trace import Frames, Held, Identities, Memory
from .tree import innermost, thread_slices

clock = time.perf_counter_ns
_ranges = itertools.count(1)
_RANGE = 1 << 40  # numbers in a range; a recording has one for births and one for what it sees
_MADE_UP = 1 << 56  # addresses of memory that was gone at the stop: from here on, where no process has any

_outermost: Register | None = None  # of the recordings that are under way


class Register:
    """What one recording has met."""

    def __init__(self) -> None:
        self.births = next(_ranges) * _RANGE  # and the place in the list of memory events: numbers of new memory
        self.base = self.births  # numbers below are of earlier recordings
        self.fresh: Callable[[], int] = itertools.count(next(_ranges) * _RANGE).__next__
        # what is noted of a number is noted once for all recordings that are under way
        self.seen: list[int] = []  # tensor, its memory (0: none; -1: see the next two), the memory's address, when
        self.links: list[int] = []
        self.met: list[int] = []  # numbers of what went into ops, in the order of calls
        self.held: list[Held] = []
        self.modules: dict[str, int] = {}  # a frame's name -> place in `held`
        self.optimizers: dict[int, tuple[Any, int]] = {}
        self.steps: list[int] = []  # time, thread, place in `held`

    def open(self) -> None:
        """This recording begins."""
        global _outermost
        if _outermost is None:
            _outermost = self
        elif _outermost is not self:
            self.base, self.seen, self.links = _outermost.base, _outermost.seen, _outermost.links
        self.see = self._seer()

    def close(self) -> None:
        """This recording ends."""
        global _outermost
        if _outermost is self:
            _outermost = None

    # ------------------------------------------------------------------------------------------------ meeting

    def _seer(self) -> Callable[[Any], int]:
        base, seen, links, fresh = self.base, self.seen.extend, self.links.extend, self.fresh

        def see(tensor: Any) -> int:
            """Number a tensor that was not met before, or that has other memory now."""
            before = tensor._met
            number = tensor._met = fresh()
            if -before >= base:
                links((-before, number))
            if tensor._array_missing or tensor.is_sparse or not tensor._array.nbytes:
                seen((number, 0, 0, 0))
                return number
            storage = storage_of(tensor)
            if storage._keeps is not None:
                storage = storage._keeps
            memory = storage._number
            if memory >= base:
                seen((number, memory, 0, 0))
            elif storage.__class__ is ObservedStorage and memory < 0:  # resized: the birth after the last end is meant
                seen((number, -1, id(storage), clock()))
            else:
                storage._number = number
                seen((number, number, storage.data_ptr(), 0))
            return number

        return see

    def number(self, tensor: Any) -> int:
        """The number of a tensor."""
        number = tensor._met
        return number if number >= self.base else self.see(tensor)

    def listed(self, value: Any) -> list[int]:
        """The numbers of tensors in a list; 0 for anything else in it."""
        if value.__class__ is not list and value.__class__ is not tuple:
            return []
        return [self.number(item) if hasattr(item, "_met") else 0 for item in value]

    def meet(self, arguments: tuple) -> int:
        """Note the tensors among arguments, and in lists among them; where they stand in `met`."""
        place = len(self.met)
        for value in arguments:
            if getattr(value, "_array", None) is not None:
                self.met.append(self.number(value))
            elif isinstance(value, (list, tuple)):
                self.met.extend(self.number(v) for v in value if getattr(v, "_array", None) is not None)
        return place

    def module(self, module: Any, name: str) -> None:
        """Note a module that is called for the first time, with its own parameters; `name`: of its frames."""
        parameters = tuple(
            (key, self._tensor(parameter), self._gradient(parameter), ())
            for key, parameter in module._parameters.items()
            if parameter is not None
        )
        kind = type(module)
        self.modules[name] = len(self.held)
        self.held.append(Held("module", kind.__name__, id(kind), id(module), parameters))

    def optimizer(self, optimizer: Any, thread: int) -> None:
        """Note that an optimizer has made a step; what it holds, at the first one."""
        known = self.optimizers.get(id(optimizer))
        if known is None or known[0]() is not optimizer:
            kind = type(optimizer)
            parameters = tuple(
                ("", self._tensor(parameter), self._gradient(parameter), self._states(optimizer, parameter))
                for group in optimizer.param_groups
                for parameter in group["params"]
            )
            known = self.optimizers[id(optimizer)] = (weakref.ref(optimizer), len(self.held))
            self.held.append(Held("optimizer", kind.__name__, id(kind), id(optimizer), parameters))
        self.steps.extend((clock(), thread, known[1]))

    def _tensor(self, tensor: Any) -> tuple:
        number = self.number(tensor)
        if tensor._array_missing or tensor.is_sparse:
            return number, tuple(tensor.shape), (), tensor.dtype._np.num
        array = tensor._array
        return number, array.shape, array.strides, array.dtype.num

    def _gradient(self, parameter: Any) -> tuple | None:
        return None if parameter._grad is None else self._tensor(parameter._grad)

    def _states(self, optimizer: Any, parameter: Any) -> tuple:
        state = optimizer.state.get(parameter, {})
        return tuple((str(key), self._tensor(value)) for key, value in state.items() if hasattr(value, "_met"))

    # ------------------------------------------------------------------------------------------------ after the stop

    def columns(self, first: np.ndarray, memory: Memory, places: np.ndarray, frames: Frames) -> Identities:
        """All that was met. first: by event, its place in `met`; places: by row of `memory`, the place of its birth in the list."""
        numbers = self.births + places
        seen = np.array(self.seen, np.int64).reshape(-1, 4)
        for row in np.flatnonzero(seen[:, 1] == -1).tolist():
            at = np.flatnonzero((memory.address == seen[row, 2]) & (memory.time_ns <= seen[row, 3]) & (memory.nbytes > 0))
            seen[row, 1:3] = (numbers[at[-1]], 0) if len(at) else (seen[row, 0], seen[row, 2])
        taken, at = np.unique(numbers, return_index=True)
        known = np.stack([taken, taken, self._addresses(taken)], axis=1)
        return Identities(
            first,
            np.array(self.met, np.int64),
            np.concatenate([seen[:, :3], known]),
            np.array(self.links, np.int64).reshape(-1, 2),
            numbers,
            tuple(self.held),
            self._frames(frames),
        )

    def _addresses(self, numbers: np.ndarray) -> np.ndarray:
        """Addresses of memory that was taken while recording, by number (sorted): what is still there knows its own."""
        address = _MADE_UP + (numbers - self.births) * 16
        alive = [o for o in gc.get_objects() if o.__class__ is ObservedStorage and o._number >= self.births]
        own = np.array([o._number for o in alive], np.int64)
        at = np.minimum(np.searchsorted(numbers, own), max(len(numbers) - 1, 0))
        for i in np.flatnonzero(numbers[at] == own).tolist() if len(numbers) else ():
            address[at[i]] = alive[i].data_ptr()
        return address

    def _frames(self, frames: Frames) -> np.ndarray:
        by_name = np.array([self.modules.get(text, -1) for text in frames.names] or [-1], np.int64)
        found = by_name[frames.name] if len(frames) else np.empty(0, np.int64)
        steps = np.array(self.steps, np.int64).reshape(-1, 3)
        for first, last in thread_slices(frames.thread):
            part = slice(first, last)
            here = steps[steps[:, 1] == frames.thread[first]]
            parent = np.where(frames.parent[part] < 0, -1, frames.parent[part] - first)
            at = innermost(frames.start_ns[part], frames.end_ns[part], parent, here[:, 0])
            found[at[at >= 0] + first] = here[at >= 0, 2]
        return found
