"""functorch's functional modules: a module in, a function of parameters (and buffers) and inputs out."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import mindtorch_v2 as torch

from ..func import functional_call
from ..nn import Module, Parameter

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combined_state",
    "functional_module",
    "functional_module_with_buffers",
]


def _stateless_copy(model: Module) -> Module:
    """A copy whose parameters and buffers have no values: they come with each call."""
    with torch.no_grad():
        return copy.deepcopy(model).to("meta")


def _parameters(model: Module, disable_autograd_tracking: bool) -> tuple:
    """Copies of the parameters, each once, which require gradients as theirs do unless tracking is disabled."""
    return tuple(
        Parameter(p.detach().clone(), p.requires_grad and not disable_autograd_tracking)
        for p in model.parameters()
    )


class FunctionalModuleWithBuffers(Module):
    """A module without state: called with parameters, buffers and inputs."""

    def __init__(self, stateless_model: Module, param_names: tuple, buffer_names: tuple) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = param_names, buffer_names

    def forward(self, params: Sequence[Any], buffers: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        """The module's result with this state; buffers are updated in place."""
        state = {**dict(zip(self.param_names, params)), **dict(zip(self.buffer_names, buffers))}
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(Module):
    """A module without buffers and without state: called with parameters and inputs."""

    def __init__(self, stateless_model: Module, param_names: tuple) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names

    def forward(self, params: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        """The module's result with these parameters."""
        return functional_call(self.stateless_model, dict(zip(self.param_names, params)), args, kwargs)


def _names(named: Any) -> tuple:
    return tuple(name for name, _ in named)


def functional_module(model: Module, disable_autograd_tracking: bool = False) -> Any:
    """The function and the parameters of a module that has no buffers."""
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    names = _names(model.named_parameters())
    return FunctionalModule(_stateless_copy(model), names), _parameters(model, disable_autograd_tracking)


def functional_module_with_buffers(model: Module, disable_autograd_tracking: bool = False) -> Any:
    """The function, the parameters and the buffers of a module."""
    function = FunctionalModuleWithBuffers(
        _stateless_copy(model), _names(model.named_parameters()), _names(model.named_buffers())
    )
    buffers = tuple(buffer.clone() for buffer in model.buffers())
    return function, _parameters(model, disable_autograd_tracking), buffers


def combined_state(models: Sequence[Module]) -> Any:
    """One function for modules of the same kind, and their parameters and buffers, stacked."""
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError(
            "combine_state_for_ensemble: Expected all models to have the same training/eval mode."
        )
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    functions, parameters, buffers = zip(*(functional_module_with_buffers(m) for m in models))
    with torch.no_grad():  # the stacked parameters are leaves
        return functions[0], tuple(map(torch.stack, zip(*parameters))), tuple(map(torch.stack, zip(*buffers)))
