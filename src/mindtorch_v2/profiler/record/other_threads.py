"""A profile function for the threads that run already: `sys.setprofile` reaches only its own.

Python 3.12 has a function for it. Before, each thread's state is made the current one for the time of one call into C, in which no
other thread can run: nothing of the interpreter but `sys.setprofile` sees the exchange.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache, partial
from operator import methodcaller
from types import FrameType
from typing import Any

Hook = Callable[[FrameType, str, Any], Any]


def set_profile(hook: Hook | None) -> None:
    """Give all other threads a profile function, or take away what was given; one that somebody else set is left in peace."""
    if len(sys._current_frames()) < 2:
        return
    if sys.version_info >= (3, 12):  # pragma: no cover
        own = sys.getprofile()
        later = threading.getprofile()
        threading.setprofile_all_threads(hook)  # type: ignore[arg-type]
        threading.setprofile(later)  # type: ignore[arg-type]
        sys.setprofile(own)
        return
    if sys.implementation.name != "cpython":  # pragma: no cover
        return
    collecting = gc.isenabled()
    gc.disable()  # nobody's finalizer may run under another thread's state
    try:
        for before in _with_each_state(sys.getprofile):
            current = before[1]
            if current is None or getattr(current, "__module__", "").startswith(__package__):
                before[0](partial(sys.setprofile, hook))
    finally:
        if collecting:
            gc.enable()


def _with_each_state(ask: Callable[[], Any]) -> Iterator[tuple[Callable[[Callable[[], Any]], Any], Any]]:
    """For each other thread a function that calls another one under its state, and what `ask` gave."""
    interpreter, current, head, following, swap = _interface()
    own = current()
    state = head(interpreter())
    while state:
        if state != own:

            def under(function: Callable[[], Any], state: int = state) -> Any:
                # one call into C for all three: between calls the interpreter may hand over to another thread
                return list(map(_CALL, (partial(swap, state), function, partial(swap, own))))[1]

            yield under, under(ask)
        state = following(state)


_CALL = methodcaller("__call__")


@cache
def _interface() -> tuple[Callable[..., Any], ...]:
    import ctypes

    api, pointer = ctypes.pythonapi, ctypes.c_void_p
    found = []
    for name, arguments in (
        ("PyInterpreterState_Get", ()),
        ("PyThreadState_Get", ()),
        ("PyInterpreterState_ThreadHead", (pointer,)),
        ("PyThreadState_Next", (pointer,)),
        ("PyThreadState_Swap", (pointer,)),
    ):
        function = api[name]  # its own object: others may have set other types on the shared one
        function.restype, function.argtypes = pointer, arguments
        found.append(function)
    return tuple(found)
