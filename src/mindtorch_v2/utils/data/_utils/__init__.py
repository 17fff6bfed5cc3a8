"""The parts of the data loader: collating, fetching, the worker process, and the transport between processes."""

from __future__ import annotations

import atexit

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds between two checks whether the other process is alive
HAS_NUMPY = True  # this library is built on it
python_exit_status = False  # whether the interpreter is shutting down

from . import collate, fetch, pin_memory, signal_handling, transport, worker  # noqa: E402

__all__ = [
    "MP_STATUS_CHECK_INTERVAL",
    "collate",
    "fetch",
    "pin_memory",
    "signal_handling",
    "transport",
    "worker",
]


def _set_python_exit_flag() -> None:
    global python_exit_status
    python_exit_status = True


atexit.register(_set_python_exit_flag)
