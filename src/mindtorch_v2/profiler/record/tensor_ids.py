"""Ids of tensors and storages while recording: tensors, modules and optimizers in, integers out; after the stop, columns.

A tensor gets an id when an op allocates its memory or when it is first an argument of one; so does the memory. A tensor keeps its id
itself (`_tensor_id`), memory is known by the array that owns it, through a weak reference: nothing is kept alive. The id of memory whose
allocation was recorded is that of the allocation. Ids are times: of the allocation, or of the first use. So no id is given twice, even if an address or the `id()` of an object is reused, and
ids of earlier recordings are recognised by being earlier than this one. If a tensor's memory is replaced (`set_`, `resize_`, `.data =`),
its id turns negative: the tensor gets a new id at its next use, and a link tells that both ids are one tensor.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from mindtorch_prof.sealing.raw import TensorTables
from mindtorch_prof.trace import NumberedTensor, ParameterOwner

from ... import _recording_hooks as hooks
from ..._tensor_slots import address as address_of
from ...nn.parameter import is_lazy
from . import core
from .allocations import owner_of
from .op_inputs import tensor_input

clock = time.perf_counter_ns
_FINE = time.get_clock_info("perf_counter").resolution <= 1e-9


_MOST_EARLIER_IDS = 1 << 16  # more are handed over: memory that old is rarely asked for its address


def new_id() -> int:
    """A time that is no other id."""
    now = clock()
    if not _FINE:  # pragma: no cover  (clocks that give the same time twice)
        while (later := clock()) == now:
            pass
        now = later
        while clock() == now:
            pass
    return now


class TensorRegister:
    """The tensors, storages, modules and optimizers of one recording."""

    def __init__(self) -> None:
        self.first_id = 0  # ids below are of earlier recordings
        # recordings that run inside one another share the next three, since a tensor has one id for all of them
        self.storages: list[int] = []  # tensor, its storage (0: none), its address (0: another row has it)
        self.n_taken = 0  # integers of `storages` that were handed over and are still in it
        self.n_taken_ids = 0  # entries of `earlier_ids` that were handed over
        self.is_shared = False
        self.links: list[int] = []  # one tensor's id before and after its memory was replaced
        self.addresses: dict[int, int] = {}  # storage -> the address that the program asked for
        # by the id() of the array that owns the memory: a weak reference to it, and the memory's id
        self.storage_at: dict[int, tuple[Any, int]] = {}
        self.earlier_ids: dict[
            int, int
        ] = {}  # allocation id -> id that the memory had before the allocation was recorded
        self.owners: list[ParameterOwner] = []
        self.modules: dict[str, int] = {}  # a frame's name -> index of `owners`
        self.optimizers: dict[int, tuple[Any, int]] = {}  # by id(): a weak reference, index of `owners`
        self.steps: list[int] = []  # time, thread, index of `owners`
        self.assign_id: Callable[[Any], int]

    def open(self, now: int) -> None:
        """Begin or resume recording."""
        outermost = hooks.set_tensor_register(self)
        if outermost is not self:
            outermost.is_shared = self.is_shared = True
            self.first_id, self.storages, self.links = outermost.first_id, outermost.storages, outermost.links
            self.addresses, self.storage_at = outermost.addresses, outermost.storage_at
        self.first_id = self.first_id or now
        self.assign_id = self._id_assigner()

    def close(self) -> None:
        """Stop recording."""
        hooks.remove_tensor_register(self)

    # ------------------------------------------------------------------------------------------------ while recording

    def _id_assigner(self) -> Callable[[Any], int]:
        first_id, add_storage, link = self.first_id, self.storages.extend, self.links.extend

        def assign_id(tensor: Any) -> int:
            """Give an id to a tensor that has none in this recording, or whose memory was replaced."""
            before = tensor._tensor_id
            tensor_id = tensor._tensor_id = new_id()
            if -before >= first_id:
                link((-before, tensor_id))
            if tensor._array_missing or tensor._is_sparse_layout or not tensor._array.nbytes:
                add_storage((tensor_id, 0, 0))
                return tensor_id
            storage_id = self.storage_id(tensor._array)
            if storage_id:
                add_storage((tensor_id, storage_id, 0))
            else:
                owner = owner_of(tensor._array)
                self.storage_at[id(owner)] = (weakref.ref(owner), tensor_id)
                add_storage((tensor_id, tensor_id, address_of(owner)))
            return tensor_id

        return assign_id

    def storage_id(self, array: np.ndarray) -> int:
        """The id of an array's memory; 0: it has none in this recording."""
        allocation_id = core.allocation_id(array)
        if allocation_id >= self.first_id:
            return allocation_id
        owner = owner_of(array)
        known = self.storage_at.get(id(owner))
        return known[1] if known is not None and known[0]() is owner and known[1] >= self.first_id else 0

    def allocated(self, tensor: Any, allocation_id: int) -> None:
        """An op has allocated memory for a new tensor: it gets the id of the allocation, unless it has one, because it was used as an
        argument inside the op."""
        if tensor._tensor_id < self.first_id:
            tensor._tensor_id = allocation_id
            return
        owner = owner_of(tensor._array)
        known = self.storage_at.get(id(owner))
        if known is not None and known[0]() is owner:
            self.earlier_ids[allocation_id] = known[1]

    def id_of(self, tensor: Any) -> int:
        """The id of a tensor, a new one if it has none in this recording."""
        tensor_id = tensor._tensor_id
        return tensor_id if tensor_id >= self.first_id else self.assign_id(tensor)

    def first_id_of(self, tensor: Any) -> int:
        """The first id that a tensor had in this recording."""
        tensor_id = self.id_of(tensor)
        for place in range(len(self.links) - 2, -1, -2):
            if self.links[place + 1] == tensor_id:
                tensor_id = self.links[place]
        return tensor_id

    def note_address(self, storage: Any, address: int) -> None:
        """The program has asked for an address: it is shown even if the memory is freed before the stop."""
        storage_id = self.storage_id(storage._root)
        if storage_id:
            self.addresses[self.earlier_ids.get(storage_id, storage_id)] = address

    def ids_in_list(self, value: Any) -> list[int]:
        """The ids of the tensors in a list; 0 for other items."""
        if value.__class__ is not list and value.__class__ is not tuple:
            return []
        return [self.id_of(item) if hasattr(item, "_tensor_id") else 0 for item in value]

    def ids_of_arguments(self, op: Any, arguments: tuple) -> list[int]:
        """The ids of the tensors among an op's arguments; 0 for a number or None in the place of a tensor. op: None for a range."""
        if op is None:
            return self.ids_of_range(arguments)
        first_id = self.first_id
        ids: list[int] = []
        for letter, value in zip(op.tensor_places, arguments):
            if letter == "L":
                ids += self.ids_in_list(value)
            elif letter != "-":
                tensor_id = getattr(value, "_tensor_id", None)
                if tensor_id is None:
                    tensor_id = 0
                elif tensor_id < first_id:
                    tensor_id = self.assign_id(value)
                ids.append(tensor_id)
        return ids

    def ids_of_range(self, arguments: tuple) -> list[int]:
        """The ids of the tensors among a range's arguments, and in lists among them."""
        ids: list[int] = []
        for value in arguments:
            if getattr(value, "_array", None) is not None:
                ids.append(self.id_of(value))
            elif isinstance(value, (list, tuple)):
                ids += [self.id_of(v) for v in value if getattr(v, "_array", None) is not None]
        return ids

    def module(self, module: Any, name: str) -> None:
        """Record a module at its first call, with its own parameters. `name`: of its frames."""
        parameters = tuple(
            (key, self._tensor(parameter), self._gradient(parameter), ())
            for key, parameter in module._parameters.items()
            # a lazy module gets its parameters in this call
            if parameter is not None and not is_lazy(parameter)
        )
        kind = type(module)
        self.modules[name] = len(self.owners)
        self.owners.append(ParameterOwner("module", kind.__name__, id(kind), id(module), parameters))

    def optimizer(self, optimizer: Any, now: int, thread: int) -> None:
        """Record a step of an optimizer, and at its first step its parameters and states."""
        entry = self.optimizers.get(id(optimizer))
        if entry is None or entry[0]() is not optimizer:
            kind = type(optimizer)
            parameters = tuple(
                ("", self._tensor(parameter), self._gradient(parameter), self._states(optimizer, parameter))
                for group in optimizer.param_groups
                for parameter in group["params"]
            )
            entry = self.optimizers[id(optimizer)] = (weakref.ref(optimizer), len(self.owners))
            together = all(group.get("foreach") or group.get("fused") for group in optimizer.param_groups)
            self.owners.append(
                ParameterOwner("optimizer", kind.__name__, id(kind), id(optimizer), parameters, together)
            )
        self.steps.extend((now, thread, entry[1]))

    def _tensor(self, tensor: Any) -> NumberedTensor:
        tensor_id = self.id_of(tensor)
        if tensor._array_missing or tensor._is_sparse_layout:
            return tensor_id, tensor_input((tuple(tensor.shape), (), tensor.dtype._np.num))
        array = tensor._array
        return tensor_id, tensor_input((array.shape, array.strides, array.dtype.num))

    def _gradient(self, parameter: Any) -> NumberedTensor | None:
        return None if parameter._grad is None else self._tensor(parameter._grad)

    def _states(self, optimizer: Any, parameter: Any) -> tuple:
        state = optimizer.state.get(parameter, {})
        return tuple(
            (str(key), self._tensor(value)) for key, value in state.items() if hasattr(value, "_tensor_id")
        )

    # ------------------------------------------------------------------------------------------------ after the stop

    def take_storages(self) -> list[int]:
        """The rows of storages since the last time."""
        taken = self.storages[self.n_taken :]
        self.n_taken += len(taken)
        if not self.is_shared:
            del self.storages[: self.n_taken]
            self.n_taken = 0
        return taken

    def take_earlier_ids(self) -> list[int]:
        """The earlier ids that were noted since the last time, in pairs. Only the last of them stay here."""
        known = list(self.earlier_ids.items())
        taken = [number for pair in known[self.n_taken_ids :] for number in pair]
        self.n_taken_ids = len(known)
        for allocation_id, _ in known[:-_MOST_EARLIER_IDS]:
            del self.earlier_ids[allocation_id]
            self.n_taken_ids -= 1
        return taken

    def tables(self) -> TensorTables:
        """What was noted, as plain data, besides the logs of storages and steps."""
        return TensorTables(
            self.first_id,
            np.array(self.links, np.int64).reshape(-1, 2),
            self.addresses,
            self.owners,
            self.modules,
            core.alive(),
        )
