"""torch.backends.mkldnn: oneDNN, which this package does not use. Its flags can be set and read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .._precision import FP32Precision

__all__ = [
    "is_available",
    "set_flags",
    "flags",
    "verbose",
    "VERBOSE_OFF",
    "VERBOSE_ON",
    "VERBOSE_ON_CREATION",
]

VERBOSE_OFF = 0
VERBOSE_ON = 1
VERBOSE_ON_CREATION = 2

enabled: bool = True
deterministic: bool = False
allow_tf32: bool | None = None
fp32_precision: str = "none"
matmul = FP32Precision()
conv = FP32Precision()
rnn = FP32Precision()


def is_available() -> bool:
    """Whether the package was built with oneDNN: no."""
    return False


def set_flags(
    _enabled: bool | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str = "none",
) -> tuple[Any, ...]:
    """Set the flags that are not None; returns the previous values of all."""
    global enabled, deterministic, allow_tf32, fp32_precision
    before = (enabled, deterministic, allow_tf32, fp32_precision)
    enabled = enabled if _enabled is None else _enabled
    deterministic = deterministic if _deterministic is None else _deterministic
    allow_tf32 = _allow_tf32
    fp32_precision = _fp32_precision
    return before


@contextlib.contextmanager
def flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True, fp32_precision: str = "none"
) -> Iterator[None]:
    """Context manager: other flags."""
    before = set_flags(enabled, deterministic, allow_tf32, fp32_precision)
    try:
        yield
    finally:
        set_flags(*before)


class verbose:
    """Context manager: verbose oneDNN. Turning it on raises, because there is no oneDNN."""

    def __init__(self, level: int) -> None:
        self.level = level

    def __enter__(self) -> verbose | None:
        if self.level == VERBOSE_OFF:
            return None
        raise RuntimeError("oneDNN verbose mode cannot be switched on: this package was built without oneDNN")

    def __exit__(self, *exception: object) -> None:
        return None
