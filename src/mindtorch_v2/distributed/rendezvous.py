"""torch.distributed.rendezvous: a URL in, the store, rank and number of processes out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlparse

from ._stores import FileStore, Store, TCPStore
from .constants import default_pg_timeout

__all__ = ["register_rendezvous_handler", "rendezvous"]

_handlers: dict[str, Callable[..., Iterator[tuple[Store, int, int]]]] = {}


def register_rendezvous_handler(scheme: str, handler: Callable[..., Any]) -> None:
    """Register a function for URLs of another scheme."""
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(
    url: str, rank: int = -1, world_size: int = -1, **kwargs: Any
) -> Iterator[tuple[Store, int, int]]:
    """Yields the store, this process' rank and the number of processes."""
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    parts = urlparse(url)
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    rank = int(query.get("rank", rank))
    world_size = int(query.get("world_size", world_size))
    return _handlers[parts.scheme](url, rank, world_size, **kwargs)


def _error(scheme: str, message: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {scheme} rendezvous: {message}")


def _file(url: str, rank: int, world_size: int, **kwargs: Any) -> Iterator[tuple[Store, int, int]]:
    path = urlparse(url).path
    if not path:
        raise _error("file://", "path missing")
    if rank == -1:
        raise _error("file://", "rank parameter missing")
    if world_size == -1:
        raise _error("file://", "world size parameter missing")
    yield FileStore(path, world_size), rank, world_size


def _tcp(
    url: str, rank: int, world_size: int, timeout: timedelta = default_pg_timeout, **kwargs: Any
) -> Iterator[tuple[Store, int, int]]:
    parts = urlparse(url)
    if parts.port is None:
        raise _error("tcp://", "port number missing")
    if rank == -1:
        raise _error("tcp://", "rank parameter missing")
    if world_size == -1:
        raise _error("tcp://", "world size parameter missing")
    yield _store(str(parts.hostname), parts.port, rank, world_size, timeout), rank, world_size


def _env(
    url: str, rank: int, world_size: int, timeout: timedelta = default_pg_timeout, **kwargs: Any
) -> Iterator[tuple[Store, int, int]]:
    def value(name: str) -> str:
        if name not in os.environ:
            raise _error("env://", f"environment variable {name} expected, but not set")
        return os.environ[name]

    rank = int(value("RANK")) if rank == -1 else rank
    world_size = int(value("WORLD_SIZE")) if world_size == -1 else world_size
    host, port = value("MASTER_ADDR"), int(value("MASTER_PORT"))
    yield _store(host, port, rank, world_size, timeout), rank, world_size


def _store(host: str, port: int, rank: int, world_size: int, timeout: timedelta) -> TCPStore:
    """A launcher may serve the store itself (TORCHELASTIC_USE_AGENT_STORE); else rank 0 does."""
    agent_serves = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    return TCPStore(host, port, world_size, rank == 0 and not agent_serves, timeout, wait_for_workers=False)


register_rendezvous_handler("tcp", _tcp)
register_rendezvous_handler("env", _env)
register_rendezvous_handler("file", _file)
