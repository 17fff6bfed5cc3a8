"""Wrap a module so that its activations are computed again in backward."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import Any

from mindtorch_v2.nn import Module
from mindtorch_v2.utils.checkpoint import checkpoint

_PREFIX = "_checkpoint_wrapped_module."


class CheckpointImpl(Enum):
    """Which implementation of checkpointing."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class CheckpointWrapper(Module):
    """A module whose `forward` is checkpointed; its state dict has the wrapped module's names."""

    def __init__(
        self,
        mod: Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        reentrant = checkpoint_impl is CheckpointImpl.REENTRANT
        self.checkpoint_fn = (
            partial(checkpoint, use_reentrant=reentrant, **checkpoint_fn_kwargs)
            if checkpoint_fn is None
            else partial(checkpoint_fn, **checkpoint_fn_kwargs)
        )
        self._register_state_dict_hook(_without_prefix)
        self.register_load_state_dict_pre_hook(_with_prefix)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module with checkpointing."""
        return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)


def _without_prefix(module: Module, state_dict: dict[str, Any], prefix: str, *args: Any) -> dict[str, Any]:
    for key in [k for k in state_dict if k.startswith(prefix + _PREFIX)]:
        state_dict[prefix + key[len(prefix + _PREFIX) :]] = state_dict.pop(key)
    return state_dict


def _with_prefix(module: Module, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
    for key in [k for k in state_dict if k.startswith(prefix) and not k.startswith(prefix + _PREFIX)]:
        state_dict[prefix + _PREFIX + key[len(prefix) :]] = state_dict.pop(key)


def checkpoint_wrapper(
    module: Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None,
    **checkpoint_fn_kwargs: Any,
) -> Module:
    """A wrapped module."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model: Module,
    checkpoint_wrapper_fn: Callable[[Module], Module] = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda _: True,
    auto_wrap_policy: Any = None,
) -> None:
    """Wrap the submodules that `check_fn` chooses, in place."""
    if auto_wrap_policy is not None:
        raise NotImplementedError(
            "apply_activation_checkpointing: auto_wrap_policy is not supported; use check_fn"
        )
    for name, child in list(model.named_children()):
        apply_activation_checkpointing(child, checkpoint_wrapper_fn, check_fn)
        if check_fn(child):
            setattr(model, name, checkpoint_wrapper_fn(child))
