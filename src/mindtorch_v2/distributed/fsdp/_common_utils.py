"""torch.distributed.fsdp._common_utils: the class that packages ask modules' states for, and names without wrappers."""

from __future__ import annotations

from typing import Any

from ..._refused import refused_class

_FSDPState: Any = refused_class(
    "torch.distributed.fsdp._common_utils",
    "_FSDPState",
    "parameters cannot be sharded; use torch.nn.parallel.DistributedDataParallel",
)


def clean_tensor_name(tensor_name: str) -> str:
    """The name of a parameter without the parts that FSDP and activation checkpointing add."""
    for part in ("_fsdp_wrapped_module.", "_checkpoint_wrapped_module."):
        tensor_name = tensor_name.replace(part, "")
    return tensor_name
