"""The errors of a build without CUDA, in torch's words. Nothing here touches a device."""

from __future__ import annotations


def no_cuda() -> AssertionError:
    """What every call that needs a CUDA device raises."""
    return AssertionError("Torch not compiled with CUDA enabled")


def no_base(name: str) -> RuntimeError:
    """What torch's CPU build raises when a CUDA object is built."""
    return RuntimeError(f"Tried to instantiate dummy base class {name}")
