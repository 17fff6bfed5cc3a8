"""torch.distributed._functional_collectives: collectives that return new tensors."""

from __future__ import annotations

from typing import Any


def wait_tensor(tensor: Any) -> Any:
    """The tensor: collectives are complete when they return."""
    return tensor
