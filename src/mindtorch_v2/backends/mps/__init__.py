"""torch.backends.mps: Apple's GPUs, which this package does not use."""

from __future__ import annotations

__all__ = ["is_built", "is_available", "is_macos13_or_newer", "is_macos_or_newer"]


def is_built() -> bool:
    """Whether this build has MPS: no."""
    return False


def is_available() -> bool:
    """Whether MPS can be used: no."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Raises: only a build with MPS can tell."""
    raise RuntimeError("Cannot execute isOnMacOSorNewer() without MPS backend.")


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Raises: only a build with MPS can tell."""
    return is_macos_or_newer(13, minor)
