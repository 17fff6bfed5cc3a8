"""Grad modes as context managers and decorators: no_grad, enable_grad, set_grad_enabled, inference_mode. They
set per-thread flags.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

from .. import _dispatch
from .._graph import Switches, grad_state

__all__ = [
    "no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "set_multithreading_enabled",
    "enforce_grad_layout_policy", "_force_original_view_tracking", "_unsafe_preserve_version_counter",
]  # fmt: skip


def _decorate(context: Any, func: Any) -> Any:
    """`func` run inside a new context each time; a generator is inside it only while its own code runs."""
    if inspect.isclass(func):
        import warnings

        warnings.warn(
            "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or methods. "
            "To preserve the current behavior of class decoration, you can directly decorate the `__init__` method and nothing else.",
            FutureWarning, stacklevel=3,
        )  # fmt: skip
        func.__init__ = _decorate(context, func.__init__)  # type: ignore[method-assign]
        return func
    if inspect.isgeneratorfunction(func):
        return _decorate_generator(context, func)

    @functools.wraps(func)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with context():
            return func(*args, **kwargs)

    return inside


def _decorate_generator(context: Any, func: Any) -> Any:
    @functools.wraps(func)
    def inside(*args: Any, **kwargs: Any) -> Any:
        generator = func(*args, **kwargs)
        try:
            with context():
                value = generator.send(None)
            while True:
                try:
                    request = yield value
                except GeneratorExit:
                    with context():
                        generator.close()
                    raise
                except BaseException:
                    import sys

                    with context():
                        value = generator.throw(*sys.exc_info())
                else:
                    with context():
                        value = generator.send(request)
        except StopIteration as stop:
            return stop.value

    return inside


_DUAL = (
    "Turning gradients off inside a dual level is not supported: forward-mode derivatives follow from the graph of the backward pass "
    "here. Leave the level first, or use detach()."
)


class _GradContext:
    """What the grad-mode contexts share."""

    def __call__(self, func: Any) -> Any:
        return _decorate(self.clone, func)

    def clone(self) -> Any:
        """A context with the same setting."""
        return self.__class__()


class _DecoratorContext(_GradContext):
    """A context that also decorates without parentheses: `@no_grad`."""

    def __new__(cls, orig_func: Any = None) -> Any:
        made = object.__new__(cls)
        return made if orig_func is None else _decorate(cls, orig_func)


class no_grad(_DecoratorContext):
    """Context manager and decorator: operations are not recorded for gradients."""

    def __init__(self) -> None:
        self.prev = False

    def __enter__(self) -> None:
        if grad_state.dual_level is not None:
            raise RuntimeError(_DUAL)
        self.prev = grad_state.enabled
        grad_state.enabled = False

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        grad_state.enabled = self.prev


class enable_grad(_DecoratorContext):
    """Context manager and decorator: operations are recorded for gradients."""

    def __enter__(self) -> None:
        self.prev = grad_state.enabled
        grad_state.enabled = True

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        grad_state.enabled = self.prev


class set_grad_enabled(_GradContext):
    """Turn recording for gradients on or off, immediately and as a context manager."""

    def __init__(self, mode: bool) -> None:
        if not mode and grad_state.dual_level is not None:
            raise RuntimeError(_DUAL)
        self.prev = grad_state.enabled
        self.mode = mode
        grad_state.enabled = bool(mode)

    def __call__(self, orig_func: Any) -> Any:
        grad_state.enabled = self.prev
        return super().__call__(orig_func)

    def __enter__(self) -> None:
        grad_state.enabled = bool(self.mode)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        grad_state.enabled = self.prev

    def __str__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    __repr__ = __str__

    def clone(self) -> set_grad_enabled:
        """A context with the same setting."""
        return self.__class__(self.mode)


class _Inference:
    """The number of open inference contexts, in all threads."""

    count = 0


def _count_inference(change: int) -> None:
    """While an inference context is open, tensors are created by a function that marks them; otherwise there
    is no check.
    """
    with Switches.lock:
        _Inference.count += change
        if _Inference.count:
            _dispatch.new, _dispatch.new_view = _dispatch.new_in_inference, _dispatch.new_view_in_inference
            _dispatch.new_result = _dispatch.wrap_result
        else:
            _dispatch.new, _dispatch.new_view = _dispatch.new_tensor, _dispatch.new_plain_view
            _dispatch.new_result = _dispatch.new_plain_result


class inference_mode(_GradContext):
    """Context manager: operations are not recorded for gradients, and new tensors can never take part in
    them.
    """

    def __new__(cls, mode: Any = True) -> Any:
        if isinstance(mode, bool):
            return object.__new__(cls)
        return _decorate(cls, mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        if self.mode and grad_state.dual_level is not None:
            raise RuntimeError(_DUAL)
        self._before = (grad_state.enabled, grad_state.inference)
        grad_state.inference = self.mode
        grad_state.enabled = not self.mode
        _count_inference(1)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        grad_state.enabled, grad_state.inference = self._before
        _count_inference(-1)

    def clone(self) -> inference_mode:
        """A context with the same setting."""
        return self.__class__(self.mode)


class set_multithreading_enabled(_GradContext):
    """Set whether a backward pass may use threads; here it always runs on the calling thread."""

    def __init__(self, mode: bool) -> None:
        self.prev = grad_state.multithreading
        grad_state.multithreading = mode
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        grad_state.multithreading = self.prev

    def clone(self) -> set_multithreading_enabled:
        """A context with the same setting."""
        return self.__class__(self.mode)


class enforce_grad_layout_policy(_GradContext):
    """Set whether a leaf's new `.grad` gets the leaf's strides (the default), immediately and as a context
    manager.
    """

    def __init__(self, enable: bool = True) -> None:
        self.prev = grad_state.layout_policy
        self.enable = enable
        grad_state.layout_policy = bool(enable)

    def __call__(self, func: Any) -> Any:
        grad_state.layout_policy = self.prev
        return super().__call__(func)

    def __enter__(self) -> None:
        grad_state.layout_policy = bool(self.enable)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        grad_state.layout_policy = self.prev

    def clone(self) -> enforce_grad_layout_policy:
        """A context with the same setting."""
        return self.__class__(self.enable)


class _force_original_view_tracking(_GradContext):
    """Sets what `is_view_replay_enabled` returns; views are always tracked the same way here."""

    def __init__(self, mode: bool) -> None:
        self.prev = grad_state.view_replay
        self.mode = mode
        grad_state.view_replay = bool(mode)

    def __call__(self, func: Any) -> Any:
        grad_state.view_replay = self.prev
        return super().__call__(func)

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        grad_state.view_replay = self.prev

    def clone(self) -> _force_original_view_tracking:
        """A context with the same setting."""
        return self.__class__(self.mode)


class _unsafe_preserve_version_counter:
    """Context manager: writes do not increase the version counters of the tensors."""

    def __init__(self, tensors: Any) -> None:
        self.tensors = (tensors,) if not isinstance(tensors, tuple) else tensors
        self.prev_versions = tuple(t._version for t in self.tensors)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *args: Any) -> None:
        from .._graph import storage_of

        for tensor, version in zip(self.tensors, self.prev_versions):
            storage_of(tensor)._version = version


def is_grad_enabled() -> bool:
    """Whether operations are recorded for gradients on this thread."""
    return grad_state.enabled or grad_state.below == 2


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on, on this thread."""
    return grad_state.inference
