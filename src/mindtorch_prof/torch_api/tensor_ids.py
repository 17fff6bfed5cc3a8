"""Ids of tensors and memory: a Trace's identities in; ids, allocation ids, addresses and descriptions of tensors out.

Memory is numbered in the order in which it appears; tensors that share memory, or are one tensor before and after it got other memory, share
an id. Everything without memory (empty, sparse) shares one, as in torch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from .. import inputs as described
from ..file_inputs import FileInputs
from ..trace import Trace
from .event_tree_fields import _TensorMetadata, view_class

_ONE_SLOT = frozenset(("Tensor", "Tensor?"))
_LIST_SLOTS = frozenset(("Tensor[]", "Tensor?[]"))


class Known:
    """What is known of the tensors and the memory of a Trace."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.identities = trace.identities
        self.recorded = bool(self.identities)
        # ids need the births and ends of memory; without them an address may stand for several
        self.tracked = bool(trace.settings.get("profile_memory") and trace.settings.get("record_shapes"))
        self._tensor_class = view_class(_TensorMetadata, self)

    # ------------------------------------------------------------------------------------------------ numbers

    @cached_property
    def _tensors(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of tensors (sorted), and of the memory of each."""
        ids = self.identities
        held = np.array([number for number, _ in self._held_tensors], np.int64)
        numbers = np.unique(np.concatenate([ids.tensor, ids.storages[:, 0], ids.links.reshape(-1), held]))
        memory = numbers.copy()
        memory[np.searchsorted(numbers, ids.storages[:, 0])] = ids.storages[:, 1]
        return numbers, memory

    @cached_property
    def _held_tensors(self) -> list[tuple[int, int]]:
        """(number, when) of the tensors that modules and optimizers held."""
        ids, frames = self.identities, self.trace.frames
        made = []
        for index, held in enumerate(ids.held):
            rows = np.flatnonzero(ids.frame == index)
            at = int(frames.start_ns[rows].min()) if len(rows) else self.trace.window_ns[1]
            for _, parameter, gradient, states in held.parameters:
                made += [(t[0], at) for t in (parameter, gradient, *(s for _, s in states)) if t is not None]
        return made

    @cached_property
    def _addresses(self) -> dict[int, int]:
        rows = self.identities.storages
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
        for before, after in self.identities.links.tolist():
            first[after] = first.get(before, before)
        return first

    @cached_property
    def _ids(self) -> tuple[dict[int, int], dict[int, int]]:
        """By number of memory: allocation id, and id of the tensors that share it (missing: no tensor was met)."""
        seen_at, seen = self._met()
        memory = self.trace.memory
        order = np.lexsort((np.concatenate([np.zeros(len(seen)), np.ones(len(memory))]),
                            np.concatenate([seen_at, memory.time_ns])))  # fmt: skip
        every = np.concatenate([seen, self.identities.memory])[order]
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
        trace, ids = self.trace, self.identities
        counts = np.array([self._slots(index) for index in range(len(trace.input_table))] + [0], np.int64)
        events = np.flatnonzero((ids.first >= 0) & (trace.inputs >= 0))
        many = counts[trace.inputs[events]]
        inside = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        number = ids.tensor[np.repeat(ids.first[events], many) + inside]
        at = np.repeat(trace.start_ns[events], many)
        real = number > 0
        held = np.array(self._held_tensors, np.int64).reshape(-1, 2)
        number, at = np.concatenate([number[real], held[:, 0]]), np.concatenate([at[real], held[:, 1]])
        numbers, memory = self._tensors
        return at, memory[np.searchsorted(numbers, number)]

    # ------------------------------------------------------------------------------------------------ what went in

    def _slots(self, index: int) -> int:
        """How many numbers stand for an event's tensors."""
        return sum(count for count, _ in self._layout(index))

    def _layout(self, index: int) -> list[tuple[int, Any]]:
        """Of each argument: how many numbers stand for it, and its description."""
        op, description = self.trace.input_table[index]
        if isinstance(description, FileInputs):
            return _of_file(description)
        if op is None:
            return [
                (
                    1
                    if described.is_tensor(v)
                    else sum(map(described.is_tensor, v))
                    if v.__class__ is tuple
                    else 0,
                    v,
                )
                for v in description
            ]
        kinds = [argument.kind for argument in op.schema.arguments]
        return [
            (1, v)
            if kind in _ONE_SLOT
            else (0, v)
            if kind not in _LIST_SLOTS or v.__class__ is not tuple
            else (len(v), (v or _FileTensors()) if kind == "Tensor[]" else None)
            for kind, v in zip(kinds, description)
        ]  # indices (Tensor?[]) are no list of tensors to torch

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
        most = max((self._slots(index) for index in range(len(self.trace.input_table))), default=0)
        if not self.recorded:
            return [0] * len(self.trace), [0] * most
        first, numbers = self.identities.first, self.identities.tensor
        return np.where(first < 0, len(numbers), first).tolist(), numbers.tolist() + [0] * most

    def plan(self, index: int) -> _Plan:
        """How the inputs of events are put together, by number in the Trace's table."""
        return _plan(self._layout(index))

    def tensor(self, number: int, about: tuple) -> _TensorMetadata:
        """A tensor from its number (0: not recorded) and (shape, strides in bytes, type)."""
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

    def reach(self, about: tuple) -> int:
        """The bytes of memory that a tensor reaches, as far as its longest dimension tells; 0 for one without memory of its own."""
        shape, strides, kind = about
        if about.__class__ is _FileTensor or len(shape) != len(strides):
            return 0
        if not shape:
            return _types()[kind].itemsize
        return max(size * stride for size, stride in zip(shape, strides))

    @cached_property
    def _memory_numbers(self) -> list[int]:
        return self.identities.memory.tolist()

    def memory_number(self, row: int) -> int:
        """Of a row of the Trace's memory; 0: not recorded."""
        return self._memory_numbers[row] if self.tracked and self.recorded else 0

    def memory_address(self, row: int) -> int:
        """Of a row of the Trace's memory."""
        number = self.memory_number(row)
        return self._addresses.get(number, number) if number else int(self.trace.memory.address[row])

    def dtype(self, kind: Any) -> Any:
        """The type that a description names; None: a file does not say it."""
        return _named_types().get(kind) if kind.__class__ is str else _types()[kind]

    def strides(self, about: tuple) -> list[int]:
        """In elements."""
        if about.__class__ is _FileTensor:
            return list(about[1])
        size = _types()[about[2]].itemsize
        return [stride // size for stride in about[1]]

    def layout(self, about: tuple) -> Any:
        """What has dimensions and no strides is sparse."""
        return _layouts()[about.__class__ is not _FileTensor and len(about[0]) != len(about[1])]

    @staticmethod
    def device(number: int, kind: str | None) -> Any:
        """A device by number; -1: the CPU."""
        return _cpu() if number < 0 else _device(kind or "cuda", number)


class _FileTensor(NamedTuple):
    """A tensor as a file tells of it: strides in elements, the type as C++ names it."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    type: str


class _FileTensors(tuple[_FileTensor, ...]):
    """A list of tensors as a file tells of it; or an empty one, which no description can be told from other empty lists."""

    __slots__ = ()


class _Row:
    """Stands for the fields of an event."""

    __slots__ = ("_row",)

    def __init__(self, row: int) -> None:
        self._row = row


class _Plan(NamedTuple):
    """How the inputs of an event are put together: what stands where, and which number is whose."""

    values: list[Any]  # numbers; None for everything else, and where tensors come
    tensors: list[tuple[int, int, tuple]]  # where, which of the event's numbers, what it is like
    lists: list[tuple[int, int, tuple]]  # the same of lists, with the first number's


def _plan(layout: list[tuple[int, Any]]) -> _Plan:
    made = _Plan([], [], [])
    offset = 0
    for at, (count, value) in enumerate(layout):
        is_number = isinstance(value, (bool, int, float, complex))
        made.values.append(value if is_number else None)
        if value.__class__ is _FileTensor or described.is_tensor(value):
            made.tensors.append((at, offset, value))
        elif value.__class__ is _FileTensors or described.is_tensor_list(value):
            made.lists.append((at, offset, value))
        offset += count
    return made


def _of_file(description: FileInputs) -> list[tuple[int, Any]]:
    """Inputs as a file words them, in the form of a layout."""
    made: list[tuple[int, Any]] = []
    columns = zip(
        description.dims, description.strides, description.types, description.tensors, description.values
    )
    for shape, strides, kind, is_tensor, value in columns:
        if is_tensor:
            made.append((1, _FileTensor(tuple(shape), tuple(strides), kind)))
        elif kind == "TensorList":
            steps = strides if len(strides) == len(shape) else [()] * len(shape)
            listed = _FileTensors(_FileTensor(tuple(s), tuple(t), "") for s, t in zip(shape, steps))
            made.append((len(listed), listed))
        else:
            made.append((0, value))
    return made


# Imported when first asked: opening a trace file brings no tensor code.


@cache
def _named_types() -> dict[str, Any]:
    from mindtorch_v2 import _dtype

    by_name = {dtype._name: dtype for dtype in _dtype.BY_NUM.values()}
    return {text: by_name[name] for name, text in described._TYPE_NAMES.items() if name in by_name}


@cache
def _types() -> Any:
    from mindtorch_v2 import _dtype

    return _dtype.BY_NUM


@cache
def _layouts() -> tuple[Any, Any]:
    from mindtorch_v2 import _dtype

    return _dtype.strided, _dtype.sparse_coo


@cache
def _cpu() -> Any:
    from mindtorch_v2._device import CPU

    return CPU


def _device(kind: str, number: int) -> Any:
    from mindtorch_v2._device import device

    return device(kind, number)
