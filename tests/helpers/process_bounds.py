"""Bounds of fuzzers: processor time of a piece of work, and memory of the process."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 20  # of processor time: what takes longer hangs
MEMORY = 2 << 30  # bytes that a process may have: a small file that needs more is not bounded


class Hangs(BaseException):
    """A piece of work took too long."""


def _hang(*_: object) -> None:
    raise Hangs


def raise_on_time_limit() -> None:
    """Make `limited_time` raise in this process."""
    signal.signal(signal.SIGVTALRM, _hang)


def limit_memory() -> None:
    """Let this process have no more than MEMORY; what needs more raises MemoryError.

    Not under AddressSanitizer, which maps terabytes."""
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        return
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, resource.RLIM_INFINITY))


@contextmanager
def limited_time(seconds: float = SECONDS) -> Iterator[None]:
    """Raise Hangs where the block takes more processor time."""
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
