"""torch.distributed._composable.fsdp: the old place of these names of torch.distributed.fsdp."""

from ...fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, fully_shard

__all__ = ["CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "fully_shard"]
