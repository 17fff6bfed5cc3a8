"""Creates modules without initialising their parameters."""

from __future__ import annotations

import inspect
from typing import Any

import mindtorch_v2 as torch


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Create a module on the meta device, then allocate memory with undefined values."""
    if not issubclass(module_cls, torch.nn.Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    final_device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=final_device)
