"""torch.backends.nnpack: a library this package does not use. Its flag can be set and read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = ["is_available", "flags", "set_flags"]

enabled: bool = True


def is_available() -> bool:
    """Whether the package was built with NNPACK: no."""
    return False


def set_flags(_enabled: bool) -> tuple[bool]:
    """Set the flag; returns the previous value."""
    global enabled
    before = (enabled,)
    enabled = _enabled
    return before


@contextlib.contextmanager
def flags(enabled: bool = False) -> Iterator[None]:
    """Context manager: another value of the flag."""
    before = set_flags(enabled)
    try:
        yield
    finally:
        set_flags(*before)
