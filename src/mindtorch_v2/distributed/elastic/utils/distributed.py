"""torch.distributed.elastic.utils.distributed: a free port."""

from __future__ import annotations

import socket

__all__ = ["get_free_port", "get_socket_with_port"]


def get_socket_with_port() -> socket.socket:
    """A socket that listens on a free port of this machine."""
    listener = socket.socket()
    listener.bind(("localhost", 0))
    listener.listen(0)
    return listener


def get_free_port() -> int:
    """A port that was free a moment ago."""
    with get_socket_with_port() as listener:
        return listener.getsockname()[1]
