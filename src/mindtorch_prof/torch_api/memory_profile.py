"""Memory profile: a finished recording in; the category of each version of all memory, a timeline and its three files out.

As torch's `torch.profiler._memory_profiler`, categories are decided from modules, optimizers and the flow of data between ops.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections import defaultdict
from collections.abc import Iterable

import orjson

from . import torch_types
from .data_flow import (
    DataFlowEdge,
    DataFlowGraph,
    DataFlowNode,
    HasEventTree,
    Key,
    OpTree,
    SizeMap,
    TensorKey,
    _extract_parameters_and_gradients,
    _Storage,
    extract_gradients,
    extract_parameters,
    get_scopes,
    log,
)
from .event_tree import _ProfilerEvent, collection_paused
from .event_tree_fields import _EventType, _ExtraFields_Allocation, _ExtraFields_TorchOp, _TensorMetadata
from .memory_categories import (
    ACTION_INDEX,
    CATEGORY_COLORS,
    CATEGORY_INDEX,
    Action,
    Category,
    Change,
    sizes_over_time,
)
from .op_schemas import SchemaMatcher

__all__ = [
    "Action",
    "Category",
    "CategoryDict",
    "CategoryElement",
    "DataFlowEdge",
    "DataFlowGraph",
    "DataFlowNode",
    "Key",
    "MemoryProfile",
    "MemoryProfileTimeline",
    "OpTree",
    "SchemaMatcher",
    "SizeMap",
    "TensorKey",
    "_EventType",
    "_ExtraFields_Allocation",
    "_ExtraFields_TorchOp",
    "_ProfilerEvent",
    "_Storage",
    "_TensorMetadata",
    "_extract_parameters_and_gradients",
    "extract_gradients",
    "extract_parameters",
    "get_scopes",
    "log",
]

KeyAndID = tuple[Key, int]
TensorAndID = tuple[TensorKey, int]


# torch's names for the tables
_CATEGORY_TO_COLORS = CATEGORY_COLORS
_CATEGORY_TO_INDEX = CATEGORY_INDEX
_ACTION_TO_INDEX = ACTION_INDEX


@dataclasses.dataclass
class CategoryElement:
    """Categories of the tensors of one id: of all of them, of one piece of memory, of one version."""

    by_id: Category | None = None
    by_key: dict[TensorKey, Category] = dataclasses.field(default_factory=dict)
    by_version: dict[TensorAndID, Category] = dataclasses.field(default_factory=dict)
    _by_id_keyset: set[TensorKey] = dataclasses.field(default_factory=set)


@dataclasses.dataclass
class CategoryDict:
    """Categories of tensors; one that is set for more versions counts first."""

    _values: defaultdict[int, CategoryElement] = dataclasses.field(
        default_factory=lambda: defaultdict(CategoryElement)
    )

    def set_by_id(self, key: TensorKey, category: Category) -> None:
        """Of all tensors of this id."""
        element = self._values[key.id]
        element.by_id = category
        element._by_id_keyset.add(key)

    def set_by_key(self, key: TensorKey, category: Category) -> None:
        """Of all versions of this memory."""
        self._values[key.id].by_key[key] = category

    def set_by_version(self, key: TensorKey, version: int, category: Category) -> None:
        """Of one version."""
        self._values[key.id].by_version[key, version] = category

    def setdefault_by_version(self, key: TensorKey, version: int, category: Category) -> None:
        """Of one version, unless it has one."""
        self._values[key.id].by_version.setdefault((key, version), category)

    def get(self, key: Key, version: int) -> Category | None:
        """The category of a version; None: unknown."""
        if not isinstance(key, TensorKey):
            return None
        element = self._values[key.id]
        return element.by_id or element.by_key.get(key) or element.by_version.get((key, version))


class MemoryProfile:
    """A recording's memory: its flow, its sizes, its categories."""

    def __init__(self, result: HasEventTree) -> None:
        with collection_paused():
            self._decide(result)

    def _decide(self, result: HasEventTree) -> None:
        self._op_tree = OpTree(result)
        self._data_flow_graph = DataFlowGraph(self._op_tree)
        self._size_map = SizeMap(self._op_tree)
        self._categories = CategoryDict()
        self._steps = [_Step(node) for node in self._data_flow_graph.flow_nodes]

        self._set_gradients_and_temporaries()
        self._set_parameters_using_python_tracer()
        self._set_inputs()
        self._set_parameters_using_data_flow()
        self._set_activations()
        self._set_optimizer_state()
        self._set_autograd_detail()

    @property
    def timeline(self) -> tuple[tuple[int, Action, KeyAndID, int], ...]:
        """(time in ns or -1, action, memory and version, bytes), in the order of time."""
        changes: list[tuple[int, Action, KeyAndID, int]] = []
        created: dict[TensorKey, int] = {}  # when
        destroyed: dict[TensorKey, int] = {}
        uses, tree = self._op_tree.memory_uses, self._op_tree._tree
        for row, (number, nbytes) in enumerate(uses.allocations):
            assert tree is not None
            time_ns = tree.start_list[tree.places[tree.first_memory + row]]
            if number >= 0:
                (created if nbytes > 0 else destroyed)[uses.keys[number]] = time_ns
            else:
                action = Action.CREATE if nbytes > 0 else Action.DESTROY
                changes.append((time_ns, action, (Key(tree.memory_device(row)), 0), abs(nbytes)))
        last_version = dict(self._category_snapshot().keys())
        for key, version in last_version.items():
            action = Action.CREATE if key in created else Action.PREEXISTING
            changes.append((created.get(key, -1), action, (key, 0), self._size_map[key]))
            if key in destroyed:
                changes.append((destroyed[key], Action.DESTROY, (key, version), self._size_map[key]))
        for step in self._steps:
            for key, (written, version) in step.inputs.items():
                if written:
                    size = self._size_map[key]
                    changes.append((step.node.start_time, Action.INCREMENT_VERSION, (key, version), size))
        changes.sort(key=lambda change: (change[0], change[1].value))
        return tuple(changes)

    # ------------------------------------------------------------------------------------------------ categories so far

    def _is_gradient(self, key: Key, version: int) -> bool:
        return self._categories.get(key, version) == Category.GRADIENT

    def _category_snapshot(self) -> dict[TensorAndID, Category | None]:
        versions = {pair for step in self._steps for pair in (*step.inputs_read, *step.outputs)}
        versions |= {(key, 0) for step in self._steps for key in step.node.intermediates}
        # tensors of modules and optimizers that no op used
        versions |= {
            (key, 0) for element in self._categories._values.values() for key in element._by_id_keyset
        }
        return {pair: self._categories.get(*pair) for pair in sorted(versions, key=_by_key_and_version)}

    def _any_version_depends_on_gradient(self) -> set[int]:
        """Ids of tensors of which some version is computed from a gradient or a parameter."""
        depends: set[int] = set()
        start = (Category.GRADIENT, Category.PARAMETER)
        while True:
            before = len(depends)
            for step in self._steps:
                inputs = {
                    key.id
                    for key, version in step.inputs_read
                    if key.id in depends or self._categories.get(key, version) in start
                }
                if inputs:
                    depends |= inputs
                    depends.update(key.id for key, _ in step.outputs)
            if len(depends) == before:
                return depends

    # ------------------------------------------------------------------------------------------------ decisions

    def _set_gradients_and_temporaries(self) -> None:
        """Gradients: of modules and optimizers, and those that autograd accumulates. Temporaries: allocated and freed inside one op."""
        for event in self._op_tree.parameter_events():
            for _, gradient in extract_gradients(event):
                self._categories.set_by_id(gradient, Category.GRADIENT)
        for step in self._steps:
            for key in step.node.intermediates:
                self._categories.set_by_key(key, Category.TEMPORARY)

    def _set_parameters_using_python_tracer(self) -> None:
        """The parameters of modules and optimizers."""
        for event in self._op_tree.parameter_events():
            for parameter in extract_parameters(event):
                self._categories.set_by_id(parameter, Category.PARAMETER)

    def _set_inputs(self) -> None:
        """Tensors from which gradients are computed, that no backward op computed, and of which no version depends on gradients,
        as parameters and everything computed with them do."""
        leads_to_gradient: set[TensorAndID] = set()
        start = (Category.GRADIENT, Category.PARAMETER)
        for step in reversed(self._steps):
            if any(
                pair in leads_to_gradient or self._categories.get(*pair) in start
                for pair in (*step.inputs_read, *step.outputs)
            ):
                leads_to_gradient.update(step.inputs_read, step.outputs)
                step.number_is_input = step.has_number
        for step in self._steps:
            if step.backward:
                leads_to_gradient.difference_update(step.outputs)
        depends = self._any_version_depends_on_gradient()
        for key, version in leads_to_gradient:
            if key.id not in depends:
                self._categories.setdefault_by_version(key, version, Category.INPUT)

    def _set_parameters_using_data_flow(self) -> None:
        """Parameters where no module and no optimizer was recorded: tensors that the forward pass reads beside inputs and its own
        results, from which gradients are computed, and which depend on gradients in the end."""
        snapshot = self._category_snapshot()
        forward = {pair for pair, category in snapshot.items() if category == Category.INPUT}
        candidates: set[TensorAndID] = set()
        for step in self._steps:
            if (
                step.backward
                or any(self._is_gradient(*pair) for pair in (*step.inputs_read, *step.outputs))
                or (forward.isdisjoint(step.inputs_read) and not step.number_is_input)
            ):
                continue
            forward.update(step.outputs)
            candidates.update(pair for pair in step.inputs_read if pair not in forward)
        used_by_gradients: set[TensorAndID] = set()
        for step in reversed(self._steps):
            if any(pair in used_by_gradients or self._is_gradient(*pair) for pair in step.outputs):
                used_by_gradients.update(step.inputs_read)
        ids = {key.id for key, _ in candidates & used_by_gradients} & self._any_version_depends_on_gradient()
        for key, _ in snapshot:
            if key.id in ids:
                self._categories.set_by_id(key, Category.PARAMETER)

    def _set_activations(self) -> None:
        """Results that the forward pass computes from inputs and activations, possibly with parameters."""
        needed = {Category.INPUT, Category.ACTIVATION}
        allowed = needed | {Category.PARAMETER, Category.TEMPORARY}
        for step in self._steps:
            inputs = {self._categories.get(*pair) for pair in step.inputs_read}
            if step.has_number:
                inputs.add(Category.INPUT if step.number_is_input else None)
            if inputs & needed and not inputs - allowed and not step.backward:
                for pair in step.outputs:
                    self._categories.setdefault_by_version(*pair, Category.ACTIVATION)

    def _set_optimizer_state(self) -> None:
        """The states of optimizers."""
        for event in self._op_tree.parameter_events():
            if event.tag is _EventType.PyCall and event.extra_fields.optimizer is not None:
                for _, _, states in event.extra_fields.optimizer.parameters:
                    for _, tensor in states:
                        key = TensorKey.from_tensor(tensor)
                        if key is not None:
                            self._categories.set_by_id(key, Category.OPTIMIZER_STATE)

    def _set_autograd_detail(self) -> None:
        """Results of the backward pass that have no other category."""
        undecided = (None, Category.AUTOGRAD_DETAIL)
        for step in self._steps:
            if step.backward:
                for key, version in step.outputs:
                    if version == 0 or self._categories.get(key, version - 1) in undecided:
                        self._categories.setdefault_by_version(key, version, Category.AUTOGRAD_DETAIL)


def _by_key_and_version(pair: TensorAndID) -> tuple[int, int, int]:
    key, version = pair
    return key.id, key.storage.allocation_id, version


class _Step:
    """A node of the flow, with the values that every decision reads."""

    __slots__ = ("node", "inputs", "inputs_read", "outputs", "backward", "has_number", "number_is_input")

    def __init__(self, node: DataFlowNode) -> None:
        self.node = node
        self.inputs = node.inputs
        self.inputs_read: list[TensorAndID] = [(key, version) for key, (_, version) in self.inputs.items()]
        self.outputs: list[TensorAndID] = list(node.outputs.items())
        self.backward = node._event._node in node._graph._backward
        # In torch, a Python number that is given to an op is a tensor with memory of its own: it takes part in the decisions.
        self.has_number = node._graph.is_given_number(node._event)
        self.number_is_input = False


def allocation_categories(profile: MemoryProfile, rows: Iterable[int]) -> list[int]:
    """The numbers of the categories of allocations, told by their rows in the trace's memory."""
    tree = profile._op_tree._tree
    assert tree is not None, "a trace with allocations has a tree"
    keys = [TensorKey.from_allocation(tree.allocation(row)) for row in rows]
    return [CATEGORY_INDEX[None if key is None else profile._categories.get(key, 0)] for key in keys]


class MemoryProfileTimeline:
    """The timeline of a memory profile, and its files."""

    def __init__(self, memory_profile: MemoryProfile) -> None:
        self.timeline = memory_profile.timeline
        self.categories = memory_profile._categories

    def _entries(self, device_str: str) -> list[Change]:
        """The changes of one device's memory; a new version ends one category and begins another."""
        device = torch_types.device(device_str)
        changes: list[Change] = []
        for time_ns, action, (key, version), size in self.timeline:
            if key.device != device:
                continue
            index = CATEGORY_INDEX[self.categories.get(key, version)]
            if action == Action.INCREMENT_VERSION:
                after = CATEGORY_INDEX[self.categories.get(key, version + 1)]
                changes += [(time_ns, action.value, -size, index), (time_ns, action.value, size, after)]
            else:
                signed = -size if action == Action.DESTROY else size
                changes.append((time_ns, action.value, signed, index))
        return changes

    def _coalesce_timeline(self, device_str: str) -> tuple[list[int], list[list[int]]]:
        """Times in microseconds, and at each the bytes allocated: a 0, then one number per category."""
        return sizes_over_time(self._entries(device_str))

    def export_memory_timeline(self, path: str | os.PathLike[str], device_str: str) -> None:
        """Write [times, sizes] as JSON."""
        self._write(path, orjson.dumps(self._coalesce_timeline(device_str)))

    def export_memory_timeline_raw(self, path: str | os.PathLike[str], device_str: str) -> None:
        """Write all (time in ns, action, bytes, category) as JSON."""
        self._write(path, orjson.dumps(self._entries(device_str)))

    def export_memory_timeline_html(
        self,
        path: str | os.PathLike[str],
        device_str: str,
        figsize: tuple[int, int] = (20, 12),
        title: str | None = None,
    ) -> None:
        """Write a page with a chart. `figsize` is for torch's picture; here the chart fills the window."""
        from html import escape

        from ..export.memory_timeline import timeline_page

        content = timeline_page(*self._coalesce_timeline(device_str))
        if title is not None:
            element = b"<title>%b</title>" % escape(title).encode()
            content = re.sub(rb"<title>.*?</title>", lambda _: element, content, count=1, flags=re.DOTALL)
        self._write(path, content)

    @staticmethod
    def _write(path: str | os.PathLike[str], content: bytes) -> None:
        from ..files import open_for_export

        with open_for_export(path) as out:
            out.write(content)
