"""Data flow: an event tree in; which op read, wrote, made and freed which memory, in versions, out. Names are torch's
(`torch.profiler._memory_profiler`, which shows them all). Knows events by their fields alone."""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any

from . import _utils
from .devices import RecordScope
from .event_fields import _EventType, _ExtraFields_Allocation, _ExtraFields_TorchOp, _TensorMetadata
from .event_tree import _ProfilerEvent

log = logging.getLogger(__name__)

_BY_START: Callable[[Any], int] = lambda event: event.start_time_ns  # noqa: E731  (a key for several sorts)


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
        if fields.scope == RecordScope.BACKWARD_FUNCTION and node.name == "torch::autograd::AccumulateGrad":
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


# ---------------------------------------------------------------------------------------------------- schemas


@dataclasses.dataclass(frozen=True)
class AliasInfo:
    """Whether an op writes to an argument."""

    is_write: bool


class FunctionSchema:
    """The signature of an op, as torch shows it: its text, and what each argument is."""

    __slots__ = ("_schema",)

    def __init__(self, schema: Any) -> None:
        self._schema = schema

    @property
    def name(self) -> str:
        """With its namespace, without its overload."""
        return f"{self._schema.namespace}::{self._schema.name}"

    @property
    def overload_name(self) -> str:
        """The overload; empty for the default one."""
        return self._schema.overload

    @property
    def arguments(self) -> list[SchemaArgument]:
        """The arguments, in order."""
        return [SchemaArgument(argument) for argument in self._schema.arguments]

    @property
    def is_mutable(self) -> bool:
        """Whether the op writes to any of its arguments."""
        return any(argument.written for argument in self._schema.arguments)

    def __repr__(self) -> str:
        return self._schema.text


class SchemaArgument:
    """One argument of an op."""

    __slots__ = ("_argument",)

    def __init__(self, argument: Any) -> None:
        self._argument = argument

    @property
    def name(self) -> str:
        """What it is called."""
        return self._argument.name

    @property
    def type(self) -> str:
        """Its type, as the schema writes it."""
        return self._argument.type

    @property
    def default_value(self) -> Any:
        """What it is if it is not given."""
        return self._argument.default

    @property
    def kwarg_only(self) -> bool:
        """Whether it has to be given by name."""
        return self._argument.keyword_only

    @property
    def alias_info(self) -> AliasInfo | None:
        """What the op does to it, where results share its memory or it is written to."""
        return AliasInfo(self._argument.written) if "(" in self._argument.type else None

    def __repr__(self) -> str:
        return f"{self.type} {self.name}"


class SchemaMatcher:
    """Which schemas an op's recorded inputs fit, and which of them may be written to."""

    @classmethod
    def inputs_are_mutable(cls, t: _ExtraFields_TorchOp) -> tuple[bool | None, ...]:
        """For each input whether the op may write to it; None where the schemas that fit do not agree."""
        return _mutable(t.name, tuple([_kind(value) for value in t.inputs]))

    @classmethod
    def match_schemas(cls, t: _ExtraFields_TorchOp) -> tuple[FunctionSchema, ...]:
        """The schemas of this name that the inputs fit."""
        found = _matches(t.name, tuple([_kind(value) for value in t.inputs]))
        return tuple(FunctionSchema(schema) for schema in found)

    @classmethod
    def _types_match(cls, observed: Any, schema_type: Any) -> bool:
        from .._schema import _kind as kind_of_type

        return _fits(_kind(observed), kind_of_type(str(schema_type)))

    @staticmethod
    def lookup_schemas(name: str) -> tuple[FunctionSchema, ...] | None:
        """All schemas of an op; None for what cannot be one, as annotations."""
        return tuple(map(FunctionSchema, _schemas().get(name, ()))) if "::" in name else None


@functools.cache
def _schemas() -> dict[str, tuple[Any, ...]]:
    from .. import _dispatch

    found: dict[str, list[Any]] = {}
    for op in list(_dispatch.OPS.values()):
        found.setdefault(op.qualified_name, []).append(op.schema)
    return {name: tuple(schemas) for name, schemas in found.items()}


def _kind(observed: Any) -> str:
    """What an input looks like: T a tensor, L a list of tensors, S a number, - anything else (shapes, flags, None)."""
    if isinstance(observed, _TensorMetadata):
        return "T"
    if isinstance(observed, list):
        return "L" if all(isinstance(item, _TensorMetadata) for item in observed) else "-"
    return "S" if isinstance(observed, (bool, int, float, complex)) else "-"


def _fits(observed: str, kind: str) -> bool:
    if observed == "T":
        return kind in ("Tensor", "Tensor?")
    if observed == "L":
        return kind in ("Tensor[]", "Tensor?[]")
    # an empty list of tensors looks like any list
    return kind not in ("Tensor", "Tensor[]") if observed == "-" else kind in ("other", "ints")


@functools.lru_cache(maxsize=1 << 12)
def _matches(name: str, kinds: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(
        schema
        for schema in _schemas().get(name, ())
        if len(schema.arguments) == len(kinds)
        and all(_fits(k, a.kind) for k, a in zip(kinds, schema.arguments))
    )


@functools.lru_cache(maxsize=1 << 12)
def _mutable(name: str, kinds: tuple[str, ...]) -> tuple[bool | None, ...]:
    said = [
        {schema.arguments[place].written for schema in _matches(name, kinds)} for place in range(len(kinds))
    ]
    return tuple(one.pop() if len(one) == 1 else None for one in said)


# ---------------------------------------------------------------------------------------------------- trees and sizes


class OpTree:
    """The event tree of a recording."""

    def __init__(self, result: Any) -> None:
        self._root_nodes = result.experimental_event_tree()
        self._sorted_nodes = tuple(sorted(self.dfs(), key=_BY_START))

    def dfs(self, *args: Any, **kwargs: Any) -> Iterator[_ProfilerEvent]:
        """All events, what is inside one right after it."""
        yield from _utils.traverse_dfs(self._root_nodes, *args, **kwargs)

    @property
    def sorted_nodes(self) -> tuple[_ProfilerEvent, ...]:
        """All events in the order of time."""
        return self._sorted_nodes


class SizeMap:
    """The bytes of each piece of memory: as it was allocated, or else as far as tensors reach in it."""

    def __init__(self, op_tree: OpTree) -> None:
        self._values: dict[TensorKey, int] = {}
        allocated: dict[TensorKey, int] = {}
        for node in op_tree.sorted_nodes:
            kind, fields = node.typed
            if kind is _EventType.TorchOp:
                for tensor in self._flat_tensor_inputs(fields):
                    self._update_values(tensor)
            elif kind is _EventType.PyCall:
                for held in _held_tensors(fields):
                    self._update_values(held)
            elif kind is _EventType.Allocation:
                key = TensorKey.from_allocation(fields)
                if key is not None:
                    size = abs(fields.alloc_size)
                    if allocated.setdefault(key, size) != size:
                        log.warning("Mismatch between allocation and free: %d vs. %d", allocated[key], size)
        self._values.update(allocated)

    def _update_values(self, t: _TensorMetadata | None) -> None:
        key = TensorKey.from_tensor(t)
        if key is None or t is None or t.layout != _strided():
            return
        reach = max((size * stride for size, stride in zip(t.sizes or [1], t.strides or [1])), default=0)
        self._values[key] = max(self._values.get(key, 0), reach * t.dtype.itemsize)

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


@functools.cache
def _strided() -> Any:
    from .._dtype import strided

    return strided


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
        written: dict[TensorKey | None, set[bool | None]] = {}
        taken: list[TensorKey] = []
        given_back: list[TensorKey] = []
        key_of = TensorKey.from_tensor
        for event in _utils.traverse_dfs([self._event]):
            kind, fields = event.typed
            if kind is _EventType.TorchOp:
                inputs = fields.inputs
                for value, mutable in zip(inputs, SchemaMatcher.inputs_are_mutable(fields)):
                    if isinstance(value, _TensorMetadata):
                        written.setdefault(key_of(value), set()).add(mutable)
                    elif value.__class__ is list:
                        for item in value:
                            written.setdefault(key_of(item), set()).add(mutable)
            elif kind is _EventType.Allocation:
                key = TensorKey.from_allocation(fields)
                if key is not None:
                    (taken if fields.alloc_size > 0 else given_back).append(key)
        edges: dict[TensorKey, DataFlowEdge] = {}
        unknown = self._made_unseen()
        for key, said in written.items():
            if key is not None and (unknown is None or not unknown(key)):
                # where the schemas do not agree and no op inside knows better, a write is assumed
                edges[key] = DataFlowEdge(self._graph.lookup(key), True in said or said == {None})
        for key in given_back:
            edges.setdefault(key, DataFlowEdge(self._graph.lookup(key))).mutated = None
        for key in taken:
            edges.setdefault(key, DataFlowEdge()).input_version = None
        return dict(sorted(edges.items()))

    def _made_unseen(self) -> Callable[[TensorKey], bool] | None:
        """Whether memory is a kernel's own: met first by an op inside this one, which was not given it, and never seen to be taken.
        None: a backward function, which brings what was saved for it."""
        kind, fields = self._event.typed
        if kind is not _EventType.TorchOp or fields.scope == RecordScope.BACKWARD_FUNCTION:
            return None
        given = {TensorKey.from_tensor(tensor) for tensor in SizeMap._flat_tensor_inputs(fields)}
        known, born = self._graph._active_version, self._graph._born
        return lambda key: key not in given and key not in known and key not in born

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
        self._leaf_events = self._extract_leaf_events(op_tree)
        self._active_version: dict[TensorKey, int | None] = {}
        taken = (e.extra_fields for e in op_tree.sorted_nodes if e.tag is _EventType.Allocation)
        self._born = {TensorKey.from_allocation(fields) for fields in taken if fields.alloc_size > 0}
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
            made = set(node.outputs.items())
            if made & outputs:
                raise AssertionError(f"made twice: {sorted(made & outputs)}")
            outputs |= made
        known: dict[int, int] = {}
        for node in self.flow_nodes:
            for key, (_, version) in node.inputs.items():
                if known.get(hash(key), 0) > version:
                    raise AssertionError(f"{key} is read in version {version} after a later one")
                known[hash(key)] = max(version, known.get(hash(key), 0))

    @property
    def leaf_events(self) -> tuple[_ProfilerEvent, ...]:
        """The outermost events that are ops, backward functions or allocations."""
        return self._leaf_events

    @staticmethod
    def _extract_leaf_events(op_tree: OpTree) -> tuple[_ProfilerEvent, ...]:
        leaves: list[_ProfilerEvent] = []

        def inside(event: _ProfilerEvent) -> list[_ProfilerEvent]:
            kind = event.tag
            if kind is _EventType.Allocation or (kind is _EventType.TorchOp and _is_leaf(event.extra_fields)):
                leaves.append(event)
                return []
            return event.children

        for _ in op_tree.dfs(children_fn=inside):
            pass
        return tuple(sorted(leaves, key=_BY_START))

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


def _is_leaf(op: _ExtraFields_TorchOp) -> bool:
    if op.scope == RecordScope.BACKWARD_FUNCTION:
        return True
    return bool(_matches(op.name, tuple([_kind(value) for value in op.inputs])))
