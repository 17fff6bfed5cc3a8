"""torch.distributed.fsdp.wrap: which modules a policy would wrap. The policies answer; wrapping itself is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mindtorch_v2.nn import Module, ModuleDict, ModuleList, MultiheadAttention

from ..._refused import refused_class
from . import _REASON

__all__ = [
    "CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy", "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy", "wrap",
]  # fmt: skip


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Wraps every module."""
    return True


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], bool]
) -> bool:
    """Wraps the modules that a function accepts."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: set[type[Module]]
) -> bool:
    """Wraps the modules of these classes."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = int(1e8),
    force_leaf_modules: set[type[Module]] | None = None,
    exclude_wrap_modules: set[type[Module]] | None = None,
) -> bool:
    """Wraps modules with at least so many parameters, and looks for more inside these."""
    leaves = {MultiheadAttention} if force_leaf_modules is None else force_leaf_modules
    excluded = {ModuleList, ModuleDict} if exclude_wrap_modules is None else exclude_wrap_modules
    return nonwrapped_numel >= min_num_params and not isinstance(
        module, tuple(leaves if recurse else excluded)
    )


class ModuleWrapPolicy:
    """Wraps the modules of these classes."""

    def __init__(self, module_classes: Iterable[type[Module]]) -> None:
        self._module_classes = set(module_classes)

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or isinstance(module, tuple(self._module_classes))

    def __repr__(self) -> str:
        return f"{super().__repr__()}({self._module_classes})"


class CustomPolicy:
    """Wraps the modules that a function accepts, which may return options for each."""

    def __init__(self, lambda_fn: Callable[[Module], bool | dict[str, Any]]) -> None:
        self._lambda_fn = lambda_fn


def wrap(module: Module, **wrap_overrides: Any) -> Module:
    """The module itself, as in torch outside of `enable_wrap`."""
    return module


enable_wrap: Any = refused_class("torch.distributed.fsdp.wrap", "enable_wrap", _REASON)
