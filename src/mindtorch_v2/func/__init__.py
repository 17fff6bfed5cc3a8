"""torch.func: calls and states of modules as functions."""

from __future__ import annotations

from ._modules import functional_call, replace_all_batch_norm_modules_, stack_module_state

__all__ = ["replace_all_batch_norm_modules_", "functional_call", "stack_module_state"]
