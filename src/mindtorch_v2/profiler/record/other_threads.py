"""Sets a profile function on the threads that already run: `sys.setprofile` sets one on the calling thread only.

Python 3.12 has a function for this. In older versions, the state of each thread is swapped in for one call of `sys.setprofile`, all of it
inside one call into C, during which no other thread can run.
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
    """Set a profile function on all other threads, or remove it. Profile functions of other packages are left as they are."""
    if len(sys._current_frames()) < 2:
        return
    if sys.version_info >= (3, 12):  # pragma: no cover
        of_this_thread = sys.getprofile()
        of_new_threads = threading.getprofile()
        threading.setprofile_all_threads(hook)  # type: ignore[arg-type]
        threading.setprofile(of_new_threads)  # type: ignore[arg-type]
        sys.setprofile(of_this_thread)
        return
    if sys.implementation.name != "cpython":  # pragma: no cover
        return
    gc_was_enabled = gc.isenabled()
    gc.disable()  # no finalizer may run with another thread's state
    try:
        for call_on_thread in _other_threads():
            current = call_on_thread(sys.getprofile)
            if current is None or getattr(current, "__module__", "").startswith(__package__):
                call_on_thread(partial(sys.setprofile, hook))
    finally:
        if gc_was_enabled:
            gc.enable()


def _other_threads() -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """For each other thread, a function that calls another function with that thread's state."""
    interpreter, current_state, first_state, next_state, swap = _c_functions()
    own_state = current_state()
    state = first_state(interpreter())
    while state:
        if state != own_state:

            def call_on_thread(function: Callable[[], Any], state: int = state) -> Any:
                # one call into C for all three: between calls the interpreter may switch to another thread
                return list(map(_CALL, (partial(swap, state), function, partial(swap, own_state))))[1]

            yield call_on_thread
        state = next_state(state)


_CALL = methodcaller("__call__")


@cache
def _c_functions() -> tuple[Callable[..., Any], ...]:
    import ctypes

    api, pointer = ctypes.pythonapi, ctypes.c_void_p
    functions = []
    for name, arguments in (
        ("PyInterpreterState_Get", ()),
        ("PyThreadState_Get", ()),
        ("PyInterpreterState_ThreadHead", (pointer,)),
        ("PyThreadState_Next", (pointer,)),
        ("PyThreadState_Swap", (pointer,)),
    ):
        function = api[name]  # a new object: other packages may have set other types on `api.<name>`
        function.restype, function.argtypes = pointer, arguments
        functions.append(function)
    return tuple(functions)
