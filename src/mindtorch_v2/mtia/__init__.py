"""torch.mtia: accelerators absent here. Questions are answered, work raises as in torch's CPU build."""

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
    """Whether MTIA has been started: no."""
    return False


def device_count() -> int:
    """The number of MTIA devices: 0."""
    return 0


def memory_allocated(device: Any = None) -> int:
    """Bytes of tensors on the device: 0."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes of tensors there ever were: 0."""
    return 0


def memory_stats(device: Any = None) -> dict[str, Any]:
    """The allocator's statistics: none."""
    return {}


def get_rng_state_all() -> list[Any]:
    """The states of all MTIA generators: none."""
    return []


def manual_seed(seed: int) -> None:
    """Seeds no device; the CPU generator is seeded by `torch.manual_seed`."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Seeds no device; the CPU generator is seeded by `torch.manual_seed`."""
    int(seed)


def seed() -> None:
    """Seeds no device."""


def seed_all() -> None:
    """Seeds no device."""


def init() -> NoReturn:
    """Raises: there is no MTIA to start."""
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
