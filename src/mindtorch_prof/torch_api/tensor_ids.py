"""Ids of tensors and memory: a Trace's tensor ids in; torch's ids, allocation ids, addresses and metadata of tensors out.

Allocation ids number memory in the order in which it appears. Tensors that share memory share an id, and so do one tensor's states
before and after it got other memory. Everything without memory (empty, sparse) shares one id, as in torch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..inputs import IndexList, Inputs, TensorInput, TensorList
from ..trace import Trace
from . import torch_types
from .column_lists import int_list
from .event_tree_fields import OpInput, _TensorMetadata, view_class
from .torch_types import TorchValue


class HasRow(Protocol):
    """The fields of an event, which know its row."""

    _row: int


class Tensors:
    """The tensors and the memory of a Trace: their ids and metadata."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.ids = trace.tensor_ids
        self.recorded = bool(self.ids)
        # ids need allocations and frees; without them one address may stand for several pieces of memory
        self.tracked = trace.settings.tensors_tracked
        self._tensor_class: type[_TensorMetadata] = view_class(_TensorMetadata, self)

    # ------------------------------------------------------------------------------------------------ numbers

    @cached_property
    def _tensors(self) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]:
        """Numbers of tensors (sorted), and the number of the memory of each."""
        ids = self.ids
        owned = np.array([number for number, _ in self._owned_tensors], np.int64)
        numbers = np.unique(np.concatenate([ids.tensor, ids.storages[:, 0], ids.links.reshape(-1), owned]))
        memory = numbers.copy()
        memory[np.searchsorted(numbers, ids.storages[:, 0])] = ids.storages[:, 1]
        return numbers, memory

    @cached_property
    def _owned_tensors(self) -> list[tuple[int, int]]:
        """(number, time) of the parameters, gradients and states of modules and optimizers."""
        ids, frames = self.ids, self.trace.frames
        tensors = []
        for index, owner in enumerate(ids.owners):
            rows = np.flatnonzero(ids.frame == index)
            time_ns = int(frames.start_ns[rows].min()) if len(rows) else self.trace.window_ns[1]
            for _, parameter, gradient, states in owner.parameters:
                owned = (parameter, gradient, *(state for _, state in states))
                tensors += [(tensor[0], time_ns) for tensor in owned if tensor is not None]
        return tensors

    @cached_property
    def _addresses(self) -> dict[int, int]:
        """By number of memory: its address, where that is known."""
        rows = self.ids.storages
        rows = rows[rows[:, 2] > 0]
        return dict(zip(rows[:, 1].tolist(), rows[:, 2].tolist()))

    @cached_property
    def _memory_of(self) -> dict[int, int]:
        """By number of a tensor: the number of its memory."""
        numbers, memory = self._tensors
        return dict(zip(numbers.tolist(), memory.tolist()))

    @cached_property
    def _first_numbers(self) -> dict[int, int]:
        """By number: the first that the same tensor had."""
        first: dict[int, int] = {}
        for before, after in self.ids.links.tolist():
            first[after] = first.get(before, before)
        return first

    @cached_property
    def _ids(self) -> tuple[dict[int, int], dict[int, int]]:
        """By number of memory: allocation id, and id of the tensors that share it (missing: no event had such a tensor)."""
        used_at, used = self._uses()
        memory = self.trace.memory
        order = np.lexsort((np.concatenate([np.zeros(len(used)), np.ones(len(memory))]),
                            np.concatenate([used_at, memory.time_ns])))  # fmt: skip
        every = np.concatenate([used, self.ids.memory])[order]
        numbers, first = np.unique(every, return_index=True)
        in_order = int_list(numbers[np.argsort(first, kind="stable")])
        allocation = {number: place for place, number in enumerate(in_order, 1)}
        leader = self._leaders(in_order, allocation)
        with_tensors = {leader.get(n, n) for n in np.unique(used).tolist()}
        ids: dict[int, int] = {}
        tensor_id: dict[int, int] = {}
        for number in in_order:
            group = leader.get(number, number)
            if group in with_tensors:
                tensor_id[number] = ids.setdefault(group, len(ids))
        return allocation, tensor_id

    def _leaders(self, in_order: list[int], allocation: dict[int, int]) -> dict[int, int]:
        """By number of memory: the memory whose id it shares, where a tensor got other memory. As in torch, the first memory of a
        tensor and each later one share an id: the later allocation takes that of the earlier, of several that of the earliest."""
        earlier: dict[int, int] = {}
        for after, first in self._first_numbers.items():
            both = {self._memory_of[first], self._memory_of[after]} & allocation.keys()
            if len(both) == 2:
                before, later = sorted(both, key=allocation.__getitem__)
                earlier[later] = min(before, earlier.get(later, before), key=allocation.__getitem__)
        leader: dict[int, int] = {}
        for number in in_order if earlier else ():
            if number in earlier:
                leader[number] = leader.get(earlier[number], earlier[number])
        return leader

    def _uses(self) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]:
        """Times at which tensors were used, and the numbers of their memory."""
        trace, ids = self.trace, self.ids
        slots = np.array([sum(inputs.tensor_slots) for inputs in trace.input_table] + [0], np.int64)
        events = np.flatnonzero((ids.first >= 0) & (trace.inputs >= 0))
        count = slots[trace.inputs[events]]
        offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        number = ids.tensor[np.repeat(ids.first[events], count) + offset]
        time_ns = np.repeat(trace.start_ns[events], count)
        is_tensor = number > 0
        owned = np.array(self._owned_tensors, np.int64).reshape(-1, 2)
        number = np.concatenate([number[is_tensor], owned[:, 0]])
        time_ns = np.concatenate([time_ns[is_tensor], owned[:, 1]])
        numbers, memory = self._tensors
        return time_ns, memory[np.searchsorted(numbers, number)]

    # ------------------------------------------------------------------------------------------------ inputs

    def inputs(self, row: int) -> list[OpInput]:
        """The inputs of an event."""
        return self.inputs_of(_Row(row))

    @cached_property
    def inputs_of(self) -> Callable[[HasRow], list[OpInput]]:
        """A function from an event's fields to its inputs: tensors, lists of tensors and numbers; None for everything else."""
        # a closure over lists: it is called for each of 100,000 events
        index_of = int_list(self.trace.inputs)
        layouts: list[InputLayout | None] = [None] * len(self.trace.input_table)
        first, numbers = self.places
        tensor_class = self._tensor_class
        # inputs are mostly read several times in a row
        last_row = -1
        last_inputs: list[OpInput] = []

        def inputs_of(fields: HasRow) -> list[OpInput]:
            nonlocal last_row, last_inputs
            row = fields._row
            index = index_of[row]
            if index < 0:
                return []
            if last_row == row:
                return last_inputs[:]
            layout = layouts[index]
            if layout is None:
                layout = layouts[index] = self.layout(index)
            values, tensors, lists = layout
            inputs = values[:]
            place = first[row]
            for argument, offset, metadata in tensors:
                inputs[argument] = tensor = tensor_class()
                tensor._number = numbers[place + offset]
                tensor._about = metadata
            for argument, offset, members in lists:
                inputs[argument] = [
                    self.tensor(numbers[place + further], metadata)
                    for further, metadata in enumerate(members, offset)
                ]
            last_row, last_inputs = row, inputs
            return inputs[:]

        return inputs_of

    @cached_property
    def places(self) -> tuple[list[int], list[int]]:
        """By event the place where the numbers of its tensors begin, and the numbers; zeros where none were recorded."""
        most = max((sum(inputs.tensor_slots) for inputs in self.trace.input_table), default=0)
        if not self.recorded:
            return [0] * len(self.trace), [0] * most
        first, numbers = self.ids.first, self.ids.tensor
        return int_list(np.where(first < 0, len(numbers), first)), int_list(numbers) + [0] * most

    def layout(self, index: int) -> InputLayout:
        """Where the tensors of inputs stand, by index of the inputs in the Trace's table."""
        return _layout(self.trace.input_table[index])

    def tensor(self, number: int, metadata: TensorInput) -> _TensorMetadata:
        """A tensor from its number (0: not recorded), shape, strides and type."""
        tensor = self._tensor_class()
        tensor._number, tensor._about = number, metadata
        return tensor

    # ------------------------------------------------------------------------------------------------ by number

    def first_number(self, number: int) -> int | None:
        """The first number that the same tensor had; None: not recorded."""
        return self._first_numbers.get(number, number) or None

    def address(self, number: int) -> int | None:
        """Of a tensor's memory."""
        return self._addresses.get(self._memory_of.get(number, 0)) if number else None

    def id(self, number: int) -> int | None:
        """Of a tensor, or of the tensors on memory of this number."""
        return self._ids[1].get(self._memory_of.get(number, number)) if number and self.tracked else None

    def allocation_id(self, number: int) -> int | None:
        """Of a tensor's memory, or of memory of this number."""
        return self._ids[0].get(self._memory_of.get(number, number)) if number and self.tracked else None

    def memory_ids(self) -> dict[int, tuple[int, int, int]]:
        """By number of memory that tensors used: id, allocation id, address."""
        if not (self.tracked and self.recorded):
            return {}
        allocation, tensor_id = self._ids
        addresses = self._addresses
        return {
            number: (identity, allocation[number], addresses[number])
            for number, identity in tensor_id.items()
            if number in addresses
        }

    def has_memory(self, number: int) -> bool:
        """Whether a tensor's memory is known; a Python number in the place of a tensor counts as a tensor with memory."""
        if not number:
            return self.tracked
        return self.id(number) is not None and self.address(number) is not None

    def by_place(self, by_memory: dict[int, int]) -> list[int]:
        """Values of memory, by place in the numbers of tensors (see `places`); -1: none."""
        memory_of = self._memory_of if by_memory else {}
        by_tensor = {number: by_memory.get(memory, -1) for number, memory in memory_of.items()}
        return [by_tensor.get(number, -1) for number in self.places[1]]

    @cached_property
    def _memory_numbers(self) -> list[int]:
        return int_list(self.ids.memory)

    def memory_number(self, row: int) -> int:
        """Of a row of the Trace's memory; 0: not recorded."""
        return self._memory_numbers[row] if self.tracked and self.recorded else 0

    def memory_address(self, row: int) -> int:
        """Of a row of the Trace's memory."""
        number = self.memory_number(row)
        return self._addresses.get(number, number) if number else int(self.trace.memory.address[row])

    @staticmethod
    def device(number: int, kind: str | None) -> TorchValue:
        """A device by number; -1: the CPU."""
        return torch_types.device("cpu" if number < 0 else f"{kind or 'cuda'}:{number}")


class _Row:
    """Has the row of an event, as its fields have."""

    __slots__ = ("_row",)

    def __init__(self, row: int) -> None:
        self._row = row


class InputLayout(NamedTuple):
    """Where the tensors of an event's inputs stand, and which of the event's numbers are theirs."""

    values: list[OpInput]  # by argument: a number, else None
    # index of the argument, offset of the tensor's number among the event's, shape, strides and type
    tensors: list[tuple[int, int, TensorInput]]
    lists: list[tuple[int, int, TensorList]]  # the same of lists of tensors, with the offset of the first


def _layout(inputs: Inputs) -> InputLayout:
    layout = InputLayout([], [], [])
    offset = 0
    for index, (slots, argument) in enumerate(zip(inputs.tensor_slots, inputs.arguments)):
        layout.values.append(argument if isinstance(argument, (bool, int, float, complex)) else None)
        if isinstance(argument, TensorInput):
            layout.tensors.append((index, offset, argument))
        elif isinstance(argument, TensorList) and not isinstance(argument, IndexList):
            layout.lists.append((index, offset, argument))
        offset += slots
    return layout
