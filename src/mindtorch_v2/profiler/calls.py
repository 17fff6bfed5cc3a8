"""Every Python and C call of the traced threads: the interpreter's profile hook in, Frames out.

`stacks` numbers only the calls in which something was recorded, and costs next to nothing; this sees each call's begin and end, and
costs about half a microsecond a call (what torch's C++ tracer pays is half of that). It is therefore asked for by name. One flat
list a thread: a number and a time, entering; 0 and a time, leaving. Matching and naming happen after the stop.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import numpy as np

from .stacks import Stacks, prefixes, shortened
from .trace import Frames
from .tree import depths, parents, thread_slices

clock = time.perf_counter_ns
get_ident = threading.get_ident

# where functions lie that the library's machinery may call for its own purposes
_LIBRARIES = (
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep,
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
_MODULE = -1  # a module's call: which one is seen from its frame
_HIDDEN = 0


class Calls:
    """All calls, from `begin` to `finish`."""

    def __init__(self, stacks: Stacks, *, all_threads: bool) -> None:
        self.stacks = stacks  # knows what is hidden, and numbers modules
        self.all_threads = all_threads
        self.events: dict[int, list[int]] = {}  # by thread
        self.codes: dict[CodeType, int] = {}  # number of a function; 0: hidden, -1: a module's call
        self.functions: dict[tuple[str, Any], int] = {}  # number of a C function
        self.modules: dict[tuple[str, int], int] = {}
        self.texts: list[Any] = [None]  # by number: a code object, a module's name or a C function's
        self.inner: set[int] = set()  # numbers of functions of this library, Python's own and NumPy's
        self.running = False

    def begin(self, frame: FrameType | None, at_ns: int) -> None:
        """See calls from now on; those under way have begun now. A profile function that somebody else set is left in peace."""
        if sys.getprofile() is not None:
            warnings.warn(
                "Python calls are not traced: another profile function is set in this thread (sys.setprofile)",
                stacklevel=2,
            )
            return
        self.running = True
        self._enter_stack(frame, get_ident(), at_ns)
        if self.all_threads:
            threading.setprofile(self._first_of_thread)
        sys.setprofile(self._hook(get_ident()))

    def finish(self) -> None:
        """See no more. Other threads notice at their next call."""
        if not self.running:
            return
        self.running = False
        sys.setprofile(None)
        if self.all_threads:
            threading.setprofile(None)  # type: ignore[arg-type]

    def join(self, frame: FrameType | None) -> None:
        """See the calls of this thread too, which ran before `begin`."""
        if self.running and get_ident() not in self.events and sys.getprofile() is None:
            self._enter_stack(frame, get_ident(), clock())
            sys.setprofile(self._hook(get_ident()))

    # ------------------------------------------------------------------------------------------------ while it runs

    def _first_of_thread(self, frame: FrameType, event: str, argument: Any) -> None:
        hook = self._hook(get_ident())
        sys.setprofile(hook)
        hook(frame, event, argument)

    def _hook(self, thread: int) -> Callable[[FrameType, str, Any], None]:
        """The function that the interpreter calls at each call and return of this thread."""
        add = self.events.setdefault(thread, []).extend
        known, learn, c_function, module_call = (
            self.codes.get,
            self._learn,
            self._c_function,
            self._module_call,
        )
        now, calls, inner = clock, self, self.inner
        below = 0  # how many calls of this library's own machinery are under way: only what it calls back is shown there

        def see(frame: FrameType, event: str, argument: Any) -> None:
            nonlocal below
            code = frame.f_code
            number = known(code)
            if number is None:
                number = learn(code)
            if number == _HIDDEN:
                if event == "call":
                    below += 1
                elif event == "return" and below:
                    below -= 1
                return
            if below and (number in inner or event.startswith("c_")):
                return
            if event == "call":
                add((number if number > 0 else module_call(frame), now()))
            elif event == "c_call":
                add((c_function(argument), now()))
            else:
                add((LEFT, now()))
            if not calls.running:
                sys.setprofile(None)

        return see

    def _enter_stack(self, frame: FrameType | None, thread: int, at_ns: int) -> None:
        stack = []
        while frame is not None:
            stack.append(frame)
            frame = frame.f_back
        add = self.events.setdefault(thread, []).extend
        for caller in reversed(stack):
            number = self._learn(caller.f_code)
            if number != _HIDDEN:
                add((number if number > 0 else self._module_call(caller), at_ns))

    def _learn(self, code: CodeType) -> int:
        number = self.codes.get(code)
        if number is None:
            kind = self.stacks._kind(code)
            number = _MODULE if kind == 2 else self._number(code) if kind else _HIDDEN
            if number > 0 and code.co_filename.startswith(_LIBRARIES):
                self.inner.add(number)
            self.codes[code] = number
        return number

    def _number(self, text: Any) -> int:
        self.texts.append(text)
        return len(self.texts) - 1

    def _module_call(self, frame: FrameType) -> int:
        name, count = self.stacks._module(frame.f_locals["self"])
        number = self.modules.get((name, count))
        if number is None:
            number = self.modules[name, count] = self._number((name, count))
        return number

    def _c_function(self, function: Any) -> int:
        owner = getattr(function, "__self__", None)
        kind = owner if owner is None or owner.__class__.__name__ == "module" else owner.__class__
        key = (function.__name__, kind)
        number = self.functions.get(key)
        if number is None:
            # without the address that repr shows: calls of one method are one row
            of = f" of {kind.__name__} object" if isinstance(kind, type) else ""
            text = f"<built-in {'method' if of else 'function'} {function.__name__}{of}>"
            number = self.functions[key] = self._number(text)
        return number

    # ------------------------------------------------------------------------------------------------ after the stop

    def frames(self, ended_ns: int) -> Frames:
        """The calls as columns; those still under way end with the recording."""
        cut = prefixes()
        names, module = [], []
        for text in self.texts[1:]:
            if isinstance(text, CodeType):
                names.append(f"{shortened(text.co_filename, cut)}({text.co_firstlineno}): {text.co_name}")
                module.append(-1)
            elif isinstance(text, tuple):
                names.append(f"nn.Module: {text[0]}_{text[1]}")
                module.append(text[1])
            else:
                names.append(text)
                module.append(-1)
        parts = [_matched(np.array(rows, np.int64).reshape(-1, 2), ended_ns) for rows in self.events.values()]
        threads = [np.full(len(p[0]), thread, np.int64) for thread, p in zip(self.events, parts)]
        order = np.argsort(np.array(list(self.events), np.int64), kind="stable").tolist()
        if not sum(len(p[0]) for p in parts):
            return Frames.none()
        bases = np.cumsum([0] + [len(parts[i][0]) for i in order]).tolist()
        number, start, end, parent = (np.concatenate([parts[i][c] for i in order]) for c in range(4))
        for base, place in zip(bases, order):
            size = len(parts[place][0])
            parent[base : base + size] += np.where(parent[base : base + size] >= 0, base, 0)
        return Frames(
            tuple(names),
            (number - 1).astype(np.int32),
            start,
            end,
            np.concatenate([threads[i] for i in order]),
            parent,
            np.array(module, np.int64)[number - 1],
        )


def _matched(rows: np.ndarray, ended_ns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Number, start, end and caller (a row, or -1) of each call of one thread, in the order in which they began.

    Each level of depth is entered and left by turns, so entering and leaving of one call are neighbours once rows are sorted by
    level. Leaving what was never entered (it began before its thread was seen) is left out.
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
    end = np.full(len(first), ended_ns, np.int64)
    end[closed] = rows[order[first[closed] + 1], 1]
    began = order[first]
    place = np.argsort(began, kind="stable")
    began, end = began[place], end[place]
    return rows[began, 0], rows[began, 1], end, parents(level[began] - 1)


class Collections:
    """The runs of Python's garbage collector, from `begin` to `finish`."""

    NAME = "Python GC"

    def __init__(self) -> None:
        self.rows: list[int] = []  # start, end, thread
        self.started = 0

    def begin(self) -> None:
        """Hear of each run from now on."""
        gc.callbacks.append(self.hear)

    def finish(self) -> None:
        """Hear no more."""
        if self.hear in gc.callbacks:
            gc.callbacks.remove(self.hear)

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
        columns = [
            np.concatenate([frames.name, np.full(count, len(frames.names), np.int32)]),
            np.concatenate([frames.start_ns, start]),
            np.concatenate([frames.end_ns, end]),
            np.concatenate([frames.thread, thread]),
            np.concatenate([frames.module, np.full(count, -1, np.int64)]),
        ]
        # of what begins together the longest is the outermost; calls keep the order in which they have it already
        order = np.lexsort((np.arange(len(columns[0])), -columns[2], columns[1], columns[3]))
        name, begun, ended, of, module = (column[order] for column in columns)
        parent = np.full(len(order), -1, np.int64)
        for first, last in thread_slices(of):
            found = parents(depths(begun[first:last], ended[first:last]))
            parent[first:last] = np.where(found < 0, -1, found + first)
        return Frames((*frames.names, self.NAME), name, begun, ended, of, parent, module)
