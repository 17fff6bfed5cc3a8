"""Keepers: a Recorder in; a thread that takes what was recorded, again and again, while the recording is under way."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

from mindtorch_prof.sealing.logs import Logs

from .recorder import OwnThread, Recorder

PERIOD_S = 0.1  # how often rows are taken: a killed process loses what it recorded since
_PATIENCE_S = 0.1  # so much later than usual rows are taken before the threads that record give way


def warn_in_background(message: str) -> None:
    """Warn where an exception would harm the program, also if warnings are errors."""
    try:
        warnings.warn(message, stacklevel=3)
    except Warning:
        print(f"mindtorch_v2.profiler: {message}", file=sys.stderr)  # noqa: T201


class Keeper:
    """Takes what was recorded, again and again, on a thread of its own."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.pid = os.getpid()
        self._locks = {self.pid: threading.RLock()}  # a signal handler may come while its thread takes rows
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def _lock(self) -> Any:
        """The lock of this process: in a forked one, a thread that is not there may hold the lock of its parent."""
        return self._locks.setdefault(os.getpid(), threading.RLock())

    def begin(self) -> None:
        """Take rows from now on."""
        self._ends.clear()
        self._thread = OwnThread(self._run)
        self._thread.start()

    def end(self) -> None:
        """Take no more in the background."""
        if os.getpid() == self.pid:  # else the thread is not in this process
            self._ends.set()
            if self._thread is not None and self._thread is not threading.current_thread():
                self._wait_for(self._thread)
        self._thread = None

    def _wait_for(self, thread: threading.Thread) -> None:
        """Wait until the thread that takes rows has ended."""
        thread.join()

    def let_go(self) -> None:
        """Leave the process as it was before `begin`; after `end`, when nothing more has to be kept."""

    def _set_turn(self, seconds: float | None) -> None:
        """From so many seconds on, threads that record give way to this one, which takes their rows; None: they do not."""
        core = self.recorder.core
        if core is not None:
            core.set_turn(None if seconds is None else time.perf_counter_ns() + int(seconds * 1e9))

    def _run(self) -> None:
        self.recorder.own_thread = threading.get_ident()
        try:
            self._take_until_end()
        except Exception as error:
            warn_in_background(f"the recording is no longer handed over: {type(error).__name__}: {error}")
        finally:
            self._set_turn(None)

    def _take_until_end(self) -> None:
        next_time = time.monotonic() + PERIOD_S
        self._set_turn(PERIOD_S + _PATIENCE_S)
        while not self._ends.wait(max(next_time - time.monotonic(), 0.001)):
            next_time = time.monotonic() + PERIOD_S
            sys.setprofile(
                None
            )  # of a recording that traces all threads: its own thread is none of the program's
            try:
                self.take()
                self._set_turn(PERIOD_S + _PATIENCE_S)
                self._use_the_time(next_time)
            except MemoryError:  # the rows are where they were; there may be memory at the next tick
                continue

    def take(self) -> None:
        """Take what was recorded since the last time."""
        with self._lock:
            if self.recorder.core is not None and os.getpid() == self.pid:
                self._keep()

    def _keep(self) -> None:
        raise NotImplementedError

    def _use_the_time(self, until: float) -> None:
        """Do what can wait, until about this time (of time.monotonic), before rows are taken again."""

    def logs(self) -> Logs:
        """All that is kept."""
        raise NotImplementedError

    def locked(self, function: Callable[[], Any]) -> Any:
        """Call a function while no rows are taken."""
        with self._lock:
            return function()
