"""Signals of data loaders that start workers themselves: an error in the main process when one of its workers dies.

The loader of this library notices a lost worker by its connection and does not need them; loaders of other packages do.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable
from typing import Any

_worker_pids: dict[int, tuple[int, ...]] = {}  # by the id of the loader's iterator
_handler_set = False


def _set_worker_pids(loader: int, pids: Iterable[int]) -> None:
    """Watch the workers of a loader."""
    _worker_pids[loader] = tuple(pids)


def _remove_worker_pids(loader: int) -> None:
    """Watch them no longer."""
    del _worker_pids[loader]


def _error_if_any_worker_fails() -> None:
    """Raise if a watched worker has ended with an error or by a signal."""
    for pid in [pid for pids in _worker_pids.values() for pid in pids]:
        try:
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            continue
        if ended is None:
            continue
        if ended.si_code == os.CLD_EXITED and ended.si_status != 0:
            raise RuntimeError(
                f"DataLoader worker (pid {pid}) exited unexpectedly with exit code {ended.si_status}. "
                "Details are lost due to multiprocessing. Rerunning with num_workers=0 may give better error trace."
            )
        if ended.si_code in (os.CLD_KILLED, os.CLD_DUMPED):
            name = signal.strsignal(ended.si_status)
            raise RuntimeError(f"DataLoader worker (pid {pid}) is killed by signal: {name}. ")


def _set_SIGCHLD_handler() -> None:
    """Look after the workers whenever a child process ends; only the main thread can ask for that."""
    global _handler_set
    if _handler_set or threading.current_thread() is not threading.main_thread():
        return
    previous: Any = signal.getsignal(signal.SIGCHLD)

    def handler(number: int, frame: Any) -> None:
        _error_if_any_worker_fails()
        if callable(previous):
            previous(number, frame)

    signal.signal(signal.SIGCHLD, handler)
    _handler_set = True


def _set_worker_signal_handlers() -> None:
    """In a worker: end at once when the main process asks for it, whatever handler was inherited."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
