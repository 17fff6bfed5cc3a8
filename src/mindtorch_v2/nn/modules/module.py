"""Module: the base class of layers. Holds parameters, buffers, children and hooks.

They are stored in plain dictionaries of the instance (`_parameters`, `_buffers`, `_modules`, one for each
type of hook) under torch's names, because programs access them directly.
"""

from __future__ import annotations

import itertools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

import mindtorch_v2 as torch

from ... import _dispatch
from ..._function_names import is_builtin
from ..._pickle_names import PACKAGE
from ..._tensor import Tensor
from ..._typename import typename
from ...utils.hooks import RemovableHandle
from ..parameter import Buffer, Parameter
from . import _call, _state_dict
from ._global_hooks import (
    _global_backward_hooks,  # noqa: F401  (torch's names, for those who import them from here)
    _global_backward_pre_hooks,  # noqa: F401
    _global_buffer_registration_hooks,
    _global_call_hooks,
    _global_forward_hooks,  # noqa: F401
    _global_forward_hooks_always_called,  # noqa: F401
    _global_forward_hooks_with_kwargs,  # noqa: F401
    _global_forward_pre_hooks,  # noqa: F401
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
    _has_any_global_hook,  # noqa: F401
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ._state_dict import _EXTRA_STATE_KEY_SUFFIX, _IncompatibleKeys, _WrappedHook  # noqa: F401
from ._to import parse_to

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "register_module_forward_pre_hook",
    "register_module_forward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_backward_hook",
    "register_module_full_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
    "Module",
]

T = TypeVar("T", bound="Module")
_grad_t = tuple[Tensor, ...] | Tensor

# Values of these types are never registered, so that assigning them needs no further checks.
_PLAIN_TYPES = frozenset((int, float, bool, str, bytes, tuple, list, dict, set))
_setattr = object.__setattr__


def _addindent(s_: str, numSpaces: int) -> str:
    """The text with every line but the first indented."""
    return s_.replace("\n", "\n" + numSpaces * " ")


def _forward_unimplemented(self: Module, *input: Any) -> None:
    """The module's computation: defined by subclasses."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


def _check_new_name(module: Module, kind: str, name: Any, registered: Mapping[str, Any]) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
    if "." in name:
        raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')
    if hasattr(module, name) and name not in registered:
        raise KeyError(f"attribute '{name}' already exists")


def _replaced_by_hooks(hooks: Mapping[int, Callable[..., Any]], module: Module, name: str, value: Any) -> Any:
    for hook in hooks.values():
        output = hook(module, name, value)
        if output is not None:
            value = output
    return value


def _set_buffer(module: Module, name: str, tensor: Tensor | None, persistent: bool) -> None:
    module._buffers[name] = _replaced_by_hooks(_global_buffer_registration_hooks, module, name, tensor)
    if persistent:
        module._non_persistent_buffers_set.discard(name)
    else:
        module._non_persistent_buffers_set.add(name)


def _set_before_init(module: Module, name: str, value: Any) -> None:
    for kind, text in ((Parameter, "parameters"), (Module, "module"), (Buffer, "buffer")):
        if isinstance(value, kind):
            raise AttributeError(f"cannot assign {text} before Module.__init__() call")
    _setattr(module, name, value)


def _remove_name(module: Module, name: str, *dicts: dict[str, Any]) -> None:
    for members in dicts:
        members.pop(name, None)
    module._non_persistent_buffers_set.discard(name)


def _register_hook(
    hooks: Any, hook: Callable[..., Any], prepend: bool = False, marks: tuple[Any, ...] = ()
) -> RemovableHandle:
    handle = RemovableHandle(hooks, extra_dict=list(marks))
    hooks[handle.id] = hook
    for mark in marks:
        mark[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _set_backward_hook_kind(module: Module, full: bool) -> None:
    if module._is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks on a single Module. "
            "Please use only one of them."
        )
    module._is_full_backward_hook = full


def _member_at(module: Module, target: str) -> tuple[Module, str, Any]:
    path, _, name = target.rpartition(".")
    owner = module.get_submodule(path)
    if not hasattr(owner, name):
        raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
    return owner, name, getattr(owner, name)


def _apply_to_parameter(module: Module, fn: Callable[[Tensor], Tensor], name: str, param: Parameter) -> None:
    with torch.no_grad():
        applied = fn(param)
    new_param: Tensor = param
    if param.device.type != applied.device.type:
        new_param = module._parameters[name] = Parameter(applied, param.requires_grad)
    else:
        _dispatch.record(_dispatch.OPS["_has_compatible_shallow_copy_type"], param, applied)
        param.data = applied  # the parameter object stays the same, because optimisers refer to it
    _apply_to_gradient(fn, param, new_param)


def _apply_to_gradient(fn: Callable[[Tensor], Tensor], param: Parameter, new_param: Tensor) -> None:
    """Apply `fn` to a parameter's gradient as well; the result is set on the parameter that is kept."""
    grad = param.grad
    if grad is None:
        return
    with torch.no_grad():
        applied = fn(grad)
    if new_param is param and grad.device.type == applied.device.type:
        _dispatch.record(_dispatch.OPS["_has_compatible_shallow_copy_type"], grad, applied)
        grad.data = applied
    else:
        new_param.grad = applied.requires_grad_(grad.requires_grad)


class Module:
    """Base class of all layers and models."""

    dump_patches: bool = False
    _version: int = 1  # version of the state dict's layout; subclasses that change it increase it
    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    call_super_init: bool = False
    _compiled_call_impl: Callable[..., Any] | None = None
    T_destination = TypeVar("T_destination", bound=dict[str, Any])
    forward: Callable[..., Any] = _forward_unimplemented

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Keep functions such as `activation = torch.tanh` from becoming methods: in torch they are built-in functions."""
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith(PACKAGE):
            return
        for name, value in list(vars(cls).items()):
            is_own = not isinstance(value, FunctionType) or value.__qualname__ == f"{cls.__qualname__}.{name}"
            if not is_own and is_builtin(value):
                setattr(cls, name, staticmethod(value))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            name = type(self).__name__
            if kwargs:
                raise TypeError(
                    f"{name}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            n_args = len(args) + 1
            raise TypeError(f"{name}.__init__() takes 1 positional argument but {n_args} were given")
        attributes = self.__dict__  # bypasses __setattr__, which would check each of these
        attributes["training"] = True
        attributes["_parameters"] = {}
        attributes["_buffers"] = {}
        attributes["_non_persistent_buffers_set"] = set()
        attributes["_backward_pre_hooks"] = OrderedDict()
        attributes["_backward_hooks"] = OrderedDict()
        attributes["_is_full_backward_hook"] = None
        attributes["_forward_hooks"] = OrderedDict()
        attributes["_forward_hooks_with_kwargs"] = OrderedDict()
        attributes["_forward_hooks_always_called"] = OrderedDict()
        attributes["_forward_pre_hooks"] = OrderedDict()
        attributes["_forward_pre_hooks_with_kwargs"] = OrderedDict()
        attributes["_state_dict_hooks"] = OrderedDict()
        attributes["_state_dict_pre_hooks"] = OrderedDict()
        attributes["_load_state_dict_pre_hooks"] = OrderedDict()
        attributes["_load_state_dict_post_hooks"] = OrderedDict()
        attributes["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # ------------------------------------------------------------------------------ calling

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        attributes = self.__dict__
        try:
            hooked = (
                attributes["_forward_hooks"]
                or attributes["_forward_pre_hooks"]
                or attributes["_backward_hooks"]
                or attributes["_backward_pre_hooks"]
                or _global_call_hooks
            )
        except KeyError:
            raise AttributeError(
                f"'{type(self).__name__}' object has no attribute '_backward_hooks'"
            ) from None
        if hooked:
            return self._call_impl(*args, **kwargs)
        return self.forward(*args, **kwargs)

    _wrapped_call_impl = __call__

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        """A call with hooks."""
        return _call.call_with_hooks(self, args, kwargs)

    def _get_backward_hooks(self) -> tuple[list[Callable[..., Any]], list[Callable[..., Any]]]:
        """The backward hooks that apply to this module, global ones first: (full, non-full)."""
        return _call.backward_hooks(self)

    def _get_backward_pre_hooks(self) -> list[Callable[..., Any]]:
        return _call.backward_pre_hooks(self)

    def _maybe_warn_non_full_backward_hook(self, inputs: Any, result: Any, grad_fn: Any) -> None:
        _call.warn_non_full_backward_hook(inputs, result, grad_fn)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the call with `torch.compile`, which here runs it eagerly and warns once."""
        self._compiled_call_impl = torch.compile(self._call_impl, *args, **kwargs)

    # ------------------------------------------------------------------------------ registering

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is part of the module's state but no parameter."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        _check_new_name(self, "buffer", name, self._buffers)
        if tensor is not None and not (isinstance(tensor, Tensor) or hasattr(tensor, "__torch_function__")):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        _set_buffer(self, name, tensor, persistent)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter; None reserves the name."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        _check_new_name(self, "parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                    "explicitly. To express '{name}' as a function of another Tensor, compute the value in "
                    "the forward() method."
                )
            param = _replaced_by_hooks(_global_parameter_registration_hooks, self, name, param)
        self._parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child module; None reserves the name."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        _check_new_name(self, "module", name, self._modules)
        self._modules[name] = _replaced_by_hooks(_global_module_registration_hooks, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as `add_module`."""
        self.add_module(name, module)

    def __getattr__(self, name: str) -> Any:
        attributes = self.__dict__
        if "_parameters" in attributes:
            members = attributes["_parameters"]
            if name in members:
                return members[name]
        if "_modules" in attributes:
            members = attributes["_modules"]
            if name in members:
                return members[name]
        if "_buffers" in attributes:
            members = attributes["_buffers"]
            if name in members:
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        attributes = self.__dict__
        parameters = attributes.get("_parameters")
        if parameters is None:
            _set_before_init(self, name, value)
        elif (
            type(value) in _PLAIN_TYPES
            and name not in parameters
            and name not in attributes["_modules"]
            and name not in attributes["_buffers"]
        ):
            _setattr(self, name, value)
        elif isinstance(value, Parameter):
            _remove_name(self, name, attributes, attributes["_buffers"], attributes["_modules"])
            self.register_parameter(name, value)
        elif name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module) or name in attributes["_modules"]:
            if isinstance(value, Module):
                _remove_name(self, name, attributes, parameters, attributes["_buffers"])
            elif value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            attributes["_modules"][name] = _replaced_by_hooks(
                _global_module_registration_hooks, self, name, value
            )
        elif name in attributes["_buffers"]:
            if value is not None and not (isinstance(value, Tensor) or hasattr(value, "__torch_function__")):
                raise TypeError(
                    f"cannot assign '{typename(value)}' as buffer '{name}' "
                    "(torch.nn.Buffer, torch.Tensor or None expected)"
                )
            persistent = value.persistent if isinstance(value, Buffer) else None
            if persistent is None:
                persistent = name not in self._non_persistent_buffers_set
            _set_buffer(self, name, value, persistent)
        elif isinstance(value, Buffer):
            self.register_buffer(name, value, value.persistent)
        else:
            _setattr(self, name, value)

    def __delattr__(self, name: str) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    # ------------------------------------------------------------------------------ hooks

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before forward; its result replaces the arguments."""
        marks = (self._forward_pre_hooks_with_kwargs,) if with_kwargs else ()
        return _register_hook(self._forward_pre_hooks, hook, prepend, marks)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after forward; its result replaces the output."""
        marks = (self._forward_hooks_with_kwargs,) if with_kwargs else ()
        if always_call:
            marks += (self._forward_hooks_always_called,)
        return _register_hook(self._forward_hooks, hook, prepend, marks)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_output)` before this module's gradients are computed."""
        return _register_hook(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` once the gradients of the inputs are computed."""
        _set_backward_hook_kind(self, full=True)
        return _register_hook(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` at the last node only; prefer the full hook."""
        _set_backward_hook_kind(self, full=False)
        return _register_hook(self._backward_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after saving; it may return another dict."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously "
                "registered via "
                "register_state_dict_post_hook"
            )
        return _register_hook(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after saving; it may change the dict in
        place.
        """
        hook._from_public_api = True  # type: ignore[attr-defined]
        return _register_hook(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict` reads this module."""
        return _register_hook(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        """Call `hook(state_dict, prefix, metadata, strict, missing, unexpected, errors)` before loading."""
        wrapped = _WrappedHook(hook, self if with_module else None)
        return _register_hook(self._load_state_dict_pre_hooks, wrapped)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Like the hook above, with the module as its first argument."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after loading; it may change the lists of keys in place."""
        return _register_hook(self._load_state_dict_post_hooks, hook)

    # ------------------------------------------------------------------------------ saving and loading

    def get_extra_state(self) -> Any:
        """Additional state for the state dict: defined by subclasses, together with `set_extra_state`."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called. "
            "Please file an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml "
            "to report this bug."
        )

    def set_extra_state(self, state: Any) -> None:
        """Restore the result of `get_extra_state` from a loaded state dict."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called. "
            "Please file an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml "
            "to report this bug."
        )

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Add this module's own state, without its children's, to `destination`."""
        _state_dict.save_members(self, destination, prefix, keep_vars)

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Parameters and persistent buffers of this module and its submodules, by their dotted names."""
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for "
                "details.",
                FutureWarning,
                stacklevel=2,
            )
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        return _state_dict.save(self, destination, prefix, keep_vars)

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own state, without its children's, from `state_dict`."""
        _state_dict.load_members(
            self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Copy (or with `assign` set) the values of a state dict into this module and its submodules."""
        return _state_dict.load(self, state_dict, strict, assign)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        own = self.__dict__
        own.update(state)
        for name in _HOOKS_OF_NEWER_VERSIONS:
            if name not in own:
                own[name] = OrderedDict()
        own.setdefault("_non_persistent_buffers_set", set())
        own.setdefault("_is_full_backward_hook", None)

    # ------------------------------------------------------------------------------ walking

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path; "" is this one."""
        module: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Set the module at a dotted path; with `strict` one must exist already."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path."""
        _, name, param = _member_at(self, target)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return param

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path."""
        module, name, buffer = _member_at(self, target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """The members that `get_members_fn` lists for each module, with dotted names."""
        seen = set()
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        else:
            modules = iter([(prefix, self)])
        for module_prefix, module in modules:
            for name, value in get_members_fn(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield (f"{module_prefix}.{name}" if module_prefix else name), value

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, each once."""
        for _name, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with their dotted names."""
        yield from self._named_members(
            lambda module: module._parameters.items(),
            prefix=prefix,
            recurse=recurse,
            remove_duplicate=remove_duplicate,
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers, each once."""
        for _name, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All buffers with their dotted names."""
        yield from self._named_members(
            lambda module: module._buffers.items(),
            prefix=prefix,
            recurse=recurse,
            remove_duplicate=remove_duplicate,
        )

    def children(self) -> Iterator[Module]:
        """The modules directly below this one, each once."""
        for _name, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly below this one, each once, with their names."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and its submodules."""
        for _name, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and its submodules, with their dotted names; those in `memo` are left out."""
        if memo is None:
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                below = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, below, remove_duplicate)

    # ------------------------------------------------------------------------------ changing all members

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace every parameter, gradient and buffer by `fn` of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is not None:
                _apply_to_parameter(self, fn, name, param)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call `fn` with every module, children before their parent."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def cuda(self, device: Any = None) -> Self:
        """Move to CUDA; there is none here, so this raises for a module that has tensors."""
        return self._apply(lambda t: t.cuda(device))

    def ipu(self, device: Any = None) -> Self:
        """Move to an IPU; there is none here, so this raises for a module that has tensors."""
        return self._apply(lambda t: t.to("ipu" if device is None else torch.device("ipu", device)))

    def xpu(self, device: Any = None) -> Self:
        """Move to an XPU; there is none here, so this raises for a module that has tensors."""
        return self._apply(lambda t: t.xpu(device))

    def mtia(self, device: Any = None) -> Self:
        """Move to MTIA; there is none here, so this raises for a module that has tensors."""
        return self._apply(lambda t: t.to("mtia" if device is None else torch.device("mtia", device)))

    def cpu(self) -> Self:
        """Move all tensors to the CPU."""
        return self._apply(lambda t: t.cpu())

    def type(self, dst_type: torch.dtype | str) -> Self:
        """Cast all parameters and buffers."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Cast floating point members to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        """Cast floating point members to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        """Cast floating point members to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Self:
        """Cast floating point members to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move to a device without copying any value."""
        return self._apply(lambda t: torch.empty_like(t, device=device), recurse=recurse)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move tensors to a device, floating ones to a dtype: `to(device)`, `to(dtype)`, `to(tensor)`."""
        device, dtype, non_blocking, memory_format = parse_to(*args, **kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    "nn.Module.to only accepts floating point or complex dtypes, "
                    f"but got desired dtype={dtype}"
                )
            if dtype.is_complex:
                warnings.warn(
                    "Complex modules are a new feature under active development whose design may change, "
                    "and some "
                    "modules might not work as expected when using complex tensors as parameters or buffers. "
                    "Please file an issue at "
                    "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml if a complex "
                    "module "
                    "does not work as expected.",
                    stacklevel=2,
                )

        def convert(t: Tensor) -> Tensor:
            new_dtype = dtype if t.is_floating_point() or t.is_complex() else None
            try:
                if memory_format is not None and t.dim() in (4, 5):
                    return t.to(device, new_dtype, non_blocking, memory_format=memory_format)
                return t.to(device, new_dtype, non_blocking)
            except NotImplementedError as error:
                if str(error) == "Cannot copy out of meta tensor; no data!":
                    raise NotImplementedError(
                        f"{error} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() "
                        "when moving module from meta to a different device."
                    ) from None
                raise

        return self._apply(convert)

    def train(self, mode: bool = True) -> Self:
        """Set training mode for this module and its submodules."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode for this module and its submodules."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether autograd records operations on the parameters."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zeros."""
        for param in self.parameters():
            grad = param.grad
            if grad is None:
                continue
            if set_to_none:
                param.grad = None
                continue
            if grad.grad_fn is not None:
                grad.detach_()
            else:
                grad.requires_grad_(False)
            grad.zero_()

    def share_memory(self) -> Self:
        """Move all tensors into memory that other processes can share."""
        return self._apply(lambda t: t.share_memory_())

    # ------------------------------------------------------------------------------ showing

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """The part of the repr between the parentheses: defined by subclasses."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        children = [f"({name}): {_addindent(repr(m), 2)}" for name, m in self._modules.items()]
        if not children and len(extra_lines) < 2:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(extra_lines + children) + "\n)"

    def __dir__(self) -> list[str]:
        registered = itertools.chain(self._parameters, self._modules, self._buffers)
        names = {*dir(type(self)), *self.__dict__, *registered}
        return sorted(name for name in names if not name[:1].isdigit())

    def _replicate_for_data_parallel(self) -> Module:
        """A copy that shares everything but its dictionaries and has no parameters."""
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica._is_replica = True
        return replica


_HOOKS_OF_NEWER_VERSIONS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks_with_kwargs",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)

_state_dict.Module = Module
