"""torch._C: the classes and function tables of it that programs use."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

from .. import _dispatch, _overrides
from .._device import device as device
from .._dtype import dtype as dtype
from .._dtype import layout as layout
from .._dtype import memory_format as memory_format
from .._jit_types import CLASSES as _JIT_CLASSES
from .._random import Generator as Generator
from .._refused import refused_class
from .._size import Size as Size
from .._tensor import Tensor
from ._dispatch_keys import DispatchKey as DispatchKey
from ._dispatch_keys import DispatchKeySet as DispatchKeySet
from ._dispatch_keys import _ExcludeDispatchKeyGuard as _ExcludeDispatchKeyGuard

TensorBase = Tensor
_TensorMeta = type(Tensor)
globals().update(_JIT_CLASSES)
_VariableFunctions: Any = SimpleNamespace(**_dispatch.FUNCTIONS)

__all__ = ["Generator", "Size", "TensorBase", "device", "dtype", "layout", "memory_format"]


class DisableTorchFunctionSubclass:
    """Context manager: classes do not override functions; modes still do."""

    _off = _overrides.SUBCLASSES_OFF

    def __enter__(self) -> None:
        self._before, _overrides.thread_state.function_overrides = (
            _overrides.thread_state.function_overrides,
            max(_overrides.thread_state.function_overrides, self._off),
        )

    def __exit__(self, *exception: object) -> None:
        _overrides.thread_state.function_overrides = self._before


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Context manager: neither classes nor modes override functions."""

    _off = _overrides.ALL_OFF


class _EnableTorchFunction:
    """Context manager: enable overrides by classes and modes again."""

    def __enter__(self) -> None:
        self._before, _overrides.thread_state.function_overrides = (
            _overrides.thread_state.function_overrides,
            _overrides.ENABLED,
        )

    def __exit__(self, *exception: object) -> None:
        _overrides.thread_state.function_overrides = self._before


class _DisableTorchDispatch:
    """Context manager: ops run without `__torch_dispatch__` handlers."""

    def __enter__(self) -> None:
        self._before, _overrides.thread_state.dispatch_disabled = (
            _overrides.thread_state.dispatch_disabled,
            True,
        )

    def __exit__(self, *exception: object) -> None:
        _overrides.thread_state.dispatch_disabled = self._before


_disabled_torch_function_impl = _overrides.disabled_torch_function
_disabled_torch_dispatch_impl = _overrides.disabled_torch_dispatch


def _is_torch_function_enabled() -> bool:
    """Whether classes can override functions."""
    return _overrides.thread_state.function_overrides == _overrides.ENABLED


def _is_torch_function_all_disabled() -> bool:
    """Whether neither classes nor modes can override functions."""
    return _overrides.thread_state.function_overrides == _overrides.ALL_OFF


def _is_torch_function_mode_enabled() -> bool:
    """Whether a `__torch_function__` mode is active."""
    return (
        bool(_overrides.thread_state.function_modes)
        and _overrides.thread_state.function_overrides != _overrides.ALL_OFF
    )


def _len_torch_function_stack() -> int:
    """Number of active `__torch_function__` modes."""
    return len(_overrides.thread_state.function_modes)


def _len_torch_dispatch_stack() -> int:
    """Number of active `__torch_dispatch__` modes."""
    return len(_overrides.thread_state.dispatch_modes)


ScriptObject: Any = refused_class(
    "torch", "ScriptObject", "it is an object of TorchScript, which has no compiler here"
)


def __getattr__(name: str) -> Any:
    if name == "PyTorchFileReader":
        from ._file_reader import PyTorchFileReader

        return PyTorchFileReader
    if name in ("Graph", "Node", "Value", "TensorType"):
        from ..jit import _trace_graph

        return getattr(_trace_graph, name)
    if name in ("ScriptFunction", "ScriptMethod", "ScriptModule"):
        from .. import jit

        return getattr(jit, name)
    if name in ("_autograd", "_functorch", "_nn", "_profiler"):
        from importlib import import_module

        return import_module("." + name, __name__)
    if name in ("_fft", "_linalg", "_special"):
        return _prefixed_functions(name[1:])
    raise AttributeError(f"module 'torch._C' has no attribute '{name}'")


def _prefixed_functions(module: str) -> Any:
    """The functions of torch.linalg, torch.fft or torch.special by the names of their C functions: `linalg_norm`."""
    from importlib import import_module

    functions = vars(import_module(f"...{module}", __name__ + "._"))
    namespace = SimpleNamespace(
        **{f"{module}_{name}": f for name, f in functions.items() if callable(f) and not name.startswith("_")}
    )
    globals()["_" + module] = namespace
    return namespace


def _log_api_usage_once(event: str) -> None:
    """Report the use of an API to a logger that torch's builds can install; there is none."""


def _is_tracing() -> bool:
    """Whether `torch.jit._get_trace_graph` calls a module."""
    return _get_tracing_state() is not None


def _get_accelerator(check: bool | None = None) -> device:
    """The device that is not the CPU, or the CPU where there is none."""
    return device("cpu")


def _get_default_device() -> str:
    """The type of the device that new tensors are on."""
    from .._device import get_default_device

    return get_default_device().type


def _get_privateuse1_backend_name() -> str:
    """The name of a device type that an extension defines: torch's, as there is none."""
    return "privateuseone"


def _are_functorch_transforms_active() -> bool:
    """Whether a transform of torch.func runs."""
    from ..func._transforms import _levels

    return bool(_levels.depth)


def _get_tracing_state() -> Any:
    """The state of the tracer while `torch.jit._get_trace_graph` calls a module; else None."""
    tracer = sys.modules.get(f"{__package__.rpartition('.')[0]}.jit._trace_graph")
    return None if tracer is None else tracer.state
