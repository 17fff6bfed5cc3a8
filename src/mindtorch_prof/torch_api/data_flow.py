"""Data flow: an event tree in; which op read, wrote, made and freed which memory, in versions, out. Names are torch's
(`torch.profiler._memory_profiler`, which shows them all). Works on the tree's columns; objects are for who asks."""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Iterator
from typing import Any

import numpy as np

from .basic_evaluation import traverse_dfs
from .enums import RecordScope
from .event_tree import EventTree, _ProfilerEvent
from .event_tree_fields import _EventType, _ExtraFields_Allocation, _ExtraFields_TorchOp, _TensorMetadata
from .op_schemas import matches, mutable
from .tensor_ids import Tensors

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

    device: Any


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
        tensor_id: int | None, storage_ptr: int | None, allocation_id: int | None, device: Any
    ) -> TensorKey | None:
        if tensor_id is None or storage_ptr is None or allocation_id is None:
            return None
        return _key(tensor_id, storage_ptr, allocation_id, device)

    @classmethod
    def from_allocation(cls, alloc: _ExtraFields_Allocation) -> TensorKey | None:
        """Of the memory that an allocation took or gave back; None if no tensor was seen on it."""
        return cls._make(alloc.id, alloc.ptr, alloc.allocation_id, alloc.device)

    @classmethod
    def from_tensor(cls, t: _TensorMetadata | None) -> TensorKey | None:
        """Of a tensor; None for one without memory."""
        return None if t is None else cls._make(t.id, t.storage_data_ptr, t.allocation_id, t.device)

    @property
    def _as_sortable(self) -> tuple[int, int, str, int | None]:
        return self.id, self.storage.allocation_id, self.device.type, self.device.index


@functools.lru_cache(maxsize=1 << 16)  # asked several times for each tensor that goes into an op
def _key(tensor_id: int, storage_ptr: int, allocation_id: int, device: Any) -> TensorKey:
    return TensorKey(device, tensor_id, _Storage(storage_ptr, allocation_id))


# ---------------------------------------------------------------------------------------------------- parameters and gradients


def _extract_parameters_and_gradients(
    node: _ProfilerEvent,
) -> Iterator[tuple[TensorKey | None, TensorKey | None]]:
    key = TensorKey.from_tensor
    kind, fields = node.typed
    if kind is _EventType.TorchOp:
        # a new gradient is detached, one that was there before is added to
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
    """The parameters that an event tells of."""
    for parameter, _ in _extract_parameters_and_gradients(node):
        if parameter is not None:
            yield parameter


def extract_gradients(node: _ProfilerEvent) -> Iterator[tuple[TensorKey | None, TensorKey]]:
    """The gradients that an event tells of, with their parameters where it does."""
    for parameter, gradient in _extract_parameters_and_gradients(node):
        if gradient is not None:
            yield parameter, gradient


def get_scopes(event: _ProfilerEvent | None) -> tuple[RecordScope, ...]:
    """The scopes of an event and of what lies around it, innermost first."""
    found = []
    while event is not None:
        if event.tag is _EventType.TorchOp:
            found.append(event.extra_fields.scope)
        event = event.parent
    return tuple(found)


# ---------------------------------------------------------------------------------------------------- trees and sizes


class OpTree:
    """The event tree of a recording."""

    def __init__(self, result: Any) -> None:
        self._root_nodes = result.experimental_event_tree()
        self._tree: EventTree | None = self._root_nodes[0]._tree if self._root_nodes else None
        walked = list(self.dfs())
        order = np.argsort([event.start_time_ns for event in walked], kind="stable")
        self._sorted_nodes = tuple([walked[place] for place in order.tolist()])

    def dfs(self, *args: Any, **kwargs: Any) -> Iterator[_ProfilerEvent]:
        """All events, what is inside one right after it."""
        yield from traverse_dfs(self._root_nodes, *args, **kwargs)

    @property
    def sorted_nodes(self) -> tuple[_ProfilerEvent, ...]:
        """All events in the order of time."""
        return self._sorted_nodes

    @functools.cached_property
    def met(self) -> Met:
        """Which memory the events met."""
        return Met(self._tree)

    def telling(self) -> list[_ProfilerEvent]:
        """The events that may tell of parameters, gradients or states."""
        tree = self._tree
        if tree is None:
            return []
        texts, ids = tree.name_columns
        mask = np.array([text == _ACCUMULATE for text in texts], bool)[ids] | (tree.owner_column >= 0)
        return [tree.nodes[place] for place in np.flatnonzero(mask).tolist()]


class Met:
    """Which memory the events of a tree met: keys are numbered in their order, and events told by row."""

    def __init__(self, tree: EventTree | None) -> None:
        self.keys: list[TensorKey] = []
        # by event: key, how it may be written, bytes that it reaches
        self.tensors: list[list[tuple[int, int, int]]] = []
        self.is_op: list[bool] = []  # by event: whether a schema fits it
        self.with_numbers: set[int] = set()  # events of which an input is a number in a tensor's place
        self.allocations: list[tuple[int, int]] = []  # by allocation: key or -1, bytes
        if tree is None:
            return
        tensors = tree.tensors
        memory, device = tensors.memory_facts(), tensors.device(-1, None)
        for number, (identity, allocation, address) in sorted(memory.items(), key=lambda item: item[1]):
            self.keys.append(_key(identity, address, allocation, device))
            memory[number] = len(self.keys) - 1  # type: ignore[assignment]
        self._place_tensors(tree, tensors.tensor_facts(memory))
        found = [memory.get(tensors.memory_number(row), -1) for row in range(len(tree.memory_list))]
        self.allocations = list(zip(found, tree.memory_list))  # type: ignore[arg-type]

    def _place_tensors(self, tree: EventTree, keys: list[int]) -> None:
        tensors = tree.tensors
        forms: dict[tuple[int, int], _Form] = {}
        first, numbers = tensors.places
        for row, form in enumerate(zip(tree.trace.name.tolist(), tree.trace.inputs.tolist())):
            made = forms.get(form)
            if made is None:
                made = forms[form] = _Form(tensors, tree.trace.names[form[0]], form[1])
            place = first[row]
            found = []
            missing: tuple[int, ...] = ()
            for offset, at, bit, reach in made.tensors:
                key = keys[place + offset]
                if key >= 0:
                    found.append((key, bit, reach))
                elif numbers[place + offset]:
                    missing += (at,)
                else:
                    self.with_numbers.add(row)
            if missing:
                is_op, bits = made.without(missing)
                found = [
                    (key, bits[at], reach)
                    for offset, at, _, reach in made.tensors
                    if (key := keys[place + offset]) >= 0
                ]
            self.is_op.append(is_op if missing else made.is_op)
            self.tensors.append(found)


class _Form:
    """Events of one name and with inputs that look alike: whether a schema fits them, and what it says of their tensors."""

    def __init__(self, ids: Tensors, name: str, index: int) -> None:
        values, tensors, lists = ids.plan(index) if index >= 0 else ([], [], [])
        self.name = name
        self.kinds = ["-" if value is None else "S" for value in values]
        for at, _, _ in tensors:
            self.kinds[at] = "T"
        for at, _, _ in lists:
            self.kinds[at] = "L"
        self.others: dict[tuple[int, ...], tuple[bool, list[int]]] = {}
        self.is_op, bits = self.without(())
        # which of the event's numbers is its own, which argument it is (in), how it may be written, the bytes that it reaches
        self.tensors: list[tuple[int, int, int, int]] = [
            (offset, at, bits[at], about.reach()) for at, offset, about in tensors
        ]
        for at, offset, abouts in lists:
            self.tensors += [
                (further, at, bits[at], about.reach()) for further, about in enumerate(abouts, offset)
            ]

    def without(self, missing: tuple[int, ...]) -> tuple[bool, list[int]]:
        """Whether a schema fits, and how each argument may be written, if these arguments have no memory: they look like nothing."""
        made = self.others.get(missing)
        if made is None:
            kinds = tuple(["-" if at in missing else kind for at, kind in enumerate(self.kinds)])
            bits = [_BITS[said] for said in mutable(self.name, kinds)]
            made = self.others[missing] = bool(matches(self.name, kinds)), bits
        return made


# how an op may write to an input, as bits: what several ops say of it is joined
_NOT_WRITTEN, _WRITTEN, _UNKNOWN = 1, 2, 4
_BITS = {False: _NOT_WRITTEN, True: _WRITTEN, None: _UNKNOWN}


class SizeMap:
    """The bytes of each piece of memory: as it was allocated, or else as far as tensors reach in it."""

    def __init__(self, op_tree: OpTree) -> None:
        met = op_tree.met
        reached = [0] * len(met.keys)
        seen = set()
        for tensors in met.tensors:
            for key, _, reach in tensors:
                seen.add(key)
                reached[key] = max(reached[key], reach)
        self._values = {met.keys[key]: reached[key] for key in seen}
        for event in op_tree.telling():
            if event.tag is _EventType.PyCall:
                for held in _held_tensors(event.extra_fields):
                    self._update_values(held)
        allocated: dict[int, int] = {}
        for key, signed in met.allocations:
            size = abs(signed)
            if key >= 0 and allocated.setdefault(key, size) != size:
                log.warning("Mismatch between allocation and free: %d vs. %d", allocated[key], size)
        self._values.update((met.keys[key], size) for key, size in allocated.items())

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


def _held_tensors(call: Any) -> Iterator[_TensorMetadata | None]:
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
    """What an op has to do with a piece of memory."""

    input_version: int | None = None  # None: it was taken inside
    mutated: bool | None = False  # None: it was given back inside

    @property
    def is_allocation(self) -> bool:
        """Whether the memory was taken inside."""
        return self.input_version is None

    @property
    def is_deletion(self) -> bool:
        """Whether the memory was given back inside."""
        return self.mutated is None


class DataFlowNode:
    """An op, and the memory that it and everything in it met."""

    def __init__(self, event: _ProfilerEvent, graph: DataFlowGraph) -> None:
        self._event = event
        self._graph = graph
        self._edges: dict[TensorKey, DataFlowEdge] = self._determine_edges()
        for key, edge in self._edges.items():
            if edge.mutated and not edge.is_allocation:
                graph.bump(key)
        # what was written has the next version now; what is gone has none
        wrong = [
            key
            for key, edge in self._edges.items()
            if not (edge.is_allocation and edge.is_deletion) and not self._consistent(key, edge)
        ]
        if wrong:
            raise AssertionError(f"the versions of {wrong} at {event.name} do not follow each other")
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
        tree, met = self._event._tree, graph._op_tree.met
        keys, rows, kinds = met.keys, tree.rows, tree.kinds
        written: dict[int, int] = {}
        taken: list[int] = []
        given_back: list[int] = []
        for member in graph._members[place]:
            row = rows[member]
            if kinds[member] == _OP:
                for number, bit, _ in met.tensors[row]:
                    written[number] = written.get(number, 0) | bit
            else:
                number, signed = met.allocations[row - tree.first_memory]
                if number >= 0:
                    (taken if signed > 0 else given_back).append(number)
        if kinds[place] == _OP and tree.scopes[rows[place]] is not RecordScope.BACKWARD_FUNCTION:
            # A kernel's own memory: met first by an op inside this one, which was not given it, and never seen to be taken.
            # Backward functions bring what was saved for them.
            given = {number for number, _, _ in met.tensors[rows[place]]}
            known, born = graph._active_version, graph._born
            written = {
                number: said
                for number, said in written.items()
                if number in given or number in born or keys[number] in known
            }
        lookup = graph.lookup
        # where the schemas do not agree and no op inside knows better, a write is assumed
        edges = {
            number: DataFlowEdge(lookup(keys[number]), said & _WRITTEN > 0 or said == _UNKNOWN)
            for number, said in written.items()
        }
        for number in given_back:
            edges.setdefault(number, DataFlowEdge(lookup(keys[number]))).mutated = None
        for number in taken:
            edges.setdefault(number, DataFlowEdge()).input_version = None
        return {keys[number]: edges[number] for number in sorted(edges)}

    @property
    def inputs(self) -> dict[TensorKey, tuple[bool, int]]:
        """Memory that was there before: whether it is written to, and its version until then."""
        return {
            key: (bool(edge.mutated), edge.input_version)
            for key, edge in self._edges.items()
            if edge.input_version is not None
        }

    @property
    def outputs(self) -> dict[TensorKey, int]:
        """Memory that is new or written to and stays: its version from now on."""
        return {
            key: 0 if edge.input_version is None else edge.input_version + 1
            for key, edge in self._edges.items()
            if not edge.is_deletion and (edge.is_allocation or edge.mutated)
        }

    @property
    def intermediates(self) -> tuple[TensorKey, ...]:
        """Memory that was taken and given back inside."""
        return tuple(key for key, edge in self._edges.items() if edge.is_allocation and edge.is_deletion)

    @property
    def start_time(self) -> int:
        """When it began."""
        return self._event.start_time_ns


class DataFlowGraph:
    """Ops in the order of time, with the versions of the memory that they met."""

    def __init__(self, op_tree: OpTree) -> None:
        self._op_tree = op_tree
        # by place of a leaf: of the ops and allocations in it, itself among them
        self._members: dict[int, list[int]] = {}
        self._backward: set[int] = set()  # places of the leaves that belong to a backward pass
        self._leaf_events = self._extract_leaf_events(op_tree)
        self._active_version: dict[TensorKey, int | None] = {}
        self._born = {key for key, signed in op_tree.met.allocations if signed > 0}
        self._flow_nodes = [DataFlowNode(event, self) for event in self.leaf_events]
        self._flow_nodes.sort(key=lambda node: node.start_time)
        self.validate()

    @property
    def flow_nodes(self) -> tuple[DataFlowNode, ...]:
        """The ops."""
        return tuple(self._flow_nodes)

    def validate(self) -> None:
        """Check that versions follow each other: each is made once, before it is read."""
        outputs: set[tuple[TensorKey, int]] = set()
        for node in self.flow_nodes:
            for made in node.outputs.items():
                if made in outputs:
                    raise AssertionError(f"made twice: {made}")
                outputs.add(made)
        known: dict[TensorKey, int] = {}
        for node in self.flow_nodes:
            for key, edge in node._edges.items():
                version = edge.input_version
                if version is not None:
                    if known.get(key, 0) > version:
                        raise AssertionError(f"{key} is read in version {version} after a later one")
                    known[key] = version

    @property
    def leaf_events(self) -> tuple[_ProfilerEvent, ...]:
        """The outermost events that are ops, backward functions or allocations."""
        return self._leaf_events

    def _extract_leaf_events(self, op_tree: OpTree) -> tuple[_ProfilerEvent, ...]:
        tree = op_tree._tree
        if tree is None:
            return ()
        is_op, scopes, kinds, rows = op_tree.met.is_op, tree.scopes, tree.kinds, tree.rows
        leaf_of, backward = [-1] * tree.size, [False] * tree.size
        members = self._members
        leaves: list[int] = []
        for place, above in enumerate(tree.parent_list):  # what lies around others stands before them
            kind = kinds[place]
            if above >= 0:
                leaf, back = leaf_of[above], backward[above]
            else:
                leaf, back = -1, False
            if kind == _OP:
                begins = scopes[rows[place]] is RecordScope.BACKWARD_FUNCTION
                backward[place] = back or begins
                if leaf < 0 and (begins or is_op[rows[place]]):
                    leaf = place
                    members[leaf] = []
                    leaves.append(leaf)
            else:
                backward[place] = back
                if kind == _ALLOCATION and leaf < 0:
                    leaf = place
                    members[leaf] = []
                    leaves.append(leaf)
            leaf_of[place] = leaf
            if leaf >= 0 and kind in (_OP, _ALLOCATION):
                members[leaf].append(place)
        self._backward.update(leaf for leaf in leaves if backward[leaf])
        starts = tree.start_list
        # of those that begin together, in the order of a walk
        walked = np.empty(tree.size, np.int64)
        walked[tree.preorder] = np.arange(tree.size)
        leaves.sort(key=walked.tolist().__getitem__)
        leaves.sort(key=starts.__getitem__)
        return tuple([tree.nodes[leaf] for leaf in leaves])

    def is_given_number(self, event: _ProfilerEvent) -> bool:
        """Whether an op is given a Python number in the place of a tensor."""
        tree = event._tree
        return tree.kinds[event._node] == _OP and tree.rows[event._node] in self._op_tree.met.with_numbers

    def lookup(self, key: TensorKey) -> int:
        """The version of memory now."""
        version = self._active_version.setdefault(key, 0)
        if version is None:
            raise AssertionError(f"{key} has been given back")
        return version

    def bump(self, key: TensorKey) -> None:
        """Memory is written to."""
        self._active_version[key] = self.lookup(key) + 1

    def delete(self, key: TensorKey) -> None:
        """Memory is given back."""
        self.lookup(key)
        self._active_version[key] = None
