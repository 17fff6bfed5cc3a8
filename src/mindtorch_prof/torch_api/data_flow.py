"""Data flow: an event tree in; which op read, wrote, allocated and freed which version of which memory out. Names are torch's
(`torch.profiler._memory_profiler`). Works on the tree's columns; event objects are made where a caller asks for them."""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from .basic_evaluation import traverse_dfs
from .enums import RecordScope
from .event_tree import EventTree, _ProfilerEvent
from .event_tree_fields import (
    _EventType,
    _ExtraFields_Allocation,
    _ExtraFields_PyCall,
    _ExtraFields_TorchOp,
    _TensorMetadata,
)
from .op_schemas import matches, mutable
from .tensor_ids import InputLayout, Tensors
from .torch_types import TorchValue

log = logging.getLogger(__name__)

_ACCUMULATE = "torch::autograd::AccumulateGrad"
_OP, _ALLOCATION = _EventType.TorchOp.value, _EventType.Allocation.value


@dataclasses.dataclass
class _Storage:
    """A piece of memory: its address, and a number that tells it from others at the same address."""

    ptr: int
    allocation_id: int

    def __repr__(self) -> str:
        return f"{hex(self.ptr):>18} ({self.allocation_id})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Storage) and self.allocation_id == other.allocation_id

    def __hash__(self) -> int:
        return hash(self.allocation_id)


@dataclasses.dataclass(eq=True, unsafe_hash=True, frozen=True)
class Key:
    """Memory of which only the device is known."""

    device: TorchValue


@dataclasses.dataclass(eq=True, frozen=True)
class TensorKey(Key):
    """The tensors of one id, in one piece of memory."""

    id: int
    storage: _Storage

    def __hash__(self) -> int:
        return self.storage.allocation_id

    def __repr__(self) -> str:
        return f"id={self.id}: {self.storage!r:<24} ({self.device})"

    def __lt__(self, other: TensorKey) -> bool:
        return self._as_sortable < other._as_sortable

    @staticmethod
    def _make(
        tensor_id: int | None, storage_ptr: int | None, allocation_id: int | None, device: TorchValue
    ) -> TensorKey | None:
        if tensor_id is None or storage_ptr is None or allocation_id is None:
            return None
        return _key(tensor_id, storage_ptr, allocation_id, device)

    @classmethod
    def from_allocation(cls, alloc: _ExtraFields_Allocation) -> TensorKey | None:
        """Of the memory of an allocation or a free; None if no event had a tensor on it."""
        return cls._make(alloc.id, alloc.ptr, alloc.allocation_id, alloc.device)

    @classmethod
    def from_tensor(cls, t: _TensorMetadata | None) -> TensorKey | None:
        """Of a tensor; None for one without memory."""
        return None if t is None else cls._make(t.id, t.storage_data_ptr, t.allocation_id, t.device)

    @property
    def _as_sortable(self) -> tuple[int, int, str, int | None]:
        return self.id, self.storage.allocation_id, self.device.type, self.device.index


@functools.lru_cache(maxsize=1 << 16)  # called several times for each tensor that goes into an op
def _key(tensor_id: int, storage_ptr: int, allocation_id: int, device: TorchValue) -> TensorKey:
    return TensorKey(device, tensor_id, _Storage(storage_ptr, allocation_id))


# ---------------------------------------------------------------------------------------------------- parameters and gradients


def _extract_parameters_and_gradients(
    node: _ProfilerEvent,
) -> Iterator[tuple[TensorKey | None, TensorKey | None]]:
    key = TensorKey.from_tensor
    kind, fields = node.typed
    if kind is _EventType.TorchOp:
        # a new gradient is detached, an existing one is added to
        if fields.scope == RecordScope.BACKWARD_FUNCTION and node.name == _ACCUMULATE:
            child = next(iter(node.children), None)
            if (
                child is not None
                and child.tag is _EventType.TorchOp
                and child.name in ("aten::detach", "aten::add_")
            ):
                inputs = child.extra_fields.inputs
                if inputs and isinstance(inputs[0], _TensorMetadata):
                    yield None, key(inputs[0])
    elif kind is _EventType.PyCall:
        if fields.module is not None:
            for _, parameter, gradient in fields.module.parameters:
                yield key(parameter), key(gradient)
        if fields.optimizer is not None:
            for parameter, gradient, _ in fields.optimizer.parameters:
                yield key(parameter), key(gradient)


def extract_parameters(node: _ProfilerEvent) -> Iterator[TensorKey]:
    """The parameters of the module or optimizer whose call an event is."""
    for parameter, _ in _extract_parameters_and_gradients(node):
        if parameter is not None:
            yield parameter


def extract_gradients(node: _ProfilerEvent) -> Iterator[tuple[TensorKey | None, TensorKey]]:
    """The gradients that an event accumulates or its module or optimizer holds, with their parameters where these are known."""
    for parameter, gradient in _extract_parameters_and_gradients(node):
        if gradient is not None:
            yield parameter, gradient


def get_scopes(event: _ProfilerEvent | None) -> tuple[RecordScope, ...]:
    """The scopes of an event and of the events around it, innermost first."""
    scopes = []
    while event is not None:
        if event.tag is _EventType.TorchOp:
            scopes.append(event.extra_fields.scope)
        event = event.parent
    return tuple(scopes)


# ---------------------------------------------------------------------------------------------------- trees and sizes


class HasEventTree(Protocol):
    """A finished recording: torch's `_ProfilerResult`."""

    def experimental_event_tree(self) -> list[_ProfilerEvent]:
        """The roots of the event tree."""


class OpTree:
    """The event tree of a recording."""

    def __init__(self, result: HasEventTree) -> None:
        self._root_nodes = result.experimental_event_tree()
        self._tree: EventTree | None = self._root_nodes[0]._tree if self._root_nodes else None
        nodes = list(self.dfs())
        order = np.argsort([event.start_time_ns for event in nodes], kind="stable")
        self._sorted_nodes = tuple([nodes[place] for place in order.tolist()])

    def dfs(self, *args: Any, **kwargs: Any) -> Iterator[_ProfilerEvent]:
        """All events depth first."""
        yield from traverse_dfs(self._root_nodes, *args, **kwargs)

    @property
    def sorted_nodes(self) -> tuple[_ProfilerEvent, ...]:
        """All events in the order of time."""
        return self._sorted_nodes

    @functools.cached_property
    def memory_uses(self) -> MemoryUses:
        """Which memory the events used."""
        return MemoryUses(self._tree)

    def parameter_events(self) -> list[_ProfilerEvent]:
        """The events from which parameters, gradients or states are known: calls of modules and optimizers, accumulated gradients."""
        tree = self._tree
        if tree is None:
            return []
        texts, ids = tree.name_columns
        mask = np.array([text == _ACCUMULATE for text in texts], bool)[ids] | (tree.owner_column >= 0)
        return [tree.nodes[place] for place in np.flatnonzero(mask).tolist()]


class MemoryUses:
    """Which memory the events of a tree used. Keys are numbered in their order; events and allocations are in the order of rows."""

    def __init__(self, tree: EventTree | None) -> None:
        self.keys: list[TensorKey] = []
        # by event, of each of its tensors: number of the key, how it may be written (bits), bytes that it spans
        self.tensors: list[list[tuple[int, int, int]]] = []
        self.is_op: list[bool] = []  # by event: whether a schema fits it
        self.with_numbers: set[int] = set()  # events that were given a number in the place of a tensor
        self.allocations: list[tuple[int, int]] = []  # by allocation: number of the key or -1, bytes
        if tree is None:
            return
        tensors = tree.tensors
        device = tensors.device(-1, None)
        key_number: dict[int, int] = {}  # by number of memory
        for memory, (identity, allocation, address) in sorted(
            tensors.memory_ids().items(), key=lambda item: item[1]
        ):
            key_number[memory] = len(self.keys)
            self.keys.append(_key(identity, address, allocation, device))
        self._add_tensors(tree, tensors.by_place(key_number))
        sizes = tree.allocation_sizes
        numbers = [key_number.get(tensors.memory_number(row), -1) for row in range(len(sizes))]
        self.allocations = list(zip(numbers, sizes))

    def _add_tensors(self, tree: EventTree, key_numbers: list[int]) -> None:
        """Fill the columns by event. key_numbers: by place in the numbers of tensors."""
        tensors = tree.tensors
        calls: dict[tuple[int, int], _OpCall] = {}
        first, numbers = tensors.places
        for row, name_and_inputs in enumerate(zip(tree.trace.name.tolist(), tree.trace.inputs.tolist())):
            call = calls.get(name_and_inputs)
            if call is None:
                name, inputs = name_and_inputs
                call = calls[name_and_inputs] = _OpCall(tensors, tree.trace.names[name], inputs)
            place = first[row]
            used = []
            without_memory: tuple[int, ...] = ()
            for offset, argument, bits, reach in call.tensors:
                key = key_numbers[place + offset]
                if key >= 0:
                    used.append((key, bits, reach))
                elif numbers[place + offset]:
                    without_memory += (argument,)
                else:
                    self.with_numbers.add(row)
            if without_memory:
                is_op, mutability = call.without(without_memory)
                used = [
                    (key, mutability[argument], reach)
                    for offset, argument, _, reach in call.tensors
                    if (key := key_numbers[place + offset]) >= 0
                ]
            self.is_op.append(is_op if without_memory else call.is_op)
            self.tensors.append(used)


class _OpCall:
    """Events of one name with inputs of one layout: whether a schema fits them, and how it may write to their tensors."""

    def __init__(self, ids: Tensors, name: str, index: int) -> None:
        values, tensors, lists = ids.layout(index) if index >= 0 else InputLayout([], [], [])
        self.name = name
        self.kinds = ["-" if value is None else "S" for value in values]  # as op_schemas.kind_of
        for argument, _, _ in tensors:
            self.kinds[argument] = "T"
        for argument, _, _ in lists:
            self.kinds[argument] = "L"
        self._without: dict[tuple[int, ...], tuple[bool, list[int]]] = {}
        self.is_op, bits = self.without(())
        # offset of the tensor's number among the event's, index of the argument, how it may be written, bytes that it spans
        self.tensors: list[tuple[int, int, int, int]] = [
            (offset, argument, bits[argument], tensor.reach()) for argument, offset, tensor in tensors
        ]
        for argument, offset, members in lists:
            self.tensors += [
                (further, argument, bits[argument], tensor.reach())
                for further, tensor in enumerate(members, offset)
            ]

    def without(self, arguments: tuple[int, ...]) -> tuple[bool, list[int]]:
        """Whether a schema fits, and how each argument may be written, if these arguments have no memory."""
        answer = self._without.get(arguments)
        if answer is None:
            kinds = tuple(["-" if index in arguments else kind for index, kind in enumerate(self.kinds)])
            bits = [_BITS[written] for written in mutable(self.name, kinds)]
            answer = self._without[arguments] = bool(matches(self.name, kinds)), bits
        return answer


# how an op may write to an input, as bits, so that the answers of several ops can be combined
_NOT_WRITTEN, _WRITTEN, _UNKNOWN = 1, 2, 4
_BITS = {False: _NOT_WRITTEN, True: _WRITTEN, None: _UNKNOWN}


class SizeMap:
    """The bytes of each piece of memory: as allocated, or else the most that tensors span in it."""

    def __init__(self, op_tree: OpTree) -> None:
        uses = op_tree.memory_uses
        spanned = [0] * len(uses.keys)
        used = set()
        for tensors in uses.tensors:
            for key, _, reach in tensors:
                used.add(key)
                spanned[key] = max(spanned[key], reach)
        self._values = {uses.keys[key]: spanned[key] for key in used}
        for event in op_tree.parameter_events():
            if event.tag is _EventType.PyCall:
                for tensor in _owned_tensors(event.extra_fields):
                    self._update_values(tensor)
        allocated: dict[int, int] = {}
        for key, nbytes in uses.allocations:
            size = abs(nbytes)
            if key >= 0 and allocated.setdefault(key, size) != size:
                log.warning("Mismatch between allocation and free: %d vs. %d", allocated[key], size)
        self._values.update((uses.keys[key], size) for key, size in allocated.items())

    def _update_values(self, t: _TensorMetadata | None) -> None:
        key = TensorKey.from_tensor(t)
        if key is not None and t is not None:
            self._values[key] = max(self._values.get(key, 0), t._about.reach())

    @staticmethod
    def _flat_tensor_inputs(op: _ExtraFields_TorchOp) -> Iterator[_TensorMetadata]:
        for value in op.inputs:
            if isinstance(value, _TensorMetadata):
                yield value
            elif isinstance(value, list):
                yield from value

    def __getitem__(self, key: TensorKey) -> int:
        return self._values[key]


def _owned_tensors(call: _ExtraFields_PyCall) -> Iterator[_TensorMetadata | None]:
    """The parameters, gradients and states of the module or optimizer that is called."""
    if call.module is not None:
        for _, parameter, gradient in call.module.parameters:
            yield parameter
            yield gradient
    if call.optimizer is not None:
        for parameter, gradient, states in call.optimizer.parameters:
            yield parameter
            yield gradient
            for _, state in states:
                yield state


# ---------------------------------------------------------------------------------------------------- flow


@dataclasses.dataclass
class DataFlowEdge:
    """The use of a piece of memory by an op."""

    input_version: int | None = None  # None: the op allocated it
    mutated: bool | None = False  # None: the op freed it

    @property
    def is_allocation(self) -> bool:
        """Whether the op allocated the memory."""
        return self.input_version is None

    @property
    def is_deletion(self) -> bool:
        """Whether the op freed the memory."""
        return self.mutated is None


class DataFlowNode:
    """An op, and the memory that it and everything inside it used."""

    def __init__(self, event: _ProfilerEvent, graph: DataFlowGraph) -> None:
        self._event = event
        self._graph = graph
        self._edges: dict[TensorKey, DataFlowEdge] = self._determine_edges()
        for key, edge in self._edges.items():
            if edge.mutated and not edge.is_allocation:
                graph.bump(key)
        # memory that was written has the next version now; memory that was freed has none
        inconsistent = [
            key
            for key, edge in self._edges.items()
            if not (edge.is_allocation and edge.is_deletion) and not self._consistent(key, edge)
        ]
        if inconsistent:
            raise AssertionError(f"the versions of {inconsistent} at {event.name} do not follow each other")
        for key, edge in self._edges.items():
            if edge.is_deletion and not edge.is_allocation:
                graph.delete(key)

    def _consistent(self, key: TensorKey, edge: DataFlowEdge) -> bool:
        if edge.is_allocation or edge.is_deletion:
            return True
        assert edge.input_version is not None
        return self._graph.lookup(key) == edge.input_version + bool(edge.mutated)

    def _determine_edges(self) -> dict[TensorKey, DataFlowEdge]:
        graph, place = self._graph, self._event._node
        tree, uses = self._event._tree, graph._op_tree.memory_uses
        keys, rows, kinds = uses.keys, tree.rows, tree.kinds
        written: dict[int, int] = {}  # by number of a key: how the ops inside may write to it
        allocated: list[int] = []
        freed: list[int] = []
        for member in graph._members[place]:
            row = rows[member]
            if kinds[member] == _OP:
                for number, bits, _ in uses.tensors[row]:
                    written[number] = written.get(number, 0) | bits
            else:
                number, nbytes = uses.allocations[row - tree.first_memory]
                if number >= 0:
                    (allocated if nbytes > 0 else freed).append(number)
        if kinds[place] == _OP and tree.scopes[rows[place]] is not RecordScope.BACKWARD_FUNCTION:
            # Leave out a kernel's own memory: used first by an op inside this one, no input of this one, its allocation not recorded.
            # Backward functions use saved tensors, which are no inputs either.
            inputs = {number for number, _, _ in uses.tensors[rows[place]]}
            used_before, born = graph._active_version, graph._born
            written = {
                number: bits
                for number, bits in written.items()
                if number in inputs or number in born or keys[number] in used_before
            }
        lookup = graph.lookup
        # where the schemas do not agree and no op inside decides it, a write is assumed
        edges = {
            number: DataFlowEdge(lookup(keys[number]), bits & _WRITTEN > 0 or bits == _UNKNOWN)
            for number, bits in written.items()
        }
        for number in freed:
            edges.setdefault(number, DataFlowEdge(lookup(keys[number]))).mutated = None
        for number in allocated:
            edges.setdefault(number, DataFlowEdge()).input_version = None
        return {keys[number]: edges[number] for number in sorted(edges)}

    @property
    def inputs(self) -> dict[TensorKey, tuple[bool, int]]:
        """Memory that existed before: whether it is written to, and its version until then."""
        return {
            key: (bool(edge.mutated), edge.input_version)
            for key, edge in self._edges.items()
            if edge.input_version is not None
        }

    @property
    def outputs(self) -> dict[TensorKey, int]:
        """Memory that is allocated or written to and not freed: its version from now on."""
        return {
            key: 0 if edge.input_version is None else edge.input_version + 1
            for key, edge in self._edges.items()
            if not edge.is_deletion and (edge.is_allocation or edge.mutated)
        }

    @property
    def intermediates(self) -> tuple[TensorKey, ...]:
        """Memory that was allocated and freed inside."""
        return tuple(key for key, edge in self._edges.items() if edge.is_allocation and edge.is_deletion)

    @property
    def start_time(self) -> int:
        """When it began."""
        return self._event.start_time_ns


class DataFlowGraph:
    """Ops in the order of time, with the versions of the memory that they used."""

    def __init__(self, op_tree: OpTree) -> None:
        self._op_tree = op_tree
        # by place of a leaf: places of the ops and allocations in it, itself among them
        self._members: dict[int, list[int]] = {}
        self._backward: set[int] = set()  # places of the leaves that belong to a backward pass
        self._leaf_events = self._extract_leaf_events(op_tree)
        self._active_version: dict[TensorKey, int | None] = {}
        self._born = {key for key, nbytes in op_tree.memory_uses.allocations if nbytes > 0}
        self._flow_nodes = [DataFlowNode(event, self) for event in self.leaf_events]
        self._flow_nodes.sort(key=lambda node: node.start_time)
        self.validate()

    @property
    def flow_nodes(self) -> tuple[DataFlowNode, ...]:
        """The ops."""
        return tuple(self._flow_nodes)

    def validate(self) -> None:
        """Check that versions follow each other: each is written once, before it is read."""
        outputs: set[tuple[TensorKey, int]] = set()
        for node in self.flow_nodes:
            for output in node.outputs.items():
                if output in outputs:
                    raise AssertionError(f"made twice: {output}")
                outputs.add(output)
        last_read: dict[TensorKey, int] = {}
        for node in self.flow_nodes:
            for key, edge in node._edges.items():
                version = edge.input_version
                if version is not None:
                    if last_read.get(key, 0) > version:
                        raise AssertionError(f"{key} is read in version {version} after a later one")
                    last_read[key] = version

    @property
    def leaf_events(self) -> tuple[_ProfilerEvent, ...]:
        """The outermost events that are ops, backward functions or allocations."""
        return self._leaf_events

    def _extract_leaf_events(self, op_tree: OpTree) -> tuple[_ProfilerEvent, ...]:
        tree = op_tree._tree
        if tree is None:
            return ()
        is_op, scopes, kinds, rows = op_tree.memory_uses.is_op, tree.scopes, tree.kinds, tree.rows
        leaf_of, backward = [-1] * tree.size, [False] * tree.size
        members = self._members
        leaves: list[int] = []
        for place, above in enumerate(tree.parent_list):  # a parent stands before its children
            kind = kinds[place]
            if above >= 0:
                leaf, in_backward = leaf_of[above], backward[above]
            else:
                leaf, in_backward = -1, False
            if kind == _OP:
                is_backward_function = scopes[rows[place]] is RecordScope.BACKWARD_FUNCTION
                backward[place] = in_backward or is_backward_function
                if leaf < 0 and (is_backward_function or is_op[rows[place]]):
                    leaf = place
                    members[leaf] = []
                    leaves.append(leaf)
            else:
                backward[place] = in_backward
                if kind == _ALLOCATION and leaf < 0:
                    leaf = place
                    members[leaf] = []
                    leaves.append(leaf)
            leaf_of[place] = leaf
            if leaf >= 0 and kind in (_OP, _ALLOCATION):
                members[leaf].append(place)
        self._backward.update(leaf for leaf in leaves if backward[leaf])
        # by time; leaves that begin together depth first
        rank = np.empty(tree.size, np.int64)
        rank[tree.preorder] = np.arange(tree.size)
        leaves.sort(key=rank.tolist().__getitem__)
        leaves.sort(key=tree.start_list.__getitem__)
        return tuple([tree.nodes[leaf] for leaf in leaves])

    def is_given_number(self, event: _ProfilerEvent) -> bool:
        """Whether an op is given a Python number in the place of a tensor."""
        tree = event._tree
        is_op = tree.kinds[event._node] == _OP
        return is_op and tree.rows[event._node] in self._op_tree.memory_uses.with_numbers

    def lookup(self, key: TensorKey) -> int:
        """The current version of memory."""
        version = self._active_version.setdefault(key, 0)
        if version is None:
            raise AssertionError(f"{key} has been freed")
        return version

    def bump(self, key: TensorKey) -> None:
        """Note that memory is written to."""
        self._active_version[key] = self.lookup(key) + 1

    def delete(self, key: TensorKey) -> None:
        """Note that memory is freed."""
        self.lookup(key)
        self._active_version[key] = None
