"""The event tree: a Trace in; torch's `_ProfilerEvent` objects out, made when they are looked at.

Events, Python calls and allocations of a Trace become one tree by a few passes over columns; a node is a row, its fields are read from the
columns. Live recordings and loaded files alike, as far as a file goes: one that holds no inputs gives events without them.
"""

from __future__ import annotations

import gc
import re
import sys
from functools import cached_property
from typing import Any

import numpy as np

from .devices import RecordScope
from .event_fields import (
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
)
from .known import Known
from .trace import DEVICE_ANNOTATION, KERNEL, PYTHON, RUNTIME, Held, Trace
from .tree import Tree, contained, depths, innermost, parents, thread_slices, tree

_MEMORY_NAME = "[memory]"
_FRAME = re.compile(r"(?P<file>.*)\((?P<line>\d+)\): (?P<function>.*)", re.DOTALL)
_SCOPES = {scope.value: scope for scope in RecordScope}
_MODULE = "nn.Module: "
_MANY = 1000


class _ProfilerEvent:
    """One node of an event tree."""

    # Each tree has a class of its own, which holds it: an object that is made for each of 100,000 nodes has to be small.
    __slots__ = ("_node", "parent", "_extra", "_children")

    _tree: EventTree
    _node: int
    parent: _ProfilerEvent | None
    _extra: Any
    _children: list[_ProfilerEvent] | None

    __init__ = _no_constructor

    @property
    def name(self) -> str:
        """What it is called."""
        return self._tree.names[self._node]

    @property
    def overload_name(self) -> str:
        """Which overload of an op it is, where that was recorded."""
        trace = self._tree.trace
        return trace.overloads[trace.name[self._node]] if self._node < len(trace) else ""

    @property
    def tag(self) -> _EventType:
        """What kind of thing it is."""
        return _TAGS[self._tree.tags[self._node]]

    @property
    def extra_fields(self) -> Any:
        """What only events of this kind have."""
        made = self._extra
        if made is None:
            made = self._extra = self._tree.extra_fields(self._node)
        return made

    @property
    def typed(self) -> tuple[_EventType, Any]:
        """What kind of thing it is, and what only such have."""
        return self.tag, self.extra_fields

    @property
    def id(self) -> int:
        """A number that no other event of this tree has."""
        return self._node + 1

    @property
    def correlation_id(self) -> int:
        """The number in a trace file; 0: none."""
        return self._tree.correlation(self._node)

    @property
    def start_tid(self) -> int:
        """The thread, numbered from 1."""
        return self._tree.thread_number(self._node)

    @property
    def start_time_ns(self) -> int:
        """When it began, in nanoseconds since the epoch."""
        return self._tree.start_list[self._node]

    @property
    def end_time_ns(self) -> int:
        """When it ended."""
        return self._tree.end_list[self._node]

    @property
    def duration_time_ns(self) -> int:
        """How long it took."""
        return self._tree.end_list[self._node] - self._tree.start_list[self._node]

    @property
    def children(self) -> list[_ProfilerEvent]:
        """What happened directly inside, in the order of time."""
        made = self._children
        if made is None:
            made = self._children = self._tree.children(self._node, self)
        return made

    def __repr__(self) -> str:
        return f"<torch._C._profiler._ProfilerEvent object at {id(self):#x}>"


class EventTree:
    """All nodes of a Trace: its events, then its Python calls, then its allocations, then what devices did."""

    def __init__(self, trace: Trace, nesting: Tree | None = None) -> None:
        self.trace = trace
        frames, memory, device = trace.frames, trace.memory, trace.device
        self.first_frame = len(trace)
        self.first_memory = self.first_frame + len(frames)
        self.first_device = self.first_memory + len(memory)
        self.size = self.first_device + len(device)
        self.start = np.concatenate(
            [trace.start_ns, frames.start_ns, memory.time_ns, device.start_ns]
        ).astype(np.int64)
        self.end = np.concatenate([trace.end_ns, frames.end_ns, memory.time_ns, device.end_ns]).astype(
            np.int64
        )
        self.parent = self._nested(nesting)
        self.made = type("_ProfilerEvent", (_ProfilerEvent,), {"__slots__": (), "_tree": self})
        self._roots: list[_ProfilerEvent] | None = None

    # ------------------------------------------------------------------------------------------------ nesting

    def _nested(self, nesting: Tree | None) -> np.ndarray:
        """The parent of each node; -1: none."""
        trace = self.trace
        parent = np.full(self.size, -1, np.int64)
        spans = self.first_memory
        if not len(trace.frames):
            parent[:spans] = (nesting or tree(trace)).parent
            order = np.arange(spans)
            thread = trace.thread
        else:
            every = np.concatenate([trace.thread, trace.frames.thread])
            calls_first = np.arange(spans) < self.first_frame  # a call begins before what happens in it
            order = np.lexsort((np.arange(spans), calls_first, -self.end[:spans], self.start[:spans], every))
            thread = every[order]
            for first, last in thread_slices(thread):
                rows = order[first:last]
                parent[rows] = _parents(self.start[rows], self.end[rows], rows)
        self._place_memory(parent, order, thread)
        if len(trace.device):
            parent[self.first_device :] = np.where(trace.device.op >= 0, trace.device.op, -1)
        return parent

    def _place_memory(self, parent: np.ndarray, order: np.ndarray, thread: np.ndarray) -> None:
        memory = self.trace.memory
        if not len(memory):
            return
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        for first, last in thread_slices(thread):
            here = np.flatnonzero(memory.thread == thread[first])
            rows = order[first:last]
            above = np.where(parent[rows] < 0, -1, place[np.maximum(parent[rows], 0)] - first)
            found = innermost(self.start[rows], self.end[rows], above, memory.time_ns[here])
            parent[self.first_memory + here] = np.where(found >= 0, rows[np.maximum(found, 0)], -1)

    @cached_property
    def _order(self) -> tuple[np.ndarray, np.ndarray]:
        """Nodes by parent (roots first) and time, and where each parent's begin."""
        # of two that begin together the longer one comes first, and calls before events
        rank = np.zeros(self.size, np.int8)
        rank[self.first_frame : self.first_memory] = -1
        order = np.lexsort((np.arange(self.size), rank, -self.end, self.start, self.parent))
        begins = np.searchsorted(self.parent[order], np.arange(-1, self.size + 1))
        return order, begins

    @cached_property
    def _child_lists(self) -> tuple[list[int], list[int]]:
        order, begins = self._order
        return order.tolist(), begins.tolist()

    # as lists, for the nodes: reading an element of an array costs three times as much

    @cached_property
    def parent_list(self) -> list[int]:
        return self.parent.tolist()

    @cached_property
    def start_list(self) -> list[int]:
        return (self.start + self.trace.origin_ns).tolist()

    @cached_property
    def end_list(self) -> list[int]:
        return (self.end + self.trace.origin_ns).tolist()

    @cached_property
    def memory_list(self) -> list[int]:
        """The bytes of allocations."""
        return self.trace.memory.nbytes.tolist()

    @cached_property
    def names(self) -> list[str]:
        """What each node is called."""
        trace = self.trace
        return [
            *_texts(trace.names, trace.name),
            *_texts(trace.frames.names, trace.frames.name),
            *[_MEMORY_NAME] * len(trace.memory),
            *_texts(trace.device.names, trace.device.name),
        ]

    @cached_property
    def tags(self) -> bytes:
        """What kind of thing each node is, as the number of its _EventType."""
        made = np.full(self.size, _EventType.Kineto.value, np.uint8)
        kind = self.trace.kind
        made[: self.first_frame] = _EventType.TorchOp.value
        made[: self.first_frame][kind == PYTHON] = _EventType.PyCall.value
        made[: self.first_frame][(kind == KERNEL) | (kind == RUNTIME)] = _EventType.Kineto.value
        made[self.first_frame : self.first_memory] = _EventType.PyCall.value
        in_c = [text.startswith("<built-in ") for text in self.trace.frames.names]
        if any(in_c):
            made[self.first_frame : self.first_memory][np.array(in_c)[self.trace.frames.name]] = (
                _EventType.PyCCall.value
            )
        made[self.first_memory : self.first_device] = _EventType.Allocation.value
        return made.tobytes()

    # ------------------------------------------------------------------------------------------------ nodes

    def children(self, node: int, parent: _ProfilerEvent | None) -> list[_ProfilerEvent]:
        """What happened directly inside a node, in the order of time; of -1: the roots. Made once, by whoever keeps them."""
        order, begins = self._child_lists
        first, last = begins[node + 1], begins[node + 2]
        if first == last:
            return []
        made: list[_ProfilerEvent] = []
        new: Any = object.__new__
        kind = self.made
        many = last - first > _MANY and gc.isenabled()
        if many:  # the collector would look at all of them again and again while nothing is thrown away
            gc.disable()
        for child in order[first:last]:
            event = new(kind)
            event._node, event.parent, event._extra, event._children = child, parent, None, None
            made.append(event)
        if many:
            gc.enable()
        return made

    def roots(self) -> list[_ProfilerEvent]:
        """What nothing lies around, in the order of time."""
        if self._roots is None:
            self._roots = self.children(-1, None)
        return list(self._roots)

    def event(self, node: int) -> _ProfilerEvent:
        """The object that stands for a node, found from its root."""
        path = [node]
        while (above := self.parent_list[path[-1]]) >= 0:
            path.append(above)
        found = self.roots()
        for step in reversed(path):
            (event,) = [each for each in found if each._node == step]
            found = event.children
        return event

    def correlation(self, node: int) -> int:
        """The number that an event has in its trace; 0 for what is no op."""
        if node < self.first_frame:
            if self.tags[node] != _EventType.TorchOp.value:
                return 0
            external = self.trace.external
            return node + 1 if external is None else int(external[node])
        if node < self.first_device:
            return 0
        return max(0, int(self.trace.device.correlation[node - self.first_device]))

    @cached_property
    def _threads(self) -> dict[int, int]:
        main = self.trace.settings.get("thread", 0)
        found = dict.fromkeys([main, *np.unique(self.trace.thread).tolist()])
        return {thread: number for number, thread in enumerate(found, 1)}

    def thread_number(self, node: int) -> int:
        """Threads are numbered from 1, as torch does."""
        if node < self.first_frame:
            thread = self.trace.thread[node]
        elif node < self.first_memory:
            thread = self.trace.frames.thread[node - self.first_frame]
        elif node < self.first_device:
            thread = self.trace.memory.thread[node - self.first_memory]
        else:
            return 0
        return self._threads.setdefault(int(thread), len(self._threads) + 1)

    # ------------------------------------------------------------------------------------------------ extra fields

    @cached_property
    def known(self) -> Known:
        """Ids and addresses of the tensors and the memory that were met."""
        return Known(self.trace)

    def scope(self, node: int) -> RecordScope:
        """The scope of an op or range."""
        return _SCOPES[self._scopes[node]]

    @cached_property
    def _scopes(self) -> bytes:
        return self.trace.scope.astype(np.uint8).tobytes()

    def extra_fields(self, node: int) -> Any:
        """What only nodes of this kind have."""
        tag = self.tags[node]
        if tag == _EventType.TorchOp.value:
            return _ExtraFields_TorchOp._look(self, node)
        if tag == _EventType.Allocation.value:
            return _ExtraFields_Allocation._look(self, node - self.first_memory)
        if tag == _EventType.PyCCall.value:
            return _ExtraFields_PyCCall._make(caller=self._frame(self._caller(node)))
        return self._call(node) if tag == _EventType.PyCall.value else _ExtraFields_Kineto._make()

    def _caller(self, node: int) -> int:
        """The Python call around a node; itself if there is none."""
        above = self.parent_list[node]
        while above >= 0 and self.tags[above] != _EventType.PyCall.value:
            above = self.parent_list[above]
        return node if above < 0 else above

    def _call(self, node: int) -> _ExtraFields_PyCall:
        module = optimizer = None
        held = self._held(node)
        if held is not None:
            info = self._info(held)
            module, optimizer = (info, None) if held.kind == "module" else (None, info)
        return _ExtraFields_PyCall._make(
            callsite=self._frame(node),
            caller=self._frame(self._caller(node)),
            module=module,
            optimizer=optimizer,
        )

    def _held(self, node: int) -> Held | None:
        identities, row = self.trace.identities, node - self.first_frame
        if not 0 <= row < len(identities.frame) or identities.frame[row] < 0:
            return None
        return identities.held[identities.frame[row]]

    def is_together(self, node: int) -> bool:
        """Whether a call tells of an optimizer that was asked to update all parameters at once."""
        held = self._held(node)
        return held is not None and held.together

    def _info(self, held: Held) -> Any:
        tensor = self.known.tensor
        if held.kind == "module":
            own = [(name, tensor(p), g and tensor(g)) for name, p, g, _ in held.parameters]
            return _NNModuleInfo._make(
                cls_name=held.class_name, cls_ptr=held.class_ptr, self_ptr=held.self_ptr, parameters=own
            )
        stepped = [
            (tensor(p), g and tensor(g), [(name, tensor(state)) for name, state in states])
            for _, p, g, states in held.parameters
        ]
        return _OptimizerInfo._make(self_ptr=held.self_ptr, parameters=stepped)

    def _frame(self, node: int) -> _PyFrameState:
        text = self.names[node]
        found = _FRAME.fullmatch(text)
        if found is not None:
            file, line, function = found["file"], int(found["line"]), found["function"]
        elif text.startswith(_MODULE):
            file, line, function = _module_call()
        else:
            file, line, function = "", 0, text
        return _PyFrameState._make(file_name=file, line_number=line, function_name=function)


_TAGS = {kind.value: kind for kind in _EventType}


def _texts(table: tuple[str, ...], ids: np.ndarray) -> list[str]:
    return [table[number] for number in ids.tolist()]


def _parents(start: np.ndarray, end: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Parents (as rows) of one thread's spans, sorted by start, longest first."""
    found = parents(depths(start, end))
    if (end > end[np.where(found < 0, np.arange(len(end)), found)]).any():
        found = contained(start, end)[0]
    return np.where(found < 0, -1, rows[np.maximum(found, 0)])


def _module_call() -> tuple[str, int, str]:
    """Where modules are called, if there are any in this process."""
    from .stacks import prefixes, shortened

    found = sys.modules.get("mindtorch_v2.nn.modules.module")
    if found is None:
        return "nn/modules/module.py", 0, "__call__"
    code = found.Module.__call__.__code__
    return shortened(code.co_filename, prefixes()), code.co_firstlineno, code.co_name


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
        from .export.chrome import export_chrome_trace

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
        if field is None:
            raise AttributeError(f"'torch._C._autograd._KinetoEvent' object has no attribute '{name}'")
        return lambda: getattr(self._event, field)


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
