"""torch.distributed.fsdp: names only. Parameters are not sharded by this library; DistributedDataParallel replicates them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from .._refused import refused_class, refused_function

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


FullyShardedDataParallel: Any = refused_class("fsdp", "FullyShardedDataParallel", _REASON)
FSDPModule: Any = refused_class("fsdp", "FSDPModule", _REASON)
FullStateDictConfig: Any = refused_class("fsdp", "FullStateDictConfig", _REASON)
FullOptimStateDictConfig: Any = refused_class("fsdp", "FullOptimStateDictConfig", _REASON)
ShardedStateDictConfig: Any = refused_class("fsdp", "ShardedStateDictConfig", _REASON)
ShardedOptimStateDictConfig: Any = refused_class("fsdp", "ShardedOptimStateDictConfig", _REASON)
StateDictConfig: Any = refused_class("fsdp", "StateDictConfig", _REASON)
LocalStateDictConfig: Any = refused_class("fsdp", "LocalStateDictConfig", _REASON)
LocalOptimStateDictConfig: Any = refused_class("fsdp", "LocalOptimStateDictConfig", _REASON)
StateDictSettings: Any = refused_class("fsdp", "StateDictSettings", _REASON)
OptimStateDictConfig: Any = refused_class("fsdp", "OptimStateDictConfig", _REASON)
MixedPrecisionPolicy: Any = refused_class("fsdp", "MixedPrecisionPolicy", _REASON)
CPUOffloadPolicy: Any = refused_class("fsdp", "CPUOffloadPolicy", _REASON)
OffloadPolicy: Any = refused_class("fsdp", "OffloadPolicy", _REASON)
fully_shard = refused_function("fsdp", "fully_shard", _REASON)
register_fsdp_forward_method = refused_function("fsdp", "register_fsdp_forward_method", _REASON)

__all__ = [
    "BackwardPrefetch", "CPUOffload", "CPUOffloadPolicy", "FSDPModule", "FullOptimStateDictConfig", "FullStateDictConfig",
    "FullyShardedDataParallel", "LocalOptimStateDictConfig", "LocalStateDictConfig", "MixedPrecision", "MixedPrecisionPolicy",
    "OffloadPolicy", "OptimStateDictConfig",
    "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig", "StateDictSettings", "StateDictType", "fully_shard",
    "register_fsdp_forward_method",
]  # fmt: skip
