"""Module calls with hooks, run in torch's order. Calls without hooks do not come here."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from ...utils.hooks import BackwardHook
from . import _global_hooks
from ._global_hooks import (
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_hooks_always_called,
    _global_forward_hooks_with_kwargs,
    _global_forward_pre_hooks,
)

_Hook = Callable[..., Any]


class _Progress:
    """The progress of a call: what an always-called hook gets after a failure."""

    def __init__(self) -> None:
        self.called: set[int] = set()
        self.result: Any = None


def call_with_hooks(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the module; if that fails, still run the forward hooks registered with `always_call`."""
    progress = _Progress()
    if not (module._forward_hooks_always_called or _global_forward_hooks_always_called):
        return _call(module, args, kwargs, progress)
    try:
        return _call(module, args, kwargs, progress)
    except Exception:
        _run_remaining_always_called(module, args, kwargs, progress)
        raise


def _call(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], progress: _Progress) -> Any:
    full_hooks, non_full_hooks = module._get_backward_hooks()
    pre_hooks = module._get_backward_pre_hooks()
    args, kwargs = _run_forward_pre_hooks(module, args, kwargs)
    backward_hook = None
    if full_hooks or pre_hooks:
        backward_hook = BackwardHook(module, full_hooks, pre_hooks)
        args = backward_hook.setup_input_hook(args)

    progress.result = module.forward(*args, **kwargs)
    for handle_id, hook, with_kwargs in _forward_hooks(module):
        progress.called.add(handle_id)
        _run_forward_hook(hook, with_kwargs, module, args, kwargs, progress)

    result = progress.result
    if backward_hook is not None:
        if not isinstance(result, (torch.Tensor, tuple)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors "
                f"but received {type(result)}",
                stacklevel=5,
            )
        result = progress.result = backward_hook.setup_output_hook(result)
    if non_full_hooks:
        _set_non_full_backward_hooks(module, non_full_hooks, args, result)
    return result


def _run_forward_pre_hooks(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    for handle_id, hook in (*_global_forward_pre_hooks.items(), *module._forward_pre_hooks.items()):
        if handle_id in module._forward_pre_hooks_with_kwargs:
            changed = hook(module, args, kwargs)
            if changed is None:
                continue
            if not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError(
                    "forward pre-hook must return None or a tuple "
                    f"of (new_args, new_kwargs), but got {changed}."
                )
            args, kwargs = changed
        else:
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
    return args, kwargs


def _forward_hooks(module: Any) -> list[tuple[int, _Hook, bool]]:
    """The forward hooks that apply, global ones first: (id, hook, whether it takes keyword arguments)."""
    found = [(i, hook, i in _global_forward_hooks_with_kwargs) for i, hook in _global_forward_hooks.items()]
    found += [(i, hook, i in module._forward_hooks_with_kwargs) for i, hook in module._forward_hooks.items()]
    return found


def _run_forward_hook(
    hook: _Hook, with_kwargs: bool, module: Any, args: Any, kwargs: dict[str, Any], progress: _Progress
) -> None:
    result = progress.result
    output = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
    if output is not None:
        progress.result = output


def _run_remaining_always_called(module: Any, args: Any, kwargs: dict[str, Any], progress: _Progress) -> None:
    """After a failure: run the always-called hooks that have not run yet. Their own errors only warn."""
    for handle_id, hook, with_kwargs in _forward_hooks(module):
        is_global = handle_id in _global_forward_hooks_always_called
        if handle_id in progress.called or not (
            is_global or handle_id in module._forward_hooks_always_called
        ):
            continue
        try:
            _run_forward_hook(hook, with_kwargs, module, args, kwargs, progress)
        except Exception as error:
            kind = "global module forward hook" if is_global else "module forward hook"
            warnings.warn(
                f"{kind} with ``always_call=True`` raised an exception that was silenced as another error "
                f"was raised in forward: {error!s}",
                stacklevel=5,
            )


def backward_hooks(module: Any) -> tuple[list[_Hook], list[_Hook]]:
    """The backward hooks that apply to a module, global ones first: (full, non-full)."""
    full: list[_Hook] = []
    non_full: list[_Hook] = []
    for is_full, hooks in (
        (_global_hooks._global_is_full_backward_hook, _global_backward_hooks),
        (module._is_full_backward_hook, module._backward_hooks),
    ):
        if hooks and is_full is not None:
            (full if is_full else non_full).extend(hooks.values())
    return full, non_full


def backward_pre_hooks(module: Any) -> list[_Hook]:
    """The backward pre-hooks that apply to a module, global ones first."""
    return [*_global_backward_pre_hooks.values(), *module._backward_pre_hooks.values()]


def _set_non_full_backward_hooks(module: Any, hooks: list[_Hook], args: Any, result: Any) -> None:
    value = result
    while not isinstance(value, torch.Tensor):
        if isinstance(value, dict):
            value = next(v for v in value.values() if isinstance(v, torch.Tensor))
        else:
            value = value[0]
    grad_fn = value.grad_fn
    if grad_fn is not None:
        for hook in hooks:
            grad_fn.register_hook(functools.partial(hook, module))
        module._maybe_warn_non_full_backward_hook(args, result, grad_fn)


def warn_non_full_backward_hook(inputs: Any, result: Any, grad_fn: Any) -> None:
    """Warn about gradients of a call that a non-full hook does not get."""
    advice = "Please use register_full_backward_hook to get the documented behavior."
    for value, action, part in ((result, "return", "grad_output"), (inputs, "take as input", "grad_input")):
        if not _tensors_only(value):
            warnings.warn(
                f"Using non-full backward hooks on a Module that does not {action} a single Tensor or a "
                "tuple of "
                "Tensors is deprecated and will be removed in future versions. This hook "
                f"will be missing some of the {part}. {advice}",
                FutureWarning,
                stacklevel=7,
            )
            return
    if {out.grad_fn for out in _as_tuple(result) if out.grad_fn is not None} != {grad_fn}:
        condition, part = "outputs are generated by different autograd Nodes", "grad_output"
    else:
        input_nodes = {fn for fn, _ in grad_fn.next_functions if fn is not None}
        if input_nodes == {i.grad_fn for i in _as_tuple(inputs) if i.grad_fn is not None}:
            return
        condition, part = "the forward contains multiple autograd Nodes", "grad_input"
    warnings.warn(
        f"Using a non-full backward hook when {condition} is deprecated and will be removed in future "
        f"versions. This hook will be missing some {part}. {advice}",
        FutureWarning,
        stacklevel=7,
    )


def _tensors_only(value: Any) -> bool:
    return all(isinstance(v, torch.Tensor) for v in _as_tuple(value))


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
