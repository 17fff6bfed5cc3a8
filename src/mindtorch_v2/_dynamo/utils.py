"""Questions about torch's compiler that programs ask. There is none."""

from __future__ import annotations

from typing import Any


def is_compile_supported(device_type: Any) -> bool:
    """Whether code for a device can be compiled: no."""
    return False
