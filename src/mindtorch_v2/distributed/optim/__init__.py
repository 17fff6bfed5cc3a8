"""torch.distributed.optim: an optimizer whose state is divided among the processes."""

from __future__ import annotations

from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]
