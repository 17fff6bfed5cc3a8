"""LazyModuleMixin: modules whose parameter shapes are inferred from their first call."""

from __future__ import annotations

import itertools
from typing import Any, Protocol

import mindtorch_v2 as torch

from ..parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class _LazyProtocol(Protocol):  # noqa: PYI046  (torch's name; the mixin itself types `self` as Any)
    """The attributes that the mixin uses of its module."""

    def _register_load_state_dict_pre_hook(self, hook: Any) -> Any: ...

    def register_forward_pre_hook(
        self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False
    ) -> Any: ...

    def _lazy_load_hook(
        self,
        state_dict: Any,
        prefix: Any,
        local_metadata: Any,
        strict: Any,
        missing_keys: Any,
        unexpected_keys: Any,
        error_msgs: Any,
    ) -> None: ...

    def _get_name(self) -> str: ...

    def _infer_parameters(self, module: Any, input: Any) -> None: ...

    @property
    def _parameters(self) -> Any: ...

    @property
    def _buffers(self) -> Any: ...

    @property
    def _non_persistent_buffers_set(self) -> Any: ...

    @property
    def _load_hook(self) -> Any: ...

    @property
    def _initialize_hook(self) -> Any: ...


class LazyModuleMixin:
    """Mixed in before a Module: calls `initialize_parameters` with the arguments of the first call.

    `cls_to_become` is the class of the module once all shapes are known.
    """

    cls_to_become: type[Any] | None = None

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[misc]
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self: Any, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if is_lazy(param) or keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if is_lazy(buffer) or keep_vars else buffer.detach()

    def _lazy_load_hook(
        self: Any,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Give uninitialised members the shapes of the tensors that are about to be loaded."""
        for name, param in itertools.chain(self._parameters.items(), self._buffers.items()):
            key = prefix + name
            if key in state_dict and param is not None and is_lazy(param):
                value = state_dict[key]
                if not is_lazy(value):
                    with torch.no_grad():
                        param.materialize(value.shape)

    def initialize_parameters(self: Any, *args: Any, **kwargs: Any) -> None:
        """Materialize the parameters for these arguments of the first call: defined by subclasses."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self: Any) -> bool:
        """Whether any parameter or buffer is still uninitialised."""
        return any(is_lazy(p) for p in itertools.chain(self._parameters.values(), self._buffers.values()))

    def _infer_parameters(self: Any, module: Any, args: Any, kwargs: Any = None) -> None:
        """The forward pre-hook: initialise, then remove everything lazy from the module."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook
        del module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self: Any) -> Any:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward "
            "pass to "
            "correctly initialize the modules"
        )
