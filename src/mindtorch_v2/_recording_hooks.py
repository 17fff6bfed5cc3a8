"""Process-wide hooks: everything that a recording switches on is switched on here, and switched off again.

Hot paths read the slots themselves: `recorder`, `ranges`, `probe` and `calls` of `_dispatch`, `on_free` and `register` of `_storage`. That
costs one load and a test for None. Only this module assigns them; a test looks for assignments elsewhere. The one hook that is also set
elsewhere is the interpreter's profile function: the tracer of Python calls takes it off and puts it back at every op. The recording code
that hot ops have inlined is no hook: it does nothing unless `recorder` is the list that it was made for.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

from . import _dispatch, _storage

if TYPE_CHECKING:
    from .profiler.record.recorder import Recorder

FreeListener = Callable[[tuple[int, int, int, int]], Any]
CollectorCallback = Callable[[str, dict[str, int]], None]
ProfileFunction = Callable[[FrameType, str, Any], Any]


class Observer(Protocol):
    """Sees ops and ranges, and passes them on to whoever else does."""

    def wrap(self, recorder: Any, ranges: Any) -> tuple[Any, Any]:
        """What to put into `_dispatch.recorder` and `_dispatch.ranges` instead of these two, which may be None."""


_recordings: list[Recorder] = []  # under way; the last one sees ops, the others wait for it to end
_profiler: tuple[Any, Any] = (None, None)  # recorder and ranges of the recording that sees ops
_observers: list[Observer] = []
_muted = False
_routed = 0  # how many need every op to pass through `op.run`, recorded or not
_free_listeners: list[FreeListener] = []
_resting_listener: FreeListener | None = None  # in `_storage.on_free` while no recording listens


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


def set_profiler(recorder: Any, ranges: Any, probe: Callable[[Any], Any] | None = None) -> None:
    """Let the active recording see ops and ranges. The arguments are explained at the slots of the same names in `_dispatch`."""
    global _profiler
    _profiler = (recorder, ranges)
    probe_list = recorder if recorder.__class__ is list else None
    if probe_list is not None:
        probe_list.extend(_dispatch.FIRST_CALLS[len(probe_list) :])  # ops declared while it was not in use
    _dispatch.probe, _dispatch.probe_list = probe, probe_list
    _fill_dispatcher()


def remove_profiler() -> None:
    """Let no recording see ops or ranges."""
    global _profiler
    _profiler = (None, None)
    _fill_dispatcher()
    _dispatch.probe = _dispatch.probe_list = None


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


def _untraced(recorder: Any) -> Callable[..., Any]:
    """The outermost function around an op that observers see: the tracer of Python calls stays off until it has returned."""

    def see(op: Any, *arguments: Any) -> Any:
        calls = _dispatch.calls
        if calls is None:
            return recorder[op.uid](*arguments)
        return calls.run_suspended(recorder[op.uid], *arguments)

    return see


def _run(op: Any, *arguments: Any) -> Any:
    return op.run(*arguments)


# ---------------------------------------------------------------------------------------------------- Python calls, garbage collection


def install_call_tracer(tracer: Any, of_new_threads: ProfileFunction | None = None) -> None:
    """Tell the dispatcher of a tracer of Python calls. of_new_threads: the profile function of threads that start from now on."""
    if of_new_threads is not None:
        threading.setprofile(of_new_threads)
    _dispatch.calls = tracer


def remove_call_tracer() -> None:
    """The dispatcher has no tracer of Python calls any more, and new threads have no profile function of one."""
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


def add_free_listener(listener: FreeListener, afterwards: FreeListener) -> None:
    """Tell this of memory that is freed; `afterwards` is told once no recording listens any more."""
    global _resting_listener
    _resting_listener = afterwards
    if listener not in _free_listeners:
        _free_listeners.append(listener)
        _fill_on_free()


def remove_free_listener(listener: FreeListener) -> None:
    """Tell this no more."""
    if listener in _free_listeners:
        _free_listeners.remove(listener)
        _fill_on_free()


def _fill_on_free() -> None:
    # Off is None until the first recording of memory. From then on it is the resting listener: memory that outlives its recording is
    # known to the next ones, and has to be forgotten when it is freed in between.
    if len(_free_listeners) > 1:
        listeners = tuple(_free_listeners)

        def tell_all(row: tuple[int, int, int, int]) -> None:
            for listener in listeners:
                listener(row)

        _storage.on_free = tell_all
    else:
        _storage.on_free = _free_listeners[0] if _free_listeners else _resting_listener


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
        "probe": _dispatch.probe,
        "probe_list": _dispatch.probe_list,
        "calls": _dispatch.calls,
        "profile_function": _own(sys.getprofile()),
        "profile_function_of_new_threads": _own(threading.getprofile()),
        "collector_callbacks": [callback for callback in gc.callbacks if _is_own(callback)] or None,
        "on_free": None if _storage.on_free is _resting_listener else _storage.on_free,
        "register": _storage.register,
    }
    return {name: hook for name, hook in state.items() if hook is not None}


def remove_all() -> None:
    """Switch off all recordings and observers, as in a new child process. Muting is the user's own setting, and routing lasts as long
    as the tensors that need it: both stay."""
    if _dispatch.calls is not None:
        _dispatch.calls.finish()
    for recording in _recordings:
        recording.running = False
    for callback in [callback for callback in gc.callbacks if _is_own(callback)]:
        gc.callbacks.remove(callback)
    _recordings.clear()
    _observers.clear()
    _free_listeners.clear()
    _fill_on_free()
    _storage.register = None
    remove_profiler()


def _is_own(hook: Any) -> bool:
    """Whether a function is this package's."""
    return (getattr(hook, "__module__", None) or "").startswith(__package__ + ".")


def _own(hook: Any) -> Any:
    return hook if _is_own(hook) else None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=remove_all)
