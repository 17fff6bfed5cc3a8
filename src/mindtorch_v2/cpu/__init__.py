"""torch.cpu: the one device that computes. Work is done when a call returns, so streams and events never
wait.
"""

from __future__ import annotations

import contextlib
from types import MappingProxyType
from typing import Any

from . import amp

__all__ = [
    "is_available",
    "is_initialized",
    "synchronize",
    "current_device",
    "current_stream",
    "stream",
    "set_device",
    "device_count",
    "Stream",
    "StreamContext",
    "Event",
    "get_capabilities",
    "amp",
]


def is_available() -> bool:
    """Whether there is a CPU: yes."""
    return True


def is_initialized() -> bool:
    """Whether the CPU is initialised: yes."""
    return True


def synchronize(device: Any = None) -> None:
    """Wait for the CPU's work: it is done already."""


def current_device() -> str:
    """The name of the device."""
    return "cpu"


def set_device(device: Any) -> None:
    """Select the device; there is only one."""


def device_count() -> int:
    """The number of CPU devices: 1."""
    return 1


class Stream:
    """A queue of work, always empty."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Wait for another stream."""

    def record_event(self) -> None:
        """Record an event."""

    def wait_event(self, event: Any) -> None:
        """Wait for an event."""


class Event:
    """An event of a queue that is always empty, so it has always occurred."""

    def query(self) -> bool:
        """Whether the event has occurred: yes."""
        return True

    def record(self, stream: Any = None) -> None:
        """Record the event."""

    def synchronize(self) -> None:
        """Wait for the event."""

    def wait(self, stream: Any = None) -> None:
        """Make a stream wait for the event."""


_current_stream = Stream()


def current_stream(device: Any = None) -> Stream:
    """The current stream."""
    return _current_stream


class StreamContext(contextlib.AbstractContextManager):
    """Context manager: use a stream."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self.prev_stream: Stream | None = None

    def __enter__(self) -> None:
        global _current_stream
        if self.stream is not None:
            self.prev_stream, _current_stream = _current_stream, self.stream

    def __exit__(self, *exception: object) -> None:
        global _current_stream
        if self.stream is not None and self.prev_stream is not None:
            _current_stream = self.prev_stream


def stream(stream: Stream) -> StreamContext:
    """Context manager: use a stream."""
    return StreamContext(stream)


def get_capabilities() -> MappingProxyType[str, Any]:
    """The processor's vector instructions, as detected by NumPy, and its number of cores."""
    import os

    from ..backends.cpu import vector_extensions

    found: dict[str, Any] = dict.fromkeys((name.lower() for name in vector_extensions()), True)
    found["num_logical_cores"] = os.cpu_count()
    return MappingProxyType(found)
