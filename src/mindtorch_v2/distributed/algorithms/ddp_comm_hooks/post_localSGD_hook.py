# ruff: noqa: N816, N999  (names of torch)
"""torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook: names only; every step averages the gradients of all processes."""

from __future__ import annotations

from ...._refused import refused_class, refused_function

_MODULE = "torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook"
_REASON = "every backward averages over all processes, unless it runs in DistributedDataParallel.no_sync()"
PostLocalSGDState = refused_class(_MODULE, "PostLocalSGDState", _REASON)
post_localSGD_hook = refused_function(_MODULE, "post_localSGD_hook", _REASON)

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]
