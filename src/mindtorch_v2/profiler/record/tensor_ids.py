"""Identities while recording: tensors, modules and optimizers in, integers out; after the stop, columns. Keeps nothing alive.

A tensor gets a number when it is made by an op or met first, and memory one when it is taken or first met; both are left on the object
itself (`_met` of a tensor, `_number` of a storage). Numbers are times: what an op makes has the time at which the op began, anything
else the time of the meeting. So they are never given twice, neither a reused address nor a reused Python object can be mistaken, and
numbers from before the recording are told by being earlier than it. A tensor that gets other memory (`set_`, `resize_`, `.data =`) turns
its number negative: it is numbered again when it is met next, and both numbers are noted as one tensor's.
"""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from mindtorch_prof.trace import Frames, Memory, NumberedTensor, ParameterOwner, TensorIds
from mindtorch_prof.tree import innermost, thread_slices

from ... import _hooks as hooks
from ..._graph import storage_of
from ..._storage import ObservedStorage
from .op_inputs import tensor_input
from .probes import tensor_places

clock = time.perf_counter_ns
_FINE = time.get_clock_info("perf_counter").resolution <= 1e-9
_MADE_UP = 1 << 60  # addresses of memory that was gone at the stop: from here on, where no process has any


def stamp() -> int:
    """A time that is nobody else's number."""
    now = clock()
    if not _FINE:  # pragma: no cover  (clocks that stand still between two looks)
        while (later := clock()) == now:
            pass
        now = later
        while clock() == now:
            pass
    return now


def _storages() -> list[ObservedStorage]:
    """All memory under observation that is still there: objects refer to their class. (To go through all objects there are would hold
    what other threads are about to build, and `tuple` for one fails then.)"""
    return [found for found in gc.get_referrers(ObservedStorage) if type(found) is ObservedStorage]


class Register:
    """What one recording has met."""

    def __init__(self) -> None:
        self.base = 0  # numbers below are of earlier recordings
        # what is noted of a number is noted once for all recordings that are under way
        self.seen: list[
            int
        ] = []  # tensor, its memory (0: none), the memory's address (0: see the memory's other rows)
        self.links: list[int] = []
        self.addresses: dict[int, int] = {}  # number of memory -> the address that the program asked for
        self.later: list[int] = []  # time of a birth, number that the memory had by then
        self.met: list[int] = []  # numbers of what went into ops, in the order of calls
        self.owners: list[ParameterOwner] = []
        self.modules: dict[str, int] = {}  # a frame's name -> place in `owners`
        self.optimizers: dict[int, tuple[Any, int]] = {}
        self.steps: list[int] = []  # time, thread, place in `owners`
        self.places: dict[int, str] = {}
        self.see: Callable[[Any], int]

    def open(self, now: int) -> None:
        """This recording begins, or goes on."""
        outermost = hooks.set_tensor_register(self)
        if outermost is not self:
            self.base, self.seen, self.links = outermost.base, outermost.seen, outermost.links
            self.addresses = outermost.addresses
        self.base = self.base or now
        self.see = self._seer()

    def close(self) -> None:
        """This recording ends."""
        hooks.remove_tensor_register(self)

    def tools(self) -> dict[str, Any]:
        """What probes close over."""
        return {
            "base": self.base,
            "met": self.met,
            "meet": self.met.extend,
            "see": self.see,
            "listed": self.listed,
        }

    # ------------------------------------------------------------------------------------------------ meeting

    def _seer(self) -> Callable[[Any], int]:
        base, seen, links = self.base, self.seen.extend, self.links.extend

        def see(tensor: Any) -> int:
            """Number a tensor that was not met before, or that has other memory now."""
            before = tensor._met
            number = tensor._met = stamp()
            if -before >= base:
                links((-before, number))
            if tensor._array_missing or tensor.is_sparse or not tensor._array.nbytes:
                seen((number, 0, 0))
                return number
            storage = storage_of(tensor)
            if storage._keeps is not None:
                storage = storage._keeps
            memory = storage._number
            if memory >= base:
                seen((number, memory, 0))
            else:
                storage._number = number
                seen((number, number, storage.data_ptr()))
            return number

        return see

    def birth(self, tensor: Any, storage: Any) -> int:
        """Number a new tensor and its memory; the time to note the birth with."""
        now = stamp()
        if storage._number >= self.base:  # met inside the op that gives it out
            self.later.extend((now, storage._number))
        else:
            tensor._met = storage._number = now
        return now

    def number(self, tensor: Any) -> int:
        """The number of a tensor."""
        number = tensor._met
        return number if number >= self.base else self.see(tensor)

    def first_number(self, tensor: Any) -> int:
        """The number that a tensor had when it was first met."""
        number = self.number(tensor)
        for place in range(len(self.links) - 2, -1, -2):
            if self.links[place + 1] == number:
                number = self.links[place]
        return number

    def told(self, storage: Any, address: int) -> None:
        """Note an address that the program was told: it is shown even where the memory is gone at the stop."""
        number = (storage if storage._keeps is None else storage._keeps)._number
        if number >= self.base:
            self.addresses[number] = address

    def listed(self, value: Any) -> list[int]:
        """The numbers of tensors in a list; 0 for anything else in it."""
        if value.__class__ is not list and value.__class__ is not tuple:
            return []
        return [self.number(item) if hasattr(item, "_met") else 0 for item in value]

    def meet(self, op: Any, arguments: tuple) -> int:
        """Note the tensors among an op's arguments, as a probe would; where they stand in `met`."""
        places = self.places.get(op.uid)
        if places is None:
            places = self.places[op.uid] = tensor_places(op)
        found: list[int] = []
        for place, value in zip(places, arguments):
            if place == "L":
                found += self.listed(value)
            elif place != "-":
                found.append(self.number(value) if hasattr(value, "_met") else 0)
        start = len(self.met)
        self.met += found
        return start

    def meet_any(self, arguments: tuple) -> int:
        """Note the tensors among a range's arguments, and in lists among them; where they stand in `met`."""
        start = len(self.met)
        for value in arguments:
            if getattr(value, "_array", None) is not None:
                self.met.append(self.number(value))
            elif isinstance(value, (list, tuple)):
                self.met += [self.number(v) for v in value if getattr(v, "_array", None) is not None]
        return start

    def module(self, module: Any, name: str) -> None:
        """Note a module that is called for the first time, with its own parameters; `name`: of its frames."""
        parameters = tuple(
            (key, self._tensor(parameter), self._gradient(parameter), ())
            for key, parameter in module._parameters.items()
            if parameter is not None
        )
        kind = type(module)
        self.modules[name] = len(self.owners)
        self.owners.append(ParameterOwner("module", kind.__name__, id(kind), id(module), parameters))

    def optimizer(self, optimizer: Any, now: int, thread: int) -> None:
        """Note that an optimizer has made a step; what it holds, at the first one."""
        known = self.optimizers.get(id(optimizer))
        if known is None or known[0]() is not optimizer:
            kind = type(optimizer)
            parameters = tuple(
                ("", self._tensor(parameter), self._gradient(parameter), self._states(optimizer, parameter))
                for group in optimizer.param_groups
                for parameter in group["params"]
            )
            known = self.optimizers[id(optimizer)] = (weakref.ref(optimizer), len(self.owners))
            together = all(group.get("foreach") or group.get("fused") for group in optimizer.param_groups)
            self.owners.append(
                ParameterOwner("optimizer", kind.__name__, id(kind), id(optimizer), parameters, together)
            )
        self.steps.extend((now, thread, known[1]))

    def _tensor(self, tensor: Any) -> NumberedTensor:
        number = self.number(tensor)
        if tensor._array_missing or tensor.is_sparse:
            return number, tensor_input((tuple(tensor.shape), (), tensor.dtype._np.num))
        array = tensor._array
        return number, tensor_input((array.shape, array.strides, array.dtype.num))

    def _gradient(self, parameter: Any) -> NumberedTensor | None:
        return None if parameter._grad is None else self._tensor(parameter._grad)

    def _states(self, optimizer: Any, parameter: Any) -> tuple:
        state = optimizer.state.get(parameter, {})
        return tuple(
            (str(key), self._tensor(value)) for key, value in state.items() if hasattr(value, "_met")
        )

    # ------------------------------------------------------------------------------------------------ after the stop

    def columns(self, first: np.ndarray, memory: Memory, numbers: np.ndarray, frames: Frames) -> TensorIds:
        """All that was met. first: by event, its place in `met`; numbers: by row of `memory`."""
        later = dict(zip(self.later[0::2], self.later[1::2]))
        numbers = (
            np.array([later.get(number, number) for number in numbers.tolist()], np.int64)
            if later
            else numbers
        )
        taken = _distinct(numbers)
        known = np.stack([taken, taken, self._addresses(taken)], axis=1)
        return TensorIds(
            first,
            np.array(self.met, np.int64),
            np.concatenate([np.array(self.seen, np.int64).reshape(-1, 3), known]),
            np.array(self.links, np.int64).reshape(-1, 2),
            numbers,
            tuple(self.owners),
            self._frames(frames),
        )

    def _addresses(self, numbers: np.ndarray) -> np.ndarray:
        """Addresses of memory that was taken while recording, by number (sorted): what is still there knows its own."""
        address = _MADE_UP + (numbers - self.base) * 16
        alive = [storage for storage in _storages() if storage._number >= self.base]
        own = np.array([o._number for o in alive], np.int64)
        at = np.minimum(np.searchsorted(numbers, own), max(len(numbers) - 1, 0))
        for i in np.flatnonzero(numbers[at] == own).tolist() if len(numbers) else ():
            address[at[i]] = alive[i].data_ptr()
        asked = np.array(list(self.addresses), np.int64)
        at = np.minimum(np.searchsorted(numbers, asked), max(len(numbers) - 1, 0))
        known = numbers[at] == asked if len(numbers) else np.zeros(len(asked), bool)
        address[at[known]] = np.array(list(self.addresses.values()), np.int64)[known]
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


def _distinct(numbers: np.ndarray) -> np.ndarray:
    """Each number once, sorted. Births are nearly in order: sorting them costs a fraction of what `np.unique` does."""
    numbers = np.sort(numbers, kind="stable")
    return numbers[np.append(True, numbers[1:] != numbers[:-1])] if len(numbers) else numbers
