"""torch.mps: Apple's GPUs, not available here. Queries return what torch's CPU build returns, work raises."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "current_allocated_memory",
    "device_count",
    "driver_allocated_memory",
    "empty_cache",
    "get_rng_state",
    "is_available",
    "manual_seed",
    "recommended_max_memory",
    "seed",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "synchronize",
    "Event",
]


def _absent(call: str) -> RuntimeError:
    return RuntimeError(f"Cannot execute {call}() without MPS backend.")


def is_available() -> bool:
    """Whether MPS can be used: no."""
    return False


def device_count() -> int:
    """The number of MPS devices: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """No effect: there is no device to seed. `torch.manual_seed` seeds the CPU generator."""
    int(seed)


def seed() -> NoReturn:
    """Raises: there is no MPS generator."""
    raise _absent("getDefaultGenerator")


def get_rng_state(device: Any = "mps") -> NoReturn:
    """Raises: there is no MPS generator."""
    raise _absent("getDefaultGenerator")


def set_rng_state(new_state: Any, device: Any = "mps") -> NoReturn:
    """Raises: there is no MPS generator."""
    raise _absent("getDefaultGenerator")


def synchronize() -> NoReturn:
    """Raises: there is no MPS device to wait for."""
    raise _absent("deviceSynchronize")


def empty_cache() -> NoReturn:
    """Raises: there is no MPS memory."""
    raise _absent("emptyCache")


def set_per_process_memory_fraction(fraction: float) -> NoReturn:
    """Raises: there is no MPS memory."""
    raise _absent("setMemoryFraction")


def current_allocated_memory() -> NoReturn:
    """Raises: there is no MPS memory."""
    raise _absent("getCurrentAllocatedMemory")


def driver_allocated_memory() -> NoReturn:
    """Raises: there is no MPS memory."""
    raise _absent("getDriverAllocatedMemory")


def recommended_max_memory() -> NoReturn:
    """Raises: there is no MPS memory."""
    raise _absent("getRecommendedMaxMemory")


class Event:
    """An MPS event; cannot be built without MPS."""

    def __new__(cls, enable_timing: bool = False) -> NoReturn:
        raise _absent("acquireEvent")
