"""torch.distributed.checkpoint.optimizer: names only. States of optimizers are not sharded here."""

from __future__ import annotations

from ..._refused import refused_function

__all__ = ["load_sharded_optimizer_state_dict"]

load_sharded_optimizer_state_dict = refused_function(
    "torch.distributed.checkpoint.optimizer",
    "load_sharded_optimizer_state_dict",
    "nothing is sharded; load the optimizer's state dict with torch.distributed.checkpoint.load",
)
