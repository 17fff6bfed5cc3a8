"""torch.random: seeding and the state of the default generator."""

from __future__ import annotations

import contextlib
from collections.abc import Generator as _Iterator
from typing import Any

import mindtorch_v2 as torch

from ._random import Generator, default_generator

__all__ = [
    "set_rng_state",
    "get_rng_state",
    "manual_seed",
    "seed",
    "initial_seed",
    "fork_rng",
    "thread_safe_generator",
]


def set_rng_state(new_state: torch.Tensor) -> None:
    """Set the default generator's state."""
    default_generator.set_state(new_state)


def get_rng_state() -> torch.Tensor:
    """The default generator's state, as a ByteTensor in torch's layout."""
    return default_generator.get_state()


def manual_seed(seed: Any) -> Generator:
    """Seed the default generator and return it."""
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Seed the default generator from the operating system's entropy and return that seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The initial seed of the default generator."""
    return default_generator.initial_seed()


@contextlib.contextmanager
def fork_rng(
    devices: Any = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> _Iterator[None]:
    """Context manager: restores the state of the default generator at the end."""
    if device_type is not None and torch.device(device_type).type == "meta":
        yield
        return
    if not enabled:
        yield
        return
    if devices is not None and list(devices):
        raise AssertionError("Torch not compiled with CUDA enabled")
    state = default_generator.state_bytes()
    try:
        yield
    finally:
        default_generator.set_state_bytes(state)


def thread_safe_generator() -> Generator | None:
    """The generator of a data-loading thread: None, because workers are processes here."""
    return None
