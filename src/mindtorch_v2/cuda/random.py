"""CUDA's random state: seeds are accepted and ignored, because there is no device; reading the state raises."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ._absent import no_cuda

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "set_rng_state",
    "set_rng_state_all",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "initial_seed",
]


def get_rng_state(device: Any = "cuda") -> Any:
    """Raises: there is no CUDA generator."""
    raise no_cuda()


def get_rng_state_all() -> list[Any]:
    """The states of all CUDA generators: none."""
    return []


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Accept a state for a device that never exists, as torch's CPU build does."""
    new_state.clone()


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Accept one state per device."""
    for state in new_states:
        set_rng_state(state)


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


def initial_seed() -> int:
    """Raises: there is no CUDA generator."""
    raise no_cuda()
