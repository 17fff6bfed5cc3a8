"""torch.distributed.tensor.parallel: names only."""

from __future__ import annotations

from typing import Any

from ...._refused import refused_class, refused_function

_REASON = "tensors cannot be spread over processes; use the collectives of torch.distributed"
ColwiseParallel: Any = refused_class("torch.distributed.tensor.parallel", "ColwiseParallel", _REASON)
ParallelStyle: Any = refused_class("torch.distributed.tensor.parallel", "ParallelStyle", _REASON)
PrepareModuleInput: Any = refused_class("torch.distributed.tensor.parallel", "PrepareModuleInput", _REASON)
PrepareModuleOutput: Any = refused_class("torch.distributed.tensor.parallel", "PrepareModuleOutput", _REASON)
RowwiseParallel: Any = refused_class("torch.distributed.tensor.parallel", "RowwiseParallel", _REASON)
SequenceParallel: Any = refused_class("torch.distributed.tensor.parallel", "SequenceParallel", _REASON)
loss_parallel = refused_function("torch.distributed.tensor.parallel", "loss_parallel", _REASON)
parallelize_module = refused_function("torch.distributed.tensor.parallel", "parallelize_module", _REASON)

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleOutput", "RowwiseParallel", "SequenceParallel", "loss_parallel",
    "parallelize_module",
]  # fmt: skip
