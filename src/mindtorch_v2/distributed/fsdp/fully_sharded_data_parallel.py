"""torch.distributed.fsdp.fully_sharded_data_parallel: the class that packages test models for, and the options beside it."""

from . import FullyShardedDataParallel  # noqa: F401
from .api import *  # noqa: F403
