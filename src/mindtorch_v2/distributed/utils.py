"""torch.distributed.utils: names that frameworks import."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []


def _verify_param_shape_across_processes(process_group: Any, tensors: Any, logger: Any = None) -> None:
    """Raise if the processes have tensors of other shapes."""
    from .distributed_c10d import all_gather_object

    shapes: list[Any] = [None] * process_group.size()
    all_gather_object(shapes, [tuple(t.shape) for t in tensors], process_group)
    for rank, others in enumerate(shapes):
        if others != shapes[0]:
            raise RuntimeError(
                f"DDP expects same model across all ranks, but rank {rank} has other shapes than rank 0"
            )
