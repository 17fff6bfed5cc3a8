"""torch.backends.cudnn: flags of a library that is not used here. They can be set and read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .._precision import FP32Precision

__all__ = ["version", "is_available", "is_acceptable", "set_flags", "flags"]

enabled: bool = True
benchmark: bool = False
benchmark_limit: int | None = None
deterministic: bool = False
allow_tf32: bool = True
fp32_precision: str = "none"
depthwise_kernel: str = "auto"
conv = FP32Precision("tf32")
rnn = FP32Precision("tf32")


def version() -> int | None:
    """The version of cuDNN: None."""
    return None


def is_available() -> bool:
    """Whether cuDNN can be used: no."""
    return False


def is_acceptable(tensor: Any) -> bool:
    """Whether cuDNN accepts a tensor: no."""
    return False


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str = "none",
    _depthwise_kernel: str | None = None,
) -> tuple[Any, ...]:
    """Set the flags that are not None; returns the previous values of all."""
    global enabled, benchmark, deterministic, allow_tf32, fp32_precision, depthwise_kernel
    before = (
        enabled,
        benchmark,
        benchmark_limit,
        deterministic,
        allow_tf32,
        fp32_precision,
        depthwise_kernel,
    )
    enabled = enabled if _enabled is None else _enabled
    benchmark = benchmark if _benchmark is None else _benchmark
    deterministic = deterministic if _deterministic is None else _deterministic
    allow_tf32 = allow_tf32 if _allow_tf32 is None else _allow_tf32
    depthwise_kernel = depthwise_kernel if _depthwise_kernel is None else _depthwise_kernel
    fp32_precision = _fp32_precision
    return before


@contextlib.contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
    depthwise_kernel: str = "auto",
) -> Iterator[None]:
    """Context manager: other flags."""
    before = set_flags(
        enabled, benchmark, benchmark_limit, deterministic, allow_tf32, fp32_precision, depthwise_kernel
    )
    try:
        yield
    finally:
        set_flags(*before)
