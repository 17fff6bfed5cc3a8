"""Handles that remove hooks from a dictionary, and full backward hooks of modules."""

from __future__ import annotations

import functools
import sys
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import mindtorch_v2 as torch

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks", "BackwardHook"]

_F = TypeVar("_F", bound=Callable[..., Any])


class _NoDict(dict):  # type: ignore[type-arg]
    """Replaces a dictionary that no longer exists: unlike `dict` it supports weak references."""


def _dead_reference() -> weakref.ref[Any]:
    return weakref.ref(_NoDict())


class RemovableHandle:
    """Removes a hook from its dictionary; holds the dictionary weakly."""

    id: int
    next_id: int = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        self.extra_dict_ref: tuple[weakref.ref[Any], ...] = ()
        if isinstance(extra_dict, dict):
            self.extra_dict_ref = (weakref.ref(extra_dict),)
        elif isinstance(extra_dict, list):
            self.extra_dict_ref = tuple(weakref.ref(extra) for extra in extra_dict)

    def remove(self) -> None:
        """Remove the hook. A second call has no effect."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        return self.hooks_dict_ref(), self.id, tuple(reference() for reference in self.extra_dict_ref)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        hooks, self.id = state[0], state[1]
        self.hooks_dict_ref = _dead_reference() if hooks is None else weakref.ref(hooks)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)
        extras = state[2] if len(state) > 2 else ()
        self.extra_dict_ref = tuple(
            _dead_reference() if extra is None else weakref.ref(extra) for extra in extras
        )

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, type: Any, value: Any, tb: Any) -> None:
        self.remove()


def unserializable_hook(f: _F) -> _F:
    """Mark a hook so that saving its tensor does not warn."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn for each backward hook of the tensor that saving would lose."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can "
                "decorate "
                "the function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )


@functools.cache
def _backward_hook_function() -> Any:
    """An identity Function whose node has the hooks. Created on first use: when this
    module is imported, torch.autograd is not complete.
    """

    class BackwardHookFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            ctx.mark_non_differentiable(*(arg for arg in args if not arg.requires_grad))
            return args

        @staticmethod
        def backward(ctx: Any, *args: Any) -> Any:
            return args

    return BackwardHookFunction


class BackwardHook:
    """Calls a module's full backward hooks with the gradients of its inputs and outputs.

    Identity nodes are inserted after the inputs and the outputs. The output's node runs the pre-hooks and
    stores the output gradients; the input's node runs the hooks with both.
    """

    def __init__(self, module: Any, user_hooks: Sequence[Any], user_pre_hooks: Sequence[Any]) -> None:
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.module = module
        self.grad_outputs: Any = None
        self.n_outputs = -1
        self.output_tensors_index: list[int] | None = None
        self.n_inputs = -1
        self.input_tensors_index: list[int] | None = None

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The inputs, passed through the node that will run the hooks."""
        args, self.input_tensors_index = self._through_node(self._set_user_hook, args)
        self.n_inputs = len(args)
        return args

    def setup_output_hook(self, args: Any) -> Any:
        """The output, passed through the node that will run the pre-hooks. Only tensors and tuples are
        searched.
        """
        if not isinstance(args, tuple):
            if not isinstance(args, torch.Tensor):
                self.n_outputs = 1
                return args
            outputs, self.output_tensors_index = self._through_node(self._set_user_pre_hook, (args,))
            self.n_outputs = 1
            return outputs[0]
        outputs, self.output_tensors_index = self._through_node(self._set_user_pre_hook, args)
        self.n_outputs = len(args)
        return type(args)(*outputs) if hasattr(args, "_fields") else outputs

    def _through_node(
        self, set_hook: Callable[[Any], None], args: tuple[Any, ...]
    ) -> tuple[Any, list[int] | None]:
        tensor_indices = [i for i, arg in enumerate(args) if isinstance(arg, torch.Tensor)]
        if not (torch.is_grad_enabled() and any(args[i].requires_grad for i in tensor_indices)):
            return args, None
        outputs = _backward_hook_function().apply(*(args[i] for i in tensor_indices))
        set_hook(next(out.grad_fn for out in outputs if out.grad_fn is not None))
        new_args = list(args)
        for i, out in zip(tensor_indices, outputs):
            new_args[i] = out
        return tuple(new_args), tensor_indices

    def _set_user_hook(self, grad_fn: Any) -> None:
        def hook(grad_input: Any, _: Any) -> Any:
            if self.grad_outputs is None:  # the gradient did not come through the module's output
                return None
            assert self.input_tensors_index is not None
            gradients = _spread(self.input_tensors_index, grad_input, self.n_inputs)
            for user_hook in self.user_hooks:
                out = user_hook(self.module, gradients, self.grad_outputs)
                if out is not None:
                    _check_count("hook", "grad_input", out, gradients)
                    gradients = out
            self.grad_outputs = None
            return tuple(gradients[i] for i in self.input_tensors_index)

        grad_fn.register_hook(hook)

    def _set_user_pre_hook(self, grad_fn: Any) -> None:
        def hook(grad_output: Any) -> Any:
            assert self.output_tensors_index is not None
            self.grad_outputs = _spread(self.output_tensors_index, grad_output, self.n_outputs)
            for user_pre_hook in self.user_pre_hooks:
                out = user_pre_hook(self.module, self.grad_outputs)
                if out is not None:
                    _check_count("pre hook", "grad_output", out, self.grad_outputs)
                    self.grad_outputs = out
            changed = tuple(self.grad_outputs[i] for i in self.output_tensors_index)
            if self.input_tensors_index is None:
                self._run_without_inputs()
            return changed

        grad_fn.register_prehook(hook)

    def _run_without_inputs(self) -> None:
        """No input requires grad, so there is no input node: run the hooks here; they cannot change
        gradients.
        """
        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect to module outputs since "
            "no inputs "
            "require gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
            "#torch.nn.Module.register_full_backward_hook for more details.",
            stacklevel=_level_of_the_caller(),
        )
        gradients = (None,) * self.n_inputs
        for user_hook in self.user_hooks:
            out = user_hook(self.module, gradients, self.grad_outputs)
            if out is not None and not (isinstance(out, tuple) and all(value is None for value in out)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or "
                    "None for all gradients."
                )
        self.grad_outputs = None


def _level_of_the_caller() -> int:
    """The stack level of the first frame outside this package, where the user called backward."""
    package = __name__.partition(".")[0]
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    return level


def _spread(indices: list[int], values: Sequence[Any], size: int) -> tuple[Any, ...]:
    spread: list[Any] = [None] * size
    for i, value in zip(indices, values):
        spread[i] = value
    return tuple(spread)


def _check_count(kind: str, what: str, out: Any, expected: Sequence[Any]) -> None:
    if len(out) != len(expected):
        raise RuntimeError(
            f"Backward {kind} returned an invalid number of {what}, got {len(out)}, but expected "
            f"{len(expected)}"
        )
