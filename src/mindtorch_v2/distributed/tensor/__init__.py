"""torch.distributed.tensor: placements as plain values. This library has no tensors that are spread over processes."""

from __future__ import annotations

from typing import Any

from ..._refused import refused_class, refused_function
from ..device_mesh import DeviceMesh, init_device_mesh
from .placement_types import Partial, Placement, Replicate, Shard

_REASON = "tensors cannot be spread over processes; use the collectives of torch.distributed"

DTensor: Any = refused_class("torch.distributed.tensor", "DTensor", _REASON)
distribute_tensor = refused_function("torch.distributed.tensor", "distribute_tensor", _REASON)
distribute_module = refused_function("torch.distributed.tensor", "distribute_module", _REASON)

__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "init_device_mesh",
]  # fmt: skip
