"""torch.mtia: accelerators that are not available here. Queries return what torch's CPU build returns, work
raises.
"""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "current_device",
    "current_stream",
    "default_stream",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_properties",
    "get_rng_state_all",
    "init",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "memory_allocated",
    "memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "snapshot",
    "synchronize",
]


def _absent(call: str) -> RuntimeError:
    return RuntimeError(f"Cannot execute {call}() without MTIA backend.")


def is_available() -> bool:
    """Whether MTIA can be used: no."""
    return False


def is_initialized() -> bool:
    """Whether MTIA has been initialised: no."""
    return False


def device_count() -> int:
    """The number of MTIA devices: 0."""
    return 0


def memory_allocated(device: Any = None) -> int:
    """Bytes of tensors on the device: 0."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """The peak of bytes of tensors: 0."""
    return 0


def memory_stats(device: Any = None) -> dict[str, Any]:
    """The allocator's statistics: none."""
    return {}


def get_rng_state_all() -> list[Any]:
    """The states of all MTIA generators: none."""
    return []


def manual_seed(seed: int) -> None:
    """No effect: there is no device to seed. `torch.manual_seed` seeds the CPU generator."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """No effect: there is no device to seed. `torch.manual_seed` seeds the CPU generator."""
    int(seed)


def seed() -> None:
    """No effect: there is no device to seed."""


def seed_all() -> None:
    """No effect: there is no device to seed."""


def init() -> NoReturn:
    """Raises: there is no MTIA to initialise."""
    raise AssertionError("Torch not compiled with MTIA enabled.")


def current_device() -> NoReturn:
    """Raises: there is no MTIA device."""
    raise _absent("getCurrentDevice")


def set_device(device: Any) -> NoReturn:
    """Raises: there is no MTIA device."""
    raise _absent("setCurrentDevice")


def synchronize(device: Any = None) -> NoReturn:
    """Raises: there is no MTIA device to wait for."""
    raise _absent("getCurrentDevice")


def current_stream(device: Any = None) -> NoReturn:
    """Raises: there is no MTIA stream."""
    raise _absent("getCurrentDevice")


def default_stream(device: Any = None) -> NoReturn:
    """Raises: there is no MTIA stream."""
    raise _absent("getCurrentDevice")


def get_device_capability(device: Any = None) -> NoReturn:
    """Raises: there is no MTIA device."""
    raise _absent("getCurrentDevice")


def get_device_properties(device: Any = None) -> NoReturn:
    """Raises: there is no MTIA device."""
    raise _absent("getCurrentDevice")


def empty_cache() -> NoReturn:
    """Raises: there is no MTIA memory."""
    raise _absent("emptyCache")


def snapshot() -> NoReturn:
    """Raises: there is no MTIA memory."""
    raise _absent("memorySnapshot")
