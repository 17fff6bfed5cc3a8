"""torch.cpu.amp's deprecated name for autocast; it warns and calls torch.amp."""

from __future__ import annotations

import warnings
from typing import Any

import mindtorch_v2 as torch

from ...amp import autocast_mode

__all__ = ["autocast"]


class autocast(autocast_mode.autocast):
    """Old name of `torch.amp.autocast('cpu', ...)`."""

    def __init__(self, enabled: bool = True, dtype: Any = torch.bfloat16, cache_enabled: bool = True) -> None:
        warnings.warn(
            "`torch.cpu.amp.autocast(args...)` is deprecated. "
            "Please use `torch.amp.autocast('cpu', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)
