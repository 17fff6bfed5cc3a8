"""torch.multiprocessing: the standard library's module with torch's additions. Tensors are sent as copies."""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403

from .spawn import (  # noqa: F401
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = ["set_sharing_strategy", "get_sharing_strategy", "get_all_sharing_strategies"]
__all__ += multiprocessing.__all__  # type: ignore[attr-defined]

_all_sharing_strategies = {"file_descriptor", "file_system"}
_sharing_strategy = "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Set how torch would share tensor memory. The setting is stored; tensors are always copied here."""
    global _sharing_strategy
    if new_strategy not in _all_sharing_strategies:
        raise AssertionError(
            f"invalid sharing strategy '{new_strategy}', expected one of {_all_sharing_strategies}"
        )
    _sharing_strategy = new_strategy


def get_sharing_strategy() -> str:
    """The current strategy."""
    return _sharing_strategy


def get_all_sharing_strategies() -> set[str]:
    """The possible strategies."""
    return _all_sharing_strategies
