"""torch.utils._python_dispatch: `__torch_dispatch__` modes, and helpers for wrapper subclasses."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mindtorch_v2 as torch

from .. import _torch_dispatch
from .._overrides import thread_state

__all__ = [
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
    "is_traceable_wrapper_subclass",
    "return_and_correct_aliasing",
    "transform_subclass",
]


class TorchDispatchMode:
    """Context manager: every op goes to `__torch_dispatch__` of this object. Composite ops are decomposed first."""

    supports_higher_order_operators = False

    def __init__(self, _dispatch_key: Any = None) -> None:
        if _dispatch_key is not None:
            raise RuntimeError(
                f"dispatch keys do not exist here, so no mode can be bound to {_dispatch_key!r}"
            )

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Handle an op; the mode is off while this runs."""
        raise NotImplementedError

    def __enter__(self) -> TorchDispatchMode:
        _push_mode(self)
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        _pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchDispatchMode:
        """Create a mode; the caller enters it."""
        warnings.warn(
            "`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`", stacklevel=2
        )
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether a mode belongs to the library: none does."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that only runs the op."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _push_mode(mode: TorchDispatchMode) -> None:
    _torch_dispatch.push_dispatch_mode(mode)


def _pop_mode(k: Any = None) -> TorchDispatchMode:
    return _torch_dispatch.pop_dispatch_mode()


@contextmanager
def _pop_mode_temporarily(k: Any = None) -> Iterator[TorchDispatchMode]:
    """Context manager: the innermost mode is off."""
    mode = thread_state.dispatch_modes.pop()
    try:
        yield mode
    finally:
        thread_state.dispatch_modes.append(mode)


@contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    """Context manager: all modes of this thread are off. Yields them, innermost first."""
    before, thread_state.dispatch_modes = thread_state.dispatch_modes, []
    try:
        yield before[::-1]
    finally:
        thread_state.dispatch_modes = before


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """The innermost mode, or None."""
    return thread_state.dispatch_modes[-1] if thread_state.dispatch_modes else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """All modes, the innermost last."""
    return list(thread_state.dispatch_modes)


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode is on."""
    return bool(thread_state.dispatch_modes)


def any_torch_dispatch_mode_on_stack() -> bool:
    """Whether a mode is on."""
    return bool(thread_state.dispatch_modes)


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether a tensor's class defines `__tensor_flatten__` and `__tensor_unflatten__`."""
    return isinstance(t, torch.Tensor) and is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """The same for a class."""
    return (
        issubclass(t, torch.Tensor)
        and t is not torch.Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def transform_subclass(t: Any, callback: Any, outer_size: Any = None, outer_stride: Any = None) -> Any:
    """A wrapper subclass with `callback(name, tensor)` applied to each wrapped tensor."""
    names, context = t.__tensor_flatten__()
    inner_tensors = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    return type(t).__tensor_unflatten__(inner_tensors, context, size, stride)


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """The result that a handler must return: the argument itself for an op that writes to it, else `out`."""
    schema = func._schema
    arguments = dict(zip([a.name for a in schema.arguments], args), **(kwargs or {}))
    written = [arguments[a.name] for a in schema.arguments if a.is_write and a.name in arguments]
    if written and schema.returns and schema.returns[0].is_write:
        return written[0] if len(schema.returns) == 1 else tuple(written)
    return out
