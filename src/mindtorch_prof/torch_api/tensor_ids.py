"""Ids of tensors and memory: a Trace's tensor ids in; ids, allocation ids, addresses and descriptions of tensors out.

Memory is numbered in the order in which it appears; tensors that share memory, or are one tensor before and after it got other memory, share
an id. Everything without memory (empty, sparse) shares one, as in torch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..inputs import IndexList, Inputs, TensorInput, TensorList
from ..trace import Trace
from . import torch_types
from .event_tree_fields import _TensorMetadata, view_class


class Tensors:
    """The tensors and the memory of a Trace: their ids, and what they are like."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.ids = trace.tensor_ids
        self.recorded = bool(self.ids)
        # ids need the births and ends of memory; without them an address may stand for several
        self.tracked = trace.settings.tensors_tracked
        self._tensor_class = view_class(_TensorMetadata, self)

    # ------------------------------------------------------------------------------------------------ numbers

    @cached_property
    def _tensors(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of tensors (sorted), and of the memory of each."""
        ids = self.ids
        owned = np.array([number for number, _ in self._owned_tensors], np.int64)
        numbers = np.unique(np.concatenate([ids.tensor, ids.storages[:, 0], ids.links.reshape(-1), owned]))
        memory = numbers.copy()
        memory[np.searchsorted(numbers, ids.storages[:, 0])] = ids.storages[:, 1]
        return numbers, memory

    @cached_property
    def _owned_tensors(self) -> list[tuple[int, int]]:
        """(number, when) of the tensors that modules and optimizers had."""
        ids, frames = self.ids, self.trace.frames
        made = []
        for index, owner in enumerate(ids.owners):
            rows = np.flatnonzero(ids.frame == index)
            at = int(frames.start_ns[rows].min()) if len(rows) else self.trace.window_ns[1]
            for _, parameter, gradient, states in owner.parameters:
                made += [(t[0], at) for t in (parameter, gradient, *(s for _, s in states)) if t is not None]
        return made

    @cached_property
    def _addresses(self) -> dict[int, int]:
        rows = self.ids.storages
        rows = rows[rows[:, 2] > 0]
        return dict(zip(rows[:, 1].tolist(), rows[:, 2].tolist()))

    @cached_property
    def _memory_of(self) -> dict[int, int]:
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
        """By number of memory: allocation id, and id of the tensors that share it (missing: no tensor was met)."""
        seen_at, seen = self._met()
        memory = self.trace.memory
        order = np.lexsort((np.concatenate([np.zeros(len(seen)), np.ones(len(memory))]),
                            np.concatenate([seen_at, memory.time_ns])))  # fmt: skip
        every = np.concatenate([seen, self.ids.memory])[order]
        found, first = np.unique(every, return_index=True)
        in_order = found[np.argsort(first, kind="stable")].tolist()
        allocation = {number: place for place, number in enumerate(in_order, 1)}
        leader = self._leaders(in_order, allocation)
        with_tensors = {leader.get(n, n) for n in np.unique(seen).tolist()}
        ids: dict[int, int] = {}
        shown: dict[int, int] = {}
        for number in in_order:
            group = leader.get(number, number)
            if group in with_tensors:
                shown[number] = ids.setdefault(group, len(ids))
        return allocation, shown

    def _leaders(self, in_order: list[int], allocation: dict[int, int]) -> dict[int, int]:
        """By number of memory: the memory whose id it has, where a tensor got other memory. As torch joins them: the first memory that
        the tensor had and each later one; the later allocation takes the id of the earlier, of several of the earliest."""
        earlier: dict[int, int] = {}
        for after, first in self._first_numbers.items():
            met = {self._memory_of[first], self._memory_of[after]} & allocation.keys()
            if len(met) == 2:
                before, later = sorted(met, key=allocation.__getitem__)
                earlier[later] = min(before, earlier.get(later, before), key=allocation.__getitem__)
        leader: dict[int, int] = {}
        for number in in_order if earlier else ():
            if number in earlier:
                leader[number] = leader.get(earlier[number], earlier[number])
        return leader

    def _met(self) -> tuple[np.ndarray, np.ndarray]:
        """Times at which tensors were met, and the memory that they had."""
        trace, ids = self.trace, self.ids
        counts = np.array([sum(inputs.tensor_slots) for inputs in trace.input_table] + [0], np.int64)
        events = np.flatnonzero((ids.first >= 0) & (trace.inputs >= 0))
        many = counts[trace.inputs[events]]
        inside = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        number = ids.tensor[np.repeat(ids.first[events], many) + inside]
        at = np.repeat(trace.start_ns[events], many)
        real = number > 0
        owned = np.array(self._owned_tensors, np.int64).reshape(-1, 2)
        number, at = np.concatenate([number[real], owned[:, 0]]), np.concatenate([at[real], owned[:, 1]])
        numbers, memory = self._tensors
        return at, memory[np.searchsorted(numbers, number)]

    # ------------------------------------------------------------------------------------------------ what went in

    def inputs(self, row: int) -> list[Any]:
        """What went into an event."""
        return self.inputs_of(_Row(row))

    @cached_property
    def inputs_of(self) -> Callable[[Any], list[Any]]:
        """A function from an event's fields to what went into it: tensors, lists of tensors and numbers; None for everything else."""
        # a closure over lists: it is asked for each of 100,000 events
        index_of = self.trace.inputs.tolist()
        plans: list[_Plan | None] = [None] * len(self.trace.input_table)
        first, numbers = self.places
        kind = self._tensor_class
        last: list[Any] = [-1, None]  # an event and its inputs: they are mostly read several times in a row

        def inputs_of(fields: Any) -> list[Any]:
            row = fields._row
            index = index_of[row]
            if index < 0:
                return []
            if last[0] == row:
                return last[1][:]
            plan = plans[index]
            if plan is None:
                plan = plans[index] = self.plan(index)
            values, tensors, lists = plan
            made = values[:]
            place = first[row]
            for at, offset, about in tensors:
                made[at] = tensor = kind()
                tensor._number = numbers[place + offset]
                tensor._about = about
            for at, offset, abouts in lists:
                made[at] = [
                    self.tensor(numbers[place + further], about)
                    for further, about in enumerate(abouts, offset)
                ]
            last[0], last[1] = row, made
            return made[:]

        return inputs_of

    @cached_property
    def places(self) -> tuple[list[int], list[int]]:
        """By event where the numbers of its tensors begin, and the numbers; where none were recorded there are zeros."""
        most = max((sum(inputs.tensor_slots) for inputs in self.trace.input_table), default=0)
        if not self.recorded:
            return [0] * len(self.trace), [0] * most
        first, numbers = self.ids.first, self.ids.tensor
        return np.where(first < 0, len(numbers), first).tolist(), numbers.tolist() + [0] * most

    def plan(self, index: int) -> _Plan:
        """How the inputs of events are put together, by number in the Trace's table."""
        return _plan(self.trace.input_table[index])

    def tensor(self, number: int, about: TensorInput) -> _TensorMetadata:
        """A tensor from its number (0: not recorded) and what it is like."""
        made = self._tensor_class()
        made._number, made._about = number, about
        return made

    # ------------------------------------------------------------------------------------------------ by number

    def first_number(self, number: int) -> int | None:
        """The first that the same tensor had; None: not recorded."""
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

    def memory_facts(self) -> dict[int, tuple[int, int, int]]:
        """By number of memory on which tensors were met: id, allocation id, address."""
        if not (self.tracked and self.recorded):
            return {}
        allocation, shown = self._ids
        addresses = self._addresses
        return {
            number: (identity, allocation[number], addresses[number])
            for number, identity in shown.items()
            if number in addresses
        }

    def has_memory(self, number: int) -> bool:
        """Whether a tensor's memory is known; that of a number that stands in the place of a tensor counts as known."""
        if not number:
            return self.tracked
        return self.id(number) is not None and self.address(number) is not None

    def tensor_facts(self, by_memory: dict[int, Any]) -> list[Any]:
        """What is said of memory, by place in the numbers of tensors (see `places`); -1: nothing."""
        memory_of = self._memory_of if by_memory else {}
        said = {number: by_memory.get(memory, -1) for number, memory in memory_of.items()}
        return [said.get(number, -1) for number in self.places[1]]

    @cached_property
    def _memory_numbers(self) -> list[int]:
        return self.ids.memory.tolist()

    def memory_number(self, row: int) -> int:
        """Of a row of the Trace's memory; 0: not recorded."""
        return self._memory_numbers[row] if self.tracked and self.recorded else 0

    def memory_address(self, row: int) -> int:
        """Of a row of the Trace's memory."""
        number = self.memory_number(row)
        return self._addresses.get(number, number) if number else int(self.trace.memory.address[row])

    @staticmethod
    def device(number: int, kind: str | None) -> Any:
        """A device by number; -1: the CPU."""
        return torch_types.device("cpu" if number < 0 else f"{kind or 'cuda'}:{number}")


class _Row:
    """Stands for the fields of an event."""

    __slots__ = ("_row",)

    def __init__(self, row: int) -> None:
        self._row = row


class _Plan(NamedTuple):
    """How the inputs of an event are put together: what stands where, and which number is whose."""

    values: list[Any]  # numbers; None for everything else, and where tensors come
    tensors: list[tuple[int, int, TensorInput]]  # where, which of the event's numbers, what it is like
    lists: list[tuple[int, int, TensorList]]  # the same of lists, with the first number's


def _plan(inputs: Inputs) -> _Plan:
    plan = _Plan([], [], [])
    offset = 0
    for place, (slots, argument) in enumerate(zip(inputs.tensor_slots, inputs.arguments)):
        plan.values.append(argument if isinstance(argument, (bool, int, float, complex)) else None)
        if isinstance(argument, TensorInput):
            plan.tensors.append((place, offset, argument))
        elif isinstance(argument, TensorList) and not isinstance(argument, IndexList):
            plan.lists.append((place, offset, argument))
        offset += slots
    return plan
