"""torch.accelerator: devices besides the CPU. There are none; functions that need one raise."""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

from .memory import (
    empty_cache,
    empty_host_cache,
    get_memory_info,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    no_accelerator,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "empty_host_cache",
    "get_device_capability",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]


class Stream:
    """torch.Stream, a queue of an accelerator; cannot be built without one."""

    __module__ = "mindtorch_v2"

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise no_accelerator()


class Event:
    """torch.Event, a point in a stream; cannot be built without an accelerator."""

    __module__ = "mindtorch_v2"

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise no_accelerator()


def is_available() -> bool:
    """Whether there is an accelerator: no."""
    return False


def device_count() -> int:
    """The number of accelerators: 0."""
    return 0


def current_accelerator(check_available: bool = False) -> Any:
    """The accelerator: None."""
    return None


def current_device_index() -> NoReturn:
    """Raises: there is no accelerator."""
    raise no_accelerator()


def current_device_idx() -> NoReturn:
    """Old name of `current_device_index`."""
    warnings.warn("Use `current_device_index` instead.", FutureWarning, stacklevel=2)
    raise no_accelerator()


def set_device_index(device: Any, /) -> NoReturn:
    """Raises: there is no accelerator."""
    raise no_accelerator()


def set_device_idx(device: Any, /) -> NoReturn:
    """Old name of `set_device_index`."""
    warnings.warn("Use `set_device_index` instead.", FutureWarning, stacklevel=2)
    raise no_accelerator()


def get_device_capability(device: Any = None, /) -> NoReturn:
    """Raises: there is no accelerator."""
    raise no_accelerator()


def current_stream(device: Any = None, /) -> NoReturn:
    """Raises: there is no accelerator."""
    raise no_accelerator()


def set_stream(stream: Any) -> NoReturn:
    """Raises: there is no accelerator."""
    raise no_accelerator()


def synchronize(device: Any = None, /) -> NoReturn:
    """Raises: there is no accelerator to wait for."""
    raise no_accelerator()


class device_index:
    """Context manager: use an accelerator. `None` has no effect; entering with an index raises."""

    def __init__(self, device: int | None, /) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            raise no_accelerator()

    def __exit__(self, *exception: object) -> None:
        return None
