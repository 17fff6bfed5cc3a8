# ruff: noqa: N816, N999  (names of torch)
"""torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook: names only; the hooks in `default_hooks` compress to half precision."""

from __future__ import annotations

from ...._refused import refused_class, refused_function

_MODULE = "torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook"
_REASON = "gradients are not factorised; use default_hooks.fp16_compress_hook or bf16_compress_hook"
PowerSGDState = refused_class(_MODULE, "PowerSGDState", _REASON)
powerSGD_hook = refused_function(_MODULE, "powerSGD_hook", _REASON)
batched_powerSGD_hook = refused_function(_MODULE, "batched_powerSGD_hook", _REASON)

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]
