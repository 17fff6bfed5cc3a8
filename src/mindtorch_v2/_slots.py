"""Who sees ops: one profiler's functions and any number of observers around them in, the dispatcher's two slots filled out."""

from __future__ import annotations

import os
from typing import Any, Protocol

from . import _dispatch


class Observer(Protocol):
    """Sees what happens, and hands it on to whoever else does."""

    def wrap(self, recorder: Any, ranges: Any) -> tuple[Any, Any]:
        """What shall stand in the slots in the place of these two (None: nobody)."""


_profiler: tuple[Any, Any] = (None, None)
_observers: list[Observer] = []
_muted = False
_routed = 0  # how many want every op to pass through `run`, recorded or not


def profile(recorder: Any, ranges: Any) -> None:
    """Let a profiler see ops; None, None: let it see none."""
    global _profiler
    _profiler = (recorder, ranges)
    _fill()


def add(observer: Observer) -> None:
    """Let an observer see what happens from now on."""
    if observer not in _observers:
        _observers.append(observer)
        _fill()


def remove(observer: Observer) -> None:
    """Let an observer see no more."""
    if observer in _observers:
        _observers.remove(observer)
        _fill()


def mute(muted: bool) -> None:
    """Let nobody see anything until further notice, or let them again."""
    global _muted
    _muted = muted
    _fill()


def route(change: int) -> None:
    """One more (1) or less (-1) who wants every op to pass through its `run`."""
    global _routed
    _routed += change
    _fill()


def _behind_door(recorder: Any) -> Any:
    """One function for all ops, around those that hand an op on to one another: what traces calls is off until the last has ended."""

    def see(op: Any, *arguments: Any) -> Any:
        calls = _dispatch.calls
        if calls is None:
            return recorder[op.uid](*arguments)
        return calls.behind_door(recorder[op.uid], *arguments)

    return see


def _run(op: Any, *arguments: Any) -> Any:
    return op.run(*arguments)


def _fill() -> None:
    recorder, ranges = (None, None) if _muted else _profiler
    for observer in () if _muted else _observers:
        recorder, ranges = observer.wrap(recorder, ranges)
    if not _muted and _observers and recorder is not None:
        recorder = _dispatch.Hook(_behind_door(recorder))
    if recorder is None and _routed:
        recorder = _dispatch.Hook(_run)
    _dispatch.recorder, _dispatch.ranges = recorder, ranges


def _after_fork() -> None:
    """A child process starts with nobody who sees ops."""
    global _profiler
    _profiler = (None, None)
    _observers.clear()
    _fill()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
