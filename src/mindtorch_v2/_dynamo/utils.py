"""Questions about torch's compiler that programs ask. There is none."""

from __future__ import annotations

import functools
import warnings
from typing import Any


def is_compile_supported(device_type: Any) -> bool:
    """Whether code for a device can be compiled: no."""
    return False


@functools.cache
def warn_once(msg: str, stacklevel: int = 1) -> None:
    """A warning, the first time that its text is used."""
    warnings.warn(msg, stacklevel=stacklevel + 1)
