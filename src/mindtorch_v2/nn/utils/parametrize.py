"""Parametrizations: a tensor of a module becomes a function of another tensor, computed when it is read."""

from __future__ import annotations

import copyreg
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import mindtorch_v2 as torch

from ..modules.container import Module, ModuleDict, ModuleList
from ..parameter import Parameter

__all__ = [
    "cached",
    "ParametrizationList",
    "register_parametrization",
    "is_parametrized",
    "remove_parametrizations",
    "type_before_parametrizations",
    "transfer_parametrizations_and_params",
]

_cache_enabled = 0
_cache: dict[tuple[int, str], torch.Tensor | None] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Context manager: a parametrized tensor is computed once and then cached."""
    global _cache, _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache = {}


def _register_parameter_or_buffer(module: Any, name: str, X: Any) -> None:
    if isinstance(X, Parameter):
        module.register_parameter(name, X)
    else:
        module.register_buffer(name, X)


def _maybe_set(dest: torch.Tensor, src: torch.Tensor) -> None:
    """Give `dest` the memory of `src`: the tensor object stays the same, because an optimiser may refer to
    it.
    """
    dest.set_(src)


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in order, and the tensor or tensors they start from.

    They start from `original`, or from `original0`, `original1` ... if `right_inverse` returns several.
    """

    original: torch.Tensor
    unsafe: bool

    def __init__(
        self, modules: Sequence[Module], original: torch.Tensor | Parameter, unsafe: bool = False
    ) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        original_shape = original.shape
        original_dtype = original.dtype
        new = self._invert_all(original)
        if not isinstance(new, torch.Tensor) and not isinstance(new, Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, torch.Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            self._store_original(original, new)
        else:
            self._store_originals(original, new)
        if not self.unsafe:
            _check_unchanged(self(), original_shape, original_dtype)

    def _invert_all(self, original: torch.Tensor) -> Any:
        """The value that `original` is computed from, as far as the parametrizations can invert it."""
        new: Any = original
        with torch.no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    continue
                try:
                    new = module.right_inverse(new)
                except NotImplementedError:
                    pass
        return new

    def _store_original(self, original: torch.Tensor, new: Any) -> None:
        if original.dtype != new.dtype:
            raise ValueError(
                "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                f"original.dtype: {original.dtype}\n"
                f"right_inverse(original).dtype: {new.dtype}"
            )
        if original.device != new.device:
            raise ValueError(
                "When `right_inverse` outputs one tensor, it may not change the device.\n"
                f"original.device: {original.device}\n"
                f"right_inverse(original).device: {new.device}"
            )
        with torch.no_grad():
            _maybe_set(original, new)
        _register_parameter_or_buffer(self, "original", original)

    def _store_originals(self, original: torch.Tensor, new: Any) -> None:
        for i, original_i in enumerate(new):
            if not isinstance(original_i, torch.Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                    f"Got element {i} of the sequence with type {type(original_i).__name__}."
                )
            if isinstance(original, Parameter):
                original_i = Parameter(original_i, original.requires_grad)
            original_i.requires_grad_(original.requires_grad)
            _register_parameter_or_buffer(self, f"original{i}", original_i)

    def right_inverse(self, value: torch.Tensor) -> None:
        """Set the originals so that the parametrizations return `value`. Called when the tensor is assigned."""
        with torch.no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, torch.Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                _set_original(self.original, value, "The tensor", "original")
                return
            if not isinstance(value, Sequence):
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}."
                )
            if len(value) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. "
                    f"Got a sequence of length {len(value)}."
                )
            for i, tensor in enumerate(value):
                if not isinstance(tensor, torch.Tensor):
                    raise ValueError(
                        "'right_inverse' must return a sequence of tensors or reference-type opaques. "
                        f"Got element {i} of type {type(tensor).__name__}."
                    )
                _set_original(getattr(self, f"original{i}"), tensor, f"Tensor {i}", f"original{i}")

    def forward(self) -> torch.Tensor:
        """The parametrized tensor."""
        if self.is_tensor:
            x = self[0](self.original)
        else:
            x = self[0](*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for i in range(1, len(self)):
            x = self[i](x)
        return x


def _set_original(original: torch.Tensor, value: torch.Tensor, who: str, name: str) -> None:
    if value.dtype != original.dtype:
        raise ValueError(
            f"{who} returned by `right_inverse` has dtype {value.dtype} while `{name}` has dtype "
            f"{original.dtype}"
        )
    _maybe_set(original, value)


def _check_unchanged(result: Any, shape: Any, dtype: Any) -> None:
    if not isinstance(result, torch.Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
    for attribute, before, after in (("dtype", dtype, result.dtype), ("shape", shape, result.shape)):
        if before != after:
            raise ValueError(
                f"Registering a parametrization may not change the {attribute} of the tensor, unless `unsafe` "
                "flag is "
                f"enabled.\nunparametrized {attribute}: {before}\nparametrized {attribute}: {after}"
            )


def _inject_new_class(module: Module) -> None:
    """Give the module a class of its own, with properties for its parametrized tensors."""
    cls = module.__class__

    def default_deepcopy(self: Any, memo: dict[int, Any]) -> Any:
        memoized = memo.get(id(self))
        if memoized is not None:
            return memoized
        replica = self.__new__(self.__class__)
        memo[id(self)] = replica
        replica.__dict__ = deepcopy(self.__dict__, memo)
        slots = copyreg._slotnames(self.__class__)  # type: ignore[attr-defined]
        for slot in slots:
            if hasattr(self, slot):
                setattr(replica, slot, deepcopy(getattr(self, slot), memo))
        return replica

    def getstate(self: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
            "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    members: dict[str, Any] = {"__getstate__": getstate}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = default_deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _inject_property(module: Module, tensor_name: str) -> None:
    """Make reading the attribute compute the tensor, and assigning it invert the parametrization."""
    if hasattr(module, tensor_name):
        raise AssertionError(f"tensor {tensor_name} should not exist on the module when injecting property")

    def read(self: Any) -> torch.Tensor:
        if not _cache_enabled:
            return self.parametrizations[tensor_name]()
        key = (id(self), tensor_name)
        tensor = _cache.get(key)
        if tensor is None:
            tensor = _cache[key] = self.parametrizations[tensor_name]()
        return tensor

    def write(self: Any, value: torch.Tensor) -> None:
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(module.__class__, tensor_name, property(read, write))


def _check_composition(module: Module, tensor_name: str, parametrization: Module) -> None:
    """A parametrization on top of others must preserve dtype and shape, and so must its inverse."""
    Y = getattr(module, tensor_name)
    X = parametrization(Y)
    if not isinstance(X, torch.Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(X).__name__}.")
    for attribute in ("dtype", "shape"):
        if getattr(X, attribute) != getattr(Y, attribute):
            raise ValueError(
                f"Registering a parametrization may not change the {attribute} of the tensor, unless the "
                "`unsafe` flag "
                f"is enabled.\nmodule.{tensor_name}.{attribute}: {getattr(Y, attribute)}\n"
                f"parametrization(module.{tensor_name}).{attribute}: {getattr(X, attribute)}"
            )
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        Z = parametrization.right_inverse(X)
    except NotImplementedError:
        return
    if not isinstance(Z, torch.Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(Z).__name__}")
    if Z.dtype != Y.dtype:
        raise ValueError(
            "The tensor returned by parametrization.right_inverse must have the same dtype as "
            f"module.{tensor_name}, unless the `unsafe` flag is enabled.\n"
            f"module.{tensor_name}.dtype: {Y.dtype}\nreturned dtype: {Z.dtype}"
        )
    if Z.shape != Y.shape:
        raise ValueError(
            "The tensor returned by parametrization.right_inverse must have the same shape as "
            f"module.{tensor_name}, unless the `unsafe` flag is enabled.\n"
            f"module.{tensor_name}.shape: {Y.shape}\nreturned shape: {Z.shape}"
        )


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute a parameter or buffer of a module as `parametrization(original)` from now on."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_composition(module, tensor_name, parametrization)
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        parametrizations = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module, or one tensor of it, is parametrized."""
    parametrizations = getattr(module, "parametrizations", None)
    if parametrizations is None or not isinstance(parametrizations, ModuleDict):
        return False
    if tensor_name is None:
        return len(parametrizations) > 0
    return tensor_name in parametrizations


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a tensor ordinary again, with its current value or with that of its original."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with torch.no_grad():
                _maybe_set(original, getattr(module, tensor_name))
    elif leave_parametrized:
        t = getattr(module, tensor_name)
        original = Parameter(t) if t.requires_grad else t
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in "
            "terms of a "
            "sequence of tensors."
        )
    delattr(module.__class__, tensor_name)
    del module.parametrizations[tensor_name]
    _register_parameter_or_buffer(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = module.__class__.__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class the module had before it was parametrized."""
    return module.__class__.__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Copy the parametrizations of one module, and the tensors they start from, to another."""
    if not is_parametrized(from_module):
        return to_module
    parametrizations = from_module.parametrizations
    for name in list(parametrizations) if tensor_name is None else [tensor_name]:
        if name not in parametrizations:
            continue
        source = parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for function in source:
            register_parametrization(to_module, name, function)
        target = to_module.parametrizations[name]
        originals = ["original"] if source.is_tensor else [f"original{i}" for i in range(source.ntensors)]
        for original in originals:
            setattr(target, original, getattr(source, original))
    return to_module
