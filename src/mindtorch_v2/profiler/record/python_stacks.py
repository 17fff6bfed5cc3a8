"""Python stacks while recording: a frame in, the number of its call out; after the stop, calls and stacks as columns.

A call gets a number when the first op or annotation is recorded in it. The number is stored on the frame itself, in `f_trace`, which
Python reads only if a debugger has set a trace function. The next op in the same call reads it back, however deep the stack is, and no
frame is kept alive. Names are looked up after the stop. A call lasts from the first to the last event recorded in it.
"""

from __future__ import annotations

import os
import sys
import time
import weakref
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from mindtorch_prof.frames import module_frame
from mindtorch_prof.trace import ANNOTATION, Frames
from mindtorch_prof.tree import depths, depths_below, innermost, levels, parents, thread_slices

clock = time.perf_counter_ns

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
# files whose functions are not part of the user's stack: what torch does in C++, and the profiler itself
_HIDDEN = tuple(
    os.path.normpath(PACKAGE + part) + (os.sep if part.endswith(os.sep) else "")
    for part in (
        "_ops" + os.sep,
        "_dispatch.py",
        "_promotion.py",
        "_codegen.py",
        "_graph.py",
        "_overrides.py",
        "_torch_dispatch.py",
        "_recording_hooks.py",
        "autograd" + os.sep + "engine.py",
        "profiler" + os.sep,
        os.path.join("..", "mindtorch_prof", ""),
    )
)
_SHOWN = (PACKAGE + os.path.join("profiler", "commands", "demo.py"),)
_MODULE_FILE = PACKAGE + os.path.join("nn", "modules", "module.py")
# co_flags of generators and coroutines; their caller changes, so their frames are never marked
_RESUMED = 0x20 | 0x80 | 0x200

_NO_CALL = -1
WIDTH = 5  # integers per call: caller (a number, or -1), name, time of its first event, thread, module's number (-1: none)

HIDDEN_FUNCTION, SHOWN_FUNCTION, MODULE_CALL = range(3)  # kinds of functions


class Stacks:
    """The calls of one recording."""

    def __init__(self, *, modules_only: bool = False) -> None:
        self.modules_only = modules_only
        # in which call a node of the backward pass runs that calls only the library's own functions; -1: frames have to be looked at
        self.node_call = [-1]
        self.calls: list[int] = []
        self.touched: list[int] = []  # call, time: an event in the call that is no op
        self.names: dict[tuple[Any, int], int] = {}  # (code, line) or (class, module's number) -> index
        self.kinds: dict[CodeType, int] = {}
        self.plain: dict[CodeType, int] = {}  # shown functions that are no generators -> name
        self.generators: dict[tuple[int, CodeType, int], Any] = {}  # (frame's id, code, caller) -> call
        # by id(): a weak reference, the class, and the number among the modules of that class
        self.modules: dict[int, tuple[Any, str, int]] = {}
        self.module_counts: dict[str, int] = {}
        self.on_new_module: Any = None  # called with each module at its first call, and the name of its calls

        class Mark(int):
            """The number of a call, stored on its frame. Callable, because Python calls `f_trace` if a debugger is started later."""

            __slots__ = ()

            def __call__(self, *event: Any) -> None:
                return None

        self.mark = Mark

    def begin(self, frame: FrameType | None, thread: int, at_ns: int) -> None:
        """Number the calls that the thread is in when recording begins; their names show the current line."""
        self._walk(frame, thread, at_ns, current_line=True)

    def finish(self, frame: FrameType | None, at_ns: int) -> None:
        """The innermost marked call lasts until now, as do its callers; remove the marks."""
        mark = self.mark
        touched = False
        while frame is not None:
            number = frame.f_trace
            if number.__class__ is mark:
                if not touched and number >= 0:
                    self.touched.extend((int(number), at_ns))
                    touched = True
                frame.f_trace = None
            frame = frame.f_back

    def finder(self) -> Any:
        """A faster `find` for frames without a mark: handles a plain function with a marked caller without walking the stack."""
        mark, calls, walk, now = self.mark, self.calls, self._walk, clock
        plain, extend = self.plain.get, self.calls.extend

        def find(frame: FrameType, thread: int) -> int:
            above = frame.f_back
            if above is not None and (caller := above.f_trace).__class__ is mark and frame.f_trace is None:
                name = plain(frame.f_code)
                if name is not None:
                    frame.f_trace = number = mark(len(calls) // WIDTH)
                    extend((caller, name, now(), thread, -1))
                    return number
            return walk(frame, thread, now())

        return find

    def find(self, frame: FrameType, thread: int) -> int:
        """The number of this frame's call, or of the innermost caller that is shown."""
        number = frame.f_trace
        return number if number.__class__ is self.mark else self._walk(frame, thread, clock())  # type: ignore[return-value]

    def touch(self, frame: FrameType, thread: int, at_ns: int) -> int:
        """The same; the call lasts at least until this time."""
        number = self.find(frame, thread)
        self.touched.extend((number, at_ns))
        return number

    def _walk(self, frame: FrameType | None, thread: int, at_ns: int, current_line: bool = False) -> int:
        """Number the calls from the innermost marked one down to this frame; the number of the last one that is shown."""
        mark, kinds, unmarked = self.mark, self.kinds, []
        number: Any = _NO_CALL
        while frame is not None:
            marked = frame.f_trace
            if marked.__class__ is mark:
                number = marked
                break
            unmarked.append(frame)
            frame = frame.f_back
        for frame in reversed(unmarked):
            code = frame.f_code
            kind = kinds.get(code)
            if kind is None:
                kind = kinds[code] = self.kind_of(code)
            if code.co_flags & _RESUMED:
                # the same generator under the same caller is the same call
                key = (id(frame), code, number)
                call = self.generators.get(key)
                if call is None:
                    if kind:
                        number = self._number(frame, code, kind, int(number), thread, at_ns, current_line)
                    call = self.generators[key] = number
                number = call
                continue
            if kind:
                number = self._number(frame, code, kind, int(number), thread, at_ns, current_line)
            other = frame.f_trace
            if other is None or other.__class__.__name__ == "Mark":  # not a debugger's
                frame.f_trace = number if number.__class__ is mark else mark(number)
        return number

    def kind_of(self, code: CodeType) -> int:
        """One of the kinds of functions."""
        path = code.co_filename
        if path == _MODULE_FILE and code.co_name == "__call__":
            return MODULE_CALL
        if (
            self.modules_only
            or path.startswith("<op ")
            or (path.startswith(_HIDDEN) and not path.startswith(_SHOWN))
        ):
            return HIDDEN_FUNCTION
        return SHOWN_FUNCTION

    def _number(
        self,
        frame: FrameType,
        code: CodeType,
        kind: int,
        caller: int,
        thread: int,
        at_ns: int,
        current_line: bool,
    ) -> int:
        """Add a call; its number."""
        module = -1
        if kind == MODULE_CALL:
            name, module = self.module_key(frame.f_locals["self"])
            key: tuple[Any, int] = (name, module)
        else:
            key = (code, (frame.f_lineno or code.co_firstlineno) if current_line else code.co_firstlineno)
        index = self.names.get(key)
        if index is None:
            index = self.names[key] = len(self.names)
        if kind == SHOWN_FUNCTION and not current_line and not code.co_flags & _RESUMED:
            self.plain[code] = index
        number = len(self.calls) // WIDTH
        self.calls.extend((caller, index, at_ns, thread, module))
        return self.mark(number)

    def module_key(self, module: Any) -> tuple[str, int]:
        """A module's class and its number among those of its class, in the order of their first calls."""
        entry = self.modules.get(id(module))
        if entry is None or entry[0]() is not module:
            name = type(module).__name__
            count = self.module_counts.get(name, 0)
            self.module_counts[name] = count + 1
            entry = self.modules[id(module)] = (weakref.ref(module), name, count)
            if self.on_new_module is not None:
                self.on_new_module(module, module_frame(name, count))
        return entry[1], entry[2]

    # ------------------------------------------------------------------------------------------------ after the stop

    def called_modules(self) -> list[Any]:
        """The modules that were called and still exist."""
        return [module for reference, _, _ in self.modules.values() if (module := reference()) is not None]

    def texts(self) -> tuple[str, ...]:
        """The names as torch writes them."""
        cut = prefixes()
        return tuple(
            module_frame(code, line)
            if code.__class__ is str
            else f"{shortened(code.co_filename, cut)}({line}): {code.co_name}"
            for code, line in self.names
        )


def prefixes() -> tuple[str, ...]:
    """The folders that imports come from, longest first."""
    folders = {os.path.join(os.path.abspath(p or os.curdir), "") for p in sys.path}
    return tuple(sorted(folders, key=len, reverse=True))


def shortened(path: str, cut: tuple[str, ...]) -> str:
    """A file's path without the folder that it was imported from."""
    for prefix in cut:
        if path.startswith(prefix):
            return path[len(prefix) :]
    return path


def stack_columns(stacks: Stacks, calls: np.ndarray) -> tuple[tuple[tuple[str, ...], ...], np.ndarray]:
    """The distinct stacks (innermost frame first), and for each of `calls` (numbers, -1: none) the index of its stack."""
    texts = stacks.texts()
    indices: dict[tuple[int, int], int] = {}  # (the caller's stack, name) -> stack
    distinct: list[tuple[str, ...]] = []
    stack_of: list[int] = []
    rows = stacks.calls
    for caller, name in zip(rows[0::WIDTH], rows[1::WIDTH]):
        above = stack_of[caller] if caller >= 0 else -1
        index = indices.get((above, name))
        if index is None:
            index = indices[above, name] = len(distinct)
            distinct.append((texts[name], *distinct[above]) if above >= 0 else (texts[name],))
        stack_of.append(index)
    return tuple(distinct), np.array([*stack_of, -1], np.int32)[calls]


class CallRows(NamedTuple):
    """Calls as columns, a caller before what it calls."""

    name: np.ndarray  # an index of a table of names
    start: np.ndarray
    end: np.ndarray
    thread: np.ndarray
    parent: np.ndarray  # row of the caller; -1: none
    module: np.ndarray  # number of the module; -1: no module's call
    line: np.ndarray  # line of the caller; 0: not known


def call_rows(stacks: Stacks, calls: np.ndarray, end_ns: np.ndarray) -> CallRows:
    """The calls in the order of their numbers. calls, end_ns: for each event the call it happened in, and when it ended."""
    rows = np.array(stacks.calls, np.int64).reshape(-1, WIDTH)
    parent, name, start, thread, module = (rows[:, i].copy() for i in range(WIDTH))
    end = start.copy()
    inside = calls >= 0
    np.maximum.at(end, calls[inside], end_ns[inside])
    touched = np.array(stacks.touched, np.int64).reshape(-1, 2)
    touched = touched[touched[:, 0] >= 0]
    np.maximum.at(end, touched[:, 0], touched[:, 1])
    return CallRows(name, start, end, thread, parent, module, np.zeros(len(rows), np.int64))


class EventSpans(NamedTuple):
    """Columns of events, which Python calls must not cross."""

    kind: np.ndarray
    thread: np.ndarray
    start_ns: np.ndarray
    end_ns: np.ndarray


def frames_of(names: tuple[str, ...], rows: CallRows, events: EventSpans) -> Frames:
    """The calls in order of (thread, start). None ends after its caller, and none crosses an annotation."""
    if not len(rows.start):
        return Frames.none()
    name, start, end, thread, parent, module, line = rows
    by_depth = levels(depths_below(parent))
    for level in reversed(by_depth[1:]):
        np.maximum.at(end, parent[level], end[level])
    _cut_at_annotations(events, start, end, thread, parent, by_depth)
    order = np.lexsort((np.arange(len(start)), start, thread))  # a caller is numbered before what it calls
    new_row = np.empty(len(start), np.int64)
    new_row[order] = np.arange(len(start))
    parent = np.where(parent >= 0, new_row[parent], -1)[order]
    return Frames(
        names,
        name[order].astype(np.int32),
        start[order],
        end[order],
        thread[order],
        parent,
        module[order],
        line[order],
    )


def _cut_at_annotations(
    events: EventSpans,
    start: np.ndarray,
    end: np.ndarray,
    thread: np.ndarray,
    parent: np.ndarray,
    by_depth: list[np.ndarray],
) -> None:
    """A call that opened an annotation and did not close it (or the reverse) would cross it: shorten the call, and with it the calls
    inside it. Changes `start` and `end`."""
    annotations = events.kind == ANNOTATION
    if not annotations.any():
        return
    annotation_start, annotation_end, annotation_thread = (
        column[annotations] for column in (events.start_ns, events.end_ns, events.thread)
    )
    cut = False
    for first, last in thread_slices(annotation_thread):
        rows = np.flatnonzero(thread == annotation_thread[first])
        begins, ends = annotation_start[first:last], annotation_end[first:last]
        above = parents(depths(begins, ends))
        before = innermost(begins, ends - 1, above, start[rows])
        after = innermost(begins, ends - 1, above, end[rows])
        for row, a, b in zip(
            rows[before != after].tolist(), *(x[before != after].tolist() for x in (before, after))
        ):
            opened, closed = _ancestors(above, b), _ancestors(above, a)
            only_opened = [r for r in opened if r not in closed and begins[r] > start[row]]
            only_closed = [r for r in closed if r not in opened and ends[r] < end[row]]
            if only_closed:
                start[row] = max(start[row], int(max(ends[r] for r in only_closed)))
            if only_opened:
                end[row] = min(end[row], int(min(begins[r] for r in only_opened)))
            end[row] = max(end[row], start[row])
            cut = True
    if cut:
        for level in by_depth[1:]:
            up = parent[level]
            start[level] = np.clip(start[level], start[up], end[up])
            end[level] = np.clip(end[level], start[level], end[up])


def _ancestors(parent: np.ndarray, row: int) -> list[int]:
    rows = []
    while row >= 0:
        rows.append(row)
        row = int(parent[row])
    return rows
