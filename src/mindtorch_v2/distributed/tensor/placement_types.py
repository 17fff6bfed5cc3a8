"""torch.distributed.tensor.placement_types: how a tensor lies on a mesh of processes. Tensors are not spread here: the classes refuse."""

from typing import Any

from .._refused import refused_class
from . import Partial, Placement, Replicate, Shard

__all__ = ["Partial", "Placement", "Replicate", "Shard"]

_StridedShard: Any = refused_class("tensor", "_StridedShard", "a tensor is not spread over processes here")
