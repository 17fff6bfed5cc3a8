"""Forked processes: the id of a child in, whether it ended well out; one that hangs is killed."""

from __future__ import annotations

import os
import signal
import time


def ends_well(child: int, seconds: float = 300) -> bool:
    """Wait for a child: whether it ended with exit code 0 in this time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False
