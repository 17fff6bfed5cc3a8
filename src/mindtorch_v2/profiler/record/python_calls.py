"""The call tracer: the interpreter's profile hook in, all Python and C calls of the traced threads as `Frames` out.

The hook appends two integers per event to a flat list per thread: the function's number and the time at a call, 0 and the time at a
return. Which calls are shown, and under which name, is decided on columns after the stop. When an op begins, the hook takes itself off,
and the op's probe restores it when the op has ended: calls inside an op are not traced and cost nothing. A traced call costs about half a
microsecond, twice as much as with torch's C++ tracer. `python_stacks` costs less: it records only the calls in which ops and annotations
are recorded.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from mindtorch_prof.frames import module_frame
from mindtorch_prof.trace import Frames
from mindtorch_prof.tree import depths, nearest, parents, thread_slices

from ... import _dispatch
from ... import _recording_hooks as hooks
from .other_threads import set_profile
from .python_stacks import (
    HIDDEN_FUNCTION,
    MODULE_CALL,
    PACKAGE,
    WIDTH,
    CallRows,
    EventSpans,
    Stacks,
    frames_of,
    prefixes,
    shortened,
)

clock = time.perf_counter_ns
get_ident = threading.get_ident

# files of functions that the library may call for its own purposes: hidden if a hidden function calls them
_LIBRARIES = (
    PACKAGE,
    os.path.dirname(os.__file__) + os.sep + "site-packages" + os.sep + "numpy",
    os.path.dirname(os.__file__) + os.sep + "site-packages" + os.sep + "scipy",
    *(
        os.path.join(os.path.dirname(os.__file__), name + end)
        for name in sorted(sys.stdlib_module_names)
        for end in (".py", os.sep)
    ),
    "<frozen ",
    "<string>",
)

# Numbers of functions. Those above `_CALLBACK` are given out one by one, each to a function, a module or a C function.
RETURN = 0  # in the log: a return instead of a call
HIDDEN = 1  # all functions that are never shown
_CALLBACK = 2  # where hidden code calls the user's
_MODULE = -1  # `Module.__call__`: its frame tells which module
_ENTRY, _PROBE = -2, -3  # an op's function that users call, and its probe
_OP_FUNCTIONS = {
    "entry": _ENTRY,
    "operator": _ENTRY,
    "probe": _PROBE,
}  # by the name of the generated function
_OP_FRAMES = {_ENTRY: 2, _PROBE: 1}  # how many frames of an op return after its probe has restored the hook
# Log rows for calls that began while the hook was off and whose returns it will see, by their number.
MISSED_CALLS = tuple((HIDDEN, 0) * count for count in range(6))

_MISSED_RETURN = (RETURN, 0)  # of `sys.setprofile(None)`: the hook sees its call and not its return

_NOT_RETURNED = -1  # the end of a call that has not returned yet

# Kinds of functions: shown; hidden; hidden if the nearest caller of another kind is hidden; hidden, but what it calls is shown.
_SHOWN, _HIDDEN, _LIBRARY, _TRANSPARENT = range(4)


class _Thread:
    """The calls of one thread."""

    __slots__ = ("log", "call_sites", "suspended", "hook", "begin", "end")

    def __init__(self) -> None:
        self.log: list[int] = []
        # of each call with a number above `_CALLBACK`: the bytecode offset in its caller; -1: not known
        self.call_sites: list[int] = []
        # How many frames of an op will return after its probe has restored the hook, the probe's frame included. 0: no op has taken
        # the hook off. A list, since probes share it.
        self.suspended = [0]
        self.hook: Callable[[FrameType, str, Any], None] | None = None  # None: this thread is not traced
        # make `hook` trace again; probes refer to the hook, so it stays the same function in all windows of a recording
        self.begin: Callable[[], None] | None = None
        self.end: Callable[[], None]  # let the hook take itself off at its next event

    def close(self, now: int) -> None:
        """End all calls that have not returned."""
        numbers = self.log[0::2]
        self.log.extend((RETURN, now) * max(len(numbers) - 2 * numbers.count(RETURN), 0))


class Handover(NamedTuple):
    """When a thread's calls were left to `stacks`, and the calls that had not returned then (numbers of `stacks`, outermost first)."""

    thread: int
    at_ns: int
    calls: tuple[int, ...]


class CallTracer:
    """Traces all calls from `begin` to `finish`, any number of times."""

    def __init__(self, stacks: Stacks, *, all_threads: bool, limit: int = 0) -> None:
        self.stacks = stacks  # decides which functions are hidden, and numbers modules
        self.all_threads = all_threads  # trace threads that start later too
        # after this many ops the calls of the thread that began are left to `stacks`; 0: never
        self.limit = limit
        self.owner = get_ident()
        self.handover: Handover | None = None
        self.on_handover: Callable[[], None] = lambda: None
        self.threads: dict[int, _Thread] = {}
        self.numbers: dict[int, int] = {}  # numbers of Python functions, by the id() of their code
        self.codes: list[CodeType] = []  # keeps the code objects alive, so that no id() is reused
        self.module_code: CodeType | None = None  # the code of `Module.__call__`
        self.started: dict[tuple[CodeType, int], int] = {}  # numbers of functions that ran already at `begin`
        self.functions: dict[Any, int] = {sys.setprofile: HIDDEN}  # numbers of C functions
        self.modules: dict[tuple[str, int], int] = {}
        # by number: (code, line), (class, module's number) or a C function's name; and its kind
        self.texts: list[Any] = [None, None, None]
        self.kinds: list[int] = [_HIDDEN, _HIDDEN, _TRANSPARENT]
        self.running = False
        self.began_ns = 0
        self.silent: set[int] = set()  # threads that have neither called nor returned since `begin`

    @property
    def n_traced(self) -> int:
        """How many calls were traced: each has two rows of two integers."""
        return sum(len(traced.log) for traced in self.threads.values()) // 4

    def begin(self, at_ns: int) -> None:
        """Trace the calls of this and all other threads from now on; functions that run already are shown as called now."""
        self.running = True
        self.began_ns = at_ns
        self.silent = set(sys._current_frames()) - {get_ident()}
        set_profile(self._first_of_thread)
        hooks.install_call_tracer(self, self._first_of_thread if self.all_threads else None)
        if self.handover is None:
            self._enter_stack(sys._getframe(), get_ident(), at_ns)
            sys.setprofile(self._hook(get_ident()))

    def finish(self) -> None:
        """Stop tracing. Calls that have not returned end now."""
        if not self.running:
            return
        sys.setprofile(None)
        self.running = False
        hooks.remove_call_tracer()
        set_profile(None)
        frames = sys._current_frames()
        frames.pop(get_ident(), None)  # a frame that refers to itself would keep all callers' variables alive
        for thread in self.silent & set(frames):  # these were in one call all the time
            self._enter_stack(frames[thread], thread, self.began_ns)
        now = clock()
        for thread, traced in list(self.threads.items()):
            traced.suspended[0] = 0
            if traced.hook is not None:
                traced.end()
                traced.hook = None
            if self.handover is None or thread != self.handover.thread:
                traced.close(now)

    # ------------------------------------------------------------------------------------------------ while tracing

    def _thread(self, thread: int) -> _Thread:
        traced = self.threads.get(thread)
        if traced is None:
            traced = self.threads[thread] = _Thread()
        return traced

    def _hook(self, thread: int) -> Callable[[FrameType, str, Any], None]:
        """The function that the interpreter calls at each call and return on this thread."""
        traced = self._thread(thread)
        if traced.hook is None and traced.begin is not None:
            traced.begin()
        if traced.hook is not None:
            return traced.hook
        call_site = traced.call_sites.append
        add, suspended, now = traced.log.extend, traced.suspended, clock
        dispatch, setprofile = _dispatch, sys.setprofile
        code_numbers, number_of_code, module_call = self.numbers.get, self._number_of_code, self._module_call
        c_numbers, number_of_c, op_frames = self.functions.get, self._number_of_c_function, _OP_FRAMES
        limit = self.limit if thread == self.owner else 0
        ops_left, ended = limit, False

        def hook(frame: FrameType, event: str, argument: Any) -> None:
            nonlocal ops_left
            if ended:
                setprofile(None)
            elif event == "return":
                add((RETURN, now()))
            elif event == "call":
                number = code_numbers(id(frame.f_code))
                if number is None:
                    number = number_of_code(frame.f_code)
                if number > _CALLBACK or number == _MODULE:
                    try:
                        call_site(frame.f_back.f_lasti)  # type: ignore[union-attr]
                    except AttributeError:
                        call_site(-1)
                    add((number if number > 0 else module_call(frame), now()))
                elif number > 0:
                    add((number, now()))
                elif dispatch.recorder is None:
                    add((HIDDEN, 0))
                elif ops_left != 1:
                    ops_left -= 1
                    suspended[0] = op_frames[number]
                    setprofile(None)
                else:
                    end()
                    setprofile(None)
                    self._hand_over(frame)
            elif event == "c_call":
                number = c_numbers(argument) or number_of_c(argument)
                if number > _CALLBACK:
                    call_site(frame.f_lasti)
                add((number, now()))
            else:
                add((RETURN, now()))

        def begin() -> None:
            nonlocal ops_left, ended
            ops_left, ended = limit, False
            traced.hook = hook

        def end() -> None:
            nonlocal ended
            ended = True

        traced.hook, traced.begin, traced.end = hook, begin, end
        return hook

    def _hand_over(self, frame: FrameType) -> None:
        """Leave the calls of this thread to `stacks` from now on, and note which of its calls have not returned."""
        thread = get_ident()
        call = self.stacks.find(frame, thread)
        not_returned: list[int] = []
        while call >= 0:
            not_returned.append(int(call))
            call = self.stacks.calls[call * WIDTH]
        self.handover = Handover(thread, clock(), tuple(reversed(not_returned)))
        self.threads[thread].hook = None
        self.on_handover()

    def _first_of_thread(self, frame: FrameType, event: str, argument: Any) -> None:
        """The hook of a thread until its first event, which gives the thread its own hook."""
        if not self.running:
            sys.setprofile(None)
            return
        thread = get_ident()
        hook = self._hook(thread)
        if thread in self.silent:
            self.silent.discard(thread)
            self._enter_stack(frame.f_back if event == "call" else frame, thread, self.began_ns)
        sys.setprofile(hook)
        hook(frame, event, argument)

    def run_suspended(self, run: Callable[..., Any], *arguments: Any) -> Any:
        """Run an op that the probe does not record, or that observers see. If the op has taken the hook off, it stays off until the
        op has ended, and is restored then."""
        traced = self.threads.get(get_ident())
        if traced is None or not traced.suspended[0]:
            return run(*arguments)
        missed = MISSED_CALLS[traced.suspended[0] + 1]
        traced.suspended[0] = 0
        try:
            return run(*arguments)
        finally:
            if self.running:
                traced.log.extend(missed)
                sys.setprofile(traced.hook)

    def add_op_frame(self) -> None:
        """One more frame than usual lies between the op's function and its probe."""
        traced = self.threads.get(get_ident())
        if traced is not None and traced.suspended[0]:
            traced.suspended[0] += 1

    def restore_hook(self) -> None:
        """Restore the hook that an op has taken off: called by a function that an op calls before it is recorded, or instead."""
        traced = self.threads.get(get_ident())
        if traced is not None and traced.suspended[0]:
            traced.log.extend(MISSED_CALLS[traced.suspended[0] + 1])
            traced.suspended[0] = 0
            sys.setprofile(traced.hook)

    def is_tracing(self) -> bool:
        """Whether the calls of this thread are traced now."""
        traced = self.threads.get(get_ident())
        return traced is not None and traced.hook is not None and sys.getprofile() is traced.hook

    def call_untraced(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the library. The calls it makes are not shown, except through `call_traced`."""
        if not self.is_tracing():
            return function(*arguments)
        traced = self.threads[get_ident()]
        sys.setprofile(None)
        traced.log.extend(_MISSED_RETURN)
        try:
            return function(*arguments)
        finally:
            sys.setprofile(traced.hook)

    def call_traced(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the user from inside `call_untraced`."""
        traced = self.threads.get(get_ident())
        if traced is None or traced.hook is None or sys.getprofile() is not None:
            return function(*arguments)
        traced.log.extend((_CALLBACK, 0))
        sys.setprofile(traced.hook)
        try:
            return function(*arguments)
        finally:
            sys.setprofile(None)
            traced.log.extend(_MISSED_RETURN * 2)  # of `sys.setprofile`, and of the callback's row above

    def _enter_stack(self, frame: FrameType | None, thread: int, at_ns: int) -> None:
        """Log the functions that a thread is in as called at this time."""
        stack = []
        while frame is not None:
            stack.append(frame)
            frame = frame.f_back
        add, call_site = self._thread(thread).log.extend, self._thread(thread).call_sites.append
        for caller in reversed(stack):
            number = self._number_of_code(caller.f_code)
            if number == _MODULE:
                number = self._module_call(caller)
            elif number > _CALLBACK:
                key = (caller.f_code, caller.f_lineno or caller.f_code.co_firstlineno)
                if key not in self.started:
                    self.started[key] = self._new_number(key, self.kinds[number])
                number = self.started[key]
            if number > _CALLBACK:
                call_site(-1 if caller.f_back is None else caller.f_back.f_lasti)
            add((max(number, HIDDEN), at_ns))

    def _number_of_code(self, code: CodeType) -> int:
        """The number of a Python function, which gets one at its first call."""
        number = self.numbers.get(id(code))
        if number is None:
            path = code.co_filename
            kind = self.stacks.kind_of(code)
            if kind == MODULE_CALL:
                number, self.module_code = _MODULE, code
            elif path.startswith("<op "):
                # a guard, which runs overrides first, has the same name as the function that it guards
                number = _CALLBACK if path == "<op guard>" else _OP_FUNCTIONS.get(code.co_name, HIDDEN)
            elif kind == HIDDEN_FUNCTION:
                # these modules call the user's overrides
                number = _CALLBACK if path.endswith(("_overrides.py", "_torch_dispatch.py")) else HIDDEN
            else:
                in_library = path.startswith(_LIBRARIES)
                number = self._new_number((code, code.co_firstlineno), _LIBRARY if in_library else _SHOWN)
            self.codes.append(code)
            self.numbers[id(code)] = number
        return number

    def _new_number(self, text: Any, kind: int) -> int:
        self.texts.append(text)
        self.kinds.append(kind)
        return len(self.texts) - 1

    def _module_call(self, frame: FrameType) -> int:
        key = self.stacks.module_key(frame.f_locals["self"])
        number = self.modules.get(key)
        if number is None:
            number = self.modules[key] = self._new_number(key, _SHOWN)
        return number

    def _number_of_c_function(self, function: Any) -> int:
        owner = getattr(function, "__self__", None)
        is_method = owner is not None and owner.__class__ is not ModuleType
        # the key of a method must not keep its object alive; all objects of a class share one name, without the address that repr shows
        key = (function.__name__, owner.__class__) if is_method else function
        number = self.functions.get(key)
        if number is None:
            text = f"<built-in function {function.__name__}>"
            if is_method:
                text = f"<built-in method {function.__name__} of {owner.__class__.__name__} object>"
            number = self.functions[key] = self._new_number(text, _LIBRARY)
        return number

    def probe_variables(self, thread: int) -> dict[str, Any]:
        """The variables of probes that restore the hook of this thread, by name."""
        hook = self._hook(thread)
        traced = self.threads[thread]
        return {
            "suspended": traced.suspended,
            "setprofile": sys.setprofile,
            "hook": hook,
            "log_calls": traced.log.extend,
            "missed_calls": MISSED_CALLS,
            "run_suspended": self.run_suspended,
        }

    # ------------------------------------------------------------------------------------------------ after the stop

    def frames(self, events: EventSpans, marked: CallRows) -> Frames:
        """The calls as columns. marked: the calls of `stacks`, which are used from the handover on."""
        names, modules = self._names()
        parts, base = [], 0
        for thread in sorted(self.threads):
            part = self._thread_rows(thread, marked, modules)
            parts.append(part._replace(parent=np.where(part.parent >= 0, part.parent + base, -1)))
            base += len(part.start)
        if not base:
            return Frames.none()
        rows = CallRows(*(np.concatenate(column) for column in zip(*parts)))
        return frames_of((*names, *self.stacks.texts()), rows, events)

    def _thread_rows(self, thread: int, marked: CallRows, modules: np.ndarray) -> CallRows:
        """The calls of one thread. Their names are indices of `texts`, followed by those of `stacks`. modules: by index of `texts`."""
        log = np.array(self.threads[thread].log, np.int64).reshape(-1, 2)
        kinds = np.array(self.kinds, np.int8)
        handover = self.handover if self.handover is not None and self.handover.thread == thread else None
        number, start, end, parent = _matched(log, _NOT_RETURNED)
        not_returned = np.flatnonzero(end == _NOT_RETURNED)
        in_python = np.array([text is not None and text.__class__ is not str for text in self.texts])
        # the calls that had not returned at the handover are in the log and in `marked`, in the same order
        handed_over = not_returned[in_python[number[not_returned]]]
        marked_rows = [] if handover is None else list(handover.calls)
        if len(handed_over) != len(marked_rows):
            handed_over, marked_rows = handed_over[:0], []
        end[handed_over] = marked.end[marked_rows]
        end[end == _NOT_RETURNED] = start[end == _NOT_RETURNED] if handover is None else handover.at_ns
        line = self._lines(thread, number, parent)
        keep, parent = _shown(number, parent, kinds)
        rows = CallRows(
            number, start, end, np.full(len(number), thread, np.int64), parent, modules[number], line
        )
        rows = CallRows(*(column[keep] for column in rows))
        if handover is None:
            return rows
        later = np.flatnonzero((marked.start >= handover.at_ns) & (marked.thread == thread))
        row_of = np.full(len(marked.start) + 1, -1, np.int64)  # by row of `marked`; the last is for "none"
        row_of[marked_rows] = np.where(keep[handed_over], np.cumsum(keep)[handed_over] - 1, -1)
        row_of[later] = len(rows.start) + np.arange(len(later))
        later_rows = CallRows(*(column[later] for column in marked))
        later_rows = later_rows._replace(
            name=later_rows.name + len(self.texts), parent=row_of[later_rows.parent]
        )
        return CallRows(*(np.concatenate(pair) for pair in zip(rows, later_rows)))

    def _lines(self, thread: int, number: np.ndarray, parent: np.ndarray) -> np.ndarray:
        """The line in the caller from which each call was made; 0: not known."""
        line = np.zeros(len(number), np.int64)
        rows = np.flatnonzero(number > _CALLBACK)
        # the thread itself may just be adding one
        offset = np.array(self.threads[thread].call_sites[: len(rows)], np.int64)
        in_c = np.array([text.__class__ is str for text in self.texts])
        caller = np.where(parent >= 0, nearest(parent, ~in_c[number])[parent], -1)[rows]
        known = (caller >= 0) & (offset >= 0)
        rows, offset, caller = rows[known], offset[known], number[caller[known]]
        for one in np.unique(caller).tolist():
            text = self.texts[one]
            code = None if text is None else self.module_code if text[0].__class__ is str else text[0]
            if code is not None:
                spans = [(begin, at) for begin, _, at in code.co_lines()]
                begins, lines = np.array([(begin, at or 0) for begin, at in spans], np.int64).T
                called_here = caller == one
                line[rows[called_here]] = lines[
                    np.searchsorted(begins, offset[called_here], side="right") - 1
                ]
        return line

    def _names(self) -> tuple[tuple[str, ...], np.ndarray]:
        """By number: the name that is shown, and the module's number, -1 for functions."""
        cut = prefixes()
        names, modules = [], []
        for text in self.texts:
            module = -1
            if text is None or text.__class__ is str:
                name = text or ""
            elif text[0].__class__ is str:
                name, module = module_frame(*text), text[1]
            else:
                name = f"{shortened(text[0].co_filename, cut)}({text[1]}): {text[0].co_name}"
            names.append(name)
            modules.append(module)
        return tuple(names), np.array(modules, np.int64)


def _matched(rows: np.ndarray, not_returned: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Number, start, end and caller (a row, or -1) of each call of one thread, in the order in which they began.

    Calls and returns alternate at each depth, so that a call and its return are neighbours once rows are sorted by depth. Returns
    without a call, which began before the thread was traced, are left out. not_returned: the end of a call without a return.
    """
    enters = rows[:, 0] != RETURN
    depth = np.cumsum(np.where(enters, 1, -1))
    lowest = np.minimum.accumulate(np.minimum(depth, 0))
    stray = ~enters & (lowest < np.concatenate(([0], lowest[:-1])))
    rows, enters, level = rows[~stray], enters[~stray], (depth - lowest)[~stray]
    level = np.where(enters, level, level + 1)
    order = np.lexsort((np.arange(len(rows)), level))
    sorted_enters = enters[order]
    first = np.flatnonzero(sorted_enters)
    closed = np.zeros(len(first), bool)
    inside = first + 1 < len(order)
    closed[inside] = ~sorted_enters[first[inside] + 1]
    end = np.full(len(first), not_returned, np.int64)
    end[closed] = rows[order[first[closed] + 1], 1]
    began = order[first]
    by_start = np.argsort(began, kind="stable")
    began, end = began[by_start], end[by_start]
    return rows[began, 0], rows[began, 1], end, parents(level[began] - 1)


def _shown(number: np.ndarray, parent: np.ndarray, kinds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which calls are shown, and for each the nearest shown caller, as a row among the shown calls."""
    kind = kinds[number]
    caller = nearest(parent, kind != _LIBRARY)
    keep = (kind == _SHOWN) | ((kind == _LIBRARY) & ((caller < 0) | (kind[caller] != _HIDDEN)))
    above = np.where(parent >= 0, nearest(parent, keep)[parent], -1)
    shown_row = np.cumsum(keep) - 1
    return keep, np.where(above >= 0, shown_row[above], -1)


class GarbageCollections:
    """Records the runs of Python's garbage collector from `begin` to `finish`."""

    NAME = "Python GC"

    def __init__(self) -> None:
        self.rows: list[int] = []  # start, end, thread
        self.started = 0

    def begin(self) -> None:
        """Record each run from now on."""
        hooks.add_collector_callback(self.on_run)

    def finish(self) -> None:
        """Record no further runs."""
        hooks.remove_collector_callback(self.on_run)

    def on_run(self, phase: str, information: dict[str, int]) -> None:
        """Called by the collector at the start and the end of a run."""
        if phase == "start":
            self.started = clock()
        elif self.started:
            self.rows.extend((self.started, clock(), get_ident()))
            self.started = 0

    def merged_with(self, frames: Frames) -> Frames:
        """The calls, and the collections inside them."""
        if not self.rows:
            return frames
        start, end, thread = np.array(self.rows, np.int64).reshape(-1, 3).T
        count = len(start)
        line = np.zeros(len(frames), np.int64) if frames.line is None else frames.line
        columns = [
            np.concatenate([frames.name, np.full(count, len(frames.names), np.int32)]),
            np.concatenate([frames.start_ns, start]),
            np.concatenate([frames.end_ns, end]),
            np.concatenate([frames.thread, thread]),
            np.concatenate([frames.module, np.full(count, -1, np.int64)]),
            np.concatenate([line, np.zeros(count, np.int64)]),
        ]
        # of rows that start at the same time the longest is the outermost; calls of equal times keep their order
        order = np.lexsort((np.arange(len(columns[0])), -columns[2], columns[1], columns[3]))
        name, start, end, thread, module, line = (column[order] for column in columns)
        parent = np.full(len(order), -1, np.int64)
        for first, last in thread_slices(thread):
            parent_in_slice = parents(depths(start[first:last], end[first:last]))
            parent[first:last] = np.where(parent_in_slice < 0, -1, parent_in_slice + first)
        return Frames((*frames.names, self.NAME), name, start, end, thread, parent, module, line)
