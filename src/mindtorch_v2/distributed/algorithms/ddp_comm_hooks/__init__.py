"""torch.distributed.algorithms.ddp_comm_hooks: functions that reduce the gradient buckets of DistributedDataParallel."""

from __future__ import annotations

from . import default_hooks as default_hooks
from . import post_localSGD_hook as post_localSGD_hook
from . import powerSGD_hook as powerSGD_hook
