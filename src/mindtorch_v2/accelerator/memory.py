"""Memory counters of the accelerator: there is none, so each raises as in torch's CPU build."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "empty_cache",
    "empty_host_cache",
    "get_memory_info",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
]


def no_accelerator() -> RuntimeError:
    """Raise the error of every call that needs an accelerator."""
    return RuntimeError("Cannot access accelerator device when none is available.")


def empty_cache() -> NoReturn:
    """Raises: there is no accelerator."""
    raise no_accelerator()


def empty_host_cache() -> NoReturn:
    """Raises: there is no accelerator."""
    raise no_accelerator()


def memory_stats(device_index: Any = None, /) -> NoReturn:
    """Raises: there is no accelerator."""
    raise no_accelerator()


def memory_allocated(device_index: Any = None, /) -> NoReturn:
    """Raises: there is no accelerator."""
    raise no_accelerator()


def max_memory_allocated(device_index: Any = None, /) -> NoReturn:
    """Raises: there is no accelerator."""
    raise no_accelerator()


def memory_reserved(device_index: Any = None, /) -> NoReturn:
    """Raises: there is no accelerator."""
    raise no_accelerator()


def max_memory_reserved(device_index: Any = None, /) -> NoReturn:
    """Raises: there is no accelerator."""
    raise no_accelerator()


def reset_accumulated_memory_stats(device_index: Any = None, /) -> NoReturn:
    """Raises: there is no accelerator."""
    raise no_accelerator()


def reset_peak_memory_stats(device_index: Any = None, /) -> NoReturn:
    """Raises: there is no accelerator."""
    raise no_accelerator()


def get_memory_info(device_index: Any = None, /) -> NoReturn:
    """Raises: there is no accelerator."""
    raise no_accelerator()
