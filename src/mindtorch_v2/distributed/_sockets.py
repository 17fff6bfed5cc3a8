"""Messages over TCP sockets: whole byte strings in, whole byte strings out."""

from __future__ import annotations

import socket
import struct

_LENGTH = struct.Struct("!Q")


def receive_exactly(connection: socket.socket, n_bytes: int) -> bytearray:
    """The next bytes of a connection; ConnectionError if it ends before."""
    buffer = bytearray(n_bytes)
    view, position = memoryview(buffer), 0
    while position < n_bytes:
        n_received = connection.recv_into(view[position:], n_bytes - position)
        if n_received == 0:
            raise ConnectionError("Connection closed by peer")
        position += n_received
    return buffer


def send_message(connection: socket.socket, message: bytes) -> None:
    """Send a byte string with its length in front."""
    connection.sendall(_LENGTH.pack(len(message)) + message)


def receive_message(connection: socket.socket) -> bytes:
    """A byte string that `send_message` sent."""
    (length,) = _LENGTH.unpack(receive_exactly(connection, _LENGTH.size))
    return bytes(receive_exactly(connection, length))
