"""CUDA's memory counters: all zero, because nothing is allocated there; functions that need a device raise."""

from __future__ import annotations

import contextlib
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, NoReturn

from ._absent import no_base, no_cuda

__all__ = [
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_disabled",
    "caching_allocator_enable",
    "empty_cache",
    "get_allocator_backend",
    "get_per_process_memory_fraction",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "list_gpu_processes",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
    "MemPool",
]


def memory_allocated(device: Any = None) -> int:
    """Bytes of tensors on the device: 0."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """The peak of bytes of tensors: 0."""
    return 0


def memory_reserved(device: Any = None) -> int:
    """Bytes the allocator holds: 0."""
    return 0


def max_memory_reserved(device: Any = None) -> int:
    """The peak of bytes the allocator held: 0."""
    return 0


def memory_cached(device: Any = None) -> int:
    """Old name of `memory_reserved`."""
    warnings.warn(
        "`torch.cuda.memory_cached` has been renamed to `torch.cuda.memory_reserved`",
        FutureWarning,
        stacklevel=2,
    )
    return 0


def max_memory_cached(device: Any = None) -> int:
    """Old name of `max_memory_reserved`."""
    warnings.warn(
        "`torch.cuda.max_memory_cached` has been renamed to `torch.cuda.max_memory_reserved`",
        FutureWarning,
        stacklevel=2,
    )
    return 0


def memory_stats(device: Any = None) -> dict[str, Any]:
    """The allocator's statistics: none."""
    return OrderedDict()


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """The allocator's statistics: none."""
    return {}


def host_memory_stats() -> dict[str, Any]:
    """Statistics of pinned memory: none."""
    return OrderedDict()


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """Statistics of pinned memory: none."""
    return {}


def empty_cache() -> None:
    """No effect: nothing is cached."""


def caching_allocator_enable(value: bool = True) -> None:
    """No effect: there is no caching allocator."""


@contextlib.contextmanager
def caching_allocator_disabled() -> Iterator[None]:
    """Context manager: disable the caching allocator. There is none."""
    yield


def list_gpu_processes(device: Any = None) -> str:
    """Text listing the processes that use the GPU; states that it is not available."""
    return "pynvml module not found, please install nvidia-ml-py"


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> NoReturn:
    """Raises: there is no CUDA memory."""
    raise no_cuda()


def caching_allocator_delete(mem_ptr: int) -> NoReturn:
    """Raises: there is no CUDA memory."""
    raise no_cuda()


def get_allocator_backend() -> NoReturn:
    """Raises: there is no CUDA allocator."""
    raise no_cuda()


def get_per_process_memory_fraction(device: Any = None) -> NoReturn:
    """Raises: there is no CUDA memory."""
    raise no_cuda()


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> NoReturn:
    """Raises: there is no CUDA memory."""
    raise no_cuda()


def mem_get_info(device: Any = None) -> NoReturn:
    """Raises: there is no CUDA memory."""
    raise no_cuda()


def memory_snapshot(mempool_id: Any = None, include_traces: bool = True) -> NoReturn:
    """Raises: there is no CUDA allocator."""
    raise no_cuda()


def memory_summary(device: Any = None, abbreviated: bool = False) -> NoReturn:
    """Raises: there is no CUDA allocator."""
    raise no_cuda()


def reset_peak_memory_stats(device: Any = None) -> NoReturn:
    """Raises: there is no CUDA allocator."""
    raise no_cuda()


def reset_accumulated_memory_stats(device: Any = None) -> NoReturn:
    """Raises: there is no CUDA allocator."""
    raise no_cuda()


def reset_peak_host_memory_stats() -> NoReturn:
    """Raises: there is no CUDA allocator."""
    raise no_cuda()


def reset_accumulated_host_memory_stats() -> NoReturn:
    """Raises: there is no CUDA allocator."""
    raise no_cuda()


def reset_max_memory_allocated(device: Any = None) -> NoReturn:
    """Old name of `reset_peak_memory_stats`."""
    _warn_reset("reset_max_memory_allocated")
    raise no_cuda()


def reset_max_memory_cached(device: Any = None) -> NoReturn:
    """Old name of `reset_peak_memory_stats`."""
    _warn_reset("reset_max_memory_cached")
    raise no_cuda()


def _warn_reset(name: str) -> None:
    warnings.warn(
        f"torch.cuda.{name} now calls torch.cuda.reset_peak_memory_stats, "
        "which resets /all/ peak memory stats.",
        FutureWarning,
        stacklevel=3,
    )


class MemPool:
    """A pool of CUDA memory; cannot be built without CUDA."""

    def __new__(cls, allocator: Any = None, use_on_oom: bool = False, no_split: bool = False) -> NoReturn:
        raise no_base("MemPool")
