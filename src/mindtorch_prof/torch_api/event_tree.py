"""The event tree: a Trace in; torch's `_ProfilerEvent` objects out, made when they are first read.

Events, Python calls and allocations of a Trace become one tree by a few passes over columns. A node is a place in the tree's order: the
roots, then the children of one node after those of another. Its fields are read from columns in that order. Live recordings and loaded
files give the same tree, as far as a file goes: one that holds no inputs gives events without them.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..frames import is_c_function, is_module_frame, source_of
from ..trace import DEVICE_ANNOTATION, KERNEL, PYTHON, RUNTIME, NumberedTensor, ParameterOwner, Trace
from ..tree import (
    Tree,
    contained,
    depths,
    innermost,
    memory_heirs,
    nearest,
    parents,
    synthetic_parents,
    thread_slices,
)
from .column_lists import int_list, value_list
from .enums import RecordScope
from .event_tree_fields import (
    _EventType,
    _ExtraFields_Allocation,
    _ExtraFields_Kineto,
    _ExtraFields_PyCall,
    _ExtraFields_PyCCall,
    _ExtraFields_TorchOp,
    _Fields,
    _NNModuleInfo,
    _OptimizerInfo,
    _PyFrameState,
    _TensorMetadata,
    view_class,
)
from .function_events import MEMORY_EVENT_NAME, FunctionEvent
from .tensor_ids import Tensors
from .torch_types import TorchValue

if TYPE_CHECKING:
    from .results import Results

_MODULE_CALL = ("nn/modules/module.py", 0, "__call__")  # used where a trace does not name the function
_OP, _ALLOCATION, _CALL, _C_CALL, _KINETO = (
    kind.value
    for kind in (
        _EventType.TorchOp,
        _EventType.Allocation,
        _EventType.PyCall,
        _EventType.PyCCall,
        _EventType.Kineto,
    )
)


def _field(name: str, doc: str) -> Any:  # a property, of whichever type the field has
    """A field that makes the nodes of the tree when it is first read: from then on, the tree's own class has a quicker one."""

    def make_and_read(self: _ProfilerEvent) -> object:
        self._tree.make_nodes()
        return getattr(self, name)

    return property(make_and_read, doc=doc)


class _ProfilerEvent:
    """One node of an event tree."""

    # Each tree has a subclass of its own, which knows the tree: an object per node has to be small where there are 100,000.
    __slots__ = ("_node",)

    _tree: EventTree
    _node: int

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("torch._C._profiler._ProfilerEvent: No constructor defined!")

    name: str = _field("name", "The name.")
    tag: _EventType = _field("tag", "The kind of event.")
    extra_fields: Any = _field("extra_fields", "The fields that only events of this kind have.")
    start_time_ns: int = _field("start_time_ns", "When it began, in nanoseconds since the epoch.")
    end_time_ns: int = _field("end_time_ns", "When it ended.")
    duration_time_ns: int = _field("duration_time_ns", "How long it took.")
    id: int = _field("id", "A number that no other event of this tree has.")
    children: list[_ProfilerEvent] = _field(
        "children", "The events directly inside it, in the order of time."
    )
    parent: _ProfilerEvent | None = _field("parent", "The event directly around it; None: there is none.")

    @property
    def overload_name(self) -> str:
        """Which overload of an op it is, where that was recorded."""
        tree = self._tree
        row = tree.rows[self._node]
        return tree.trace.shown_overloads[tree.trace.name[row]] if row < tree.first_frame else ""

    @property
    def typed(self) -> tuple[_EventType, Any]:
        """The kind of event, and the fields that only events of this kind have."""
        return self.tag, self.extra_fields

    @property
    def correlation_id(self) -> int:
        """The number in a trace file; 0: none."""
        return self._tree.correlation(self._tree.rows[self._node])

    @property
    def start_tid(self) -> int:
        """The thread, numbered from 1."""
        return self._tree.thread_numbers[self._node]

    def __repr__(self) -> str:
        return f"<torch._C._profiler._ProfilerEvent object at {id(self):#x}>"


class EventTree:
    """All nodes of a Trace. Rows are its events, then its Python calls, then its allocations, then the work of devices; places are rows in
    the tree's order."""

    def __init__(self, trace: Trace, nesting: Tree | None = None) -> None:
        self.trace = trace
        frames, memory, device = trace.frames, trace.memory, trace.device
        self.first_frame = len(trace)
        self.first_memory = self.first_frame + len(frames)
        self.first_device = self.first_memory + len(memory)
        self.size = self.first_device + len(device)
        self.start = _concatenated(trace.start_ns, frames.start_ns, memory.time_ns, device.start_ns)
        self.end = _concatenated(trace.end_ns, frames.end_ns, memory.time_ns, device.end_ns)
        self.parent = self._row_parents(nesting)
        self.n_roots, self.order = self._ordered()
        self.event_class: type[_ProfilerEvent] = type(
            "_ProfilerEvent",
            (_ProfilerEvent,),
            {"__slots__": (), "__init__": object.__init__, "_tree": self},
        )
        self.nodes: list[_ProfilerEvent] = []
        self._all_made = False

    # ------------------------------------------------------------------------------------------------ nesting

    def _row_parents(self, nesting: Tree | None) -> npt.NDArray[np.integer]:
        """The parent of each row; -1: none."""
        trace = self.trace
        parent = np.full(self.size, -1, np.int64)
        spans = self.first_memory
        if not len(trace.frames):
            order, thread = np.arange(spans), trace.thread
        else:
            threads = np.concatenate([trace.thread, trace.frames.thread])
            # a call begins before the events in it
            order = np.concatenate([np.arange(self.first_frame, spans), np.arange(self.first_frame)])
            order = order[_by_time(self.start[order], self.end[order])]
            if (threads[1:] != threads[:-1]).any():
                order = order[np.argsort(threads[order], kind="stable")]
            thread = threads[order]
        is_recorded = np.ones(spans, bool)
        if trace.synthetic is not None:
            is_recorded[: self.first_frame] = trace.synthetic == 0
            parent[: self.first_frame] = synthetic_parents(trace.synthetic)
        for first, last in thread_slices(thread):
            rows = order[first:last]
            rows = rows[is_recorded[rows]]
            if nesting is not None and not len(trace.frames):
                parent[rows] = nesting.parent[rows]
            else:
                parent[rows] = _parents(self.start[rows], self.end[rows], rows)
            self._place_memory(parent, rows, thread[first])
        if trace.synthetic is not None:
            heir = np.arange(-1, spans)  # the last one for -1: none
            owners, heirs = memory_heirs(trace.synthetic)
            heir[owners + 1] = heirs
            memory = slice(self.first_memory, self.first_device)
            parent[memory] = heir[parent[memory] + 1]
        if len(trace.device):
            parent[self.first_device :] = np.where(trace.device.op >= 0, trace.device.op, -1)
        return parent

    def _place_memory(
        self, parent: npt.NDArray[np.integer], rows: npt.NDArray[np.integer], thread: int
    ) -> None:
        """Write the parents of a thread's allocations: its innermost spans. rows: the thread's, in the order of time."""
        memory = self.trace.memory
        here = np.flatnonzero(memory.thread == thread)
        if not len(here):
            return
        above = parent[rows]
        inside = above >= 0
        if inside.any():
            place = np.full(self.first_memory, -1, np.int64)
            place[rows] = np.arange(len(rows))
            above[inside] = place[above[inside]]
        span = innermost(self.start[rows], self.end[rows], above, memory.time_ns[here])
        parent[self.first_memory + here] = np.where(span >= 0, rows[np.maximum(span, 0)], -1)

    def _ordered(self) -> tuple[int, npt.NDArray[np.integer]]:
        """The number of roots, and rows by parent (roots first) and time."""
        if self.size == self.first_frame and (self.parent < 0).all() and _is_sorted(self.start):
            return self.size, np.arange(self.size)
        # of two that begin together the longer one comes first, and calls before events: a parent stands before its children
        rows = np.concatenate(
            [
                np.arange(self.first_frame, self.first_memory),
                np.arange(self.first_frame),
                np.arange(self.first_memory, self.size),
            ]
        )
        rows = rows[_by_time(self.start[rows], self.end[rows])]
        above = self.parent[rows]
        roots, inner = rows[above < 0], rows[above >= 0]
        rank = np.empty(self.size, np.int64)
        rank[rows] = np.arange(self.size)
        inner = inner[np.argsort(rank[self.parent[inner]], kind="stable")]
        return len(roots), np.concatenate([roots, inner])

    # ------------------------------------------------------------------------------------------------ nodes

    def roots(self) -> list[_ProfilerEvent]:
        """The nodes that have no parent, in the order of time."""
        if not self.nodes:
            self._make_nodes_before(self.n_roots)
        return self.nodes[: self.n_roots]

    def _make_nodes_before(self, last: int) -> None:
        """Make the objects of all places before one."""
        event_class, first = self.event_class, len(self.nodes)
        with collection_paused():
            events = [event_class() for _ in range(first, last)]
            event: _ProfilerEvent
            for event, event._node in zip(events, range(first, last)):  # noqa: B007  (the quickest way to set it)
                pass
        self.nodes += events

    def make_nodes(self) -> None:
        """Make all nodes, and give their class quick properties for their fields."""
        if self._all_made:
            return
        self._make_nodes_before(self.size)
        for name, read in self._field_readers().items():
            setattr(self.event_class, name, property(read, doc=getattr(_ProfilerEvent, name).__doc__))
        self._all_made = True

    def _field_readers(self) -> dict[str, Callable[[_ProfilerEvent], object]]:
        """Functions that read the fields of a node: closures over lists, which are read three times as fast as arrays."""
        nodes, names, tags, kinds, rows = self.nodes, self.names, self.tag_list, self.kinds, self.rows
        starts, durations, above = self.start_list, self.duration_list, self.parent_list
        counts, begins = self._child_lists
        inputs = property(self.tensors.inputs_of, doc=_ExtraFields_TorchOp.inputs.__doc__)
        op_class = view_class(_ExtraFields_TorchOp, self, inputs=inputs)
        memory_class = self._allocation_class
        first_memory = self.first_memory
        other_fields = self.extra_fields
        # fields are mostly read several times in a row
        last_node = -1
        last_fields: _Fields | None = None

        def extra_fields(self: _ProfilerEvent) -> _Fields | None:
            nonlocal last_node, last_fields
            node = self._node
            if last_node == node:
                return last_fields
            fields: _Fields
            if kinds[node] == _OP:
                fields = op_fields = op_class()
                op_fields._row = rows[node]
            elif kinds[node] == _ALLOCATION:
                fields = memory_fields = memory_class()
                memory_fields._row = rows[node] - first_memory
            else:
                fields = other_fields(node)
            last_node, last_fields = node, fields
            return fields

        def children(self: _ProfilerEvent) -> list[_ProfilerEvent]:
            node = self._node
            count = counts[node]
            if not count:
                return []
            first = begins[node]
            return nodes[first : first + count]

        def parent(self: _ProfilerEvent) -> _ProfilerEvent | None:
            place = above[self._node]
            return None if place < 0 else nodes[place]

        return {
            "name": lambda self: names[self._node],
            "tag": lambda self: tags[self._node],
            "start_time_ns": lambda self: starts[self._node],
            "duration_time_ns": lambda self: durations[self._node],
            "end_time_ns": lambda self: starts[self._node] + durations[self._node],
            "extra_fields": extra_fields,
            "id": lambda self: rows[self._node] + 1,
            "children": children,
            "parent": parent,
        }

    def event(self, row: int) -> _ProfilerEvent:
        """The object of a row."""
        self.make_nodes()
        return self.nodes[int(self.place[row])]

    # ------------------------------------------------------------------------------------------------ columns by place

    @cached_property
    def place(self) -> npt.NDArray[np.integer]:
        """Of each row."""
        place = np.empty(self.size, np.int64)
        place[self.order] = np.arange(self.size)
        return place

    @cached_property
    def places(self) -> list[int]:
        return int_list(self.place)

    @cached_property
    def parent_place(self) -> npt.NDArray[np.integer]:
        """The place of each place's parent; -1: none."""
        above = self.parent[self.order]
        return np.where(above < 0, -1, self.place[above])

    @cached_property
    def _child_lists(self) -> tuple[list[int], list[int]]:
        """`child_columns` as lists."""
        counts, begins = self.child_columns
        return int_list(counts), int_list(begins)

    @cached_property
    def child_columns(self) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]:
        """The number of children of each place, and the place of the first."""
        if self.n_roots == self.size:
            return np.zeros(self.size, np.int64), np.full(self.size, self.size)
        above = self.parent_place[self.n_roots :]
        first = np.flatnonzero(np.append(True, above[1:] != above[:-1]))
        begins = np.full(self.size, self.size)
        begins[above[first]] = self.n_roots + first
        return np.bincount(above, minlength=self.size), begins

    @cached_property
    def preorder(self) -> npt.NDArray[np.integer]:
        """Places depth first: the descendants of a node right after it."""
        places = np.arange(self.size)
        if self.n_roots == self.size:
            return places
        if len(self.trace.device):  # the work of devices is later than the op that launched it
            waiting = list(range(self.n_roots - 1, -1, -1))
            counts, begins = self._child_lists
            visited = []
            while waiting:
                visited.append(node := waiting.pop())
                waiting.extend(range(begins[node] + counts[node] - 1, begins[node] - 1, -1))
            return np.array(visited, np.int64)
        # inside a root there is one thread: there, time is the order
        root = nearest(self.parent_place, places < self.n_roots)
        start, end = self.start[self.order], self.end[self.order]
        if self.trace.synthetic is None:
            time = _by_time(start, end)
        else:
            # synthetic events of one recorded event start together, in the order of their rows; an allocation in one follows it at once
            row = 2 * self.order
            allocation = np.flatnonzero((self.order >= self.first_memory) & (self.parent_place >= 0))
            above = self.parent[self.order[allocation]]
            inside = above < self.first_frame
            inside[inside] = self.trace.synthetic[above[inside]] != 0
            allocation, above = allocation[inside], above[inside]
            start[allocation] = end[allocation] = self.start[above]
            row[allocation] = 2 * above + 1
            calls_first = ~((self.order >= self.first_frame) & (self.order < self.first_memory))
            time = np.lexsort((row, calls_first, -end, start))
        return time[np.argsort(root[time], kind="stable")]

    @cached_property
    def level_order(self) -> npt.NDArray[np.integer]:
        """Places breadth first: the roots, their children, and so on."""
        counts, begins = self.child_columns
        levels = [np.arange(self.n_roots)]
        while len(level := levels[-1]):
            parents = level[counts[level] > 0]
            count = counts[parents]
            offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
            levels.append(np.repeat(begins[parents], count) + offset)
        return np.concatenate(levels)

    @cached_property
    def depth_first(self) -> list[_ProfilerEvent]:
        """All nodes in preorder."""
        self.make_nodes()
        return [self.nodes[place] for place in self.preorder.tolist()]

    @cached_property
    def breadth_first(self) -> list[_ProfilerEvent]:
        """All nodes level by level."""
        self.make_nodes()
        return [self.nodes[place] for place in self.level_order.tolist()]

    @cached_property
    def rows(self) -> list[int]:
        return int_list(self.order)

    @cached_property
    def parent_list(self) -> list[int]:
        return int_list(self.parent_place)

    @cached_property
    def start_list(self) -> list[int]:
        return int_list(self.start[self.order] + self.trace.origin_ns)

    @cached_property
    def duration_list(self) -> list[int]:
        return int_list((self.end - self.start)[self.order])

    @cached_property
    def name_columns(self) -> tuple[tuple[str, ...], npt.NDArray[np.integer]]:
        """All names, and which of them each place has."""
        trace = self.trace
        texts = (*trace.names, *trace.frames.names, MEMORY_EVENT_NAME, *trace.device.names)
        memory = len(trace.names) + len(trace.frames.names)
        ids = _concatenated(
            trace.name,
            trace.frames.name + len(trace.names),
            np.full(len(trace.memory), memory),
            trace.device.name + memory + 1,
        )
        return texts, ids[self.order]

    @cached_property
    def names(self) -> list[str]:
        """The name of each place."""
        texts, ids = self.name_columns
        return value_list(texts, ids)

    @cached_property
    def kinds(self) -> bytes:
        """The kind of each place, as the number of its _EventType."""
        event_type = np.full(self.size, _KINETO, np.uint8)
        events = event_type[: self.first_frame]
        calls = event_type[self.first_frame : self.first_memory]
        kind = self.trace.kind
        events[:] = _OP
        events[kind == PYTHON] = _CALL
        events[(kind == KERNEL) | (kind == RUNTIME)] = _KINETO
        calls[:] = _CALL
        in_c = [is_c_function(text) for text in self.trace.frames.names]
        if any(in_c):
            calls[np.array(in_c)[self.trace.frames.name]] = _C_CALL
        event_type[self.first_memory : self.first_device] = _ALLOCATION
        by_place: npt.NDArray[np.uint8] = event_type[self.order]
        return by_place.tobytes()

    @cached_property
    def tag_list(self) -> list[_EventType]:
        by_number = [_EVENT_TYPES.get(number, _EventType.Kineto) for number in range(_KINETO + 1)]
        return value_list(by_number, np.frombuffer(self.kinds, np.uint8))

    @cached_property
    def thread_numbers(self) -> list[int]:
        """Threads are numbered from 1, as torch does: the main one, those of events, then any others; 0 for the work of devices."""
        trace = self.trace
        threads = _concatenated(trace.thread, trace.frames.thread, trace.memory.thread)
        unique, index = np.unique(threads, return_inverse=True)
        main = trace.settings.thread
        in_order = dict.fromkeys([main, *np.unique(trace.thread).tolist(), *unique.tolist()])
        number = {thread: place for place, thread in enumerate(in_order, 1)}
        numbers = np.array([number[thread] for thread in unique.tolist()], np.int64)
        by_row = np.zeros(self.size, np.int64)
        by_row[: self.first_device] = numbers[index.reshape(-1)]
        return int_list(by_row[self.order])

    def correlation(self, row: int) -> int:
        """The number that an event has in its trace; 0 for nodes that are no ops."""
        if row < self.first_frame:
            if self.kinds[self.place[row]] != _OP:
                return 0
            external = self.trace.external
            if external is None:
                return row + 1 + self.trace.settings.numbered_after
            return int(external[row])
        if row < self.first_device:
            return 0
        return max(0, int(self.trace.device.correlation[row - self.first_device]))

    # ------------------------------------------------------------------------------------------------ extra fields

    @cached_property
    def tensors(self) -> Tensors:
        """Ids and addresses of the tensors and the memory that events used."""
        return Tensors(self.trace)

    @cached_property
    def scopes(self) -> list[RecordScope]:
        """The scope of each row that is an event."""
        by_number = [_SCOPES.get(number, RecordScope.FUNCTION) for number in range(max(_SCOPES) + 1)]
        return value_list(by_number, self.trace.scope)

    @cached_property
    def sequences(self) -> list[int]:
        """The sequence number of each row that is an event."""
        return int_list(self.trace.sequence)

    @cached_property
    def event_names(self) -> list[str]:
        """The name of each row that is an event."""
        return value_list(self.trace.names, self.trace.name)

    @cached_property
    def allocation_sizes(self) -> list[int]:
        """The bytes of allocations; negative: of frees."""
        return int_list(self.trace.memory.nbytes)

    @cached_property
    def _allocation_class(self) -> type[_ExtraFields_Allocation]:
        return view_class(_ExtraFields_Allocation, self)

    def allocation(self, row: int) -> _ExtraFields_Allocation:
        """The fields of an allocation, by row of the Trace's memory."""
        fields = self._allocation_class()
        fields._row = row
        return fields

    def memory_device(self, row: int) -> TorchValue:
        """Where an allocation is, by row of the Trace's memory."""
        trace = self.trace
        number = -1 if trace.memory.device is None else int(trace.memory.device[row])
        return self.tensors.device(number, trace.settings.device)

    def extra_fields(self, node: int) -> _Fields:
        """The fields of a node that is neither an op nor an allocation."""
        kind = self.kinds[node]
        if kind == _C_CALL:
            return _ExtraFields_PyCCall._make(caller=self._caller_frame(node))
        return self._call(node) if kind == _CALL else _ExtraFields_Kineto._make()

    def _caller(self, node: int) -> int:
        """The Python call around a node; the node itself if there is none."""
        above = self.parent_list[node]
        while above >= 0 and self.kinds[above] != _CALL:
            above = self.parent_list[above]
        return node if above < 0 else above

    def _caller_frame(self, node: int) -> _PyFrameState:
        """The caller, at the line of the call where that is known."""
        above = self._caller(node)
        frame = self._frame(above)
        line = self._call_lines[node]
        if not line or above == node:
            return frame
        return _PyFrameState._make(
            file_name=frame.file_name, line_number=line, function_name=frame.function_name
        )

    @cached_property
    def _call_lines(self) -> list[int]:
        """The line of the caller on which each call was made; 0: not known, or no call."""
        by_row = np.zeros(self.size, np.int64)
        line = self.trace.frames.line
        if line is not None:
            by_row[self.first_frame : self.first_frame + len(line)] = line
        return int_list(by_row[self.order])

    def _call(self, node: int) -> _ExtraFields_PyCall:
        owner = self.owner(node)
        return _ExtraFields_PyCall._make(
            callsite=self._frame(node),
            caller=self._caller_frame(node),
            module=self._module(owner) if owner is not None and owner.kind == "module" else None,
            optimizer=self._optimizer(owner) if owner is not None and owner.kind == "optimizer" else None,
        )

    def owner(self, node: int) -> ParameterOwner | None:
        """The module or optimizer whose call a node is; None: neither."""
        number = self.owner_column[node]
        return None if number < 0 else self.trace.tensor_ids.owners[number]

    @cached_property
    def owner_column(self) -> npt.NDArray[np.integer]:
        """By place the index of the module or optimizer whose call it is, in the owners of the Trace; -1: neither."""
        by_row = np.full(self.size, -1, np.int64)
        frame = self.trace.tensor_ids.frame
        by_row[self.first_frame : self.first_frame + len(frame)] = frame
        by_place: npt.NDArray[np.integer] = by_row[self.order]
        return by_place

    def updates_together(self, node: int) -> bool:
        """Whether a node is the call of an optimizer that was asked to update all parameters at once."""
        owner = self.owner(node)
        return owner is not None and owner.updates_together

    def _module(self, owner: ParameterOwner) -> _NNModuleInfo:
        parameters = [
            (name, self._tensor(parameter), self._tensor(gradient))
            for name, parameter, gradient, _ in owner.parameters
        ]
        return _NNModuleInfo._make(
            cls_name=owner.class_name, cls_ptr=owner.class_ptr, self_ptr=owner.self_ptr, parameters=parameters
        )

    def _optimizer(self, owner: ParameterOwner) -> _OptimizerInfo:
        parameters = [
            (
                self._tensor(parameter),
                self._tensor(gradient),
                [(name, self._tensor(state)) for name, state in states],
            )
            for _, parameter, gradient, states in owner.parameters
        ]
        return _OptimizerInfo._make(self_ptr=owner.self_ptr, parameters=parameters)

    def _tensor(self, tensor: NumberedTensor | None) -> _TensorMetadata | None:
        return None if tensor is None else self.tensors.tensor(*tensor)

    def _frame(self, node: int) -> _PyFrameState:
        number = self._name_numbers[node]
        frame = self._frames.get(number)
        if frame is None:
            frame = self._frames[number] = _frame_of(
                self.names[node], self.trace.settings.module_call or _MODULE_CALL
            )
        return frame

    @cached_property
    def _name_numbers(self) -> list[int]:
        return int_list(self.name_columns[1])

    @cached_property
    def _frames(self) -> dict[int, _PyFrameState]:
        """By number of a name: the frame, made when it is first asked for."""
        return {}


def _frame_of(text: str, module_call: tuple[str, int, str]) -> _PyFrameState:
    """The place in the program that the name of a call says; `module_call`: that of the calls of modules."""
    file, line, function = source_of(text) or (module_call if is_module_frame(text) else ("", 0, text))
    return _PyFrameState._make(file_name=file, line_number=line, function_name=function)


_SCOPES = {scope.value: scope for scope in RecordScope}
_EVENT_TYPES = {kind.value: kind for kind in _EventType}


def _concatenated(*columns: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
    """Columns one after the other, as int64."""
    filled = [column for column in columns if len(column)]
    return (np.concatenate(filled) if filled else np.empty(0, np.int64)).astype(np.int64, copy=False)


def _is_sorted(values: npt.NDArray[np.integer]) -> bool:
    return bool((values[1:] >= values[:-1]).all())


def _by_time(start: npt.NDArray[np.integer], end: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
    """The order of (start, longest first), stable."""
    order = np.argsort(start, kind="stable")
    same = np.flatnonzero(start[order[1:]] == start[order[:-1]])
    if len(same):  # mostly few: sorting these again is cheaper than sorting all by two keys
        places = np.union1d(same, same + 1)
        rows = order[places]
        order[places] = rows[np.lexsort((-end[rows], start[rows]))]
    return order


@contextlib.contextmanager
def collection_paused() -> Iterator[None]:
    """Pause the garbage collector: while many objects are made and none is dropped, it would visit all of them again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _parents(
    start: npt.NDArray[np.integer], end: npt.NDArray[np.integer], rows: npt.NDArray[np.integer]
) -> npt.NDArray[np.integer]:
    """Parents (as rows) of one thread's spans, sorted by start, longest first."""
    if (start[1:] >= end[:-1]).all() and (start[1:] > start[:-1]).all():  # none is inside another
        return np.full(len(rows), -1, np.int64)
    parent = parents(depths(start, end))
    if (end > end[np.where(parent < 0, np.arange(len(end)), parent)]).any():
        parent = contained(start, end)[0]
    return np.where(parent < 0, -1, rows[np.maximum(parent, 0)])


def tree_of_roots(events: object) -> EventTree | None:
    """The tree whose roots these events are; None if they are anything else."""
    if not isinstance(events, list) or not events or not isinstance(events[0], _ProfilerEvent):
        return None
    tree = events[0]._tree
    return tree if len(events) == tree.n_roots and events == tree.nodes[: tree.n_roots] else None


class _ProfilerResult:
    """The finished recording, as torch's `profile.kineto_results` gives it."""

    __slots__ = ("_results", "_path_writer")

    def __init__(self, results: Results) -> None:
        self._results = results

    def experimental_event_tree(self) -> list[_ProfilerEvent]:
        """The roots of the event tree."""
        return self._results.event_tree.roots()

    def events(self) -> list[_KinetoEvent]:
        """The events as torch's C++ classes: fields are methods."""
        return [_KinetoEvent(event) for event in self._results.events]

    def trace_start_ns(self) -> int:
        """When recording began, in nanoseconds since the epoch."""
        trace = self._results.trace
        return trace.origin_ns + trace.window_ns[0]

    def trace_activities(self) -> list[_ProfilerEvent]:
        """Activities of devices, in the order of time."""
        tree = self._results.event_tree
        rows = np.flatnonzero(tree.trace.device.kind < DEVICE_ANNOTATION) + tree.first_device
        return [tree.event(row) for row in rows.tolist()]

    def save(self, path: str) -> None:
        """Write a trace file."""
        from ..export.chrome import export_chrome_trace

        export_chrome_trace(self._results.trace, path, {})


class _KinetoEvent:
    """A FunctionEvent with its fields as methods, in nanoseconds."""

    __slots__ = ("_event",)

    def __init__(self, event: FunctionEvent) -> None:
        self._event = event

    def start_ns(self) -> int:
        """When it began, in nanoseconds since the epoch."""
        return self._base() + round(self._event.time_range.start * 1000)

    def end_ns(self) -> int:
        """When it ended, in nanoseconds since the epoch."""
        return self._base() + round(self._event.time_range.end * 1000)

    def duration_ns(self) -> int:
        """How long it took."""
        return self.end_ns() - self.start_ns()

    def _base(self) -> int:
        """Time 0 of an event of a recording; 0 for any other event."""
        results: Results | None = getattr(self._event, "_results", None)
        return 0 if results is None else results.trace.origin_ns + results.trace.window_ns[0]

    def __getattr__(self, name: str) -> Callable[[], Any]:
        field = _KINETO_FIELDS.get(name)
        if field is None and name in _KINETO_CONSTANTS:
            return lambda: _KINETO_CONSTANTS[name]
        if field is None:
            raise AttributeError(f"'torch._C._autograd._KinetoEvent' object has no attribute '{name}'")
        return lambda: getattr(self._event, field)


# fields of device events, and of events that torch hides
_KINETO_CONSTANTS: dict[str, object] = {
    "cuda_elapsed_us": -1,
    "privateuse1_elapsed_us": -1,
    "extra_meta": {},
    "is_hidden_event": False,
}
_KINETO_FIELDS = {
    **{
        name: name
        for name in (
            "activity_type concrete_inputs device_index device_resource_id device_type external_id flops flow_id flow_start flow_type "
            "is_async is_python_function is_user_annotation kwinputs linked_correlation_id name overload_name python_id "
            "python_module_id python_parent_id scope sequence_nr stack structured_input_shapes structured_input_strides"
        ).split()
    },
    "correlation_id": "id",
    "dtypes": "input_dtypes",
    "fwd_thread_id": "fwd_thread",
    "metadata_json": "_metadata_json",
    "nbytes": "self_cpu_memory_usage",
    "shapes": "input_shapes",
    "start_thread_id": "thread",
    "end_thread_id": "thread",
}
