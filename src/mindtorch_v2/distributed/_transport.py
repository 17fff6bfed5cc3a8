"""Connections between all processes of a job: byte strings to and from a rank, each under a key.

Each pair of processes shares one TCP connection. A thread per connection reads whatever arrives and files it under its key,
so a send never waits for the receiver's program and any order of sends and receives is free of deadlocks.
"""

from __future__ import annotations

import collections
import contextlib
import socket
import struct
import threading
import time
from datetime import timedelta

from ._errors import DistBackendError
from ._sockets import receive_exactly
from ._stores import Store

Key = tuple[int, int, int]  # channel, number of the collective or tag, step
_HEADER = struct.Struct("!IQIQ")  # a key and the length of the payload
_HELLO = struct.Struct("!I")


class Transport:
    """The connections of one process. `rank` and `world_size` are those of the whole job."""

    def __init__(self, store: Store, rank: int, world_size: int, timeout: timedelta) -> None:
        self.rank, self.world_size = rank, world_size
        self._connections: dict[int, socket.socket] = {}
        self._send_locks = {peer: threading.Lock() for peer in range(world_size)}
        self._arrived: dict[tuple[int, Key], collections.deque[bytearray]] = {}
        self._closed: dict[int, str] = {}  # why a peer is gone
        self._changed = threading.Condition()
        if world_size > 1:
            self._connect(store, timeout)

    def _connect(self, store: Store, timeout: timedelta) -> None:
        """Listen, publish the address, connect to lower ranks, and take connections of higher ones."""
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.bind(("", 0))
        listener.listen(self.world_size)
        listener.settimeout(timeout.total_seconds())
        store.set(f"transport/{self.rank}", f"{_own_address(store)}:{listener.getsockname()[1]}")
        try:
            for peer in range(self.rank):
                host, _, port = store.get(f"transport/{peer}").decode().rpartition(":")
                connection = socket.create_connection((host, int(port)), timeout=timeout.total_seconds())
                connection.sendall(_HELLO.pack(self.rank))
                self._add(peer, connection)
            for _ in range(self.rank + 1, self.world_size):
                connection, _address = listener.accept()
                connection.settimeout(timeout.total_seconds())
                (peer,) = _HELLO.unpack(receive_exactly(connection, _HELLO.size))
                self._add(peer, connection)
        except (OSError, ConnectionError) as error:
            raise DistBackendError(
                f"Rank {self.rank} could not connect to all {self.world_size} ranks: {error}. Connected: {sorted(self._connections)}."
            ) from error
        finally:
            listener.close()

    def _add(self, peer: int, connection: socket.socket) -> None:
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections[peer] = connection
        threading.Thread(
            target=self._read, args=(peer, connection), name=f"connection to rank {peer}", daemon=True
        ).start()

    def _read(self, peer: int, connection: socket.socket) -> None:
        """File what arrives from one peer until the connection ends."""
        reason = "Connection closed by peer"
        try:
            while True:
                channel, number, step, n_bytes = _HEADER.unpack(receive_exactly(connection, _HEADER.size))
                payload = receive_exactly(connection, n_bytes)
                with self._changed:
                    self._arrived.setdefault((peer, (channel, number, step)), collections.deque()).append(
                        payload
                    )
                    self._changed.notify_all()
        except (OSError, ConnectionError) as error:
            reason = str(error) or reason
        with self._changed:
            self._closed[peer] = reason
            self._changed.notify_all()

    def send(self, peer: int, key: Key, payload: bytes | memoryview) -> None:
        """Send bytes to a rank."""
        n_bytes = payload.nbytes if isinstance(payload, memoryview) else len(payload)
        with self._send_locks[peer]:
            try:
                self._connections[peer].sendall(_HEADER.pack(*key, n_bytes))
                self._connections[peer].sendall(payload)
            except (OSError, ConnectionError) as error:
                raise DistBackendError(f"Rank {self.rank}: send to rank {peer} failed: {error}") from error

    def receive(self, peer: int, key: Key, timeout: timedelta) -> bytearray:
        """The bytes that a rank sent under this key, when they have arrived."""
        return self.receive_any([peer], key, timeout)[1]

    def receive_any(self, peers: list[int], key: Key, timeout: timedelta) -> tuple[int, bytearray]:
        """The same for the first of several ranks; its number and the bytes."""
        deadline = time.monotonic() + timeout.total_seconds()
        with self._changed:
            while True:
                for peer in peers:
                    queue = self._arrived.get((peer, key))
                    if queue:
                        payload = queue.popleft()
                        if not queue:
                            del self._arrived[peer, key]
                        return peer, payload
                gone = [peer for peer in peers if peer in self._closed]
                if len(gone) == len(peers):
                    raise DistBackendError(
                        f"Rank {self.rank}: {self._closed[gone[0]]} (rank {gone[0]}) while waiting for its data. That process has ended or "
                        "left the group."
                    )
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    names = ", ".join(map(str, peers))
                    raise DistBackendError(
                        f"Rank {self.rank}: timed out waiting {round(timeout.total_seconds() * 1000)}ms for data of rank {names}"
                    )
                self._changed.wait(remaining)

    def close(self) -> None:
        """End all connections."""
        for connection in self._connections.values():
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()


def _own_address(store: Store) -> str:
    """The address under which other processes reach this one: that of the connection to the store."""
    inner = getattr(store, "_underlying_non_prefix_store", store)
    connection = getattr(inner, "_connection", None)
    return connection.getsockname()[0] if connection is not None else "127.0.0.1"
