"""A port for a program that is started a moment later."""

from __future__ import annotations

import random
import socket
from pathlib import Path

_FIRST = 10_000


def free_port() -> int:
    """A port that nothing listens on, and that the system gives to no connection in the meantime.

    A port that was bound as number 0 may be given to the next connection of any program before it is used.
    """
    draw = random.SystemRandom()  # tests seed random: two processes would draw the same ports
    last = _first_of_connections() - 1
    while True:
        port = draw.randint(_FIRST, last)
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def _first_of_connections() -> int:
    """The first port that the system gives to connections."""
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        first = 0
    return first if first > 2 * _FIRST else 32_768
