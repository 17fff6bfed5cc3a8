"""torch.cuda.amp's deprecated names for autocast; they warn and call torch.amp, which is off for CUDA."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from ...amp import autocast_mode

__all__ = ["autocast", "custom_fwd", "custom_bwd"]


class autocast(autocast_mode.autocast):
    """Old name of `torch.amp.autocast('cuda', ...)`."""

    def __init__(self, enabled: bool = True, dtype: Any = torch.float16, cache_enabled: bool = True) -> None:
        warnings.warn(
            "`torch.cuda.amp.autocast(args...)` is deprecated. "
            "Please use `torch.amp.autocast('cuda', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


def custom_fwd(fwd: Callable | None = None, *, cast_inputs: Any = None) -> Any:
    """Old name of `torch.amp.custom_fwd(..., device_type='cuda')`."""
    warnings.warn(
        "`torch.cuda.amp.custom_fwd(args...)` is deprecated. "
        "Please use `torch.amp.custom_fwd(args..., device_type='cuda')` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return functools.partial(autocast_mode.custom_fwd, device_type="cuda")(fwd=fwd, cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable) -> Any:
    """Old name of `torch.amp.custom_bwd(..., device_type='cuda')`."""
    warnings.warn(
        "`torch.cuda.amp.custom_bwd(args...)` is deprecated. "
        "Please use `torch.amp.custom_bwd(args..., device_type='cuda')` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return functools.partial(autocast_mode.custom_bwd, device_type="cuda")(bwd)
