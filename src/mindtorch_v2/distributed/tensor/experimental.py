"""torch.distributed.tensor.experimental: names only."""

from ..._refused import refused_function

__all__ = ["implicit_replication"]

implicit_replication = refused_function(
    "torch.distributed.tensor.experimental", "implicit_replication", "tensors cannot be spread over processes"
)
