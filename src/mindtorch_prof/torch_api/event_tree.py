"""The event tree: a Trace in; torch's `_ProfilerEvent` objects out, made when they are looked at.

Events, Python calls and allocations of a Trace become one tree by a few passes over columns. A node is a place in the tree's order: what
nothing lies around, then the children of one node after those of another. Its fields are read from columns in that order. Live recordings
and loaded files alike, as far as a file goes: one that holds no inputs gives events without them.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from ..frames import is_c_function, is_module_frame, source_of
from ..trace import DEVICE_ANNOTATION, KERNEL, PYTHON, RUNTIME, ParameterOwner, Trace
from ..tree import Tree, contained, depths, innermost, nearest, parents, thread_slices
from .enums import RecordScope
from .event_tree_fields import (
    _EventType,
    _ExtraFields_Allocation,
    _ExtraFields_Kineto,
    _ExtraFields_PyCall,
    _ExtraFields_PyCCall,
    _ExtraFields_TorchOp,
    _NNModuleInfo,
    _no_constructor,
    _OptimizerInfo,
    _PyFrameState,
    view_class,
)
from .tensor_ids import Tensors

_MEMORY_NAME = "[memory]"
_MODULE_CALL = ("nn/modules/module.py", 0, "__call__")  # where the trace does not say it
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


def _shown(name: str, doc: str) -> Any:
    """A field that is there once the tree has shown itself: from then on the tree's own class has a quicker one of this name."""

    def first(self: Any) -> Any:
        self._tree.show()
        return getattr(self, name)

    return property(first, doc=doc)


class _ProfilerEvent:
    """One node of an event tree."""

    # Each tree has a class of its own, which knows it: an object that is made for each of 100,000 nodes has to be small.
    __slots__ = ("_node",)

    _tree: EventTree
    _node: int

    __init__ = _no_constructor

    name = _shown("name", "What it is called.")
    tag = _shown("tag", "What kind of thing it is.")
    extra_fields = _shown("extra_fields", "What only events of this kind have.")
    start_time_ns = _shown("start_time_ns", "When it began, in nanoseconds since the epoch.")
    end_time_ns = _shown("end_time_ns", "When it ended.")
    duration_time_ns = _shown("duration_time_ns", "How long it took.")
    id = _shown("id", "A number that no other event of this tree has.")
    children = _shown("children", "What happened directly inside, in the order of time.")
    parent = _shown("parent", "What it happened directly inside of; None: nothing.")

    @property
    def overload_name(self) -> str:
        """Which overload of an op it is, where that was recorded."""
        tree = self._tree
        row = tree.rows[self._node]
        return tree.trace.overloads[tree.trace.name[row]] if row < tree.first_frame else ""

    @property
    def typed(self) -> tuple[_EventType, Any]:
        """What kind of thing it is, and what only such have."""
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
    """All nodes of a Trace. Rows are its events, then its Python calls, then its allocations, then what devices did; places are rows in the
    tree's order."""

    def __init__(self, trace: Trace, nesting: Tree | None = None) -> None:
        self.trace = trace
        frames, memory, device = trace.frames, trace.memory, trace.device
        self.first_frame = len(trace)
        self.first_memory = self.first_frame + len(frames)
        self.first_device = self.first_memory + len(memory)
        self.size = self.first_device + len(device)
        self.start = _joined(trace.start_ns, frames.start_ns, memory.time_ns, device.start_ns)
        self.end = _joined(trace.end_ns, frames.end_ns, memory.time_ns, device.end_ns)
        self.parent = self._nested(nesting)
        self.n_roots, self.order = self._ordered()
        self.kind = type("_ProfilerEvent", (_ProfilerEvent,), {"__slots__": (), "__init__": object.__init__})
        self.kind._tree = self  # type: ignore[attr-defined]
        self.nodes: list[Any] = []
        self.is_shown = False

    # ------------------------------------------------------------------------------------------------ nesting

    def _nested(self, nesting: Tree | None) -> np.ndarray:
        """The parent of each row; -1: none."""
        trace = self.trace
        parent = np.full(self.size, -1, np.int64)
        spans = self.first_memory
        if not len(trace.frames):
            order, thread = np.arange(spans), trace.thread
        else:
            every = np.concatenate([trace.thread, trace.frames.thread])
            # a call begins before what happens in it
            order = np.concatenate([np.arange(self.first_frame, spans), np.arange(self.first_frame)])
            order = order[_by_time(self.start[order], self.end[order])]
            if (every[1:] != every[:-1]).any():
                order = order[np.argsort(every[order], kind="stable")]
            thread = every[order]
        for first, last in thread_slices(thread):
            rows = order[first:last]
            if nesting is not None and not len(trace.frames):
                parent[rows] = nesting.parent[rows]
            else:
                parent[rows] = _parents(self.start[rows], self.end[rows], rows)
            self._place_memory(parent, rows, thread[first])
        if len(trace.device):
            parent[self.first_device :] = np.where(trace.device.op >= 0, trace.device.op, -1)
        return parent

    def _place_memory(self, parent: np.ndarray, rows: np.ndarray, thread: int) -> None:
        """Put the allocations of a thread into its innermost spans. rows: the thread's, in the order of time."""
        memory = self.trace.memory
        here = np.flatnonzero(memory.thread == thread)
        if not len(here):
            return
        above = parent[rows]
        inside = above >= 0
        if inside.any():
            place = np.empty(self.first_memory, np.int64)
            place[rows] = np.arange(len(rows))
            above[inside] = place[above[inside]]
        found = innermost(self.start[rows], self.end[rows], above, memory.time_ns[here])
        parent[self.first_memory + here] = np.where(found >= 0, rows[np.maximum(found, 0)], -1)

    def _ordered(self) -> tuple[int, np.ndarray]:
        """How many roots there are, and rows by parent (roots first) and time."""
        if self.size == self.first_frame and (self.parent < 0).all() and _rises(self.start):
            return self.size, np.arange(self.size)
        # of two that begin together the longer one comes first, and calls before events; what lies around others stands before them
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
        """What nothing lies around, in the order of time."""
        if not self.nodes:
            self._make(self.n_roots)
        return self.nodes[: self.n_roots]

    def _make(self, count: int) -> None:
        """Have the objects of the first so many places."""
        kind, first = self.kind, len(self.nodes)
        with collector_waits():
            made: list[Any] = [kind() for _ in range(first, count)]
            event: Any
            for event, event._node in zip(made, range(first, count)):  # noqa: B007  (the quickest way to set it)
                pass
        self.nodes += made

    def show(self) -> None:
        """Make all nodes, and give their class quick ways to their fields."""
        if self.is_shown:
            return
        self._make(self.size)
        for name, look in self._looks().items():
            setattr(self.kind, name, property(look, doc=getattr(_ProfilerEvent, name).__doc__))
        self.is_shown = True

    def _looks(self) -> dict[str, Callable[[Any], Any]]:
        """Functions that read the fields of a node: closures over lists, which are read three times as fast as arrays."""
        nodes, names, tags, kinds, rows = self.nodes, self.names, self.tag_list, self.kinds, self.rows
        starts, durations, above = self.start_list, self.duration_list, self.parent_list
        counts, begins = self._children
        op_class = view_class(_ExtraFields_TorchOp, self)
        memory_class = self._allocation_class
        first_memory = self.first_memory
        op_class.inputs = property(self.tensors.inputs_of, doc=_ExtraFields_TorchOp.inputs.__doc__)
        other = self.extra_fields
        last: list[Any] = [-1, None]  # a node and its fields: they are mostly read several times in a row

        def extra_fields(self: Any) -> Any:
            node = self._node
            if last[0] == node:
                return last[1]
            if kinds[node] == _OP:
                made = op_class()
                made._row = rows[node]
            elif kinds[node] == _ALLOCATION:
                made = memory_class()
                made._row = rows[node] - first_memory
            else:
                made = other(node)
            last[0], last[1] = node, made
            return made

        def children(self: Any) -> list[Any]:
            node = self._node
            count = counts[node]
            if not count:
                return []
            first = begins[node]
            return nodes[first : first + count]

        def parent(self: Any) -> Any:
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
        """The object that stands for a row."""
        self.show()
        return self.nodes[self.place[row]]

    # ------------------------------------------------------------------------------------------------ columns by place

    @cached_property
    def place(self) -> np.ndarray:
        """Of each row."""
        made = np.empty(self.size, np.int64)
        made[self.order] = np.arange(self.size)
        return made

    @cached_property
    def places(self) -> list[int]:
        return self.place.tolist()

    @cached_property
    def parent_place(self) -> np.ndarray:
        """The place of each place's parent; -1: none."""
        above = self.parent[self.order]
        return np.where(above < 0, -1, self.place[above])

    @cached_property
    def _children(self) -> tuple[list[int], list[int]]:
        """How many children each has, and the place of the first."""
        counts, begins = self.child_columns
        return counts.tolist(), begins.tolist()

    @cached_property
    def child_columns(self) -> tuple[np.ndarray, np.ndarray]:
        """How many children each has, and the place of the first."""
        if self.n_roots == self.size:
            return np.zeros(self.size, np.int64), np.full(self.size, self.size)
        above = self.parent_place[self.n_roots :]
        first = np.flatnonzero(np.append(True, above[1:] != above[:-1]))
        begins = np.full(self.size, self.size)
        begins[above[first]] = self.n_roots + first
        return np.bincount(above, minlength=self.size), begins

    @cached_property
    def preorder(self) -> np.ndarray:
        """Places in the order in which one walks through the tree: what is inside a node right after it."""
        above, found = self.parent_place, np.arange(self.size)
        if self.n_roots == self.size:
            return found
        if len(self.trace.device):  # what devices did is later than what it lies in
            nodes = list(range(self.n_roots - 1, -1, -1))
            counts, begins = self._children
            made = []
            while nodes:
                made.append(node := nodes.pop())
                nodes.extend(range(begins[node] + counts[node] - 1, begins[node] - 1, -1))
            return np.array(made, np.int64)
        # inside a root there is one thread: there, time is the order
        root = nearest(above, found < self.n_roots)
        time = _by_time(self.start[self.order], self.end[self.order])
        return time[np.argsort(root[time], kind="stable")]

    @cached_property
    def level_order(self) -> np.ndarray:
        """Places level by level: the roots, what is directly inside them, and so on."""
        counts, begins = self.child_columns
        found = [np.arange(self.n_roots)]
        while len(level := found[-1]):
            level = level[counts[level] > 0]
            many = counts[level]
            inside = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
            found.append(np.repeat(begins[level], many) + inside)
        return np.concatenate(found)

    @cached_property
    def walked(self) -> list[_ProfilerEvent]:
        """All nodes, what is inside one right after it."""
        self.show()
        return [self.nodes[place] for place in self.preorder.tolist()]

    @cached_property
    def walked_by_level(self) -> list[_ProfilerEvent]:
        """All nodes, level by level."""
        self.show()
        return [self.nodes[place] for place in self.level_order.tolist()]

    @cached_property
    def rows(self) -> list[int]:
        return self.order.tolist()

    @cached_property
    def parent_list(self) -> list[int]:
        return self.parent_place.tolist()

    @cached_property
    def start_list(self) -> list[int]:
        return (self.start[self.order] + self.trace.origin_ns).tolist()

    @cached_property
    def duration_list(self) -> list[int]:
        return (self.end - self.start)[self.order].tolist()

    @cached_property
    def name_columns(self) -> tuple[tuple[str, ...], np.ndarray]:
        """All names, and which of them each place has."""
        trace = self.trace
        texts = (*trace.names, *trace.frames.names, _MEMORY_NAME, *trace.device.names)
        memory = len(trace.names) + len(trace.frames.names)
        ids = _joined(
            trace.name,
            trace.frames.name + len(trace.names),
            np.full(len(trace.memory), memory),
            trace.device.name + memory + 1,
        )
        return texts, ids[self.order]

    @cached_property
    def names(self) -> list[str]:
        """What each is called."""
        texts, ids = self.name_columns
        return _picked(texts, ids)

    @cached_property
    def kinds(self) -> bytes:
        """What kind of thing each is, as the number of its _EventType."""
        made = np.full(self.size, _KINETO, np.uint8)
        kind = self.trace.kind
        made[: self.first_frame] = _OP
        made[: self.first_frame][kind == PYTHON] = _CALL
        made[: self.first_frame][(kind == KERNEL) | (kind == RUNTIME)] = _KINETO
        made[self.first_frame : self.first_memory] = _CALL
        in_c = [is_c_function(text) for text in self.trace.frames.names]
        if any(in_c):
            made[self.first_frame : self.first_memory][np.array(in_c)[self.trace.frames.name]] = _C_CALL
        made[self.first_memory : self.first_device] = _ALLOCATION
        return made[self.order].tobytes()

    @cached_property
    def tag_list(self) -> list[_EventType]:
        return _picked([_TAGS.get(number) for number in range(_KINETO + 1)], self.kind_column)

    @property
    def kind_column(self) -> np.ndarray:
        """`kinds` as an array."""
        return np.frombuffer(self.kinds, np.uint8)

    @cached_property
    def thread_numbers(self) -> list[int]:
        """Threads are numbered from 1, as torch does: the main one, those of events, then any others; 0 for what devices did."""
        trace = self.trace
        threads = _joined(trace.thread, trace.frames.thread, trace.memory.thread)
        found, number = np.unique(threads, return_inverse=True)
        main = trace.settings.thread
        in_order = dict.fromkeys([main, *np.unique(trace.thread).tolist(), *found.tolist()])
        shown = {thread: place for place, thread in enumerate(in_order, 1)}
        by_row = np.zeros(self.size, np.int64)
        by_row[: self.first_device] = np.array([shown[t] for t in found.tolist()], np.int64)[
            number.reshape(-1)
        ]
        return by_row[self.order].tolist()

    def correlation(self, row: int) -> int:
        """The number that an event has in its trace; 0 for what is no op."""
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
        """Ids and addresses of the tensors and the memory that were met."""
        return Tensors(self.trace)

    @cached_property
    def scopes(self) -> list[RecordScope]:
        """The scope of each row that is an event."""
        return _picked([_SCOPES.get(n) for n in range(max(_SCOPES) + 1)], self.trace.scope)

    @cached_property
    def sequences(self) -> list[int]:
        """The sequence number of each row that is an event."""
        return self.trace.sequence.tolist()

    @cached_property
    def texts(self) -> list[str]:
        """What each row that is an event is called."""
        return _picked(self.trace.names, self.trace.name)

    @cached_property
    def memory_list(self) -> list[int]:
        """The bytes of allocations."""
        return self.trace.memory.nbytes.tolist()

    @cached_property
    def _allocation_class(self) -> Any:
        return view_class(_ExtraFields_Allocation, self)

    def allocation(self, row: int) -> _ExtraFields_Allocation:
        """What is known of an allocation, by row of the Trace's memory."""
        fields: _ExtraFields_Allocation = self._allocation_class()
        fields._row = row
        return fields

    def memory_device(self, row: int) -> Any:
        """Where an allocation is, by row of the Trace's memory."""
        trace = self.trace
        number = -1 if trace.memory.device is None else int(trace.memory.device[row])
        return self.tensors.device(number, trace.settings.device)

    def extra_fields(self, node: int) -> Any:
        """What only nodes of this kind have, where it is neither an op nor an allocation."""
        kind = self.kinds[node]
        if kind == _C_CALL:
            return _ExtraFields_PyCCall._make(caller=self._caller_frame(node))
        return self._call(node) if kind == _CALL else _ExtraFields_Kineto._make()

    def _caller(self, node: int) -> int:
        """The Python call around a node; itself if there is none."""
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
        made = np.zeros(self.size, np.int64)
        line = self.trace.frames.line
        if line is not None:
            made[self.first_frame : self.first_frame + len(line)] = line
        return made[self.order].tolist()

    def _call(self, node: int) -> _ExtraFields_PyCall:
        module = optimizer = None
        owner = self.owner(node)
        if owner is not None:
            info = self._info(owner)
            module, optimizer = (info, None) if owner.kind == "module" else (None, info)
        return _ExtraFields_PyCall._make(
            callsite=self._frame(node),
            caller=self._caller_frame(node),
            module=module,
            optimizer=optimizer,
        )

    def owner(self, node: int) -> ParameterOwner | None:
        """The module or optimizer that a call tells of."""
        number = self.owner_column[node]
        return None if number < 0 else self.trace.tensor_ids.owners[number]

    @cached_property
    def owner_column(self) -> np.ndarray:
        """Which of the modules and optimizers that were met each place tells of; -1: none."""
        made = np.full(self.size, -1, np.int64)
        frame = self.trace.tensor_ids.frame
        made[self.first_frame : self.first_frame + len(frame)] = frame
        return made[self.order]

    def is_together(self, node: int) -> bool:
        """Whether a call tells of an optimizer that was asked to update all parameters at once."""
        owner = self.owner(node)
        return owner is not None and owner.updates_together

    def _info(self, owner: ParameterOwner) -> Any:
        def tensor(about: tuple) -> Any:
            return self.tensors.tensor(*about)

        if owner.kind == "module":
            own = [(name, tensor(p), g and tensor(g)) for name, p, g, _ in owner.parameters]
            return _NNModuleInfo._make(
                cls_name=owner.class_name, cls_ptr=owner.class_ptr, self_ptr=owner.self_ptr, parameters=own
            )
        stepped = [
            (tensor(p), g and tensor(g), [(name, tensor(state)) for name, state in states])
            for _, p, g, states in owner.parameters
        ]
        return _OptimizerInfo._make(self_ptr=owner.self_ptr, parameters=stepped)

    def _frame(self, node: int) -> _PyFrameState:
        number = self._name_numbers[node]
        made = self._frames.get(number)
        if made is None:
            made = self._frames[number] = _frame_of(
                self.names[node], self.trace.settings.module_call or _MODULE_CALL
            )
        return made

    @cached_property
    def _name_numbers(self) -> list[int]:
        return self.name_columns[1].tolist()

    @cached_property
    def _frames(self) -> dict[int, _PyFrameState]:
        return {}


def _frame_of(text: str, module_call: tuple[str, int, str]) -> _PyFrameState:
    """The place that the name of a call tells; `module_call`: that of the calls of modules."""
    source = source_of(text) or (module_call if is_module_frame(text) else ("", 0, text))
    file, line, function = source
    return _PyFrameState._make(file_name=file, line_number=line, function_name=function)


_SCOPES = {scope.value: scope for scope in RecordScope}
_TAGS = {kind.value: kind for kind in _EventType}


def _joined(*columns: np.ndarray) -> np.ndarray:
    """Columns one after the other, as int64."""
    filled = [column for column in columns if len(column)]
    return (np.concatenate(filled) if filled else np.empty(0, np.int64)).astype(np.int64, copy=False)


def _picked(table: Any, ids: np.ndarray) -> list[Any]:
    """The values of a table by number."""
    made = np.empty(len(table), object)
    made[:] = table
    return made[ids].tolist()


def _rises(values: np.ndarray) -> bool:
    return bool((values[1:] >= values[:-1]).all())


def _by_time(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The order of (start, longest first); what is equal keeps its order."""
    order = np.argsort(start, kind="stable")
    same = np.flatnonzero(start[order[1:]] == start[order[:-1]])
    if len(same):  # hardly ever many: it is cheaper to sort these again than all by two keys
        places = np.union1d(same, same + 1)
        rows = order[places]
        order[places] = rows[np.lexsort((-end[rows], start[rows]))]
    return order


@contextlib.contextmanager
def collector_waits() -> Iterator[None]:
    """While many objects are made and none is thrown away, the garbage collector would look at all of them again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _parents(start: np.ndarray, end: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Parents (as rows) of one thread's spans, sorted by start, longest first."""
    if (start[1:] >= end[:-1]).all() and (start[1:] > start[:-1]).all():  # one after the other
        return np.full(len(rows), -1, np.int64)
    found = parents(depths(start, end))
    if (end > end[np.where(found < 0, np.arange(len(end)), found)]).any():
        found = contained(start, end)[0]
    return np.where(found < 0, -1, rows[np.maximum(found, 0)])


def whole_tree(events: Any) -> EventTree | None:
    """The tree whose roots these events are; None if they are something else."""
    if not isinstance(events, list) or not events or not isinstance(events[0], _ProfilerEvent):
        return None
    tree = events[0]._tree
    return tree if len(events) == tree.n_roots and events == tree.nodes[: tree.n_roots] else None


class _ProfilerResult:
    """What torch's `profile.kineto_results` is: the finished recording."""

    __slots__ = ("_results", "_path_writer")

    def __init__(self, results: Any) -> None:
        self._results = results

    def experimental_event_tree(self) -> list[_ProfilerEvent]:
        """The roots of the event tree."""
        return self._results.event_tree.roots()

    def events(self) -> list[Any]:
        """The events as torch's C++ side gives them: fields are methods."""
        return [_KinetoEvent(event) for event in self._results.events]

    def trace_start_ns(self) -> int:
        """When recording began, in nanoseconds since the epoch."""
        trace = self._results.trace
        return trace.origin_ns + trace.window_ns[0]

    def trace_activities(self) -> list[Any]:
        """Activities of devices, in the order of time."""
        made = self._results.event_tree
        wanted = np.flatnonzero(made.trace.device.kind < DEVICE_ANNOTATION) + made.first_device
        return [made.event(node) for node in wanted.tolist()]

    def save(self, path: str) -> None:
        """Write a trace file."""
        from ..export.chrome import export_chrome_trace

        export_chrome_trace(self._results.trace, path, {})


class _KinetoEvent:
    """A FunctionEvent with its fields as methods, in nanoseconds."""

    __slots__ = ("_event",)

    def __init__(self, event: Any) -> None:
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
        results = getattr(self._event, "_results", None)
        return 0 if results is None else results.trace.origin_ns + results.trace.window_ns[0]

    def __getattr__(self, name: str) -> Any:
        field = _KINETO_FIELDS.get(name)
        if field is None and name in _KINETO_CONSTANTS:
            return lambda: _KINETO_CONSTANTS[name]
        if field is None:
            raise AttributeError(f"'torch._C._autograd._KinetoEvent' object has no attribute '{name}'")
        return lambda: getattr(self._event, field)


# what only devices have, or events that torch hides
_KINETO_CONSTANTS: dict[str, Any] = {
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
