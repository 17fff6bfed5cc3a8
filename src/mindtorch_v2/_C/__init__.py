"""torch._C, where programs reach for it: the classes that torch defines there, and its tables of functions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from .. import _dispatch, _overrides
from .._device import device as device
from .._dtype import dtype as dtype
from .._dtype import layout as layout
from .._dtype import memory_format as memory_format
from .._random import Generator as Generator
from .._size import Size as Size
from .._tensor import Tensor

TensorBase = Tensor
_VariableFunctions: Any = SimpleNamespace(**_dispatch.FUNCTIONS)

__all__ = ["Generator", "Size", "TensorBase", "device", "dtype", "layout", "memory_format"]


class DisableTorchFunctionSubclass:
    """A block in which no class is asked how functions treat its tensors; modes still are."""

    _off = _overrides.SUBCLASSES_OFF

    def __enter__(self) -> None:
        self._before, _overrides.here.off = _overrides.here.off, max(_overrides.here.off, self._off)

    def __exit__(self, *exception: object) -> None:
        _overrides.here.off = self._before


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """A block in which neither classes nor modes are asked."""

    _off = _overrides.ALL_OFF


class _EnableTorchFunction:
    """A block in which classes and modes are asked again."""

    def __enter__(self) -> None:
        self._before, _overrides.here.off = _overrides.here.off, _overrides.ENABLED

    def __exit__(self, *exception: object) -> None:
        _overrides.here.off = self._before


class _DisableTorchDispatch:
    """A block in which nobody is asked about ops."""

    def __enter__(self) -> None:
        self._before, _overrides.here.dispatch_off = _overrides.here.dispatch_off, True

    def __exit__(self, *exception: object) -> None:
        _overrides.here.dispatch_off = self._before


_disabled_torch_function_impl = _overrides.disabled_function
_disabled_torch_dispatch_impl = _overrides.disabled_dispatch


def _is_torch_function_enabled() -> bool:
    """Whether classes are asked."""
    return _overrides.here.off == _overrides.ENABLED


def _is_torch_function_all_disabled() -> bool:
    """Whether neither classes nor modes are asked."""
    return _overrides.here.off == _overrides.ALL_OFF


def _is_torch_function_mode_enabled() -> bool:
    """Whether a mode for functions is on."""
    return bool(_overrides.here.modes) and _overrides.here.off != _overrides.ALL_OFF


def _len_torch_function_stack() -> int:
    """How many modes for functions are on."""
    return len(_overrides.here.modes)


def _len_torch_dispatch_stack() -> int:
    """How many modes for ops are on."""
    return len(_overrides.here.dispatch_modes)


def __getattr__(name: str) -> Any:
    if name in ("_autograd", "_nn", "_profiler"):
        from importlib import import_module

        return import_module("." + name, __name__)
    raise AttributeError(f"module 'torch._C' has no attribute '{name}'")
