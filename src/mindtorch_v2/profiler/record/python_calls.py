"""Every Python and C call of the traced threads: the interpreter's profile hook in, Frames out.

One flat list a thread: a number and a time, entering; 0 and a time, leaving. Hidden functions are noted like any other; what is shown,
and by which name, is worked out on columns after the stop. Where an op begins, the hook takes itself off, and the op's probe puts it
back (`doors`): what happens inside an op costs nothing more than without it. A call costs about half a microsecond, twice what torch's
C++ tracer pays; `stacks` is the cheaper way, which sees only the calls that ops and annotations are met in.
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

from mindtorch_prof.trace import Frames
from mindtorch_prof.tree import depths, nearest, parents, thread_slices

from ... import _dispatch
from ... import _hooks as hooks
from .other_threads import set_profile
from .python_stacks import (
    PACKAGE,
    WIDTH,
    EventSpans,
    Rows,
    Stacks,
    frames_of,
    module_text,
    prefixes,
    shortened,
)

clock = time.perf_counter_ns
get_ident = threading.get_ident

# where functions lie that the library's machinery may call for its own purposes
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

LEFT = 0  # in the place of a call's number
HIDDEN = 1  # the number of all functions that are never shown
_BORDER = 2  # where the machinery calls what is the user's
_MODULE = -1  # a module's call: which one is seen from its frame
_ENTRY, _PROBE = -2, -3  # of an op: what people call, and what sees it
_DOORS = {"entry": _ENTRY, "operator": _ENTRY, "probe": _PROBE}  # by the name of the function
_FRAMES = {_ENTRY: 2, _PROBE: 1}  # how many calls of an op's own are under way when its probe ends
# so many calls that will be left: they were entered while the hook was off
BEHIND = tuple((HIDDEN, 0) * count for count in range(6))

_OFF = (LEFT, 0)  # taking the hook off is a call into C, of which the hook does not see the end

_OPEN = -1  # in the place of the end of a call that is still under way

# kinds of numbers
_SHOWN, _UNSEEN, _INNER, _PASSED = range(
    4
)  # always; never; unless what called it is hidden; never, but what it calls is


class _Thread:
    """The calls of one thread."""

    __slots__ = ("log", "places", "door", "hook", "begin", "end")

    def __init__(self) -> None:
        self.log: list[int] = []
        self.places: list[
            int
        ] = []  # of each call with a number of its own: where in its caller's code it was made; -1: not known
        # not 0: an op has begun, and its probe has to put the hook back; so many calls, the probe's among them, will then be left
        self.door = [0]
        self.hook: Callable[[FrameType, str, Any], None] | None = None  # None: its calls are not seen
        # make `hook` see calls; probes keep it, so that it is one function for all windows of a recording
        self.begin: Callable[[], None] | None = None
        self.end: Callable[[], None]  # let the hook take itself off, wherever it runs

    def close(self, now: int) -> None:
        """All calls that are under way end."""
        numbers = self.log[0::2]
        self.log.extend((LEFT, now) * max(len(numbers) - 2 * numbers.count(LEFT), 0))


class Handed(NamedTuple):
    """When and with which calls under way (numbers of `stacks`, outermost first) a thread's calls were left to `stacks`."""

    thread: int
    at_ns: int
    calls: tuple[int, ...]


class Calls:
    """All calls, from `begin` to `finish`, which may be repeated."""

    def __init__(self, stacks: Stacks, *, all_threads: bool, limit: int = 0) -> None:
        self.stacks = stacks  # knows what is hidden, and numbers modules
        self.all_threads = all_threads  # those that start later too
        # after so many ops the calls of the thread that begins are left to `stacks`; 0: never
        self.limit = limit
        self.owner = get_ident()
        self.handed: Handed | None = None
        self.on_handing: Callable[[], None] = lambda: None
        self.threads: dict[int, _Thread] = {}
        self.numbers: dict[int, int] = {}  # of functions, by the identity of their code
        self.codes: list[CodeType] = []  # keeps those alive
        self.module_code: CodeType | None = None  # of what calls modules
        self.started: dict[tuple[CodeType, int], int] = {}  # of functions that were under way at the begin
        self.functions: dict[Any, int] = {sys.setprofile: HIDDEN}  # of C functions
        self.modules: dict[tuple[str, int], int] = {}
        # by number: (code, line), (class, module's number) or a C function's name; and its kind
        self.texts: list[Any] = [None, None, None]
        self.kinds: list[int] = [_UNSEEN, _UNSEEN, _PASSED]
        self.running = False
        self.began_ns = 0
        self.waiting: set[int] = set()  # threads that have neither called nor left anything yet

    def begin(self, at_ns: int) -> None:
        """See the calls of this and all other threads from now on; those under way have begun now."""
        self.running = True
        self.began_ns = at_ns
        self.waiting = set(sys._current_frames()) - {get_ident()}
        set_profile(self._first_of_thread)
        hooks.install_call_tracer(self, self._first_of_thread if self.all_threads else None)
        if self.handed is None:
            self._enter_stack(sys._getframe(), get_ident(), at_ns)
            sys.setprofile(self._hook(get_ident()))

    def finish(self) -> None:
        """See no more. All calls that are under way end."""
        if not self.running:
            return
        sys.setprofile(None)
        self.running = False
        hooks.remove_call_tracer()
        set_profile(None)
        frames = sys._current_frames()
        frames.pop(get_ident(), None)  # a frame that knows itself would keep all callers' variables alive
        for thread in self.waiting & set(frames):  # all the time in one call
            self._enter_stack(frames[thread], thread, self.began_ns)
        now = clock()
        for thread, each in list(self.threads.items()):
            each.door[0] = 0
            if each.hook is not None:
                each.end()
                each.hook = None
            if self.handed is None or thread != self.handed.thread:
                each.close(now)

    # ------------------------------------------------------------------------------------------------ while it runs

    def _thread(self, thread: int) -> _Thread:
        found = self.threads.get(thread)
        if found is None:
            found = self.threads[thread] = _Thread()
        return found

    def _hook(self, thread: int) -> Callable[[FrameType, str, Any], None]:
        """The function that the interpreter calls at each call and return of this thread."""
        found = self._thread(thread)
        if found.hook is None and found.begin is not None:
            found.begin()
        if found.hook is not None:
            return found.hook
        place = found.places.append
        add, door, now, dispatch, off = found.log.extend, found.door, clock, _dispatch, sys.setprofile
        known, learn, module_call = self.numbers.get, self._learn, self._module_call
        c_known, c_function, frames = self.functions.get, self._c_function, _FRAMES
        limit = self.limit if thread == self.owner else 0
        left, over = limit, False

        def see(frame: FrameType, event: str, argument: Any) -> None:
            nonlocal left
            if over:
                off(None)
            elif event == "return":
                add((LEFT, now()))
            elif event == "call":
                number = known(id(frame.f_code))
                if number is None:
                    number = learn(frame.f_code)
                if number > _BORDER or number == _MODULE:
                    try:
                        place(frame.f_back.f_lasti)  # type: ignore[union-attr]
                    except AttributeError:
                        place(-1)
                    add((number if number > 0 else module_call(frame), now()))
                elif number > 0:
                    add((number, now()))
                elif dispatch.recorder is None:
                    add((HIDDEN, 0))
                elif left != 1:
                    left -= 1
                    door[0] = frames[number]
                    off(None)
                else:
                    end()
                    off(None)
                    self._hand_over(frame)
            elif event == "c_call":
                number = c_known(argument) or c_function(argument)
                if number > _BORDER:
                    place(frame.f_lasti)
                add((number, now()))
            else:
                add((LEFT, now()))

        def begin() -> None:
            nonlocal left, over
            left, over = limit, False
            found.hook = see

        def end() -> None:
            nonlocal over
            over = True

        found.hook, found.begin, found.end = see, begin, end
        return see

    def _hand_over(self, frame: FrameType) -> None:
        """Leave the calls of this thread to `stacks` from now on: those under way are known to both."""
        thread = get_ident()
        call = self.stacks.find(frame, thread)
        under_way: list[int] = []
        while call >= 0:
            under_way.append(int(call))
            call = self.stacks.calls[call * WIDTH]
        self.handed = Handed(thread, clock(), tuple(reversed(under_way)))
        self.threads[thread].hook = None
        self.on_handing()

    def _first_of_thread(self, frame: FrameType, event: str, argument: Any) -> None:
        """The hook of a thread that is not known yet."""
        if not self.running:
            sys.setprofile(None)
            return
        thread = get_ident()
        see = self._hook(thread)
        if thread in self.waiting:
            self.waiting.discard(thread)
            self._enter_stack(frame.f_back if event == "call" else frame, thread, self.began_ns)
        sys.setprofile(see)
        see(frame, event, argument)

    def behind_door(self, run: Callable[..., Any], *arguments: Any) -> Any:
        """Call what sees an op, in a thread whose hook the op may have taken off."""
        found = self.threads.get(get_ident())
        if found is None or not found.door[0]:
            return run(*arguments)
        behind = BEHIND[found.door[0] + 1]
        found.door[0] = 0
        try:
            return run(*arguments)
        finally:
            if self.running:
                found.log.extend(behind)
                sys.setprofile(found.hook)

    def deeper(self) -> None:
        """Between an op and what sees it is one more call than usual."""
        found = self.threads.get(get_ident())
        if found is not None and found.door[0]:
            found.door[0] += 1

    def reopen(self) -> None:
        """A function called by an op that nobody has seen yet, and perhaps never will: put the hook back already."""
        found = self.threads.get(get_ident())
        if found is not None and found.door[0]:
            found.log.extend(BEHIND[found.door[0] + 1])
            found.door[0] = 0
            sys.setprofile(found.hook)

    def sees(self) -> bool:
        """Whether the calls of this thread are seen now."""
        found = self.threads.get(get_ident())
        return found is not None and found.hook is not None and sys.getprofile() is found.hook

    def unseen(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a part of the machinery: the calls that it makes are not shown, but for those made through `seen`."""
        if not self.sees():
            return function(*arguments)
        found = self.threads[get_ident()]
        sys.setprofile(None)
        found.log.extend(_OFF)
        try:
            return function(*arguments)
        finally:
            sys.setprofile(found.hook)

    def seen(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call what the user gave to the machinery."""
        found = self.threads.get(get_ident())
        if found is None or found.hook is None or sys.getprofile() is not None:
            return function(*arguments)
        found.log.extend((_BORDER, 0))
        sys.setprofile(found.hook)
        try:
            return function(*arguments)
        finally:
            sys.setprofile(None)
            found.log.extend(_OFF * 2)

    def _enter_stack(self, frame: FrameType | None, thread: int, at_ns: int) -> None:
        stack = []
        while frame is not None:
            stack.append(frame)
            frame = frame.f_back
        add, place = self._thread(thread).log.extend, self._thread(thread).places.append
        for caller in reversed(stack):
            number = self._learn(caller.f_code)
            if number == _MODULE:
                number = self._module_call(caller)
            elif number > _BORDER:
                key = (caller.f_code, caller.f_lineno or caller.f_code.co_firstlineno)
                if key not in self.started:
                    self.started[key] = self._number(key, self.kinds[number])
                number = self.started[key]
            if number > _BORDER:
                place(-1 if caller.f_back is None else caller.f_back.f_lasti)
            add((max(number, HIDDEN), at_ns))

    def _learn(self, code: CodeType) -> int:
        number = self.numbers.get(id(code))
        if number is None:
            path = code.co_filename
            kind = self.stacks._kind(code)
            if kind == 2:
                number, self.module_code = _MODULE, code
            elif path.startswith("<op "):
                # what asks overrides first has the name of what it stands before
                number = _BORDER if path == "<op guard>" else _DOORS.get(code.co_name, HIDDEN)
            elif not kind:
                # who asks overrides calls what was asked for
                number = _BORDER if path.endswith(("_overrides.py", "_torch_dispatch.py")) else HIDDEN
            else:
                inner = path.startswith(_LIBRARIES)
                number = self._number((code, code.co_firstlineno), _INNER if inner else _SHOWN)
            self.codes.append(code)
            self.numbers[id(code)] = number
        return number

    def _number(self, text: Any, kind: int) -> int:
        self.texts.append(text)
        self.kinds.append(kind)
        return len(self.texts) - 1

    def _module_call(self, frame: FrameType) -> int:
        key = self.stacks._module(frame.f_locals["self"])
        number = self.modules.get(key)
        if number is None:
            number = self.modules[key] = self._number(key, _SHOWN)
        return number

    def _c_function(self, function: Any) -> int:
        owner = getattr(function, "__self__", None)
        kept = owner is None or owner.__class__ is ModuleType
        # a method's key must not keep its object alive; calls of one method are one row, without the address that repr shows
        key = function if kept else (function.__name__, owner.__class__)
        number = self.functions.get(key)
        if number is None:
            text = f"<built-in function {function.__name__}>"
            if not kept:
                text = f"<built-in method {function.__name__} of {owner.__class__.__name__} object>"
            number = self.functions[key] = self._number(text, _INNER)
        return number

    def tools(self, thread: int) -> dict[str, Any]:
        """What the probes of ops called on this thread close over."""
        hook = self._hook(thread)
        found = self.threads[thread]
        return {
            "door": found.door,
            "arm": sys.setprofile,
            "hook": hook,
            "log": found.log.extend,
            "behind": BEHIND,
            "stranger": self.behind_door,
        }

    # ------------------------------------------------------------------------------------------------ after the stop

    def frames(self, events: EventSpans, marked: Rows) -> Frames:
        """The calls as columns. marked: those that `stacks` knows, from which those are taken that were left to it."""
        names, modules = self._names()
        parts, base = [], 0
        for thread in sorted(self.threads):
            part = self._thread_rows(thread, marked, modules)
            parts.append(part._replace(parent=np.where(part.parent >= 0, part.parent + base, -1)))
            base += len(part.start)
        if not base:
            return Frames.none()
        rows = Rows(*(np.concatenate(column) for column in zip(*parts)))
        return frames_of((*names, *self.stacks.texts()), rows, events)

    def _thread_rows(self, thread: int, marked: Rows, modules: np.ndarray) -> Rows:
        """The calls of one thread; names: first those of `texts`, then those of `stacks`. modules: by name."""
        log = np.array(self.threads[thread].log, np.int64).reshape(-1, 2)
        kinds = np.array(self.kinds, np.int8)
        handed = self.handed if self.handed is not None and self.handed.thread == thread else None
        number, start, end, parent = _matched(log, _OPEN)
        under_way = np.flatnonzero(end == _OPEN)
        in_python = np.array([what is not None and what.__class__ is not str for what in self.texts])
        known = under_way[in_python[number[under_way]]]
        numbers = [] if handed is None else list(handed.calls)
        if len(known) != len(numbers):
            known, numbers = known[:0], []
        end[known] = marked.end[numbers]  # the same calls in the same order, known to both
        end[end == _OPEN] = start[end == _OPEN] if handed is None else handed.at_ns
        line = self._lines(thread, number, parent)
        keep, parent = _shown(number, parent, kinds)
        found = Rows(
            number, start, end, np.full(len(number), thread, np.int64), parent, modules[number], line
        )
        found = Rows(*(column[keep] for column in found))
        if handed is None:
            return found
        later = np.flatnonzero((marked.start >= handed.at_ns) & (marked.thread == thread))
        row_of = np.full(len(marked.start) + 1, -1, np.int64)  # by number of `stacks`; the last: none
        row_of[numbers] = np.where(keep[known], np.cumsum(keep)[known] - 1, -1)
        row_of[later] = len(found.start) + np.arange(len(later))
        more = Rows(*(column[later] for column in marked))
        more = more._replace(name=more.name + len(self.texts), parent=row_of[more.parent])
        return Rows(*(np.concatenate(pair) for pair in zip(found, more)))

    def _lines(self, thread: int, number: np.ndarray, parent: np.ndarray) -> np.ndarray:
        """The line of its caller on which each call was made; 0: not known."""
        line = np.zeros(len(number), np.int64)
        rows = np.flatnonzero(number > _BORDER)
        place = np.array(
            self.threads[thread].places[: len(rows)], np.int64
        )  # another thread may be about to add
        in_c = np.array([what.__class__ is str for what in self.texts])
        caller = np.where(parent >= 0, nearest(parent, ~in_c[number])[parent], -1)[rows]
        known = (caller >= 0) & (place >= 0)
        rows, place, caller = rows[known], place[known], number[caller[known]]
        for one in np.unique(caller).tolist():
            what = self.texts[one]
            code = None if what is None else self.module_code if what[0].__class__ is str else what[0]
            if code is not None:
                spans = [(begin, at) for begin, _, at in code.co_lines()]
                begins, lines = np.array([(begin, at or 0) for begin, at in spans], np.int64).T
                its = caller == one
                line[rows[its]] = lines[np.searchsorted(begins, place[its], side="right") - 1]
        return line

    def _names(self) -> tuple[tuple[str, ...], np.ndarray]:
        cut = prefixes()
        names, modules = [], []
        for what in self.texts:
            module = -1
            if what is None or what.__class__ is str:
                text = what or ""
            elif what[0].__class__ is str:
                text, module = module_text(*what), what[1]
            else:
                text = f"{shortened(what[0].co_filename, cut)}({what[1]}): {what[0].co_name}"
            names.append(text)
            modules.append(module)
        return tuple(names), np.array(modules, np.int64)


def _matched(rows: np.ndarray, still: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Number, start, end and caller (a row, or -1) of each call of one thread, in the order in which they began.

    Each level of depth is entered and left by turns, so entering and leaving of one call are neighbours once rows are sorted by
    level. Leaving what was never entered (it began before its thread was seen) is left out. still: the end of what was not left.
    """
    enters = rows[:, 0] != LEFT
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
    end = np.full(len(first), still, np.int64)
    end[closed] = rows[order[first[closed] + 1], 1]
    began = order[first]
    place = np.argsort(began, kind="stable")
    began, end = began[place], end[place]
    return rows[began, 0], rows[began, 1], end, parents(level[began] - 1)


def _shown(number: np.ndarray, parent: np.ndarray, kinds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which calls are shown, and for each the place among those of the nearest one above it."""
    kind = kinds[number]
    owner = nearest(parent, kind != _INNER)
    keep = (kind == _SHOWN) | ((kind == _INNER) & ((owner < 0) | (kind[owner] != _UNSEEN)))
    above = np.where(parent >= 0, nearest(parent, keep)[parent], -1)
    place = np.cumsum(keep) - 1
    return keep, np.where(above >= 0, place[above], -1)


class Collections:
    """The runs of Python's garbage collector, from `begin` to `finish`."""

    NAME = "Python GC"

    def __init__(self) -> None:
        self.rows: list[int] = []  # start, end, thread
        self.started = 0

    def begin(self) -> None:
        """Hear of each run from now on."""
        hooks.add_collector_callback(self.hear)

    def finish(self) -> None:
        """Hear no more."""
        hooks.remove_collector_callback(self.hear)

    def hear(self, phase: str, information: dict[str, int]) -> None:
        """Called by the collector."""
        if phase == "start":
            self.started = clock()
        elif self.started:
            self.rows.extend((self.started, clock(), get_ident()))
            self.started = 0

    def among(self, frames: Frames) -> Frames:
        """The same calls, and the collections inside them."""
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
        # of what begins together the longest is the outermost; calls keep the order in which they have it already
        order = np.lexsort((np.arange(len(columns[0])), -columns[2], columns[1], columns[3]))
        name, begun, ended, of, module, line = (column[order] for column in columns)
        parent = np.full(len(order), -1, np.int64)
        for first, last in thread_slices(of):
            found = parents(depths(begun[first:last], ended[first:last]))
            parent[first:last] = np.where(found < 0, -1, found + first)
        return Frames((*frames.names, self.NAME), name, begun, ended, of, parent, module, line)
