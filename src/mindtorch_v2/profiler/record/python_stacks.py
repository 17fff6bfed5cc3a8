"""Python stacks while recording: a frame in, a number out that stands for this call; after the stop, calls and stacks as columns.

A call is numbered when an op or annotation is first met inside it, and the number is left on the frame itself (`f_trace`, which
Python looks at only under a debugger's trace function): the next op of the same call reads it back, however deep the stack is,
and no frame is kept alive. Names are made after the stop. A call therefore lasts from the first to the last thing recorded in it.
"""

from __future__ import annotations

import os
import sys
import time
import weakref
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from mindtorch_prof.trace import ANNOTATION, Frames
from mindtorch_prof.tree import depths, depths_below, innermost, levels, parents, thread_slices

clock = time.perf_counter_ns

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
# what torch does in C++, or what is the profiler's own: not part of the user's stack
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
        "_hooks.py",
        "autograd" + os.sep + "engine.py",
        "profiler" + os.sep,
        os.path.join("..", "mindtorch_prof", ""),
    )
)
_SHOWN = (PACKAGE + os.path.join("profiler", "commands", "demo.py"),)
_MODULE_FILE = PACKAGE + os.path.join("nn", "modules", "module.py")
_RESUMED = (
    0x20 | 0x80 | 0x200
)  # co_flags of generators and coroutines: their caller changes, so they are never marked

NOTHING = -1
WIDTH = (
    5  # integers a call: caller (a number, or -1), name, when first met, thread, module's number (-1: none)
)


class Stacks:
    """The calls of one recording."""

    def __init__(self, *, modules_only: bool = False) -> None:
        self.modules_only = modules_only
        self.calls: list[int] = []
        self.touched: list[int] = []  # call, time: something happened in it that is no op
        self.names: dict[tuple[Any, int], int] = {}  # (code or module's name, line) -> index
        self.kinds: dict[CodeType, int] = {}  # 0 hidden, 1 shown, 2 a module's call
        self.plain: dict[CodeType, int] = {}  # functions that are shown and no generators -> name
        self.resumed: dict[tuple[int, CodeType, int], Any] = {}  # generators, which cannot be marked -> call
        self.modules: dict[int, tuple[Any, str, int]] = {}
        self.module_counts: dict[str, int] = {}
        self.met_module: Any = None  # called with each module when it is first met, and the name of its calls

        class Mark(int):
            """The number of a call, on its frame. Callable, since a trace function set later would call it."""

            __slots__ = ()

            def __call__(self, *event: Any) -> None:
                return None

        self.mark = Mark

    def begin(self, frame: FrameType | None, thread: int, at_ns: int) -> None:
        """Number the calls that are under way when recording begins; they show the line they are at."""
        self._walk(frame, thread, at_ns, current_line=True)

    def finish(self, frame: FrameType | None, at_ns: int) -> None:
        """Note which calls are still under way when recording ends, and take the marks off."""
        mark = self.mark
        met = False
        while frame is not None:
            number = frame.f_trace
            if number.__class__ is mark:
                if not met and number >= 0:
                    self.touched.extend((int(number), at_ns))
                    met = True
                frame.f_trace = None
            frame = frame.f_back

    def finder(self) -> Any:
        """`find` for the hot path, without the look at this frame's own mark: a plain function called in a marked one is settled
        here."""
        mark, calls, walk, now = self.mark, self.calls, self._walk, clock
        known, extend = self.plain.get, self.calls.extend

        def find(frame: FrameType, thread: int) -> int:
            above = frame.f_back
            if above is not None and (caller := above.f_trace).__class__ is mark and frame.f_trace is None:
                name = known(frame.f_code)
                if name is not None:
                    frame.f_trace = number = mark(len(calls) // WIDTH)
                    extend((caller, name, now(), thread, -1))
                    return number
            return walk(frame, thread, now())

        return find

    def find(self, frame: FrameType, thread: int) -> int:
        """The number of the innermost call that is shown, of this frame or around it."""
        number = frame.f_trace
        return number if number.__class__ is self.mark else self._walk(frame, thread, clock())  # type: ignore[return-value]

    def touch(self, frame: FrameType, thread: int, at_ns: int) -> int:
        """The same, and note that something happens in it now."""
        number = self.find(frame, thread)
        self.touched.extend((number, at_ns))
        return number

    def _walk(self, frame: FrameType | None, thread: int, at_ns: int, current_line: bool = False) -> int:
        mark, fresh = self.mark, []
        number: Any = NOTHING
        while frame is not None:
            found = frame.f_trace
            if found.__class__ is mark:
                number = found
                break
            fresh.append(frame)
            frame = frame.f_back
        for frame in reversed(fresh):
            code = frame.f_code
            kind = self.kinds.get(code)
            if kind is None:
                kind = self.kinds[code] = self._kind(code)
            if code.co_flags & _RESUMED:
                # the same generator under the same caller is the same call
                key = (id(frame), code, number)
                known = self.resumed.get(key)
                if known is None:
                    if kind:
                        number = self._number(frame, code, kind, int(number), thread, at_ns, current_line)
                    known = self.resumed[key] = number
                number = known
                continue
            if kind:
                number = self._number(frame, code, kind, int(number), thread, at_ns, current_line)
            if frame.f_trace is None or frame.f_trace.__class__.__name__ == "Mark":  # not a debugger's
                frame.f_trace = number if number.__class__ is mark else mark(number)
        return number

    def _kind(self, code: CodeType) -> int:
        path = code.co_filename
        if path == _MODULE_FILE and code.co_name == "__call__":
            return 2
        if (
            self.modules_only
            or path.startswith("<op ")
            or (path.startswith(_HIDDEN) and not path.startswith(_SHOWN))
        ):
            return 0
        return 1

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
        module = -1
        if kind == 2:
            name, module = self._module(frame.f_locals["self"])
            key: tuple[Any, int] = (name, module)
        else:
            key = (code, (frame.f_lineno or code.co_firstlineno) if current_line else code.co_firstlineno)
        index = self.names.get(key)
        if index is None:
            index = self.names[key] = len(self.names)
        if kind == 1 and not current_line and not code.co_flags & _RESUMED:
            self.plain[code] = index
        number = len(self.calls) // WIDTH
        self.calls.extend((caller, index, at_ns, thread, module))
        return self.mark(number)

    def _module(self, module: Any) -> tuple[str, int]:
        """A module's class and its number among those of its class, in the order in which they are met."""
        known = self.modules.get(id(module))
        if known is None or known[0]() is not module:
            name = type(module).__name__
            count = self.module_counts.get(name, 0)
            self.module_counts[name] = count + 1
            known = self.modules[id(module)] = (weakref.ref(module), name, count)
            if self.met_module is not None:
                self.met_module(module, module_text(name, count))
        return known[1], known[2]

    # ------------------------------------------------------------------------------------------------ after the stop

    def met_modules(self) -> list[Any]:
        """The modules that were called and still exist."""
        return [module for reference, _, _ in self.modules.values() if (module := reference()) is not None]

    def texts(self) -> tuple[str, ...]:
        """The names as torch writes them."""
        cut = prefixes()
        return tuple(
            module_text(what, line)
            if what.__class__ is str
            else f"{shortened(what.co_filename, cut)}({line}): {what.co_name}"
            for what, line in self.names
        )


def module_text(name: str, number: int) -> str:
    """What the calls of a module are named: by its class, and its number among those of its class."""
    return f"nn.Module: {name}_{number}"


def prefixes() -> tuple[str, ...]:
    """The folders that imports come from, longest first."""
    found = {os.path.join(os.path.abspath(p or os.curdir), "") for p in sys.path}
    return tuple(sorted(found, key=len, reverse=True))


def shortened(path: str, cut: tuple[str, ...]) -> str:
    """A file's path without the folder that it was imported from."""
    for prefix in cut:
        if path.startswith(prefix):
            return path[len(prefix) :]
    return path


def stack_columns(stacks: Stacks, calls: np.ndarray) -> tuple[tuple[tuple[str, ...], ...], np.ndarray]:
    """The distinct stacks (innermost frame first), and for each of `calls` (numbers, -1: none) the index of its stack."""
    texts = stacks.texts()
    known: dict[tuple[int, int], int] = {}
    made: list[tuple[str, ...]] = []
    path_of: list[int] = []
    rows = stacks.calls
    for caller, name in zip(rows[0::WIDTH], rows[1::WIDTH]):
        above = path_of[caller] if caller >= 0 else -1
        path = known.get((above, name))
        if path is None:
            path = known[above, name] = len(made)
            made.append((texts[name], *made[above]) if above >= 0 else (texts[name],))
        path_of.append(path)
    return tuple(made), np.array([*path_of, -1], np.int32)[calls]


class Rows(NamedTuple):
    """Calls as columns, a caller before what it calls."""

    name: np.ndarray  # an index of some table of names
    start: np.ndarray
    end: np.ndarray
    thread: np.ndarray
    parent: np.ndarray  # row of the caller; -1: none
    module: np.ndarray  # number of the module; -1: no module's call
    line: np.ndarray  # line of the caller; 0: not known


def call_rows(stacks: Stacks, calls: np.ndarray, end_ns: np.ndarray) -> Rows:
    """The calls in the order of their numbers. calls, end_ns: for each event the call it happened in, and when it ended."""
    rows = np.array(stacks.calls, np.int64).reshape(-1, WIDTH)
    parent, name, start, thread, module = (rows[:, i].copy() for i in range(WIDTH))
    end = start.copy()
    inside = calls >= 0
    np.maximum.at(end, calls[inside], end_ns[inside])
    touched = np.array(stacks.touched, np.int64).reshape(-1, 2)
    touched = touched[touched[:, 0] >= 0]
    np.maximum.at(end, touched[:, 0], touched[:, 1])
    return Rows(name, start, end, thread, parent, module, np.zeros(len(rows), np.int64))


class EventSpans(NamedTuple):
    """The columns of events that Python calls are fitted to."""

    kind: np.ndarray
    thread: np.ndarray
    start_ns: np.ndarray
    end_ns: np.ndarray


def frames_of(names: tuple[str, ...], rows: Rows, events: EventSpans) -> Frames:
    """The same calls in order, none of them outlasting its caller nor crossing an annotation."""
    if not len(rows.start):
        return Frames.none()
    name, start, end, thread, parent, module, line = rows
    by_depth = levels(depths_below(parent))
    for level in reversed(by_depth[1:]):
        np.maximum.at(end, parent[level], end[level])
    _cut_at_annotations(events, start, end, thread, parent, by_depth)
    order = np.lexsort((np.arange(len(start)), start, thread))  # a caller is numbered before what it calls
    place = np.empty(len(start), np.int64)
    place[order] = np.arange(len(start))
    parent = np.where(parent >= 0, place[parent], -1)[order]
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
    """An annotation that a call opened and did not close (or the reverse) would cross it: the call is cut there, and with it
    what it called. Changes `start` and `end`."""
    chosen = events.kind == ANNOTATION
    if not chosen.any():
        return
    at, until, of = events.start_ns[chosen], events.end_ns[chosen], events.thread[chosen]
    cut = False
    for first, last in thread_slices(of):
        rows = np.flatnonzero(thread == of[first])
        begins, ends = at[first:last], until[first:last]
        above = _parents_of(begins, ends)
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


def _parents_of(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    return parents(depths(start, end))


def _ancestors(parent: np.ndarray, row: int) -> list[int]:
    found = []
    while row >= 0:
        found.append(row)
        row = int(parent[row])
    return found
