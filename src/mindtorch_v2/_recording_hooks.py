"""Process-wide hooks: everything that a recording switches on is switched on here, and switched off again.

Hot paths read the slots themselves: `recorder`, `ranges` and `calls` of `_dispatch`, `on_allocate` and `register` of `_storage`. That
costs one load and a test for None. Only this module assigns them; a test looks for assignments elsewhere. The compiled operators and annotations
have copies of the first two. The interpreter's profile function and NumPy's allocator are set by the core of a recording, on request of this module.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from . import _dispatch, _storage, _tensor_slots

if TYPE_CHECKING:
    from .profiler.record.recorder import Recorder

CollectorCallback = Callable[[str, dict[str, int]], None]


class Observer(Protocol):
    """Sees ops and ranges, and passes them on to whoever else does."""

    def wrap(self, recorder: Any, ranges: Any) -> tuple[Any, Any]:
        """What to put into `_dispatch.recorder` and `_dispatch.ranges` instead of these two, which may be None."""


_recordings: list[Recorder] = []  # under way; the last one sees ops, the others wait for it to end
_profiler: tuple[Any, Any] = (None, None)  # recorder and ranges of the recording that sees ops
_observers: list[Observer] = []
_muted = False
_routed = 0  # how many need every op to pass through `op.run`, recorded or not
_memory_cores: list[Any] = []  # the cores that record memory


# ---------------------------------------------------------------------------------------------------- recordings


def active_recording() -> Recorder | None:
    """The recording that sees ops now, or would if it were not paused."""
    return _recordings[-1] if _recordings else None


def begin_recording(recording: Recorder) -> None:
    """Make this the active recording; the one that was waits until it ends."""
    end_recording(recording)
    _recordings.append(recording)


def end_recording(recording: Recorder) -> None:
    """Take a recording off those under way, whether it is active or waits."""
    if recording in _recordings:
        _recordings.remove(recording)


# ---------------------------------------------------------------------------------------------------- who sees ops


def set_profiler(recorder: Any, ranges: Any) -> None:
    """Let the active recording see ops and ranges. The arguments are explained at the slots of the same names in `_dispatch`."""
    global _profiler
    _profiler = (recorder, ranges)
    _fill_dispatcher()


def remove_profiler() -> None:
    """Let no recording see ops or ranges."""
    global _profiler
    _profiler = (None, None)
    _fill_dispatcher()


def add_observer(observer: Observer) -> None:
    """Let an observer see ops and ranges, around the profiler and the observers before it."""
    if observer not in _observers:
        _observers.append(observer)
        _fill_dispatcher()


def remove_observer(observer: Observer) -> None:
    """Let an observer see no more."""
    if observer in _observers:
        _observers.remove(observer)
        _fill_dispatcher()


@contextmanager
def observed_by(observer: Observer) -> Iterator[None]:
    """Let an observer see what happens inside."""
    add_observer(observer)
    try:
        yield
    finally:
        remove_observer(observer)


def pass_on(recorder: Any, op: Any, arguments: tuple[Any, ...]) -> Any:
    """Run an op that an observer has seen. recorder: what `Observer.wrap` got."""
    return recorder[op.uid](*arguments) if recorder else op.run(*arguments)


def set_muted(muted: bool) -> None:
    """Hide ops and ranges from the profiler and all observers, or show them again."""
    global _muted
    _muted = muted
    _fill_dispatcher()


def route_through_run(change: int) -> None:
    """One more (1) or one fewer (-1) needs every op to pass through `op.run`, where `__torch_dispatch__` is asked."""
    global _routed
    _routed += change
    _fill_dispatcher()


def _fill_dispatcher() -> None:
    recorder, ranges = (None, None) if _muted else _profiler
    observers = [] if _muted else _observers
    for observer in observers:
        recorder, ranges = observer.wrap(recorder, ranges)
    if observers and recorder:
        recorder = _dispatch.Hook(_untraced(recorder))
    if _routed and not recorder:
        recorder = _dispatch.Hook(_run)
    _dispatch.recorder, _dispatch.ranges = recorder, ranges
    _tensor_slots.set_hooks(recorder, ranges)


def _untraced(recorder: Any) -> Callable[..., Any]:
    """The outermost function around an op that observers see: the calls that observers make are not traced."""

    def see(op: Any, *arguments: Any) -> Any:
        return _dispatch.call_untraced(recorder[op.uid], *arguments)

    return see


def _run(op: Any, *arguments: Any) -> Any:
    return op.run(*arguments)


# ---------------------------------------------------------------------------------------------------- Python calls, garbage collection


def begin_calls(core: Any, of_new_threads: bool = False) -> None:
    """Let the core of a recording trace Python calls. of_new_threads: also of threads that start from now on."""
    _dispatch.calls = core
    if of_new_threads:
        threading.setprofile(core.first_event)
    core.begin_calls()


def end_calls(core: Any) -> None:
    """Let the core trace no more."""
    if _dispatch.calls is core:
        core.end_calls()
        _dispatch.calls = None
        if _is_own(threading.getprofile()):
            threading.setprofile(None)  # type: ignore[arg-type]


def add_collector_callback(callback: CollectorCallback) -> None:
    """Call this at the start and the end of each run of Python's garbage collector."""
    if callback not in gc.callbacks:
        gc.callbacks.append(callback)


def remove_collector_callback(callback: CollectorCallback) -> None:
    """Call this no more."""
    if callback in gc.callbacks:
        gc.callbacks.remove(callback)


# ---------------------------------------------------------------------------------------------------- memory and tensors


def begin_memory(core: Any) -> None:
    """Let the core of a recording see memory that is freed or resized."""
    core.listen_to_memory(True)
    _memory_cores.append(core)
    _storage.on_allocate = core.record_allocation


def end_memory(core: Any) -> None:
    """Let the core see memory no more."""
    if core in _memory_cores:
        core.listen_to_memory(False)
        _memory_cores.remove(core)
    _storage.on_allocate = _memory_cores[-1].record_allocation if _memory_cores else None


def set_tensor_register(register: Any) -> Any:
    """Let this number tensors and memory, unless another does; whichever does."""
    if _storage.register is None:
        _storage.register = register
    return _storage.register


def remove_tensor_register(register: Any) -> None:
    """Let this number tensors no more."""
    if _storage.register is register:
        _storage.register = None


# ---------------------------------------------------------------------------------------------------- all of them


def active_hooks() -> dict[str, Any]:
    """Everything that is on now, by name; empty when nothing records, observes, mutes or routes."""
    state = {
        "recordings": _recordings.copy() or None,
        "observers": _observers.copy() or None,
        "muted": _muted or None,
        "routed": _routed or None,
        "recorder": _dispatch.recorder,
        "ranges": _dispatch.ranges,
        "calls": _dispatch.calls,
        "profile_function": _own(sys.getprofile()),
        "profile_function_of_new_threads": _own(threading.getprofile()),
        "collector_callbacks": [callback for callback in gc.callbacks if _is_own(callback)] or None,
        "on_allocate": _storage.on_allocate,
        "register": _storage.register,
    }
    return {name: hook for name, hook in state.items() if hook is not None}


def remove_all() -> None:
    """Switch off all recordings and observers, as in a new child process. Muting is the user's own setting, and routing lasts as long
    as the tensors that need it: both stay."""
    if _dispatch.calls is not None:
        end_calls(_dispatch.calls)
    for core in _memory_cores.copy():
        end_memory(core)
    for recording in _recordings:
        recording.running = False
    for callback in [callback for callback in gc.callbacks if _is_own(callback)]:
        gc.callbacks.remove(callback)
    _recordings.clear()
    _observers.clear()
    _storage.register = None
    remove_profiler()


def _is_own(hook: Any) -> bool:
    """Whether a function or an object is this package's."""
    owner = getattr(hook, "__self__", hook)  # of a method: also of those in C, which name no module
    return (getattr(owner, "__module__", None) or "").startswith(__package__ + ".")


def _own(hook: Any) -> Any:
    return hook if _is_own(hook) else None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=remove_all)
