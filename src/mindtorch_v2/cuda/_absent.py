"""The errors of a build without CUDA, in torch's words. Nothing here touches a device."""

from __future__ import annotations


def no_cuda() -> AssertionError:
    """Raise the error of every call that needs a CUDA device."""
    return AssertionError("Torch not compiled with CUDA enabled")


def no_base(name: str) -> RuntimeError:
    """Raise the error of torch's CPU build for constructing a CUDA object."""
    return RuntimeError(f"Tried to instantiate dummy base class {name}")
