"""Hooks for all modules at once: a hook in, a handle that removes it out. Independent of Module."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ...utils.hooks import RemovableHandle

_Hooks = OrderedDict[int, Callable[..., Any]]

_global_parameter_registration_hooks: _Hooks = OrderedDict()
_global_module_registration_hooks: _Hooks = OrderedDict()
_global_buffer_registration_hooks: _Hooks = OrderedDict()

_global_forward_pre_hooks: _Hooks = OrderedDict()
_global_forward_hooks: _Hooks = OrderedDict()
_global_forward_hooks_always_called: OrderedDict[int, bool] = OrderedDict()
_global_forward_hooks_with_kwargs: OrderedDict[int, bool] = OrderedDict()
_global_backward_pre_hooks: _Hooks = OrderedDict()
_global_backward_hooks: _Hooks = OrderedDict()

# None until a global backward hook is registered, then whether they are full ones: the two kinds cannot be
# mixed.
_global_is_full_backward_hook: bool | None = None

# All hooks above that run when a module is called: a call checks this one dictionary instead of four.
_global_call_hooks: _Hooks = OrderedDict()


def _has_any_global_hook() -> bool:
    return bool(_global_call_hooks)


def _register(hooks: _Hooks, hook: Callable[..., Any]) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def _register_for_calls(
    hooks: _Hooks, hook: Callable[..., Any], *marks: OrderedDict[int, bool]
) -> RemovableHandle:
    handle = RemovableHandle(hooks, extra_dict=[_global_call_hooks, *marks])
    hooks[handle.id] = _global_call_hooks[handle.id] = hook
    for mark in marks:
        mark[handle.id] = True
    return handle


def register_module_buffer_registration_hook(hook: Callable[..., None]) -> RemovableHandle:
    """Call `hook(module, name, buffer)` for every new buffer; its result replaces the buffer."""
    return _register(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable[..., None]) -> RemovableHandle:
    """Call `hook(module, name, submodule)` for every new child; its result replaces the child."""
    return _register(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook: Callable[..., None]) -> RemovableHandle:
    """Call `hook(module, name, param)` for every new parameter; its result replaces the parameter."""
    return _register(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook: Callable[..., None]) -> RemovableHandle:
    """Call `hook(module, args)` before the forward of every module."""
    return _register_for_calls(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., None], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after the forward of every module."""
    marks = []
    if with_kwargs:
        marks.append(_global_forward_hooks_with_kwargs)
    if always_call:
        marks.append(_global_forward_hooks_always_called)
    return _register_for_calls(_global_forward_hooks, hook, *marks)


def _set_backward_hook_kind(full: bool) -> None:
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
            "Please use only one of them."
        )
    _global_is_full_backward_hook = full


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` at the last node of every module; full hooks get more
    gradients.
    """
    _set_backward_hook_kind(full=False)
    return _register_for_calls(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output)` before the gradients of every module are computed."""
    return _register_for_calls(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` once the gradients of a module's inputs are computed."""
    _set_backward_hook_kind(full=True)
    return _register_for_calls(_global_backward_hooks, hook)
