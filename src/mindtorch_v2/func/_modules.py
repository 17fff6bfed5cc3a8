"""Functional calls of modules with given parameters and buffers, and stacked states of several modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindtorch_v2 as torch


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: dict[str, torch.Tensor] | Sequence[dict[str, torch.Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in place of its parameters and buffers."""
    from ..nn.utils.stateless import _functional_call

    if isinstance(parameter_and_buffer_dicts, dict):
        tensors = parameter_and_buffer_dicts
    elif isinstance(parameter_and_buffer_dicts, Sequence):
        tensors = _merge_dicts(parameter_and_buffer_dicts)
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, "
            f"but got {type(parameter_and_buffer_dicts)}"
        )
    return _functional_call(module, tensors, args, kwargs, tie_weights=tie_weights, strict=strict)


def _merge_dicts(dicts: Sequence[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    keys = [key for d in dicts for key in d]
    repeated = [key for key in dict.fromkeys(keys) if keys.count(key) > 1]
    if repeated:
        raise ValueError(
            f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous"
        )
    return {key: value for d in dicts for key, value in d.items()}


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and buffers of models of one kind, each stacked along a new first dimension."""
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(members: list[dict[str, Any]]) -> dict[str, Any]:
        return {name: _stack_leaves(name, [member[name] for member in members]) for name in members[0]}

    params = stacked([dict(model.named_parameters()) for model in models])
    buffers = stacked([dict(model.named_buffers()) for model in models])
    return params, buffers


def _stack_leaves(name: str, tensors: list[torch.Tensor]) -> torch.Tensor:
    """A stack that is a leaf: gradients stop at it."""
    if len({t.requires_grad for t in tensors}) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    return torch.stack([t.detach() for t in tensors]).requires_grad_(tensors[0].requires_grad)


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Make every batch norm below `root` work without running statistics, in place."""
    for module in root.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm) and module.track_running_stats:
            module.running_mean = None
            module.running_var = None
            module.num_batches_tracked = None
            module.track_running_stats = False
    return root
