"""torch.backends.opt_einsum: the contraction order of einsum. torch.einsum here contracts from left to right."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

__all__ = ["is_available", "get_opt_einsum", "set_flags", "flags"]

enabled: bool = False
strategy: str | None = None


def is_available() -> bool:
    """Whether the opt_einsum package is used: no."""
    return False


def get_opt_einsum() -> Any:
    """The opt_einsum package, if it is used: None."""
    return None


def set_flags(_enabled: bool | None = None, _strategy: str | None = None) -> tuple[bool, str | None]:
    """Set the flags; returns the previous values. Enabling it raises, because opt_einsum is not used."""
    global enabled, strategy
    if _enabled:
        raise ValueError(
            f"opt_einsum is not available, so setting `enabled` to {_enabled} will not reap the benefits of "
            "calculating an optimal path for einsum."
        )
    before = (enabled, strategy)
    enabled = enabled if _enabled is None else _enabled
    strategy = strategy if _strategy is None else _strategy
    return before


@contextlib.contextmanager
def flags(enabled: bool | None = None, strategy: str | None = None) -> Iterator[None]:
    """Context manager: other flags."""
    before = set_flags(enabled, strategy)
    try:
        yield
    finally:
        set_flags(*before)
