"""torch.distributed.algorithms: communication hooks of DistributedDataParallel, and `Join`."""

from __future__ import annotations

from .join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
