"""torch.distributed.autograd: names only; backward passes do not cross processes."""

from __future__ import annotations

from typing import Any

from ..._refused import refused_class, refused_function

_REASON = "backward passes do not cross processes; use DistributedDataParallel or torch.distributed.nn"
context: Any = refused_class("torch.distributed.autograd", "context", _REASON)
backward = refused_function("torch.distributed.autograd", "backward", _REASON)
get_gradients = refused_function("torch.distributed.autograd", "get_gradients", _REASON)

__all__ = ["backward", "context", "get_gradients", "is_available"]


def is_available() -> bool:
    """Whether backward passes can cross processes: no."""
    return False
