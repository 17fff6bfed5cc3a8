"""torch.xpu: Intel's GPUs, not available here. Queries return what torch's CPU build returns, work raises."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, NoReturn

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "default_generators",
    "device_count",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "is_tf32_supported",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]

default_generators: tuple[Any, ...] = ()


def _no_xpu() -> AssertionError:
    return AssertionError("Torch not compiled with XPU enabled")


def _no_base(name: str) -> RuntimeError:
    return RuntimeError(f"Tried to instantiate dummy base class {name}")


def is_available() -> bool:
    """Whether an XPU can be used: no."""
    return False


def device_count() -> int:
    """The number of XPUs: 0."""
    return 0


def is_initialized() -> bool:
    """Whether XPU has been initialised: no."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current XPU computes in bfloat16: there is none."""
    return False


def is_tf32_supported() -> bool:
    """Whether the current XPU computes in TF32: there is none."""
    return False


def get_arch_list() -> list[str]:
    """XPU architectures this build was compiled for: none."""
    return []


def get_gencode_flags() -> str:
    """Compiler flags for those architectures: none."""
    return ""


def is_current_stream_capturing() -> bool:
    """Whether a graph is being captured: never."""
    return False


def reset_peak_memory_stats(device: Any = None) -> None:
    """Forget the largest use of memory; there is none."""


def empty_cache() -> None:
    """No effect: nothing is cached."""


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


def memory_stats(device: Any = None) -> dict[str, Any]:
    """The allocator's statistics: none."""
    return OrderedDict()


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """The allocator's statistics: none."""
    return {}


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


def get_rng_state_all() -> list[Any]:
    """The states of all XPU generators: none."""
    return []


def set_rng_state(new_state: Any, device: Any = "xpu") -> None:
    """Accept a state for a device that never exists, as torch's CPU build does."""
    new_state.clone()


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Accept one state per device."""
    for state in new_states:
        set_rng_state(state)


def get_rng_state(device: Any = "xpu") -> NoReturn:
    """Raises: there is no XPU generator."""
    raise _no_xpu()


def initial_seed() -> NoReturn:
    """Raises: there is no XPU generator."""
    raise _no_xpu()


def init() -> NoReturn:
    """Raises: there is no XPU to initialise."""
    raise _no_xpu()


def current_device() -> NoReturn:
    """Raises: there is no XPU."""
    raise _no_xpu()


def set_device(device: Any) -> NoReturn:
    """Raises: there is no XPU."""
    raise _no_xpu()


def synchronize(device: Any = None) -> NoReturn:
    """Raises: there is no XPU to wait for."""
    raise _no_xpu()


def current_stream(device: Any = None) -> NoReturn:
    """Raises: there is no XPU stream."""
    raise _no_xpu()


def get_device_name(device: Any = None) -> NoReturn:
    """Raises: there is no XPU."""
    raise _no_xpu()


def get_device_capability(device: Any = None) -> NoReturn:
    """Raises: there is no XPU."""
    raise _no_xpu()


def get_device_properties(device: Any = None) -> NoReturn:
    """Raises: there is no XPU."""
    raise _no_xpu()


def mem_get_info(device: Any = None) -> NoReturn:
    """Raises: there is no XPU memory."""
    raise _no_xpu()


class Stream:
    """An XPU stream; cannot be built without XPU."""

    def __new__(cls, device: Any = None, priority: int = 0, **kwargs: Any) -> NoReturn:
        raise _no_base("Stream")


class Event:
    """An XPU event; cannot be built without XPU."""

    def __new__(cls, enable_timing: bool = False) -> NoReturn:
        raise _no_base("Event")


class StreamContext:
    """Context manager: use an XPU stream. Only `None` is possible, which has no effect."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        return None


def stream(stream: Stream | None) -> StreamContext:
    """Context manager: use `stream`."""
    return StreamContext(stream)


def set_stream(stream: Stream | None) -> None:
    """Select the stream; only `None` is possible, which has no effect."""
    if stream is not None:
        raise _no_xpu()
