"""torch.utils._triton: whether kernels can be compiled with Triton. They cannot."""

from __future__ import annotations

__all__ = ["has_triton", "has_triton_package"]


def has_triton() -> bool:
    """No: there is no compiler."""
    return False


def has_triton_package() -> bool:
    """No: the package would not be used."""
    return False
