"""Key-value stores by which processes find each other: in memory, in a file, or behind a TCP server.

Values are bytes. `get` and `wait` block until keys exist or the timeout passes.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pickle
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from ._errors import DistNetworkError, DistStoreError
from ._sockets import receive_message, send_message

_DEFAULT_TIMEOUT = timedelta(seconds=300)
_POLL_S = 0.01


def _as_bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


class Store:
    """The operations of all stores. A store implements `_run`, which applies one of them to its dictionary."""

    def __init__(self) -> None:
        self._timeout = _DEFAULT_TIMEOUT

    def _run(self, operation: str, *arguments: Any) -> Any:
        raise NotImplementedError("Store is a base class: use TCPStore, FileStore or HashStore")

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long `get` and `wait` wait."""
        self._timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Store a value."""
        self._run("set", key, _as_bytes(value))

    def get(self, key: str) -> bytes:
        """A value, when it is there."""
        self.wait([key])
        return self._run("get", key)

    def add(self, key: str, amount: int) -> int:
        """Add to a counter, which begins at 0; its new value."""
        return self._run("add", key, amount)

    def append(self, key: str, value: str | bytes) -> None:
        """Append to a value."""
        self._run("append", key, _as_bytes(value))

    def compare_set(self, key: str, expected_value: str, desired_value: str) -> bytes:
        """Store a value if the present one is the expected one (or expected is empty and there is none); what is there then."""
        return self._run("compare_set", key, _as_bytes(expected_value), _as_bytes(desired_value))

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys exist."""
        return self._run("check", list(keys))

    def delete_key(self, key: str) -> bool:
        """Remove a key; whether it existed."""
        return self._run("delete_key", key)

    def num_keys(self) -> int:
        """How many keys there are."""
        return self._run("num_keys")

    def list_keys(self) -> list[str]:
        """The keys."""
        return self._run("list_keys")

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Several values, when all are there."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Store several values."""
        for key, value in zip(keys, values):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        """Whether `append`, `multi_get` and `multi_set` are there."""
        return True

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Block until all keys exist."""
        limit = self._timeout if timeout is None else timeout
        deadline = time.monotonic() + limit.total_seconds()
        while not self.check(keys):
            if time.monotonic() > deadline:
                missing = ", ".join(keys)
                raise DistStoreError(
                    f"wait timeout after {round(limit.total_seconds() * 1000)}ms, keys: {missing}"
                )
            time.sleep(_POLL_S)


def _apply(values: dict[str, bytes], operation: str, arguments: tuple[Any, ...]) -> Any:
    """One operation on the dictionary of a store."""
    if operation == "set":
        values[arguments[0]] = arguments[1]
        return None
    if operation == "get":
        return values[arguments[0]]
    if operation == "add":
        total = int(values.get(arguments[0], b"0")) + arguments[1]
        values[arguments[0]] = str(total).encode()
        return total
    if operation == "append":
        values[arguments[0]] = values.get(arguments[0], b"") + arguments[1]
        return None
    if operation == "compare_set":
        key, expected, desired = arguments
        if values.get(key, b"") == expected:
            values[key] = desired
        return values.get(key, expected)
    if operation == "check":
        return all(key in values for key in arguments[0])
    if operation == "delete_key":
        return values.pop(arguments[0], None) is not None
    if operation == "num_keys":
        return len(values)
    if operation == "list_keys":
        return list(values)
    raise ValueError(f"unknown operation of a store: {operation}")


class HashStore(Store):
    """A store in memory, for the threads of one process."""

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def _run(self, operation: str, *arguments: Any) -> Any:
        with self._lock:
            return _apply(self._values, operation, arguments)


class FileStore(Store):
    """A store in a file that all processes can reach. The last of `world_size` processes removes it."""

    def __init__(self, file_name: str | os.PathLike[str], world_size: int = -1) -> None:
        super().__init__()
        self._path = Path(file_name)
        self._world_size = world_size
        self._path.touch()
        self._run("add", "cleanup/users", 1)

    @property
    def path(self) -> str:
        """The file's name."""
        return str(self._path)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Any]:
        with open(self._path, "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                yield file
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)

    def _run(self, operation: str, *arguments: Any) -> Any:
        with self._locked() as file:
            file.seek(0)
            content = file.read()
            values = _decoded(content) if content else {}
            result = _apply(values, operation, arguments)
            if operation in ("set", "add", "append", "compare_set", "delete_key"):
                file.truncate(0)
                file.write(_encoded(values))
                file.flush()
            return result

    def close(self) -> None:
        """Leave the store; the last process removes the file."""
        if self._world_size <= 0 or not self._path.exists():
            return
        if self._run("add", "cleanup/left", 1) >= self._world_size:
            self._path.unlink(missing_ok=True)


def _encoded(values: dict[str, bytes]) -> bytes:
    """A dictionary as text lines: the key and the value in hexadecimal. No pickle: other users may be able to write the file."""
    return "".join(f"{key.encode().hex()} {value.hex()}\n" for key, value in values.items()).encode()


def _decoded(content: bytes) -> dict[str, bytes]:
    pairs = (line.split(" ") for line in content.decode().splitlines() if line)
    return {bytes.fromhex(key).decode(): bytes.fromhex(value) for key, value in pairs}


class _StoreServer:
    """Serves a dictionary to any number of connections, one thread each."""

    def __init__(self, host: str, port: int) -> None:
        self.values = HashStore()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise DistNetworkError(
                f"The server socket has failed to listen on any local network address. port: {port}, useIpv6: false, "
                f"code: {error.errno}, name: {error.__class__.__name__}, message: {error.strerror}"
            ) from error
        self._socket.listen(1024)
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, name="TCPStore server", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return  # closed
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(
                target=self._serve, args=(connection,), name="TCPStore client", daemon=True
            ).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(ConnectionError, OSError), connection:
            while True:
                operation, arguments = _decode_request(receive_message(connection))
                send_message(connection, _encode_value(self.values._run(operation, *arguments)))

    def close(self) -> None:
        self._socket.close()


def _encode_value(value: Any) -> bytes:
    return pickle.dumps(value)


class _PlainUnpickler(pickle.Unpickler):
    """Reads numbers, strings, bytes and lists of them: a message names no class."""

    def find_class(self, module: str, name: str) -> Any:
        raise DistStoreError(f"a message of a TCPStore names {module}.{name}: it was not sent by a TCPStore")


def _decode_value(message: bytes) -> Any:
    import io

    return _PlainUnpickler(io.BytesIO(message)).load()


def _decode_request(message: bytes) -> tuple[str, tuple[Any, ...]]:
    operation, *arguments = _decode_value(message)
    return operation, tuple(arguments)


class TCPStore(Store):
    """A store behind a TCP server, which the process with `is_master` runs."""

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = _DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__()
        if master_listen_fd is not None:
            raise NotImplementedError("TCPStore: master_listen_fd is not supported; pass a port")
        self._timeout = timeout
        self.host = host_name
        self._server = _StoreServer(host_name, port) if is_master else None
        self.port = self._server.port if self._server else port
        self._lock = threading.Lock()
        self._connection = self._connected()
        if wait_for_workers and world_size is not None and world_size > 0:
            self.add("init/workers", 1)
            if is_master:
                self._wait_for_workers(world_size)

    def _connected(self) -> socket.socket:
        deadline = time.monotonic() + self._timeout.total_seconds()
        while True:
            try:
                connection = socket.create_connection(
                    (self.host, self.port), timeout=self._timeout.total_seconds()
                )
            except OSError as error:
                if time.monotonic() > deadline:
                    raise DistNetworkError(
                        f"The client socket has timed out after {round(self._timeout.total_seconds() * 1000)}ms while trying to connect to "
                        f"({self.host}, {self.port})."
                    ) from error
                time.sleep(0.05)
            else:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection

    def _wait_for_workers(self, world_size: int) -> None:
        deadline = time.monotonic() + self._timeout.total_seconds()
        while (joined := int(self._run("get", "init/workers"))) < world_size:
            if time.monotonic() > deadline:
                raise DistStoreError(
                    f"Timed out after {round(self._timeout.total_seconds()) + 1} seconds waiting for clients. "
                    f"{joined}/{world_size} clients joined."
                )
            time.sleep(_POLL_S)

    def _run(self, operation: str, *arguments: Any) -> Any:
        with self._lock:
            try:
                send_message(self._connection, _encode_value((operation, *arguments)))
                return _decode_value(receive_message(self._connection))
            except (ConnectionError, OSError) as error:
                raise DistNetworkError(
                    f"failed to reach the TCPStore at {self.host}:{self.port}: {error}. The process that serves it may have ended."
                ) from error

    def close(self) -> None:
        """Close the connection, and the server if this process runs it."""
        self._connection.close()
        if self._server is not None:
            self._server.close()

    def __repr__(self) -> str:
        return f"TCPStore({self.host}:{self.port})"


class PrefixStore(Store):
    """Another store with a prefix in front of each key."""

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self._prefix, self.underlying_store = prefix, store
        self._timeout = store.timeout

    @property
    def _underlying_non_prefix_store(self) -> Store:
        store = self.underlying_store
        return store._underlying_non_prefix_store if isinstance(store, PrefixStore) else store

    def _run(self, operation: str, *arguments: Any) -> Any:
        if operation == "check":
            return self.underlying_store._run("check", [f"{self._prefix}/{key}" for key in arguments[0]])
        if operation in ("num_keys", "list_keys"):
            return self.underlying_store._run(operation)
        key, *rest = arguments
        return self.underlying_store._run(operation, f"{self._prefix}/{key}", *rest)


for _store in (Store, HashStore, FileStore, TCPStore, PrefixStore):
    _store.__module__ = "torch.distributed"
