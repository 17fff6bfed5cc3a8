"""Saving and loading modules: a module in, an ordered dictionary of tensors out, and the reverse.

Works through the module's own `_save_to_state_dict` and `_load_from_state_dict`, which subclasses override.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import mindtorch_v2 as torch

from ..parameter import Parameter, is_lazy

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"

Module: Any = None  # the class, set by .module, which imports this file


class _IncompatibleKeys(NamedTuple):
    """The missing and unexpected keys reported by `load_state_dict`."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys!r}, unexpected_keys={self.unexpected_keys!r})"
        )

    def __str__(self) -> str:
        return repr(self)


class _WrappedHook:
    """A hook that may take its module as the first argument; a weak reference, so that there is no cycle."""

    def __init__(self, hook: Callable[..., Any], module: Any = None) -> None:
        self.hook = hook
        functools.update_wrapper(self, hook)
        self.with_module = module is not None
        if module is not None:
            self.module = weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.hook = state["hook"]
        functools.update_wrapper(self, self.hook)
        self.with_module = state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("You are trying to revive the hook of a dead Module!")
            self.module = weakref.ref(state["module"])


# Pickled modules name these classes where torch has them.
_WrappedHook.__module__ = _IncompatibleKeys.__module__ = __name__.rpartition(".")[0] + ".module"


def save_members(module: Any, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
    """Put a module's own parameters, persistent buffers and extra state into `destination`."""
    for name, param in module._parameters.items():
        if param is not None:
            destination[prefix + name] = param if keep_vars else param.detach()
    for name, buffer in module._buffers.items():
        if buffer is not None and name not in module._non_persistent_buffers_set:
            destination[prefix + name] = buffer if keep_vars else buffer.detach()
    if type(module).get_extra_state is not Module.get_extra_state:
        destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = module.get_extra_state()


def save(module: Any, destination: Any, prefix: str, keep_vars: bool) -> Any:
    """The state of a module and its submodules."""
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()
    local_metadata = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = local_metadata
    for hook in module._state_dict_pre_hooks.values():
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in module._state_dict_hooks.values():
        result = hook(module, destination, prefix, local_metadata)
        if result is None:
            continue
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError("state_dict post-hook must return None")
        destination = result
    return destination


def load_members(
    module: Any,
    state_dict: Mapping[str, Any],
    prefix: str,
    local_metadata: dict[str, Any],
    strict: bool,
    missing_keys: list[str],
    unexpected_keys: list[str],
    error_msgs: list[str],
) -> None:
    """Load a module's own members from `state_dict` and record what did not fit."""
    for hook in module._load_state_dict_pre_hooks.values():
        hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
    members = {
        **module._parameters,
        **{k: v for k, v in module._buffers.items() if k not in module._non_persistent_buffers_set},
    }
    members = {name: member for name, member in members.items() if member is not None}
    assign = local_metadata.get("assign_to_params_buffers", False)
    for name, member in members.items():
        key = prefix + name
        if key in state_dict:
            problem = _load_member(module, name, key, member, state_dict[key], assign)
            if problem is not None:
                error_msgs.append(problem)
        elif strict:
            missing_keys.append(key)

    extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
    if type(module).set_extra_state is not Module.set_extra_state:
        if extra_key in state_dict:
            module.set_extra_state(state_dict[extra_key])
        elif strict:
            missing_keys.append(extra_key)
    elif strict and extra_key in state_dict:
        unexpected_keys.append(extra_key)

    if strict:
        for key in state_dict:
            if key.startswith(prefix) and key != extra_key:
                name, *sub_key = key[len(prefix) :].split(".", 1)
                # Keys below a child are checked by the child.
                if name not in (module._modules if sub_key else members):
                    unexpected_keys.append(key)


def _load_member(module: Any, name: str, key: str, member: Any, value: Any, assign: bool) -> str | None:
    """Set one parameter or buffer to its new value. Returns the error text, if any."""
    if not (isinstance(value, torch.Tensor) or hasattr(value, "__torch_function__")):
        return (
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
            f"checkpoint but received {type(value)}"
        )
    lazy = is_lazy(member)
    if not lazy:
        if member.dim() == 0 and value.dim() == 1 and len(value) == 1:
            value = value[0]  # very old files store scalars with one dimension
        if value.shape != member.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
                f"the shape in current model is {member.shape}."
            )
        if member.is_meta and not value.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in "
                "the current "
                "model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the state "
                "dictionary to their corresponding key in the module instead of copying them in place?)",
                stacklevel=2,
            )
    try:
        with torch.no_grad():
            if assign:
                _assign(module, name, member, value)
            else:
                member.copy_(value)
    except Exception as error:
        return (
            f'While copying the parameter named "{key}", whose dimensions in the model are {member.size()} '
            "and "
            f"whose dimensions in the checkpoint are {value.size()}, an exception occurred : {error.args}."
        )
    return None


def _assign(module: Any, name: str, member: Any, value: Any) -> None:
    if isinstance(member, Parameter):
        if isinstance(value, Parameter):
            value.requires_grad_(member.requires_grad)
        else:
            value = Parameter(value, requires_grad=member.requires_grad)
    setattr(module, name, value)


def load(module: Any, state_dict: Mapping[str, Any], strict: bool, assign: bool) -> _IncompatibleKeys:
    """Load a whole state dict into a module and its submodules; raises if something does not fit."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    missing_keys: list[str] = []
    unexpected_keys: list[str] = []
    error_msgs: list[str] = []
    metadata = getattr(state_dict, "_metadata", None)
    state_dict = OrderedDict(state_dict)  # a copy: subclasses remove keys while they load
    if metadata is not None:
        state_dict._metadata = metadata  # type: ignore[attr-defined]

    def load_below(module: Any, state_dict: Mapping[str, Any], prefix: str) -> None:
        local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
        if assign:
            local_metadata = {**local_metadata, "assign_to_params_buffers": True}
        module._load_from_state_dict(
            state_dict, prefix, local_metadata, True, missing_keys, unexpected_keys, error_msgs
        )
        for name, child in module._modules.items():
            if child is not None:
                below = f"{prefix}{name}."
                load_below(child, {k: v for k, v in state_dict.items() if k.startswith(below)}, below)
        incompatible = _IncompatibleKeys(missing_keys, unexpected_keys)
        for hook in module._load_state_dict_post_hooks.values():
            if hook(module, incompatible) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to "
                    "return new "
                    "values, if incompatible_keys need to be modified, it should be done inplace."
                )

    load_below(module, state_dict, "")
    if strict:
        if unexpected_keys:
            error_msgs.insert(0, _key_list("Unexpected", unexpected_keys))
        if missing_keys:
            error_msgs.insert(0, _key_list("Missing", missing_keys))
    if error_msgs:
        raise RuntimeError(
            f"Error(s) in loading state_dict for {type(module).__name__}:\n\t" + "\n\t".join(error_msgs)
        )
    return _IncompatibleKeys(missing_keys, unexpected_keys)


def _key_list(kind: str, keys: list[str]) -> str:
    return f"{kind} key(s) in state_dict: " + ", ".join(f'"{key}"' for key in keys) + ". "
