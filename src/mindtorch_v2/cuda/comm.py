"""torch.cuda.comm: copies between GPUs. The names can be imported; calls raise, because there are no GPUs."""

from __future__ import annotations

from .._refused import refused_function

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]

broadcast, broadcast_coalesced, gather, reduce_add, reduce_add_coalesced, scatter = (
    refused_function("torch.cuda.comm", name, "it copies between GPUs; this library runs on the CPU only")
    for name in __all__
)
