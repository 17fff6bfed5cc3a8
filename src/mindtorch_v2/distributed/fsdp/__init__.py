"""torch.distributed.fsdp: names only. Parameters are not sharded by this library; DistributedDataParallel replicates them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from ..._refused import refused_class, refused_function

_REASON = "parameters cannot be sharded; use torch.nn.parallel.DistributedDataParallel"


class ShardingStrategy(Enum):
    """What is sharded."""

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When the next parameters are gathered."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


class StateDictType(Enum):
    """The form of a state dict."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


class OptimStateKeyType(Enum):
    """What the keys of an optimizer's state dict are."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


@dataclass
class CPUOffload:
    """Whether parameters are kept on the CPU."""

    offload_params: bool = False


@dataclass
class MixedPrecision:
    """The dtypes of parameters, reductions and buffers."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True


FullyShardedDataParallel: Any = refused_class("torch.distributed.fsdp", "FullyShardedDataParallel", _REASON)
FSDPModule: Any = refused_class("torch.distributed.fsdp", "FSDPModule", _REASON)
FullStateDictConfig: Any = refused_class("torch.distributed.fsdp", "FullStateDictConfig", _REASON)
FullOptimStateDictConfig: Any = refused_class("torch.distributed.fsdp", "FullOptimStateDictConfig", _REASON)
ShardedStateDictConfig: Any = refused_class("torch.distributed.fsdp", "ShardedStateDictConfig", _REASON)
ShardedOptimStateDictConfig: Any = refused_class(
    "torch.distributed.fsdp", "ShardedOptimStateDictConfig", _REASON
)
StateDictConfig: Any = refused_class("torch.distributed.fsdp", "StateDictConfig", _REASON)
LocalStateDictConfig: Any = refused_class("torch.distributed.fsdp", "LocalStateDictConfig", _REASON)
LocalOptimStateDictConfig: Any = refused_class("torch.distributed.fsdp", "LocalOptimStateDictConfig", _REASON)
StateDictSettings: Any = refused_class("torch.distributed.fsdp", "StateDictSettings", _REASON)
OptimStateDictConfig: Any = refused_class("torch.distributed.fsdp", "OptimStateDictConfig", _REASON)
MixedPrecisionPolicy: Any = refused_class("torch.distributed.fsdp", "MixedPrecisionPolicy", _REASON)
CPUOffloadPolicy: Any = refused_class("torch.distributed.fsdp", "CPUOffloadPolicy", _REASON)
OffloadPolicy: Any = refused_class("torch.distributed.fsdp", "OffloadPolicy", _REASON)
fully_shard = refused_function("torch.distributed.fsdp", "fully_shard", _REASON)
register_fsdp_forward_method = refused_function(
    "torch.distributed.fsdp", "register_fsdp_forward_method", _REASON
)

__all__ = [
    "BackwardPrefetch", "CPUOffload", "CPUOffloadPolicy", "FSDPModule", "FullOptimStateDictConfig", "FullStateDictConfig",
    "FullyShardedDataParallel", "LocalOptimStateDictConfig", "LocalStateDictConfig", "MixedPrecision", "MixedPrecisionPolicy",
    "OffloadPolicy", "OptimStateDictConfig", "OptimStateKeyType",
    "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig", "StateDictSettings", "StateDictType", "fully_shard",
    "register_fsdp_forward_method",
]  # fmt: skip
