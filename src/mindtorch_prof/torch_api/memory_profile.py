"""torch.profiler._memory_profiler: what memory is for, decided from modules, optimizers and the flow of data as torch decides it.

A finished recording in; categories of all memory by version, a timeline and its three files out.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import orjson

from . import torch_types
from .data_flow import (
    DataFlowEdge,
    DataFlowGraph,
    DataFlowNode,
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
from .event_tree import _ProfilerEvent, collector_waits
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
    """What is known of the tensors of one id: of all of them, of one piece of memory, of one version."""

    by_id: Category | None = None
    by_key: dict[TensorKey, Category] = dataclasses.field(default_factory=dict)
    by_version: dict[TensorAndID, Category] = dataclasses.field(default_factory=dict)
    _by_id_keyset: set[TensorKey] = dataclasses.field(default_factory=set)


@dataclasses.dataclass
class CategoryDict:
    """Categories; what is said of more counts first."""

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
        """Of one version, unless something is known."""
        self._values[key.id].by_version.setdefault((key, version), category)

    def get(self, key: Key, version: int) -> Category | None:
        """What a version is for; None: unknown."""
        if not isinstance(key, TensorKey):
            return None
        element = self._values[key.id]
        return element.by_id or element.by_key.get(key) or element.by_version.get((key, version))


class MemoryProfile:
    """A recording's memory: its flow, its sizes, what it is for."""

    def __init__(self, result: Any) -> None:
        with collector_waits():
            self._decide(result)

    def _decide(self, result: Any) -> None:
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
        """(time in ns or -1, what happens, memory and version, bytes), in the order of time."""
        found: list[tuple[int, Action, KeyAndID, int]] = []
        times: dict[tuple[TensorKey, bool], int] = {}
        met, tree = self._op_tree.met, self._op_tree._tree
        for row, (number, signed) in enumerate(met.allocations):
            assert tree is not None
            at, taken = tree.start_list[tree.places[tree.first_memory + row]], signed > 0
            if number >= 0:
                times[met.keys[number], taken] = at
            else:
                action = Action.CREATE if taken else Action.DESTROY
                found.append((at, action, (Key(tree.memory_device(row)), 0), abs(signed)))
        last = dict(self._category_snapshot().keys())
        for key, version in last.items():
            born = times.get((key, True), -1)
            action = Action.PREEXISTING if born < 0 else Action.CREATE
            found.append((born, action, (key, 0), self._size_map[key]))
            if (key, False) in times:
                found.append((times[key, False], Action.DESTROY, (key, version), self._size_map[key]))
        for step in self._steps:
            for key, (written, version) in step.inputs.items():
                if written:
                    size = self._size_map[key]
                    found.append((step.node.start_time, Action.INCREMENT_VERSION, (key, version), size))
        found.sort(key=lambda entry: (entry[0], entry[1].value))
        return tuple(found)

    # ------------------------------------------------------------------------------------------------ what is known

    def _is_gradient(self, *args: Any, **kwargs: Any) -> bool:
        return self._categories.get(*args, **kwargs) == Category.GRADIENT

    def _category_snapshot(self) -> dict[TensorAndID, Category | None]:
        every = {pair for step in self._steps for pair in (*step.read, *step.made)}
        every |= {(key, 0) for step in self._steps for key in step.node.intermediates}
        # what modules and optimizers hold and nothing used
        every |= {(key, 0) for element in self._categories._values.values() for key in element._by_id_keyset}
        return {pair: self._categories.get(*pair) for pair in sorted(every, key=_by_key_and_version)}

    def _any_version_depends_on_gradient(self) -> set[int]:
        """Ids of tensors of which some version is computed from a gradient or a parameter."""
        depends: set[int] = set()
        start = (Category.GRADIENT, Category.PARAMETER)
        while True:
            before = len(depends)
            for step in self._steps:
                found = {
                    key.id
                    for key, version in step.read
                    if key.id in depends or self._categories.get(key, version) in start
                }
                if found:
                    depends |= found
                    depends.update(key.id for key, _ in step.made)
            if len(depends) == before:
                return depends

    # ------------------------------------------------------------------------------------------------ deciding

    def _set_gradients_and_temporaries(self) -> None:
        """What autograd accumulates and what modules and optimizers call a gradient; what lived inside one op only."""
        for event in self._op_tree.telling():
            for _, gradient in extract_gradients(event):
                self._categories.set_by_id(gradient, Category.GRADIENT)
        for step in self._steps:
            for key in step.node.intermediates:
                self._categories.set_by_key(key, Category.TEMPORARY)

    def _set_parameters_using_python_tracer(self) -> None:
        """What modules and optimizers call a parameter."""
        for event in self._op_tree.telling():
            for parameter in extract_parameters(event):
                self._categories.set_by_id(parameter, Category.PARAMETER)

    def _set_inputs(self) -> None:
        """What leads to gradients, is not made by the backward pass, and of which no version depends on gradients: unlike parameters
        and what is computed with them."""
        leads: set[TensorAndID] = set()
        start = (Category.GRADIENT, Category.PARAMETER)
        for step in reversed(self._steps):
            if any(
                pair in leads or self._categories.get(*pair) in start for pair in (*step.read, *step.made)
            ):
                leads.update(step.read, step.made)
                step.number_is_input = step.has_number
        for step in self._steps:
            if step.backward:
                leads.difference_update(step.made)
        depends = self._any_version_depends_on_gradient()
        for key, version in leads:
            if key.id not in depends:
                self._categories.setdefault_by_version(key, version, Category.INPUT)

    def _set_parameters_using_data_flow(self) -> None:
        """What the forward pass uses beside inputs and what it computed itself, what gradients are computed from, and what depends on
        gradients in the end: parameters, also where no module and no optimizer was seen."""
        snapshot = self._category_snapshot()
        forward = {pair for pair, category in snapshot.items() if category == Category.INPUT}
        candidates: set[TensorAndID] = set()
        for step in self._steps:
            touched = (*step.read, *step.made)
            if (
                step.backward
                or any(self._is_gradient(*pair) for pair in touched)
                or (forward.isdisjoint(step.read) and not step.number_is_input)
            ):
                continue
            forward.update(step.made)
            candidates.update(pair for pair in step.read if pair not in forward)
        used: set[TensorAndID] = set()
        for step in reversed(self._steps):
            if any(pair in used or self._is_gradient(*pair) for pair in step.made):
                used.update(step.read)
        ids = {key.id for key, _ in candidates & used} & self._any_version_depends_on_gradient()
        for key, _ in snapshot:
            if key.id in ids:
                self._categories.set_by_id(key, Category.PARAMETER)

    def _set_activations(self) -> None:
        """What the forward pass computes from inputs and activations, parameters allowed."""
        needed = {Category.INPUT, Category.ACTIVATION}
        allowed = needed | {Category.PARAMETER, Category.TEMPORARY}
        for step in self._steps:
            found = {self._categories.get(*pair) for pair in step.read}
            if step.has_number:
                found.add(Category.INPUT if step.number_is_input else None)
            if found & needed and not found - allowed and not step.backward:
                for pair in step.made:
                    self._categories.setdefault_by_version(*pair, Category.ACTIVATION)

    def _set_optimizer_state(self) -> None:
        """What optimizers call their state."""
        for event in self._op_tree.telling():
            if event.tag is _EventType.PyCall and event.extra_fields.optimizer is not None:
                for _, _, states in event.extra_fields.optimizer.parameters:
                    for _, tensor in states:
                        key = TensorKey.from_tensor(tensor)
                        if key is not None:
                            self._categories.set_by_id(key, Category.OPTIMIZER_STATE)

    def _set_autograd_detail(self) -> None:
        """What the backward pass makes, and nothing else is known of."""
        before = (None, Category.AUTOGRAD_DETAIL)
        for step in self._steps:
            if step.backward:
                for key, version in step.made:
                    if version == 0 or self._categories.get(key, version - 1) in before:
                        self._categories.setdefault_by_version(key, version, Category.AUTOGRAD_DETAIL)


def _by_key_and_version(pair: TensorAndID) -> tuple[int, int, int]:
    key, version = pair
    return key.id, key.storage.allocation_id, version


class _Step:
    """A node of the flow, with what is asked of it again and again."""

    __slots__ = ("node", "inputs", "read", "made", "backward", "has_number", "number_is_input")

    def __init__(self, node: DataFlowNode) -> None:
        self.node = node
        self.inputs = node.inputs
        self.read: list[TensorAndID] = [(key, version) for key, (_, version) in self.inputs.items()]
        self.made: list[TensorAndID] = list(node.outputs.items())
        self.backward = node._event._node in node._graph._backward
        # In torch a Python number that is given to an op is a tensor with memory of its own: it takes part in what is decided.
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
        wanted = torch_types.device(device_str)
        changes: list[Change] = []
        for at, action, (key, version), size in self.timeline:
            if key.device != wanted:
                continue
            index = CATEGORY_INDEX[self.categories.get(key, version)]
            if action == Action.INCREMENT_VERSION:
                after = CATEGORY_INDEX[self.categories.get(key, version + 1)]
                changes += [(at, action.value, -size, index), (at, action.value, size, after)]
            else:
                changes.append((at, action.value, -size if action == Action.DESTROY else size, index))
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
        """Write a page with a picture. `figsize` is for torch's picture; here the page is as large as its window."""
        from html import escape

        from ..export.memory_timeline import timeline_page

        content = timeline_page(*self._coalesce_timeline(device_str))
        if title is not None:
            head = re.search(rb"<title>.*?</title>", content, re.DOTALL)
            content = (
                content.replace(head[0], b"<title>%b</title>" % escape(title).encode(), 1)
                if head
                else content
            )
        self._write(path, content)

    @staticmethod
    def _write(path: str | os.PathLike[str], content: bytes) -> None:
        from ..export.files import open_for_export

        with open_for_export(path) as out:
            out.write(content)
